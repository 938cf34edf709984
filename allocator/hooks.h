/* SPDX-License-Identifier: MIT */
/*
 * The observer: what an allocator tells whoever listens.  One pointer per machine, NULL when
 * nobody does; variants test it with one predictable branch (alloc_observed()).
 *
 * Callbacks run inside the operation, on its thread, possibly under list_lock: they must not call
 * the allocator and must not block.  With the native build they run in parallel for different
 * CPUs.  Slab pointers are borrowed for the duration of the call.
 */
#ifndef SLABTAPE_ALLOCATOR_HOOKS_H
#define SLABTAPE_ALLOCATOR_HOOKS_H

#include <stdint.h>

struct alloc_cache;
struct alloc_slab;

#pragma GCC visibility push(default) /* libslab's public functions */

/* Where a slab is.  Order and names are those of the SQL column transition.from_state. */
enum alloc_state {
	ALLOC_STATE_NONE = 0,	 /* at the page allocator */
	ALLOC_STATE_CPU,	 /* some CPU's cpu slab */
	ALLOC_STATE_CPU_PARTIAL, /* on a per-cpu partial list */
	ALLOC_STATE_PARTIAL,	 /* on a node partial list, inuse > 0 */
	ALLOC_STATE_FULL,	 /* on no list, nothing free on its own list */
	ALLOC_STATE_EMPTY,	 /* kept on a list with inuse 0 */
	ALLOC_STATE_PARKED,
	ALLOC_STATE_DETACHED,	 /* taken off a list by a refill that is under way */
	ALLOC_STATE_MAX
};
const char *alloc_state_name(enum alloc_state s);

enum alloc_refill_source {
	ALLOC_REFILL_CPU_PARTIAL = 0,
	ALLOC_REFILL_NODE_PARTIAL,
	ALLOC_REFILL_REMOTE_NODE,
	ALLOC_REFILL_NEW_SLAB,
	ALLOC_REFILL_SPARE,
	ALLOC_REFILL_BARN,
	ALLOC_REFILL_MAX
};
const char *alloc_refill_source_name(enum alloc_refill_source s);

enum alloc_lock_kind { ALLOC_LOCK_LIST = 0, ALLOC_LOCK_BARN, ALLOC_LOCK_SLAB, ALLOC_LOCK_ALIEN,
	ALLOC_LOCK_REMOTE, ALLOC_LOCK_ZONE, ALLOC_LOCK_MAX };
enum alloc_lock_path { ALLOC_PATH_FREE = 0, ALLOC_PATH_REFILL, ALLOC_PATH_ALLOC_SLOWPATH,
	ALLOC_PATH_DRAIN, ALLOC_PATH_DEACTIVATE, ALLOC_PATH_FLUSH, ALLOC_PATH_UNPARK,
	ALLOC_PATH_SHRINK, ALLOC_PATH_REAP, ALLOC_PATH_PAGE, ALLOC_PATH_MAX };
const char *alloc_lock_kind_name(enum alloc_lock_kind k);
const char *alloc_lock_path_name(enum alloc_lock_path p);

struct alloc_observer {
	void *ctx;
	/* A slab moved from state @from to @to (they differ); its inuse is already the new one. */
	void (*transition)(void *ctx, const struct alloc_cache *c, const struct alloc_slab *s,
			   uint32_t cpu, enum alloc_state from, enum alloc_state to);
	/* A refill obtained @objs usable objects. */
	void (*refill)(void *ctx, const struct alloc_cache *c, uint32_t cpu,
		       enum alloc_refill_source source, uint32_t objs);
	/*
	 * An object goes to the caller or comes from it (free and free_rcu), one call for each
	 * object of a bulk call too; outside all locks.  No object is out twice in the order of
	 * calls: an allocation is told when it is done, a free before it begins.
	 */
	void (*alloc)(void *ctx, const struct alloc_cache *c, uint32_t cpu, void *obj);
	void (*free)(void *ctx, const struct alloc_cache *c, uint32_t cpu, void *obj);
	/* One acquisition (@wait_ns 0 when uncontended) or a failed try (@acquired false). */
	void (*lock)(void *ctx, const struct alloc_cache *c, uint32_t cpu, uint16_t node,
		     enum alloc_lock_kind kind, enum alloc_lock_path path, int acquired,
		     uint64_t wait_ns);
};

#pragma GCC visibility pop

#endif
