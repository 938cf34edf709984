/* SPDX-License-Identifier: MIT */
#include "tests/model/census.h"

#include <stdlib.h>
#include <string.h>

static void count_slab(void *ctx, struct alloc_slab *slab)
{
	struct census *s = ctx;

	s->slabs++;
	s->objects += slab->word.objects;
	if (slab->word.inuse > slab->word.objects)
		s->broken = "a slab with more objects in use than it has";
}

/* Room for all objects in a table that is at most half full. */
static void make_room(struct census *s)
{
	uint64_t entries = s->entries ? s->entries : 1024;

	while (entries < 2 * s->objects)
		entries *= 2;
	if (entries == s->entries)
		return;
	free(s->table);
	s->table = calloc(entries, sizeof(*s->table));
	if (!s->table)
		abort();
	s->entries = entries;
}

/* An object seen; the second time it is in two places. */
static void add(struct census *s, const void *obj)
{
	uint64_t at = ((uint64_t)(uintptr_t)obj * 0x9E3779B97F4A7C15ull >> 20) & (s->entries - 1);
	struct alloc_slab *slab = alloc_obj_slab(s->m, obj);
	uint32_t index = alloc_obj_index(s->c, slab, obj);

	if (slab->cache != s->c || index >= slab->word.objects ||
	    slab->mem + (size_t)index * s->c->geo.size != (const char *)obj)
		s->broken = "an object that is none of this cache";
	while (s->table[at].round == s->round && s->table[at].obj != obj)
		at = (at + 1) & (s->entries - 1);
	if (s->table[at].round == s->round)
		s->broken = "an object in two places";
	s->table[at] = (struct census_entry){ obj, s->round };
}

static void add_free(void *ctx, void *obj)
{
	struct census *s = ctx;

	/* More than there are: a list that does not end. */
	if (s->broken || s->free_objs >= s->objects) {
		s->broken = s->broken ? s->broken : "more free objects than the slabs have";
		return;
	}
	s->free_objs++;
	add(s, obj);
}

void census_begin(struct census *s, const struct alloc_variant *v, const struct alloc_machine *m,
		  const struct alloc_cache *c)
{
	s->m = m;
	s->c = c;
	s->round++;
	s->slabs = s->objects = s->free_objs = s->out_objs = 0;
	s->broken = NULL;
	alloc_slabs_each(c, count_slab, s);
	make_room(s);
	v->each_free(c, add_free, s);
}

void census_out(struct census *s, const void *obj)
{
	s->out_objs++;
	if (!s->broken)
		add(s, obj);
}

const char *census_end(struct census *s, uint64_t kept_objs, bool exact)
{
	uint64_t known = s->free_objs + s->out_objs + kept_objs;

	if (s->broken)
		return s->broken;
	if (known > s->objects)
		return "more objects than the slabs have";
	return exact && known != s->objects ? "objects are lost" : NULL;
}

void census_fini(struct census *s)
{
	free(s->table);
	*s = (struct census){ 0 };
}
