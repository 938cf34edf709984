/* SPDX-License-Identifier: MIT */
/* Names of counters and states; reading counters out. */
#include "allocator/counters.h"

#include <assert.h>

#include "allocator/slab.h"

static const char *const counter_names[ALLOC_C_MAX] = {
#define COUNTER_NAME(id, name) [ALLOC_C_##id] = name,
	ALLOC_COUNTERS(COUNTER_NAME)
#undef COUNTER_NAME
};

static const char *const state_names[ALLOC_STATE_MAX] = {
	[ALLOC_STATE_NONE] = "none",	   [ALLOC_STATE_CPU] = "cpu",
	[ALLOC_STATE_CPU_PARTIAL] = "cpu_partial", [ALLOC_STATE_PARTIAL] = "partial",
	[ALLOC_STATE_FULL] = "full",	   [ALLOC_STATE_EMPTY] = "empty",
	[ALLOC_STATE_PARKED] = "parked",   [ALLOC_STATE_DETACHED] = "detached",
};

static const char *const source_names[ALLOC_REFILL_MAX] = {
	[ALLOC_REFILL_CPU_PARTIAL] = "cpu_partial", [ALLOC_REFILL_NODE_PARTIAL] = "node_partial",
	[ALLOC_REFILL_REMOTE_NODE] = "remote_node", [ALLOC_REFILL_NEW_SLAB] = "new_slab",
	[ALLOC_REFILL_SPARE] = "spare",		    [ALLOC_REFILL_BARN] = "barn",
};

static const char *const lock_kind_names[ALLOC_LOCK_MAX] = {
	[ALLOC_LOCK_LIST] = "list_lock",   [ALLOC_LOCK_BARN] = "barn_lock",
	[ALLOC_LOCK_SLAB] = "slab_lock",   [ALLOC_LOCK_ALIEN] = "alien_lock",
	[ALLOC_LOCK_REMOTE] = "remote_lock", [ALLOC_LOCK_ZONE] = "zone_lock",
};

static const char *const lock_path_names[ALLOC_PATH_MAX] = {
	[ALLOC_PATH_FREE] = "free",	[ALLOC_PATH_REFILL] = "refill",
	[ALLOC_PATH_ALLOC_SLOWPATH] = "alloc_slowpath", [ALLOC_PATH_DRAIN] = "drain",
	[ALLOC_PATH_DEACTIVATE] = "deactivate", [ALLOC_PATH_FLUSH] = "flush",
	[ALLOC_PATH_UNPARK] = "unpark", [ALLOC_PATH_SHRINK] = "shrink",
	[ALLOC_PATH_REAP] = "reap",	[ALLOC_PATH_PAGE] = "page",
};

const char *alloc_counter_name(enum alloc_counter c)
{
	assert(c < ALLOC_C_MAX);
	return counter_names[c];
}

const char *alloc_state_name(enum alloc_state s)
{
	assert(s < ALLOC_STATE_MAX);
	return state_names[s];
}

const char *alloc_refill_source_name(enum alloc_refill_source s)
{
	assert(s < ALLOC_REFILL_MAX);
	return source_names[s];
}

const char *alloc_lock_kind_name(enum alloc_lock_kind k)
{
	assert(k < ALLOC_LOCK_MAX);
	return lock_kind_names[k];
}

const char *alloc_lock_path_name(enum alloc_lock_path p)
{
	assert(p < ALLOC_PATH_MAX);
	return lock_path_names[p];
}

void alloc_read_counters(const struct alloc_cache *c, alloc_counter_fn fn, void *ctx)
{
	const struct alloc_variant *v = c->variant;

	if (v->read_counters) {
		v->read_counters(c, fn, ctx);
		return;
	}
	for (uint32_t i = 0; i < v->nr_counters; i++)
		for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++)
			fn(ctx, cpu, counter_names[v->counters[i]],
			   (int64_t)c->stat[(size_t)cpu * ALLOC_COUNTER_ROW + v->counters[i]]);
}

uint64_t alloc_free_class(const struct alloc_cache *c, uint32_t class_index)
{
	uint64_t sum = 0;

	assert(class_index < ALLOC_FREE_CLASSES);
	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++)
		sum += c->stat[(size_t)cpu * ALLOC_COUNTER_ROW + ALLOC_C_CLASS_PARTIAL_PARTIAL +
			       class_index];
	return sum;
}

const char *alloc_free_class_name(uint32_t class_index)
{
	assert(class_index < ALLOC_FREE_CLASSES);
	return counter_names[ALLOC_C_CLASS_PARTIAL_PARTIAL + class_index];
}
