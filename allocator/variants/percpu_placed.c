/* SPDX-License-Identifier: MIT */
/*
 * Allocation placed by a recording (replay --warm address, --follow): the counters are those of
 * the path the model takes, the slab is the recorded one.  docs/allocator-model.md, "by address".
 *
 * Moves slabs of other CPUs and node lists about without their locks: one thread for all CPUs.
 */
#include "allocator/variants/percpu.h"

/* The recorded slab if it still lives in this cache. */
static struct alloc_slab *wanted_slab(const struct percpu_cache *p, const struct alloc_place *want)
{
	struct alloc_slab *s = want->slab;

	return s && s->cache == &p->head && s->id == want->slab_id && s->state != ALLOC_STATE_NONE
		       ? s
		       : NULL;
}

/* Take the object at @index out of *list, or its first one. */
static void *pick(const struct percpu_cache *p, const struct alloc_slab *s, void **list,
		  uint32_t index)
{
	void *before = NULL, *obj;

	assert(*list);
	for (obj = *list; obj; before = obj, obj = alloc_free_next(&p->head, obj))
		if (alloc_obj_index(&p->head, s, obj) == index)
			break;
	if (!obj) {
		obj = *list;
		before = NULL;
	}
	if (before)
		alloc_free_link(&p->head, before, alloc_free_next(&p->head, obj));
	else
		*list = alloc_free_next(&p->head, obj);
	return obj;
}

/* The CPU that has @s as its slab. */
static uint32_t cpu_of(const struct percpu_cache *p, const struct alloc_slab *s)
{
	uint32_t cpu = 0;

	while (p->cpus[cpu].slab != s)
		cpu++;
	assert(cpu < p->head.machine->cpus);
	return cpu;
}

/* The pointer by which the per-cpu list that holds @s reaches it: its CPU, and the slab before. */
static struct alloc_slab *before_on_cpu_list(const struct percpu_cache *p,
					     const struct alloc_slab *s, uint32_t *ret_cpu)
{
	for (uint32_t cpu = 0; cpu < p->head.machine->cpus; cpu++) {
		struct alloc_slab *before = NULL;

		for (struct alloc_slab *at = p->cpus[cpu].partial; at; at = percpu_next(at)) {
			if (at == s) {
				*ret_cpu = cpu;
				return before;
			}
			before = at;
		}
	}
	assert(!"on a per-cpu list");
	return NULL;
}

/* @x, whose free objects are @list, becomes a slab that waits: on a CPU's list or a node's. */
static void set_waiting(struct percpu_cache *p, struct alloc_slab *x, void *list, bool frozen)
{
	x->word.freelist = list;
	x->word.inuse = x->word.objects - alloc_freelist_length(&p->head, list, x->word.objects);
	x->word.frozen = frozen;
}

static void take_node_place(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *x,
			    struct alloc_slab *y, void *list)
{
	struct alloc_node *n = percpu_node(p, y);
	struct alloc_link *next = y->link.next;

	set_waiting(p, x, list, false);
	alloc_partial_del(n, y);
	/* A slab of another node has no place on this list: head of its own. */
	alloc_partial_add(&p->head, percpu_node(p, x), cpu, x, ALLOC_LIST_HEAD, x->word.inuse);
	if (x->node == y->node) {
		alloc_link_del(&x->link);
		alloc_link_add(next, &x->link, ALLOC_LIST_TAIL); /* in front of y's successor */
	}
}

static void take_cpu_list_place(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *x,
				struct alloc_slab *y, void *list)
{
	uint32_t owner = 0;
	struct alloc_slab *before = before_on_cpu_list(p, y, &owner);

	set_waiting(p, x, list, p->policy->freeze_partials);
	percpu_set_next(x, percpu_next(y));
	y->link.next = NULL;
	x->slabs = y->slabs;
	x->pobjects = y->pobjects;
	if (before)
		percpu_set_next(before, x);
	else
		p->cpus[owner].partial = x;
	alloc_slab_move(&p->head, x, cpu, ALLOC_STATE_CPU_PARTIAL);
}

/*
 * @x, which the path took for @cpu with the free objects @list, and @y exchange places.  Returns
 * the free objects of @y; NULL: it has none, nothing was changed.
 */
static void *exchange(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *x,
		      struct alloc_slab *y, void *list)
{
	void *got = y->word.freelist;

	switch ((enum alloc_state)y->state) {
	case ALLOC_STATE_CPU: {
		struct percpu_cpu *owner = &p->cpus[cpu_of(p, y)];

		if (!owner->freelist)
			return NULL;
		got = owner->freelist; /* what others freed to it stays on its own list */
		owner->slab = x;
		owner->freelist = list;
		return got;
	}
	case ALLOC_STATE_CPU_PARTIAL:
		take_cpu_list_place(p, cpu, x, y, list);
		break;
	case ALLOC_STATE_PARTIAL:
	case ALLOC_STATE_EMPTY:
		take_node_place(p, cpu, x, y, list);
		break;
	default:
		return NULL;
	}
	y->word.freelist = NULL;
	y->word.inuse = y->word.objects;
	y->word.frozen = 1;
	alloc_slab_move(&p->head, y, cpu, ALLOC_STATE_CPU);
	return got;
}

/* The page is new to the replay and the path did not end in a new slab: one is made, and what the
 * path took waits in front of the list it came from. */
static struct alloc_slab *make_unseen(struct percpu_cache *p, uint32_t cpu, int32_t node,
				      uint32_t gfp, bool from_node_list, void **ret_list)
{
	struct percpu_cpu *pc = &p->cpus[cpu];
	struct alloc_slab *x = pc->slab, *y;
	void *list = *ret_list;

	y = alloc_slab_create(&p->head, cpu, node, gfp, false);
	if (!y)
		return NULL;
	alloc_node_born(percpu_node(p, y), cpu, y);
	*ret_list = y->word.freelist;
	y->word.freelist = NULL;
	y->word.inuse = y->word.objects;
	y->word.frozen = 1;
	alloc_slab_move(&p->head, y, cpu, ALLOC_STATE_CPU);
	set_waiting(p, x, list, !from_node_list && p->policy->freeze_partials);
	if (from_node_list)
		alloc_partial_add(&p->head, percpu_node(p, x), cpu, x, ALLOC_LIST_HEAD,
				  x->word.inuse);
	else
		percpu_push(p, cpu, x, x->word.objects - x->word.inuse, false);
	return y;
}

void *percpu_alloc_placed(struct alloc_cache *c, uint32_t cpu, int32_t node, uint32_t gfp,
			  const struct alloc_place *want)
{
	struct percpu_cache *p = percpu_cache(c);
	struct percpu_cpu *pc = &p->cpus[cpu];
	const uint64_t *stat = &c->stat[(size_t)cpu * ALLOC_COUNTER_ROW];
	struct alloc_slab *y = wanted_slab(p, want), *x;
	uint64_t new_slabs = stat[ALLOC_C_ALLOC_SLAB], fetched = stat[ALLOC_C_ALLOC_FROM_PARTIAL];
	void *list, *got;

	if (y && pc->slab == y && pc->freelist && !percpu_wrong_node(y, node)) {
		alloc_count(c, cpu, ALLOC_C_ALLOC_FASTPATH);
		return pick(p, y, &pc->freelist, want->index);
	}
	/* The kernel left a slab that fits: what is free in it here was in use there. */
	if (pc->slab && pc->slab != y && !percpu_wrong_node(pc->slab, node))
		pc->freelist = NULL;
	list = p->policy->alloc_slow(p, cpu, node, gfp);
	if (!list)
		return NULL;
	x = pc->slab;
	alloc_free_link(c, list, pc->freelist);
	if (y && y != x) {
		got = exchange(p, cpu, x, y, list);
		x = got ? y : x;
		list = got ? got : list;
	} else if (!y && stat[ALLOC_C_ALLOC_SLAB] == new_slabs) {
		y = make_unseen(p, cpu, node, gfp, stat[ALLOC_C_ALLOC_FROM_PARTIAL] != fetched, &list);
		x = y ? y : x;
	}
	pc->slab = x;
	pc->freelist = list;
	return pick(p, x, &pc->freelist, want->index);
}
