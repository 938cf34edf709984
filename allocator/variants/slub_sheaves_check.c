/* SPDX-License-Identifier: MIT */
/* Invariants of slub-7.2 (drawn in slub_sheaves.h), for tests: every CPU idle. */
#include "allocator/variants/slub_sheaves.h"

struct walk {
	const struct sheaves_cache *sc;
	char *why;
	size_t why_bytes;
	uint64_t *nr_slabs; /* per node */
	int rc;
};

static void sheaf_each(const struct alloc_sheaf *s, alloc_obj_fn fn, void *ctx)
{
	for (uint32_t i = 0; s && i < s->size; i++)
		fn(ctx, s->objects[i]);
}

void sheaves_each_free(const struct alloc_cache *c, alloc_obj_fn fn, void *ctx)
{
	const struct sheaves_cache *sc = sheaves_of(c);

	alloc_slabs_each_free(c, fn, ctx);
	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++) {
		const struct sheaves_cpu *pc = &sc->cpus[cpu];

		sheaf_each(pc->main, fn, ctx);
		sheaf_each(pc->spare, fn, ctx);
		sheaf_each(pc->rcu_free, fn, ctx);
		for (const struct alloc_sheaf *s = pc->waiting; s; s = s->next)
			sheaf_each(s, fn, ctx);
		for (uint32_t i = 0; i < pc->nr_deferred; i++)
			fn(ctx, pc->deferred[i]);
	}
	for (uint32_t n = 0; n < c->machine->nodes; n++)
		for (const struct alloc_sheaf *s = sc->barns[n].full; s; s = s->next)
			sheaf_each(s, fn, ctx);
}

#define BROKEN(w, ...) (snprintf((w)->why, (w)->why_bytes, __VA_ARGS__), (w)->rc = -1)

/* origin_cpu of a slab, unused by this variant, counts its objects that rest in sheaves. */
static void reset_slab(void *ctx, struct alloc_slab *s)
{
	(void)ctx;
	s->origin_cpu = 0;
}

static void check_sheaf(struct walk *w, const struct alloc_sheaf *s)
{
	const struct alloc_cache *c = &w->sc->head;

	if (s->size > s->capacity)
		BROKEN(w, "sheaf of %u objects, capacity %u", s->size, s->capacity);
	for (uint32_t i = 0; !w->rc && i < s->size; i++) {
		struct alloc_slab *slab = alloc_obj_slab(c->machine, s->objects[i]);
		uint64_t at = (uint64_t)((char *)s->objects[i] - slab->mem);

		slab->origin_cpu++;
		if (slab->cache != c || at % c->geo.size)
			BROKEN(w, "sheaf entry %u is no object of this cache", i);
	}
}

static void check_cpu(struct walk *w, uint32_t cpu)
{
	const struct sheaves_cpu *pc = &w->sc->cpus[cpu];

	check_sheaf(w, pc->main);
	if (pc->spare)
		check_sheaf(w, pc->spare);
	if (pc->rcu_free)
		check_sheaf(w, pc->rcu_free);
	for (const struct alloc_sheaf *s = pc->waiting; s; s = s->next)
		check_sheaf(w, s);
}

static void check_barn(struct walk *w, const struct sheaves_barn *b)
{
	uint64_t nr_full = 0, nr_empty = 0;

	for (const struct alloc_sheaf *s = b->full; s; s = s->next, nr_full++) {
		check_sheaf(w, s);
		if (!s->size)
			BROKEN(w, "node %u: an empty sheaf among the full ones", b->lock.node);
	}
	for (const struct alloc_sheaf *s = b->empty; s; s = s->next, nr_empty++)
		if (s->size)
			BROKEN(w, "node %u: objects in an empty sheaf", b->lock.node);
	if (nr_full != b->nr_full || nr_empty != b->nr_empty)
		BROKEN(w, "node %u: barn counts are not its lists' lengths", b->lock.node);
}

static void check_slab(void *ctx, struct alloc_slab *s)
{
	struct walk *w = ctx;
	bool listed = s->flags & ALLOC_SLAB_LISTED;
	bool state_listed = s->state == ALLOC_STATE_PARTIAL || s->state == ALLOC_STATE_EMPTY;

	w->nr_slabs[s->node]++;
	if (w->rc || (w->rc = alloc_slab_check(&w->sc->head, s, w->why, w->why_bytes)) < 0)
		return;
	if (s->origin_cpu > s->word.inuse)
		BROKEN(w, "slab %u: %u objects in sheaves, inuse %u", s->id, s->origin_cpu,
		       s->word.inuse);
	if (listed != state_listed || (s->state == ALLOC_STATE_EMPTY && s->word.inuse) ||
	    (s->state == ALLOC_STATE_PARTIAL && !s->word.inuse))
		BROKEN(w, "slab %u: state %s, inuse %u, %s", s->id, alloc_state_name(s->state),
		       s->word.inuse, listed ? "listed" : "not listed");
	if ((s->state == ALLOC_STATE_FULL) != !s->word.freelist)
		BROKEN(w, "slab %u: state %s, but objects %s", s->id, alloc_state_name(s->state),
		       s->word.freelist ? "are free" : "are all in use");
}

static void check_nodes(struct walk *w)
{
	const struct sheaves_cache *sc = w->sc;
	uint64_t nr_slabs[ALLOC_NODE_MAX] = { 0 };

	w->nr_slabs = nr_slabs;
	alloc_slabs_each(&sc->head, check_slab, w);
	for (uint32_t n = 0; !w->rc && n < sc->head.machine->nodes; n++) {
		w->rc = alloc_node_check(&sc->head, &sc->nodes[n], w->why, w->why_bytes);
		if (!w->rc && nr_slabs[n] != sc->nodes[n].nr_slabs)
			BROKEN(w, "node %u: %llu slabs, nr_slabs %llu", n,
			       (unsigned long long)nr_slabs[n],
			       (unsigned long long)sc->nodes[n].nr_slabs);
	}
}

int sheaves_check(const struct alloc_cache *c, char *why, size_t why_bytes)
{
	const struct sheaves_cache *sc = sheaves_of(c);
	struct walk w = { .sc = sc, .why = why, .why_bytes = why_bytes };

	alloc_slabs_each(c, reset_slab, NULL);
	for (uint32_t cpu = 0; !w.rc && cpu < c->machine->cpus; cpu++)
		check_cpu(&w, cpu);
	for (uint32_t n = 0; !w.rc && n < c->machine->nodes; n++)
		check_barn(&w, &sc->barns[n]);
	if (!w.rc)
		check_nodes(&w);
	if (!w.rc && sc->policy)
		w.rc = sc->policy->check(sc, why, why_bytes);
	return w.rc;
}
