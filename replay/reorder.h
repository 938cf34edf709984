/* SPDX-License-Identifier: MIT */
/*
 * Moving events: rows go in as recorded and come out ordered by a key.
 *
 *	key = ts                      by default
 *	      ts + [0, jitter]        --jitter, but never before the CPU's previous event and never
 *	                              before the allocation of the object
 *	      ts_lo                   inferred events under --infer early
 *
 * Ties keep the recorded order.  Rows of one bulk call stay together.  Objects get new slots,
 * because an event may move past the one that freed its recorded slot: a slot is used again only by
 * an allocation whose key lies behind the key of its free.
 */
#ifndef SLABTAPE_REPLAY_REORDER_H
#define SLABTAPE_REPLAY_REORDER_H

#include "replay/plan.h"

struct replay_reorder;

struct replay_reorder *replay_reorder_create(const struct replay_plan *p);
void replay_reorder_destroy(struct replay_reorder *r); /* NULL is accepted */
/* The inferred rows of a tape, for --infer early: before the first push.  Any order. */
int replay_reorder_foresee(struct replay_reorder *r, uint64_t seq, const struct tape_event *ev)
	TAPE_MUST_CHECK;
void replay_reorder_foreseen(struct replay_reorder *r); /* no more of them */
/* One row, in seq order. */
int replay_reorder_push(struct replay_reorder *r, uint64_t seq, const struct tape_event *ev)
	TAPE_MUST_CHECK;
/*
 * Take the next row whose place is settled.  @all: no more rows before the next window; @last: no
 * more rows at all.  *ret_seq: its number in the tape.
 */
bool replay_reorder_pop(struct replay_reorder *r, bool all, bool last, struct tape_event *ret_ev,
			uint64_t *ret_seq);

#endif
