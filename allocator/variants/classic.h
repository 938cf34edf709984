/* SPDX-License-Identifier: MIT */
/*
 * SLUB of 2.6.30: what its two files share.
 *
 *	 CPU c                         node n
 *	+----------------------+      +-----------------------------+
 *	| freelist -> o -> o   |      | list_lock  nr_partial       |
 *	| slab     -> cpu slab |      | partial: [head] .. [tail]   |
 *	+----------------------+      +-----------------------------+
 *	                               full slabs: on no list
 *
 * A slab's own list, count and frozen mark are guarded by the slab's lock (alloc_slab.lock), not
 * by compare-exchange.  slab lock -> list_lock; the scan of a node list tries slab locks.
 *
 *	slub_classic.c    variants, allocation, free, deactivation, the thrash rules
 *	classic_cache.c   creation, knobs, shrink, state, check, dump
 */
#ifndef SLABTAPE_ALLOCATOR_CLASSIC_H
#define SLABTAPE_ALLOCATOR_CLASSIC_H

#include "allocator/partial.h"
#include "allocator/sizing.h"
#include "allocator/sync.h"

/* Sync: owner CPU only. */
struct classic_cpu {
	void *freelist;		 /* objects of `slab` handed to this CPU */
	struct alloc_slab *slab; /* NULL: none, then freelist is NULL too */
	uint32_t fastpath;	 /* thrash: allocations served since the last slow path */
	uint32_t slow_count;	 /* thrash: consecutive loads that served too few */
} __attribute__((aligned(64)));

struct classic_cache {
	struct alloc_cache head;
	struct classic_cpu *cpus;
	struct alloc_node *nodes;
	uint64_t min_partial;
	uint32_t defrag_ratio; /* 0..1024 */
	/* slub-2.6.30-thrash; all 0 in slub-2.6.30 */
	uint32_t thrash_ratio;	 /* percent of a slab a load should serve, 0 = off */
	uint32_t thrash_limit;	 /* bad loads in a row that make a CPU thrash */
	uint32_t thrash_select;	 /* 1: a thrashing CPU skips slabs with too few free objects */
	uint32_t thrash_sort;	 /* 1: its adds to a node list go to the end by free objects */
};

#define classic_flush_cpu ALLOC_FN(classic_flush_cpu)
#define classic_discard ALLOC_FN(classic_discard)
#define classic_create ALLOC_FN(classic_create)
#define classic_destroy ALLOC_FN(classic_destroy)
#define classic_shrink ALLOC_FN(classic_shrink)
#define classic_set_knob ALLOC_FN(classic_set_knob)
#define classic_get_knob ALLOC_FN(classic_get_knob)
#define classic_cached ALLOC_FN(classic_cached)
#define classic_state ALLOC_FN(classic_state)
#define classic_check ALLOC_FN(classic_check)
#define classic_dump ALLOC_FN(classic_dump)
#define classic_each_free ALLOC_FN(classic_each_free)

void classic_flush_cpu(struct alloc_cache *c, uint32_t cpu);
/* Give an empty slab back; only the node totals move. */
void classic_discard(struct classic_cache *k, uint32_t cpu, struct alloc_slab *s);
int classic_create(const struct alloc_variant *v, struct alloc_machine *m,
		   const struct alloc_cache_config *cfg, struct alloc_cache **ret_cache);
void classic_destroy(struct alloc_cache *c);
void classic_shrink(struct alloc_cache *c);
int classic_set_knob(struct alloc_cache *c, const char *name, int64_t value);
int classic_get_knob(const struct alloc_cache *c, const char *name, int64_t *ret_value);
void classic_cached(const struct alloc_cache *c, struct alloc_cached *by_node);
void classic_state(const struct alloc_cache *c, struct alloc_cache_state *ret_state);
int classic_check(const struct alloc_cache *c, char *why, size_t why_bytes);
void classic_dump(const struct alloc_cache *c, struct alloc_dump *d, bool full);
void classic_each_free(const struct alloc_cache *c, alloc_obj_fn fn, void *ctx);

static inline struct classic_cache *classic_cache(const struct alloc_cache *c)
{
	return (struct classic_cache *)(uintptr_t)c;
}

static inline struct alloc_node *classic_node(const struct classic_cache *k,
					      const struct alloc_slab *s)
{
	return &k->nodes[s->node];
}

#endif
