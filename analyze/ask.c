/* SPDX-License-Identifier: MIT */
#include "analyze/ask.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static int bind_one(sqlite3_stmt *s, const struct analyze_bind *b)
{
	char name[48];
	int at;

	snprintf(name, sizeof(name), ":%s", b->name);
	at = sqlite3_bind_parameter_index(s, name);
	if (!at || b->kind == ANALYZE_NULL)
		return SQLITE_OK;
	switch (b->kind) {
	case ANALYZE_INT:
		return sqlite3_bind_int64(s, at, b->number);
	case ANALYZE_REAL:
		return sqlite3_bind_double(s, at, b->real);
	default:
		return sqlite3_bind_text(s, at, b->text, -1, SQLITE_TRANSIENT);
	}
}

int analyze_prepare(struct sqlite3 *db, const char *sql, const struct analyze_bind *binds,
		    struct sqlite3_stmt **ret_stmt, struct tape_err *reterr)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);

	for (; rc == SQLITE_OK && binds && binds->name; binds++)
		rc = bind_one(s, binds);
	if (rc != SQLITE_OK) {
		sqlite3_finalize(s);
		return tape_err_set(reterr, -TAPE_E_FORMAT, "reading the tape: %s",
				    sqlite3_errmsg(db));
	}
	*ret_stmt = s;
	return 0;
}

static json_t *cell_json(sqlite3_stmt *s, int i)
{
	switch (sqlite3_column_type(s, i)) {
	case SQLITE_INTEGER:
		return json_integer(sqlite3_column_int64(s, i));
	case SQLITE_FLOAT:
		return json_real(sqlite3_column_double(s, i));
	case SQLITE_TEXT:
		return json_string((const char *)sqlite3_column_text(s, i));
	default:
		return json_null();
	}
}

int analyze_ask(struct sqlite3 *db, const char *sql, const struct analyze_bind *binds,
		json_t **ret_rows, struct tape_err *reterr)
{
	sqlite3_stmt *s = NULL;
	json_t *rows;
	int rc = analyze_prepare(db, sql, binds, &s, reterr), step;

	if (rc < 0)
		return rc;
	rows = json_array();
	while ((step = sqlite3_step(s)) == SQLITE_ROW) {
		json_t *row = json_object();

		for (int i = 0; i < sqlite3_column_count(s); i++)
			json_object_set_new(row, sqlite3_column_name(s, i), cell_json(s, i));
		json_array_append_new(rows, row);
	}
	sqlite3_finalize(s);
	if (step == SQLITE_DONE) {
		*ret_rows = rows;
		return 0;
	}
	json_decref(rows);
	return tape_err_set(reterr, -TAPE_E_FORMAT, "reading the tape: %s", sqlite3_errmsg(db));
}

char *analyze_expand(struct sqlite3 *db, const char *sql, const struct analyze_bind *binds)
{
	sqlite3_stmt *s = NULL;
	char *expanded, *text = NULL;

	if (analyze_prepare(db, sql, binds, &s, NULL) < 0)
		return NULL;
	expanded = sqlite3_expanded_sql(s);
	if (expanded)
		text = strdup(expanded);
	sqlite3_free(expanded);
	sqlite3_finalize(s);
	return text;
}

double analyze_real(const json_t *row, const char *key)
{
	return json_number_value(json_object_get(row, key));
}

int64_t analyze_int(const json_t *row, const char *key)
{
	return json_integer_value(json_object_get(row, key));
}

const char *analyze_text(const json_t *row, const char *key)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text ? text : "";
}
