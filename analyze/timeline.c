/* SPDX-License-Identifier: MIT */
#include "analyze/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/tape.h"

/* A live object, by its slot. */
struct live_slot {
	uint64_t bytes; /* requested */
	uint16_t cache;
	bool counted;
};

struct timeline_build {
	const struct timeline_config *cfg;
	struct timeline *l;
	uint32_t part; /* events go here */
	struct live_slot *slots;
	size_t nr_slots;
	struct timeline_series *of_cache[UINT16_MAX + 1u];
};

static void series_free(struct timeline_series *s)
{
	free(s->points);
	s->points = NULL;
}

void timeline_destroy(struct timeline *l)
{
	if (!l)
		return;
	series_free(&l->total);
	for (size_t i = 0; i < l->nr_caches; i++)
		series_free(&l->caches[i]);
	free(l->caches);
	free(l);
}

static int series_init(struct timeline_series *s, uint16_t cache, uint32_t parts)
{
	s->cache = cache;
	s->points = calloc(parts, sizeof(*s->points));
	return s->points ? 0 : -ENOMEM;
}

/* The series of @cache; NULL when there is none to keep. */
static struct timeline_series *series_of(struct timeline_build *b, uint16_t cache)
{
	return b->cfg->by_cache ? b->of_cache[cache] : NULL;
}

/* Every cache of the tape gets a series; those without events are dropped at the end. */
static int make_series(struct timeline_build *b, struct tape *t, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) struct tape_cache *caches = NULL;
	size_t nr = 0;
	int rc = tape_caches_get(t, &caches, &nr, reterr);

	if (rc < 0 || !nr)
		return rc;
	b->l->caches = calloc(nr, sizeof(*b->l->caches));
	for (size_t i = 0; b->l->caches && i < nr && rc == 0; i++) {
		rc = series_init(&b->l->caches[i], caches[i].id, b->l->parts);
		b->of_cache[caches[i].id] = &b->l->caches[i];
		b->l->nr_caches++;
	}
	return b->l->caches ? rc : -ENOMEM;
}

static void drop_idle(struct timeline *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->nr_caches; i++) {
		struct timeline_series *s = &l->caches[i];
		bool idle = !s->points[l->parts - 1].live_objs;

		for (uint32_t p = 0; idle && p < l->parts; p++)
			idle = !s->points[p].allocs && !s->points[p].frees;
		if (idle)
			series_free(s);
		else
			l->caches[kept++] = *s;
	}
	l->nr_caches = kept;
}

/* Parts from the present one up to before @part end at the present level; the next begins there. */
static void series_advance(struct timeline_series *s, uint32_t from, uint32_t to, uint32_t parts)
{
	for (uint32_t p = from; p < to; p++) {
		s->points[p].live_objs = s->live_objs;
		s->points[p].live_bytes = s->live_bytes;
		if (p + 1 < parts) {
			s->points[p + 1].peak_objs = s->live_objs;
			s->points[p + 1].peak_bytes = s->live_bytes;
		}
	}
}

static void advance(struct timeline_build *b, uint32_t to)
{
	if (b->part >= to)
		return;
	series_advance(&b->l->total, b->part, to, b->l->parts);
	for (size_t i = 0; i < b->l->nr_caches; i++)
		series_advance(&b->l->caches[i], b->part, to, b->l->parts);
	b->part = to;
}

/* Before the first part only the level moves on: it is where that part begins. */
static void series_begin(struct timeline_series *s)
{
	s->points[0].peak_objs = s->live_objs;
	s->points[0].peak_bytes = s->live_bytes;
}

static void series_alloc(struct timeline_build *b, struct timeline_series *s, uint64_t bytes,
			 bool inside)
{
	struct timeline_point *p = &s->points[b->part];

	s->live_objs++;
	s->live_bytes += bytes;
	if (!inside) {
		series_begin(s);
		return;
	}
	p->allocs++;
	p->alloc_bytes += bytes;
	if (p->peak_objs < s->live_objs)
		p->peak_objs = s->live_objs;
	if (p->peak_bytes < s->live_bytes)
		p->peak_bytes = s->live_bytes;
}

static void series_release(struct timeline_build *b, struct timeline_series *s, uint64_t bytes,
			   bool inside)
{
	s->live_objs--;
	s->live_bytes -= bytes;
	if (inside)
		s->points[b->part].frees++;
	else
		series_begin(s);
}

static int slot_reserve(struct timeline_build *b, uint32_t slot)
{
	size_t nr = b->nr_slots ? b->nr_slots : 1024;
	struct live_slot *slots;

	if (slot < b->nr_slots)
		return 0;
	while (nr <= slot)
		nr *= 2;
	slots = realloc(b->slots, nr * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	memset(slots + b->nr_slots, 0, (nr - b->nr_slots) * sizeof(*slots));
	b->slots = slots;
	b->nr_slots = nr;
	return 0;
}

static int on_alloc(struct timeline_build *b, const struct tape_batch *e, uint32_t i, bool inside)
{
	const struct timeline_config *cfg = b->cfg;
	struct timeline_series *s;
	struct live_slot *slot;

	if (e->flags[i] & TAPE_F_FAILED || e->slot[i] == TAPE_NO_SLOT)
		return 0;
	if (slot_reserve(b, e->slot[i]) < 0)
		return -ENOMEM;
	slot = &b->slots[e->slot[i]];
	*slot = (struct live_slot){ .bytes = e->size[i], .cache = e->cache[i],
		.counted = (cfg->cpu < 0 || e->cpu[i] == cfg->cpu) &&
			   (cfg->cache < 0 || e->cache[i] == cfg->cache) };
	if (!slot->counted)
		return 0;
	series_alloc(b, &b->l->total, slot->bytes, inside);
	s = series_of(b, slot->cache);
	if (s)
		series_alloc(b, s, slot->bytes, inside);
	return 0;
}

static void on_free(struct timeline_build *b, const struct tape_batch *e, uint32_t i, bool inside)
{
	struct timeline_series *s;
	struct live_slot *slot;

	if (e->flags[i] & (TAPE_F_ORPHAN | TAPE_F_INHERITED) || e->slot[i] >= b->nr_slots)
		return;
	slot = &b->slots[e->slot[i]];
	if (!slot->counted)
		return;
	slot->counted = false;
	series_release(b, &b->l->total, slot->bytes, inside);
	s = series_of(b, slot->cache);
	if (s)
		series_release(b, s, slot->bytes, inside);
}

static int read_batch(struct timeline_build *b, const struct tape_batch *e)
{
	struct timeline *l = b->l;
	int rc = 0;

	for (uint32_t i = 0; i < e->events && rc == 0; i++) {
		bool inside = e->ts[i] >= l->begin_ns;

		if (inside)
			advance(b, (uint32_t)((e->ts[i] - l->begin_ns) / l->width_ns));
		if (tape_op_allocates(e->op[i]))
			rc = on_alloc(b, e, i, inside);
		else if (tape_op_frees(e->op[i]))
			on_free(b, e, i, inside);
	}
	return rc;
}

static int read_events(struct timeline_build *b, struct tape *t, uint64_t end_ns,
		       struct tape_err *reterr)
{
	const uint32_t columns = 1u << TAPE_COL_TS | 1u << TAPE_COL_CPU | 1u << TAPE_COL_OP |
				 1u << TAPE_COL_CACHE | 1u << TAPE_COL_SLOT | 1u << TAPE_COL_SIZE |
				 1u << TAPE_COL_FLAGS;
	const struct tape_range range = { 0, UINT64_MAX, 0, end_ns };
	const struct tape_batch *e;
	struct tape_reader *r;
	int rc = tape_reader_open(t, &range, columns, &r, reterr);

	if (rc < 0)
		return rc;
	while ((rc = tape_reader_next(r, &e, reterr)) > 0) {
		rc = read_batch(b, e);
		if (rc < 0)
			break;
	}
	tape_reader_close(r);
	advance(b, b->l->parts);
	return rc;
}

int timeline_load(struct tape *t, const struct timeline_config *cfg,
		  struct timeline **ret_timeline, struct tape_err *reterr)
{
	TAPE_CLEANUP(timeline_destroyp) struct timeline *l = calloc(1, sizeof(*l));
	TAPE_CLEANUP(tape_freep) struct timeline_build *b = calloc(1, sizeof(*b));
	struct tape_totals n;
	uint64_t end;
	int rc = tape_totals_get(t, &n, reterr);

	if (rc < 0)
		return rc;
	if (!l || !b)
		return -ENOMEM;
	end = cfg->end_ns <= n.ts_max ? cfg->end_ns : n.ts_max + 1;
	l->begin_ns = cfg->begin_ns > n.ts_min ? cfg->begin_ns : n.ts_min;
	l->parts = cfg->parts;
	if (end < l->begin_ns)
		end = l->begin_ns;
	l->width_ns = (end - l->begin_ns) / l->parts + 1;
	b->cfg = cfg;
	b->l = l;
	rc = series_init(&l->total, TAPE_NO_CACHE, l->parts);
	if (rc == 0 && cfg->by_cache)
		rc = make_series(b, t, reterr);
	if (rc == 0)
		rc = read_events(b, t, end, reterr);
	free(b->slots);
	if (rc < 0)
		return rc;
	drop_idle(l);
	*ret_timeline = tape_steal(&l);
	return 0;
}
