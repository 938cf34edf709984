/* SPDX-License-Identifier: MIT */
/*
 * SLUB of 2.6.30 and its change of 2009 against thrashing: one slab per CPU, everything else on
 * node partial lists.
 *
 * slub-2.6.30-thrash is a reconstruction (the patches could not be found): a CPU whose slabs keep
 * serving fewer than slab_thrash_ratio percent of their objects takes only partial slabs with that
 * many free ones, and sorts what it lists by free objects.  With ratio 0 it is slub-2.6.30.
 */
#include "allocator/variants/classic.h"

ALLOC_VARIANT_DECLARE(slub_2_6_30);
ALLOC_VARIANT_DECLARE(slub_2_6_30_thrash);

/* Free objects that make a slab worth taking for a thrashing CPU. */
static uint32_t min_free(const struct classic_cache *k)
{
	return (uint32_t)((uint64_t)k->head.geo.objects * k->thrash_ratio / 100);
}

static bool thrashing(const struct classic_cache *k, uint32_t cpu)
{
	return k->thrash_ratio && k->cpus[cpu].slow_count >= k->thrash_limit;
}

/* At the entry of the slow path: was the load that ends here worth its cost? */
static void judge_load(struct classic_cache *k, uint32_t cpu)
{
	struct classic_cpu *kc = &k->cpus[cpu];

	if (!k->thrash_ratio)
		return;
	if (kc->fastpath >= min_free(k))
		kc->slow_count = 0;
	else if (++kc->slow_count == k->thrash_limit)
		alloc_count(&k->head, cpu, ALLOC_C_THRASH_ENTER);
	kc->fastpath = 0;
}

void classic_discard(struct classic_cache *k, uint32_t cpu, struct alloc_slab *s)
{
	alloc_node_gone(classic_node(k, s), cpu, s);
	alloc_slab_discard(&k->head, cpu, s);
}

/* Put @s, whose lock is held, on its node's list. */
static void list_slab(struct classic_cache *k, uint32_t cpu, struct alloc_slab *s,
		      enum alloc_list_end end, enum alloc_lock_path path)
{
	struct alloc_node *n = classic_node(k, s);

	assert(s->word.freelist && !s->word.frozen);
	if (k->thrash_sort && thrashing(k, cpu))
		end = s->word.objects - s->word.inuse >= min_free(k) ? ALLOC_LIST_HEAD
								      : ALLOC_LIST_TAIL;
	alloc_lock_acquire(&n->list_lock, cpu, path);
	alloc_partial_add(&k->head, n, cpu, s, end, s->word.inuse);
	alloc_lock_release(&n->list_lock, cpu);
}

/* The CPU's leftovers back on the slab's list, one by one, which turns them round. */
static bool return_leftovers(struct classic_cache *k, struct classic_cpu *kc, struct alloc_slab *s)
{
	bool any = kc->freelist != NULL;

	assert(kc->slab == s);

	while (kc->freelist) {
		void *obj = kc->freelist;

		kc->freelist = alloc_free_next(&k->head, obj);
		alloc_free_link(&k->head, obj, s->word.freelist);
		s->word.freelist = obj;
		s->word.inuse--;
	}
	return any;
}

/* The CPU gives its slab up.  The slab's lock is held and is released here. */
static void deactivate(struct classic_cache *k, uint32_t cpu)
{
	struct classic_cpu *kc = &k->cpus[cpu];
	struct alloc_slab *s = kc->slab;
	bool gone = false, leftovers;

	assert(s->word.frozen && s->state == ALLOC_STATE_CPU);

	if (s->word.freelist)
		alloc_count(&k->head, cpu, ALLOC_C_DEACTIVATE_REMOTE_FREES);
	leftovers = return_leftovers(k, kc, s);
	kc->slab = NULL;
	s->word.frozen = 0;
	if (!s->word.inuse) {
		struct alloc_node *n = classic_node(k, s);

		alloc_count(&k->head, cpu, ALLOC_C_DEACTIVATE_EMPTY);
		gone = alloc_racy_read(cpu, &n->nr_partial) >= k->min_partial;
		if (!gone)
			list_slab(k, cpu, s, ALLOC_LIST_TAIL, ALLOC_PATH_DEACTIVATE);
	} else if (s->word.freelist) {
		alloc_count(&k->head, cpu, leftovers ? ALLOC_C_DEACTIVATE_TO_HEAD
						     : ALLOC_C_DEACTIVATE_TO_TAIL);
		list_slab(k, cpu, s, leftovers ? ALLOC_LIST_HEAD : ALLOC_LIST_TAIL,
			  ALLOC_PATH_DEACTIVATE);
	} else {
		alloc_count(&k->head, cpu, ALLOC_C_DEACTIVATE_FULL);
		alloc_slab_move(&k->head, s, cpu, ALLOC_STATE_FULL);
	}
	alloc_lock_release(&s->lock, cpu);
	if (gone) {
		alloc_count(&k->head, cpu, ALLOC_C_FREE_SLAB);
		classic_discard(k, cpu, s);
	}
}

/* Would a CPU that thrashes pass this slab over?  The slab's lock is held. */
static bool skipped(struct classic_cache *k, uint32_t cpu, const struct alloc_slab *s)
{
	if (!k->thrash_select || !thrashing(k, cpu) ||
	    s->word.objects - s->word.inuse >= min_free(k))
		return false;
	alloc_count(&k->head, cpu, ALLOC_C_THRASH_SKIP);
	return true;
}

/* First slab of @n whose lock is free at once: off the list, frozen, its lock held. */
static struct alloc_slab *scan_node(struct classic_cache *k, struct alloc_node *n, uint32_t cpu)
{
	struct alloc_slab *s;

	if (!alloc_racy_read(cpu, &n->nr_partial))
		return NULL;
	alloc_lock_acquire(&n->list_lock, cpu, ALLOC_PATH_REFILL);
	for (s = alloc_partial_first(n); s; s = alloc_partial_next(n, s)) {
		if (!alloc_lock_try(&s->lock, cpu, ALLOC_PATH_REFILL))
			continue;
		if (!skipped(k, cpu, s))
			break;
		alloc_lock_release(&s->lock, cpu);
	}
	if (s) {
		alloc_partial_del(n, s);
		s->word.frozen = 1;
		alloc_slab_move(&k->head, s, cpu, ALLOC_STATE_CPU);
	}
	alloc_lock_release(&n->list_lock, cpu);
	return s;
}

static struct alloc_slab *get_partial(struct classic_cache *k, uint32_t cpu, int32_t node,
				      uint32_t gfp)
{
	struct alloc_machine *m = k->head.machine;
	uint32_t local = m->cpu_node[cpu];
	uint32_t search = node == ALLOC_NODE_ANY ? local : (uint32_t)node;
	struct alloc_slab *s = scan_node(k, &k->nodes[search], cpu);

	if (s || gfp & ALLOC_GFP_THISNODE || !k->defrag_ratio ||
	    alloc_gate_draw(m, cpu) > k->defrag_ratio)
		return s;
	/* A request that names a node looks elsewhere too, seen from the CPU's node. */
	for (uint32_t i = 0; i < m->nodes && !s; i++) {
		struct alloc_node *n = &k->nodes[alloc_node_at(m, local, i)];

		if (alloc_racy_read(cpu, &n->nr_partial) > k->min_partial)
			s = scan_node(k, n, cpu);
	}
	return s;
}

/* A new slab, frozen and locked; NULL: no memory. */
static struct alloc_slab *new_slab(struct classic_cache *k, uint32_t cpu, int32_t node,
				   uint32_t gfp)
{
	struct alloc_slab *s = alloc_slab_create(&k->head, cpu, node, gfp, false);

	if (!s)
		return NULL;
	if (thrashing(k, cpu) && alloc_racy_read(cpu, &classic_node(k, s)->nr_partial))
		alloc_count(&k->head, cpu, ALLOC_C_THRASH_NEW_SLAB);
	alloc_slab_lock_init(s);
	alloc_node_born(classic_node(k, s), cpu, s);
	alloc_count(&k->head, cpu, ALLOC_C_ALLOC_SLAB);
	alloc_lock_acquire(&s->lock, cpu, ALLOC_PATH_ALLOC_SLOWPATH);
	s->word.frozen = 1;
	alloc_slab_move(&k->head, s, cpu, ALLOC_STATE_CPU);
	alloc_note_refill(&k->head, cpu, ALLOC_REFILL_NEW_SLAB, s->word.objects);
	return s;
}

/* All objects of the locked slab to the CPU; the first of them is the result. */
static void *load(struct classic_cache *k, uint32_t cpu, struct alloc_slab *s)
{
	struct classic_cpu *kc = &k->cpus[cpu];
	void *obj = s->word.freelist;

	assert(obj && !kc->freelist);
	kc->slab = s;
	kc->freelist = alloc_free_next(&k->head, obj);
	s->word.inuse = s->word.objects;
	s->word.freelist = NULL;
	alloc_lock_release(&s->lock, cpu);
	alloc_count(&k->head, cpu, ALLOC_C_ALLOC_SLOWPATH);
	return obj;
}

static void *alloc_slow(struct classic_cache *k, uint32_t cpu, int32_t node, uint32_t gfp)
{
	struct alloc_slab *s = k->cpus[cpu].slab;
	bool local;

	judge_load(k, cpu);
	if (s) {
		alloc_lock_acquire(&s->lock, cpu, ALLOC_PATH_ALLOC_SLOWPATH);
		if (node == ALLOC_NODE_ANY || s->node == (uint16_t)node) {
			/* Counted before anyone knows whether there is something to take. */
			alloc_count(&k->head, cpu, ALLOC_C_ALLOC_REFILL);
			if (s->word.freelist)
				return load(k, cpu, s);
		}
		deactivate(k, cpu);
	}
	s = get_partial(k, cpu, node, gfp);
	if (s) {
		alloc_count(&k->head, cpu, ALLOC_C_ALLOC_FROM_PARTIAL);
		local = s->node == k->head.machine->cpu_node[cpu];
		alloc_note_refill(&k->head, cpu,
				  local ? ALLOC_REFILL_NODE_PARTIAL : ALLOC_REFILL_REMOTE_NODE,
				  s->word.objects - s->word.inuse);
	} else {
		s = new_slab(k, cpu, node, gfp);
	}
	return s ? load(k, cpu, s) : NULL;
}

static void *classic_alloc(struct alloc_cache *c, uint32_t cpu, int32_t node, uint32_t gfp)
{
	struct classic_cache *k = classic_cache(c);
	struct classic_cpu *kc = &k->cpus[cpu];
	void *obj = kc->freelist;
	bool any = node == ALLOC_NODE_ANY;

	if (__builtin_expect(!obj || (!any && kc->slab->node != (uint16_t)node), 0))
		return alloc_slow(k, cpu, node, gfp);
	kc->freelist = alloc_free_next(c, obj);
	kc->fastpath++;
	alloc_count(c, cpu, ALLOC_C_ALLOC_FASTPATH);
	return obj;
}

/* @s, locked and not frozen, has just lost its last object in use.  Its lock is released. */
static void free_emptied(struct classic_cache *k, uint32_t cpu, struct alloc_slab *s, bool listed)
{
	struct alloc_node *n = classic_node(k, s);

	if (listed) {
		alloc_lock_acquire(&n->list_lock, cpu, ALLOC_PATH_FREE);
		alloc_partial_del(n, s);
		alloc_lock_release(&n->list_lock, cpu);
		alloc_count(&k->head, cpu, ALLOC_C_FREE_REMOVE_PARTIAL);
	}
	alloc_lock_release(&s->lock, cpu);
	alloc_count(&k->head, cpu, ALLOC_C_FREE_SLAB);
	classic_discard(k, cpu, s);
}

static void free_slow(struct classic_cache *k, uint32_t cpu, struct alloc_slab *s, void *obj)
{
	void *prior;

	alloc_count(&k->head, cpu, ALLOC_C_FREE_SLOWPATH);
	alloc_lock_acquire(&s->lock, cpu, ALLOC_PATH_FREE);
	prior = s->word.freelist;
	alloc_free_link(&k->head, obj, prior);
	s->word.freelist = obj;
	assert(s->word.inuse);
	s->word.inuse--;
	alloc_count(&k->head, cpu,
		    (enum alloc_counter)(ALLOC_C_CLASS_PARTIAL_PARTIAL + (prior ? 0 : 1) +
					 (s->word.inuse ? 0 : 2)));
	if (s->word.frozen) {
		alloc_count(&k->head, cpu, ALLOC_C_FREE_FROZEN);
	} else if (!s->word.inuse) {
		free_emptied(k, cpu, s, prior != NULL);
		return;
	} else if (!prior) {
		list_slab(k, cpu, s, ALLOC_LIST_TAIL, ALLOC_PATH_FREE);
		alloc_count(&k->head, cpu, ALLOC_C_FREE_ADD_PARTIAL);
	}
	alloc_lock_release(&s->lock, cpu);
}

static void classic_free(struct alloc_cache *c, uint32_t cpu, void *obj)
{
	struct classic_cache *k = classic_cache(c);
	struct classic_cpu *kc = &k->cpus[cpu];
	struct alloc_slab *s = alloc_obj_slab(c->machine, obj);

	if (__builtin_expect(s != kc->slab, 0)) {
		free_slow(k, cpu, s, obj);
		return;
	}
	alloc_free_link(c, obj, kc->freelist);
	kc->freelist = obj;
	alloc_count(c, cpu, ALLOC_C_FREE_FASTPATH);
}

/* The release has no bulk calls: one by one. */
static void classic_free_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t nr, void **objs)
{
	for (uint32_t i = 0; i < nr; i++)
		classic_free(c, cpu, objs[i]);
}

static uint32_t classic_alloc_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t gfp, uint32_t nr,
				   void **objs)
{
	for (uint32_t i = 0; i < nr; i++) {
		objs[i] = classic_alloc(c, cpu, ALLOC_NODE_ANY, gfp);
		if (!objs[i]) {
			classic_free_bulk(c, cpu, i, objs);
			return 0;
		}
	}
	return nr;
}

void classic_flush_cpu(struct alloc_cache *c, uint32_t cpu)
{
	struct classic_cache *k = classic_cache(c);
	struct alloc_slab *s = k->cpus[cpu].slab;

	if (!s)
		return;
	alloc_count(c, cpu, ALLOC_C_CPUSLAB_FLUSH);
	alloc_lock_acquire(&s->lock, cpu, ALLOC_PATH_FLUSH);
	deactivate(k, cpu);
}

static const uint8_t counters[] = {
	ALLOC_C_ALLOC_FASTPATH,	    ALLOC_C_ALLOC_SLOWPATH,	 ALLOC_C_FREE_FASTPATH,
	ALLOC_C_FREE_SLOWPATH,	    ALLOC_C_FREE_FROZEN,	 ALLOC_C_FREE_ADD_PARTIAL,
	ALLOC_C_FREE_REMOVE_PARTIAL, ALLOC_C_ALLOC_FROM_PARTIAL, ALLOC_C_ALLOC_SLAB,
	ALLOC_C_ALLOC_REFILL,	    ALLOC_C_FREE_SLAB,		 ALLOC_C_CPUSLAB_FLUSH,
	ALLOC_C_DEACTIVATE_FULL,    ALLOC_C_DEACTIVATE_EMPTY,	 ALLOC_C_DEACTIVATE_TO_HEAD,
	ALLOC_C_DEACTIVATE_TO_TAIL, ALLOC_C_DEACTIVATE_REMOTE_FREES, ALLOC_C_ORDER_FALLBACK,
	/* the thrash variant's own */
	ALLOC_C_THRASH_ENTER, ALLOC_C_THRASH_SKIP, ALLOC_C_THRASH_NEW_SLAB,
};
enum { NR_COUNTERS_THRASH = sizeof(counters), NR_COUNTERS = NR_COUNTERS_THRASH - 3 };

/* The thrash variant's own come first; the rest is 2.6.30's. */
static const struct alloc_knob knobs[] = {
	{ "slab_thrash_ratio", "percent of a slab's objects a load should serve, 0 = off", 0, 100,
	  "0", false },
	{ "thrash_limit", "loads below that in a row that make a CPU thrash", 1, UINT32_MAX, "3",
	  false },
	{ "thrash_select", "1: a thrashing CPU skips slabs with too few free objects", 0, 1, "1",
	  false },
	{ "thrash_sort", "1: what it lists goes to the head or tail by free objects", 0, 1, "1",
	  false },
	{ "min_partial", "slabs: a given up empty slab is kept while a node lists fewer", 0,
	  INT64_MAX, "clamp(log2(size), 5, 10)", false },
	{ "remote_node_defrag_ratio", "percent: how often other nodes' lists are searched", 0, 100,
	  "100", false },
	{ "defrag", "the ratio as the kernel keeps it; 1023 always, 0 never", 0, 1024, "1000",
	  false },
	{ "slub_min_order", "smallest order of a slab", 0, ALLOC_ORDER_MAX, "0", true },
	{ "slub_max_order", "largest order unless one object needs more", 0, ALLOC_ORDER_MAX, "3",
	  true },
	{ "slub_min_objects", "objects a slab should hold, 0 = by the number of CPUs", 0, 65535,
	  "0", true },
};
enum { NR_KNOBS_THRASH = sizeof(knobs) / sizeof(*knobs), OWN_KNOBS = 4 };

ALLOC_ENTRIES(classic)

#define CLASSIC_COMMON                         \
	.struct_size = sizeof(struct alloc_variant), \
	.destroy = classic_destroy,            \
	ALLOC_ENTRY_OPS(classic),              \
	.flush_cpu = classic_flush_cpu,        \
	.shrink = classic_shrink,              \
	.set_knob = classic_set_knob,          \
	.get_knob = classic_get_knob,          \
	.state = classic_state,                \
	.cached = classic_cached,              \
	.check = classic_check,                \
	.dump = classic_dump,                  \
	.each_free = classic_each_free

static int create_plain(struct alloc_machine *m, const struct alloc_cache_config *cfg,
			struct alloc_cache **ret_cache)
{
	return classic_create(&ALLOC_FN(alloc_variant_slub_2_6_30), m, cfg, ret_cache);
}

static int create_thrash(struct alloc_machine *m, const struct alloc_cache_config *cfg,
			 struct alloc_cache **ret_cache)
{
	return classic_create(&ALLOC_FN(alloc_variant_slub_2_6_30_thrash), m, cfg, ret_cache);
}

ALLOC_VARIANT(slub_2_6_30) = {
	CLASSIC_COMMON,
	.name = "slub-2.6.30",
	.era = "2.6.30",
	.origin = "Linux v2.6.30 mm/slub.c",
	.what = "one slab per CPU, slab locks, everything else on node lists",
	.counters = counters,
	.nr_counters = NR_COUNTERS,
	.knobs = knobs + OWN_KNOBS,
	.nr_knobs = NR_KNOBS_THRASH - OWN_KNOBS,
	.create = create_plain,
};

ALLOC_VARIANT(slub_2_6_30_thrash) = {
	CLASSIC_COMMON,
	.name = "slub-2.6.30-thrash",
	.era = "2009",
	.origin = "linux-kernel 2009, slab_thrash_ratio patches (reconstructed)",
	.what = "2.6.30 where a thrashing CPU takes only slabs with enough free objects",
	.counters = counters,
	.nr_counters = NR_COUNTERS_THRASH,
	.knobs = knobs,
	.nr_knobs = NR_KNOBS_THRASH,
	.create = create_thrash,
};
