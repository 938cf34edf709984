/* SPDX-License-Identifier: MIT */
#include "replay/ordered_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "replay/paths.h"
#include "replay/place.h"
#include "replay/sim_hooks.h"
#include "traces/event.h"

static struct ordered_cache *run_of_alloc(struct ordered *o, const struct alloc_cache *c)
{
	for (size_t i = 0; i < o->nr_caches; i++)
		if (o->caches[i]->cache == c)
			return o->caches[i];
	return NULL;
}

static void on_transition(void *ctx, const struct alloc_cache *c, const struct alloc_slab *s,
			  uint32_t cpu, enum alloc_state from, enum alloc_state to)
{
	struct ordered *o = ctx;
	struct ordered_cache *run;
	struct alloc_slab_info info;

	if (o->recorder)
		replay_recorder_transition(o->recorder, c, s, cpu, from, to);
	if (!o->numbered && !o->place)
		return;
	if (to != ALLOC_STATE_NONE || !(run = run_of_alloc(o, c)))
		return;
	alloc_slab_info(s, &info);
	replay_number_died(&run->numbers, info.id);
	replay_place_died(o, run, info.id);
}

static void on_refill(void *ctx, const struct alloc_cache *c, uint32_t cpu,
		      enum alloc_refill_source source, uint32_t objs)
{
	struct ordered *o = ctx;

	if (o->recorder)
		replay_recorder_refill(o->recorder, c, cpu, source, objs);
	if (o->plan->sync == ALLOC_SYNC_SIM)
		sim_hooks_observer.refill(NULL, c, cpu, source, objs);
}

static void on_lock(void *ctx, const struct alloc_cache *c, uint32_t cpu, uint16_t node,
		    enum alloc_lock_kind kind, enum alloc_lock_path path, int acquired,
		    uint64_t wait_ns)
{
	struct ordered *o = ctx;

	(void)cpu;
	replay_recorder_lock(o->recorder, c, node, kind, path, acquired, wait_ns);
}

static int machine_create(struct ordered *o)
{
	const struct replay_plan *p = o->plan;
	struct alloc_machine_config cfg = {
		.cpus = p->cpus,
		.nodes = p->nodes,
		.cpu_node = p->cpu_node,
		.seed = p->cfg->seed,
		.sync = p->sync,
	};
	int rc;

	o->observer.ctx = o;
	if (o->numbered || o->place || o->recorder)
		o->observer.transition = on_transition;
	if (p->sync == ALLOC_SYNC_SIM || o->recorder)
		o->observer.refill = on_refill;
	if (o->recorder && p->cfg->record & REPLAY_RECORD_LOCKS)
		o->observer.lock = on_lock;
	if (o->observer.transition || o->observer.refill)
		cfg.observer = &o->observer;
	rc = alloc_machine_create(&cfg, &o->machine);
	if (rc < 0)
		return tape_err_set(o->reterr, rc, "machine of %u CPUs on %u nodes: %s", p->cpus,
				    p->nodes, strerror(-rc));
	return 0;
}

int ordered_slots_grow(struct ordered *o, uint32_t slot)
{
	uint64_t want = slot + 1ull > o->nr_slots * 2ull ? slot + 1ull : o->nr_slots * 2ull;
	void **objs;
	uint16_t *caches;

	if (want >= TAPE_NO_SLOT)
		return tape_err_set(o->reterr, -TAPE_E_LIMIT, "slot %u: too many live objects", slot);
	objs = realloc(o->slot, want * sizeof(*objs));
	if (objs)
		o->slot = objs;
	caches = objs ? realloc(o->slot_cache, want * sizeof(*caches)) : NULL;
	if (!caches)
		return tape_err_set(o->reterr, -ENOMEM, "%" PRIu64 " slots: out of memory", want);
	o->slot_cache = caches;
	if (o->recorder) {
		uint64_t *seqs = realloc(o->slot_seq, want * sizeof(*seqs));

		if (!seqs)
			return tape_err_set(o->reterr, -ENOMEM, "%" PRIu64 " slots: out of memory", want);
		o->slot_seq = seqs;
	}
	memset(o->slot + o->nr_slots, 0, (want - o->nr_slots) * sizeof(*objs));
	o->nr_slots = (uint32_t)want;
	return 0;
}

static const struct replay_plan_cache *plan_of(const struct replay_plan *p, uint16_t id)
{
	for (size_t i = 0; i < p->nr_caches; i++)
		if (p->caches[i].row.id == id)
			return &p->caches[i];
	return NULL;
}

static uint32_t cache_flags(uint64_t tape_flags)
{
	return (tape_flags & TAPE_CACHE_HWALIGN ? ALLOC_F_HWCACHE_ALIGN : 0u) |
	       (tape_flags & TAPE_CACHE_RCU ? ALLOC_F_RCU : 0u) |
	       (tape_flags & TAPE_CACHE_CTOR ? ALLOC_F_CTOR : 0u);
}

static int run_create(struct ordered *o, const struct replay_plan_cache *pc,
		      struct ordered_cache *run)
{
	const struct alloc_cache_config cfg = {
		.name = pc->row.name,
		.object_size = (uint32_t)pc->row.object_size,
		.align = (uint32_t)pc->row.align,
		.flags = cache_flags(pc->row.flags),
		.knobs = pc->knobs,
		.nr_knobs = pc->nr_knobs,
	};
	struct alloc_geometry geo;
	int rc = o->v->create(o->machine, &cfg, &run->cache);

	if (rc < 0)
		return tape_err_set(o->reterr, rc == -EINVAL ? -TAPE_E_USAGE : rc,
				    "cache %s (%" PRIu64 " bytes): %s refuses its size, alignment "
				    "or one of its knobs: %s", pc->row.name, pc->row.object_size,
				    o->v->name, strerror(-rc));
	alloc_cache_geometry(run->cache, &geo);
	run->order = geo.order;
	run->size = geo.size;
	run->per_slab = geo.objects ? geo.objects : 1;
	run->plan = pc;
	if (o->recorder && replay_recorder_cache(o->recorder, run->cache, pc->row.id) < 0)
		return tape_err_set(o->reterr, -ENOMEM, "--record: out of memory");
	rc = replay_snapshot_take(&run->initial, run->cache, o->v, o->plan->cpus);
	/* A cache of a window that is open already: what its creation counts lies before. */
	if (rc >= 0 && pc->from_seq && pc->from_seq <= o->window_seq) {
		rc = replay_snapshot_take(&run->begin, run->cache, o->v, o->plan->cpus);
		run->begun = true;
	}
	return rc < 0 ? tape_err_set(o->reterr, rc, "counters: out of memory") : 0;
}

static int run_list_grow(struct ordered *o)
{
	size_t capacity = o->caches_capacity ? o->caches_capacity * 2 : 16;
	struct ordered_cache **grown = realloc(o->caches, capacity * sizeof(*grown));

	if (!grown)
		return tape_err_set(o->reterr, -ENOMEM, "caches: out of memory");
	o->caches = grown;
	o->caches_capacity = capacity;
	return 0;
}

int ordered_cache_get(struct ordered *o, uint16_t id, struct ordered_cache **ret_run)
{
	const struct replay_plan_cache *pc;
	struct ordered_cache *run;
	int rc;

	*ret_run = o->run_of[id];
	if (*ret_run)
		return 0;
	pc = plan_of(o->plan, id);
	if (!pc || pc->left_out)
		return 0;
	if (o->nr_caches == o->caches_capacity && (rc = run_list_grow(o)) < 0)
		return rc;
	run = calloc(1, sizeof(*run));
	if (!run)
		return tape_err_set(o->reterr, -ENOMEM, "cache %s: out of memory", pc->row.name);
	run->index = o->nr_caches;
	o->caches[o->nr_caches++] = run;
	rc = run_create(o, pc, run);
	if (rc < 0)
		return rc;
	o->run_of[id] = run;
	o->cache_of[id] = run->cache;
	*ret_run = run;
	return 0;
}

int ordered_init(struct ordered *o, const struct replay_plan *p, struct tape_err *reterr)
{
	struct ordered_cache *run;
	int rc;

	*o = (struct ordered){ .plan = p, .v = p->variant, .reterr = reterr,
			       .next_tick_ts = UINT64_MAX, .next_rcu_ts = UINT64_MAX,
			       .next_sample_ts = UINT64_MAX,
			       .laps = p->cfg->laps > 1 ? p->cfg->laps : 1 };
	o->cache_of = calloc(UINT16_MAX + 1u, sizeof(*o->cache_of));
	o->run_of = calloc(UINT16_MAX + 1u, sizeof(*o->run_of));
	if (!o->cache_of || !o->run_of)
		return tape_err_set(reterr, -ENOMEM, "replay: out of memory");
	rc = ordered_record_init(o);
	if (rc >= 0)
		rc = ordered_slots_grow(o, p->slots);
	o->hooked = o->numbered = p->cfg->paths || p->cfg->want_state;
	if (rc >= 0)
		rc = replay_place_create(o);
	if (rc >= 0)
		rc = machine_create(o);
	if (rc < 0)
		return rc;
	if (!p->script && p->variant->tick)
		o->next_tick_ts = 0;
	if (p->cfg->paths) {
		o->paths = replay_paths_create(o, p->cfg->paths);
		if (!o->paths)
			return tape_err_set(reterr, -ENOMEM, "paths: out of memory");
	}
	/* A script has one cache and its state is asked for even when no operation comes. */
	if (rc >= 0 && p->script && p->nr_caches)
		rc = ordered_cache_get(o, p->caches[0].row.id, &run);
	return rc < 0 ? rc : 0;
}

static void run_destroy(struct ordered *o, struct ordered_cache *run)
{
	if (run->cache)
		o->v->destroy(run->cache);
	replay_snapshot_fini(&run->initial);
	replay_snapshot_fini(&run->begin);
	replay_snapshot_fini(&run->end);
	replay_numbering_fini(&run->numbers);
	for (uint32_t lap = 0; lap < run->nr_laps; lap++)
		replay_snapshot_fini(&run->laps[lap]);
	free(run->laps);
	for (uint32_t cpu = 0; run->rcu && cpu < o->plan->cpus; cpu++)
		free(run->rcu[cpu].objs);
	free(run->rcu);
	json_decref(run->checkpoints);
	free(run);
}

void ordered_fini(struct ordered *o)
{
	/* The end of the caches is nobody's business. */
	o->observer = (struct alloc_observer){ 0 };
	replay_recorder_destroy(o->recorder);
	o->recorder = NULL;
	replay_paths_destroy(o->paths);
	replay_place_destroy(o->place);
	for (size_t i = 0; i < o->nr_caches; i++)
		run_destroy(o, o->caches[i]);
	alloc_machine_destroy(o->machine);
	free(o->caches);
	free(o->cache_of);
	free(o->run_of);
	free(o->slot);
	free(o->slot_cache);
	free(o->slot_seq);
	free(o->sheaf);
	free(o->bulk.slots);
	free(o->bulk.objs);
	free(o->orphan);
}

int ordered_window(struct ordered *o, uint64_t seq)
{
	int rc = 0;

	o->window_seq = seq;
	for (size_t i = 0; i < o->nr_caches && rc >= 0; i++) {
		struct ordered_cache *run = o->caches[i];

		if (!run->begun && run->plan->from_seq && run->plan->from_seq <= seq) {
			rc = replay_snapshot_take(&run->begin, run->cache, o->v, o->plan->cpus);
			run->placed_same = run->placed_total = 0;
			run->begun = true;
		}
		if (!run->ended && o->plan->to_seq <= seq && rc >= 0) {
			rc = replay_snapshot_take(&run->end, run->cache, o->v, o->plan->cpus);
			run->ended = true;
		}
	}
	return rc < 0 ? tape_err_set(o->reterr, rc, "counters: out of memory") : 0;
}

int ordered_lap_end(struct ordered *o)
{
	for (size_t i = 0; i < o->nr_caches; i++) {
		struct ordered_cache *run = o->caches[i];

		if (!run->laps)
			run->laps = calloc(o->laps, sizeof(*run->laps));
		if (!run->laps || replay_snapshot_take(&run->laps[run->nr_laps], run->cache, o->v,
						       o->plan->cpus) < 0)
			return tape_err_set(o->reterr, -ENOMEM, "laps: out of memory");
		run->nr_laps++;
	}
	return 0;
}
