/* SPDX-License-Identifier: MIT */
/* Serial build of sync.h: one thread runs all CPUs, nothing is contended, nothing can fail. */
#ifndef SLABTAPE_ALLOCATOR_SYNC_SERIAL_H
#define SLABTAPE_ALLOCATOR_SYNC_SERIAL_H

#include "allocator/locks.h"
#include "allocator/ranks.h"
#include "allocator/slab.h"

static inline void alloc_lock_told(struct alloc_lock *l, uint32_t cpu, enum alloc_lock_path path)
{
	const struct alloc_observer *o = l->cache ? l->cache->machine->observer : NULL;

	if (__builtin_expect(o && o->lock, 0))
		o->lock(o->ctx, l->cache, cpu, l->node, l->kind, path, 1, 0);
}

static inline bool alloc_lock_try(struct alloc_lock *l, uint32_t cpu, enum alloc_lock_path path)
{
	assert(!l->held);
	l->held = cpu + 1;
	alloc_lock_taken(l, cpu);
	alloc_lock_told(l, cpu, path);
	return true;
}

static inline void alloc_lock_acquire(struct alloc_lock *l, uint32_t cpu, enum alloc_lock_path path)
{
	alloc_lock_check(l, cpu);
	alloc_lock_try(l, cpu, path);
}

static inline void alloc_lock_release(struct alloc_lock *l, uint32_t cpu)
{
	assert(l->held == cpu + 1);
	alloc_lock_released(l, cpu);
	l->held = 0;
}

static inline struct alloc_slab_word alloc_word_read(uint32_t cpu, const struct alloc_slab *s)
{
	(void)cpu;
	return s->word;
}

static inline bool alloc_word_cmpxchg(uint32_t cpu, struct alloc_slab *s, struct alloc_slab_word old,
				      struct alloc_slab_word new)
{
	(void)cpu;
	(void)old;
	assert(s->word.freelist == old.freelist && s->word.inuse == old.inuse);
	s->word = new;
	return true;
}

static inline uint64_t alloc_racy_read(uint32_t cpu, const uint64_t *p)
{
	(void)cpu;
	return *p;
}

static inline void alloc_shared_write(uint64_t *p, uint64_t value)
{
	*p = value;
}

static inline void alloc_list_touch(const struct alloc_link *l)
{
	(void)l;
}

static inline void alloc_shared_add(uint32_t cpu, uint64_t *p, int64_t delta)
{
	(void)cpu;
	*p += (uint64_t)delta;
}

static inline void *alloc_ptr_xchg(uint32_t cpu, void **p, void *value)
{
	void *old = *p;

	(void)cpu;
	*p = value;
	return old;
}

static inline bool alloc_ptr_cmpxchg(uint32_t cpu, void **p, void *old, void *value)
{
	(void)cpu;
	(void)old;
	assert(*p == old);
	*p = value;
	return true;
}

static inline void *alloc_ptr_read(uint32_t cpu, void *const *p)
{
	(void)cpu;
	return *p;
}

#endif
