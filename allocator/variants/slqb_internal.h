/* SPDX-License-Identifier: MIT */
/*
 * SLQB, the queued allocator proposed in 2009 (specification 11): what the files slqb*.c share.
 *
 *	list    freelist (chain, last in first out) | partial and full slabs | remote chain
 *	CPU c   list; rlist: chain of objects that all belong to remote_list, another list
 *	node n  list_lock, list: slabs made for requests that name a node which is not the CPU's
 *
 * A slab belongs to one list for life (alloc_slab.owner): only through that list's page lock do its
 * objects come and go.  Chains link objects at geo.offset, as a slab's own freelist does.
 *
 *	what				protected by
 *	list.freelist			a CPU's: the CPU; a node's: list_lock
 *	list.partial, full, nr_*, word of its slabs, page_stat	page_lock
 *	list.remote, remote_check	remote_lock
 *	rlist, remote_list, colour	the CPU
 *
 * Lock order: list_lock (rank BARN) -> page_lock (rank NODE_LIST), remote_lock (rank LEAF).
 *
 * Invariants (slqb_check()):
 *	nr_slabs == slabs on partial and full;  nr_partial == slabs on partial
 *	partial: 0 < inuse < objects;  full: inuse == objects;  inuse + length(freelist) == objects
 *	remote and rlist hold objects of slabs of that one list; a node's freelist of its own
 */
#ifndef SLABTAPE_ALLOCATOR_VARIANTS_SLQB_INTERNAL_H
#define SLABTAPE_ALLOCATOR_VARIANTS_SLQB_INTERNAL_H

#include "allocator/partial.h"
#include "allocator/sizing_slab.h"

#define SLQB_TRIM_FIRST_NS 1000000000ull /* first trim of a CPU */
#define SLQB_TRIM_NS 3000000000ull	 /* then every so often */
#define SLQB_TRIM_CATCH_UP 1000u	 /* periods made up for after a gap; the rest is skipped */

/* Objects linked through themselves. */
struct slqb_chain {
	void *head, *tail; /* tail is meaningless while head is NULL */
	uint64_t nr;
};

struct slqb_list {
	struct slqb_chain freelist;
	struct alloc_lock page_lock;
	struct alloc_link partial, full;
	uint64_t nr_partial; /* written under page_lock, read racily */
	uint64_t nr_slabs;
	/* FLUSH_SLAB_PARTIAL, FLUSH_SLAB_FREE: charged to the slab's list, whoever frees. */
	uint64_t page_stat[2];
	struct alloc_lock remote_lock;
	struct slqb_chain remote; /* freed by others; nr is written under the lock, read racily */
	uint64_t remote_check;	  /* remote is worth a look; written under the lock, read racily */
} __attribute__((aligned(64)));
enum { SLQB_STAT_PARTIAL, SLQB_STAT_FREE };

struct slqb_cpu {
	struct slqb_list list;
	struct slqb_chain rlist;
	struct slqb_list *remote_list; /* whose objects rlist holds; NULL: none ever */
	uint32_t colour_bytes;	       /* offset of the first object of the next slab */
	uint64_t next_trim_ns;
};

struct slqb_node {
	struct alloc_lock list_lock;
	struct slqb_list list;
	uint32_t shown_cpu; /* lowest CPU of the node (0: none): page_stat appears there */
};

struct slqb_cache {
	struct alloc_cache head;
	uint32_t freebatch, hiwater; /* objects; read-only between knob changes */
	uint32_t colour_step_bytes, left_over_bytes;
	struct slqb_cpu *cpus;
	struct slqb_node *nodes;
};

static inline struct slqb_cache *slqb_cache_of(const struct alloc_cache *c)
{
	return (struct slqb_cache *)(uintptr_t)c;
}

/* Shared functions carry the suffix of their build. */
#define slqb_push ALLOC_FN(slqb_push)
#define slqb_append ALLOC_FN(slqb_append)
#define slqb_pop ALLOC_FN(slqb_pop)
#define slqb_take_partial ALLOC_FN(slqb_take_partial)
#define slqb_new_slab ALLOC_FN(slqb_new_slab)
#define slqb_claim ALLOC_FN(slqb_claim)
#define slqb_flush_batch ALLOC_FN(slqb_flush_batch)
#define slqb_flush_rlist ALLOC_FN(slqb_flush_rlist)
#define slqb_free_remote ALLOC_FN(slqb_free_remote)
#define slqb_cached ALLOC_FN(slqb_cached)
#define slqb_state ALLOC_FN(slqb_state)
#define slqb_check ALLOC_FN(slqb_check)
#define slqb_read_counters ALLOC_FN(slqb_read_counters)
#define slqb_dump ALLOC_FN(slqb_dump)
#define slqb_each_free ALLOC_FN(slqb_each_free)
#define slqb_counters ALLOC_FN(slqb_counters)

#define SLQB_NR_COUNTERS 14u
extern const uint8_t slqb_counters[SLQB_NR_COUNTERS];

/* slqb_lists.c.  Chains: the caller owns them (see the table above). */
void slqb_push(const struct slqb_cache *qc, struct slqb_chain *ch, void *obj);
/* All of @from to the tail of @to; @from ends empty. */
void slqb_append(const struct slqb_cache *qc, struct slqb_chain *to, struct slqb_chain *from);
void *slqb_pop(const struct slqb_cache *qc, struct slqb_chain *ch); /* NULL: empty */
/* One object of the list's first partial slab, or NULL.  Counts ALLOC_SLAB_FILL. */
void *slqb_take_partial(struct slqb_cache *qc, struct slqb_list *l, uint32_t cpu);
/*
 * A new slab and its first object, or NULL: no memory.  Asked for @node; the owner is the CPU's
 * list when it came from the CPU's own node, else the list of the node it came from.  Counts
 * ALLOC_SLAB_NEW and _FILL.  No lock may be held.
 */
void *slqb_new_slab(struct slqb_cache *qc, uint32_t cpu, uint32_t node, uint32_t gfp);
/* What others freed to @l goes to the tail of its freelist; how many objects. */
uint64_t slqb_claim(struct slqb_cache *qc, struct slqb_list *l, uint32_t cpu,
		    enum alloc_lock_path path);
/* One freebatch from the HEAD of the freelist to the slabs, or to the owners' lists. */
void slqb_flush_batch(struct slqb_cache *qc, struct slqb_list *l, uint32_t cpu,
		      enum alloc_lock_path path);
void slqb_flush_rlist(struct slqb_cache *qc, uint32_t cpu, enum alloc_lock_path path);
/* Queue an object that belongs to another list on this CPU's rlist. */
void slqb_free_remote(struct slqb_cache *qc, uint32_t cpu, void *obj, enum alloc_lock_path path);

/* slqb_report.c */
void slqb_cached(const struct alloc_cache *c, struct alloc_cached *by_node);
void slqb_state(const struct alloc_cache *c, struct alloc_cache_state *ret_state);
int slqb_check(const struct alloc_cache *c, char *why, size_t why_bytes);
void slqb_read_counters(const struct alloc_cache *c, alloc_counter_fn fn, void *ctx);
void slqb_dump(const struct alloc_cache *c, struct alloc_dump *d, bool full);
void slqb_each_free(const struct alloc_cache *c, alloc_obj_fn fn, void *ctx);

#endif
