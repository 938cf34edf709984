/* SPDX-License-Identifier: MIT */
/*
 * Synchronisation of the variants: the only door to state that several CPUs share.
 *
 * Every file in allocator/variants/ is compiled three times, with ALLOC_SYNC = 0, 1, 2:
 *
 *	sync_serial.h   one thread runs every CPU: locks only check that they nest, no atomics
 *	sync_native.h   real spin locks, 16-byte compare-exchange, explicitly ordered atomics
 *	sync_sim.h      simulated clock: every access first yields to the virtual CPU whose time is
 *	                smaller; locks are exact FIFO queues (hooks set by the simulated engine)
 *
 * Lock order, lowest first (checked when NDEBUG is not set): enum alloc_rank.  A CPU may hold
 * several locks of different rank, never two of the same rank.
 *
 * Each header provides, all taking the traced CPU number that executes the operation:
 *
 *	void alloc_lock_acquire(struct alloc_lock *l, uint32_t cpu, enum alloc_lock_path path);
 *	bool alloc_lock_try(struct alloc_lock *l, uint32_t cpu, enum alloc_lock_path path);
 *	void alloc_lock_release(struct alloc_lock *l, uint32_t cpu);
 *	    acquire pairs with release of the previous holder.
 *
 *	struct alloc_slab_word alloc_word_read(uint32_t cpu, const struct alloc_slab *s);
 *	bool alloc_word_cmpxchg(uint32_t cpu, struct alloc_slab *s, struct alloc_slab_word old,
 *				struct alloc_slab_word new);
 *	    Full compare-exchange of the 16 bytes; acquire and release.  A failed one changes
 *	    nothing and is the caller's to count (CMPXCHG_DOUBLE_FAIL).
 *
 *	uint64_t alloc_racy_read(uint32_t cpu, const uint64_t *p);
 *	    Read of a number another CPU may be changing (nr_partial, barn counts), relaxed.
 *	void alloc_shared_write(uint64_t *p, uint64_t value);     under the lock that owns *p
 *	void alloc_shared_add(uint32_t cpu, uint64_t *p, int64_t delta);   atomic, relaxed
 *
 *	void alloc_list_touch(const struct alloc_link *l);
 *	    Under the lock of a list, before a link of it changes: the line of @l comes to this CPU.
 *	    Only the simulated build charges it; the CPU is the running one.
 *
 *	void *alloc_ptr_xchg(uint32_t cpu, void **p, void *value);          lock-free lists
 *	bool alloc_ptr_cmpxchg(uint32_t cpu, void **p, void *old, void *value);
 *	void *alloc_ptr_read(uint32_t cpu, void *const *p);
 */
#ifndef SLABTAPE_ALLOCATOR_SYNC_H
#define SLABTAPE_ALLOCATOR_SYNC_H

#include "allocator/entry.h"
#include "allocator/locks.h"
#include "allocator/slab.h"

#ifndef ALLOC_SYNC
#error "allocator/sync.h is for files of allocator/variants/, built once per ALLOC_SYNC"
#elif ALLOC_SYNC == 0
#define ALLOC_SYNC_SUFFIX _serial
#include "allocator/sync_serial.h"
#elif ALLOC_SYNC == 1
#define ALLOC_SYNC_SUFFIX _native
#include "allocator/sync_native.h"
#elif ALLOC_SYNC == 2
#define ALLOC_SYNC_SUFFIX _sim
#include "allocator/sync_sim.h"
#else
#error "ALLOC_SYNC must be 0 (serial), 1 (native) or 2 (sim)"
#endif

/* Name of a symbol of this build: ALLOC_FN(alloc_variant_null) -> alloc_variant_null_serial. */
#define ALLOC_PASTE_(a, b) a##b
#define ALLOC_PASTE(a, b) ALLOC_PASTE_(a, b)
#define ALLOC_FN(name) ALLOC_PASTE(name, ALLOC_SYNC_SUFFIX)

/*
 * The one definition a variant file exports: near the top ALLOC_VARIANT_DECLARE(slub_6_1); at the
 * end ALLOC_VARIANT(slub_6_1) = { ... };
 */
#define ALLOC_VARIANT(id) const struct alloc_variant ALLOC_FN(alloc_variant_##id)
#define ALLOC_VARIANT_DECLARE(id) extern ALLOC_VARIANT(id)

#endif
