/* SPDX-License-Identifier: MIT */
/* The result as JSON: docs/json.md, a contract. */
#include <inttypes.h>
#include <jansson.h>

#include "replay/engine.h"
#include "replay/state_json.h"
#include "store/tape.h"

static json_t *uint_json(uint64_t value)
{
	return json_integer((json_int_t)value);
}

/* A knob the variant does not have is null. */
static json_t *knob_json(int64_t value)
{
	return value < 0 ? json_null() : json_integer(value);
}

static json_t *tape_json(struct tape *t, bool timing)
{
	struct tape_totals totals;
	json_t *j = json_object();

	if (tape_totals_get(t, &totals, NULL) < 0)
		totals = (struct tape_totals){ 0 };
	if (timing)
		json_object_set_new(j, "path", json_string(tape_path(t)));
	json_object_set_new(j, "events", uint_json(totals.events));
	json_object_set_new(j, "lost", uint_json(totals.lost));
	json_object_set_new(j, "orphan_frees", uint_json(totals.orphan_frees));
	json_object_set_new(j, "inferred_allocs", uint_json(totals.inferred_allocs));
	json_object_set_new(j, "inferred_frees", uint_json(totals.inferred_frees));
	return j;
}

static json_t *engine_json(const struct replay_result *r)
{
	json_t *j = json_object(), *nodes = json_array();

	for (uint32_t cpu = 0; cpu < r->cpus; cpu++)
		json_array_append_new(nodes, json_integer(r->cpu_node[cpu]));
	json_object_set_new(j, "mode", json_string(replay_mode_name(r->mode)));
	json_object_set_new(j, "cpus", json_integer(r->cpus));
	json_object_set_new(j, "nodes", json_integer(r->nodes));
	json_object_set_new(j, "cpu_node", nodes);
	json_object_set_new(j, "seed", uint_json(r->seed));
	return j;
}

static json_t *knobs_json(const struct replay_result *r)
{
	json_t *j = json_object();

	for (size_t i = 0; i < r->nr_caches; i++) {
		const struct replay_cache *c = &r->caches[i];
		json_t *one = json_object();

		for (size_t k = 0; k < c->nr_knobs; k++)
			json_object_set_new(one, c->knobs[k].knob, json_integer(c->knobs[k].value));
		json_object_set_new(j, c->name, one);
	}
	return j;
}

static void geometry_json(json_t *j, const struct replay_cache *c)
{
	json_object_set_new(j, "object_size", json_integer(c->geo.object_size));
	json_object_set_new(j, "size", json_integer(c->geo.size));
	json_object_set_new(j, "align", json_integer(c->geo.align));
	json_object_set_new(j, "offset", json_integer(c->geo.offset));
	json_object_set_new(j, "order", json_integer(c->geo.order));
	json_object_set_new(j, "objs_per_slab", json_integer(c->geo.objects));
	json_object_set_new(j, "min_order", json_integer(c->geo.min_order));
	json_object_set_new(j, "min_objects", json_integer(c->geo.min_objects));
	json_object_set_new(j, "min_partial", knob_json(c->min_partial));
	json_object_set_new(j, "cpu_partial", knob_json(c->cpu_partial));
	json_object_set_new(j, "cpu_partial_slabs", knob_json(c->cpu_partial_slabs));
	json_object_set_new(j, "sheaf_capacity", knob_json(c->sheaf_capacity));
	json_object_set_new(j, "coverage", json_real(c->coverage));
}

static void state_json(json_t *j, const struct alloc_cache_state *s)
{
	json_object_set_new(j, "slabs", uint_json(s->slabs));
	json_object_set_new(j, "total_objects", uint_json(s->total_objects));
	json_object_set_new(j, "objects", uint_json(s->objects));
	json_object_set_new(j, "partial", uint_json(s->partial));
	json_object_set_new(j, "objects_partial", uint_json(s->objects_partial));
	json_object_set_new(j, "cpu_slabs", uint_json(s->cpu_slabs));
	json_object_set_new(j, "slabs_cpu_partial", uint_json(s->slabs_cpu_partial));
	json_object_set_new(j, "cached_objs", uint_json(s->cached_objs));
	json_object_set_new(j, "full_sheaves", uint_json(s->full_sheaves));
	json_object_set_new(j, "empty_sheaves", uint_json(s->empty_sheaves));
}

static json_t *free_class_json(const struct replay_cache *c)
{
	json_t *j = json_object();

	for (uint32_t i = 0; i < ALLOC_FREE_CLASSES; i++)
		json_object_set_new(j, alloc_free_class_name(i), uint_json(c->free_class[i]));
	return j;
}

static json_t *refill_hist_json(const struct replay_cache *c)
{
	json_t *j = json_object();
	char key[16];

	for (uint32_t i = 1; i < c->refill_entries; i++)
		if (c->refill_hist[i]) {
			snprintf(key, sizeof(key), "%u", i);
			json_object_set_new(j, key, uint_json(c->refill_hist[i]));
		}
	return j;
}

/* [{"counter": n, ...}, ...], one object per lap. */
static json_t *laps_json(const struct replay_cache *c)
{
	json_t *j = json_array();

	for (uint32_t lap = 0; lap < c->nr_laps; lap++) {
		json_t *one = json_object();

		for (size_t i = 0; i < c->nr_counters; i++)
			json_object_set_new(one, c->counters[i].name,
					    json_integer(c->laps[lap * c->nr_counters + i]));
		json_array_append_new(j, one);
	}
	return j;
}

static json_t *cache_json(const struct replay_result *r, const struct replay_cache *c)
{
	json_t *j = json_object();

	json_object_set_new(j, "name", json_string(c->name));
	geometry_json(j, c);
	json_object_set_new(j, "counters", replay_sums_json(c->counters, c->nr_counters, false));
	json_object_set_new(j, "per_cpu", replay_per_cpu_json(c->counters, c->nr_counters, r->cpus,
							      r->script && c->final));
	json_object_set_new(j, "free_class", free_class_json(c));
	state_json(j, &c->state);
	json_object_set_new(j, "refill_hist", refill_hist_json(c));
	if (c->placed_total) {
		json_object_set_new(j, "placed_same", uint_json(c->placed_same));
		json_object_set_new(j, "placed_total", uint_json(c->placed_total));
	}
	if (c->nr_laps)
		json_object_set_new(j, "laps", laps_json(c));
	if (c->final) {
		json_object_set_new(j, "slabs_seen", uint_json(c->slabs_seen));
		json_object_set(j, "initial_counters", c->initial_counters);
		json_object_set(j, "final", c->final);
		json_object_set(j, "checkpoints", c->checkpoints);
	}
	return j;
}

static json_t *lock_json(const struct replay_lock *l)
{
	json_t *j = json_object();

	json_object_set_new(j, "lock", json_string(l->lock));
	json_object_set_new(j, "node", json_integer(l->node));
	json_object_set_new(j, "cache", *l->cache_name ? json_string(l->cache_name) : json_null());
	json_object_set_new(j, "path", json_string(l->path));
	json_object_set_new(j, "share", json_real(l->share));
	json_object_set_new(j, "acquisitions", uint_json(l->acquisitions));
	json_object_set_new(j, "contended", uint_json(l->contended));
	json_object_set_new(j, "try_failed", uint_json(l->try_failed));
	json_object_set_new(j, "wait_ns", uint_json(l->wait_ns));
	json_object_set_new(j, "hold_ns", uint_json(l->hold_ns));
	json_object_set_new(j, "max_wait_ns", uint_json(l->max_wait_ns));
	json_object_set_new(j, "max_queue", json_integer(l->max_queue));
	json_object_set_new(j, "handover_same_node", uint_json(l->handover_same_node));
	json_object_set_new(j, "handover_remote", uint_json(l->handover_remote));
	return j;
}

/* What a simulated run adds to the object. */
static void sim_json(json_t *j, const struct replay_sim *s)
{
	json_t *locks = json_array();

	for (size_t i = 0; i < s->nr_locks; i++)
		json_array_append_new(locks, lock_json(&s->locks[i]));
	json_object_set_new(j, "pace", json_string(replay_pace_name(s->pace)));
	json_object_set_new(j, "scale", json_integer(s->scale));
	json_object_set_new(j, "virtual_ns", uint_json(s->virtual_ns));
	json_object_set_new(j, "ops_per_s", json_real(s->ops_per_s));
	json_object_set_new(j, "dependency_wait_ns", uint_json(s->dependency_wait_ns));
	json_object_set_new(j, "think_ns", uint_json(s->think_ns));
	json_object_set_new(j, "locks", locks);
	json_object_set(j, "costs", s->costs);
}

json_t *replay_result_json(const struct replay_result *r, struct tape *t, bool timing)
{
	json_t *j = json_object(), *caches = json_array();

	json_object_set_new(j, "slabtape", json_string(SLABTAPE_VERSION));
	json_object_set_new(j, "format", json_integer(1));
	json_object_set_new(j, "tape", tape_json(t, timing));
	json_object_set_new(j, "engine", engine_json(r));
	json_object_set_new(j, "variant", json_string(r->variant->name));
	json_object_set_new(j, "knobs", knobs_json(r));
	json_object_set_new(j, "ops", uint_json(r->ops));
	if (timing) {
		json_object_set_new(j, "started", json_string(r->started));
		json_object_set_new(j, "elapsed_ns", uint_json(r->elapsed_ns));
		json_object_set_new(j, "ns_per_op", json_real(r->ops ? (double)r->elapsed_ns /
							      (double)r->ops : 0));
	}
	json_object_set_new(j, "skipped", uint_json(r->skipped));
	json_object_set_new(j, "warmed", uint_json(r->warmed));
	json_object_set_new(j, "left_out", uint_json(r->left_out));
	json_object_set_new(j, "failed", uint_json(r->failed));
	if (r->sim)
		sim_json(j, r->sim);
	for (size_t i = 0; i < r->nr_caches; i++)
		json_array_append_new(caches, cache_json(r, &r->caches[i]));
	json_object_set_new(j, "caches", caches);
	return j;
}
