/* SPDX-License-Identifier: MIT */
/*
 * Statistics counters: one 64-bit cell per counter, CPU and cache.
 *
 * Names are the kernel's sysfs names, letter for letter (lower case of enum stat_item in
 * mm/slub.c of 2.6.30 .. 7.2); SLQB names as in its mm/slqb.c.  A variant lists the ones it has;
 * the others stay zero and are not shown.  The CPU that executes the step is charged.
 * Sync: a cell is written by its CPU's owner only; readers may see a value that is a moment old.
 */
#ifndef SLABTAPE_ALLOCATOR_COUNTERS_H
#define SLABTAPE_ALLOCATOR_COUNTERS_H

#include <stdint.h>

/* X(enum suffix, name) */
#define ALLOC_COUNTERS(X)                                    \
	X(ALLOC_FASTPATH, "alloc_fastpath")                  \
	X(ALLOC_SLOWPATH, "alloc_slowpath")                  \
	X(FREE_RCU_SHEAF, "free_rcu_sheaf")                  \
	X(FREE_RCU_SHEAF_FAIL, "free_rcu_sheaf_fail")        \
	X(FREE_FASTPATH, "free_fastpath")                    \
	X(FREE_SLOWPATH, "free_slowpath")                    \
	X(FREE_FROZEN, "free_frozen")                        \
	X(FREE_ADD_PARTIAL, "free_add_partial")              \
	X(FREE_REMOVE_PARTIAL, "free_remove_partial")        \
	X(ALLOC_FROM_PARTIAL, "alloc_from_partial")          \
	X(ALLOC_SLAB, "alloc_slab")                          \
	X(ALLOC_REFILL, "alloc_refill")                      \
	X(ALLOC_NODE_MISMATCH, "alloc_node_mismatch")        \
	X(FREE_SLAB, "free_slab")                            \
	X(CPUSLAB_FLUSH, "cpuslab_flush")                    \
	X(DEACTIVATE_FULL, "deactivate_full")                \
	X(DEACTIVATE_EMPTY, "deactivate_empty")              \
	X(DEACTIVATE_TO_HEAD, "deactivate_to_head")          \
	X(DEACTIVATE_TO_TAIL, "deactivate_to_tail")          \
	X(DEACTIVATE_REMOTE_FREES, "deactivate_remote_frees") \
	X(DEACTIVATE_BYPASS, "deactivate_bypass")            \
	X(ORDER_FALLBACK, "order_fallback")                  \
	X(CMPXCHG_DOUBLE_CPU_FAIL, "cmpxchg_double_cpu_fail") \
	X(CMPXCHG_DOUBLE_FAIL, "cmpxchg_double_fail")        \
	X(CPU_PARTIAL_ALLOC, "cpu_partial_alloc")            \
	X(CPU_PARTIAL_FREE, "cpu_partial_free")              \
	X(CPU_PARTIAL_NODE, "cpu_partial_node")              \
	X(CPU_PARTIAL_DRAIN, "cpu_partial_drain")            \
	X(SHEAF_FLUSH, "sheaf_flush")                        \
	X(SHEAF_REFILL, "sheaf_refill")                      \
	X(SHEAF_ALLOC, "sheaf_alloc")                        \
	X(SHEAF_FREE, "sheaf_free")                          \
	X(BARN_GET, "barn_get")                              \
	X(BARN_GET_FAIL, "barn_get_fail")                    \
	X(BARN_PUT, "barn_put")                              \
	X(BARN_PUT_FAIL, "barn_put_fail")                    \
	X(SHEAF_PREFILL_FAST, "sheaf_prefill_fast")          \
	X(SHEAF_PREFILL_SLOW, "sheaf_prefill_slow")          \
	X(SHEAF_PREFILL_OVERSIZE, "sheaf_prefill_oversize")  \
	X(SHEAF_RETURN_FAST, "sheaf_return_fast")            \
	X(SHEAF_RETURN_SLOW, "sheaf_return_slow")            \
	X(PARK_SLAB, "park_slab")                            \
	X(UNPARK_SLAB, "unpark_slab")                        \
	X(UNPARK_EVENT, "unpark_event")                      \
	/* SLQB (CONFIG_SLQB_STATS names, lower case) */     \
	X(ALLOC, "alloc")                                    \
	X(ALLOC_SLAB_FILL, "alloc_slab_fill")                \
	X(ALLOC_SLAB_NEW, "alloc_slab_new")                  \
	X(FREE, "free")                                      \
	X(FREE_REMOTE, "free_remote")                        \
	X(FLUSH_FREE_LIST, "flush_free_list")                \
	X(FLUSH_FREE_LIST_OBJECTS, "flush_free_list_objects") \
	X(FLUSH_FREE_LIST_REMOTE, "flush_free_list_remote")  \
	X(FLUSH_SLAB_PARTIAL, "flush_slab_partial")          \
	X(FLUSH_SLAB_FREE, "flush_slab_free")                \
	X(FLUSH_RFREE_LIST, "flush_rfree_list")              \
	X(FLUSH_RFREE_LIST_OBJECTS, "flush_rfree_list_objects") \
	X(CLAIM_REMOTE_LIST, "claim_remote_list")            \
	X(CLAIM_REMOTE_LIST_OBJECTS, "claim_remote_list_objects") \
	/* this project's own: never part of a comparison with a kernel */ \
	X(THRASH_ENTER, "thrash_enter")                      \
	X(THRASH_SKIP, "thrash_skip")                        \
	X(THRASH_NEW_SLAB, "thrash_new_slab")                \
	X(MINFREE_SKIP, "minfree_skip")                      \
	X(MINFREE_BEST, "minfree_best")                      \
	X(MINFREE_NEW, "minfree_new")                        \
	X(REMOTE_QUEUE, "remote_queue")                      \
	X(REMOTE_FLUSH, "remote_flush")                      \
	X(REMOTE_FLUSH_OBJECTS, "remote_flush_objects")      \
	X(REMOTE_CLAIM, "remote_claim")                      \
	X(REMOTE_CLAIM_OBJECTS, "remote_claim_objects")      \
	/* always kept, shown as free_class: one count per call of the free-to-slab slow path */ \
	X(CLASS_PARTIAL_PARTIAL, "partial->partial")         \
	X(CLASS_FULL_PARTIAL, "full->partial")               \
	X(CLASS_PARTIAL_EMPTY, "partial->empty")             \
	X(CLASS_FULL_EMPTY, "full->empty")

enum alloc_counter {
#define ALLOC_COUNTER_ENUM(id, name) ALLOC_C_##id,
	ALLOC_COUNTERS(ALLOC_COUNTER_ENUM)
#undef ALLOC_COUNTER_ENUM
	ALLOC_C_MAX
};

/* Cells per CPU row: a whole number of cache lines, so that CPUs do not share one. */
#define ALLOC_COUNTER_ROW ((ALLOC_C_MAX + 7u) / 8u * 8u)

/* The sysfs name of a counter; static memory. */
__attribute__((visibility("default"))) const char *
alloc_counter_name(enum alloc_counter c);

#endif
