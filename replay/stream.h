/* SPDX-License-Identifier: MIT */
/*
 * The events of a tape in the order in which they are executed: as recorded, or with inferred
 * events moved (--infer) and events of different CPUs shuffled (--jitter).
 */
#ifndef SLABTAPE_REPLAY_STREAM_H
#define SLABTAPE_REPLAY_STREAM_H

#include "replay/plan.h"

struct replay_stream;

/*
 * Columns that engines ask for: what every operation reads; op-dependent ones (bulk, arg) only
 * when the tape has such operations.  @times: ts too.
 */
uint32_t replay_columns(const struct replay_plan *p, bool times);
/* @columns: bit mask of 1u << TAPE_COL_*.  Closed with replay_stream_close(). */
int replay_stream_open(const struct replay_plan *p, uint32_t columns,
		       struct replay_stream **ret_stream, struct tape_err *reterr) TAPE_MUST_CHECK;
/* Row order and slots as said below.  1: *ret_batch is borrowed until the next call; 0: end; negative: error. */
int replay_stream_next(struct replay_stream *s, const struct tape_batch **ret_batch,
		       struct tape_err *reterr) TAPE_MUST_CHECK;
/*
 * UINT64_MAX when batches are as recorded.  Else rows were moved: all rows of the current batch
 * belong to the counting windows of this event number, their slots are new ones, and the slot of
 * an orphan free is the number of that orphan (from 0, in recorded order).
 */
uint64_t replay_stream_segment(const struct replay_stream *s);
/* Numbers of the current batch's events where rows were moved; NULL: consecutive. */
const uint64_t *replay_stream_seqs(const struct replay_stream *s);
void replay_stream_close(struct replay_stream *s); /* NULL is accepted */

#endif
