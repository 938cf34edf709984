/* SPDX-License-Identifier: MIT */
#include "cli/rows.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

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

int rows_query(struct sqlite3 *db, const char *sql, json_t **ret_rows, struct tape_err *reterr)
{
	json_t *rows = json_array();
	sqlite3_stmt *s = NULL;
	int step = sqlite3_prepare_v2(db, sql, -1, &s, NULL);

	while (step == SQLITE_OK || step == SQLITE_ROW) {
		json_t *row;

		step = sqlite3_step(s);
		if (step != SQLITE_ROW)
			break;
		row = json_object();
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

static void print_value(struct output *o, const json_t *value)
{
	if (json_is_integer(value))
		output_int(o, json_integer_value(value));
	else if (json_is_real(value))
		output_real(o, json_real_value(value));
	else if (json_is_string(value))
		output_text(o, json_string_value(value), json_string_length(value));
	else if (json_is_boolean(value))
		output_int(o, json_is_true(value));
	else
		output_null(o);
}

int rows_print(FILE *out, enum output_format format, json_t *rows)
{
	json_t *first = json_array_get(rows, 0);
	const char **names, *key;
	struct output *o;
	json_t *value;
	size_t nr = 0;

	if (!first)
		return 0;
	names = calloc(json_object_size(first) + 1, sizeof(*names));
	if (!names)
		return -ENOMEM;
	json_object_foreach(first, key, value)
		names[nr++] = key;
	o = output_begin(out, format, (int)nr, names);
	free(names);
	if (!o)
		return -ENOMEM;
	for (size_t i = 0; i < json_array_size(rows); i++)
		json_object_foreach(json_array_get(rows, i), key, value)
			print_value(o, value);
	return output_end(o);
}
