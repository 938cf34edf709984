/* SPDX-License-Identifier: MIT */
/* SLAB: the invariants of slab_internal.h, all of them, on an idle cache. */
#include <inttypes.h>
#include <stdlib.h>

#include "allocator/variants/slab_internal.h"

/* Where a violation is reported. */
struct report {
	char *why;
	size_t bytes;
};

/* The index array numbers every object exactly once. */
static int check_index(const struct alloc_slab *s, struct report *r)
{
	const uint16_t *index = s->word.freelist;
	uint32_t objects = s->word.objects;
	uint8_t *seen = calloc(objects, 1);
	int rc = 0;

	if (!seen)
		return 0;
	/* Entries below inuse are left over; only those of free objects mean something. */
	for (uint32_t i = s->word.inuse; i < objects && !rc; i++) {
		if (index[i] >= objects || seen[index[i]]++) {
			snprintf(r->why, r->bytes, "slab %u: free object %u is wrong or twice there",
				 s->id, index[i]);
			rc = -1;
		}
	}
	free(seen);
	return rc;
}

enum which { LIST_PARTIAL, LIST_FULL, LIST_FREE };

static bool slab_fits_list(const struct alloc_slab *s, enum which list)
{
	uint32_t inuse = s->word.inuse, objects = s->word.objects;

	switch (list) {
	case LIST_PARTIAL:
		return inuse > 0 && inuse < objects && s->state == ALLOC_STATE_PARTIAL;
	case LIST_FULL:
		return inuse == objects && s->state == ALLOC_STATE_FULL;
	default:
		return inuse == 0 && s->state == ALLOC_STATE_EMPTY;
	}
}

/* Length of the list and free objects on it are added up; a slab in the wrong place is an error. */
static int check_list(const struct slab_cache *sc, uint32_t node, enum which list,
		      uint64_t *slabs, uint64_t *free_objs, struct report *r)
{
	const struct slab_node *n = &sc->nodes[node];
	const struct alloc_link *head = list == LIST_PARTIAL ? &n->partial
				      : list == LIST_FULL    ? &n->full
							     : &n->free;

	for (struct alloc_slab *s = slab_first(head); s; s = slab_next(head, s)) {
		if (s->node != node || s->cache != &sc->head || !slab_fits_list(s, list)) {
			snprintf(r->why, r->bytes,
				 "node %u: slab %u (node %u, state %u, %u of %u out) is on list %d",
				 node, s->id, s->node, s->state, s->word.inuse, s->word.objects,
				 (int)list);
			return -1;
		}
		if (check_index(s, r) < 0)
			return -1;
		*free_objs += s->word.objects - s->word.inuse;
		if (++*slabs > n->total_slabs)
			break;
	}
	return 0;
}

static int check_node(const struct slab_cache *sc, uint32_t node, struct report *r)
{
	const struct slab_node *n = &sc->nodes[node];
	uint64_t slabs = 0, free_slabs = 0, free_objs = 0;

	if (check_list(sc, node, LIST_PARTIAL, &slabs, &free_objs, r) < 0 ||
	    check_list(sc, node, LIST_FULL, &slabs, &free_objs, r) < 0 ||
	    check_list(sc, node, LIST_FREE, &free_slabs, &free_objs, r) < 0)
		return -1;
	if (slabs + free_slabs == n->total_slabs && free_slabs == n->free_slabs &&
	    free_objs == n->free_objects)
		return 0;
	snprintf(r->why, r->bytes,
		 "node %u: %" PRIu64 " slabs (%" PRIu64 " free) with %" PRIu64
		 " free objects; counted %" PRIu64 " (%" PRIu64 "), %" PRIu64,
		 node, slabs + free_slabs, free_slabs, free_objs, n->total_slabs, n->free_slabs,
		 n->free_objects);
	return -1;
}

static bool object_is_free(const struct slab_cache *sc, const struct alloc_slab *s, const void *obj)
{
	const uint16_t *index = s->word.freelist;

	for (uint32_t i = s->word.inuse; i < s->word.objects; i++)
		if (index[i] == alloc_obj_index(&sc->head, s, obj))
			return true;
	return false;
}

struct each_free {
	const struct slab_cache *sc;
	alloc_obj_fn fn;
	void *ctx;
};

static void each_free_of_slab(void *ctx, struct alloc_slab *s)
{
	const struct each_free *e = ctx;
	const uint16_t *index = s->word.freelist;

	for (uint32_t i = s->word.inuse; i < s->word.objects; i++)
		e->fn(e->ctx, s->mem + (size_t)index[i] * e->sc->head.geo.size);
}

static void each_free_of_array(const struct slab_array *a, alloc_obj_fn fn, void *ctx)
{
	for (uint64_t i = 0; a && i < a->avail; i++)
		fn(ctx, a->entry[i]);
}

void slab_each_free(const struct alloc_cache *c, alloc_obj_fn fn, void *ctx)
{
	const struct slab_cache *sc = slab_cache_of(c);
	struct each_free e = { sc, fn, ctx };

	alloc_slabs_each(c, each_free_of_slab, &e);
	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++)
		each_free_of_array(sc->cpu_array[cpu], fn, ctx);
	for (uint32_t node = 0; node < c->machine->nodes; node++) {
		const struct slab_node *n = &sc->nodes[node];

		each_free_of_array(n->shared, fn, ctx);
		for (uint32_t home = 0; n->alien && home < c->machine->nodes; home++)
			each_free_of_array(n->alien[home].array, fn, ctx);
	}
}

/* All cached objects of the cache, for the search of duplicates. */
struct pile {
	void **objs; /* NULL: no memory, then there is no such search */
	uint64_t nr;
};

static int check_array(const struct slab_cache *sc, const struct slab_array *a, uint32_t node,
		       struct pile *pile, struct report *r)
{
	if (!a)
		return 0;
	if (a->avail > a->limit) {
		snprintf(r->why, r->bytes, "an array of node %u holds %" PRIu64 " of %u", node,
			 a->avail, a->limit);
		return -1;
	}
	for (uint64_t i = 0; i < a->avail; i++) {
		struct alloc_slab *s = alloc_obj_slab(sc->head.machine, a->entry[i]);

		if (s->cache != &sc->head || s->node != node || object_is_free(sc, s, a->entry[i])) {
			snprintf(r->why, r->bytes, "an array of node %u holds object %u of slab %u",
				 node, alloc_obj_index(&sc->head, s, a->entry[i]), s->id);
			return -1;
		}
		if (pile->objs)
			pile->objs[pile->nr++] = a->entry[i];
	}
	return 0;
}

static int check_arrays(const struct slab_cache *sc, struct pile *pile, struct report *r)
{
	const struct alloc_machine *m = sc->head.machine;

	for (uint32_t cpu = 0; cpu < m->cpus; cpu++)
		if (check_array(sc, sc->cpu_array[cpu], m->cpu_node[cpu], pile, r) < 0)
			return -1;
	for (uint32_t node = 0; node < m->nodes; node++) {
		const struct slab_node *n = &sc->nodes[node];

		if (check_array(sc, n->shared, node, pile, r) < 0)
			return -1;
		for (uint32_t home = 0; n->alien && home < m->nodes; home++)
			if (check_array(sc, n->alien[home].array, home, pile, r) < 0)
				return -1;
	}
	return 0;
}

static int compare_pointers(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;

	return x < y ? -1 : x > y;
}

static int check_twice(const struct pile *pile, struct report *r)
{
	qsort(pile->objs, pile->nr, sizeof(*pile->objs), compare_pointers);
	for (uint64_t i = 1; i < pile->nr; i++)
		if (pile->objs[i] == pile->objs[i - 1]) {
			snprintf(r->why, r->bytes, "object %p is cached twice", pile->objs[i]);
			return -1;
		}
	return 0;
}

int slab_check(const struct alloc_cache *c, char *why, size_t why_bytes)
{
	const struct slab_cache *sc = slab_cache_of(c);
	struct report r = { why, why_bytes };
	struct alloc_cache_state st;
	struct pile pile = { 0 };
	int rc = 0;

	for (uint32_t node = 0; node < c->machine->nodes && !rc; node++)
		rc = check_node(sc, node, &r);
	if (rc)
		return rc;
	slab_state(c, &st);
	if (st.cached_objs > st.objects) {
		snprintf(why, why_bytes, "%" PRIu64 " objects in arrays, only %" PRIu64
			 " out of the slabs", st.cached_objs, st.objects);
		return -1;
	}
	pile.objs = malloc((st.cached_objs + 1) * sizeof(*pile.objs));
	rc = check_arrays(sc, &pile, &r);
	if (!rc && pile.objs)
		rc = check_twice(&pile, &r);
	free(pile.objs);
	return rc;
}
