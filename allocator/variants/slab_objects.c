/* SPDX-License-Identifier: MIT */
/* SLAB: allocation and free of objects through the arrays (specification 10.2 - 10.4). */
#include <string.h>

#include "allocator/variants/slab_internal.h"

/* Move up to @max of @from's youngest objects to @to, as room allows, their order kept. */
static uint64_t slab_move_youngest(struct slab_array *to, struct slab_array *from, uint64_t max)
{
	uint64_t nr = from->avail < max ? from->avail : max;

	if (nr > to->limit - to->avail)
		nr = to->limit - to->avail;
	memcpy(to->entry + to->avail, from->entry + from->avail - nr, nr * sizeof(void *));
	slab_set_avail(from, from->avail - nr);
	slab_set_avail(to, to->avail + nr);
	return nr;
}

void slab_drop_oldest(struct slab_array *a, uint64_t nr)
{
	assert(nr <= a->avail);
	memmove(a->entry, a->entry + nr, (a->avail - nr) * sizeof(void *));
	slab_set_avail(a, a->avail - nr);
}

static uint32_t slab_batch(const struct slab_array *ac)
{
	if (!ac->touched && ac->batchcount > SLAB_REFILL_UNTOUCHED)
		return SLAB_REFILL_UNTOUCHED;
	return ac->batchcount;
}

/* Objects of @s into @ac until one of the two or @batch is exhausted; how many. */
static uint32_t slab_take_batch(struct slab_cache *sc, struct slab_array *ac, struct alloc_slab *s,
				uint32_t batch)
{
	uint32_t taken = 0;

	for (; taken < batch && s->word.inuse < s->word.objects; taken++)
		slab_push(ac, slab_take(sc, s));
	return taken;
}

/* Fill @ac (empty) from the node's slabs; node lock held. */
static void slab_refill_from_slabs(struct slab_cache *sc, struct slab_node *n, uint32_t cpu,
				   struct slab_array *ac, uint32_t batch)
{
	struct alloc_slab *s;

	while (batch > 0 && (s = slab_pick(n))) {
		batch -= slab_take_batch(sc, ac, s, batch);
		slab_relink(sc, n, cpu, s);
	}
	alloc_shared_write(&n->free_objects, n->free_objects - ac->avail);
}

/* Fill @ac (empty) from the shared array, else from slabs of the CPU's node. */
static void slab_refill_from_node(struct slab_cache *sc, uint32_t cpu, struct slab_array *ac,
				  enum alloc_refill_source slabs_source)
{
	struct slab_node *n = slab_cpu_node(sc, cpu);
	enum alloc_refill_source source = slabs_source;
	uint32_t batch = slab_batch(ac);

	alloc_lock_acquire(&n->lock, cpu, ALLOC_PATH_REFILL);
	if (n->shared && slab_move_youngest(ac, n->shared, batch)) {
		source = ALLOC_REFILL_SPARE;
		if (sc->rules->touch_shared)
			alloc_shared_write(&n->shared->touched, 1);
	} else {
		slab_refill_from_slabs(sc, n, cpu, ac, batch);
	}
	alloc_lock_release(&n->lock, cpu);
	if (ac->avail)
		alloc_note_refill(&sc->head, cpu, source, (uint32_t)ac->avail);
}

static bool slab_nothing_there(struct slab_cache *sc, uint32_t cpu)
{
	struct slab_node *n = slab_cpu_node(sc, cpu);

	return sc->rules->look_before_lock && !alloc_racy_read(cpu, &n->free_objects) &&
	       (!n->shared || !alloc_racy_read(cpu, &n->shared->avail));
}

/* Link @s to its node's lists. */
static void slab_publish(struct slab_cache *sc, uint32_t cpu, struct alloc_slab *s)
{
	struct slab_node *n = &sc->nodes[s->node];

	alloc_lock_acquire(&n->lock, cpu, ALLOC_PATH_ALLOC_SLOWPATH);
	slab_link_new(sc, cpu, s);
	alloc_lock_release(&n->lock, cpu);
}

/* Grow on the CPU's own node and fill @ac (empty) from there; false: no memory on that node. */
static bool slab_refill_by_growing(struct slab_cache *sc, uint32_t cpu, struct slab_array *ac,
				   uint32_t gfp)
{
	uint16_t node = sc->head.machine->cpu_node[cpu];
	struct alloc_slab *s = slab_grow(sc, cpu, node, gfp | ALLOC_GFP_THISNODE);

	if (!s)
		return false;
	if (!sc->rules->link_first)
		slab_take_batch(sc, ac, s, slab_batch(ac));
	slab_publish(sc, cpu, s);
	if (ac->avail)
		alloc_note_refill(&sc->head, cpu, ALLOC_REFILL_NEW_SLAB, (uint32_t)ac->avail);
	return true;
}

/* Fill an empty array; false: it is still empty. */
static bool slab_refill(struct slab_cache *sc, uint32_t cpu, struct slab_array *ac, uint32_t gfp)
{
	if (!slab_nothing_there(sc, cpu))
		slab_refill_from_node(sc, cpu, ac, ALLOC_REFILL_NODE_PARTIAL);
	while (!ac->avail) {
		if (!slab_refill_by_growing(sc, cpu, ac, gfp))
			return false;
		/* 2.6.30: the new slab is public now; another CPU may empty it first. */
		if (!ac->avail)
			slab_refill_from_node(sc, cpu, ac, ALLOC_REFILL_NEW_SLAB);
	}
	return true;
}

/* One object straight from the slabs of @node, past all arrays; NULL: nothing free there. */
static void *slab_take_from_node(struct slab_cache *sc, uint32_t cpu, uint32_t node,
				 enum alloc_refill_source source)
{
	struct slab_node *n = &sc->nodes[node];
	struct alloc_slab *s;
	void *obj = NULL;

	alloc_lock_acquire(&n->lock, cpu, ALLOC_PATH_ALLOC_SLOWPATH);
	s = slab_pick(n);
	if (s) {
		obj = slab_take(sc, s);
		alloc_shared_write(&n->free_objects, n->free_objects - 1);
		slab_relink(sc, n, cpu, s);
	}
	alloc_lock_release(&n->lock, cpu);
	if (obj)
		alloc_note_refill(&sc->head, cpu, source, 1);
	return obj;
}

/*
 * Any node: the first one with free objects, nearest first; else a new slab wherever there is room,
 * published before an object is taken, so that the search repeats when others were faster.
 */
static void *slab_alloc_fallback(struct slab_cache *sc, uint32_t cpu, uint32_t gfp)
{
	struct alloc_machine *m = sc->head.machine;
	struct alloc_slab *s;
	uint16_t node;
	void *obj;

	for (;;) {
		for (uint32_t i = 0; i < m->nodes; i++) {
			node = alloc_node_at(m, m->cpu_node[cpu], i);
			if (!alloc_racy_read(cpu, &sc->nodes[node].free_objects))
				continue;
			obj = slab_take_from_node(sc, cpu, node, ALLOC_REFILL_REMOTE_NODE);
			if (obj)
				return obj;
		}
		s = slab_grow(sc, cpu, ALLOC_NODE_ANY, gfp);
		if (!s)
			return NULL;
		node = s->node;
		slab_publish(sc, cpu, s);
		obj = slab_take_from_node(sc, cpu, node, ALLOC_REFILL_NEW_SLAB);
		if (obj)
			return obj;
	}
}

/* One object of @node: its slabs, else a new one there; NULL: no memory on that node. */
static void *slab_alloc_exact_node(struct slab_cache *sc, uint32_t cpu, uint32_t node, uint32_t gfp)
{
	enum alloc_refill_source source = ALLOC_REFILL_REMOTE_NODE;
	struct alloc_slab *s;
	void *obj;

	for (;;) {
		obj = slab_take_from_node(sc, cpu, node, source);
		if (obj)
			return obj;
		s = slab_grow(sc, cpu, (int32_t)node, gfp | ALLOC_GFP_THISNODE);
		if (!s)
			return NULL;
		source = ALLOC_REFILL_NEW_SLAB;
		if (!sc->rules->link_first)
			break;
		slab_publish(sc, cpu, s);
	}
	obj = slab_take(sc, s);
	slab_publish(sc, cpu, s);
	alloc_note_refill(&sc->head, cpu, source, 1);
	return obj;
}

static void *slab_alloc_node(struct slab_cache *sc, uint32_t cpu, uint32_t node, uint32_t gfp)
{
	void *obj = slab_alloc_exact_node(sc, cpu, node, gfp);

	if (!obj && !(gfp & ALLOC_GFP_THISNODE))
		obj = slab_alloc_fallback(sc, cpu, gfp);
	return obj;
}

void *slab_alloc(struct alloc_cache *c, uint32_t cpu, int32_t node, uint32_t gfp)
{
	struct slab_cache *sc = slab_cache_of(c);
	struct slab_array *ac = sc->cpu_array[cpu];
	uint16_t local = c->machine->cpu_node[cpu];

	if (node != ALLOC_NODE_ANY && node != local)
		return slab_alloc_node(sc, cpu, (uint32_t)node, gfp);
	if (!ac->avail && !slab_refill(sc, cpu, ac, gfp))
		return slab_alloc_node(sc, cpu, local, gfp);
	ac->touched = 1;
	return ac->entry[--ac->avail];
}

/* Room for one batch in a full array: to the shared array what fits there, else to slabs. */
static void slab_flush_array(struct slab_cache *sc, uint32_t cpu, struct slab_array *ac)
{
	struct slab_node *n = slab_cpu_node(sc, cpu);
	struct alloc_link doomed;
	uint64_t nr = ac->batchcount, room;

	alloc_link_init(&doomed);
	alloc_lock_acquire(&n->lock, cpu, ALLOC_PATH_FREE);
	room = n->shared ? n->shared->limit - n->shared->avail : 0;
	if (room) {
		nr = nr < room ? nr : room;
		memcpy(n->shared->entry + n->shared->avail, ac->entry, nr * sizeof(void *));
		slab_set_avail(n->shared, n->shared->avail + nr);
	} else {
		slab_give_back(sc, n, cpu, ac->entry, nr, &doomed);
	}
	alloc_lock_release(&n->lock, cpu);
	slab_drop_oldest(ac, nr);
	slab_destroy_list(sc, cpu, &doomed);
}

void slab_drain_alien(struct slab_cache *sc, uint32_t cpu, struct slab_array *a,
		      struct slab_node *home, enum alloc_lock_path path, struct alloc_link *doomed)
{
	if (!a->avail)
		return;
	alloc_lock_acquire(&home->lock, cpu, path);
	if (home->shared)
		slab_move_youngest(home->shared, a, a->limit);
	slab_give_back(sc, home, cpu, a->entry, a->avail, doomed);
	slab_set_avail(a, 0);
	alloc_lock_release(&home->lock, cpu);
}

/* Free of an object of another node: queued on this node until a dozen go home together. */
static void slab_free_alien(struct slab_cache *sc, uint32_t cpu, void *obj, uint16_t home_node)
{
	struct slab_node *n = slab_cpu_node(sc, cpu), *home = &sc->nodes[home_node];
	struct slab_alien *alien = n->alien ? &n->alien[home_node] : NULL;
	struct alloc_link doomed;

	alloc_link_init(&doomed);
	if (alien) {
		alloc_lock_acquire(&alien->lock, cpu, ALLOC_PATH_FREE);
		if (alien->array->avail == alien->array->limit)
			slab_drain_alien(sc, cpu, alien->array, home, ALLOC_PATH_DRAIN, &doomed);
		slab_push(alien->array, obj);
		alloc_lock_release(&alien->lock, cpu);
	} else {
		alloc_lock_acquire(&home->lock, cpu, ALLOC_PATH_FREE);
		slab_give_back(sc, home, cpu, &obj, 1, &doomed);
		alloc_lock_release(&home->lock, cpu);
	}
	slab_destroy_list(sc, cpu, &doomed);
}

void slab_free(struct alloc_cache *c, uint32_t cpu, void *obj)
{
	struct slab_cache *sc = slab_cache_of(c);
	struct slab_array *ac = sc->cpu_array[cpu];

	if (c->machine->nodes > 1) {
		uint16_t home = alloc_obj_slab(c->machine, obj)->node;

		if (home != c->machine->cpu_node[cpu]) {
			slab_free_alien(sc, cpu, obj, home);
			return;
		}
	}
	if (ac->avail == ac->limit)
		slab_flush_array(sc, cpu, ac);
	ac->entry[ac->avail++] = obj;
}

uint32_t slab_alloc_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t gfp, uint32_t nr, void **objs)
{
	for (uint32_t i = 0; i < nr; i++) {
		objs[i] = slab_alloc(c, cpu, ALLOC_NODE_ANY, gfp);
		if (!objs[i]) {
			slab_free_bulk(c, cpu, i, objs);
			return 0;
		}
	}
	return nr;
}

void slab_free_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t nr, void **objs)
{
	for (uint32_t i = 0; i < nr; i++)
		slab_free(c, cpu, objs[i]);
}
