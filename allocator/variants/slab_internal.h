/* SPDX-License-Identifier: MIT */
/*
 * SLAB, the object-queue allocator (specification 10): what the files slab_*.c share.
 *
 *	CPU c   array: entry[0 .. avail), the last one goes out next
 *	node n  lock -- protects --> partial, full, free lists of slabs; shared array; counts
 *	        alien[m] {lock, array}: freed by CPUs of node n, belonging to node m
 *	slab    word.inuse = objects handed out of the slab (to callers or into arrays)
 *	        word.freelist = its index array: index[inuse .. objects) are the free ones,
 *	        index[inuse] goes out next
 *
 * Invariants (slab_check()):
 *	free_objects == sum over the node's slabs of objects - inuse
 *	total_slabs  == slabs on the three lists;  free_slabs == slabs on the free list
 *	full: inuse == objects;  partial: 0 < inuse < objects;  free: inuse == 0
 *	an array of node n or of one of its CPUs holds objects of node n; alien[m] those of node m
 *
 * Locks: alien lock (rank BARN) -> node lock (rank NODE_LIST).  An array of a CPU is its own.
 *
 * The two releases differ in struct slab_rules only.
 */
#ifndef SLABTAPE_ALLOCATOR_VARIANTS_SLAB_INTERNAL_H
#define SLABTAPE_ALLOCATOR_VARIANTS_SLAB_INTERNAL_H

#include "allocator/partial.h"
#include "allocator/sizing_slab.h"

#define SLAB_REFILL_UNTOUCHED 16u	   /* a refill of an untouched array asks for no more */
#define SLAB_ALIEN_LIMIT 12u		   /* objects an alien array holds; 1 if the limit is 1 */
#define SLAB_REAP_CPU_NS 2000000000ull	   /* period of a CPU's reaper */
#define SLAB_REAP_NODE_NS 4000000000ull	   /* period of a node's part of it */
#define SLAB_REAP_CATCH_UP 1000u	   /* periods made up for after a gap; the rest is skipped */
/* The kernel fills the batchcount of arrays that have none with this, and shows it. */
#define SLAB_NO_BATCHCOUNT 3131961357u

/* What a release does its own way. */
struct slab_rules {
	bool look_before_lock; /* 6.1: nothing free on the node: grow without taking its lock */
	bool touch_shared;     /* 6.1: a refill marks the shared array as used */
	bool link_first;       /* 2.6.30: a new slab goes on the free list, then refill again */
	bool destroy_each;     /* 2.6.30: over free_limit the slab just emptied goes, under lock */
	int (*shape)(uint32_t max_order, uint32_t object_size, uint32_t align, uint32_t flags,
		     struct alloc_slab_shape *ret_shape);
};

/* Sync of avail and touched: owner CPU, or written under the array's lock and read racily. */
struct slab_array {
	uint64_t avail;
	uint64_t touched;    /* used since the reaper came by */
	uint32_t limit;	     /* read-only between knob changes */
	uint32_t batchcount; /* read-only between knob changes */
	void *entry[];	     /* [limit]; Sync: as avail */
};

struct slab_alien {
	struct alloc_lock lock;	  /* protects the array; before the home node's lock */
	struct slab_array *array; /* NULL: this node itself */
} __attribute__((aligned(64)));

/* Lists and everything unmarked: under lock.  [racy]: written under lock, read without. */
struct slab_node {
	struct alloc_lock lock;
	struct alloc_link partial, full, free;
	uint64_t free_objects; /* [racy] objects free in slabs, not those in arrays */
	uint64_t total_slabs, free_slabs;
	uint64_t free_limit;   /* read-only between knob changes */
	uint64_t free_touched; /* racy statistic: a refill reached for the free list */
	uint64_t colour_next;  /* racy statistic: any CPU that grows on this node */
	uint64_t next_reap_ns; /* racy: CPUs of the node race for the node's part of the reap */
	uint32_t cpus;	       /* read-only */
	struct slab_array *shared; /* NULL: no such array; its avail is [racy] */
	struct slab_alien *alien;  /* [nodes], NULL: one node only or switched off */
} __attribute__((aligned(64)));

/* Sync: owner CPU only. */
struct slab_reaper {
	uint64_t next_ns;
	uint32_t node; /* whose alien array is drained next */
};

struct slab_cache {
	struct alloc_cache head;
	const struct slab_rules *rules;
	struct alloc_slab_tunables tune;
	uint32_t colour, colour_off_bytes;
	uint32_t max_order;
	bool use_alien;
	struct slab_array **cpu_array; /* [cpus] */
	struct slab_reaper *reaper;    /* [cpus] */
	struct slab_node *nodes;
};

static inline struct slab_cache *slab_cache_of(const struct alloc_cache *c)
{
	return (struct slab_cache *)(uintptr_t)c;
}
static inline struct slab_node *slab_cpu_node(const struct slab_cache *sc, uint32_t cpu)
{
	return &sc->nodes[sc->head.machine->cpu_node[cpu]];
}
static inline void slab_set_avail(struct slab_array *a, uint64_t avail)
{
	assert(avail <= a->limit);
	alloc_shared_write(&a->avail, avail);
}
static inline void slab_push(struct slab_array *a, void *obj)
{
	a->entry[a->avail] = obj;
	slab_set_avail(a, a->avail + 1);
}
static inline struct alloc_slab *slab_first(const struct alloc_link *head)
{
	return alloc_link_empty(head) ? NULL : alloc_slab_from_link(head->next);
}
static inline struct alloc_slab *slab_last(const struct alloc_link *head)
{
	return alloc_link_empty(head) ? NULL : alloc_slab_from_link(head->prev);
}
static inline struct alloc_slab *slab_next(const struct alloc_link *head,
					   const struct alloc_slab *s)
{
	return s->link.next == head ? NULL : alloc_slab_from_link(s->link.next);
}

/* Shared functions carry the suffix of their build. */
#define slab_take ALLOC_FN(slab_take)
#define slab_pick ALLOC_FN(slab_pick)
#define slab_relink ALLOC_FN(slab_relink)
#define slab_grow ALLOC_FN(slab_grow)
#define slab_link_new ALLOC_FN(slab_link_new)
#define slab_give_back ALLOC_FN(slab_give_back)
#define slab_destroy_list ALLOC_FN(slab_destroy_list)
#define slab_destroy_one ALLOC_FN(slab_destroy_one)
#define slab_drain_alien ALLOC_FN(slab_drain_alien)
#define slab_drop_oldest ALLOC_FN(slab_drop_oldest)
#define slab_empty_array ALLOC_FN(slab_empty_array)
#define slab_tick ALLOC_FN(slab_tick)
#define slab_shrink ALLOC_FN(slab_shrink)
#define slab_alloc ALLOC_FN(slab_alloc)
#define slab_free ALLOC_FN(slab_free)
#define slab_alloc_bulk ALLOC_FN(slab_alloc_bulk)
#define slab_free_bulk ALLOC_FN(slab_free_bulk)
#define slab_create_cache ALLOC_FN(slab_create_cache)
#define slab_destroy_cache ALLOC_FN(slab_destroy_cache)
#define slab_set_knob ALLOC_FN(slab_set_knob)
#define slab_get_knob ALLOC_FN(slab_get_knob)
#define slab_cached ALLOC_FN(slab_cached)
#define slab_state ALLOC_FN(slab_state)
#define slab_check ALLOC_FN(slab_check)
#define slab_each_free ALLOC_FN(slab_each_free)
#define slab_read_counters ALLOC_FN(slab_read_counters)
#define slab_dump ALLOC_FN(slab_dump)

/* slab_lists.c: slabs and the lists of a node. */

/* Hand the next free object out of @s (not full).  Node lock held, or @s not linked yet. */
void *slab_take(struct slab_cache *sc, struct alloc_slab *s);
/* The slab to allocate from, off its list: first partial, else first free, else NULL.  Lock held. */
struct alloc_slab *slab_pick(struct slab_node *n);
/* Put a slab that @slab_pick or @slab_grow returned at the HEAD of full or partial.  Lock held. */
void slab_relink(struct slab_cache *sc, struct slab_node *n, uint32_t cpu, struct alloc_slab *s);
/*
 * A new slab on no list, coloured, all objects free; NULL: no memory.  @node ANY: nearest to the
 * CPU that has pages.  No list lock may be held.
 */
struct alloc_slab *slab_grow(struct slab_cache *sc, uint32_t cpu, int32_t node, uint32_t gfp);
/* Put it on its node's lists: untouched at the TAIL of free, else as slab_relink().  Lock held. */
void slab_link_new(struct slab_cache *sc, uint32_t cpu, struct alloc_slab *s);
/*
 * Return @nr objects of node @n to their slabs, in order: emptied slabs to the HEAD of free, others
 * to the TAIL of partial.  Slabs above free_limit go to @doomed, for slab_destroy_list() after
 * unlocking.  Lock held.
 */
void slab_give_back(struct slab_cache *sc, struct slab_node *n, uint32_t cpu, void **objs,
		    uint64_t nr, struct alloc_link *doomed);
void slab_destroy_list(struct slab_cache *sc, uint32_t cpu, struct alloc_link *doomed);
void slab_destroy_one(struct slab_cache *sc, uint32_t cpu, struct alloc_slab *s);

/* slab_objects.c: allocation and free. */
void *slab_alloc(struct alloc_cache *c, uint32_t cpu, int32_t node, uint32_t gfp);
void slab_free(struct alloc_cache *c, uint32_t cpu, void *obj);
uint32_t slab_alloc_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t gfp, uint32_t nr,
			 void **objs);
void slab_free_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t nr, void **objs);
/* All of @a, an alien array for node @home, to that node: its shared array first, rest to slabs. */
void slab_drain_alien(struct slab_cache *sc, uint32_t cpu, struct slab_array *a,
		      struct slab_node *home, enum alloc_lock_path path, struct alloc_link *doomed);
/* Take the @nr oldest objects off @a; the younger move down. */
void slab_drop_oldest(struct slab_array *a, uint64_t nr);

/* slab_reap.c: the timer and shrink. */
void slab_tick(struct alloc_cache *c, uint32_t cpu, uint64_t now_ns);
void slab_shrink(struct alloc_cache *c);
/* All objects of @a (NULL: nothing to do), an array of node @n or its CPUs, to the slabs. */
void slab_empty_array(struct slab_cache *sc, struct slab_node *n, uint32_t cpu,
		      struct slab_array *a);

/* slab_setup.c: caches and knobs. */
#define SLAB_NR_KNOBS 5u
#define slab_knobs ALLOC_FN(slab_knobs)
extern const struct alloc_knob slab_knobs[SLAB_NR_KNOBS];
int slab_create_cache(const struct alloc_variant *v, const struct slab_rules *rules,
		      struct alloc_machine *m, const struct alloc_cache_config *cfg,
		      struct alloc_cache **ret_cache);
void slab_destroy_cache(struct alloc_cache *c);
int slab_set_knob(struct alloc_cache *c, const char *name, int64_t value);
int slab_get_knob(const struct alloc_cache *c, const char *name, int64_t *ret_value);

/* slab_report.c: counters, derived values, dumps; slab_check.c: invariants. */
void slab_cached(const struct alloc_cache *c, struct alloc_cached *by_node);
void slab_state(const struct alloc_cache *c, struct alloc_cache_state *ret_state);
void slab_read_counters(const struct alloc_cache *c, alloc_counter_fn fn, void *ctx);
void slab_dump(const struct alloc_cache *c, struct alloc_dump *d, bool full);
int slab_check(const struct alloc_cache *c, char *why, size_t why_bytes);
void slab_each_free(const struct alloc_cache *c, alloc_obj_fn fn, void *ctx);

#endif
