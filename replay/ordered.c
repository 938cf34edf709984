/* SPDX-License-Identifier: MIT */
/*
 * The ordered engine: every event in seq order, each as its recorded CPU, on one thread.
 * Deterministic: same tape, variant, knobs and seed give the same counters on any machine.
 *
 * Rows are executed in runs that end where something else is due: a counting window, timer work,
 * a grace period, the end of the batch.  Inside a run the plain alloc and free of a known cache
 * are executed in place; everything else goes to ordered_step().
 */
#include <inttypes.h>
#include <time.h>

#include "base/cleanup.h"
#include "replay/modes_internal.h"
#include "replay/ordered_internal.h"
#include "replay/place.h"
#include "replay/paths.h"
#include "replay/stream.h"

_Static_assert((int)TAPE_GFP_MAY_BLOCK == (int)ALLOC_GFP_MAY_BLOCK &&
	       (int)TAPE_GFP_MAY_SPIN == (int)ALLOC_GFP_MAY_SPIN &&
	       (int)TAPE_GFP_THISNODE == (int)ALLOC_GFP_THISNODE &&
	       (int)TAPE_GFP_NOFAIL == (int)ALLOC_GFP_NOFAIL,
	       "gfp bits of tapes and allocators are the same");

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * Execute plain rows from @i until @end or a row that needs ordered_step(); returns that row.
 * An alloc is plain when its cache exists and its slot is empty, a free when its slot holds an
 * object of the row's cache; neither may be a special case by flags.
 */
static inline __attribute__((always_inline)) uint32_t
plain_rows(struct ordered *o, const struct tape_batch *b, uint32_t i, uint32_t end, bool recorded)
{
	const uint32_t cpus = o->plan->cpus, nodes = o->plan->nodes, nr_slots = o->nr_slots;
	struct alloc_cache *const *cache_of = o->cache_of;
	void **slots = o->slot;
	uint16_t *slot_cache = o->slot_cache;
	__typeof__(o->v->alloc) alloc = o->v->alloc;
	__typeof__(o->v->free) release = o->v->free;
	const uint32_t first = i;

	for (; i < end; i++) {
		const uint16_t id = b->cache[i];
		struct alloc_cache *c = cache_of[id];
		const uint32_t cpu = b->cpu[i], slot = b->slot[i];

		if (!c || cpu >= cpus || slot >= nr_slots || b->op[i] > TAPE_OP_FREE ||
		    b->flags[i] & (TAPE_F_ORPHAN | TAPE_F_INHERITED | TAPE_F_FAILED | TAPE_F_BIG))
			break;
		if (recorded)
			o->at_row = i;
		if (b->op[i] == TAPE_OP_ALLOC) {
			void *obj;

			if (__builtin_expect(slots[slot] != NULL ||
					     (uint32_t)(b->node_req[i] + 1) > nodes, 0))
				break;
			obj = alloc(c, cpu, b->node_req[i], b->gfp[i]);
			if (__builtin_expect(!obj, 0)) {
				o->failed++;
				obj = REPLAY_FAILED;
			}
			slots[slot] = obj;
			slot_cache[slot] = id;
			if (recorded)
				o->slot_seq[slot] = o->at_seqs ? o->at_seqs[i] : b->first_seq + i;
		} else {
			void *obj = slots[slot];

			if (__builtin_expect(!obj || obj == REPLAY_FAILED ||
					     slot_cache[slot] != id, 0))
				break;
			slots[slot] = NULL;
			release(c, cpu, obj);
		}
	}
	o->ops += i - first;
	o->line += i - first;
	return i;
}

static uint32_t run_plain(struct ordered *o, const struct tape_batch *b, uint32_t i, uint32_t end)
{
	return plain_rows(o, b, i, end, false);
}

/* The same while a recorder wants to know which row is executed. */
static uint32_t run_recorded(struct ordered *o, const struct tape_batch *b, uint32_t i, uint32_t end)
{
	return plain_rows(o, b, i, end, true);
}

/* First row in [@i, @end) whose time is @ts or later. */
static uint32_t row_of_time(const struct tape_batch *b, uint32_t i, uint32_t end, uint64_t ts)
{
	uint32_t step = 1, low = i, high;

	if (i == end || b->ts[end - 1] < ts)
		return end;
	while (low + step < end && b->ts[low + step] < ts) {
		low += step;
		step *= 2;
	}
	high = low + step < end ? low + step : end - 1;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (b->ts[mid] < ts)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Time of the next thing that is due without an event; UINT64_MAX: nothing. */
static uint64_t next_due(const struct ordered *o)
{
	uint64_t ts = o->next_tick_ts < o->next_rcu_ts ? o->next_tick_ts : o->next_rcu_ts;

	return ts < o->next_sample_ts ? ts : o->next_sample_ts;
}

/* Samples, timer work and grace periods that are due before row @i. */
static void run_due(struct ordered *o, const struct tape_batch *b, uint32_t i)
{
	const uint64_t ts = b->ts[i];

	if (o->recorder) {
		o->at_row = i;
		ordered_at_none(o, ordered_at(o).seq, ts);
	}
	while (next_due(o) <= ts) {
		if (o->next_sample_ts <= ts) {
			ordered_sample(o, ts);
			continue;
		}
		if (o->next_rcu_ts <= o->next_tick_ts) {
			ordered_rcu_run(o, o->next_rcu_ts);
			continue;
		}
		if (!o->next_tick_ts) /* the first tick is the first multiple at or after the start */
			o->next_tick_ts = ts - ts % REPLAY_TICK_NS;
		ordered_tick(o, o->next_tick_ts);
		o->next_tick_ts += REPLAY_TICK_NS;
	}
	if (o->recorder)
		o->at_batch = b;
}

/* Rows [@i, @end): no window begins or ends inside. */
static int run_rows(struct ordered *o, const struct tape_batch *b, uint32_t i, uint32_t end)
{
	int rc = 0;

	while (i < end && rc >= 0) {
		uint32_t stop = end;

		if (next_due(o) != UINT64_MAX) {
			run_due(o, b, i);
			stop = row_of_time(b, i, end, next_due(o));
		}
		o->stop_changed = false;
		while (i < stop && rc >= 0 && !o->stop_changed) {
			if (!o->hooked && !o->bulk.nr)
				i = o->recorder ? run_recorded(o, b, i, stop) :
						  run_plain(o, b, i, stop);
			if (i < stop)
				rc = ordered_step(o, b, i, &i);
		}
	}
	return rc;
}

/*
 * One batch; 1 when the replay is over (--count-to reached).  @segment: the batch's rows are not
 * in seq order and all belong to the windows of this event number; UINT64_MAX: split by seq.
 */
static int run_batch(struct ordered *o, const struct tape_batch *b, uint64_t segment)
{
	const uint64_t past = b->first_seq + b->events;
	uint64_t seq = b->first_seq;
	int rc = 0;

	if (segment != UINT64_MAX) {
		rc = ordered_window(o, segment);
		if (rc < 0 || segment >= o->plan->to_seq)
			return rc < 0 ? rc : 1;
		return run_rows(o, b, 0, b->events);
	}

	while (seq < past && rc >= 0) {
		uint64_t next;

		rc = ordered_window(o, seq);
		if (rc < 0 || seq >= o->plan->to_seq)
			return rc < 0 ? rc : 1;
		next = replay_next_window(o->plan, seq);
		if (next > past)
			next = past;
		rc = run_rows(o, b, (uint32_t)(seq - b->first_seq), (uint32_t)(next - b->first_seq));
		seq = next;
	}
	return rc < 0 ? rc : 0;
}

/* The tape once, from start to end. */
static int run_lap(struct ordered *o, uint64_t done)
{
	const struct replay_config *cfg = o->plan->cfg;
	const struct tape_batch *b;
	struct replay_stream *s;
	const bool times = o->next_tick_ts != UINT64_MAX || o->recorder ||
			   o->plan->totals.ops[TAPE_OP_FREE_RCU];
	const uint32_t columns = replay_columns(o->plan, times) | replay_place_columns(o) |
				 (cfg->strict ? 1u << TAPE_COL_OBJECT : 0); /* to name it */
	int rc = replay_stream_open(o->plan, columns, &s, o->reterr);

	if (rc < 0)
		return rc;
	o->reordered = replay_stream_segment(s) != UINT64_MAX;
	while ((rc = replay_stream_next(s, &b, o->reterr)) > 0) {
		uint64_t begin = now_ns();

		o->at_batch = o->recorder ? b : NULL;
		o->at_seqs = replay_stream_seqs(s);
		rc = run_batch(o, b, replay_stream_segment(s));
		o->elapsed_ns += now_ns() - begin;
		done += b->events;
		if (cfg->progress)
			cfg->progress(cfg->progress_ctx, done, o->plan->totals.events * o->laps);
		if (b->valid & 1u << TAPE_COL_TS)
			o->last_ts = b->ts[b->events - 1];
		if (rc)
			break;
	}
	replay_stream_close(s);
	if (rc >= 0 && o->bulk.nr)
		rc = ordered_bulk_run(o);
	ordered_at_none(o, o->plan->totals.events, o->last_ts);
	if (rc >= 0)
		ordered_rcu_run(o, UINT64_MAX);
	return rc < 0 ? rc : 0;
}

/*
 * All laps.  Time goes on from lap to lap; an object that is live at the end of a lap is freed
 * when the next lap allocates its slot again, on that allocation's CPU.
 */
static int run_tape(struct ordered *o)
{
	int rc = 0;

	for (uint32_t lap = 0; lap < o->laps && rc >= 0; lap++) {
		ordered_at_none(o, o->plan->first_seq, 0);
		rc = ordered_warm(o, !lap);
		if (rc >= 0)
			rc = run_lap(o, o->plan->totals.events * lap);
		o->ts_offset += o->last_ts;
		if (o->next_tick_ts != UINT64_MAX)
			o->next_tick_ts = 0;
		if (o->next_sample_ts != UINT64_MAX)
			o->next_sample_ts -= o->next_sample_ts < o->last_ts ? o->next_sample_ts : o->last_ts;
		if (rc >= 0 && o->laps > 1)
			rc = ordered_lap_end(o);
	}
	if (rc >= 0 && o->paths)
		rc = replay_paths_write(o->paths);
	return rc;
}

/* Do the allocators' own books still balance?  Debug builds and --strict ask. */
static int check_caches(struct ordered *o)
{
	char why[200];
#ifdef NDEBUG
	if (!o->plan->cfg->strict)
		return 0;
#endif
	for (size_t n = 0; n < o->nr_caches; n++)
		if (o->v->check(o->caches[n]->cache, why, sizeof(why)) < 0)
			return tape_err_set(o->reterr, -TAPE_E_INVARIANT, "cache %s after %" PRIu64
					    " operations: %s", o->caches[n]->plan->row.name,
					    o->ops, why);
	return 0;
}

int replay_ordered(struct replay_plan *p, struct replay_result **ret_result,
		   struct tape_err *reterr)
{
	struct ordered o;
	int rc = ordered_init(&o, p, reterr);

	if (rc >= 0)
		rc = run_tape(&o);
	if (rc >= 0)
		rc = check_caches(&o);
	if (rc >= 0)
		rc = ordered_window(&o, UINT64_MAX);
	if (rc >= 0)
		rc = ordered_record_finish(&o);
	if (rc >= 0)
		rc = ordered_result(&o, ret_result);
	ordered_fini(&o);
	return rc;
}
