/* SPDX-License-Identifier: MIT */
/*
 * Variant `null`: the engines' own cost.
 *
 * Each CPU bumps through slabs of its own and pops from its own stack of returned objects; there
 * are no shared lists, no locks and no limits, and slabs are given back only at destroy.  What
 * this variant counts (alloc_fastpath, free_fastpath, alloc_slab) says nothing about any kernel.
 */
#include "allocator/sync.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sync: owner CPU only. */
struct null_cpu {
	void *returned;		  /* objects freed on this CPU, linked inside */
	struct alloc_slab *slab;  /* slab being bumped through */
	struct alloc_slab *slabs; /* all slabs this CPU made, linked through owner */
	uint32_t next;		  /* first object of `slab` not handed out yet */
	uint64_t nr_slabs;
} __attribute__((aligned(64)));

struct null_cache {
	struct alloc_cache head;
	struct null_cpu *cpus;
};

ALLOC_VARIANT_DECLARE(null);

static const uint8_t null_counters[] = {
	ALLOC_C_ALLOC_FASTPATH,
	ALLOC_C_FREE_FASTPATH,
	ALLOC_C_ALLOC_SLAB,
};

static struct null_cache *null_cache(const struct alloc_cache *c)
{
	return (struct null_cache *)(uintptr_t)c;
}

static void null_destroy(struct alloc_cache *c)
{
	struct null_cache *n = null_cache(c);

	if (!c)
		return;
	for (uint32_t cpu = 0; n->cpus && cpu < c->machine->cpus; cpu++)
		for (struct alloc_slab *s = n->cpus[cpu].slabs, *next; s; s = next) {
			next = s->owner;
			alloc_slab_discard(c, cpu, s);
		}
	alloc_cache_fini(c);
	free(n->cpus);
	free(n);
}

static int null_create(struct alloc_machine *m, const struct alloc_cache_config *cfg,
		       struct alloc_cache **ret_cache)
{
	struct null_cache *n;
	uint32_t align = cfg->align > 16 ? cfg->align : 16;
	struct alloc_geometry geo = { .object_size = cfg->object_size, .align = align };

	geo.size = (cfg->object_size + align - 1) & ~(align - 1);
	while (geo.order < ALLOC_ORDER_MAX && (ALLOC_PAGE_BYTES << geo.order) / geo.size < 8)
		geo.order++;
	geo.objects = (ALLOC_PAGE_BYTES << geo.order) / geo.size;
	if (!geo.objects)
		return -EINVAL;
	geo.min_order = geo.order;
	geo.min_objects = geo.objects;
	n = calloc(1, sizeof(*n));
	if (!n || alloc_cache_init(&n->head, &ALLOC_FN(alloc_variant_null), m, cfg, &geo, 1) < 0) {
		free(n);
		return -ENOMEM;
	}
	n->cpus = aligned_alloc(64, m->cpus * sizeof(*n->cpus));
	if (!n->cpus) {
		null_destroy(&n->head);
		return -ENOMEM;
	}
	memset(n->cpus, 0, m->cpus * sizeof(*n->cpus));
	*ret_cache = &n->head;
	return 0;
}

static void *null_bump(struct alloc_cache *c, uint32_t cpu, struct null_cpu *nc, uint32_t gfp)
{
	struct alloc_slab *s = nc->slab;

	if (!s || nc->next == s->word.objects) {
		s = alloc_slab_create(c, cpu, ALLOC_NODE_ANY, gfp, true);
		if (!s)
			return NULL;
		alloc_count(c, cpu, ALLOC_C_ALLOC_SLAB);
		alloc_slab_move(c, s, cpu, ALLOC_STATE_CPU);
		s->owner = nc->slabs;
		nc->slabs = nc->slab = s;
		nc->nr_slabs++;
		nc->next = 0;
	}
	return s->mem + (size_t)nc->next++ * c->geo.size;
}

static void *null_alloc(struct alloc_cache *c, uint32_t cpu, int32_t node, uint32_t gfp)
{
	struct null_cpu *nc = &null_cache(c)->cpus[cpu];
	void *obj = nc->returned;

	(void)node;
	if (obj)
		nc->returned = alloc_free_next(c, obj);
	else if (!(obj = null_bump(c, cpu, nc, gfp)))
		return NULL;
	alloc_count(c, cpu, ALLOC_C_ALLOC_FASTPATH);
	return obj;
}

static void null_free(struct alloc_cache *c, uint32_t cpu, void *obj)
{
	struct null_cpu *nc = &null_cache(c)->cpus[cpu];

	alloc_free_link(c, obj, nc->returned);
	nc->returned = obj;
	alloc_count(c, cpu, ALLOC_C_FREE_FASTPATH);
}

static uint32_t null_alloc_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t gfp, uint32_t nr,
				void **objs)
{
	for (uint32_t i = 0; i < nr; i++) {
		objs[i] = null_alloc(c, cpu, ALLOC_NODE_ANY, gfp);
		if (!objs[i]) {
			while (i--)
				null_free(c, cpu, objs[i]);
			return 0;
		}
	}
	return nr;
}

static void null_free_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t nr, void **objs)
{
	for (uint32_t i = 0; i < nr; i++)
		null_free(c, cpu, objs[i]);
}

static void null_flush_cpu(struct alloc_cache *c, uint32_t cpu)
{
	(void)c;
	(void)cpu;
}

static void null_shrink(struct alloc_cache *c)
{
	(void)c;
}

static int null_set_knob(struct alloc_cache *c, const char *name, int64_t value)
{
	(void)c;
	(void)name;
	(void)value;
	return -ENOENT;
}

static int null_get_knob(const struct alloc_cache *c, const char *name, int64_t *ret_value)
{
	(void)c;
	(void)name;
	(void)ret_value;
	return -ENOENT;
}

static void null_state(const struct alloc_cache *c, struct alloc_cache_state *ret_state)
{
	*ret_state = (struct alloc_cache_state){ 0 };
	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++)
		ret_state->slabs += null_cache(c)->cpus[cpu].nr_slabs;
	ret_state->total_objects = ret_state->objects = ret_state->slabs * c->geo.objects;
}

static int null_check(const struct alloc_cache *c, char *why, size_t why_bytes)
{
	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++) {
		const struct null_cpu *nc = &null_cache(c)->cpus[cpu];

		if (nc->slab && nc->next > nc->slab->word.objects) {
			snprintf(why, why_bytes, "cpu %u bumped past the end of slab %u", cpu,
				 nc->slab->id);
			return -1;
		}
	}
	return 0;
}

static void null_each_free(const struct alloc_cache *c, alloc_obj_fn fn, void *ctx)
{
	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++) {
		const struct null_cpu *nc = &null_cache(c)->cpus[cpu];

		alloc_list_each(c, nc->returned, fn, ctx);
		for (uint32_t i = nc->next; nc->slab && i < nc->slab->word.objects; i++)
			fn(ctx, nc->slab->mem + (size_t)i * c->geo.size);
	}
}

ALLOC_ENTRIES(null)

ALLOC_VARIANT(null) = {
	.struct_size = sizeof(struct alloc_variant),
	.name = "null",
	.era = "none",
	.origin = "this project",
	.what = "bump slots, no locks: the engines' own cost",
	.counters = null_counters,
	.nr_counters = sizeof(null_counters),
	.create = null_create,
	.destroy = null_destroy,
	ALLOC_ENTRY_OPS(null),
	.flush_cpu = null_flush_cpu,
	.shrink = null_shrink,
	.set_knob = null_set_knob,
	.get_knob = null_get_knob,
	.state = null_state,
	.check = null_check,
	.each_free = null_each_free,
};
