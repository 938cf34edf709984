/* SPDX-License-Identifier: MIT */
/*
 * The rows that runs recorded, chunk by chunk: what the tables `transition`, `refill`, `slab`,
 * `pinned` and the functions over them share.
 *
 * In these tables SQL column 0 is the run and column i + 1 is column i of the kind
 * (store/run_rows.h).
 */
#ifndef SLABTAPE_STORE_VTAB_RUN_H
#define SLABTAPE_STORE_VTAB_RUN_H

#include "store/run_rows.h"
#include "store/vtab_common.h"

/* By enum run_kind. */
extern const struct vtab_table *const vtab_run_tables[RUN_KINDS];

struct run_chunk {
	int64_t id, run, rows;
	int64_t first_seq, last_seq, ts_min, ts_max;
};

/* A pass over the chunks of one kind.  Zero-initialise, then scan_open. */
struct run_scan {
	enum run_kind kind;
	struct run_chunk *chunks; /* in the order of the runs */
	size_t chunks_nr, next;	  /* next: chunk to look at */
	const struct run_chunk *chunk;	   /* the current one */
	int64_t *columns[RUN_COLUMNS_MAX]; /* its decoded columns */
	uint32_t *sel;			   /* its rows that pass */
	uint32_t nr;
};

/* List the chunks of @kind.  Returns an SQLite code. */
int run_scan_open(struct run_scan *scan, struct vtab_source *s, enum run_kind kind,
		  char **ret_message);
void run_scan_close(struct run_scan *scan); /* of a zeroed one too */
/* From the first chunk again. */
void run_scan_rewind(struct run_scan *scan);

/*
 * The next chunk with rows that satisfy @f; decodes SQL columns @used (bits) and those that @f
 * tests.  SQLITE_ROW, SQLITE_DONE or an error code.
 */
int run_scan_next(struct run_scan *scan, struct vtab_source *s, const struct vtab_filter *f,
		  uint64_t used, char **ret_message);

/* The number behind a name, -1 none. */
int run_parse_state(const char *name);
int run_parse_source(const char *name);

/* Number @value of SQL column @column of @kind as SQL sees it: name, number or NULL. */
void run_column_result(sqlite3_context *ctx, enum run_kind kind, int column, int64_t value);

#endif
