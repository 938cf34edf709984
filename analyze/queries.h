/* SPDX-License-Identifier: MIT */
/*
 * The canned queries of `slabtape query`: analyze/queries/<name>.sql, built into the program.
 *
 * A file begins with a header of comment lines, then comes one SELECT.
 *
 *	-- question: one sentence
 *	-- columns: name, name; name: meaning and unit; ...
 *	-- param name=default: meaning		(no "=default": NULL when not given)
 *	-- refuse: SELECT ...			when it gives a row, its text is why not to answer
 *	-- needs: transition			kind of rows (--record) without which it has no answer
 *	-- example: a command line
 *
 * Parameters called run, a and b are numbers of runs.
 */
#ifndef SLABTAPE_ANALYZE_QUERIES_H
#define SLABTAPE_ANALYZE_QUERIES_H

#include <stdbool.h>
#include <stddef.h>

struct analyze_query {
	const char *name;
	const char *sql; /* the whole file */
};

extern const struct analyze_query analyze_queries[];  /* ends with a NULL name */
extern const struct analyze_query analyze_verdicts[]; /* analyze/verdict.h; same form */

const struct analyze_query *analyze_query_find(const char *name); /* NULL: none */

/* One line of a header, pointing into the file's text; not terminated. */
struct analyze_line {
	const char *text;
	size_t bytes;
};

/* The text after "-- @key: "; false when the header has no such line. */
bool analyze_query_line(const struct analyze_query *q, const char *key,
			struct analyze_line *ret_line);

struct analyze_param {
	char name[32];
	char value[64]; /* default */
	bool has_value;
	struct analyze_line meaning;
};

/* Parameter number @at, from 0; false when there are fewer. */
bool analyze_query_param(const struct analyze_query *q, unsigned int at,
			 struct analyze_param *ret_param);

#endif
