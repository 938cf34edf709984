/* SPDX-License-Identifier: MIT */
/* The result of an ordered run, and its release. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replay/ordered_internal.h"
#include "replay/state_json.h"

static const struct {
	const char *name;
	size_t offset;
} shown_knobs[] = {
	{ "min_partial", offsetof(struct replay_cache, min_partial) },
	{ "cpu_partial", offsetof(struct replay_cache, cpu_partial) },
	{ "cpu_partial_slabs", offsetof(struct replay_cache, cpu_partial_slabs) },
	{ "sheaf_capacity", offsetof(struct replay_cache, sheaf_capacity) },
};

static int result_knobs(struct replay_cache *rc, const struct alloc_variant *v,
			const struct alloc_cache *c)
{
	int64_t value;

	for (size_t i = 0; i < sizeof(shown_knobs) / sizeof(*shown_knobs); i++) {
		value = -1;
		if (v->get_knob(c, shown_knobs[i].name, &value) < 0)
			value = -1;
		memcpy((char *)rc + shown_knobs[i].offset, &value, sizeof(value));
	}
	rc->knobs = calloc(v->nr_knobs ? v->nr_knobs : 1, sizeof(*rc->knobs));
	if (!rc->knobs)
		return -ENOMEM;
	for (uint32_t i = 0; i < v->nr_knobs; i++) {
		if (v->get_knob(c, v->knobs[i].name, &value) < 0)
			continue;
		snprintf(rc->knobs[rc->nr_knobs].knob, sizeof(rc->knobs->knob), "%s",
			 v->knobs[i].name);
		rc->knobs[rc->nr_knobs++].value = value;
	}
	return 0;
}

/* Counters lap by lap; the first lap begins where the counting begins. */
static int result_laps(struct replay_cache *rc, const struct ordered_cache *run)
{
	const size_t nr = rc->nr_counters;

	if (!run->nr_laps || !nr)
		return 0;
	rc->laps = calloc(run->nr_laps * nr, sizeof(*rc->laps));
	if (!rc->laps)
		return -ENOMEM;
	rc->nr_laps = run->nr_laps;
	for (uint32_t lap = 0; lap < run->nr_laps; lap++) {
		const struct replay_snapshot *to = &run->laps[lap];
		const struct replay_snapshot *from = lap ? to - 1 : &run->begin;

		for (size_t i = 0; i < nr && i < to->nr; i++)
			rc->laps[lap * nr + i] = to->counters[i].sum -
						 (i < from->nr ? from->counters[i].sum : 0);
	}
	return 0;
}

/* Hand the counted window over to the result. */
static void result_counters(struct replay_cache *rc, struct ordered_cache *run)
{
	struct replay_snapshot *end = &run->end;

	replay_snapshot_subtract(end, &run->begin);
	memcpy(rc->free_class, end->free_class, sizeof(rc->free_class));
	rc->counters = end->counters;
	rc->nr_counters = end->nr;
	rc->refill_hist = end->refill_hist;
	rc->refill_entries = end->refill_entries;
	*end = (struct replay_snapshot){ 0 };
}

static int result_state(struct ordered *o, struct replay_cache *rc, struct ordered_cache *run)
{
	rc->initial_counters = replay_sums_json(run->initial.counters, run->initial.nr, true);
	rc->final = replay_state_json(o->v, run->cache, &run->numbers, true);
	rc->checkpoints = run->checkpoints ? json_incref(run->checkpoints) : json_array();
	rc->slabs_seen = run->numbers.numbered;
	return rc->final && rc->initial_counters ? 0 : -ENOMEM;
}

static int result_cache(struct ordered *o, struct replay_cache *rc, struct ordered_cache *run)
{
	const struct tape_cache *row = &run->plan->row;

	rc->cache = row->id;
	memcpy(rc->name, row->name, sizeof(rc->name));
	rc->coverage = row->coverage;
	rc->placed_same = run->placed_same;
	rc->placed_total = run->placed_total;
	alloc_cache_geometry(run->cache, &rc->geo);
	o->v->state(run->cache, &rc->state);
	result_counters(rc, run);
	if (o->plan->cfg->want_state && result_state(o, rc, run) < 0)
		return -ENOMEM;
	if (result_laps(rc, run) < 0)
		return -ENOMEM;
	return result_knobs(rc, o->v, run->cache);
}

static void result_started(struct replay_result *r)
{
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(r->started, sizeof(r->started), "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static int by_id(const void *a, const void *b)
{
	const struct replay_cache *x = a, *y = b;

	return (x->cache > y->cache) - (x->cache < y->cache);
}

int ordered_result(struct ordered *o, struct replay_result **ret_result)
{
	const struct replay_plan *p = o->plan;
	struct replay_result *r = calloc(1, sizeof(*r));

	if (r)
		r->caches = calloc(o->nr_caches ? o->nr_caches : 1, sizeof(*r->caches));
	if (!r || !r->caches)
		goto nomem;
	r->variant = o->v;
	r->mode = p->cfg->mode;
	r->cpus = p->cpus;
	r->nodes = p->nodes;
	memcpy(r->cpu_node, p->cpu_node, sizeof(r->cpu_node));
	r->seed = p->cfg->seed;
	r->script = p->script;
	r->ops = o->ops;
	r->skipped = o->skipped;
	r->warmed = o->warmed;
	r->left_out = o->left_out;
	r->failed = o->failed;
	r->recorder = o->recorder;
	o->recorder = NULL;
	r->elapsed_ns = o->elapsed_ns;
	result_started(r);
	for (; r->nr_caches < o->nr_caches; r->nr_caches++)
		if (result_cache(o, &r->caches[r->nr_caches], o->caches[r->nr_caches]) < 0)
			goto nomem;
	qsort(r->caches, r->nr_caches, sizeof(*r->caches), by_id);
	*ret_result = r;
	return 0;
nomem:
	replay_result_destroy(r);
	return tape_err_set(o->reterr, -ENOMEM, "result: out of memory");
}

void replay_result_destroy(struct replay_result *r)
{
	if (!r)
		return;
	for (size_t i = 0; r->caches && i < r->nr_caches; i++) {
		struct replay_cache *c = &r->caches[i];

		for (size_t n = 0; n < c->nr_counters; n++)
			free(c->counters[n].per_cpu);
		free(c->counters);
		free(c->refill_hist);
		free(c->laps);
		free(c->knobs);
		json_decref(c->initial_counters);
		json_decref(c->final);
		json_decref(c->checkpoints);
	}
	if (r->sim) {
		json_decref(r->sim->costs);
		free(r->sim->locks);
		free(r->sim);
	}
	replay_recorder_destroy(r->recorder);
	free(r->caches);
	free(r);
}
