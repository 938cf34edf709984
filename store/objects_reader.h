/* SPDX-License-Identifier: MIT */
/*
 * Reading objects: one row for every id, its alloc and its free together.
 *
 * Object rows are not stored; they are put together from the events (docs/tape-format.md,
 * "Objects").  A range costs decoding the chunks in which its ids begin and the few after them.
 */
#ifndef SLABTAPE_STORE_OBJECTS_READER_H
#define SLABTAPE_STORE_OBJECTS_READER_H

#include "store/tape.h"

#define TAPE_OBJECT_BATCH 65536u
#define TAPE_NO_SEQ UINT64_MAX /* alloc_seq, free_seq: not in the recording */

/*
 * Rows first_object .. first_object + objects - 1.  Fields of a side whose seq is TAPE_NO_SEQ
 * are 0 (cache: that of the side that exists; TAPE_NO_CACHE when neither does).
 */
struct tape_object_batch {
	uint64_t first_object;
	uint32_t objects;
	uint64_t *alloc_seq, *free_seq, *alloc_ts, *free_ts, *size, *address;
	uint32_t *alloc_site, *free_site;
	uint16_t *alloc_cpu, *free_cpu, *cache;
	uint16_t *alloc_flags, *free_flags; /* enum tape_flag */
	int16_t *mem_node;
	void *memory; /* one block behind all arrays */
};

struct tape_objects_reader;

/*
 * Read objects [first, end), ascending.  @columns: event columns (1u << TAPE_COL_*) whose object
 * counterparts are wanted: TS, CPU, SITE, SIZE, CACHE, ADDRESS, MEM_NODE; others read as 0.
 * alloc_seq, free_seq and flags always are.  On a tape with complete = 0 frees far behind their
 * alloc may be missing.
 */
int tape_objects_open(struct tape *t, uint64_t first, uint64_t end, uint32_t columns,
		      struct tape_objects_reader **ret_reader, struct tape_err *reterr)
	TAPE_MUST_CHECK;
/* 1: *ret_batch is the next batch, borrowed until the next call; 0: end; negative: error. */
int tape_objects_next(struct tape_objects_reader *r, const struct tape_object_batch **ret_batch,
		      struct tape_err *reterr) TAPE_MUST_CHECK;
void tape_objects_close(struct tape_objects_reader *r); /* NULL is accepted */

/* How many objects the tape has (ids are 0 .. this - 1). */
int tape_objects_count(struct tape *t, uint64_t *ret_objects, struct tape_err *reterr)
	TAPE_MUST_CHECK;

#endif
