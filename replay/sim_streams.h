/* SPDX-License-Identifier: MIT */
/*
 * A tape as one stream of operations per CPU, in memory (40 bytes an event).
 *
 * Objects are named by their dense id: in virtual time a free may meet its allocation late or
 * early, so slots, which the recorded order assigned, cannot be used.
 */
#ifndef SLABTAPE_REPLAY_SIM_STREAMS_H
#define SLABTAPE_REPLAY_SIM_STREAMS_H

#include "replay/plan.h"

struct sim_op {
	uint64_t object; /* id, or the op's arg where it names no object */
	uint64_t arg;
	uint32_t seq;	  /* place in the recorded order; streams of more than 2^32 events are refused */
	uint32_t gap_ns;  /* since the CPU's previous event; the first: since the tape's first event */
	uint32_t turn;	  /* operations on a prefilled sheaf: its place among that sheaf's, from 0 */
	uint32_t rows;	  /* bulk call: its rows, this one included, which follow in the stream */
	uint16_t cache, gfp;
	int16_t node;
	uint8_t op;
};

struct sim_streams {
	struct sim_op **ops; /* [cpus] */
	uint64_t *nr;	     /* [cpus] */
	uint32_t cpus;	     /* of the tape */
	uint64_t objects;    /* ids are below this */
	uint32_t sheaves;    /* sheaf slots are below this */
	uint64_t total, left_out, last_seq;
};

/*
 * Load the events of @p's tape that happened on CPUs below @cpus and whose cache is replayed.  A free of an object without an alloc in
 * the streams is of one from before the recording: the engine allocates it before it starts.
 */
int sim_streams_load(const struct replay_plan *p, uint32_t cpus, struct sim_streams *ret_streams,
		     struct tape_err *reterr) TAPE_MUST_CHECK;
void sim_streams_fini(struct sim_streams *s);

/* Whether @op works on a prefilled sheaf, and on which. */
bool sim_op_sheaf(const struct sim_op *op, uint32_t *ret_sheaf);

#endif
