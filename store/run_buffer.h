/* SPDX-License-Identifier: MIT */
/*
 * What a run records row by row: gathered in memory while it runs, written to a tape at its end.
 *
 *	buffer_create -> add rows, in the order in which they happen -> tape_run_begin
 *	-> tape_run_buffer_write -> tape_run_end
 *
 * Full chunks of 64 Ki rows wait compressed (a few bytes a row), so that the tape is free for
 * readers and for other runs until the run is over.  seq and ts may go back (virtual time,
 * jitter); rows keep their order.  One thread at a time.
 */
#ifndef SLABTAPE_STORE_RUN_BUFFER_H
#define SLABTAPE_STORE_RUN_BUFFER_H

#include <stdint.h>

#include "store/tape.h"

/* A slab moved from one state to another. */
struct tape_transition {
	uint64_t seq, ts, vts; /* event that caused it; its time; virtual ns of simulated runs, else 0 */
	uint64_t slab;	       /* number in order of birth within the run */
	uint32_t inuse, objects; /* after the transition */
	uint16_t cpu, node, cache; /* node of the slab */
	uint8_t from, to;	   /* as enum alloc_state: see tape_slab_state_name() */
	uint8_t op;		   /* enum tape_op of the event; TAPE_OP_MAX: no event did it */
};
struct tape_refill {
	uint64_t seq, ts, vts;
	uint32_t objects; /* usable objects obtained */
	uint16_t cpu, node, cache; /* node of the CPU */
	uint8_t source; /* as enum alloc_refill_source: see tape_refill_source_name() */
};
/* The life of a slab. */
struct tape_slab {
	uint64_t slab, born_seq, born_ts;
	int64_t died_seq, died_ts; /* -1: it was there at the end */
	uint32_t objects;
	uint16_t cache, node;
	uint8_t order, state; /* state: where it was at the end */
};
/* An object that was live at the end, in a slab that was nearly empty then. */
struct tape_pinned {
	uint64_t slab, object, alloc_seq, alloc_ts, age_ns; /* age at the end of the tape */
	uint32_t alloc_site, inuse, objects; /* the slab's */
	uint16_t cache, node;
};

struct tape_run_buffer;

/* *ret_buffer is the caller's.  -ENOMEM. */
int tape_run_buffer_create(struct tape_run_buffer **ret_buffer) TAPE_MUST_CHECK;
/* Rows come from stacks that are too small for compressing: a thread does that from now on. */
void tape_run_buffer_small_stacks(struct tape_run_buffer *b);
void tape_run_buffer_destroy(struct tape_run_buffer *b); /* NULL is accepted */

/* Append one row.  -ENOMEM. */
int tape_run_buffer_transition(struct tape_run_buffer *b, const struct tape_transition *tr)
	TAPE_MUST_CHECK;
int tape_run_buffer_refill(struct tape_run_buffer *b, const struct tape_refill *re) TAPE_MUST_CHECK;
int tape_run_buffer_slab(struct tape_run_buffer *b, const struct tape_slab *s) TAPE_MUST_CHECK;
int tape_run_buffer_pinned(struct tape_run_buffer *b, const struct tape_pinned *p) TAPE_MUST_CHECK;

/* Bytes of the chunks that wait. */
uint64_t tape_run_buffer_bytes(const struct tape_run_buffer *b);

/* Write everything as rows of run @run of @t, between tape_run_begin() and tape_run_end(). */
int tape_run_buffer_write(struct tape *t, int64_t run, struct tape_run_buffer *b,
			  struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
