/* SPDX-License-Identifier: MIT */
/*
 * Slabs and pages: the memory under every variant.
 *
 * A machine reserves one address range, cut into one arena per node:
 *
 *	base |<- node 0: node_pages ->|<- node 1 ->| ...
 *
 * A slab is 2^order pages, aligned to its own length.  page_slab[] maps each page of the range to
 * its slab (NULL: not part of one), so that object -> slab is one load and no header is needed.
 *
 * struct alloc_slab, the first 16 bytes are one compare-exchange unit:
 *
 *	0  freelist   first free object of the slab's own list (SLAB: its index array)
 *	8  inuse:31, frozen:1, objects:32
 *
 * Invariant, SLUB: inuse + length(freelist) == objects.
 */
#ifndef SLABTAPE_ALLOCATOR_SLAB_H
#define SLABTAPE_ALLOCATOR_SLAB_H

#include <assert.h>
#include <stdint.h>

#include "allocator/hooks.h"
#include "allocator/locks.h"
#include "allocator/variant.h"

#define ALLOC_PAGE_SHIFT 12u
#define ALLOC_PAGE_BYTES (1u << ALLOC_PAGE_SHIFT)
#define ALLOC_ORDER_MAX 10u

/* The compare-exchange unit of a slab. */
struct alloc_slab_word {
	void *freelist;
	uint32_t inuse : 31, frozen : 1;
	uint32_t objects;
} __attribute__((aligned(16)));

/* Objects of a slab, for readers that do not own it. */
#define alloc_slab_objects(s) __atomic_load_n(&(s)->word.objects, __ATOMIC_RELAXED) /* constant */

struct alloc_link {
	struct alloc_link *next, *prev;
};

struct alloc_slab {
	struct alloc_slab_word word; /* Sync: slab lock or 16-byte compare-exchange */
	struct alloc_link link;	     /* Sync: the list's lock; next also links cpu partial lists */
	struct alloc_cache *cache;   /* read-only while the slab lives */
	char *mem;		     /* first object; read-only while the slab lives */
	uint32_t id;		     /* birth number in the cache; read-only while the slab lives */
	uint16_t node;		     /* read-only while the slab lives */
	uint8_t order;		     /* read-only while the slab lives */
	uint8_t state;		     /* enum alloc_state; Sync: relaxed atomic, see alloc_slab_move */
	uint32_t slabs, pobjects;    /* cpu partial list account, valid at its head; owner CPU only */
	uint32_t flags;		     /* variant's own, e.g. "on the node partial list" */
	uint32_t origin_cpu;	     /* variant's own */
	void *owner;		     /* variant's own, e.g. the SLQB list */
	struct alloc_lock lock;	     /* 2.6.30 slab_lock; unused by the others */
} __attribute__((aligned(64))); /* word and link share a line with no other slab */

/* Make s->lock ready for use; the simulated engine's queue of the struct's former life stays. */
static inline void alloc_slab_lock_init(struct alloc_slab *s)
{
	void *sim = s->lock.sim;

	alloc_lock_init(&s->lock, s->cache, s->node, ALLOC_LOCK_SLAB, ALLOC_RANK_SLAB);
	s->lock.sim = sim;
}

static inline struct alloc_slab *alloc_slab_from_link(struct alloc_link *l)
{
	return (struct alloc_slab *)((char *)l - offsetof(struct alloc_slab, link));
}

/* Part of struct alloc_machine that hot paths read; machine.c owns the rest. */
struct alloc_machine {
	char *base;			/* arena start, read-only after create */
	struct alloc_slab **page_slab;	/* Sync: written under the page lock before the slab is seen */
	const struct alloc_observer *observer; /* read-only after create; borrowed */
	uint64_t node_pages;		/* pages per arena */
	struct alloc_held *held;	/* [cpus] */
	uint32_t cpus, nodes;
	uint16_t cpu_node[ALLOC_CPU_MAX];
	const uint8_t *node_order;	/* [nodes][nodes]: row = from, nearest first, itself first */
	enum alloc_sync_kind sync;
	struct alloc_machine_private *private;
};

static inline struct alloc_slab *alloc_obj_slab(const struct alloc_machine *m, const void *obj)
{
	struct alloc_slab *s = m->page_slab[(uint64_t)((const char *)obj - m->base) >> ALLOC_PAGE_SHIFT];

	assert(s);
	return s;
}

/* The common head of every cache; a variant's own struct starts with it. */
struct alloc_cache {
	const struct alloc_variant *variant;
	struct alloc_machine *machine;
	struct alloc_geometry geo;
	uint64_t *stat;		  /* [cpus][ALLOC_COUNTER_ROW]; Sync: owner CPU only */
	uint64_t *refill_hist;	  /* [refill_entries]; Sync: relaxed atomic */
	uint32_t refill_entries;  /* max(objects, sheaf capacity) + 1; larger refills clamp to the last */
	uint32_t next_slab_id;	  /* Sync: under the page lock */
	uint32_t page_limit;	  /* alloc_cache_page_limit() */
	uint32_t flags;		  /* enum alloc_cache_flag */
	char name[64];
};

static inline void alloc_count_add(struct alloc_cache *c, uint32_t cpu, enum alloc_counter id,
				   uint64_t n)
{
	c->stat[(size_t)cpu * ALLOC_COUNTER_ROW + id] += n;
}
static inline void alloc_count(struct alloc_cache *c, uint32_t cpu, enum alloc_counter id)
{
	alloc_count_add(c, cpu, id, 1);
}

/*
 * Fill the common head: name, flags, geometry, zeroed counters, refill histogram for refills of
 * up to @refill_max objects.  0 or -ENOMEM.  fini frees what init made (a half-built head too).
 */
int alloc_cache_init(struct alloc_cache *c, const struct alloc_variant *v, struct alloc_machine *m,
		     const struct alloc_cache_config *cfg, const struct alloc_geometry *geo,
		     uint32_t refill_max);
void alloc_cache_fini(struct alloc_cache *c);

/* The state of @s becomes @to; tells the observer when there is one and the state changes. */
static inline void alloc_slab_move(struct alloc_cache *c, struct alloc_slab *s, uint32_t cpu,
				   enum alloc_state to)
{
	/* Relaxed: the list lock or the slab's compare-exchange orders the moves of one slab. */
	uint8_t from = __atomic_exchange_n(&s->state, (uint8_t)to, __ATOMIC_RELAXED);
	const struct alloc_observer *o = c->machine->observer;

	if (__builtin_expect(o && o->transition, 0) && from != to)
		o->transition(o->ctx, c, s, cpu, from, to);
}

/* Sum of variant->cached() over the nodes, into @st. */
void alloc_cached_sum(const struct alloc_cache *c, struct alloc_cache_state *st);

/* A refill on @cpu obtained @objs usable objects (histogram, observer). */
void alloc_note_refill(struct alloc_cache *c, uint32_t cpu, enum alloc_refill_source source,
		       uint32_t objs);

/* Class of one call of the free-to-slab slow path (specification 0.2). */
static inline void alloc_note_free_class(struct alloc_cache *c, uint32_t cpu, bool was_full,
					 bool now_empty)
{
	static const uint8_t class_of[2][2] = {
		{ ALLOC_C_CLASS_PARTIAL_PARTIAL, ALLOC_C_CLASS_PARTIAL_EMPTY },
		{ ALLOC_C_CLASS_FULL_PARTIAL, ALLOC_C_CLASS_FULL_EMPTY },
	};
	alloc_count(c, cpu, class_of[was_full][now_empty]);
}

/*
 * New slab for @c (specification 1.8): preferred shape, then the fallback shape with @gfp
 * (ORDER_FALLBACK counted).  @node: asked node or ALLOC_NODE_ANY (then the CPU's node first, then
 * the others by distance unless ALLOC_GFP_THISNODE).  NULL: no memory.
 * The slab has cache, mem, id, node, order, objects, inuse 0, frozen 0, state NONE, page_slab set;
 * its freelist is built in address order at geo.offset unless @no_freelist.
 * Takes the page lock; caller must not hold a list lock.  Counters other than ORDER_FALLBACK and
 * the node's nr_slabs are the caller's.
 */
struct alloc_slab *alloc_slab_create(struct alloc_cache *c, uint32_t cpu, int32_t node,
				     uint32_t gfp, bool no_freelist);
/* Give the slab back; state becomes NONE (observer told).  No counter moves. */
void alloc_slab_discard(struct alloc_cache *c, uint32_t cpu, struct alloc_slab *s);

/*
 * Call @fn for every living slab of @c, in address order.  The cache must be idle; @fn may
 * discard the slab it is given, and must not create any.
 */
void alloc_slabs_each(const struct alloc_cache *c, alloc_slab_fn fn, void *ctx);

/* each_free() of a list linked through its objects, and of the own lists of all slabs of @c. */
void alloc_list_each(const struct alloc_cache *c, void *list, alloc_obj_fn fn, void *ctx);
void alloc_slabs_each_free(const struct alloc_cache *c, alloc_obj_fn fn, void *ctx);

/* Next pointer of a free object, stored inside it at geo.offset. */
static inline void *alloc_free_next(const struct alloc_cache *c, const void *obj)
{
	void *next;

	__builtin_memcpy(&next, (const char *)obj + c->geo.offset, sizeof(next));
	return next;
}
static inline void alloc_free_link(const struct alloc_cache *c, void *obj, void *next)
{
	__builtin_memcpy((char *)obj + c->geo.offset, &next, sizeof(next));
}
static inline uint32_t alloc_obj_index(const struct alloc_cache *c, const struct alloc_slab *s,
				       const void *obj)
{
	return (uint32_t)((uint64_t)((const char *)obj - s->mem) / c->geo.size);
}

/* A draw of the remote-node gate, 0..1023 (specification 1.9).  @cpu's own seeded stream. */
uint32_t alloc_gate_draw(struct alloc_machine *m, uint32_t cpu);
/* @i-th node in the order a search from @node visits them; 0 is @node itself. */
static inline uint16_t alloc_node_at(const struct alloc_machine *m, uint32_t node, uint32_t i)
{
	return m->node_order[node * m->nodes + i];
}

#endif
