/* SPDX-License-Identifier: MIT */
/* SLAB: creation and destruction of caches, and the tunables (specification 10.1). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/variants/slab_internal.h"

enum { SLAB_LIMIT_MAX = 65536, SLAB_SHARED_MAX = 1024, SLAB_MAX_ORDER_DEFAULT = 1 };

const struct alloc_knob slab_knobs[SLAB_NR_KNOBS] = {
	{ "limit", "objects a CPU array holds", 1, SLAB_LIMIT_MAX,
	  "by size: 120, 54 above 256, 24 above 1024, 8 above 4096, 1 above 131072 bytes", false },
	{ "batchcount", "objects moved at a time, at most limit", 1, SLAB_LIMIT_MAX,
	  "(limit + 1) / 2", false },
	{ "shared", "capacity of a node's shared array in batches, 0: none", 0, SLAB_SHARED_MAX,
	  "8, 0 above 4096 bytes or on one CPU", false },
	{ "slab_max_order", "order from which a wasteful slab is accepted", 0, ALLOC_ORDER_MAX, "1",
	  true },
	{ "use_alien_caches", "1: queue frees of other nodes' objects, 0: straight to the slab", 0,
	  1, "1", true },
};

/* The knobs given at creation; -1: not given. */
struct slab_wishes {
	int64_t value[SLAB_NR_KNOBS];
};
enum { WISH_LIMIT, WISH_BATCHCOUNT, WISH_SHARED, WISH_MAX_ORDER, WISH_ALIEN };

static int slab_knob_index(const char *name)
{
	for (uint32_t i = 0; i < SLAB_NR_KNOBS; i++)
		if (!strcmp(slab_knobs[i].name, name))
			return (int)i;
	return -ENOENT;
}

static int slab_read_wishes(const struct alloc_cache_config *cfg, struct slab_wishes *ret_w)
{
	for (uint32_t i = 0; i < SLAB_NR_KNOBS; i++)
		ret_w->value[i] = -1;
	for (size_t i = 0; i < cfg->nr_knobs; i++) {
		int64_t value = cfg->knobs[i].value;
		int at = slab_knob_index(cfg->knobs[i].name);

		if (at < 0 || value < slab_knobs[at].min || value > slab_knobs[at].max)
			return -EINVAL;
		ret_w->value[at] = value;
	}
	return 0;
}

/* A new limit brings its own default batchcount along. */
static int slab_apply_wishes(struct alloc_slab_tunables *t, const struct slab_wishes *w)
{
	if (w->value[WISH_LIMIT] >= 0) {
		t->limit = (uint32_t)w->value[WISH_LIMIT];
		t->batchcount = (t->limit + 1) / 2;
	}
	if (w->value[WISH_BATCHCOUNT] >= 0)
		t->batchcount = (uint32_t)w->value[WISH_BATCHCOUNT];
	if (w->value[WISH_SHARED] >= 0)
		t->shared = (uint32_t)w->value[WISH_SHARED];
	return t->batchcount <= t->limit ? 0 : -EINVAL;
}

static struct slab_array *slab_array_create(uint32_t limit, uint32_t batchcount)
{
	size_t bytes = (sizeof(struct slab_array) + limit * sizeof(void *) + 63) / 64 * 64;
	struct slab_array *a = aligned_alloc(64, bytes); /* shares its lines with nothing else */

	if (a) {
		memset(a, 0, bytes);
		a->limit = limit;
		a->batchcount = batchcount;
	}
	return a;
}

static int slab_create_aliens(struct slab_cache *sc, struct slab_node *n, uint16_t node)
{
	uint32_t limit = sc->tune.limit > 1 ? SLAB_ALIEN_LIMIT : 1;

	n->alien = aligned_alloc(64, sc->head.machine->nodes * sizeof(*n->alien));
	if (!n->alien)
		return -ENOMEM;
	memset(n->alien, 0, sc->head.machine->nodes * sizeof(*n->alien));
	for (uint16_t home = 0; home < sc->head.machine->nodes; home++) {
		struct slab_alien *alien = &n->alien[home];

		if (home == node)
			continue;
		alloc_lock_init(&alien->lock, &sc->head, node, ALLOC_LOCK_ALIEN, ALLOC_RANK_BARN);
		alien->array = slab_array_create(limit, SLAB_NO_BATCHCOUNT);
		if (!alien->array)
			return -ENOMEM;
	}
	return 0;
}

static int slab_create_nodes(struct slab_cache *sc)
{
	struct alloc_machine *m = sc->head.machine;

	sc->nodes = aligned_alloc(64, m->nodes * sizeof(*sc->nodes));
	if (!sc->nodes)
		return -ENOMEM;
	memset(sc->nodes, 0, m->nodes * sizeof(*sc->nodes));
	for (uint32_t cpu = 0; cpu < m->cpus; cpu++)
		sc->nodes[m->cpu_node[cpu]].cpus++;
	for (uint32_t i = 0; i < m->nodes; i++) {
		struct slab_node *n = &sc->nodes[i];

		alloc_lock_init(&n->lock, &sc->head, (uint16_t)i, ALLOC_LOCK_LIST,
				ALLOC_RANK_NODE_LIST);
		alloc_link_init(&n->partial);
		alloc_link_init(&n->full);
		alloc_link_init(&n->free);
		n->next_reap_ns = SLAB_REAP_NODE_NS;
		if (sc->use_alien && m->nodes > 1 && slab_create_aliens(sc, n, (uint16_t)i) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* The arrays that follow the tunables, allocated before any of them replaces an old one. */
struct slab_new_arrays {
	struct slab_array **cpu, **shared;
};

static void slab_new_arrays_free(const struct slab_cache *sc, struct slab_new_arrays *a)
{
	for (uint32_t i = 0; a->cpu && i < sc->head.machine->cpus; i++)
		free(a->cpu[i]);
	for (uint32_t i = 0; a->shared && i < sc->head.machine->nodes; i++)
		free(a->shared[i]);
	free(a->cpu);
	free(a->shared);
}

static int slab_new_arrays_create(const struct slab_cache *sc, const struct alloc_slab_tunables *t,
				  struct slab_new_arrays *ret_a)
{
	uint32_t cpus = sc->head.machine->cpus, nodes = sc->head.machine->nodes;

	ret_a->cpu = calloc(cpus, sizeof(*ret_a->cpu));
	ret_a->shared = calloc(nodes, sizeof(*ret_a->shared));
	if (!ret_a->cpu || !ret_a->shared)
		goto no_memory;
	for (uint32_t i = 0; i < cpus; i++)
		if (!(ret_a->cpu[i] = slab_array_create(t->limit, t->batchcount)))
			goto no_memory;
	for (uint32_t i = 0; t->shared && i < nodes; i++)
		if (!(ret_a->shared[i] = slab_array_create(t->shared * t->batchcount,
							   SLAB_NO_BATCHCOUNT)))
			goto no_memory;
	return 0;
no_memory:
	slab_new_arrays_free(sc, ret_a);
	return -ENOMEM;
}

/*
 * New arrays by @t; what the old ones hold goes to the slabs: CPUs first, under the old free_limit,
 * then node by node.  Alien arrays stay as they are.
 */
static int slab_tune(struct slab_cache *sc, const struct alloc_slab_tunables *t)
{
	struct slab_new_arrays fresh;
	int rc = slab_new_arrays_create(sc, t, &fresh);

	if (rc < 0)
		return rc;
	for (uint32_t cpu = 0; cpu < sc->head.machine->cpus; cpu++) {
		struct slab_array *old = sc->cpu_array[cpu];

		slab_empty_array(sc, slab_cpu_node(sc, cpu), cpu, old);
		sc->cpu_array[cpu] = fresh.cpu[cpu];
		fresh.cpu[cpu] = old;
	}
	for (uint32_t i = 0; i < sc->head.machine->nodes; i++) {
		struct slab_node *n = &sc->nodes[i];
		struct slab_array *old = n->shared;

		n->free_limit = alloc_slab_free_limit(n->cpus, t->batchcount, sc->head.geo.objects);
		slab_empty_array(sc, n, 0, old);
		n->shared = fresh.shared[i];
		fresh.shared[i] = old;
	}
	sc->tune = *t;
	slab_new_arrays_free(sc, &fresh);
	return 0;
}

static int slab_fill_cache(struct slab_cache *sc)
{
	struct alloc_machine *m = sc->head.machine;

	sc->cpu_array = calloc(m->cpus, sizeof(*sc->cpu_array));
	sc->reaper = calloc(m->cpus, sizeof(*sc->reaper));
	if (!sc->cpu_array || !sc->reaper || slab_create_nodes(sc) < 0)
		return -ENOMEM;
	for (uint32_t cpu = 0; cpu < m->cpus; cpu++) {
		sc->reaper[cpu].next_ns = SLAB_REAP_CPU_NS;
		sc->reaper[cpu].node = (m->cpu_node[cpu] + 1u) % m->nodes;
	}
	return slab_tune(sc, &sc->tune);
}

int slab_create_cache(const struct alloc_variant *v, const struct slab_rules *rules,
		      struct alloc_machine *m, const struct alloc_cache_config *cfg,
		      struct alloc_cache **ret_cache)
{
	uint32_t max_order = SLAB_MAX_ORDER_DEFAULT, most;
	struct alloc_slab_tunables tune;
	struct alloc_slab_shape shape;
	struct slab_wishes wishes;
	struct slab_cache *sc;

	if (slab_read_wishes(cfg, &wishes) < 0)
		return -EINVAL;
	if (wishes.value[WISH_MAX_ORDER] >= 0)
		max_order = (uint32_t)wishes.value[WISH_MAX_ORDER];
	if (rules->shape(max_order, cfg->object_size, cfg->align, cfg->flags, &shape) < 0)
		return -EINVAL;
	tune = alloc_slab_tunables(shape.geo.size, m->cpus);
	if (slab_apply_wishes(&tune, &wishes) < 0)
		return -EINVAL;
	most = tune.batchcount > shape.geo.objects ? tune.batchcount : shape.geo.objects;
	sc = calloc(1, sizeof(*sc));
	if (!sc || alloc_cache_init(&sc->head, v, m, cfg, &shape.geo, most) < 0) {
		free(sc);
		return -ENOMEM;
	}
	sc->rules = rules;
	sc->tune = tune;
	sc->max_order = max_order;
	sc->use_alien = wishes.value[WISH_ALIEN] != 0;
	sc->colour = shape.colour;
	sc->colour_off_bytes = shape.colour_off_bytes;
	if (slab_fill_cache(sc) < 0) {
		slab_destroy_cache(&sc->head);
		return -ENOMEM;
	}
	*ret_cache = &sc->head;
	return 0;
}

static void slab_destroy_node(struct slab_cache *sc, struct slab_node *n)
{
	slab_destroy_list(sc, 0, &n->partial);
	slab_destroy_list(sc, 0, &n->full);
	slab_destroy_list(sc, 0, &n->free);
	for (uint32_t home = 0; n->alien && home < sc->head.machine->nodes; home++)
		free(n->alien[home].array);
	free(n->alien);
	free(n->shared);
}

void slab_destroy_cache(struct alloc_cache *c)
{
	struct slab_cache *sc = slab_cache_of(c);

	if (!c)
		return;
	for (uint32_t i = 0; sc->nodes && i < c->machine->nodes; i++)
		if (sc->nodes[i].partial.next)
			slab_destroy_node(sc, &sc->nodes[i]);
	for (uint32_t cpu = 0; sc->cpu_array && cpu < c->machine->cpus; cpu++)
		free(sc->cpu_array[cpu]);
	free(sc->cpu_array);
	free(sc->reaper);
	free(sc->nodes);
	alloc_cache_fini(c);
	free(sc);
}

int slab_set_knob(struct alloc_cache *c, const char *name, int64_t value)
{
	struct slab_cache *sc = slab_cache_of(c);
	struct alloc_slab_tunables t = sc->tune;
	int at = slab_knob_index(name);

	if (at < 0)
		return at;
	if (value < slab_knobs[at].min || value > slab_knobs[at].max || slab_knobs[at].at_create)
		return -EINVAL;
	if (at == WISH_LIMIT)
		t.limit = (uint32_t)value;
	else if (at == WISH_BATCHCOUNT)
		t.batchcount = (uint32_t)value;
	else
		t.shared = (uint32_t)value;
	if (t.batchcount > t.limit)
		return -EINVAL;
	return slab_tune(sc, &t);
}

int slab_get_knob(const struct alloc_cache *c, const char *name, int64_t *ret_value)
{
	const struct slab_cache *sc = slab_cache_of(c);
	const int64_t values[SLAB_NR_KNOBS] = {
		[WISH_LIMIT] = sc->tune.limit,	  [WISH_BATCHCOUNT] = sc->tune.batchcount,
		[WISH_SHARED] = sc->tune.shared,  [WISH_MAX_ORDER] = sc->max_order,
		[WISH_ALIEN] = sc->use_alien,
	};
	int at = slab_knob_index(name);

	if (at < 0)
		return at;
	*ret_value = values[at];
	return 0;
}
