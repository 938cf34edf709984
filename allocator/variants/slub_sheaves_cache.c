/* SPDX-License-Identifier: MIT */
/* Caches of slub-7.2: creation, knobs, sysfs values, state dump.  Contracts: variant.h. */
#include "allocator/variants/slub_sheaves.h"

#include <errno.h>
#include <stdlib.h>

#include "allocator/dump.h"
#include "allocator/sizing.h"

/* Where a knob's value is kept; range and name check come from the variant's table. */
static const struct {
	const char *name;
	size_t offset;
} fields[] = {
	{ "min_partial", offsetof(struct sheaves_cache, min_partial) },
	{ "defrag", offsetof(struct sheaves_cache, defrag) },
	{ "remote_node_defrag_ratio", offsetof(struct sheaves_cache, defrag) },
	{ "sheaf_capacity", offsetof(struct sheaves_cache, capacity) },
	{ "slub_min_order", offsetof(struct sheaves_cache, min_order) },
	{ "slub_max_order", offsetof(struct sheaves_cache, max_order) },
	{ "slub_min_objects", offsetof(struct sheaves_cache, min_objects) },
	{ "rcu_delay_ns", offsetof(struct sheaves_cache, rcu_delay_ns) },
	{ "unpark_delay_ns", offsetof(struct sheaves_cache, unpark_delay_ns) },
	{ "park_every", offsetof(struct sheaves_cache, park_every) },
	{ "park_late", offsetof(struct sheaves_cache, park_late) },
};

static const struct alloc_knob *find_knob(const struct alloc_variant *v, const char *name)
{
	for (uint32_t i = 0; i < v->nr_knobs; i++)
		if (!strcmp(v->knobs[i].name, name))
			return &v->knobs[i];
	return NULL;
}

/* NULL for a knob without a value of its own (cpu_partial). */
static int64_t *field_of(struct sheaves_cache *sc, const char *name)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (!strcmp(fields[i].name, name))
			return (int64_t *)(void *)((char *)sc + fields[i].offset);
	return NULL;
}

static int store_knob(struct sheaves_cache *sc, const struct alloc_variant *v, const char *name,
		      int64_t value)
{
	const struct alloc_knob *k = find_knob(v, name);
	int64_t *field = field_of(sc, name);

	if (!k)
		return -ENOENT;
	if (value < k->min || value > k->max)
		return -EINVAL;
	if (!field)
		return 0;
	*field = strcmp(name, "remote_node_defrag_ratio") ? value : 10 * value;
	/* As at boot: the later of two contradicting orders wins. */
	if (field == &sc->min_order && sc->max_order < value)
		sc->max_order = value;
	if (field == &sc->max_order && sc->min_order > value)
		sc->min_order = value;
	return 0;
}

int sheaves_set_knob(struct alloc_cache *c, const char *name, int64_t value)
{
	const struct alloc_knob *k = find_knob(c->variant, name);

	if (k && k->at_create)
		return -EINVAL;
	return store_knob(sheaves_of(c), c->variant, name, value);
}

int sheaves_get_knob(const struct alloc_cache *c, const char *name, int64_t *ret_value)
{
	int64_t *field = field_of(sheaves_of(c), name);

	if (!find_knob(c->variant, name))
		return -ENOENT;
	*ret_value = !field ? 0 : strcmp(name, "remote_node_defrag_ratio") ? *field : *field / 10;
	return 0;
}

/*
 * Knobs at creation.  A nonzero cpu_partial, which this kernel refuses, is passed over: scripts
 * and recordings of older kernels name it.
 */
static int apply_config(struct sheaves_cache *sc, const struct alloc_variant *v,
			const struct alloc_machine *m, const struct alloc_cache_config *cfg,
			struct alloc_geometry *ret_geo)
{
	struct alloc_sizing sz;
	int rc;

	sc->min_partial = -1;
	sc->defrag = 1000;
	sc->max_order = 3;
	sc->rcu_delay_ns = 20000000;
	sc->unpark_delay_ns = 4000000;
	for (size_t i = 0; i < cfg->nr_knobs; i++) {
		rc = store_knob(sc, v, cfg->knobs[i].name, cfg->knobs[i].value);
		if (rc < 0 && strcmp(cfg->knobs[i].name, "cpu_partial"))
			return -EINVAL;
	}
	sz = (struct alloc_sizing){ m->cpus, (uint32_t)sc->min_order, (uint32_t)sc->max_order,
				    (uint32_t)sc->min_objects };
	rc = alloc_slub_geometry(ALLOC_ERA_7_2, &sz, cfg->object_size, cfg->align, cfg->flags,
				 ret_geo);
	if (rc < 0)
		return rc;
	if (sc->min_partial < 0)
		sc->min_partial = alloc_min_partial(ALLOC_ERA_7_2, ret_geo->size);
	sc->capacity = alloc_sheaf_capacity(ret_geo->size, (uint32_t)sc->capacity);
	return 0;
}

/* A zeroed array aligned to cache lines. */
static void *lines(size_t nr, size_t bytes)
{
	void *p = aligned_alloc(64, nr * bytes);

	if (p)
		memset(p, 0, nr * bytes);
	return p;
}

/* Per-CPU and per-node parts; one main sheaf for each CPU, charged to CPU 0. */
static int build(struct sheaves_cache *sc)
{
	const struct alloc_machine *m = sc->head.machine;

	sc->cpus = lines(m->cpus, sizeof(*sc->cpus));
	sc->barns = lines(m->nodes, sizeof(*sc->barns));
	sc->parked = lines(m->nodes, sizeof(*sc->parked));
	sc->nodes = alloc_nodes_create(&sc->head);
	if (!sc->cpus || !sc->barns || !sc->parked || !sc->nodes)
		return -ENOMEM;
	for (uint32_t n = 0; n < m->nodes; n++)
		alloc_lock_init(&sc->barns[n].lock, &sc->head, (uint16_t)n, ALLOC_LOCK_BARN,
				ALLOC_RANK_BARN);
	for (uint32_t cpu = 0; cpu < m->cpus; cpu++) {
		struct sheaves_cpu *pc = &sc->cpus[cpu];

		pc->node = m->cpu_node[cpu];
		pc->waiting_end = &pc->waiting;
		pc->main = sheaves_new(sc, 0, (uint32_t)sc->capacity);
		if (!pc->main)
			return -ENOMEM;
	}
	return 0;
}

int sheaves_create(struct alloc_machine *m, const struct alloc_cache_config *cfg,
		   const struct alloc_variant *v, const struct sheaves_policy *policy,
		   struct alloc_cache **ret_cache)
{
	struct sheaves_cache *sc = calloc(1, sizeof(*sc));
	struct alloc_geometry geo;
	int rc;

	if (!sc)
		return -ENOMEM;
	sc->policy = policy;
	rc = apply_config(sc, v, m, cfg, &geo);
	if (rc == 0)
		rc = alloc_cache_init(&sc->head, v, m, cfg, &geo,
				      geo.objects > sc->capacity ? geo.objects
								 : (uint32_t)sc->capacity);
	if (rc < 0) {
		free(sc);
		return rc;
	}
	rc = build(sc);
	if (rc < 0) {
		sheaves_destroy(&sc->head);
		return rc;
	}
	*ret_cache = &sc->head;
	return 0;
}

static void free_sheaves(struct alloc_sheaf *s)
{
	for (struct alloc_sheaf *next; s; s = next) {
		next = s->next;
		free(s);
	}
}

static void chain_slab(void *ctx, struct alloc_slab *s)
{
	struct alloc_link **chain = ctx;

	s->link.next = *chain;
	*chain = &s->link;
}

void sheaves_destroy(struct alloc_cache *c)
{
	struct sheaves_cache *sc = sheaves_of(c);
	struct alloc_link *chain = NULL, *next;

	if (!c)
		return;
	alloc_slabs_each(c, chain_slab, &chain);
	for (; chain; chain = next) {
		next = chain->next;
		alloc_slab_discard(c, 0, alloc_slab_from_link(chain));
	}
	for (uint32_t cpu = 0; sc->cpus && cpu < c->machine->cpus; cpu++) {
		struct sheaves_cpu *pc = &sc->cpus[cpu];

		free(pc->main);
		free(pc->spare);
		free(pc->rcu_free);
		free_sheaves(pc->waiting);
		free(pc->deferred);
	}
	for (uint32_t n = 0; sc->barns && n < c->machine->nodes; n++) {
		free_sheaves(sc->barns[n].full);
		free_sheaves(sc->barns[n].empty);
	}
	free(sc->cpus);
	free(sc->barns);
	free(sc->parked);
	free(sc->nodes);
	alloc_cache_fini(c);
	free(sc);
}

static uint64_t cached_objects(const struct alloc_sheaf *s)
{
	uint64_t nr = 0;

	for (; s; s = s->next)
		nr += s->size;
	return nr;
}

void sheaves_cached(const struct alloc_cache *c, struct alloc_cached *by_node)
{
	const struct sheaves_cache *sc = sheaves_of(c);

	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++) {
		const struct sheaves_cpu *pc = &sc->cpus[cpu];

		by_node[c->machine->cpu_node[cpu]].objs +=
			pc->main->size + cached_objects(pc->waiting) + pc->nr_deferred +
			(pc->spare ? pc->spare->size : 0) + (pc->rcu_free ? pc->rcu_free->size : 0);
	}
	for (uint32_t n = 0; n < c->machine->nodes; n++) {
		by_node[n].objs += cached_objects(sc->barns[n].full);
		by_node[n].full_sheaves += sc->barns[n].nr_full;
		by_node[n].empty_sheaves += sc->barns[n].nr_empty;
	}
}

void sheaves_state(const struct alloc_cache *c, struct alloc_cache_state *ret_state)
{
	*ret_state = (struct alloc_cache_state){ 0 };
	alloc_nodes_state(c, sheaves_of(c)->nodes, ret_state);
	alloc_cached_sum(c, ret_state);
}

static void dump_node(const struct sheaves_cache *sc, struct alloc_dump *d, uint32_t node, bool full)
{
	const struct alloc_node *n = &sc->nodes[node];
	char key[12];

	snprintf(key, sizeof(key), "%u", node);
	d->object_begin(d->ctx, key);
	d->number(d->ctx, "nr_partial", (int64_t)n->nr_partial);
	d->number(d->ctx, "nr_slabs", (int64_t)n->nr_slabs);
	d->number(d->ctx, "total_objects", (int64_t)n->total_objects);
	if (n->nr_partial)
		d->array_begin(d->ctx, "partial");
	for (struct alloc_slab *s = alloc_partial_first(n); s; s = alloc_partial_next(n, s)) {
		d->object_begin(d->ctx, NULL);
		d->slab(d->ctx, "slab", s);
		d->number(d->ctx, "node", s->node);
		d->number(d->ctx, "inuse", s->word.inuse);
		d->number(d->ctx, "objects", s->word.objects);
		d->number(d->ctx, "frozen", s->word.frozen);
		if (full)
			d->array_begin(d->ctx, "free");
		for (void *obj = full ? s->word.freelist : NULL; obj;
		     obj = alloc_free_next(&sc->head, obj))
			d->number(d->ctx, NULL, alloc_obj_index(&sc->head, s, obj));
		if (full)
			d->end(d->ctx);
		d->end(d->ctx);
	}
	if (n->nr_partial)
		d->end(d->ctx);
	d->end(d->ctx);
}

static void dump_sheaf(const struct sheaves_cache *sc, struct alloc_dump *d, const char *where,
		       uint32_t id, const struct alloc_sheaf *s, bool full)
{
	const struct alloc_machine *m = sc->head.machine;

	if (!s)
		return;
	d->object_begin(d->ctx, NULL);
	d->string(d->ctx, "where", where);
	d->number(d->ctx, strcmp(where, "barn_full") ? "cpu" : "node", id);
	d->number(d->ctx, "size", s->size);
	if (full && s->size) {
		d->array_begin(d->ctx, "objects");
		for (uint32_t i = 0; i < s->size; i++) {
			struct alloc_slab *slab = alloc_obj_slab(m, s->objects[i]);

			d->object(d->ctx, NULL, slab,
				  alloc_obj_index(&sc->head, slab, s->objects[i]));
		}
		d->end(d->ctx);
	}
	d->end(d->ctx);
}

static void dump_sheaves(const struct sheaves_cache *sc, struct alloc_dump *d, bool full)
{
	const struct alloc_machine *m = sc->head.machine;

	d->array_begin(d->ctx, "sheaves");
	for (uint32_t cpu = 0; cpu < m->cpus; cpu++) {
		dump_sheaf(sc, d, "main", cpu, sc->cpus[cpu].main, full);
		dump_sheaf(sc, d, "spare", cpu, sc->cpus[cpu].spare, full);
		dump_sheaf(sc, d, "rcu_free", cpu, sc->cpus[cpu].rcu_free, full);
	}
	for (uint32_t n = 0; n < m->nodes; n++)
		for (const struct alloc_sheaf *s = sc->barns[n].full; s; s = s->next)
			dump_sheaf(sc, d, "barn_full", n, s, full);
	d->end(d->ctx);
}

void sheaves_dump(const struct alloc_cache *c, struct alloc_dump *d, bool full)
{
	const struct sheaves_cache *sc = sheaves_of(c);
	char key[12];

	d->object_begin(d->ctx, "cpus");
	d->end(d->ctx);
	d->object_begin(d->ctx, "nodes");
	for (uint32_t n = 0; n < c->machine->nodes; n++)
		dump_node(sc, d, n, full);
	d->end(d->ctx);
	dump_sheaves(sc, d, full);
	d->object_begin(d->ctx, "barns");
	for (uint32_t n = 0; n < c->machine->nodes; n++) {
		snprintf(key, sizeof(key), "%u", n);
		d->object_begin(d->ctx, key);
		d->number(d->ctx, "nr_full", (int64_t)sc->barns[n].nr_full);
		d->number(d->ctx, "nr_empty", (int64_t)sc->barns[n].nr_empty);
		d->end(d->ctx);
	}
	d->end(d->ctx);
	if (full)
		alloc_dump_slabs(c, d);
}
