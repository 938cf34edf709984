/* SPDX-License-Identifier: MIT */
/*
 * Allocation: the CPU's freelist, else the slow path in this order: the CPU slab's own list, the
 * per-cpu partial list, the node lists, a new slab.
 */
#include "allocator/variants/percpu.h"

void *percpu_install(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, void *list)
{
	struct percpu_cpu *pc = &p->cpus[cpu];

	assert(list && !pc->freelist && s->state == ALLOC_STATE_CPU);
	assert(alloc_obj_slab(p->head.machine, list) == s);
	/* Relaxed: a hint for frees elsewhere (remotequeue); any recent value will do. */
	__atomic_store_n(&s->origin_cpu, cpu, __ATOMIC_RELAXED);
	pc->slab = s;
	pc->freelist = alloc_free_next(&p->head, list);
	return list;
}

void *percpu_take_freelist(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s,
			   uint32_t *ret_objs)
{
	struct alloc_slab_word old, new;

	assert(s->state == ALLOC_STATE_CPU && !p->cpus[cpu].freelist);
	for (;;) {
		old = new = alloc_word_read(cpu, s);
		new.freelist = NULL;
		new.inuse = old.objects;
		new.frozen = old.freelist != NULL;
		/* Told before the exchange: after it, another CPU may free to it and take it. */
		if (!old.freelist)
			alloc_slab_move(&p->head, s, cpu, ALLOC_STATE_FULL);
		if (percpu_swap_word(p, cpu, s, old, new))
			break;
		if (!old.freelist)
			alloc_slab_move(&p->head, s, cpu, ALLOC_STATE_CPU);
	}
	*ret_objs = old.objects - old.inuse;
	return old.freelist;
}

struct alloc_slab *percpu_new_slab(struct percpu_cache *p, uint32_t cpu, int32_t node,
				   uint32_t gfp, void **ret_list)
{
	struct alloc_slab *s = alloc_slab_create(&p->head, cpu, node, gfp, false);

	if (!s)
		return NULL;
	alloc_node_born(percpu_node(p, s), cpu, s);
	*ret_list = s->word.freelist;
	/* Private until one of its objects is handed out. */
	s->word.freelist = NULL;
	s->word.inuse = s->word.objects;
	s->word.frozen = 1;
	alloc_count(&p->head, cpu, ALLOC_C_ALLOC_SLAB);
	alloc_slab_move(&p->head, s, cpu, ALLOC_STATE_CPU);
	alloc_note_refill(&p->head, cpu, ALLOC_REFILL_NEW_SLAB, s->word.objects);
	return s;
}

/* The gate in front of other nodes' lists: never at 0, else by a draw. */
static bool may_look_elsewhere(struct percpu_cache *p, uint32_t cpu)
{
	return p->defrag_ratio && alloc_gate_draw(p->head.machine, cpu) <= p->defrag_ratio;
}

struct alloc_slab *percpu_get_partial(struct percpu_cache *p, uint32_t cpu, int32_t node,
				      bool others, bool force, void **ret_list)
{
	struct alloc_machine *m = p->head.machine;
	uint32_t local = m->cpu_node[cpu];
	struct alloc_node *n = &p->nodes[node == ALLOC_NODE_ANY ? local : (uint32_t)node];
	struct alloc_slab *s = NULL;

	if (!force)
		s = p->policy->fetch(p, n, cpu, ret_list);
	if (s || !others || (!force && !may_look_elsewhere(p, cpu)))
		return s;
	for (uint32_t i = 0; i < m->nodes && !s; i++) {
		n = &p->nodes[alloc_node_at(m, local, i)];
		if (alloc_racy_read(cpu, &n->nr_partial) > p->min_partial)
			s = p->policy->fetch(p, n, cpu, ret_list);
	}
	return s;
}

struct alloc_slab *percpu_find_slab(struct percpu_cache *p, uint32_t cpu, int32_t node,
				    uint32_t gfp, void **ret_list)
{
	struct alloc_slab *s =
		percpu_get_partial(p, cpu, node, node == ALLOC_NODE_ANY, false, ret_list);

	return s ? s : percpu_new_slab(p, cpu, node, gfp, ret_list);
}

/* A fresh slab of the own node goes before partial slabs of other nodes (2023 RFC, patch 2). */
struct alloc_slab *percpu_find_slab_local(struct percpu_cache *p, uint32_t cpu, int32_t node,
					  uint32_t gfp, void **ret_list)
{
	uint32_t local_gfp =
		(gfp & ~(uint32_t)(ALLOC_GFP_NOFAIL | ALLOC_GFP_MAY_BLOCK)) | ALLOC_GFP_THISNODE;
	bool any = node == ALLOC_NODE_ANY;
	struct alloc_slab *s = percpu_get_partial(p, cpu, node, any, false, ret_list);

	if (!s)
		s = percpu_new_slab(p, cpu, node, local_gfp, ret_list);
	if (!s && any)
		s = percpu_get_partial(p, cpu, node, true, true, ret_list);
	return s ? s : percpu_new_slab(p, cpu, node, gfp, ret_list);
}

/* A named node is tried alone first; the second pass may go anywhere unless gfp forbids it. */
struct alloc_slab *percpu_find_slab_6_12(struct percpu_cache *p, uint32_t cpu, int32_t node,
					 uint32_t gfp, void **ret_list)
{
	uint32_t here_gfp =
		(gfp & ~(uint32_t)(ALLOC_GFP_NOFAIL | ALLOC_GFP_MAY_BLOCK)) | ALLOC_GFP_THISNODE;
	bool only = node != ALLOC_NODE_ANY && (gfp & ALLOC_GFP_THISNODE);
	struct alloc_slab *s;

	if (node != ALLOC_NODE_ANY && !only) {
		s = percpu_get_partial(p, cpu, node, false, false, ret_list);
		if (!s)
			s = percpu_new_slab(p, cpu, node, here_gfp, ret_list);
		if (s)
			return s;
	}
	s = percpu_get_partial(p, cpu, node, !only, false, ret_list);
	return s ? s : percpu_new_slab(p, cpu, node, gfp, ret_list);
}

/* Head of the per-cpu partial list, taken off. */
static struct alloc_slab *pop_partial(struct percpu_cpu *pc)
{
	struct alloc_slab *s = pc->partial;

	assert(s->state == ALLOC_STATE_CPU_PARTIAL);
	pc->partial = percpu_next(s);
	s->link.next = NULL;
	return s;
}

/* The CPU's slab has nothing more to give or stands on the wrong node. */
static void *refill_own(struct percpu_cache *p, uint32_t cpu, bool popped)
{
	struct percpu_cpu *pc = &p->cpus[cpu];
	struct alloc_slab *s = pc->slab;
	uint32_t objs;
	void *list = percpu_take_freelist(p, cpu, s, &objs);

	if (!list) {
		pc->slab = NULL;
		alloc_count(&p->head, cpu, ALLOC_C_DEACTIVATE_BYPASS);
		return NULL;
	}
	alloc_count(&p->head, cpu, ALLOC_C_ALLOC_REFILL);
	if (popped)
		alloc_note_refill(&p->head, cpu, ALLOC_REFILL_CPU_PARTIAL, objs);
	return percpu_install(p, cpu, s, list);
}

void *percpu_alloc_slow(struct percpu_cache *p, uint32_t cpu, int32_t node, uint32_t gfp)
{
	struct percpu_cpu *pc = &p->cpus[cpu];
	struct alloc_slab *s;
	bool popped = false;
	void *obj, *list;

	if (!p->policy->slowpath_per_try)
		alloc_count(&p->head, cpu, ALLOC_C_ALLOC_SLOWPATH);
	for (;;) {
		if (!pc->slab) {
			if (!pc->partial)
				break;
			pc->slab = pop_partial(pc);
			alloc_slab_move(&p->head, pc->slab, cpu, ALLOC_STATE_CPU);
			alloc_count(&p->head, cpu, ALLOC_C_CPU_PARTIAL_ALLOC);
			popped = true;
		}
		if (percpu_wrong_node(pc->slab, node)) {
			alloc_count(&p->head, cpu, ALLOC_C_ALLOC_NODE_MISMATCH);
			percpu_flush_slab(p, cpu);
			continue;
		}
		if (p->policy->slowpath_per_try)
			alloc_count(&p->head, cpu, ALLOC_C_ALLOC_SLOWPATH);
		if ((obj = refill_own(p, cpu, popped)))
			return obj;
	}
	s = p->policy->find_slab(p, cpu, node, gfp, &list);
	return s ? percpu_install(p, cpu, s, list) : NULL;
}

/*
 * A slab of the per-cpu list that fits @node, its objects in *ret_list; those that do not fit go
 * to their node lists one by one.  Slabs on the list are not frozen in this release.
 */
static struct alloc_slab *pop_fitting(struct percpu_cache *p, uint32_t cpu, int32_t node,
				      void **ret_list)
{
	struct percpu_cpu *pc = &p->cpus[cpu];
	struct alloc_slab *s;
	uint32_t objs;

	while (pc->partial) {
		s = pop_partial(pc);
		if (percpu_wrong_node(s, node)) {
			p->policy->unfreeze(p, cpu, s, ALLOC_PATH_ALLOC_SLOWPATH);
			continue;
		}
		alloc_slab_move(&p->head, s, cpu, ALLOC_STATE_CPU);
		*ret_list = percpu_take_freelist(p, cpu, s, &objs);
		assert(*ret_list);
		alloc_count(&p->head, cpu, ALLOC_C_CPU_PARTIAL_ALLOC);
		alloc_note_refill(&p->head, cpu, ALLOC_REFILL_CPU_PARTIAL, objs);
		return s;
	}
	return NULL;
}

void *percpu_alloc_slow_6_12(struct percpu_cache *p, uint32_t cpu, int32_t node, uint32_t gfp)
{
	struct percpu_cpu *pc = &p->cpus[cpu];
	struct alloc_slab *s;
	void *obj, *list;

	alloc_count(&p->head, cpu, ALLOC_C_ALLOC_SLOWPATH);
	if (pc->slab && percpu_wrong_node(pc->slab, node)) {
		alloc_count(&p->head, cpu, ALLOC_C_ALLOC_NODE_MISMATCH);
		percpu_flush_slab(p, cpu);
	} else if (pc->slab && (obj = refill_own(p, cpu, false))) {
		return obj;
	}
	s = pop_fitting(p, cpu, node, &list);
	if (!s)
		s = p->policy->find_slab(p, cpu, node, gfp, &list);
	return s ? percpu_install(p, cpu, s, list) : NULL;
}

uint32_t percpu_alloc_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t gfp, uint32_t nr,
			   void **objs)
{
	struct percpu_cache *p = percpu_cache(c);
	struct percpu_cpu *pc = &p->cpus[cpu];

	for (uint32_t i = 0; i < nr; i++) {
		objs[i] = pc->freelist;
		if (objs[i]) {
			pc->freelist = alloc_free_next(c, objs[i]);
			alloc_count_add(c, cpu, ALLOC_C_ALLOC_FASTPATH, p->policy->count_objs);
			continue;
		}
		objs[i] = p->policy->alloc_slow(p, cpu, ALLOC_NODE_ANY, gfp);
		if (!objs[i]) {
			if (i)
				percpu_free_bulk(c, cpu, i, objs);
			return 0;
		}
	}
	return nr;
}

uint32_t percpu_each_alloc_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t gfp, uint32_t nr,
			   void **objs)
{
	for (uint32_t i = 0; i < nr; i++) {
		objs[i] = percpu_alloc(c, cpu, ALLOC_NODE_ANY, gfp);
		if (!objs[i]) {
			percpu_each_free_bulk(c, cpu, i, objs);
			return 0;
		}
	}
	return nr;
}
