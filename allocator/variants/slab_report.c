/* SPDX-License-Identifier: MIT */
/*
 * SLAB: what a cache looks like from outside.
 *
 * The kernel builds that exist have no statistics, so the counters are state values: ac_avail under
 * its CPU, everything a node has under CPU 0, nodes 0 to 3 always present.
 *
 * dump() writes the lists as lines of text under "extra": per CPU its array (last = next out), then
 * per node the partial, full and free list (slab/objects handed out, head first), the shared array
 * and the alien arrays.  Checkpoints leave the objects out.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "allocator/dump.h"
#include "allocator/variants/slab_internal.h"

#define SLAB_NODES_SHOWN 4u /* at least */

/* "p0" .. "p259", enough for ALLOC_NODE_MAX nodes: names must outlive the cache. */
#define TEN(p) p "0", p "1", p "2", p "3", p "4", p "5", p "6", p "7", p "8", p "9"
#define NINETY(p) TEN(p "1"), TEN(p "2"), TEN(p "3"), TEN(p "4"), TEN(p "5"), TEN(p "6"), \
	TEN(p "7"), TEN(p "8"), TEN(p "9")
#define NAMES(p) { TEN(p), NINETY(p), TEN(p "10"), NINETY(p "1"), TEN(p "20"), TEN(p "21"), \
	TEN(p "22"), TEN(p "23"), TEN(p "24"), TEN(p "25") }

enum { VALUE_SHARED, VALUE_ALIEN, VALUE_FREE_OBJECTS, VALUE_TOTAL_SLABS, VALUE_FREE_SLABS, VALUES };

static const char *const slab_value_names[VALUES][260] = {
	[VALUE_SHARED] = NAMES("shared_n"),
	[VALUE_ALIEN] = NAMES("alien_n"),
	[VALUE_FREE_OBJECTS] = NAMES("free_objects_n"),
	[VALUE_TOTAL_SLABS] = NAMES("total_slabs_n"),
	[VALUE_FREE_SLABS] = NAMES("free_slabs_n"),
};

/* Objects in the alien arrays @n holds. */
static uint64_t slab_aliens_held(const struct slab_cache *sc, const struct slab_node *n)
{
	uint64_t objs = 0;

	for (uint32_t home = 0; n->alien && home < sc->head.machine->nodes; home++)
		if (n->alien[home].array)
			objs += n->alien[home].array->avail;
	return objs;
}

static int64_t slab_node_value(const struct slab_cache *sc, uint32_t node, int value)
{
	const struct slab_node *n = &sc->nodes[node];

	if (node >= sc->head.machine->nodes)
		return 0;
	switch (value) {
	case VALUE_SHARED:
		return n->shared ? (int64_t)n->shared->avail : 0;
	case VALUE_ALIEN:
		return (int64_t)slab_aliens_held(sc, n);
	case VALUE_FREE_OBJECTS:
		return (int64_t)n->free_objects;
	case VALUE_TOTAL_SLABS:
		return (int64_t)n->total_slabs;
	default:
		return (int64_t)n->free_slabs;
	}
}

void slab_read_counters(const struct alloc_cache *c, alloc_counter_fn fn, void *ctx)
{
	const struct slab_cache *sc = slab_cache_of(c);
	uint32_t nodes = c->machine->nodes;

	if (nodes < SLAB_NODES_SHOWN)
		nodes = SLAB_NODES_SHOWN;
	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++)
		fn(ctx, cpu, "ac_avail", (int64_t)sc->cpu_array[cpu]->avail);
	for (int value = 0; value < VALUES; value++)
		for (uint32_t node = 0; node < nodes; node++)
			fn(ctx, 0, slab_value_names[value][node], slab_node_value(sc, node, value));
}

void slab_cached(const struct alloc_cache *c, struct alloc_cached *by_node)
{
	const struct slab_cache *sc = slab_cache_of(c);

	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++)
		by_node[c->machine->cpu_node[cpu]].objs += sc->cpu_array[cpu]->avail;
	for (uint32_t i = 0; i < c->machine->nodes; i++)
		by_node[i].objs += slab_aliens_held(sc, &sc->nodes[i]) +
				   (sc->nodes[i].shared ? sc->nodes[i].shared->avail : 0);
}

void slab_state(const struct alloc_cache *c, struct alloc_cache_state *ret_state)
{
	const struct slab_cache *sc = slab_cache_of(c);
	struct alloc_cache_state st = { 0 };
	uint64_t free_objs = 0;

	alloc_cached_sum(c, &st);
	for (uint32_t i = 0; i < c->machine->nodes; i++) {
		const struct slab_node *n = &sc->nodes[i];

		st.slabs += n->total_slabs;
		free_objs += n->free_objects;
		for (struct alloc_slab *s = slab_first(&n->partial); s; s = slab_next(&n->partial, s)) {
			st.partial++;
			st.objects_partial += s->word.inuse;
		}
	}
	st.total_objects = st.slabs * c->geo.objects;
	st.objects = st.total_objects - free_objs;
	*ret_state = st;
}

/* One line of "extra" under construction. */
struct line {
	char *text;
	size_t bytes;
	FILE *f;
};

static bool line_open(struct line *l)
{
	l->text = NULL;
	l->f = open_memstream(&l->text, &l->bytes);
	return l->f != NULL;
}

static void line_emit(struct line *l, struct alloc_dump *d)
{
	fclose(l->f);
	if (l->text)
		d->string(d->ctx, NULL, l->text);
	free(l->text);
}

static void line_slab(struct line *l, struct alloc_dump *d, const struct alloc_slab *s)
{
	int64_t number = d->slab_number(d->ctx, s);

	if (number < 0)
		fputs(" ?", l->f);
	else
		fprintf(l->f, " %" PRId64, number);
}

/* The rest of an array's line, after its name. */
static void line_array(struct line *l, struct alloc_dump *d, const struct slab_cache *sc,
		       const struct slab_array *a, bool objects)
{
	fprintf(l->f, " avail %" PRIu64 " limit %u batch %u touched %" PRIu64 " :", a->avail, a->limit,
		a->batchcount, a->touched);
	for (uint64_t i = 0; objects && i < a->avail; i++) {
		struct alloc_slab *s = alloc_obj_slab(sc->head.machine, a->entry[i]);

		line_slab(l, d, s);
		fprintf(l->f, ".%u", alloc_obj_index(&sc->head, s, a->entry[i]));
	}
}

static void dump_list(struct alloc_dump *d, const char *name, uint32_t node,
		      const struct alloc_link *head)
{
	struct line l;

	if (!line_open(&l))
		return;
	fprintf(l.f, "list %s %u :", name, node);
	for (struct alloc_slab *s = slab_first(head); s; s = slab_next(head, s)) {
		line_slab(&l, d, s);
		fprintf(l.f, "/%u", s->word.inuse);
	}
	line_emit(&l, d);
}

static void dump_cpu(const struct slab_cache *sc, struct alloc_dump *d, uint32_t cpu, bool full)
{
	struct line l;

	if (!line_open(&l))
		return;
	fprintf(l.f, "cpu %u", cpu);
	line_array(&l, d, sc, sc->cpu_array[cpu], full);
	line_emit(&l, d);
}

static void dump_node(const struct slab_cache *sc, struct alloc_dump *d, uint32_t node, bool full)
{
	const struct slab_node *n = &sc->nodes[node];
	struct line l;

	dump_list(d, "partial", node, &n->partial);
	dump_list(d, "full", node, &n->full);
	dump_list(d, "free", node, &n->free);
	if (n->shared && line_open(&l)) {
		fprintf(l.f, "shared %u", node);
		line_array(&l, d, sc, n->shared, full);
		line_emit(&l, d);
	}
	for (uint32_t home = 0; n->alien && home < sc->head.machine->nodes; home++)
		if (n->alien[home].array && line_open(&l)) {
			fprintf(l.f, "alien %u to %u", node, home);
			line_array(&l, d, sc, n->alien[home].array, full);
			line_emit(&l, d);
		}
}

static void dump_node_numbers(const struct slab_cache *sc, struct alloc_dump *d, uint32_t node)
{
	const struct slab_node *n = &sc->nodes[node];
	char key[16];

	snprintf(key, sizeof(key), "%u", node);
	d->object_begin(d->ctx, key);
	d->number(d->ctx, "total_slabs", (int64_t)n->total_slabs);
	d->number(d->ctx, "free_slabs", (int64_t)n->free_slabs);
	d->number(d->ctx, "free_objects", (int64_t)n->free_objects);
	d->number(d->ctx, "free_limit", (int64_t)n->free_limit);
	d->number(d->ctx, "colour_next", (int64_t)n->colour_next);
	d->end(d->ctx);
}

/* Living slabs that have a number. */
struct living {
	struct alloc_dump *dump;
	int64_t slabs;
};

static void count_living(void *ctx, struct alloc_slab *s)
{
	struct living *l = ctx;

	l->slabs += l->dump->slab_number(l->dump->ctx, s) >= 0;
}

void slab_dump(const struct alloc_cache *c, struct alloc_dump *d, bool full)
{
	const struct slab_cache *sc = slab_cache_of(c);
	struct living living = { .dump = d };

	d->object_begin(d->ctx, "cpus");
	d->end(d->ctx);
	d->object_begin(d->ctx, "nodes");
	for (uint32_t node = 0; node < c->machine->nodes; node++)
		dump_node_numbers(sc, d, node);
	d->end(d->ctx);
	d->array_begin(d->ctx, "extra");
	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++)
		dump_cpu(sc, d, cpu, full);
	for (uint32_t node = 0; node < c->machine->nodes; node++)
		dump_node(sc, d, node, full);
	d->end(d->ctx);
	/* No `full` as alloc_dump_slabs() would write it: here those slabs are on a list. */
	alloc_slabs_each(c, count_living, &living);
	d->number(d->ctx, "live_slabs", living.slabs);
}
