/* SPDX-License-Identifier: MIT */
/* Results as runs of a tape. */
#include <inttypes.h>
#include <stdio.h>

#include "replay/engine.h"
#include "replay/recorder.h"
#include "store/tape.h"

static int store_counters(struct tape *t, int64_t run, const struct replay_result *r,
			  const struct replay_cache *c, struct tape_err *reterr)
{
	int rc = 0;

	for (size_t i = 0; i < c->nr_counters && rc >= 0; i++) {
		const struct replay_counter *n = &c->counters[i];

		rc = tape_run_counter(t, run, c->cache, -1, n->name, n->sum, reterr);
		for (uint32_t cpu = 0; cpu < r->cpus && rc >= 0; cpu++)
			if (n->per_cpu[cpu])
				rc = tape_run_counter(t, run, c->cache, (int32_t)cpu, n->name,
						      n->per_cpu[cpu], reterr);
	}
	for (uint32_t i = 0; i < ALLOC_FREE_CLASSES && rc >= 0; i++)
		rc = tape_run_free_class(t, run, c->cache, alloc_free_class_name(i),
					 c->free_class[i], reterr);
	return rc;
}

/* What sysfs would show at the end, under its sysfs names; and cached_objs. */
static int store_state(struct tape *t, int64_t run, const struct replay_cache *c,
		       struct tape_err *reterr)
{
	const struct {
		const char *name;
		uint64_t value;
	} values[] = {
		{ "slabs", c->state.slabs },
		{ "total_objects", c->state.total_objects },
		{ "objects", c->state.objects },
		{ "partial", c->state.partial },
		{ "objects_partial", c->state.objects_partial },
		{ "cpu_slabs", c->state.cpu_slabs },
		{ "slabs_cpu_partial", c->state.slabs_cpu_partial },
		{ "cached_objs", c->state.cached_objs },
		{ "object_size", c->geo.object_size },
		{ "slab_size", c->geo.size },
		{ "objs_per_slab", c->geo.objects },
		{ "order", c->geo.order },
	};
	int rc = 0;

	for (size_t i = 0; i < sizeof(values) / sizeof(*values) && rc >= 0; i++)
		rc = tape_run_counter(t, run, c->cache, -1, values[i].name, (int64_t)values[i].value,
				      reterr);
	return rc;
}

static int store_knobs(struct tape *t, int64_t run, const struct replay_cache *c,
		       struct tape_err *reterr)
{
	char value[32];
	int rc = 0;

	for (size_t k = 0; k < c->nr_knobs && rc >= 0; k++) {
		snprintf(value, sizeof(value), "%" PRId64, c->knobs[k].value);
		rc = tape_run_knob(t, run, c->name, c->knobs[k].knob, value, reterr);
	}
	return rc;
}

int replay_result_store(struct tape *t, const struct replay_result *r, const char *args,
			int64_t *ret_run, struct tape_err *reterr)
{
	struct tape_run run = {
		.variant = r->variant->name,
		.mode = replay_mode_name(r->mode),
		.args = args,
		.cpus = r->cpus,
		.nodes = r->nodes,
		.cpu_node = r->cpu_node,
		.seed = r->seed,
		.started = r->started,
	};
	int rc = tape_run_begin(t, &run, reterr);

	for (size_t i = 0; i < r->nr_caches && rc >= 0; i++) {
		rc = store_counters(t, run.id, r, &r->caches[i], reterr);
		if (rc >= 0)
			rc = store_state(t, run.id, &r->caches[i], reterr);
		if (rc >= 0)
			rc = store_knobs(t, run.id, &r->caches[i], reterr);
	}
	if (rc >= 0 && r->recorder)
		rc = replay_recorder_store(r->recorder, t, run.id, reterr);
	if (rc >= 0)
		rc = tape_run_end(t, run.id, r->elapsed_ns, r->ops,
				  r->recorder ? replay_recorder_truncated(r->recorder) : -1, reterr);
	if (rc >= 0)
		*ret_run = run.id;
	return rc < 0 ? rc : 0;
}
