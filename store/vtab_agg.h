/* SPDX-License-Identifier: MIT */
/*
 * What event_agg and object_agg share: they are their table with equal rows merged.
 *
 * The columns that a statement names are the key; rows that agree in them become one row with
 * sums over them.  Because these add up, the statement's own GROUP BY, joins and conditions mean
 * what they mean on the table itself.  Some columns can only be compared with a value, they are
 * never part of the key.
 */
#ifndef SLABTAPE_STORE_VTAB_AGG_H
#define SLABTAPE_STORE_VTAB_AGG_H

#include "store/vtab_common.h"
#include "store/vtab_group.h"
#include "store/vtab_plan.h"

/* The parameters come first: table-valued function arguments are the hidden columns in order. */
enum { AGG_BUCKET_NS, AGG_TAPE, AGG_PARAMS };

struct agg_cursor;

/* Columns are numbered without the parameters: keys, then the bucket, then measures. */
struct agg_kind {
	const struct vtab_table *table;
	int bucket; /* column; measures follow it up to @nr */
	int nr;
	uint64_t compare_only;	     /* bit per column that is never a key */
	const enum group_fold *fold; /* by column */
	/* Group every row that passes into c->groups.  Returns an SQLite code. */
	int (*run)(struct agg_cursor *c, char **ret_message);
	/* Give SQLite the key @value of @column. */
	void (*result)(sqlite3_context *ctx, int column, int64_t value);
};

struct agg_cursor {
	sqlite3_vtab_cursor base;
	const struct agg_kind *kind;
	struct vtab_filter filter; /* parameters dropped: columns as in the table itself */
	struct vtab_source *source;
	int64_t bucket_ns;		     /* 0: none */
	int8_t key_of[VTAB_COLUMNS_MAX];     /* position among the keys, -1 none */
	int8_t measure_of[VTAB_COLUMNS_MAX]; /* position among the measures, -1 none */
	struct group_by *groups;
	size_t at;
};

int agg_connect(sqlite3 *db, const struct agg_kind *kind, sqlite3_vtab **ret_vtab);
int agg_best_index(sqlite3_vtab *base, sqlite3_index_info *info);
int agg_open(const struct agg_kind *kind, sqlite3_vtab_cursor **ret_cursor);
int agg_close(sqlite3_vtab_cursor *base);
int agg_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_text, int argc,
	       sqlite3_value **argv);
int agg_next(sqlite3_vtab_cursor *base);
int agg_eof(sqlite3_vtab_cursor *base);
int agg_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column);
int agg_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret_rowid);

/* Round @n ascending or unordered times down to a multiple of @width; -1 stays. */
void agg_round_down(int64_t *ts, uint32_t n, int64_t width);
/* group_end() with its failures as SQLite codes and text. */
int agg_end_batch(struct agg_cursor *c, char **ret_message);

/* The members of a module that are the same for both. */
#define AGG_MODULE_METHODS                                                                     \
	.iVersion = 1, .xBestIndex = agg_best_index, .xDisconnect = vtab_disconnect,           \
	.xClose = agg_close, .xFilter = agg_filter, .xNext = agg_next, .xEof = agg_eof,        \
	.xColumn = agg_column, .xRowid = agg_rowid

#endif
