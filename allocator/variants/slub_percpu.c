/* SPDX-License-Identifier: MIT */
/*
 * The variants with a cpu slab and a per-cpu partial list: one policy, one list of counters and
 * one table each.  What they do is in percpu_*.c; how they differ is docs/allocator-model.md.
 */
#include "allocator/variants/percpu.h"

/* The 26 counters of 5.15 .. 6.12 (fewer in 3.2), the kernel's order. */
#define COUNTERS_6_1                                                                              \
	ALLOC_C_ALLOC_FASTPATH, ALLOC_C_ALLOC_SLOWPATH, ALLOC_C_FREE_FASTPATH,                    \
		ALLOC_C_FREE_SLOWPATH, ALLOC_C_FREE_FROZEN, ALLOC_C_FREE_ADD_PARTIAL,             \
		ALLOC_C_FREE_REMOVE_PARTIAL, ALLOC_C_ALLOC_FROM_PARTIAL, ALLOC_C_ALLOC_SLAB,      \
		ALLOC_C_ALLOC_REFILL, ALLOC_C_ALLOC_NODE_MISMATCH, ALLOC_C_FREE_SLAB,             \
		ALLOC_C_CPUSLAB_FLUSH, ALLOC_C_DEACTIVATE_FULL, ALLOC_C_DEACTIVATE_EMPTY,         \
		ALLOC_C_DEACTIVATE_TO_HEAD, ALLOC_C_DEACTIVATE_TO_TAIL,                           \
		ALLOC_C_DEACTIVATE_REMOTE_FREES, ALLOC_C_DEACTIVATE_BYPASS,                       \
		ALLOC_C_ORDER_FALLBACK, ALLOC_C_CMPXCHG_DOUBLE_CPU_FAIL,                          \
		ALLOC_C_CMPXCHG_DOUBLE_FAIL, ALLOC_C_CPU_PARTIAL_ALLOC, ALLOC_C_CPU_PARTIAL_FREE, \
		ALLOC_C_CPU_PARTIAL_NODE, ALLOC_C_CPU_PARTIAL_DRAIN

static const uint8_t counters_6_1[] = { COUNTERS_6_1 };

#define KNOB_MIN_PARTIAL                                                                        \
	{ "min_partial", "slabs: empty ones are kept while a node lists fewer", 0, INT64_MAX,   \
	  "clamp(log2(size) / 2, 5, 10)", false }
#define KNOB_CPU_PARTIAL                                                                        \
	{ "cpu_partial", "objects: limit of the per-cpu partial list; writing it flushes", 0,   \
	  UINT32_MAX, "120, 52 from 256 bytes, 24 from 1024, 6 from 4096", false }
#define KNOB_RATIO(percent)                                                                     \
	{ "remote_node_defrag_ratio", "percent: how often other nodes' lists are searched", 0,  \
	  100, percent, false }
#define KNOB_DEFRAG                                                                             \
	{ "defrag", "the ratio as the kernel keeps it; 1023 always, 0 never", 0, 1024, "1000",  \
	  false }
#define KNOBS_SIZING                                                                            \
	{ "slub_min_order", "smallest order of a slab", 0, ALLOC_ORDER_MAX, "0", true },        \
	{ "slub_max_order", "largest order unless one object needs more", 0, ALLOC_ORDER_MAX,   \
	  "3", true },                                                                          \
	{ "slub_min_objects", "objects a slab should hold, 0 = by the number of CPUs", 0, 32767,\
	  "0", true }

static const struct alloc_knob knobs_6_1[] = {
	KNOB_MIN_PARTIAL, KNOB_CPU_PARTIAL, KNOB_RATIO("100"), KNOB_DEFRAG, KNOBS_SIZING,
};

#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))

/* The functions every table shares. */
#define PERCPU_COMMON                          \
	.struct_size = sizeof(struct alloc_variant), \
	.destroy = percpu_destroy,             \
	.alloc = percpu_alloc,                 \
	.flush_cpu = percpu_flush_cpu,         \
	.shrink = percpu_shrink,               \
	.set_knob = percpu_set_knob,           \
	.get_knob = percpu_get_knob,           \
	.state = percpu_state,                 \
	.check = percpu_check,                 \
	.dump = percpu_dump
#define PERCPU_BULK                            \
	.alloc_bulk = percpu_alloc_bulk,       \
	.free_bulk = percpu_free_bulk

/* Declares the table and defines its create(), which ties a policy to it. */
#define PERCPU_VARIANT(id)                                                                      \
	ALLOC_VARIANT_DECLARE(id);                                                              \
	static int create_##id(struct alloc_machine *m, const struct alloc_cache_config *cfg,   \
			       struct alloc_cache **ret_cache)                                  \
	{                                                                                       \
		return percpu_create(&policy_##id, &ALLOC_FN(alloc_variant_##id), m, cfg,       \
				     ret_cache);                                                \
	}                                                                                       \
	ALLOC_VARIANT(id)

static const struct percpu_policy policy_slub_6_1 = {
	.era = ALLOC_ERA_6_1,
	.weight = PERCPU_WEIGHT_SLAB,
	.freeze_partials = true,
	.defrag_default = 1000,
	.alloc_slow = percpu_alloc_slow,
	.find_slab = percpu_find_slab,
	.fetch = percpu_fetch,
	.deactivate = percpu_deactivate,
	.unfreeze = percpu_unfreeze,
	.free_slow = percpu_free_slow,
};

PERCPU_VARIANT(slub_6_1) = {
	PERCPU_COMMON,
	PERCPU_BULK,
	.name = "slub-6.1",
	.era = "5.16 .. 6.7",
	.origin = "Linux v6.1 mm/slub.c",
	.what = "cpu slab and a per-cpu list of frozen partial slabs, limited in slabs",
	.counters = counters_6_1,
	.nr_counters = COUNT_OF(counters_6_1),
	.knobs = knobs_6_1,
	.nr_knobs = COUNT_OF(knobs_6_1),
	.create = create_slub_6_1,
	.free = percpu_free,
};
