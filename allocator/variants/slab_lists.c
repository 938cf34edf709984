/* SPDX-License-Identifier: MIT */
/*
 * SLAB: slabs and the three lists of a node (specification 10.2 - 10.4).
 *
 *	new ---> full | partial(head) ---give back---> partial(TAIL) ---> free(HEAD) ---> gone
 *
 * Simplification: the index array lies in memory of its own, 16 bits per object, wherever the
 * layout of the release would put it; the geometry is that of the release.
 */
#include <stdlib.h>

#include "allocator/variants/slab_internal.h"

static uint16_t *slab_index(const struct alloc_slab *s)
{
	return s->word.freelist;
}

void *slab_take(struct slab_cache *sc, struct alloc_slab *s)
{
	uint32_t at = s->word.inuse;

	assert(at < s->word.objects);
	s->word.inuse = (at + 1) & 0x7fffffffu;
	return s->mem + (size_t)slab_index(s)[at] * sc->head.geo.size;
}

static void slab_put_back(struct slab_cache *sc, struct alloc_slab *s, void *obj)
{
	uint32_t at = s->word.inuse - 1;

	assert(s->word.inuse > 0);
	slab_index(s)[at] = (uint16_t)alloc_obj_index(&sc->head, s, obj);
	s->word.inuse = at & 0x7fffffffu;
}

struct alloc_slab *slab_pick(struct slab_node *n)
{
	struct alloc_slab *s = slab_first(&n->partial);

	if (!s) {
		alloc_shared_write(&n->free_touched, 1);
		s = slab_first(&n->free);
		if (!s)
			return NULL;
		n->free_slabs--;
	}
	alloc_link_touch_del(&s->link);
	alloc_link_del(&s->link);
	return s;
}

void slab_relink(struct slab_cache *sc, struct slab_node *n, uint32_t cpu, struct alloc_slab *s)
{
	bool full = s->word.inuse == s->word.objects;

	assert(s->word.inuse > 0);
	alloc_link_touch_add(full ? &n->full : &n->partial, ALLOC_LIST_HEAD);
	alloc_link_add(full ? &n->full : &n->partial, &s->link, ALLOC_LIST_HEAD);
	alloc_slab_move(&sc->head, s, cpu, full ? ALLOC_STATE_FULL : ALLOC_STATE_PARTIAL);
}

/* Offset of the first object of the next slab on @n; CPUs that race may get the same one. */
static uint64_t slab_next_colour(struct slab_cache *sc, struct slab_node *n, uint32_t cpu)
{
	uint64_t colour = alloc_racy_read(cpu, &n->colour_next) + 1;

	if (colour >= sc->colour)
		colour = 0;
	alloc_shared_write(&n->colour_next, colour);
	return colour * sc->colour_off_bytes;
}

struct alloc_slab *slab_grow(struct slab_cache *sc, uint32_t cpu, int32_t node, uint32_t gfp)
{
	struct alloc_slab *s = alloc_slab_create(&sc->head, cpu, node, gfp, true);
	uint16_t *index;

	if (!s)
		return NULL;
	index = malloc(s->word.objects * sizeof(*index));
	if (!index) {
		alloc_slab_discard(&sc->head, cpu, s);
		return NULL;
	}
	for (uint32_t i = 0; i < s->word.objects; i++)
		index[i] = (uint16_t)i;
	s->word.freelist = index;
	s->mem += slab_next_colour(sc, &sc->nodes[s->node], cpu);
	return s;
}

void slab_link_new(struct slab_cache *sc, uint32_t cpu, struct alloc_slab *s)
{
	struct slab_node *n = &sc->nodes[s->node];

	n->total_slabs++;
	alloc_shared_write(&n->free_objects, n->free_objects + s->word.objects - s->word.inuse);
	if (s->word.inuse) {
		slab_relink(sc, n, cpu, s);
		return;
	}
	n->free_slabs++;
	alloc_link_add(&n->free, &s->link, ALLOC_LIST_TAIL);
	alloc_slab_move(&sc->head, s, cpu, ALLOC_STATE_EMPTY);
}

void slab_destroy_one(struct slab_cache *sc, uint32_t cpu, struct alloc_slab *s)
{
	free(s->word.freelist);
	s->word.freelist = NULL;
	alloc_slab_discard(&sc->head, cpu, s);
}

void slab_destroy_list(struct slab_cache *sc, uint32_t cpu, struct alloc_link *doomed)
{
	for (struct alloc_slab *s; (s = slab_first(doomed));) {
		alloc_link_del(&s->link);
		slab_destroy_one(sc, cpu, s);
	}
}

/* An empty slab leaves the account of its node; it is on no list any more.  Lock held. */
static void slab_leave_node(struct slab_node *n, const struct alloc_slab *s)
{
	assert(s->word.inuse == 0 && n->free_objects >= s->word.objects);
	n->total_slabs--;
	alloc_shared_write(&n->free_objects, n->free_objects - s->word.objects);
}

/* A slab became empty: kept at the HEAD of free, or (2.6.30, above the limit) destroyed at once. */
static void slab_emptied(struct slab_cache *sc, struct slab_node *n, uint32_t cpu,
			 struct alloc_slab *s)
{
	if (sc->rules->destroy_each && n->free_objects > n->free_limit) {
		slab_leave_node(n, s);
		slab_destroy_one(sc, cpu, s);
		return;
	}
	n->free_slabs++;
	alloc_link_add(&n->free, &s->link, ALLOC_LIST_HEAD);
	alloc_slab_move(&sc->head, s, cpu, ALLOC_STATE_EMPTY);
}

static void slab_give_back_one(struct slab_cache *sc, struct slab_node *n, uint32_t cpu, void *obj)
{
	struct alloc_slab *s = alloc_obj_slab(sc->head.machine, obj);
	bool was_full = s->word.inuse == s->word.objects;

	assert(&sc->nodes[s->node] == n && s->cache == &sc->head);
	alloc_link_touch_del(&s->link);
	alloc_link_del(&s->link);
	slab_put_back(sc, s, obj);
	alloc_shared_write(&n->free_objects, n->free_objects + 1);
	alloc_note_free_class(&sc->head, cpu, was_full, s->word.inuse == 0);
	if (s->word.inuse == 0) {
		slab_emptied(sc, n, cpu, s);
		return;
	}
	alloc_link_touch_add(&n->partial, ALLOC_LIST_TAIL);
	alloc_link_add(&n->partial, &s->link, ALLOC_LIST_TAIL);
	alloc_slab_move(&sc->head, s, cpu, ALLOC_STATE_PARTIAL);
}

void slab_give_back(struct slab_cache *sc, struct slab_node *n, uint32_t cpu, void **objs,
		    uint64_t nr, struct alloc_link *doomed)
{
	struct alloc_slab *s;

	for (uint64_t i = 0; i < nr; i++)
		slab_give_back_one(sc, n, cpu, objs[i]);
	while (!sc->rules->destroy_each && n->free_objects > n->free_limit &&
	       (s = slab_last(&n->free))) {
		alloc_link_del(&s->link);
		n->free_slabs--;
		slab_leave_node(n, s);
		alloc_link_add(doomed, &s->link, ALLOC_LIST_TAIL);
	}
}
