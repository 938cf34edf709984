/* SPDX-License-Identifier: MIT */
/* Native build of sync.h: real spin locks and atomics, one thread per CPU number at a time. */
#ifndef SLABTAPE_ALLOCATOR_SYNC_NATIVE_H
#define SLABTAPE_ALLOCATOR_SYNC_NATIVE_H

#include <sched.h>
#include <time.h>

#include "allocator/locks.h"
#include "allocator/ranks.h"
#include "allocator/slab.h"

static inline void alloc_lock_told(struct alloc_lock *l, uint32_t cpu, enum alloc_lock_path path,
				   int acquired, uint64_t wait_ns)
{
	const struct alloc_observer *o = l->cache ? l->cache->machine->observer : NULL;

	if (__builtin_expect(o && o->lock, 0))
		o->lock(o->ctx, l->cache, cpu, l->node, l->kind, path, acquired, wait_ns);
}

static inline bool alloc_lock_grab(struct alloc_lock *l, uint32_t cpu)
{
	uint32_t free_word = 0;

	/* Acquire pairs with the release in alloc_lock_release(); weaker would let reads of the
	 * protected lists move above the lock. */
	return __atomic_compare_exchange_n(&l->held, &free_word, cpu + 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static inline uint64_t alloc_lock_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Spin a little, then give the core away: with more CPUs than cores the holder may be waiting. */
static __attribute__((noinline, unused)) uint64_t alloc_lock_wait(struct alloc_lock *l, uint32_t cpu)
{
	uint64_t start_ns = alloc_lock_clock_ns();
	unsigned int spins = 0;

	while (__atomic_load_n(&l->held, __ATOMIC_RELAXED) || !alloc_lock_grab(l, cpu))
		if (++spins % 64 == 0)
			sched_yield();
	return alloc_lock_clock_ns() - start_ns;
}

static inline void alloc_lock_acquire(struct alloc_lock *l, uint32_t cpu, enum alloc_lock_path path)
{
	uint64_t wait_ns = 0;

	/* Relaxed: only this CPU can have stored its own number here. */
	assert(__atomic_load_n(&l->held, __ATOMIC_RELAXED) != cpu + 1);
	alloc_lock_check(l, cpu);
	if (!alloc_lock_grab(l, cpu))
		wait_ns = alloc_lock_wait(l, cpu);
	alloc_lock_taken(l, cpu);
	alloc_lock_told(l, cpu, path, 1, wait_ns);
}

static inline bool alloc_lock_try(struct alloc_lock *l, uint32_t cpu, enum alloc_lock_path path)
{
	bool got = alloc_lock_grab(l, cpu);

	if (got)
		alloc_lock_taken(l, cpu);
	alloc_lock_told(l, cpu, path, got, 0);
	return got;
}

static inline void alloc_lock_release(struct alloc_lock *l, uint32_t cpu)
{
	assert(__atomic_load_n(&l->held, __ATOMIC_RELAXED) == cpu + 1);
	alloc_lock_released(l, cpu);
	/* Pairs with alloc_lock_grab(). */
	__atomic_store_n(&l->held, 0, __ATOMIC_RELEASE);
}

__extension__ typedef unsigned __int128 alloc_word_bits_t;

static inline alloc_word_bits_t alloc_word_bits(struct alloc_slab_word w)
{
	alloc_word_bits_t bits;

	__builtin_memcpy(&bits, &w, sizeof(bits));
	return bits;
}

/*
 * Two 8-byte loads may tear against a concurrent compare-exchange; a torn value then fails the
 * caller's own compare-exchange, so the counts may be read relaxed.  The freelist is read with
 * acquire: it pairs with alloc_word_cmpxchg(), so that links inside the objects it names are seen
 * by a caller that follows them before its exchange.
 */
static inline struct alloc_slab_word alloc_word_read(uint32_t cpu, const struct alloc_slab *s)
{
	const uint64_t *half = (const uint64_t *)(const void *)&s->word;
	uint64_t bits[2];
	struct alloc_slab_word w;

	(void)cpu;
	bits[1] = __atomic_load_n(&half[1], __ATOMIC_RELAXED);
	bits[0] = __atomic_load_n(&half[0], __ATOMIC_ACQUIRE);
	__builtin_memcpy(&w, bits, sizeof(w));
	return w;
}

static inline bool alloc_word_cmpxchg(uint32_t cpu, struct alloc_slab *s, struct alloc_slab_word old,
				      struct alloc_slab_word new)
{
	(void)cpu;
	/* Full barrier: publishes the links written into freed objects, and sees those of others. */
	return __sync_bool_compare_and_swap((alloc_word_bits_t *)(void *)&s->word,
					    alloc_word_bits(old), alloc_word_bits(new));
}

static inline uint64_t alloc_racy_read(uint32_t cpu, const uint64_t *p)
{
	(void)cpu;
	return __atomic_load_n(p, __ATOMIC_RELAXED); /* the caller rechecks under the lock */
}

static inline void alloc_shared_write(uint64_t *p, uint64_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELAXED); /* ordered by the lock that owns *p */
}

static inline void alloc_list_touch(const struct alloc_link *l)
{
	(void)l;
}

static inline void alloc_shared_add(uint32_t cpu, uint64_t *p, int64_t delta)
{
	(void)cpu;
	__atomic_fetch_add(p, (uint64_t)delta, __ATOMIC_RELAXED); /* a statistic */
}

static inline void *alloc_ptr_xchg(uint32_t cpu, void **p, void *value)
{
	(void)cpu;
	return __atomic_exchange_n(p, value, __ATOMIC_ACQ_REL); /* pairs with alloc_ptr_cmpxchg() */
}

static inline bool alloc_ptr_cmpxchg(uint32_t cpu, void **p, void *old, void *value)
{
	(void)cpu;
	return __atomic_compare_exchange_n(p, &old, value, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

static inline void *alloc_ptr_read(uint32_t cpu, void *const *p)
{
	(void)cpu;
	return __atomic_load_n(p, __ATOMIC_ACQUIRE); /* pairs with alloc_ptr_cmpxchg() */
}

#endif
