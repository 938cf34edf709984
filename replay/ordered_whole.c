/* SPDX-License-Identifier: MIT */
/* Operations on whole caches, checkpoints, and the count of lines; see ordered_internal.h. */
#include <errno.h>
#include <jansson.h>

#include "replay/ordered_internal.h"
#include "replay/paths.h"
#include "replay/state_json.h"

void ordered_count_line(struct ordered *o, struct ordered_cache *run, const struct replay_line *l)
{
	o->ops++;
	o->line++;
	if (o->paths)
		replay_paths_line(o->paths, run, l);
}

static int checkpoint(struct ordered *o, struct ordered_cache *run)
{
	struct replay_snapshot now;
	json_t *state;

	if (!o->plan->cfg->want_state)
		return 0;
	if (replay_snapshot_take(&now, run->cache, o->v, o->plan->cpus) < 0)
		return tape_err_set(o->reterr, -ENOMEM, "checkpoint: out of memory");
	state = replay_state_json(o->v, run->cache, &run->numbers, false);
	if (!run->checkpoints)
		run->checkpoints = json_array();
	json_object_set_new(state, "after_ops", json_integer((json_int_t)o->line));
	json_object_set_new(state, "per_cpu",
			    replay_per_cpu_json(now.counters, now.nr, now.cpus, true));
	json_object_set_new(state, "counters", replay_sums_json(now.counters, now.nr, false));
	replay_snapshot_fini(&now);
	if (json_array_append_new(run->checkpoints, state))
		return tape_err_set(o->reterr, -ENOMEM, "checkpoint: out of memory");
	return 0;
}

static int whole_cache(struct ordered *o, struct ordered_cache *run, const struct tape_batch *b,
		       uint32_t i)
{
	switch (b->op[i]) {
	case TAPE_OP_FLUSH:
		o->v->flush_cpu(run->cache, b->cpu[i]);
		return 0;
	case TAPE_OP_SHRINK:
		o->v->shrink(run->cache);
		return 0;
	case TAPE_OP_RCU_BARRIER:
		if (o->v->rcu_barrier)
			o->v->rcu_barrier(run->cache);
		return 0;
	case TAPE_OP_PAGE_LIMIT:
		alloc_cache_page_limit(run->cache, (uint32_t)b->arg[i]);
		return 0;
	default:
		return checkpoint(o, run);
	}
}

/* Operations on a whole cache; a row without one means every cache there is. */
int ordered_step_whole(struct ordered *o, const struct tape_batch *b, uint32_t i)
{
	struct ordered_cache *run = NULL;
	int rc = 0;

	if (b->cache[i] != TAPE_NO_CACHE) {
		rc = ordered_cache_get(o, b->cache[i], &run);
		if (rc < 0 || !run) {
			o->left_out += rc >= 0;
			return rc;
		}
	}
	if (b->op[i] == TAPE_OP_RCU_BARRIER && !o->v->free_rcu)
		ordered_rcu_run(o, UINT64_MAX);
	for (size_t n = 0; n < o->nr_caches && rc >= 0; n++)
		if (!run || run == o->caches[n])
			rc = whole_cache(o, o->caches[n], b, i);
	ordered_count_line(o, run ? run : o->nr_caches ? o->caches[0] : NULL,
		   &(struct replay_line){ .kind = REPLAY_LINE_OTHER });
	return rc;
}
