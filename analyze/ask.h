/* SPDX-License-Identifier: MIT */
/*
 * Rows of an SQL query over a tape as JSON: the form in which analyses hand tables around.
 *
 * A table is an array of objects, one per row, keys in column order: integers, reals, texts, null.
 */
#ifndef SLABTAPE_ANALYZE_ASK_H
#define SLABTAPE_ANALYZE_ASK_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"

struct sqlite3;
struct sqlite3_stmt;

/* The value of ":name" in a statement.  An array of them ends with a NULL name. */
struct analyze_bind {
	const char *name; /* without the colon */
	enum { ANALYZE_NULL, ANALYZE_INT, ANALYZE_REAL, ANALYZE_TEXT } kind;
	int64_t number;
	const char *text; /* borrowed */
	double real;
};

/*
 * Prepare @sql and give its parameters the values of @binds (NULL: none).  Parameters that @binds
 * does not name stay NULL.  *ret_stmt: the caller's, sqlite3_finalize().
 */
int analyze_prepare(struct sqlite3 *db, const char *sql, const struct analyze_bind *binds,
		    struct sqlite3_stmt **ret_stmt, struct tape_err *reterr) TAPE_MUST_CHECK;

/* *ret_rows: every row of @sql; a new reference.  -TAPE_E_FORMAT when the tape cannot be read. */
int analyze_ask(struct sqlite3 *db, const char *sql, const struct analyze_bind *binds,
		json_t **ret_rows, struct tape_err *reterr) TAPE_MUST_CHECK;

/*
 * @sql with the values of @binds written into it: what a user can run himself.  malloc'ed text;
 * NULL when @sql is wrong or memory is short.
 */
char *analyze_expand(struct sqlite3 *db, const char *sql, const struct analyze_bind *binds);

/* A number of @row as a double; 0 when it is null or missing. */
double analyze_real(const json_t *row, const char *key);
int64_t analyze_int(const json_t *row, const char *key);
const char *analyze_text(const json_t *row, const char *key); /* "" when it is no text */

#endif
