/* SPDX-License-Identifier: MIT */
/* The schema of a tape: creating it, and comparing a file's with ours. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/store_internal.h"

int store_schema_create(struct tape *t, struct tape_err *reterr)
{
	char pragmas[128];
	int rc;

	snprintf(pragmas, sizeof(pragmas), "PRAGMA application_id = %d; PRAGMA user_version = %d",
		 TAPE_APPLICATION_ID, TAPE_SCHEMA_VERSION);
	rc = store_exec(t, pragmas, "creating the schema", reterr);
	if (rc == 0)
		rc = store_exec(t, store_schema_sql, "creating the schema", reterr);
	for (const struct store_virtual *v = store_virtuals; rc == 0 && v->name; v++)
		rc = store_exec(t, v->sql, "creating the virtual tables", reterr);
	return rc;
}

static int version_check(struct tape *t, struct tape_err *reterr)
{
	int64_t application, version;
	int rc = store_query_int(t, "PRAGMA \"%w\".application_id", 0, &application, reterr);

	if (rc == 0)
		rc = store_query_int(t, "PRAGMA \"%w\".user_version", 0, &version, reterr);
	if (rc < 0)
		return rc;
	if (application != TAPE_APPLICATION_ID)
		return tape_err_set(reterr, -TAPE_E_FORMAT,
				    "%s: an SQLite database, but not a tape (application id 0x%llx)",
				    t->path, (unsigned long long)(uint32_t)application);
	if (version != TAPE_SCHEMA_VERSION)
		return tape_err_set(reterr, -TAPE_E_VERSION,
				    "%s: tape format %lld; this slabtape reads format %d", t->path,
				    (long long)version, TAPE_SCHEMA_VERSION);
	return 0;
}

/* Our schema in a database in memory, next to the open tape: names are compared in SQL. */
static int ours_open(struct tape *t, sqlite3 **ret_ours, struct tape_err *reterr)
{
	struct tape ours = { .path = (char[]){ "" } };
	int rc = 0;

	if (sqlite3_open(":memory:", &ours.db) != SQLITE_OK ||
	    store_modules_register(ours.db) != SQLITE_OK)
		rc = tape_err_set(reterr, -ENOMEM, "%s: out of memory", t->path);
	if (rc == 0)
		rc = store_schema_create(&ours, reterr);
	if (rc < 0)
		sqlite3_close(ours.db);
	else
		*ret_ours = ours.db;
	return rc;
}

/* The file's text for @name equals @text (which is NULL for indexes SQLite makes itself). */
static int text_check(struct tape *t, sqlite3_stmt *lookup, const char *name, const char *text,
		      struct tape_err *reterr)
{
	const char *theirs = NULL;
	int rc = 0, step;

	sqlite3_reset(lookup);
	sqlite3_bind_text(lookup, 1, name, -1, SQLITE_STATIC);
	step = sqlite3_step(lookup);
	if (step == SQLITE_ROW)
		theirs = (const char *)sqlite3_column_text(lookup, 0);
	else if (step != SQLITE_DONE)
		return store_fail(t, "reading the schema", reterr);
	if (step == SQLITE_DONE)
		rc = tape_err_set(reterr, -TAPE_E_FORMAT, "%s: not a whole tape: no '%s' in its schema",
				  t->path, name);
	else if ((theirs != NULL) != (text != NULL) || (text && strcmp(theirs, text) != 0))
		rc = tape_err_set(reterr, -TAPE_E_FORMAT,
				  "%s: the schema of '%s' is not the one of tape format %d", t->path,
				  name, TAPE_SCHEMA_VERSION);
	sqlite3_reset(lookup);
	return rc;
}

static int texts_check(struct tape *t, sqlite3 *ours, struct tape_err *reterr)
{
	sqlite3_stmt *list = NULL, *lookup = NULL;
	int rc = 0;

	if (sqlite3_prepare_v2(ours, "SELECT name, sql FROM sqlite_master", -1, &list, NULL) ||
	    store_prepare(t, "SELECT sql FROM \"%w\".sqlite_master WHERE name = ?", 0, &lookup))
		rc = store_fail(t, "reading the schema", reterr);
	while (rc == 0 && sqlite3_step(list) == SQLITE_ROW)
		rc = text_check(t, lookup, (const char *)sqlite3_column_text(list, 0),
				(const char *)sqlite3_column_text(list, 1), reterr);
	sqlite3_finalize(list);
	sqlite3_finalize(lookup);
	return rc;
}

int store_schema_check(struct tape *t, struct tape_err *reterr)
{
	sqlite3 *ours;
	int64_t triggers;
	int rc = version_check(t, reterr);

	if (rc == 0)
		rc = store_query_int(t, "SELECT count(*) FROM \"%w\".sqlite_master"
				     " WHERE type = 'trigger'", 0,
				     &triggers, reterr);
	if (rc < 0)
		return rc;
	if (triggers)
		return tape_err_set(reterr, -TAPE_E_FORMAT, "%s: a tape has no triggers", t->path);
	rc = ours_open(t, &ours, reterr);
	if (rc < 0)
		return rc;
	rc = texts_check(t, ours, reterr);
	sqlite3_close(ours);
	return rc;
}
