/* SPDX-License-Identifier: MIT */
/*
 * From a WHERE clause to bounds on columns: what all our virtual tables share.
 *
 * A table describes its columns once (struct vtab_column); that yields the declaration handed to
 * SQLite, the plan (xBestIndex) and the filter (xFilter).  Every condition that is taken over is
 * evaluated here exactly as SQLite would, so SQLite need not test it again (omit):
 *
 *	RANGE	column op number	-> one interval [lo, hi]
 *	SET	column op number, IN	-> a byte per value 0..65535 (cpu, node, cache)
 *	NAME	column = 'name', IN	-> the same over what the column's parse() makes of names
 *	PARAM	hidden = value		-> an argument of a table-valued function
 */
#ifndef SLABTAPE_STORE_VTAB_PLAN_H
#define SLABTAPE_STORE_VTAB_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "store/sqlite_api.h"

#define VTAB_COLUMNS_MAX 32
#define VTAB_SET_VALUES 65536

enum vtab_take { VTAB_NONE, VTAB_RANGE, VTAB_SET, VTAB_NAME, VTAB_PARAM };

struct vtab_column {
	const char *name;
	const char *type;	/* "INTEGER", "TEXT"; hidden parameters: "HIDDEN" */
	enum vtab_take take;
	double share; /* estimated share of all rows that one value selects; UNIQUE: a few rows */
	const char *doc; /* meaning and unit, for docs/sql.md */
	int (*parse)(const char *name); /* NAME: the number behind a name, -1 none */
};
#define VTAB_UNIQUE 0.0

struct vtab_table {
	const char *name;
	const struct vtab_column *columns;
	int nr;
	/* Rows come in ascending order of these columns (equal order), -1: none. */
	int order_major, order_minor;
};

struct vtab_interval {
	int64_t lo, hi; /* inclusive; lo > hi: nothing */
};

/* What xFilter hands to a cursor.  Zero-initialise once; reused by later calls. */
struct vtab_filter {
	uint64_t used;	 /* bit per column that the statement reads */
	uint64_t ranged; /* bit per column with an interval that is not everything */
	uint64_t picked; /* bit per column with a set */
	bool descending;
	bool empty; /* no row can match */
	struct vtab_interval range[VTAB_COLUMNS_MAX];
	uint8_t *set[VTAB_COLUMNS_MAX];		/* VTAB_SET_VALUES bytes, 1 = wanted */
	uint64_t cpus; /* by vtab_rows_prepare(): the wanted CPUs as bits of chunk.cpu_mask */
	sqlite3_value *param[VTAB_COLUMNS_MAX]; /* borrowed, valid during xFilter; NULL: absent */
};

/* Declare @t to SQLite (sqlite3_declare_vtab).  Returns an SQLite code. */
int vtab_declare(sqlite3 *db, const struct vtab_table *t);

/* xBestIndex for @t with about @rows rows.  Returns an SQLite code. */
int vtab_plan(const struct vtab_table *t, sqlite3_index_info *info, double rows);

/* The same for a table-valued function, which costs a pass over the tape whatever the filter. */
int vtab_plan_function(const struct vtab_table *t, sqlite3_index_info *info);

/* Read what vtab_plan wrote, and the values.  Returns an SQLite code. */
int vtab_filter_read(struct vtab_filter *f, const struct vtab_table *t, int idx_num,
		     const char *idx_text, int argc, sqlite3_value **argv);
void vtab_filter_fini(struct vtab_filter *f);
/* Forget the first @nr columns: column @nr becomes column 0. */
void vtab_filter_drop(struct vtab_filter *f, int nr);

/* True when the interval of @column (everything when none was given) meets [@lo, @hi]. */
bool vtab_filter_meets(const struct vtab_filter *f, int column, int64_t lo, int64_t hi);

#endif
