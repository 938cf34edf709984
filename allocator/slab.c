/* SPDX-License-Identifier: MIT */
/* Slabs: creation by shape, discard, and what every cache has in common. */
#include "allocator/slab.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/dump.h"
#include "allocator/entry.h"
#include "allocator/locks.h"
#include "allocator/machine.h"

/* Chain all objects in address order; the last one ends the list. */
static void build_freelist(const struct alloc_cache *c, struct alloc_slab *s)
{
	char *obj = s->mem;

	for (uint32_t i = 1; i < s->word.objects; i++, obj += c->geo.size)
		alloc_free_link(c, obj, obj + c->geo.size);
	alloc_free_link(c, obj, NULL);
	s->word.freelist = s->mem;
}

static struct alloc_slab *create_shape(struct alloc_cache *c, uint32_t cpu, int32_t node,
				       uint32_t order, uint32_t objects, uint32_t gfp)
{
	struct alloc_machine *m = c->machine;
	struct alloc_slab *s = NULL, **pages;
	uint16_t got = 0;
	char *mem;

	if (m->sync == ALLOC_SYNC_SIM)
		alloc_sim_hooks->page_work(cpu, node < 0 ? m->cpu_node[cpu] : (uint16_t)node, order,
					   true);
	alloc_page_lock(m, cpu);
	mem = alloc_pages_get(m, cpu, node, order, gfp, &got);
	if (mem && !(s = alloc_slab_struct_get(m)))
		alloc_pages_put(m, mem, got, order);
	if (s) {
		s->cache = c;
		s->mem = mem;
		s->node = got;
		s->order = (uint8_t)order;
		s->word.objects = objects;
		s->id = c->next_slab_id++;
		pages = m->page_slab + ((uint64_t)(mem - m->base) >> ALLOC_PAGE_SHIFT);
		for (uint32_t i = 0; i < 1u << order; i++)
			__atomic_store_n(&pages[i], s, __ATOMIC_RELAXED);
	}
	alloc_page_unlock(m, cpu);
	return s;
}

struct alloc_slab *alloc_slab_create(struct alloc_cache *c, uint32_t cpu, int32_t node,
				     uint32_t gfp, bool no_freelist)
{
	struct alloc_slab *s = NULL;

	if (c->page_limit == 0)
		s = create_shape(c, cpu, node, c->geo.order, c->geo.objects, gfp);
	if (!s && c->page_limit < 2) {
		s = create_shape(c, cpu, node, c->geo.min_order, c->geo.min_objects, gfp);
		if (s)
			alloc_count(c, cpu, ALLOC_C_ORDER_FALLBACK);
	}
	if (s && !no_freelist)
		build_freelist(c, s);
	return s;
}

void alloc_slab_discard(struct alloc_cache *c, uint32_t cpu, struct alloc_slab *s)
{
	struct alloc_machine *m = c->machine;
	uint64_t page = (uint64_t)(s->mem - m->base) >> ALLOC_PAGE_SHIFT;
	/* A coloured slab's first object may lie past its first byte. */
	uint64_t first = page & ~((1ull << s->order) - 1);

	alloc_slab_move(c, s, cpu, ALLOC_STATE_NONE);
	if (m->sync == ALLOC_SYNC_SIM)
		alloc_sim_hooks->page_work(cpu, s->node, s->order, false);
	alloc_page_lock(m, cpu);
	for (uint32_t i = 0; i < 1u << s->order; i++)
		__atomic_store_n(&m->page_slab[first + i], NULL, __ATOMIC_RELAXED);
	alloc_pages_put(m, m->base + (first << ALLOC_PAGE_SHIFT), s->node, s->order);
	alloc_slab_struct_put(m, s);
	alloc_page_unlock(m, cpu);
}

int alloc_cache_init(struct alloc_cache *c, const struct alloc_variant *v, struct alloc_machine *m,
		     const struct alloc_cache_config *cfg, const struct alloc_geometry *geo,
		     uint32_t refill_max)
{
	size_t row_bytes = ALLOC_COUNTER_ROW * sizeof(*c->stat);

	c->variant = v;
	c->machine = m;
	c->geo = *geo;
	c->flags = cfg->flags;
	strncpy(c->name, cfg->name, sizeof(c->name) - 1);
	c->refill_entries = refill_max + 1;
	c->stat = aligned_alloc(64, m->cpus * row_bytes);
	c->refill_hist = calloc(c->refill_entries, sizeof(*c->refill_hist));
	if (!c->stat || !c->refill_hist) {
		alloc_cache_fini(c);
		return -ENOMEM;
	}
	memset(c->stat, 0, m->cpus * row_bytes);
	return 0;
}

void alloc_cache_fini(struct alloc_cache *c)
{
	free(c->stat);
	free(c->refill_hist);
	c->stat = NULL;
	c->refill_hist = NULL;
}

void alloc_cached_sum(const struct alloc_cache *c, struct alloc_cache_state *st)
{
	struct alloc_cached by_node[ALLOC_NODE_MAX] = { { 0 } };

	c->variant->cached(c, by_node);
	for (uint32_t n = 0; n < c->machine->nodes; n++) {
		st->cached_objs += by_node[n].objs;
		st->full_sheaves += by_node[n].full_sheaves;
		st->empty_sheaves += by_node[n].empty_sheaves;
	}
}

void alloc_note_refill(struct alloc_cache *c, uint32_t cpu, enum alloc_refill_source source,
		       uint32_t objs)
{
	const struct alloc_observer *o = c->machine->observer;
	uint32_t at = objs < c->refill_entries ? objs : c->refill_entries - 1;

	/* Relaxed: a statistic; nothing is ordered by it. */
	__atomic_fetch_add(&c->refill_hist[at], 1, __ATOMIC_RELAXED);
	if (__builtin_expect(o && o->refill, 0))
		o->refill(o->ctx, c, cpu, source, objs);
}

void alloc_list_each(const struct alloc_cache *c, void *list, alloc_obj_fn fn, void *ctx)
{
	for (; list; list = alloc_free_next(c, list))
		fn(ctx, list);
}

struct each_free {
	const struct alloc_cache *c;
	alloc_obj_fn fn;
	void *ctx;
};

static void each_free_of_slab(void *ctx, struct alloc_slab *s)
{
	struct each_free *e = ctx;

	alloc_list_each(e->c, s->word.freelist, e->fn, e->ctx);
}

void alloc_slabs_each_free(const struct alloc_cache *c, alloc_obj_fn fn, void *ctx)
{
	struct each_free e = { c, fn, ctx };

	alloc_slabs_each(c, each_free_of_slab, &e);
}

void alloc_tell_allocs(const struct alloc_cache *c, uint32_t cpu, uint32_t nr, void *const *objs)
{
	const struct alloc_observer *o = c->machine->observer;

	for (uint32_t i = 0; o && o->alloc && i < nr; i++)
		o->alloc(o->ctx, c, cpu, objs[i]);
}

void alloc_tell_frees(const struct alloc_cache *c, uint32_t cpu, uint32_t nr, void *const *objs)
{
	const struct alloc_observer *o = c->machine->observer;

	for (uint32_t i = 0; o && o->free && i < nr; i++)
		o->free(o->ctx, c, cpu, objs[i]);
}

struct alloc_slab *alloc_slab_of(const struct alloc_machine *m, const void *obj, uint32_t *ret_index)
{
	struct alloc_slab *s = alloc_obj_slab(m, obj);

	*ret_index = alloc_obj_index(s->cache, s, obj);
	return s;
}

void alloc_slab_info(const struct alloc_slab *s, struct alloc_slab_info *ret_info)
{
	*ret_info = (struct alloc_slab_info){
		.id = s->id,
		.inuse = s->word.inuse,
		.objects = s->word.objects,
		.node = s->node,
		.order = s->order,
		.state = s->state,
	};
}

const struct alloc_cache *alloc_slab_cache(const struct alloc_slab *s)
{
	return s->cache;
}

const struct alloc_machine *alloc_cache_machine(const struct alloc_cache *c)
{
	return c->machine;
}

void alloc_cache_geometry(const struct alloc_cache *c, struct alloc_geometry *ret_geometry)
{
	*ret_geometry = c->geo;
}

void alloc_cache_page_limit(struct alloc_cache *c, uint32_t level)
{
	assert(level <= 2);
	c->page_limit = level;
}

const uint64_t *alloc_refill_hist(const struct alloc_cache *c, uint32_t *ret_entries)
{
	*ret_entries = c->refill_entries;
	return c->refill_hist;
}

/* Numbers of slabs while alloc_dump_slabs() walks. */
struct numbers {
	const struct alloc_dump *dump;
	int64_t *full;
	size_t nr_full, room;
	int64_t live;
	bool no_memory;
};

static void number_slab(void *ctx, struct alloc_slab *s)
{
	struct numbers *n = ctx;
	int64_t number = n->dump->slab_number(n->dump->ctx, s);
	int64_t *full = n->full;

	if (number < 0)
		return;
	n->live++;
	if (s->state != ALLOC_STATE_FULL)
		return;
	if (n->nr_full == n->room) {
		full = realloc(full, (2 * n->room + 64) * sizeof(*full));
		if (!full) {
			n->no_memory = true;
			return;
		}
		n->full = full;
		n->room = 2 * n->room + 64;
	}
	full[n->nr_full++] = number;
}

static int compare_numbers(const void *a, const void *b)
{
	int64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x < y ? -1 : x > y;
}

void alloc_dump_slabs(const struct alloc_cache *c, const struct alloc_dump *d)
{
	struct numbers n = { .dump = d };

	alloc_slabs_each(c, number_slab, &n);
	if (n.no_memory)
		d->string(d->ctx, "full_incomplete", "out of memory");
	if (n.nr_full) {
		qsort(n.full, n.nr_full, sizeof(*n.full), compare_numbers);
		d->array_begin(d->ctx, "full");
		for (size_t i = 0; i < n.nr_full; i++)
			d->number(d->ctx, NULL, n.full[i]);
		d->end(d->ctx);
	}
	d->number(d->ctx, "live_slabs", n.live);
	free(n.full);
}
