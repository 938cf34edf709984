/* SPDX-License-Identifier: MIT */
/*
 * A tape as one stream of operations per CPU, in memory (32 bytes an event).
 *
 * Objects are named by their dense id: in virtual time a free may meet its allocation late or
 * early, so slots, which the recorded order assigned, cannot be used.
 *
 *	ops of CPU 0 | end || ops of CPU 1 | end || ...		one block of memory; an `end` of a
 *							few idle ops, so that looking ahead needs
 *							no care
 */
#ifndef SLABTAPE_REPLAY_SIM_STREAMS_H
#define SLABTAPE_REPLAY_SIM_STREAMS_H

#include "replay/plan.h"
#include "traces/event.h"

#define SIM_NO_OBJECT UINT32_MAX
#define SIM_LOOK_AHEAD 4u /* idle ops behind each stream; they name no object */

enum sim_op_flag {
	SIM_OP_OWN = 1 << 0,	/* free of an object that this stream's CPU allocated */
	SIM_OP_ORPHAN = 1 << 1, /* free of an object without an allocation in the streams */
};

struct sim_op {
	uint64_t gap_ns;  /* since the CPU's previous event; the first: since the tape's first event */
	uint32_t object;  /* id; SIM_NO_OBJECT: none.  Prefill and refill of a sheaf: objects asked */
	uint32_t seq;	  /* place in the recorded order; streams of more than 2^32 events are refused */
	uint32_t aux;	  /* slot of the sheaf; the page limit */
	uint32_t nr;	  /* operations on a sheaf: place among that sheaf's, from 0; others: rows of
			   * the call, this one included, which follow; 0: executed with an earlier */
	uint16_t cache, gfp;
	int16_t node;	  /* one of the machine's, or ALLOC_NODE_ANY */
	uint8_t op, flags;
};

struct sim_streams {
	struct sim_op **ops; /* [cpus] */
	uint64_t *nr;	     /* [cpus] */
	uint32_t cpus;	     /* of the tape */
	uint32_t objects;    /* ids are below this */
	uint32_t sheaves;    /* sheaf slots are below this */
	uint32_t longest;    /* rows of the longest bulk call */
	uint64_t orphans;    /* frees flagged SIM_OP_ORPHAN */
	uint64_t left_out;
	uint64_t window_ts;  /* time of the first event of the counting window: gaps begin anew there */
	bool freed_twice;    /* some object is freed more than once: SIM_OP_OWN proves nothing */
	void *block;
	size_t block_bytes;
};

/*
 * Load the events of @p's tape that happened on CPUs below @cpus and whose cache is replayed.  A
 * free of an object without an alloc in the streams is of one from before the recording: the
 * engine allocates it before it starts.
 */
int sim_streams_load(const struct replay_plan *p, uint32_t cpus, struct sim_streams *ret_streams,
		     struct tape_err *reterr) TAPE_MUST_CHECK;
void sim_streams_fini(struct sim_streams *s);

/* Whether @op works on a prefilled sheaf. */
static inline bool sim_op_sheaf(uint8_t op)
{
	return op == TAPE_OP_PREFILL || op == TAPE_OP_SHEAF_ALLOC || op == TAPE_OP_SHEAF_REFILL ||
	       op == TAPE_OP_SHEAF_RETURN;
}
/* Operations that @op stands for in its stream: the next one is so many further. */
static inline uint32_t sim_op_rows(const struct sim_op *op)
{
	return sim_op_sheaf(op->op) ? 1 : op->nr;
}

/*
 * Zeroed memory for a large array, on huge pages where there are any.  NULL: out of memory.
 * Freed with sim_array_free() of the same size.
 */
void *sim_array_create(size_t bytes);
void sim_array_free(void *array, size_t bytes);

#endif
