/* SPDX-License-Identifier: MIT */
/* Rows of SQL queries as JSON values, and JSON rows as tables: for verbs that print both. */
#ifndef SLABTAPE_CLI_ROWS_H
#define SLABTAPE_CLI_ROWS_H

#include <jansson.h>

#include "base/error.h"
#include "cli/output.h"

struct sqlite3;

/* *ret_rows: array of objects, one per row of @sql, keys in column order; the caller decrefs. */
int rows_query(struct sqlite3 *db, const char *sql, json_t **ret_rows, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/* Print @rows (objects with the same keys in the same order); nothing when there are none. */
int rows_print(FILE *out, enum output_format format, json_t *rows);

#endif
