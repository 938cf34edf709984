/* SPDX-License-Identifier: MIT */
/*
 * State of a tape being written.  Internal to store/.
 *
 *	tape_writer_append -> current -> (full) pending[] -> (too many) encoder -> SQLite
 *
 * Invariants: chunks are numbered when they go to the encoder: ids below chunks_nr are written or
 * in the encoder, and chunk_begin[i] is chunk i's first seq; current and pending hold every later
 * event, and these are the ones that can still be changed.
 */
#ifndef SLABTAPE_STORE_WRITER_H
#define SLABTAPE_STORE_WRITER_H

#include "store/encoder.h"
#include "store/store_internal.h"
#include "traces/far.h"

#define STORE_PENDING 8u	       /* full batches kept before encoding */
#define STORE_LATE_MAX (1u << 20)      /* remembered entries before they are written out */
#define STORE_WINDOW (STORE_NEAR_CHUNKS + 1)

/* A cache name that came after its event's chunk was written. */
struct store_late {
	uint64_t seq;
	uint32_t order; /* of the calls: the last name of an event wins */
	uint16_t cache;
	uint16_t unnamed;
};

/* A marker row that waits for its event to be written. */
struct store_marker {
	uint64_t seq, ts;
	char *text; /* owned */
	uint16_t cpu;
};

struct store_writer {
	struct tape_batch *current;
	struct tape_batch *pending[STORE_PENDING]; /* full batches, oldest first */
	uint32_t pending_nr;
	struct tape_batch *spare[STORE_PENDING + STORE_JOBS]; /* batches to use again */
	uint32_t spare_nr;
	struct store_encoder *encoder;
	struct tape_codec *codec;     /* for far frees and late names */
	struct store_summary summary; /* for late names */
	uint64_t next_seq, last_ts;
	uint64_t *chunk_begin; /* first seq of every numbered chunk */
	uint64_t chunks_nr, chunks_room;
	uint32_t uncommitted; /* chunks since the last commit */
	/* far frees */
	uint64_t begun_nr;		      /* chunks begun: written, pending and current */
	uint64_t window_object[STORE_WINDOW]; /* next_object when chunk i % STORE_WINDOW began */
	uint64_t near_object;		      /* frees of smaller ids are far */
	uint64_t next_object;		      /* highest id seen + 1 */
	struct tape_far_free *far;
	uint32_t far_nr;
	/* late cache names */
	struct store_late *late;
	uint32_t late_nr;
	bool late_spilled;
	/* markers, in seq order; rows before markers_out are written */
	struct store_marker *markers;
	size_t markers_nr, markers_room, markers_out;
	struct tape_err failure; /* code < 0: nothing can be written any more */
};

/* Remember the failure: later calls return it, and what was not committed is rolled back. */
int store_writer_fail(struct tape *t, int rc, struct tape_err *reterr);

/* ---- writer_late.c ---- */

/* Write the marker rows of events before @end_seq. */
int store_markers_out(struct tape *t, uint64_t end_seq, struct tape_err *reterr) TAPE_MUST_CHECK;

/* Write the remembered far frees as far_free rows. */
int store_far_spill(struct tape *t, struct tape_err *reterr) TAPE_MUST_CHECK;
/* Remember one late cache name; writes the list to a temporary table when it is full. */
int store_late_add(struct tape *t, const struct store_late *late, struct tape_err *reterr)
	TAPE_MUST_CHECK;
/* Patch every touched chunk and forget the list. */
int store_late_apply(struct tape *t, struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
