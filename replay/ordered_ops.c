/* SPDX-License-Identifier: MIT */
/* Every operation in full generality; see ordered_internal.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "replay/ordered_internal.h"
#include "replay/paths.h"
#include "replay/place.h"

/* An event that cannot be executed: counted, or the end of the run. */
static int impossible(struct ordered *o, const struct tape_batch *b, uint32_t i, const char *why)
{
	char object[32] = "none";

	o->skipped++;
	if (!o->plan->cfg->strict)
		return 0;
	if (b->valid & 1u << TAPE_COL_OBJECT && b->object[i] != TAPE_NO_OBJECT)
		snprintf(object, sizeof(object), "%" PRIu64, b->object[i]);
	return tape_err_set(o->reterr, -TAPE_E_DIVERGED, "event seq %" PRIu64 ", cpu %u, object %s: "
			    "%s cannot be executed: %s", b->first_seq + i, b->cpu[i], object,
			    tape_op_name(b->op[i]), why);
}

static int number_object(struct ordered *o, struct ordered_cache *run, void *obj)
{
	struct alloc_slab_info info;
	struct alloc_slab *s;
	uint32_t index, number;

	if (!o->numbered || !(s = alloc_slab_of(o->machine, obj, &index)))
		return 0;
	alloc_slab_info(s, &info);
	if (replay_number_get(&run->numbers, info.id, &number) < 0)
		return tape_err_set(o->reterr, -ENOMEM, "slab numbers: out of memory");
	return 0;
}

/* ---- alloc and free ---- */

/* An object of the lap before that still has the slot; without laps it stays where it is. */
static void slot_clear(struct ordered *o, uint32_t slot, uint32_t cpu)
{
	void *obj = o->slot[slot];

	if (o->laps < 2 || !obj || obj == REPLAY_FAILED)
		return;
	o->v->free(o->cache_of[o->slot_cache[slot]], cpu, obj);
	o->slot[slot] = NULL;
}

/* @seq: the event that allocates it; only kept with a recorder. */
static void slot_fill(struct ordered *o, uint32_t slot, uint16_t cache, void *obj, uint64_t seq)
{
	if (o->recorder)
		o->slot_seq[slot] = seq;
	if (!obj)
		o->failed++;
	o->slot[slot] = obj ? obj : REPLAY_FAILED;
	o->slot_cache[slot] = cache;
}

static int need_slot(struct ordered *o, const struct tape_batch *b, uint32_t i, bool *ret_ok)
{
	*ret_ok = b->slot[i] != TAPE_NO_SLOT;
	if (!*ret_ok)
		return impossible(o, b, i, "the event names no object");
	return b->slot[i] < o->nr_slots ? 0 : ordered_slots_grow(o, b->slot[i]);
}

static void *sheaf_or_plain_alloc(struct ordered *o, struct ordered_cache *run,
				  const struct tape_batch *b, uint32_t i)
{
	const uint64_t sheaf = (uint64_t)b->arg[i];

	if (b->op[i] == TAPE_OP_SHEAF_ALLOC && o->v->sheaf_alloc) {
		if (sheaf >= o->nr_sheaves || !o->sheaf[sheaf])
			return NULL;
		return o->v->sheaf_alloc(run->cache, b->cpu[i], o->sheaf[sheaf]);
	}
	return o->v->alloc(run->cache, b->cpu[i], ordered_node(o, b, i), b->gfp[i]);
}

static int step_alloc(struct ordered *o, struct ordered_cache *run, const struct tape_batch *b,
		      uint32_t i)
{
	void *obj;
	bool ok;
	int rc;

	if (b->flags[i] & TAPE_F_FAILED)
		return 0;
	rc = need_slot(o, b, i, &ok);
	if (rc < 0 || !ok)
		return rc;
	slot_clear(o, b->slot[i], b->cpu[i]);
	obj = o->place ? replay_place_alloc(o, run, b, i) : sheaf_or_plain_alloc(o, run, b, i);
	slot_fill(o, b->slot[i], b->cache[i], obj, ordered_at(o).seq);
	if (obj && (rc = number_object(o, run, obj)) < 0)
		return rc;
	ordered_count_line(o, run, &(struct replay_line){ .kind = REPLAY_LINE_ALLOC, .objs = &obj, .nr = 1 });
	return 0;
}

/*
 * The object a free event means, taken out of its slot; NULL: none (*ret_noop: its allocation
 * failed, which is no divergence).
 */
static void *take_object(struct ordered *o, const struct tape_batch *b, uint32_t i, bool *ret_noop)
{
	void *obj = NULL;

	*ret_noop = false;
	if (b->flags[i] & TAPE_F_ORPHAN) {
		uint64_t n = o->reordered ? b->slot[i] : o->next_orphan++;

		obj = n < o->nr_orphans ? o->orphan[n] : NULL;
		if (obj)
			o->orphan[n] = NULL;
	} else if (b->slot[i] < o->nr_slots && o->slot[b->slot[i]] &&
		   o->slot_cache[b->slot[i]] == b->cache[i]) {
		obj = o->slot[b->slot[i]];
		o->slot[b->slot[i]] = NULL;
	}
	if (obj == REPLAY_FAILED) {
		*ret_noop = true;
		obj = NULL;
	}
	return obj;
}

static int rcu_queue(struct ordered *o, struct ordered_cache *run, const struct tape_batch *b,
		     uint32_t i, void *obj)
{
	struct ordered_rcu *q;

	if (!run->rcu)
		run->rcu = calloc(o->plan->cpus, sizeof(*run->rcu));
	if (!run->rcu)
		return tape_err_set(o->reterr, -ENOMEM, "free_rcu: out of memory");
	q = &run->rcu[b->cpu[i]];
	if (q->nr == q->capacity) {
		uint32_t capacity = q->capacity ? q->capacity * 2 : 64;
		void **objs = realloc(q->objs, capacity * sizeof(*objs));

		if (!objs)
			return tape_err_set(o->reterr, -ENOMEM, "free_rcu: out of memory");
		q->objs = objs;
		q->capacity = capacity;
	}
	if (!q->nr) {
		q->due_ts = o->plan->script ? UINT64_MAX - 1 : b->ts[i] + o->plan->rcu_delay_ns;
		if (q->due_ts < o->next_rcu_ts && !o->plan->script) {
			o->next_rcu_ts = q->due_ts;
			o->stop_changed = true;
		}
	}
	q->objs[q->nr++] = obj;
	return 0;
}

static int step_free(struct ordered *o, struct ordered_cache *run, const struct tape_batch *b,
		     uint32_t i)
{
	bool noop;
	void *obj;
	int rc = 0;

	if (b->flags[i] & TAPE_F_INHERITED)
		return impossible(o, b, i, "the object was inherited by fork");
	obj = take_object(o, b, i, &noop);
	if (!obj && !noop)
		return impossible(o, b, i, b->flags[i] & TAPE_F_ORPHAN ?
				  "its object is older than the recording and was not warmed" :
				  "its object is not live here");
	if (obj && b->op[i] == TAPE_OP_FREE)
		o->v->free(run->cache, b->cpu[i], obj);
	else if (obj && o->v->free_rcu)
		o->v->free_rcu(run->cache, b->cpu[i], obj);
	else if (obj)
		rc = rcu_queue(o, run, b, i, obj);
	ordered_count_line(o, run, &(struct replay_line){ .kind = REPLAY_LINE_OTHER });
	return rc;
}

void ordered_rcu_run(struct ordered *o, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t cpu = 0; cpu < o->plan->cpus; cpu++)
		for (size_t n = 0; n < o->nr_caches; n++) {
			struct ordered_cache *run = o->caches[n];
			struct ordered_rcu *q = run->rcu ? &run->rcu[cpu] : NULL;

			if (q && q->nr && q->due_ts <= now_ns) {
				o->v->free_bulk(run->cache, cpu, q->nr, q->objs);
				q->nr = 0;
			}
			if (q && q->nr && q->due_ts < next)
				next = q->due_ts;
		}
	o->next_rcu_ts = o->plan->script ? UINT64_MAX : next;
}

void ordered_tick(struct ordered *o, uint64_t now_ns)
{
	for (uint32_t cpu = 0; cpu < o->plan->cpus; cpu++)
		for (size_t n = 0; n < o->nr_caches; n++)
			o->v->tick(o->caches[n]->cache, cpu, now_ns + o->ts_offset);
}

/* ---- bulk calls ---- */

static int bulk_push(struct ordered *o, uint32_t slot)
{
	struct ordered_bulk *k = &o->bulk;

	if (k->nr == k->capacity) {
		uint32_t capacity = k->capacity ? k->capacity * 2 : 64;
		uint32_t *slots = realloc(k->slots, capacity * sizeof(*slots));
		void **objs;

		if (slots)
			k->slots = slots;
		objs = slots ? realloc(k->objs, capacity * sizeof(*objs)) : NULL;
		if (!objs)
			return tape_err_set(o->reterr, -ENOMEM, "bulk call: out of memory");
		k->objs = objs;
		k->capacity = capacity;
	}
	k->slots[k->nr++] = slot;
	return 0;
}

static int bulk_alloc(struct ordered *o, struct ordered_cache *run)
{
	struct ordered_bulk *k = &o->bulk;
	uint32_t got;
	int rc = 0;

	for (uint32_t n = 0; n < k->nr; n++)
		slot_clear(o, k->slots[n], k->cpu);
	got = o->v->alloc_bulk(run->cache, k->cpu, k->gfp, k->nr, k->objs);

	for (uint32_t n = 0; n < k->nr && rc >= 0; n++) {
		void *obj = n < got ? k->objs[n] : NULL;

		slot_fill(o, k->slots[n], k->cache, obj, o->recorder ? o->slot_seq[k->slots[n]] : 0);
		if (obj)
			rc = number_object(o, run, obj);
	}
	ordered_count_line(o, run, &(struct replay_line){ .kind = REPLAY_LINE_ALLOC_BULK, .objs = k->objs,
						  .nr = got });
	return rc;
}

/* Objects were taken out of their slots when the rows came; the failed ones are not there. */
static int bulk_free(struct ordered *o, struct ordered_cache *run)
{
	struct ordered_bulk *k = &o->bulk;
	uint32_t nr = 0;

	for (uint32_t n = 0; n < k->nr; n++) {
		void *obj = o->slot[k->slots[n]];

		o->slot[k->slots[n]] = NULL;
		if (obj && obj != REPLAY_FAILED)
			k->objs[nr++] = obj;
	}
	if (nr)
		o->v->free_bulk(run->cache, k->cpu, nr, k->objs);
	ordered_count_line(o, run, &(struct replay_line){ .kind = REPLAY_LINE_OTHER });
	return 0;
}

int ordered_bulk_run(struct ordered *o)
{
	struct ordered_cache *run = o->run_of[o->bulk.cache];
	const struct tape_batch *batch = o->at_batch;
	int rc;

	o->at_batch = NULL;
	o->at = o->bulk.at;
	rc = o->bulk.op == TAPE_OP_ALLOC_BULK ? bulk_alloc(o, run) : bulk_free(o, run);

	o->bulk.nr = 0;
	o->at_batch = batch;
	return rc;
}

static bool same_call(const struct ordered_bulk *k, const struct tape_batch *b, uint32_t i)
{
	return b->bulk[i] == k->id && b->op[i] == k->op && b->cpu[i] == k->cpu &&
	       b->cache[i] == k->cache;
}

static int bulk_row(struct ordered *o, const struct tape_batch *b, uint32_t i)
{
	bool ok, free_row = o->bulk.op == TAPE_OP_FREE_BULK;
	int rc = need_slot(o, b, i, &ok);

	if (rc < 0 || !ok)
		return rc;
	if (free_row && (!o->slot[b->slot[i]] || o->slot_cache[b->slot[i]] != b->cache[i]))
		return impossible(o, b, i, "its object is not live here");
	if (o->recorder && !free_row) {
		o->at_row = i;
		o->slot_seq[b->slot[i]] = ordered_at(o).seq;
	}
	return bulk_push(o, b->slot[i]);
}

/* All rows of the call that begins at @i, as far as this batch goes. */
static int step_bulk(struct ordered *o, const struct tape_batch *b, uint32_t i, uint32_t *ret_next)
{
	struct ordered_bulk *k = &o->bulk;
	int rc = 0;

	if (!k->nr) {
		k->id = b->bulk[i];
		k->op = b->op[i];
		k->cpu = b->cpu[i];
		k->cache = b->cache[i];
		k->gfp = b->gfp[i];
		k->at = ordered_at(o);
	}
	for (; i < b->events && same_call(k, b, i) && rc >= 0; i++)
		rc = bulk_row(o, b, i);
	*ret_next = i;
	if (rc >= 0 && i < b->events && k->nr)
		rc = ordered_bulk_run(o);
	return rc;
}

/* ---- sheaves ---- */

static int sheaf_slot(struct ordered *o, uint64_t slot)
{
	uint32_t nr = o->nr_sheaves ? o->nr_sheaves : 16;
	struct alloc_sheaf **grown;

	if (slot < o->nr_sheaves)
		return 0;
	if (slot >= REPLAY_SHEAVES_MAX)
		return tape_err_set(o->reterr, -TAPE_E_LIMIT, "sheaf slot %" PRIu64 ": above %u",
				    slot, REPLAY_SHEAVES_MAX - 1);
	while (nr <= slot)
		nr *= 2;
	grown = realloc(o->sheaf, nr * sizeof(*grown));
	if (!grown)
		return tape_err_set(o->reterr, -ENOMEM, "sheaf slots: out of memory");
	memset(grown + o->nr_sheaves, 0, (nr - o->nr_sheaves) * sizeof(*grown));
	o->sheaf = grown;
	o->nr_sheaves = nr;
	return 0;
}

/* Prefill, refill and return; nothing happens on variants without prefilled sheaves. */
static int step_sheaf(struct ordered *o, struct ordered_cache *run, const struct tape_batch *b,
		      uint32_t i)
{
	const bool ret = b->op[i] == TAPE_OP_SHEAF_RETURN;
	const uint64_t slot = ret ? (uint64_t)b->arg[i] : tape_sheaf_slot(b->arg[i]);
	const uint32_t objs = ret ? 0 : tape_sheaf_objs(b->arg[i]);
	struct replay_line line = { .kind = ret ? REPLAY_LINE_OTHER : REPLAY_LINE_CODE };
	int rc = sheaf_slot(o, slot);

	if (rc < 0)
		return rc;
	if (o->v->prefill && b->op[i] == TAPE_OP_PREFILL) {
		if (o->sheaf[slot])
			return impossible(o, b, i, "the sheaf slot is in use");
		o->sheaf[slot] = o->v->prefill(run->cache, b->cpu[i], b->gfp[i], objs);
		line.code = o->sheaf[slot] ? 0 : -ENOMEM;
	} else if (o->v->prefill && !o->sheaf[slot]) {
		return impossible(o, b, i, "the sheaf slot holds no sheaf");
	} else if (o->v->prefill && !ret) {
		line.code = o->v->sheaf_refill(run->cache, b->cpu[i], b->gfp[i], &o->sheaf[slot],
					       objs);
	} else if (o->v->prefill) {
		o->v->sheaf_return(run->cache, b->cpu[i], o->sheaf[slot]);
		o->sheaf[slot] = NULL;
	}
	ordered_count_line(o, run, &line);
	return 0;
}

static int step_object(struct ordered *o, const struct tape_batch *b, uint32_t i,
		       uint32_t *ret_next)
{
	struct ordered_cache *run = NULL;
	int rc = 0;

	if (!(b->flags[i] & TAPE_F_BIG) && b->cache[i] != TAPE_NO_CACHE)
		rc = ordered_cache_get(o, b->cache[i], &run);
	if (rc < 0)
		return rc;
	if (!run) {
		o->left_out++;
		o->next_orphan += tape_op_frees(b->op[i]) && b->flags[i] & TAPE_F_ORPHAN;
		return 0;
	}
	if (tape_op_allocates(b->op[i]) && b->op[i] != TAPE_OP_ALLOC_BULK)
		return step_alloc(o, run, b, i);
	if (b->op[i] == TAPE_OP_FREE || b->op[i] == TAPE_OP_FREE_RCU)
		return step_free(o, run, b, i);
	if (b->op[i] == TAPE_OP_ALLOC_BULK || b->op[i] == TAPE_OP_FREE_BULK)
		return step_bulk(o, b, i, ret_next);
	return step_sheaf(o, run, b, i);
}

int ordered_step(struct ordered *o, const struct tape_batch *b, uint32_t i, uint32_t *ret_next)
{
	if (o->bulk.nr && !same_call(&o->bulk, b, i)) {
		int rc = ordered_bulk_run(o);

		if (rc < 0)
			return rc;
	}
	*ret_next = i + 1;
	o->at_row = i;
	if (b->op[i] >= TAPE_OP_MARKER)
		return 0;
	if (b->cpu[i] >= o->plan->cpus)
		return impossible(o, b, i, "the machine has no such CPU");
	if (b->op[i] >= TAPE_OP_FLUSH)
		return ordered_step_whole(o, b, i);
	return step_object(o, b, i, ret_next);
}
