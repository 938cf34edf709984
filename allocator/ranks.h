/* SPDX-License-Identifier: MIT */
/*
 * The lock order (allocator/locks.h), checked in debug builds: every CPU remembers how many locks
 * of each rank it holds.  A lock may be taken when all that the CPU holds are of smaller rank; a
 * try may come in any order, because it does not wait.  No code in builds with NDEBUG.
 */
#ifndef SLABTAPE_ALLOCATOR_RANKS_H
#define SLABTAPE_ALLOCATOR_RANKS_H

#include "allocator/locks.h"
#include "allocator/slab.h"

/* @cpu is about to wait for a lock of @rank. */
static inline void alloc_rank_check(const struct alloc_machine *m, uint32_t cpu, uint32_t rank)
{
	for (uint32_t r = rank; r < ALLOC_RANK_MAX; r++)
		assert(!m->held[cpu].nr[r] && "a lock of this or a higher rank is held");
	(void)m;
	(void)cpu;
}

static inline void alloc_rank_taken(const struct alloc_machine *m, uint32_t cpu, uint32_t rank)
{
#ifndef NDEBUG
	m->held[cpu].nr[rank]++;
#endif
	(void)m;
	(void)cpu;
	(void)rank;
}

static inline void alloc_rank_released(const struct alloc_machine *m, uint32_t cpu, uint32_t rank)
{
#ifndef NDEBUG
	assert(m->held[cpu].nr[rank] && "no lock of this rank is held by this CPU");
	m->held[cpu].nr[rank]--;
#endif
	(void)m;
	(void)cpu;
	(void)rank;
}

/* The same for a lock; the simulated engine's zone locks belong to no cache and nest in nothing. */
static inline void alloc_lock_check(const struct alloc_lock *l, uint32_t cpu)
{
	if (l->cache)
		alloc_rank_check(l->cache->machine, cpu, l->rank);
}
static inline void alloc_lock_taken(const struct alloc_lock *l, uint32_t cpu)
{
	if (l->cache)
		alloc_rank_taken(l->cache->machine, cpu, l->rank);
}
static inline void alloc_lock_released(const struct alloc_lock *l, uint32_t cpu)
{
	if (l->cache)
		alloc_rank_released(l->cache->machine, cpu, l->rank);
}

#endif
