/* SPDX-License-Identifier: MIT */
/* Simulated build of sync.h: every access to shared state first lets earlier virtual CPUs run. */
#ifndef SLABTAPE_ALLOCATOR_SYNC_SIM_H
#define SLABTAPE_ALLOCATOR_SYNC_SIM_H

#include "allocator/locks.h"
#include "allocator/slab.h"

static inline void alloc_lock_acquire(struct alloc_lock *l, uint32_t cpu, enum alloc_lock_path path)
{
	alloc_sim_hooks->lock(cpu, l, path);
}

static inline bool alloc_lock_try(struct alloc_lock *l, uint32_t cpu, enum alloc_lock_path path)
{
	return alloc_sim_hooks->trylock(cpu, l, path);
}

static inline void alloc_lock_release(struct alloc_lock *l, uint32_t cpu)
{
	alloc_sim_hooks->unlock(cpu, l);
}

static inline struct alloc_slab_word alloc_word_read(uint32_t cpu, const struct alloc_slab *s)
{
	alloc_sim_hooks->shared(cpu, s, ALLOC_SIM_READ);
	return s->word;
}

static inline bool alloc_word_cmpxchg(uint32_t cpu, struct alloc_slab *s, struct alloc_slab_word old,
				      struct alloc_slab_word new)
{
	alloc_sim_hooks->shared(cpu, s, ALLOC_SIM_CMPXCHG);
	if (__builtin_memcmp(&s->word, &old, sizeof(old)))
		return false;
	s->word = new;
	return true;
}

static inline uint64_t alloc_racy_read(uint32_t cpu, const uint64_t *p)
{
	alloc_sim_hooks->shared(cpu, p, ALLOC_SIM_READ);
	return *p;
}

static inline void alloc_shared_write(uint64_t *p, uint64_t value)
{
	*p = value;
}

static inline void alloc_list_touch(const struct alloc_link *l)
{
	alloc_sim_hooks->shared(0, l, ALLOC_SIM_LINK);
}

static inline void alloc_shared_add(uint32_t cpu, uint64_t *p, int64_t delta)
{
	alloc_sim_hooks->shared(cpu, p, ALLOC_SIM_WRITE);
	*p += (uint64_t)delta;
}

static inline void *alloc_ptr_xchg(uint32_t cpu, void **p, void *value)
{
	void *old;

	alloc_sim_hooks->shared(cpu, p, ALLOC_SIM_CMPXCHG);
	old = *p;
	*p = value;
	return old;
}

static inline bool alloc_ptr_cmpxchg(uint32_t cpu, void **p, void *old, void *value)
{
	alloc_sim_hooks->shared(cpu, p, ALLOC_SIM_CMPXCHG);
	if (*p != old)
		return false;
	*p = value;
	return true;
}

static inline void *alloc_ptr_read(uint32_t cpu, void *const *p)
{
	alloc_sim_hooks->shared(cpu, p, ALLOC_SIM_READ);
	return *p;
}

#endif
