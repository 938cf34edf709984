/* SPDX-License-Identifier: MIT */
/*
 * What a run recorded row by row (transitions, refills): columns in chunks like events.
 *
 *	run_chunk	one row per chunk: run, kind, rows, ranges of seq and ts
 *	run_column	id = run_chunk.id * STORE_COLUMNS_PER_CHUNK + column; traces/records.h
 *
 * A kind is a list of numbered columns.  `run` is the chunk's, not a column.  Internal to store/.
 */
#ifndef SLABTAPE_STORE_RUN_ROWS_H
#define SLABTAPE_STORE_RUN_ROWS_H

#include "store/store_internal.h"

#define RUN_COLUMNS_MAX 16

enum run_transition_column { TR_SEQ, TR_TS, TR_VTS, TR_CPU, TR_NODE, TR_CACHE, TR_SLAB, TR_FROM, TR_TO,
	TR_INUSE, TR_OBJECTS, TR_OP, TR_MAX };
enum run_refill_column { RE_SEQ, RE_TS, RE_VTS, RE_CPU, RE_CACHE, RE_SOURCE, RE_OBJECTS, RE_MAX };

enum run_kind { RUN_TRANSITION, RUN_REFILL, RUN_KINDS };

struct run_kind_spec {
	const char *name; /* run_chunk.kind */
	int columns;	  /* seq is column 0, ts column 1 */
	uint32_t steps;	  /* bit per column that is written as differences */
};
extern const struct run_kind_spec run_kinds[RUN_KINDS];

/* Rows that wait to become a chunk. */
struct store_rows {
	int64_t run;
	uint32_t nr;
	int64_t *columns[RUN_COLUMNS_MAX]; /* TAPE_CHUNK_EVENTS numbers each */
	struct tape_codec *codec;
};

/* Write what waits (tape_run_end, a full chunk). */
int store_rows_flush(struct tape *t, enum run_kind kind, struct tape_err *reterr) TAPE_MUST_CHECK;
void store_rows_destroy(struct store_rows *r); /* NULL is accepted */

#endif
