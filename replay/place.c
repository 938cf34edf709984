/* SPDX-License-Identifier: MIT */
/*
 * Page -> slab, one open-addressing table per cache; slab id -> page the other way, so that a
 * slab's death unbinds its page.  A page and a slab are bound at the first allocation that meets
 * both unbound; an allocation agrees when its page is bound to the slab the variant chose.
 */
#include "replay/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/ordered_internal.h"

#define NO_ENTRY UINT32_MAX

struct page {
	uint64_t number; /* address >> (12 + order); 0: entry unused (no kernel object is there) */
	struct alloc_slab *slab; /* NULL: not bound */
	uint32_t slab_id;
};

struct place_cache {
	struct page *page; /* [mask + 1], at most half full */
	uint32_t mask, used;
	uint32_t *entry_of; /* [slabs] by slab id: its page's entry */
	uint32_t slabs;
};

struct replay_place {
	bool force;		   /* before o->place_until_seq */
	struct place_cache *cache; /* [nr_caches], the order of o->caches */
	size_t nr_caches;
};

int replay_place_create(struct ordered *o)
{
	const struct replay_config *cfg = o->plan->cfg;
	const bool force = cfg->follow || cfg->warm == REPLAY_WARM_ADDRESS;

	if (!force && !cfg->agreement)
		return 0;
	if (force && !o->v->alloc_placed)
		return tape_err_set(o->reterr, -TAPE_E_USAGE, "%s cannot place objects where the "
				    "recording has them; --follow and --warm address need the "
				    "recorded kernel's own variant", o->v->name);
	if (cfg->warm == REPLAY_WARM_ADDRESS && !cfg->follow && !cfg->count_from)
		return tape_err_set(o->reterr, -TAPE_E_USAGE, "--warm address places objects up to "
				    "--count-from: give that too");
	o->place = calloc(1, sizeof(*o->place));
	if (!o->place)
		return tape_err_set(o->reterr, -ENOMEM, "placement: out of memory");
	o->place->force = force;
	o->place_until_seq = cfg->follow ? UINT64_MAX : o->plan->from_seq;
	o->hooked = true;
	return 0;
}

void replay_place_destroy(struct replay_place *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->nr_caches; i++) {
		free(p->cache[i].page);
		free(p->cache[i].entry_of);
	}
	free(p->cache);
	free(p);
}

uint32_t replay_place_columns(const struct ordered *o)
{
	return o->place ? 1u << TAPE_COL_ADDRESS : 0;
}

static uint32_t page_slot(const struct place_cache *c, uint64_t number)
{
	uint64_t h = number * 0x9e3779b97f4a7c15u;
	uint32_t at = (uint32_t)(h >> 32) & c->mask;

	while (c->page[at].number && c->page[at].number != number)
		at = (at + 1) & c->mask;
	return at;
}

static int pages_grow(struct place_cache *c)
{
	struct place_cache old = *c;

	c->mask = old.page ? old.mask * 2 + 1 : 255;
	c->page = calloc(c->mask + 1u, sizeof(*c->page));
	if (!c->page) {
		*c = old;
		return -ENOMEM;
	}
	for (uint32_t i = 0; old.page && i <= old.mask; i++) {
		uint32_t at;

		if (!old.page[i].number)
			continue;
		at = page_slot(c, old.page[i].number);
		c->page[at] = old.page[i];
		if (old.page[i].slab)
			c->entry_of[old.page[i].slab_id] = at;
	}
	free(old.page);
	return 0;
}

static int ids_grow(struct place_cache *c, uint32_t id)
{
	uint32_t slabs = c->slabs ? c->slabs : 64;
	uint32_t *grown;

	while (slabs <= id)
		slabs *= 2;
	grown = realloc(c->entry_of, slabs * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + c->slabs, 0xff, (slabs - c->slabs) * sizeof(*grown));
	c->entry_of = grown;
	c->slabs = slabs;
	return 0;
}

static struct place_cache *place_cache(struct ordered *o, const struct ordered_cache *run)
{
	struct replay_place *p = o->place;

	if (run->index >= p->nr_caches) {
		struct place_cache *grown = realloc(p->cache, o->nr_caches * sizeof(*grown));

		if (!grown)
			return NULL;
		memset(grown + p->nr_caches, 0, (o->nr_caches - p->nr_caches) * sizeof(*grown));
		p->cache = grown;
		p->nr_caches = o->nr_caches;
	}
	return &p->cache[run->index];
}

/* The entry of @number, made when there is none; NULL: out of memory. */
static struct page *page_get(struct place_cache *c, uint64_t number)
{
	uint32_t at;

	if ((!c->page || c->used * 2 >= c->mask) && pages_grow(c) < 0)
		return NULL;
	at = page_slot(c, number);
	if (!c->page[at].number) {
		c->page[at].number = number;
		c->used++;
	}
	return &c->page[at];
}

/* Note which slab the object at @page came from; does it agree with the binding? */
static bool meet(struct ordered *o, struct place_cache *c, struct page *page, void *obj)
{
	struct alloc_slab_info info;
	uint32_t index;
	struct alloc_slab *s = alloc_slab_of(o->machine, obj, &index);

	if (!s)
		return false;
	alloc_slab_info(s, &info);
	if (page->slab)
		return page->slab == s;
	if (info.id >= c->slabs && ids_grow(c, info.id) < 0)
		return false;
	if (c->entry_of[info.id] != NO_ENTRY)
		return false;
	c->entry_of[info.id] = (uint32_t)(page - c->page);
	page->slab = s;
	page->slab_id = info.id;
	return true;
}

void replay_place_died(struct ordered *o, const struct ordered_cache *run, uint32_t slab_id)
{
	struct place_cache *c;

	if (!o->place || run->index >= o->place->nr_caches)
		return;
	c = &o->place->cache[run->index];
	if (slab_id < c->slabs && c->entry_of[slab_id] != NO_ENTRY) {
		c->page[c->entry_of[slab_id]].slab = NULL;
		c->entry_of[slab_id] = NO_ENTRY;
	}
}

/* An allocation at @address, forced or not. */
static void *place(struct ordered *o, struct ordered_cache *run, uint32_t cpu, int32_t node,
		   uint32_t gfp, uint64_t address, bool force)
{
	struct place_cache *c = address ? place_cache(o, run) : NULL;
	struct alloc_place want = { 0 };
	struct page *page = NULL;
	uint64_t number;
	void *obj;

	if (c) {
		number = address >> (12 + run->order);
		want.index = (uint32_t)((address - (number << (12 + run->order))) / run->size);
		page = page_get(c, number);
	}
	if (page) {
		want.slab = page->slab;
		want.slab_id = page->slab_id;
	}
	if (force && page)
		obj = o->v->alloc_placed(run->cache, cpu, node, gfp, &want);
	else
		obj = o->v->alloc(run->cache, cpu, node, gfp);
	if (!obj || !page)
		return obj;
	/* The operation may have ended slabs, but it brought in no page: @page is still there. */
	run->placed_total++;
	run->placed_same += meet(o, c, page, obj);
	return obj;
}

void *replay_place_alloc(struct ordered *o, struct ordered_cache *run, const struct tape_batch *b,
			 uint32_t i)
{
	const bool force = o->place->force && o->window_seq < o->place_until_seq;

	return place(o, run, b->cpu[i], ordered_node(o, b, i), b->gfp[i], b->address[i], force);
}

void *replay_place_warm(struct ordered *o, struct ordered_cache *run, uint32_t cpu,
			uint64_t address)
{
	return place(o, run, cpu, ALLOC_NODE_ANY, TAPE_GFP_KERNEL, address, o->place->force);
}
