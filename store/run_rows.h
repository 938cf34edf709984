/* SPDX-License-Identifier: MIT */
/*
 * What a run recorded row by row: columns in chunks like events.
 *
 *	run_chunk	one row per chunk: run, kind, rows, ranges of seq and ts
 *	run_column	id = run_chunk.id * STORE_COLUMNS_PER_CHUNK + column; traces/records.h
 *
 * A kind is a list of numbered columns, in the order of its SQL table, which begins with `run`;
 * `run` is the chunk's, not a column.  Internal to store/.
 */
#ifndef SLABTAPE_STORE_RUN_ROWS_H
#define SLABTAPE_STORE_RUN_ROWS_H

#include "store/run_buffer.h"
#include "store/store_internal.h"

#define RUN_COLUMNS_MAX 16

enum run_transition_column { TR_SEQ, TR_TS, TR_VTS, TR_CPU, TR_NODE, TR_CACHE, TR_SLAB, TR_FROM, TR_TO,
	TR_INUSE, TR_OBJECTS, TR_OP, TR_MAX };
enum run_refill_column { RE_SEQ, RE_TS, RE_VTS, RE_CPU, RE_CACHE, RE_SOURCE, RE_OBJECTS, RE_NODE,
	RE_MAX };
enum run_slab_column { SL_SLAB, SL_CACHE, SL_NODE, SL_ORDER, SL_OBJECTS, SL_BORN_SEQ, SL_DIED_SEQ,
	SL_BORN_TS, SL_DIED_TS, SL_STATE, SL_MAX };
enum run_pinned_column { PI_SLAB, PI_OBJECT, PI_ALLOC_SITE, PI_AGE, PI_CACHE, PI_NODE, PI_INUSE,
	PI_OBJECTS, PI_ALLOC_SEQ, PI_ALLOC_TS, PI_MAX };

enum run_kind { RUN_TRANSITION, RUN_REFILL, RUN_SLAB, RUN_PINNED, RUN_KINDS };

struct run_kind_spec {
	const char *name;  /* run_chunk.kind, and the name of the SQL table */
	int columns;
	int seq, ts;	   /* columns whose ranges stand in run_chunk */
	uint32_t steps;	   /* bit per column that is written as differences */
	uint32_t nullable; /* bit per column in which -1 is NULL */
};
extern const struct run_kind_spec run_kinds[RUN_KINDS];

#endif
