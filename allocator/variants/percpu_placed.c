/* SPDX-License-Identifier: MIT */
/*
 * Allocation placed by a recording (replay --warm address, --follow): the counters are those of
 * the path the model takes, the slab is the recorded one.  docs/allocator-model.md, "by address".
 *
 * Where the kernel leaves a slab in which objects are free here, they were in use there (objects
 * older than the recording), or their frees came later than recorded.  They are set aside, linked
 * at slab.owner and counted in inuse, until the recording hands one of them out.
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

/* @x, whose free objects are @list, becomes a slab that waits: on a CPU's list or a node's. */
static void set_waiting(struct percpu_cache *p, struct alloc_slab *x, void *list, bool frozen)
{
	x->word.freelist = list;
	x->word.inuse = x->word.objects - alloc_freelist_length(&p->head, list, x->word.objects);
	x->word.frozen = frozen;
}

/*
 * A mark in every object that was handed out: without it an object may be in use since before the
 * recording.  NULL: the object is too small to hold one beside the free pointer.
 */
static uint64_t *mark_of(const struct percpu_cache *p, void *obj)
{
	const struct alloc_geometry *g = &p->head.geo;

	if (g->offset >= sizeof(uint64_t))
		return obj;
	return g->size >= 2 * sizeof(uint64_t) && !g->offset ? (uint64_t *)obj + 1 : NULL;
}

static uint64_t mark_value(const struct alloc_slab *s)
{
	return (s->id + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
}

static void *mark(const struct percpu_cache *p, void *obj)
{
	uint64_t *m = obj ? mark_of(p, obj) : NULL;

	if (m)
		*m = mark_value(alloc_obj_slab(p->head.machine, obj));
	return obj;
}

/* Split @list: objects that were handed out before to *@known, the others aside. */
static void sort_out(const struct percpu_cache *p, struct alloc_slab *s, void *list, void **known)
{
	void *next;

	for (void *obj = list; obj; obj = next) {
		uint64_t *m = mark_of(p, obj);
		void **to = m && *m == mark_value(s) ? known : &s->owner;

		next = alloc_free_next(&p->head, obj);
		alloc_free_link(&p->head, obj, *to);
		*to = obj;
	}
}

/*
 * The kernel left the cpu slab, so it was used up.  Of the objects that are free in it here, those
 * that were never handed out are set aside; the others were freed a moment later than recorded:
 * that free found a full slab and put it on the CPU's list.
 */
static void leave(struct percpu_cache *p, uint32_t cpu)
{
	struct percpu_cpu *pc = &p->cpus[cpu];
	struct alloc_slab *s = pc->slab;
	void *known = NULL;

	sort_out(p, s, pc->freelist, &known);
	sort_out(p, s, s->word.freelist, &known);
	pc->freelist = s->word.freelist = NULL;
	s->word.inuse = s->word.objects;
	if (!known)
		return;
	pc->slab = NULL;
	alloc_count(&p->head, cpu, ALLOC_C_DEACTIVATE_BYPASS);
	alloc_count(&p->head, cpu, ALLOC_C_CPU_PARTIAL_FREE);
	set_waiting(p, s, known, p->policy->freeze_partials);
	percpu_push(p, cpu, s, s->word.objects - s->word.inuse, true);
}

/* The object at @index of @y is handed out in the recording: when it was set aside, it is free. */
static void revive(struct percpu_cache *p, struct alloc_slab *y, uint32_t index)
{
	void *list = y->owner, *obj;

	for (obj = list; obj; obj = alloc_free_next(&p->head, obj))
		if (alloc_obj_index(&p->head, y, obj) == index)
			break;
	if (!obj)
		return;
	obj = pick(p, y, &list, index);
	y->owner = list;
	if (y->state == ALLOC_STATE_CPU) {
		struct percpu_cpu *owner = &p->cpus[cpu_of(p, y)];

		alloc_free_link(&p->head, obj, owner->freelist);
		owner->freelist = obj;
	} else {
		alloc_free_link(&p->head, obj, y->word.freelist);
		y->word.freelist = obj;
		y->word.inuse--;
	}
}

/* Can the wanted slab give an object, here as there? */
static bool can_give(const struct percpu_cache *p, const struct percpu_cpu *pc,
		     const struct alloc_slab *y)
{
	if (y->state == ALLOC_STATE_CPU && y != pc->slab)
		return p->cpus[cpu_of(p, y)].freelist != NULL;
	return y->word.freelist || (y == pc->slab && pc->freelist);
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

/* @x, which the path took and nobody uses, waits in front of the list it came from. */
static void put_back(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *x, void *list,
		     bool from_node_list)
{
	p->cpus[cpu].slab = NULL; /* the caller puts another one there */
	set_waiting(p, x, list, !from_node_list && p->policy->freeze_partials);
	if (from_node_list)
		alloc_partial_add(&p->head, percpu_node(p, x), cpu, x, ALLOC_LIST_HEAD,
				  x->word.inuse);
	else
		percpu_push(p, cpu, x, x->word.objects - x->word.inuse, false);
}

/*
 * @x, which the path took for @cpu with the free objects @list, and @y exchange places.  Returns
 * the free objects of @y; NULL: it has none, nothing was changed.
 */
static void *exchange(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *x,
		      struct alloc_slab *y, void *list, bool from_node_list)
{
	void *got = y->word.freelist;

	switch ((enum alloc_state)y->state) {
	case ALLOC_STATE_CPU: {
		uint32_t other = cpu_of(p, y);

		/* The kernel's other CPU had used y up and left it: it has no slab now. */
		got = p->cpus[other].freelist; /* what others freed to y stays on its own list */
		p->cpus[other].slab = NULL;
		p->cpus[other].freelist = NULL;
		alloc_count(&p->head, other, ALLOC_C_DEACTIVATE_BYPASS);
		put_back(p, cpu, x, list, from_node_list);
		return got;
	}
	case ALLOC_STATE_CPU_PARTIAL:
		take_cpu_list_place(p, cpu, x, y, list);
		break;
	case ALLOC_STATE_PARTIAL:
	case ALLOC_STATE_EMPTY:
		take_node_place(p, cpu, x, y, list);
		break;
	default: /* on no list, with a revived object */
		put_back(p, cpu, x, list, from_node_list);
		break;
	}
	y->word.freelist = NULL;
	y->word.inuse = y->word.objects;
	y->word.frozen = 1;
	alloc_slab_move(&p->head, y, cpu, ALLOC_STATE_CPU);
	return got;
}

/*
 * The page is new to the replay and the path did not end in a new slab: one is made, and what the
 * path took waits in front of the list it came from.
 */
static struct alloc_slab *make_unseen(struct percpu_cache *p, uint32_t cpu, int32_t node,
				      uint32_t gfp, bool from_node_list, void **ret_list)
{
	struct alloc_slab *x = p->cpus[cpu].slab, *y;
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
	put_back(p, cpu, x, list, from_node_list);
	return y;
}

/* The slow path with the node lists but that of @shown (-1: none at all) out of sight. */
static void *alloc_hiding(struct percpu_cache *p, uint32_t cpu, int32_t node, uint32_t gfp,
			  int32_t shown)
{
	uint64_t hidden[ALLOC_NODE_MAX];
	void *list;

	for (uint32_t n = 0; n < p->head.machine->nodes; n++) {
		hidden[n] = (int32_t)n == shown ? 0 : p->nodes[n].nr_partial;
		p->nodes[n].nr_partial -= hidden[n];
	}
	list = p->policy->alloc_slow(p, cpu, node, gfp);
	for (uint32_t n = 0; n < p->head.machine->nodes; n++)
		p->nodes[n].nr_partial += hidden[n];
	return list;
}

/*
 * The page is new to the replay: the kernel found every list empty and made a slab.  So the path is
 * taken with the lists out of sight.  Not while it has a slab of the wrong node to put away, which
 * looks at the lists' lengths; make_unseen() then mends what the path does.
 */
static void *alloc_unseen(struct percpu_cache *p, uint32_t cpu, int32_t node, uint32_t gfp)
{
	struct percpu_cpu *pc = &p->cpus[cpu];
	struct alloc_slab *partial = pc->partial;
	void *list;

	if (pc->slab && percpu_wrong_node(pc->slab, node))
		return p->policy->alloc_slow(p, cpu, node, gfp);
	pc->partial = NULL;
	list = alloc_hiding(p, cpu, node, gfp, -1);
	assert(!pc->partial);
	pc->partial = partial;
	return list;
}

/*
 * The slow path towards @y.  The order of node lists is not known: when the CPU's own list is
 * empty and @y waits on a node's, the kernel fetched it there, so it stands first.
 */
static void *alloc_towards(struct percpu_cache *p, uint32_t cpu, int32_t node, uint32_t gfp,
			   struct alloc_slab *y)
{
	struct alloc_node *n = percpu_node(p, y);

	if (p->cpus[cpu].partial ||
	    (p->cpus[cpu].slab && percpu_wrong_node(p->cpus[cpu].slab, node)) ||
	    (y->state != ALLOC_STATE_PARTIAL && y->state != ALLOC_STATE_EMPTY))
		return p->policy->alloc_slow(p, cpu, node, gfp);
	alloc_link_del(&y->link);
	alloc_link_add(&n->partial, &y->link, ALLOC_LIST_HEAD);
	return alloc_hiding(p, cpu, node, gfp, y->node);
}

void *percpu_alloc_placed(struct alloc_cache *c, uint32_t cpu, int32_t node, uint32_t gfp,
			  const struct alloc_place *want)
{
	struct percpu_cache *p = percpu_cache(c);
	struct percpu_cpu *pc = &p->cpus[cpu];
	const uint64_t *stat = &c->stat[(size_t)cpu * ALLOC_COUNTER_ROW];
	struct alloc_slab *y = wanted_slab(p, want), *x;
	uint64_t new_slabs = stat[ALLOC_C_ALLOC_SLAB], fetched = stat[ALLOC_C_ALLOC_FROM_PARTIAL];
	bool from_node;
	void *list, *got;

	if (y)
		revive(p, y, want->index);
	if (y && pc->slab == y && pc->freelist && !percpu_wrong_node(y, node)) {
		alloc_count(c, cpu, ALLOC_C_ALLOC_FASTPATH);
		return mark(p, pick(p, y, &pc->freelist, want->index));
	}
	if (y && !can_give(p, pc, y)) /* a contradiction: the variant's own way */
		return mark(p, percpu_alloc(c, cpu, node, gfp));
	if (pc->slab && pc->slab != y && !percpu_wrong_node(pc->slab, node))
		leave(p, cpu);
	y = wanted_slab(p, want); /* leaving may have drained a list and given it back */
	list = y ? alloc_towards(p, cpu, node, gfp, y) : alloc_unseen(p, cpu, node, gfp);
	if (!list)
		return NULL;
	x = pc->slab;
	from_node = stat[ALLOC_C_ALLOC_FROM_PARTIAL] != fetched;
	alloc_free_link(c, list, pc->freelist);
	if (y && y != x && wanted_slab(p, want) == y) {
		got = exchange(p, cpu, x, y, list, from_node);
		x = got ? y : x;
		list = got ? got : list;
	} else if (!y && stat[ALLOC_C_ALLOC_SLAB] == new_slabs) {
		y = make_unseen(p, cpu, node, gfp, from_node, &list);
		x = y ? y : x;
	}
	pc->slab = x;
	pc->freelist = list;
	return mark(p, pick(p, x, &pc->freelist, want->index));
}
