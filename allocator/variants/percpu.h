/* SPDX-License-Identifier: MIT */
/*
 * The SLUB family with a cpu slab and a per-cpu partial list (3.2 .. 6.12): what its files share.
 *
 *	 CPU c                                      node n
 *	+----------------------------+             +-----------------------------+
 *	| freelist -> o -> o         |             | list_lock  nr_partial       |
 *	| slab     -> the cpu slab   |             | partial: [head] .. [tail]   |
 *	| partial  -> Pk -> .. -> P1 |             +-----------------------------+
 *	+----------------------------+              full slabs: on no list
 *
 *	percpu_alloc.c   fast path, slow path, bulk      percpu_cache.c  create, destroy, knobs
 *	percpu_lists.c   partial lists, deactivation     percpu_state.c  sysfs values, check, dump
 *	percpu_free.c    fast path, slow path, bulk      percpu_placed.c placement by a recording
 *	percpu_remote.c  queues of slub-6.1-remotequeue  slub_3_2.c      where 3.2 differs
 *	slub_percpu.c    the variants: policies, counters, knobs
 *
 * Releases and patches differ by struct percpu_policy: numbers, and small functions where a whole
 * step differs.  No code asks for a variant's name.
 */
#ifndef SLABTAPE_ALLOCATOR_PERCPU_H
#define SLABTAPE_ALLOCATOR_PERCPU_H

#include "allocator/partial.h"
#include "allocator/sizing.h"
#include "allocator/sync.h"

/* Sync: owner CPU only. */
struct percpu_cpu {
	void *freelist;		     /* objects of `slab` handed to this CPU */
	struct alloc_slab *slab;     /* NULL: none, then freelist is NULL too */
	struct alloc_slab *partial;  /* newest first, linked by percpu_next() */
	void *claimed;		     /* remotequeue: objects of several slabs that came home */
} __attribute__((aligned(64)));

struct percpu_cache {
	struct alloc_cache head;
	struct percpu_cpu *cpus;
	struct alloc_node *nodes;
	const struct percpu_policy *policy;
	uint64_t min_partial;
	uint32_t cpu_partial;	    /* objects, as in sysfs */
	uint32_t cpu_partial_slabs; /* 5.16+: ceil(2 * cpu_partial / objects) */
	uint32_t defrag_ratio;	    /* 0..1024, ten times the sysfs value */
	uint32_t drain_limit;	    /* drain when the list's account has reached this */
	uint32_t fetch_limit;	    /* stop fetching from a node list above this */
	uint32_t minfree_pct;	    /* minfree: share of the objects that must be free */
	uint32_t minfree_scan;	    /* minfree: slabs looked at, 0 = all */
	uint32_t minfree_new;	    /* minfree: 1 = rather a new slab, 0 = the fullest choice */
	uint32_t queue_batch, queue_high; /* remotequeue */
	struct percpu_queue *queues;	  /* [cpus], remotequeue only */
};

/*
 * Frees on their way home (remotequeue), one per CPU and cache.  Queued objects are linked like a
 * freelist and count as in use in their slabs.
 */
struct percpu_queue {
	struct alloc_lock lock;	     /* of the incoming list; ALLOC_RANK_CPU, nests in nothing */
	void *in_head, *in_tail;     /* Sync: lock */
	uint64_t in_nr, in_check;    /* Sync: lock, read racily; in_check: worth claiming */
	void *out_head, *out_tail;   /* Sync: owner CPU only, like the rest */
	uint32_t out_nr, out_target; /* the CPU all queued objects belong to */
} __attribute__((aligned(64)));

/* What one slab adds to the account of a per-cpu partial list. */
enum percpu_weight { PERCPU_WEIGHT_SLAB, PERCPU_WEIGHT_HALF, PERCPU_WEIGHT_FREE };

/* Which number limits the list: cpu_partial_slabs, or cpu_partial in objects. */
struct percpu_policy {
	enum alloc_era era;
	enum percpu_weight weight;
	bool limit_in_objs;	  /* cpu_partial itself, not cpu_partial_slabs */
	bool drain_above;	  /* drain when the account is above the limit, not at it */
	bool freeze_partials;	  /* slabs on a per-cpu list are frozen (up to 6.7) */
	bool count_first;	  /* the first slab counts towards the fetch limit */
	bool slowpath_per_try;	  /* ALLOC_SLOWPATH at each try to refill, not once per call */
	bool count_pushes;	  /* CPU_PARTIAL_FREE at every push, fetched slabs too */
	bool count_objs;	  /* fast path counters count the objects of bulk calls */
	bool keep_at_limit;	  /* keep empty slabs while nr_partial <= min_partial, not < */
	bool minfree;		  /* the first slab of a fetch must have enough free objects */
	bool clamp_min_partial;	  /* what is written to min_partial is clamped to 5..10 */
	bool sort_by_inuse;	  /* shrink sorts the whole list */
	bool skip_empty_nodes;	  /* shrink leaves a node without partial slabs alone */
	bool queues;		  /* frees of another CPU's objects are queued for it */
	uint32_t defrag_default;  /* 0..1024 */

	/* No objects on the CPU's freelist; the whole rest of an allocation.  NULL: no memory. */
	void *(*alloc_slow)(struct percpu_cache *p, uint32_t cpu, int32_t node, uint32_t gfp);
	/* A slab for the CPU from a node list or new, state CPU, its objects in *ret_list. */
	struct alloc_slab *(*find_slab)(struct percpu_cache *p, uint32_t cpu, int32_t node,
					uint32_t gfp, void **ret_list);
	/* First usable slab of @n's list, its objects in *ret_list; extras to the CPU's list. */
	struct alloc_slab *(*fetch)(struct percpu_cache *p, struct alloc_node *n, uint32_t cpu,
				    void **ret_list);
	/* The CPU slab @s with the leftover @list goes to where it belongs. */
	void (*deactivate)(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, void *list);
	/* A detached per-cpu partial list, newest first, goes to the node lists. */
	void (*unfreeze)(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *list,
			 enum alloc_lock_path path);
	/* @cnt objects @head .. @tail of @s, which is not the CPU's slab. */
	void (*free_slow)(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, void *head,
			  void *tail, uint32_t cnt);
};

/* Functions that cross files carry the name of their build (allocator/sync.h). */
#define percpu_alloc_slow ALLOC_FN(percpu_alloc_slow)
#define percpu_alloc_slow_6_12 ALLOC_FN(percpu_alloc_slow_6_12)
#define percpu_alloc_placed ALLOC_FN(percpu_alloc_placed)
#define percpu_alloc_bulk ALLOC_FN(percpu_alloc_bulk)
#define percpu_each_alloc_bulk ALLOC_FN(percpu_each_alloc_bulk)
#define percpu_get_partial ALLOC_FN(percpu_get_partial)
#define percpu_take_freelist ALLOC_FN(percpu_take_freelist)
#define percpu_new_slab ALLOC_FN(percpu_new_slab)
#define percpu_install ALLOC_FN(percpu_install)
#define percpu_find_slab ALLOC_FN(percpu_find_slab)
#define percpu_find_slab_local ALLOC_FN(percpu_find_slab_local)
#define percpu_find_slab_6_12 ALLOC_FN(percpu_find_slab_6_12)
#define percpu_free_slow ALLOC_FN(percpu_free_slow)
#define percpu_free_to_slab ALLOC_FN(percpu_free_to_slab)
#define percpu_free_bulk ALLOC_FN(percpu_free_bulk)
#define percpu_each_free_bulk ALLOC_FN(percpu_each_free_bulk)
#define percpu_fetch ALLOC_FN(percpu_fetch)
#define percpu_fetch_6_12 ALLOC_FN(percpu_fetch_6_12)
#define percpu_push ALLOC_FN(percpu_push)
#define percpu_unfreeze ALLOC_FN(percpu_unfreeze)
#define percpu_deactivate ALLOC_FN(percpu_deactivate)
#define percpu_deactivate_6_12 ALLOC_FN(percpu_deactivate_6_12)
#define percpu_flush_cpu ALLOC_FN(percpu_flush_cpu)
#define percpu_flush_slab ALLOC_FN(percpu_flush_slab)
#define percpu_shrink ALLOC_FN(percpu_shrink)
#define percpu_discard ALLOC_FN(percpu_discard)
#define percpu_drop_empty ALLOC_FN(percpu_drop_empty)
#define percpu_note_fetch ALLOC_FN(percpu_note_fetch)
#define percpu_end_for ALLOC_FN(percpu_end_for)
#define percpu_count_listed ALLOC_FN(percpu_count_listed)
#define percpu_create ALLOC_FN(percpu_create)
#define percpu_destroy ALLOC_FN(percpu_destroy)
#define percpu_set_knob ALLOC_FN(percpu_set_knob)
#define percpu_get_knob ALLOC_FN(percpu_get_knob)
#define percpu_cached ALLOC_FN(percpu_cached)
#define percpu_state ALLOC_FN(percpu_state)
#define percpu_remote_create ALLOC_FN(percpu_remote_create)
#define percpu_remote_alloc_slow ALLOC_FN(percpu_remote_alloc_slow)
#define percpu_remote_free_slow ALLOC_FN(percpu_remote_free_slow)
#define percpu_remote_flush_cpu ALLOC_FN(percpu_remote_flush_cpu)
#define percpu_fetch_3_2 ALLOC_FN(percpu_fetch_3_2)
#define percpu_deactivate_3_2 ALLOC_FN(percpu_deactivate_3_2)
#define percpu_unfreeze_3_2 ALLOC_FN(percpu_unfreeze_3_2)
#define percpu_free_slow_3_2 ALLOC_FN(percpu_free_slow_3_2)
#define percpu_check ALLOC_FN(percpu_check)
#define percpu_dump ALLOC_FN(percpu_dump)
#define percpu_each_free ALLOC_FN(percpu_each_free)

void *percpu_alloc_slow(struct percpu_cache *p, uint32_t cpu, int32_t node, uint32_t gfp);
void *percpu_alloc_slow_6_12(struct percpu_cache *p, uint32_t cpu, int32_t node, uint32_t gfp);
void *percpu_alloc_placed(struct alloc_cache *c, uint32_t cpu, int32_t node, uint32_t gfp,
			  const struct alloc_place *want);
uint32_t percpu_alloc_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t gfp, uint32_t nr,
			   void **objs);
/* Bulk as single calls, for releases without a bulk interface. */
uint32_t percpu_each_alloc_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t gfp, uint32_t nr,
			   void **objs);
void percpu_each_free_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t nr, void **objs);
/* A slab from the asked or local node's list, else, when @others, from other nodes' lists;
 * @force skips the remote gate. */
struct alloc_slab *percpu_get_partial(struct percpu_cache *p, uint32_t cpu, int32_t node,
				      bool others, bool force, void **ret_list);
/* All free objects of the CPU's slab @s at once; NULL: it had none and is now full, unfrozen. */
void *percpu_take_freelist(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s,
			   uint32_t *ret_objs);
struct alloc_slab *percpu_new_slab(struct percpu_cache *p, uint32_t cpu, int32_t node,
				   uint32_t gfp, void **ret_list);
/* @s becomes the CPU's slab; the first object of @list is returned. */
void *percpu_install(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, void *list);
struct alloc_slab *percpu_find_slab(struct percpu_cache *p, uint32_t cpu, int32_t node,
				    uint32_t gfp, void **ret_list);
struct alloc_slab *percpu_find_slab_local(struct percpu_cache *p, uint32_t cpu, int32_t node,
					  uint32_t gfp, void **ret_list);
struct alloc_slab *percpu_find_slab_6_12(struct percpu_cache *p, uint32_t cpu, int32_t node,
					 uint32_t gfp, void **ret_list);
void percpu_free_slow(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, void *head,
		      void *tail, uint32_t cnt);
/* free_slow without FREE_SLOWPATH. */
void percpu_free_to_slab(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, void *head,
			 void *tail, uint32_t cnt);
void percpu_free_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t nr, void **objs);
struct alloc_slab *percpu_fetch(struct percpu_cache *p, struct alloc_node *n, uint32_t cpu,
				void **ret_list);
struct alloc_slab *percpu_fetch_6_12(struct percpu_cache *p, struct alloc_node *n, uint32_t cpu,
				     void **ret_list);
/* @s, owned by nobody else, to the head of the CPU's partial list; @free_objs are free in it.
 * @drain: a list at its limit goes to the nodes first. */
void percpu_push(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, uint32_t free_objs,
		 bool drain);
void percpu_unfreeze(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *list,
		     enum alloc_lock_path path);
void percpu_deactivate(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, void *list);
void percpu_deactivate_6_12(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, void *list);
/* Detach and deactivate the CPU's slab, if it has one. */
void percpu_flush_slab(struct percpu_cache *p, uint32_t cpu);
void percpu_flush_cpu(struct alloc_cache *c, uint32_t cpu);
void percpu_shrink(struct alloc_cache *c);
/* Give an empty slab back; only the node totals move. */
void percpu_discard(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s);
/* The same for a slab found empty while it was taken from a CPU: DEACTIVATE_EMPTY, FREE_SLAB. */
void percpu_drop_empty(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s);
/* A slab was taken from @n for the CPU with @objs free objects: counter, histogram, observer. */
void percpu_note_fetch(struct percpu_cache *p, const struct alloc_node *n, uint32_t cpu,
		       uint32_t objs);
/* Which end of the node list @s goes to, judged at the start of its deactivation. */
enum alloc_list_end percpu_end_for(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s);
void percpu_count_listed(struct percpu_cache *p, uint32_t cpu, enum alloc_list_end end);
int percpu_create(const struct percpu_policy *policy, const struct alloc_variant *v,
		  struct alloc_machine *m, const struct alloc_cache_config *cfg,
		  struct alloc_cache **ret_cache);
void percpu_destroy(struct alloc_cache *c);
int percpu_set_knob(struct alloc_cache *c, const char *name, int64_t value);
int percpu_get_knob(const struct alloc_cache *c, const char *name, int64_t *ret_value);
void percpu_cached(const struct alloc_cache *c, struct alloc_cached *by_node);
void percpu_state(const struct alloc_cache *c, struct alloc_cache_state *ret_state);
int percpu_check(const struct alloc_cache *c, char *why, size_t why_bytes);
void percpu_dump(const struct alloc_cache *c, struct alloc_dump *d, bool full);
void percpu_each_free(const struct alloc_cache *c, alloc_obj_fn fn, void *ctx);

/* slub_3_2.c: the steps of 3.2 that differ by more than a number. */
struct alloc_slab *percpu_fetch_3_2(struct percpu_cache *p, struct alloc_node *n, uint32_t cpu,
				    void **ret_list);
void percpu_deactivate_3_2(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, void *list);
void percpu_unfreeze_3_2(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *list,
			 enum alloc_lock_path path);
void percpu_free_slow_3_2(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, void *head,
			  void *tail, uint32_t cnt);

/* percpu_remote.c: 0 or -ENOMEM; what create made is freed by percpu_destroy(). */
int percpu_remote_create(struct percpu_cache *p);
void *percpu_remote_alloc_slow(struct percpu_cache *p, uint32_t cpu, int32_t node, uint32_t gfp);
void percpu_remote_free_slow(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, void *head,
			     void *tail, uint32_t cnt);
void percpu_remote_flush_cpu(struct alloc_cache *c, uint32_t cpu);

static inline struct percpu_cache *percpu_cache(const struct alloc_cache *c)
{
	return (struct percpu_cache *)(uintptr_t)c;
}

static inline struct alloc_node *percpu_node(const struct percpu_cache *p,
					     const struct alloc_slab *s)
{
	return &p->nodes[s->node];
}

/* Per-cpu partial lists and chains of slabs about to go, singly linked through link.next. */
static inline struct alloc_slab *percpu_next(const struct alloc_slab *s)
{
	return s->link.next ? alloc_slab_from_link(s->link.next) : NULL;
}

static inline void percpu_set_next(struct alloc_slab *s, struct alloc_slab *next)
{
	s->link.next = next ? &next->link : NULL;
}

/* Compare-exchange of the slab's word; a failure is counted. */
static inline bool percpu_swap_word(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s,
				    struct alloc_slab_word old, struct alloc_slab_word new)
{
	if (__builtin_expect(alloc_word_cmpxchg(cpu, s, old, new), 1))
		return true;
	alloc_count(&p->head, cpu, ALLOC_C_CMPXCHG_DOUBLE_FAIL);
	return false;
}

/* Are there enough partial slabs on @n to give an empty one back?  @nr_partial as the caller sees
 * it: before an insert, or with the slab itself counted. */
static inline bool percpu_enough(const struct percpu_cache *p, uint64_t nr_partial)
{
	return nr_partial >= p->min_partial + p->policy->keep_at_limit;
}

/* free_class of one call of the slow path: by the slab's own list and count. */
static inline void percpu_count_class(struct percpu_cache *p, uint32_t cpu, const void *prior,
				      uint32_t inuse)
{
	uint32_t class = (prior ? 0 : 1) + (inuse ? 0 : 2);

	alloc_count(&p->head, cpu, (enum alloc_counter)(ALLOC_C_CLASS_PARTIAL_PARTIAL + class));
}

static inline bool percpu_wrong_node(const struct alloc_slab *s, int32_t node)
{
	return node != ALLOC_NODE_ANY && s->node != (uint16_t)node;
}

/* The fast paths; inline, so that one is a single function with its entry (allocator/entry.h). */
static inline void *percpu_alloc(struct alloc_cache *c, uint32_t cpu, int32_t node, uint32_t gfp)
{
	struct percpu_cache *p = percpu_cache(c);
	struct percpu_cpu *pc = &p->cpus[cpu];
	void *obj = pc->freelist;

	if (__builtin_expect(!obj || percpu_wrong_node(pc->slab, node), 0))
		return p->policy->alloc_slow(p, cpu, node, gfp);
	pc->freelist = alloc_free_next(c, obj);
	alloc_count(c, cpu, ALLOC_C_ALLOC_FASTPATH);
	return obj;
}

static inline void percpu_free(struct alloc_cache *c, uint32_t cpu, void *obj)
{
	struct percpu_cache *p = percpu_cache(c);
	struct percpu_cpu *pc = &p->cpus[cpu];
	struct alloc_slab *s = alloc_obj_slab(c->machine, obj);

	assert(s->cache == c);
	if (__builtin_expect(s != pc->slab, 0)) {
		p->policy->free_slow(p, cpu, s, obj, obj, 1);
		return;
	}
	alloc_free_link(c, obj, pc->freelist);
	pc->freelist = obj;
	alloc_count(c, cpu, ALLOC_C_FREE_FASTPATH);
}

#endif
