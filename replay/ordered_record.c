/* SPDX-License-Identifier: MIT */
/* The ordered engine and its recorder: what is being executed, when samples are due, the end. */
#include <errno.h>
#include <stdlib.h>

#include "replay/ordered_internal.h"

static void moment(void *ctx, struct replay_moment *ret_moment)
{
	const struct ordered *o = ctx;
	const struct tape_batch *b = o->at_batch;
	const uint32_t i = o->at_row;

	*ret_moment = o->at;
	if (!b)
		return;
	ret_moment->seq = o->at_seqs ? o->at_seqs[i] : b->first_seq + i;
	ret_moment->ts = b->ts[i] + o->ts_offset;
	ret_moment->op = b->op[i];
}

int ordered_record_init(struct ordered *o)
{
	const struct replay_plan *p = o->plan;

	if (!p->cfg->record)
		return 0;
	if (replay_recorder_create(p, moment, o, &o->recorder) < 0)
		return tape_err_set(o->reterr, -ENOMEM, "--record: out of memory");
	o->at = (struct replay_moment){ .seq = p->first_seq, .op = RECORDER_NO_OP };
	if (p->sync != ALLOC_SYNC_SIM) {
		replay_recorder_sample_every(o->recorder, (p->totals.ts_max - p->totals.ts_min) *
					     o->laps / (RECORDER_POINTS_MAX - 2) + 1);
		o->next_sample_ts = replay_recorder_sample_due(o->recorder);
	}
	return 0;
}

struct replay_moment ordered_at(const struct ordered *o)
{
	struct replay_moment m = { 0 };

	if (o->recorder)
		moment((void *)(uintptr_t)o, &m);
	return m;
}

void ordered_at_none(struct ordered *o, uint64_t seq, uint64_t ts)
{
	o->at_batch = NULL;
	o->at = (struct replay_moment){ .seq = seq, .ts = ts + o->ts_offset, .op = RECORDER_NO_OP };
}

void ordered_sample(struct ordered *o, uint64_t ts)
{
	replay_recorder_sample(o->recorder, ts + o->ts_offset, 0);
	o->next_sample_ts = replay_recorder_sample_due(o->recorder);
	/* Without a cache nothing was looked at: with the next event. */
	if (o->next_sample_ts <= ts + o->ts_offset)
		o->next_sample_ts = ts + o->ts_offset + 1;
	o->next_sample_ts -= o->ts_offset;
}

static void pin_all(struct ordered *o)
{
	uint32_t index;

	for (uint32_t slot = 0; slot < o->nr_slots; slot++)
		if (o->slot[slot] && o->slot[slot] != REPLAY_FAILED)
			replay_recorder_pin(o->recorder,
					    alloc_slab_of(o->machine, o->slot[slot], &index),
					    o->slot_seq[slot]);
}

int ordered_record_finish(struct ordered *o)
{
	if (!o->recorder)
		return 0;
	replay_recorder_sample(o->recorder, o->ts_offset, 0);
	if (replay_recorder_wants_pins(o->recorder))
		pin_all(o);
	return replay_recorder_finish(o->recorder, o->last_ts, o->reterr);
}
