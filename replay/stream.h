/* SPDX-License-Identifier: MIT */
/*
 * The events of a tape in the order in which they are executed: as recorded, or with inferred
 * events moved (--infer) and events of different CPUs shuffled (--jitter).
 */
#ifndef SLABTAPE_REPLAY_STREAM_H
#define SLABTAPE_REPLAY_STREAM_H

#include "replay/plan.h"

struct replay_stream;

/* @columns: beside TAPE_COLS_REPLAY.  Closed with replay_stream_close(). */
int replay_stream_open(const struct replay_plan *p, uint32_t columns,
		       struct replay_stream **ret_stream, struct tape_err *reterr) TAPE_MUST_CHECK;
/* 1: *ret_batch is borrowed until the next call; 0: end; negative: error. */
int replay_stream_next(struct replay_stream *s, const struct tape_batch **ret_batch,
		       struct tape_err *reterr) TAPE_MUST_CHECK;
void replay_stream_close(struct replay_stream *s); /* NULL is accepted */

#endif
