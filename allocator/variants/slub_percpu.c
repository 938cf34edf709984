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
static const uint8_t counters_minfree[] = {
	COUNTERS_6_1, ALLOC_C_MINFREE_SKIP, ALLOC_C_MINFREE_BEST, ALLOC_C_MINFREE_NEW,
};
static const uint8_t counters_remotequeue[] = {
	COUNTERS_6_1,
	ALLOC_C_REMOTE_QUEUE,
	ALLOC_C_REMOTE_FLUSH,
	ALLOC_C_REMOTE_FLUSH_OBJECTS,
	ALLOC_C_REMOTE_CLAIM,
	ALLOC_C_REMOTE_CLAIM_OBJECTS,
};
/* 3.2 has no counters of fetched slabs and of drains. */
enum { NR_COUNTERS_3_2 = sizeof(counters_6_1) - 2 };

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

#define KNOB_CPU_PARTIAL_3_2                                                                    \
	{ "cpu_partial", "objects: limit of the per-cpu partial list; writing it flushes", 0,   \
	  UINT32_MAX, "30, 13 from 256 bytes, 6 from 1024, 2 from 4096", false }

static const struct alloc_knob knobs_3_2[] = {
	KNOB_MIN_PARTIAL, KNOB_CPU_PARTIAL_3_2, KNOB_RATIO("100"), KNOB_DEFRAG, KNOBS_SIZING,
};
/* The patch replaces the ratio as the kernel keeps it, so scripts cannot set that one here. */
static const struct alloc_knob knobs_numalocal[] = {
	KNOB_MIN_PARTIAL, KNOB_CPU_PARTIAL, KNOB_RATIO("0"), KNOBS_SIZING,
};
static const struct alloc_knob knobs_minfree[] = {
	KNOB_MIN_PARTIAL, KNOB_CPU_PARTIAL, KNOB_RATIO("100"), KNOB_DEFRAG, KNOBS_SIZING,
	{ "minfree_pct", "percent of a slab's objects that must be free", 0, 100, "25", false },
	{ "minfree_scan_limit", "slabs looked at in a fetch, 0 = all", 0, UINT32_MAX, "0", false },
	{ "minfree_new_slab", "no slab qualifies: 1 = look elsewhere, then a new slab; "
			      "0 = the one with the most free objects", 0, 1, "1", false },
};
static const struct alloc_knob knobs_remotequeue[] = {
	KNOB_MIN_PARTIAL, KNOB_CPU_PARTIAL, KNOB_RATIO("100"), KNOB_DEFRAG, KNOBS_SIZING,
	{ "remote_batch", "objects sent home at once", 1, UINT32_MAX,
	  "max(16384 / size, min(256, 262144 / size))", false },
	{ "remote_high", "objects waiting at home above which a batch goes to the slabs", 0,
	  UINT32_MAX, "2 * remote_batch", false },
};
static const struct alloc_knob knobs_6_1[] = {
	KNOB_MIN_PARTIAL, KNOB_CPU_PARTIAL, KNOB_RATIO("100"), KNOB_DEFRAG, KNOBS_SIZING,
};

#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))

ALLOC_ENTRIES(percpu)
ALLOC_ENTRIES_BULK(percpu_each)
ALLOC_ENTRY_PLACED(percpu)

/* The functions every table shares. */
#define PERCPU_OPS                             \
	.struct_size = sizeof(struct alloc_variant), \
	.destroy = percpu_destroy,             \
	ALLOC_ENTRY_OPS_SINGLE(percpu),        \
	.shrink = percpu_shrink,               \
	.set_knob = percpu_set_knob,           \
	.get_knob = percpu_get_knob,           \
	.state = percpu_state,                 \
	.cached = percpu_cached,               \
	.check = percpu_check,                 \
	.dump = percpu_dump,                   \
	.each_free = percpu_each_free
#define PERCPU_COMMON                          \
	PERCPU_OPS,                            \
	.flush_cpu = percpu_flush_cpu,         \
	.alloc_placed = percpu_alloc_placed_entry

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

/* The steps of 5.15 .. 6.7, which most policies use. */
#define PERCPU_STEPS                           \
	.alloc_slow = percpu_alloc_slow,       \
	.find_slab = percpu_find_slab,         \
	.fetch = percpu_fetch,                 \
	.deactivate = percpu_deactivate,       \
	.unfreeze = percpu_unfreeze,           \
	.free_slow = percpu_free_slow

static const struct percpu_policy policy_slub_3_2 = {
	.era = ALLOC_ERA_3_2,
	.weight = PERCPU_WEIGHT_FREE,
	.limit_in_objs = true,
	.drain_above = true,
	.freeze_partials = true,
	.slowpath_per_try = true,
	.count_pushes = true,
	.keep_at_limit = true,
	.clamp_min_partial = true,
	.sort_by_inuse = true,
	.skip_empty_nodes = true,
	.defrag_default = 1000,
	.alloc_slow = percpu_alloc_slow,
	.find_slab = percpu_find_slab,
	.fetch = percpu_fetch_3_2,
	.deactivate = percpu_deactivate_3_2,
	.unfreeze = percpu_unfreeze_3_2,
	.free_slow = percpu_free_slow_3_2,
};

PERCPU_VARIANT(slub_3_2) = {
	PERCPU_COMMON,
	.name = "slub-3.2",
	.era = "3.2",
	.origin = "Linux v3.2 mm/slub.c",
	.what = "first per-cpu partial lists, limited by an estimate of free objects",
	.counters = counters_6_1,
	.nr_counters = NR_COUNTERS_3_2,
	.knobs = knobs_3_2,
	.nr_knobs = COUNT_OF(knobs_3_2),
	.create = create_slub_3_2,
	ALLOC_ENTRY_OPS_BULK(percpu_each),
};

static const struct percpu_policy policy_slub_5_15 = {
	.era = ALLOC_ERA_5_15,
	.weight = PERCPU_WEIGHT_FREE,
	.limit_in_objs = true,
	.drain_above = true,
	.freeze_partials = true,
	.count_first = true,
	.clamp_min_partial = true,
	.defrag_default = 1000,
	PERCPU_STEPS,
};

PERCPU_VARIANT(slub_5_15) = {
	PERCPU_COMMON,
	ALLOC_ENTRY_OPS_BULK(percpu),
	.name = "slub-5.15",
	.era = "5.15",
	.origin = "Linux v5.15 mm/slub.c",
	.what = "per-cpu partial lists limited by an estimate of free objects",
	.counters = counters_6_1,
	.nr_counters = COUNT_OF(counters_6_1),
	.knobs = knobs_3_2,
	.nr_knobs = COUNT_OF(knobs_3_2),
	.create = create_slub_5_15,
};

static const struct percpu_policy policy_slub_6_1 = {
	.era = ALLOC_ERA_6_1,
	.weight = PERCPU_WEIGHT_SLAB,
	.freeze_partials = true,
	.defrag_default = 1000,
	PERCPU_STEPS,
};

PERCPU_VARIANT(slub_6_1) = {
	PERCPU_COMMON,
	ALLOC_ENTRY_OPS_BULK(percpu),
	.name = "slub-6.1",
	.era = "5.16 .. 6.7",
	.origin = "Linux v6.1 mm/slub.c",
	.what = "cpu slab and a per-cpu list of frozen partial slabs, limited in slabs",
	.counters = counters_6_1,
	.nr_counters = COUNT_OF(counters_6_1),
	.knobs = knobs_6_1,
	.nr_knobs = COUNT_OF(knobs_6_1),
	.create = create_slub_6_1,
};

static const struct percpu_policy policy_slub_6_12 = {
	.era = ALLOC_ERA_6_12,
	.weight = PERCPU_WEIGHT_SLAB,
	.count_objs = true,
	.defrag_default = 1000,
	.alloc_slow = percpu_alloc_slow_6_12,
	.find_slab = percpu_find_slab_6_12,
	.fetch = percpu_fetch_6_12,
	.deactivate = percpu_deactivate_6_12,
	.unfreeze = percpu_unfreeze,
	.free_slow = percpu_free_slow,
};

PERCPU_VARIANT(slub_6_12) = {
	PERCPU_COMMON,
	ALLOC_ENTRY_OPS_BULK(percpu),
	.name = "slub-6.12",
	.era = "6.8 .. 6.17",
	.origin = "Linux v6.12 mm/slub.c",
	.what = "as 6.1, slabs on per-cpu lists not frozen",
	.counters = counters_6_1,
	.nr_counters = COUNT_OF(counters_6_1),
	.knobs = knobs_6_1,
	.nr_knobs = COUNT_OF(knobs_6_1),
	.create = create_slub_6_12,
};

static const struct percpu_policy policy_slub_6_1_halffull = {
	.era = ALLOC_ERA_6_1,
	.weight = PERCPU_WEIGHT_HALF,
	.limit_in_objs = true,
	.freeze_partials = true,
	.defrag_default = 1000,
	PERCPU_STEPS,
};

PERCPU_VARIANT(slub_6_1_halffull) = {
	PERCPU_COMMON,
	ALLOC_ENTRY_OPS_BULK(percpu),
	.name = "slub-6.1-halffull",
	.era = "2023",
	.origin = "linux-mm 2023, object accounting RFC, patch 1",
	.what = "6.1 with the per-cpu list limited in objects, half a slab counted for each",
	.counters = counters_6_1,
	.nr_counters = COUNT_OF(counters_6_1),
	.knobs = knobs_6_1,
	.nr_knobs = COUNT_OF(knobs_6_1),
	.create = create_slub_6_1_halffull,
};

static const struct percpu_policy policy_slub_6_1_numalocal = {
	.era = ALLOC_ERA_6_1,
	.weight = PERCPU_WEIGHT_HALF,
	.limit_in_objs = true,
	.freeze_partials = true,
	.defrag_default = 0,
	.alloc_slow = percpu_alloc_slow,
	.find_slab = percpu_find_slab_local,
	.fetch = percpu_fetch,
	.deactivate = percpu_deactivate,
	.unfreeze = percpu_unfreeze,
	.free_slow = percpu_free_slow,
};

PERCPU_VARIANT(slub_6_1_numalocal) = {
	PERCPU_COMMON,
	ALLOC_ENTRY_OPS_BULK(percpu),
	.name = "slub-6.1-numalocal",
	.era = "2023",
	.origin = "linux-mm 2023, object accounting RFC, patches 1 and 2",
	.what = "halffull, and a new local slab before slabs of other nodes",
	.counters = counters_6_1,
	.nr_counters = COUNT_OF(counters_6_1),
	.knobs = knobs_numalocal,
	.nr_knobs = COUNT_OF(knobs_numalocal),
	.create = create_slub_6_1_numalocal,
};

static const struct percpu_policy policy_slub_6_1_minfree = {
	.era = ALLOC_ERA_6_1,
	.weight = PERCPU_WEIGHT_SLAB,
	.freeze_partials = true,
	.minfree = true,
	.defrag_default = 1000,
	PERCPU_STEPS,
};

PERCPU_VARIANT(slub_6_1_minfree) = {
	PERCPU_COMMON,
	ALLOC_ENTRY_OPS_BULK(percpu),
	.name = "slub-6.1-minfree",
	.era = "2011",
	.origin = "linux-mm, December 2011, as a change to 6.1",
	.what = "6.1 that takes only partial slabs with enough free objects",
	.counters = counters_minfree,
	.nr_counters = COUNT_OF(counters_minfree),
	.knobs = knobs_minfree,
	.nr_knobs = COUNT_OF(knobs_minfree),
	.create = create_slub_6_1_minfree,
};

static const struct percpu_policy policy_slub_6_1_remotequeue = {
	.era = ALLOC_ERA_6_1,
	.weight = PERCPU_WEIGHT_SLAB,
	.freeze_partials = true,
	.queues = true,
	.defrag_default = 1000,
	.alloc_slow = percpu_remote_alloc_slow,
	.find_slab = percpu_find_slab,
	.fetch = percpu_fetch,
	.deactivate = percpu_deactivate,
	.unfreeze = percpu_unfreeze,
	.free_slow = percpu_remote_free_slow,
};

PERCPU_VARIANT(slub_6_1_remotequeue) = {
	PERCPU_OPS,
	ALLOC_ENTRY_OPS_BULK(percpu),
	.flush_cpu = percpu_remote_flush_cpu,
	.name = "slub-6.1-remotequeue",
	.era = "2011",
	.origin = "linux-mm 2011 (idea); design of this project, numbers of SLQB",
	.what = "6.1 with frees of other CPUs' objects queued and sent home in batches",
	.counters = counters_remotequeue,
	.nr_counters = COUNT_OF(counters_remotequeue),
	.knobs = knobs_remotequeue,
	.nr_knobs = COUNT_OF(knobs_remotequeue),
	.create = create_slub_6_1_remotequeue,
};
