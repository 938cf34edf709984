/* SPDX-License-Identifier: MIT */
/* Meta rows. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_internal.h"

static int meta_put(struct tape *t, const char *key, const char *text, int64_t number,
		    struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc = store_statement(t, STORE_META_SET, &s, reterr);

	if (rc < 0)
		return rc;
	sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
	if (text)
		sqlite3_bind_text(s, 2, text, -1, SQLITE_STATIC);
	else
		sqlite3_bind_int64(s, 2, number);
	return store_run(t, s, "writing meta", reterr);
}

int tape_meta_set(struct tape *t, const char *key, const char *value, struct tape_err *reterr)
{
	return meta_put(t, key, value ? value : "", 0, reterr);
}

int tape_meta_set_int(struct tape *t, const char *key, int64_t value, struct tape_err *reterr)
{
	return meta_put(t, key, NULL, value, reterr);
}

int tape_meta_get(struct tape *t, const char *key, char **ret_value, struct tape_err *reterr)
{
	sqlite3_stmt *s;
	char *value = NULL;
	int rc = store_statement(t, STORE_META_GET, &s, reterr), step;

	if (rc < 0)
		return rc;
	sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
	step = sqlite3_step(s);
	if (step == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(s, 0);

		value = strdup(text ? text : "");
		if (!value)
			rc = tape_err_set(reterr, -ENOMEM, "out of memory");
	} else if (step != SQLITE_DONE) {
		rc = store_fail(t, "reading meta", reterr);
	}
	sqlite3_reset(s);
	if (rc == 0)
		*ret_value = value;
	return rc;
}

int64_t tape_meta_get_int(struct tape *t, const char *key, int64_t fallback)
{
	sqlite3_stmt *s;
	int64_t value = fallback;

	if (store_statement(t, STORE_META_GET, &s, NULL) < 0)
		return fallback;
	sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
	if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) != SQLITE_NULL)
		value = sqlite3_column_int64(s, 0);
	sqlite3_reset(s);
	return value;
}
