/* SPDX-License-Identifier: MIT */
/*
 * Shared parts of slub-7.2 and slub-7.2-parking: the structures and who may touch them.
 *
 *	 CPU c                                node n
 *	+----------------------------+       +---------------------------+  +------------------------+
 *	| main      [o o o . . . . ] |       | barn  full:  F1 F2 ..  10 |  | list_lock, nr_partial  |
 *	| spare     NULL/empty/full  | <---> |       empty: E1 E2 ..  10 |  | partial [head]..[tail] |
 *	| rcu_free  [x x . . . . . ] |       +---------------------------+  | (partial.h)            |
 *	| waiting   R1 -> R2 (grace) |                                      +------------------------+
 *	| deferred  objects          |            whole sheaves                batches of objects
 *	+----------------------------+
 *
 * A sheaf is an array of object pointers, the last one is the next out.  An object resting in a
 * sheaf counts as in use for its slab.  There is no CPU slab: slabs are touched in batches only,
 * by a refill (slub_sheaves_slab.c) and by a flush.
 *
 * Invariants (sheaves_check()):
 *	0 <= sheaf.size <= sheaf.capacity; main is never NULL
 *	barn.nr_full == length(full), each of them holds objects; barn.nr_empty == length(empty)
 *	objects of a slab that rest in sheaves <= inuse of the slab
 *	slab on a partial list  <=>  ALLOC_SLAB_LISTED; slab FULL  =>  freelist NULL
 *
 * Source: Linux v7.2 mm/slub.c, as rules 8.1 - 8.10 of the specification; what is simpler here
 * stands in docs/allocator-model.md.
 */
#ifndef SLABTAPE_ALLOCATOR_VARIANTS_SLUB_SHEAVES_H
#define SLABTAPE_ALLOCATOR_VARIANTS_SLUB_SHEAVES_H

#include <string.h>

#include "allocator/partial.h"
#include "allocator/sync.h"

enum {
	SHEAVES_BARN_FULL_MAX = 10,  /* full sheaves a barn takes from frees */
	SHEAVES_BARN_EMPTY_MAX = 10, /* looked at only when an rcu sheaf comes back empty */
	SHEAVES_BATCH = 32,	     /* objects of main flushed at once; remote objects collected */
	SHEAVES_MISSES = 3,	     /* foreign objects after which a group is closed */
	SHEAVES_RATIO_ALWAYS = 1023, /* a gate draw is never above this */
};

struct alloc_sheaf {
	struct alloc_sheaf *next; /* barn list, or the CPU's waiting list */
	uint64_t due_ns;	  /* end of the grace period while on the waiting list */
	uint32_t capacity;	  /* objects[] has this many entries */
	uint32_t size;		  /* entries used */
	bool to_barn;		  /* after the grace period: offer it to the barn first */
	void *objects[];
};

/* Sync: owner CPU only, all of it. */
struct sheaves_cpu {
	struct alloc_sheaf *main;
	struct alloc_sheaf *spare;    /* or NULL */
	struct alloc_sheaf *rcu_free; /* or NULL; filled by free_rcu */
	uint16_t node;		      /* of this CPU */
	struct alloc_sheaf *waiting;  /* oldest first */
	struct alloc_sheaf **waiting_end;
	void **deferred;	      /* free_rcu objects that go back by one bulk free */
	uint32_t nr_deferred, room_deferred;
	uint64_t deferred_due_ns;
	uint64_t now_ns;	      /* of the last tick */
	uint32_t unpark_works;	      /* parking: nodes whose delayed work this CPU owns */
	uint32_t park_turn;	      /* parking: full->x frees since the last forced park */
} __attribute__((aligned(64)));

struct sheaves_barn {
	struct alloc_lock lock;	   /* rank ALLOC_RANK_BARN */
	uint64_t nr_full;	   /* Sync: written under lock, read racily */
	uint64_t nr_empty;	   /* Sync: written under lock, read racily */
	struct alloc_sheaf *full;  /* Sync: lock; last in, first out */
	struct alloc_sheaf *empty; /* Sync: lock; last in, first out */
} __attribute__((aligned(64)));

/* Parking of one node; unused (NULL) in slub-7.2. */
struct sheaves_parked {
	void *slabs;	/* newest first, linked through link.next.  Sync: atomic */
	void *work;	/* struct sheaves_cpu that owns the delayed work, NULL: none.  Sync: atomic */
	uint64_t due_ns;/* of the work.  Sync: the owner of `work` */
} __attribute__((aligned(64)));

struct sheaves_cache;

/* Where slub-7.2-parking differs; NULL in slub-7.2. */
struct sheaves_policy {
	/* list_lock for a free into a full slab: false when it is busy and the slab is to be parked. */
	bool (*try_lock)(struct sheaves_cache *sc, uint32_t cpu, struct alloc_node *n,
			 enum alloc_lock_path path);
	/* @s left the full state without list_lock; no other CPU may list it. */
	void (*park)(struct sheaves_cache *sc, uint32_t cpu, struct alloc_node *n,
		     struct alloc_slab *s);
	/* list_lock held.  Returns slabs to discard after unlocking, linked through link.next. */
	struct alloc_slab *(*unpark)(struct sheaves_cache *sc, uint32_t cpu, struct alloc_node *n);
	/* A racy look: parked slabs wait on @n. */
	bool (*waits)(struct sheaves_cache *sc, uint32_t cpu, const struct alloc_node *n);
	void (*tick)(struct sheaves_cache *sc, uint32_t cpu, uint64_t now_ns);
	int (*check)(const struct sheaves_cache *sc, char *why, size_t why_bytes);
};

struct sheaves_cache {
	struct alloc_cache head;
	struct sheaves_cpu *cpus;   /* [machine->cpus] */
	struct sheaves_barn *barns; /* [machine->nodes] */
	struct alloc_node *nodes;   /* [machine->nodes] */
	struct sheaves_parked *parked;		/* [machine->nodes] */
	const struct sheaves_policy *policy;	/* read-only after create */
	/* Knobs.  Sync: written while every CPU is idle. */
	int64_t capacity, min_partial, defrag, rcu_delay_ns;
	int64_t min_order, max_order, min_objects;
	int64_t unpark_delay_ns, park_every, park_late;
};

static inline struct sheaves_cache *sheaves_of(const struct alloc_cache *c)
{
	return (struct sheaves_cache *)(uintptr_t)c;
}

/* Symbols of more than one file carry the name of the build. */
#define sheaves_create ALLOC_FN(sheaves_create)
#define sheaves_destroy ALLOC_FN(sheaves_destroy)
#define sheaves_set_knob ALLOC_FN(sheaves_set_knob)
#define sheaves_get_knob ALLOC_FN(sheaves_get_knob)
#define sheaves_cached ALLOC_FN(sheaves_cached)
#define sheaves_state ALLOC_FN(sheaves_state)
#define sheaves_check ALLOC_FN(sheaves_check)
#define sheaves_dump ALLOC_FN(sheaves_dump)
#define sheaves_each_free ALLOC_FN(sheaves_each_free)
#define sheaves_alloc ALLOC_FN(sheaves_alloc)
#define sheaves_free ALLOC_FN(sheaves_free)
#define sheaves_flush_cpu ALLOC_FN(sheaves_flush_cpu)
#define sheaves_shrink ALLOC_FN(sheaves_shrink)
#define sheaves_alloc_bulk ALLOC_FN(sheaves_alloc_bulk)
#define sheaves_free_bulk ALLOC_FN(sheaves_free_bulk)
#define sheaves_free_rcu ALLOC_FN(sheaves_free_rcu)
#define sheaves_rcu_barrier ALLOC_FN(sheaves_rcu_barrier)
#define sheaves_rcu_start ALLOC_FN(sheaves_rcu_start)
#define sheaves_tick ALLOC_FN(sheaves_tick)
#define sheaves_prefill ALLOC_FN(sheaves_prefill)
#define sheaves_sheaf_alloc ALLOC_FN(sheaves_sheaf_alloc)
#define sheaves_sheaf_refill ALLOC_FN(sheaves_sheaf_refill)
#define sheaves_sheaf_return ALLOC_FN(sheaves_sheaf_return)
#define sheaves_new ALLOC_FN(sheaves_new)
#define sheaves_drop ALLOC_FN(sheaves_drop)
#define sheaves_flush ALLOC_FN(sheaves_flush)
#define sheaves_flush_objects ALLOC_FN(sheaves_flush_objects)
#define sheaves_flush_main ALLOC_FN(sheaves_flush_main)
#define sheaves_refill ALLOC_FN(sheaves_refill)
#define sheaves_refill_objects ALLOC_FN(sheaves_refill_objects)
#define sheaves_alloc_bulk_slow ALLOC_FN(sheaves_alloc_bulk_slow)
#define sheaves_alloc_slow ALLOC_FN(sheaves_alloc_slow)
#define sheaves_free_slow ALLOC_FN(sheaves_free_slow)
#define sheaves_discard ALLOC_FN(sheaves_discard)
#define sheaves_barn_swap_empty ALLOC_FN(sheaves_barn_swap_empty)
#define sheaves_barn_swap_full ALLOC_FN(sheaves_barn_swap_full)
#define sheaves_barn_get_empty ALLOC_FN(sheaves_barn_get_empty)
#define sheaves_barn_get_any ALLOC_FN(sheaves_barn_get_any)
#define sheaves_barn_put_full ALLOC_FN(sheaves_barn_put_full)
#define sheaves_barn_put_empty ALLOC_FN(sheaves_barn_put_empty)
#define sheaves_barn_shrink ALLOC_FN(sheaves_barn_shrink)

/*
 * Sheaves (slub_sheaves_barn.c).  `new` counts SHEAF_ALLOC, `drop` SHEAF_FREE; a sheaf is empty
 * when it is dropped.  new: NULL when out of memory.
 */
struct alloc_sheaf *sheaves_new(struct sheaves_cache *sc, uint32_t cpu, uint32_t capacity);
void sheaves_drop(struct sheaves_cache *sc, uint32_t cpu, struct alloc_sheaf *s);

/*
 * The barn of @cpu's node (slub_sheaves_barn.c).  Counts are looked at without the lock first;
 * each takes the barn lock at most once and holds no other lock.  No counter moves.
 *
 *	swap_empty	give the empty @s, take the newest full sheaf; NULL: there is none
 *	swap_full	give the full @s, take an empty sheaf; NULL: no empty one, or 10 full
 *			(*ret_crowded tells which)
 *	get_empty	NULL: there is none
 *	get_any		a full sheaf, else an empty one, else NULL
 *	put_*		to the front; limits are the caller's to test
 */
struct alloc_sheaf *sheaves_barn_swap_empty(struct sheaves_cache *sc, uint32_t cpu,
					    struct alloc_sheaf *s);
struct alloc_sheaf *sheaves_barn_swap_full(struct sheaves_cache *sc, uint32_t cpu,
					   struct alloc_sheaf *s, bool *ret_crowded);
struct alloc_sheaf *sheaves_barn_get_empty(struct sheaves_cache *sc, uint32_t cpu);
struct alloc_sheaf *sheaves_barn_get_any(struct sheaves_cache *sc, uint32_t cpu);
void sheaves_barn_put_full(struct sheaves_cache *sc, uint32_t cpu, struct alloc_sheaf *s);
void sheaves_barn_put_empty(struct sheaves_cache *sc, uint32_t cpu, struct alloc_sheaf *s);
/* Empty the barn of @node: full sheaves are flushed, all dropped; charged to @cpu. */
void sheaves_barn_shrink(struct sheaves_cache *sc, uint32_t cpu, uint32_t node);

/* The barn of @cpu's node holds as many full sheaves as frees may put there (racy). */
static inline bool sheaves_barn_crowded(struct sheaves_cache *sc, uint32_t cpu)
{
	return alloc_racy_read(cpu, &sc->barns[sc->cpus[cpu].node].nr_full) >=
	       SHEAVES_BARN_FULL_MAX;
}

/*
 * Slabs (slub_sheaves_slab.c).
 *
 * refill_objects: @want objects from the node's partial slabs, other nodes, new slabs, in that
 * order; returns how many it got.  refill: fills @s to its capacity (SHEAF_REFILL); 0, or -ENOMEM
 * when it stays short (what it got is in @s).
 * flush_objects: give @objs back to their slabs, from the end of the array, which it reorders; no
 * counter of the free paths moves.  flush: a whole sheaf, SHEAF_FLUSH.  flush_main: @cpu's main
 * sheaf in batches.
 * alloc_bulk_slow: @nr objects past the sheaves, ALLOC_SLOWPATH += @nr; 0 and nothing when short.
 * alloc_slow, free_slow: one object, with ALLOC_SLOWPATH or FREE_SLOWPATH.
 */
uint32_t sheaves_refill_objects(struct sheaves_cache *sc, uint32_t cpu, uint32_t gfp, void **objs,
				uint32_t want);
int sheaves_refill(struct sheaves_cache *sc, uint32_t cpu, uint32_t gfp, struct alloc_sheaf *s);
void sheaves_flush_objects(struct sheaves_cache *sc, uint32_t cpu, void **objs, uint32_t nr,
			   enum alloc_lock_path path);
void sheaves_flush(struct sheaves_cache *sc, uint32_t cpu, struct alloc_sheaf *s);
void sheaves_flush_main(struct sheaves_cache *sc, uint32_t cpu);
uint32_t sheaves_alloc_bulk_slow(struct sheaves_cache *sc, uint32_t cpu, uint32_t gfp, uint32_t nr,
				 void **objs);
void *sheaves_alloc_slow(struct sheaves_cache *sc, uint32_t cpu, int32_t node, uint32_t gfp);
void sheaves_free_slow(struct sheaves_cache *sc, uint32_t cpu, void *obj);
/* Give @s, on no list, back to the page provider.  No counter moves. */
void sheaves_discard(struct sheaves_cache *sc, uint32_t cpu, struct alloc_slab *s);

/*
 * list_lock of @n for users of the partial list.  `lock` returns a chain that belongs to `unlock`:
 * slabs that emptied while parked, discarded there (FREE_SLAB).
 */
static inline struct alloc_slab *sheaves_lock(struct sheaves_cache *sc, uint32_t cpu,
					      struct alloc_node *n, enum alloc_lock_path path)
{
	alloc_lock_acquire(&n->list_lock, cpu, path);
	return sc->policy ? sc->policy->unpark(sc, cpu, n) : NULL;
}

static inline void sheaves_unlock(struct sheaves_cache *sc, uint32_t cpu, struct alloc_node *n,
				  struct alloc_slab *aside)
{
	alloc_lock_release(&n->list_lock, cpu);
	while (aside) {
		struct alloc_slab *s = aside;

		aside = s->link.next ? alloc_slab_from_link(s->link.next) : NULL;
		alloc_count(&sc->head, cpu, ALLOC_C_FREE_SLAB);
		sheaves_discard(sc, cpu, s);
	}
}

/*
 * Grace periods (slub_sheaves_rcu.c): @s waits for rcu_delay_ns, at once when that is 0; then it
 * goes to the barn if @to_barn and there is room, else it is flushed.
 */
void sheaves_rcu_start(struct sheaves_cache *sc, uint32_t cpu, struct alloc_sheaf *s, bool to_barn);

/* The operations of struct alloc_variant; see variant.h. */
int sheaves_create(struct alloc_machine *m, const struct alloc_cache_config *cfg,
		   const struct alloc_variant *v, const struct sheaves_policy *policy,
		   struct alloc_cache **ret_cache);
void sheaves_destroy(struct alloc_cache *c);
int sheaves_set_knob(struct alloc_cache *c, const char *name, int64_t value);
int sheaves_get_knob(const struct alloc_cache *c, const char *name, int64_t *ret_value);
void sheaves_cached(const struct alloc_cache *c, struct alloc_cached *by_node);
void sheaves_state(const struct alloc_cache *c, struct alloc_cache_state *ret_state);
int sheaves_check(const struct alloc_cache *c, char *why, size_t why_bytes);
void sheaves_dump(const struct alloc_cache *c, struct alloc_dump *d, bool full);
void sheaves_each_free(const struct alloc_cache *c, alloc_obj_fn fn, void *ctx);
void *sheaves_alloc(struct alloc_cache *c, uint32_t cpu, int32_t node, uint32_t gfp);
void sheaves_free(struct alloc_cache *c, uint32_t cpu, void *obj);
void sheaves_flush_cpu(struct alloc_cache *c, uint32_t cpu);
void sheaves_shrink(struct alloc_cache *c);
uint32_t sheaves_alloc_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t gfp, uint32_t nr,
			    void **objs);
void sheaves_free_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t nr, void **objs);
void sheaves_free_rcu(struct alloc_cache *c, uint32_t cpu, void *obj);
void sheaves_rcu_barrier(struct alloc_cache *c);
void sheaves_tick(struct alloc_cache *c, uint32_t cpu, uint64_t now_ns);
struct alloc_sheaf *sheaves_prefill(struct alloc_cache *c, uint32_t cpu, uint32_t gfp,
				    uint32_t objs);
void *sheaves_sheaf_alloc(struct alloc_cache *c, uint32_t cpu, struct alloc_sheaf *s);
int sheaves_sheaf_refill(struct alloc_cache *c, uint32_t cpu, uint32_t gfp,
			 struct alloc_sheaf **s, uint32_t objs);
void sheaves_sheaf_return(struct alloc_cache *c, uint32_t cpu, struct alloc_sheaf *s);

/* Knobs of both variants. */
#define SHEAVES_KNOBS                                                                              \
	{ "min_partial", "slabs a node keeps on its list", 0, INT32_MAX, "size", false },          \
	{ "remote_node_defrag_ratio", "percent of refills that look at other nodes", 0, 100, "100", \
	  false },                                                                                 \
	{ "defrag", "the same ratio as stored, 0..1024", 0, 1024, "1000", false },                 \
	{ "cpu_partial", "kept for scripts: there is no such list", 0, 0, "0", false },            \
	{ "sheaf_capacity", "objects per sheaf, at least", 0, 65535, "size", true },               \
	{ "slub_min_order", "smallest order", 0, 10, "0", true },                                  \
	{ "slub_max_order", "largest order", 0, 10, "3", true },                                   \
	{ "slub_min_objects", "objects per slab aimed at, 0: by CPUs", 0, 32767, "0", true },      \
	{ "rcu_delay_ns", "grace period, ns of tape time; 0: ends inside the operation", 0,        \
	  INT64_MAX / 2, "20000000", false }

/* The entries of both variants, for the file that holds a table. */
#define SHEAVES_ENTRIES                     \
	ALLOC_ENTRIES(sheaves)              \
	ALLOC_ENTRY_FREE(sheaves, free_rcu) \
	ALLOC_ENTRY_SHEAF_ALLOC(sheaves)

/* Fields of struct alloc_variant both variants share. */
#define SHEAVES_OPS                                  \
	.struct_size = sizeof(struct alloc_variant), \
	.destroy = sheaves_destroy,                  \
	ALLOC_ENTRY_OPS(sheaves),                    \
	.flush_cpu = sheaves_flush_cpu,              \
	.shrink = sheaves_shrink,                    \
	.set_knob = sheaves_set_knob,                \
	.get_knob = sheaves_get_knob,                \
	.state = sheaves_state,                      \
	.cached = sheaves_cached,                    \
	.check = sheaves_check,                      \
	.free_rcu = sheaves_free_rcu_entry,          \
	.rcu_barrier = sheaves_rcu_barrier,          \
	.prefill = sheaves_prefill,                  \
	.sheaf_alloc = sheaves_sheaf_alloc_entry,    \
	.sheaf_refill = sheaves_sheaf_refill,        \
	.sheaf_return = sheaves_sheaf_return,        \
	.tick = sheaves_tick,                        \
	.dump = sheaves_dump,                        \
	.each_free = sheaves_each_free

#endif
