/* SPDX-License-Identifier: MIT */
/*
 * Locks of the variants: the data, the ranks, and the hooks of the simulated build.
 *
 * ALLOC_RANK_VARIANT  a variant's own cache-wide lock
 * ALLOC_RANK_CPU      a CPU's private state (only where another CPU may reach into it)
 * ALLOC_RANK_BARN     per cache and node: full and empty sheaf lists
 * ALLOC_RANK_SLAB     2.6.30 slab_lock
 * ALLOC_RANK_NODE_LIST per cache and node: partial list links, nr_partial (list_lock)
 * ALLOC_RANK_LEAF     page provider
 *
 * Lowest first, each rank at most once; checked in debug builds (allocator/ranks.h).  2.6.30 takes
 * slab_lock before list_lock and inverts that with a trylock while scanning; a try is exempt.
 */
#ifndef SLABTAPE_ALLOCATOR_LOCKS_H
#define SLABTAPE_ALLOCATOR_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/hooks.h"

enum alloc_rank { ALLOC_RANK_VARIANT = 0, ALLOC_RANK_CPU, ALLOC_RANK_BARN, ALLOC_RANK_SLAB,
	ALLOC_RANK_NODE_LIST, ALLOC_RANK_LEAF, ALLOC_RANK_MAX };

/* How many locks of each rank a CPU holds; kept in debug builds.  Sync: owner CPU only. */
struct alloc_held {
	uint8_t nr[ALLOC_RANK_MAX];
} __attribute__((aligned(64)));

struct alloc_lock {
	uint32_t held;		   /* 0 free; holder's CPU + 1.  Sync: atomic in the native build */
	uint8_t kind;		   /* enum alloc_lock_kind */
	uint8_t rank;		   /* enum alloc_rank */
	uint16_t node;
	struct alloc_cache *cache; /* NULL for the page provider */
	void *sim;		   /* the simulated engine's queue, NULL until first used */
};

static inline void alloc_lock_init(struct alloc_lock *l, struct alloc_cache *c, uint16_t node,
				   enum alloc_lock_kind kind, enum alloc_rank rank)
{
	*l = (struct alloc_lock){ .kind = (uint8_t)kind, .rank = (uint8_t)rank, .node = node,
				  .cache = c };
}

/*
 * What the simulated engine provides.  `shared` is called before every access to shared state
 * and returns when the calling virtual CPU is the one with the smallest (time, cpu).
 * Only one virtual CPU runs at any moment, so the data itself needs no atomics.
 */
enum alloc_sim_access { ALLOC_SIM_READ, ALLOC_SIM_WRITE, /* atomic */ ALLOC_SIM_CMPXCHG,
	ALLOC_SIM_LINK /* plain write under a lock */ };
struct alloc_sim_hooks {
	void (*shared)(uint32_t cpu, const void *address, enum alloc_sim_access access);
	void (*lock)(uint32_t cpu, struct alloc_lock *l, enum alloc_lock_path path);
	bool (*trylock)(uint32_t cpu, struct alloc_lock *l, enum alloc_lock_path path);
	void (*unlock)(uint32_t cpu, struct alloc_lock *l);
	/* Virtual cost of getting or returning 2^order pages, after the zone lock was taken. */
	void (*page_work)(uint32_t cpu, uint16_t node, uint32_t order, bool get);
};
/* Set by the engine before the first operation on a sim machine; one engine at a time. */
void alloc_sim_set_hooks(const struct alloc_sim_hooks *hooks);
extern const struct alloc_sim_hooks *alloc_sim_hooks;

#endif
