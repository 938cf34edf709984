/* SPDX-License-Identifier: MIT */
/* What the caches with a cpu slab (classic and percpu) share: knobs, checks, pieces of the dump. */
#ifndef SLABTAPE_ALLOCATOR_SLUB_COMMON_H
#define SLABTAPE_ALLOCATOR_SLUB_COMMON_H

#include <errno.h>

#include "allocator/dump.h"
#include "allocator/partial.h"
#include "allocator/sizing.h"

/* The entry of knob @name in the variant's table; NULL: it has no such knob. */
static inline const struct alloc_knob *slub_find_knob(const struct alloc_variant *v,
						      const char *name)
{
	for (uint32_t i = 0; i < v->nr_knobs; i++)
		if (!strcmp(v->knobs[i].name, name))
			return &v->knobs[i];
	return NULL;
}

/*
 * Check all knobs of @cfg against the variant's table and put those that decide the geometry into
 * @sz.  0, or -EINVAL: an unknown name or a value out of range.
 */
static inline int slub_read_sizing(const struct alloc_variant *v,
				   const struct alloc_cache_config *cfg, struct alloc_sizing *sz)
{
	for (size_t i = 0; i < cfg->nr_knobs; i++) {
		const struct alloc_knob *knob = slub_find_knob(v, cfg->knobs[i].name);
		int64_t value = cfg->knobs[i].value;

		if (!knob || value < knob->min || value > knob->max)
			return -EINVAL;
		if (!strcmp(knob->name, "slub_min_order"))
			sz->min_order = (uint32_t)value;
		else if (!strcmp(knob->name, "slub_max_order"))
			sz->max_order = (uint32_t)value;
		else if (!strcmp(knob->name, "slub_min_objects"))
			sz->min_objects = (uint32_t)value;
	}
	return 0;
}

/* Set the knobs of @cfg that are not about geometry; slub_read_sizing() has accepted them. */
static inline int slub_apply_knobs(struct alloc_cache *c, const struct alloc_cache_config *cfg)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < cfg->nr_knobs; i++)
		if (!slub_find_knob(c->variant, cfg->knobs[i].name)->at_create)
			rc = c->variant->set_knob(c, cfg->knobs[i].name, cfg->knobs[i].value);
	return rc;
}

/* Kernels up to 5.15 clamp what is written to min_partial. */
static inline uint64_t slub_clamp_min_partial(uint64_t slabs)
{
	return slabs < 5 ? 5 : slabs > 10 ? 10 : slabs;
}

/* The objects of a freelist as positions in @s, next out first. */
static inline void slub_dump_list(const struct alloc_cache *c, struct alloc_dump *d,
				  const char *key, const struct alloc_slab *s, const void *list)
{
	d->array_begin(d->ctx, key);
	for (; list; list = alloc_free_next(c, list))
		d->number(d->ctx, NULL, alloc_obj_index(c, s, list));
	d->end(d->ctx);
}

/* The keys every slab has; the caller adds its own and ends the object. */
static inline void slub_dump_slab_begin(const struct alloc_cache *c, struct alloc_dump *d,
					const char *key, const struct alloc_slab *s, bool full)
{
	d->object_begin(d->ctx, key);
	d->slab(d->ctx, "slab", s);
	d->number(d->ctx, "node", s->node);
	d->number(d->ctx, "inuse", s->word.inuse);
	d->number(d->ctx, "objects", s->word.objects);
	d->number(d->ctx, "frozen", s->word.frozen);
	if (full)
		slub_dump_list(c, d, "free", s, s->word.freelist);
}

/* A CPU's slab with what the CPU holds of it. */
static inline void slub_dump_cpu_slab(const struct alloc_cache *c, struct alloc_dump *d,
				      const struct alloc_slab *s, const void *list, bool full)
{
	slub_dump_slab_begin(c, d, "slab", s, full);
	if (full)
		slub_dump_list(c, d, "cpu_free", s, list);
	d->end(d->ctx);
}

static inline void slub_dump_node(const struct alloc_cache *c, struct alloc_dump *d,
				  const struct alloc_node *n, bool full)
{
	const struct alloc_slab *s = alloc_partial_first(n);
	char key[16];

	snprintf(key, sizeof(key), "%u", n->list_lock.node);
	d->object_begin(d->ctx, key);
	d->number(d->ctx, "nr_partial", (int64_t)n->nr_partial);
	d->number(d->ctx, "nr_slabs", (int64_t)n->nr_slabs);
	d->number(d->ctx, "total_objects", (int64_t)n->total_objects);
	if (s)
		d->array_begin(d->ctx, "partial");
	for (const struct alloc_slab *at = s; at; at = alloc_partial_next(n, at)) {
		slub_dump_slab_begin(c, d, NULL, at, full);
		d->end(d->ctx);
	}
	if (s)
		d->end(d->ctx);
	d->end(d->ctx);
}

/* `nodes` and, at the end of a run, `full` and `live_slabs`. */
static inline void slub_dump_nodes(const struct alloc_cache *c, struct alloc_dump *d,
				   const struct alloc_node *nodes, bool full)
{
	d->object_begin(d->ctx, "nodes");
	for (uint32_t node = 0; node < c->machine->nodes; node++)
		slub_dump_node(c, d, &nodes[node], full);
	d->end(d->ctx);
	if (full)
		alloc_dump_slabs(c, d);
}

/*
 * A CPU's slab is frozen and unlisted, and @list holds objects of it that count as in use.
 * 0, or -1 with @why.
 */
static inline int slub_check_cpu_slab(const struct alloc_cache *c, uint32_t cpu,
				      const struct alloc_slab *s, const void *list, char *why,
				      size_t why_bytes)
{
	const char *what = NULL;

	if (!s && !list)
		return 0;
	if (!s)
		what = "has objects and no slab";
	else if (s->state != ALLOC_STATE_CPU || !s->word.frozen || s->flags & ALLOC_SLAB_LISTED)
		what = "its slab is not in the state of a cpu slab";
	else if (alloc_freelist_length(c, list, s->word.objects) > s->word.inuse)
		what = "holds more objects than are in use";
	for (const void *o = list; !what && o; o = alloc_free_next(c, o))
		if (alloc_obj_slab(c->machine, o) != s)
			what = "holds an object of another slab";
	if (!what)
		return alloc_slab_check(c, s, why, why_bytes);
	snprintf(why, why_bytes, "cpu %u: %s", cpu, what);
	return -1;
}

struct slub_census {
	uint64_t states[ALLOC_STATE_MAX], slabs, objects;
	const struct alloc_slab *bad;
};

static inline void slub_census_slab(void *ctx, struct alloc_slab *s)
{
	struct slub_census *n = ctx;

	n->states[s->state]++;
	n->slabs++;
	n->objects += s->word.objects;
	if (s->state == ALLOC_STATE_FULL &&
	    (s->word.freelist || s->word.frozen || s->word.inuse != s->word.objects))
		n->bad = s;
	if ((s->state == ALLOC_STATE_EMPTY && s->word.inuse) || s->state == ALLOC_STATE_NONE)
		n->bad = s;
}

/* Every slab is where its state says and none is lost; @cpu_slabs and @cpu_partial were found on
 * the CPUs. */
static inline int slub_check_census(const struct alloc_cache *c, const struct alloc_node *nodes,
				    uint64_t cpu_slabs, uint64_t cpu_partial, char *why,
				    size_t why_bytes)
{
	struct slub_census n = { .bad = NULL };
	struct alloc_cache_state st = { 0 };

	alloc_slabs_each(c, slub_census_slab, &n);
	alloc_nodes_state(c, nodes, &st);
	if (n.bad) {
		snprintf(why, why_bytes, "slab %u: state %s, inuse %u of %u", n.bad->id,
			 alloc_state_name(n.bad->state), n.bad->word.inuse, n.bad->word.objects);
		return -1;
	}
	if (n.slabs == st.slabs && n.objects == st.total_objects &&
	    n.states[ALLOC_STATE_CPU] == cpu_slabs &&
	    n.states[ALLOC_STATE_CPU_PARTIAL] == cpu_partial &&
	    n.states[ALLOC_STATE_PARTIAL] + n.states[ALLOC_STATE_EMPTY] == st.partial)
		return 0;
	snprintf(why, why_bytes, "%llu slabs live, nodes say %llu; cpu %llu/%llu, list %llu/%llu",
		 (unsigned long long)n.slabs, (unsigned long long)st.slabs,
		 (unsigned long long)n.states[ALLOC_STATE_CPU], (unsigned long long)cpu_slabs,
		 (unsigned long long)n.states[ALLOC_STATE_CPU_PARTIAL],
		 (unsigned long long)cpu_partial);
	return -1;
}

#endif
