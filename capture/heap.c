/* SPDX-License-Identifier: MIT */
/* Objects of recorded programs (heap.h). */
#include "capture/heap_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/tape.h"

/* The classes of kmalloc with 4 KiB pages; cache id = index + 1. */
static const uint16_t class_bytes[] = {8,   16,	 32,   64,   96,   128, 192,
				       256, 512, 1024, 2048, 4096, 8192};
#define CLASSES (sizeof(class_bytes) / sizeof(class_bytes[0]))

static int no_memory(struct tape_err *reterr)
{
	return tape_err_set(reterr, -ENOMEM, "out of memory");
}

static int define_caches(struct heap *h, double coverage, struct tape_err *reterr)
{
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < CLASSES; i++) {
		struct tape_cache c = {.id = (uint16_t)(i + 1),
				       .object_size = class_bytes[i],
				       .flags = TAPE_CACHE_KMALLOC,
				       .coverage = coverage};

		if (class_bytes[i] < 1024)
			snprintf(c.name, sizeof(c.name), "kmalloc-%u", class_bytes[i]);
		else
			snprintf(c.name, sizeof(c.name), "kmalloc-%uk", class_bytes[i] / 1024u);
		rc = tape_define_cache(h->t, &c, reterr);
	}
	return rc;
}

int heap_create(struct tape *t, struct heap **ret_heap, struct tape_err *reterr)
{
	struct heap *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return no_memory(reterr);
	h->t = t;
	h->next_space = 1;
	h->loss_open_ts = UINT64_MAX;
	heap_sites_init(&h->sites, t);
	h->objects = tape_objects_create(false);
	h->pasts = tape_objects_create(true);
	rc = h->objects && h->pasts ? define_caches(h, 1, reterr) : no_memory(reterr);
	if (rc < 0) {
		heap_destroy(h);
		return rc;
	}
	*ret_heap = h;
	return 0;
}

void heap_destroy(struct heap *h)
{
	if (!h)
		return;
	while (h->spaces) {
		struct heap_space *s = h->spaces;

		h->spaces = s->next;
		free(s);
	}
	while (h->images) {
		struct heap_image *image = h->images;

		h->images = image->next;
		heap_image_destroy(image);
	}
	map64_fini(&h->by_pid);
	heap_sites_fini(&h->sites);
	tape_objects_destroy(h->objects);
	tape_objects_destroy(h->pasts);
	free(h);
}

const struct heap_stats *heap_stats(const struct heap *h)
{
	return &h->stats;
}

/* ---- rows ---- */

uint64_t heap_ts(struct heap *h, uint64_t ts)
{
	if (ts < h->last_ts) {
		h->stats.late++;
		return h->last_ts;
	}
	h->last_ts = ts;
	return ts;
}

/* TAPE_F_UNKNOWN when something that happened in [@lo, @hi] may have been lost. */
static uint16_t loss_flag(const struct heap *h, uint64_t lo, uint64_t hi)
{
	return h->loss_open_ts <= hi || (h->any_loss && h->loss_end_ts >= lo) ? TAPE_F_UNKNOWN : 0;
}

static uint16_t cache_of(uint64_t size)
{
	for (uint32_t i = 0; i < CLASSES; i++)
		if (size <= class_bytes[i])
			return (uint16_t)(i + 1);
	return TAPE_NO_CACHE;
}

static struct tape_event start_row(const struct heap_event *ev, uint64_t now, uint8_t op)
{
	struct tape_event row = tape_event_blank();

	row.ts = row.ts_lo = row.ts_hi = now;
	row.op = op;
	row.cpu = ev->cpu;
	row.address = ev->address;
	row.tid = ev->tid;
	return row;
}

/* Append; an inferred row or an orphan is a violation unless loss explains it. */
static int append(struct heap *h, struct tape_event *row, uint64_t *ret_seq,
		  struct tape_err *reterr)
{
	uint64_t seq;
	int rc;

	if (row->cache == TAPE_NO_CACHE && row->object != TAPE_NO_OBJECT)
		row->flags |= TAPE_F_BIG;
	if (row->flags & (TAPE_F_INFERRED | TAPE_F_ORPHAN))
		h->stats.violations += !(row->flags & TAPE_F_UNKNOWN);
	if (row->flags & TAPE_F_INFERRED)
		h->inferred++;
	else
		h->traced++;
	rc = tape_writer_append(h->t, row, &seq, reterr);
	if (rc < 0)
		return rc;
	h->next_seq = seq + 1;
	if (ret_seq)
		*ret_seq = seq;
	return 0;
}

static int append_alloc(struct heap *h, struct heap_space *s, struct tape_event *row,
			struct tape_err *reterr)
{
	struct tape_live *live = tape_objects_add(h->objects, s->id, row->address);

	if (!live)
		return no_memory(reterr);
	row->object = live->object;
	row->slot = live->slot;
	live->cache = row->cache;
	live->size = row->size;
	live->alloc_ts = row->ts;
	return append(h, row, &live->alloc_seq, reterr);
}

/* Children have to know what their parent freed after the fork, and what they freed themselves. */
static int remember_free(struct heap *h, const struct heap_space *s, const struct tape_event *row,
			 uint64_t seq, struct tape_err *reterr)
{
	struct tape_past past = {.address = row->address,
				 .ts = row->ts,
				 .seq = seq,
				 .object = row->object,
				 .space = s->id,
				 .cache = row->cache};

	if (!s->forked && !s->parent)
		return 0;
	return tape_objects_past_set(h->pasts, &past) < 0 ? no_memory(reterr) : 0;
}

static int append_free(struct heap *h, struct heap_space *s, struct tape_event *row,
		       struct tape_live *live, struct tape_err *reterr)
{
	uint64_t seq;
	int rc;

	row->object = live->object;
	row->slot = live->slot;
	row->cache = live->cache;
	rc = append(h, row, &seq, reterr);
	if (rc >= 0 && tape_objects_remove(h->objects, live, row->ts, seq) < 0)
		rc = no_memory(reterr);
	return rc < 0 ? rc : remember_free(h, s, row, seq, reterr);
}

/* ---- inheritance ---- */

enum inherited { INHERITED_NO, INHERITED_LIVE, INHERITED_FREED };

/*
 * What the fork that made @s brought to @address: nothing known, an object (*ret_object,
 * *ret_cache), or memory that was free then.  Walks up the forks: a parent that never touched
 * the address may have inherited it itself.
 */
static enum inherited inherited_at(const struct heap *h, const struct heap_space *s,
				   uint64_t address, uint64_t *ret_object, uint16_t *ret_cache)
{
	for (; s->parent; s = s->parent) {
		uint32_t id = s->parent->id;
		const struct tape_live *live = tape_objects_find(h->objects, id, address);
		const struct tape_past *past = tape_objects_past(h->pasts, id, address);

		if (live && live->alloc_seq < s->fork_seq) {
			*ret_object = live->object;
			*ret_cache = live->cache;
			return INHERITED_LIVE;
		}
		if (!past)
			continue;
		/* Freed after the fork: it was alive then, or a later object took its place. */
		*ret_object = past->object;
		*ret_cache = past->cache;
		return past->seq >= s->fork_seq ? INHERITED_LIVE : INHERITED_FREED;
	}
	return INHERITED_NO;
}

/* ---- alloc and free ---- */

/* Rule (a). */
static int infer_free(struct heap *h, struct heap_space *s, const struct heap_event *ev,
		      struct tape_live *live, uint64_t now, struct tape_err *reterr)
{
	struct tape_event row = start_row(ev, now, TAPE_OP_FREE);

	row.ts_lo = live->alloc_ts;
	row.tid = 0;
	row.flags = TAPE_F_INFERRED | loss_flag(h, row.ts_lo, now);
	h->stats.inferred_frees++;
	return append_free(h, s, &row, live, reterr);
}

int heap_alloc(struct heap *h, struct heap_space *s, const struct heap_event *ev,
	       struct tape_err *reterr)
{
	uint64_t now = heap_ts(h, ev->ts);
	struct tape_live *live = tape_objects_find(h->objects, s->id, ev->address);
	struct tape_event row;
	int rc = 0;

	h->stats.allocs++;
	if (live)
		rc = infer_free(h, s, ev, live, now, reterr);
	if (rc < 0)
		return rc;
	row = start_row(ev, now, TAPE_OP_ALLOC);
	row.size = ev->size;
	row.gfp = TAPE_GFP_KERNEL | (ev->zeroed ? TAPE_GFP_ZERO : 0);
	row.cache = cache_of(ev->size);
	rc = heap_sites_find(&h->sites, s->image, ev->ip, &row.site, reterr);
	return rc < 0 ? rc : append_alloc(h, s, &row, reterr);
}

/* Rule (b): nothing is older than the address space, so an alloc since @lo was not seen. */
static int infer_alloc(struct heap *h, struct heap_space *s, struct tape_event *row, uint64_t lo,
		       uint16_t cache, struct tape_err *reterr)
{
	struct tape_event alloc = tape_event_blank();
	int rc;

	alloc.op = TAPE_OP_ALLOC;
	alloc.ts = alloc.ts_hi = row->ts;
	alloc.ts_lo = lo < row->ts ? lo : row->ts;
	alloc.cpu = row->cpu;
	alloc.address = row->address;
	alloc.cache = cache;
	alloc.gfp = TAPE_GFP_KERNEL;
	alloc.flags = TAPE_F_INFERRED | TAPE_F_UNNAMED | loss_flag(h, lo, row->ts);
	h->stats.inferred_allocs++;
	rc = append_alloc(h, s, &alloc, reterr);
	if (rc < 0)
		return rc;
	return append_free(h, s, row, tape_objects_find(h->objects, s->id, row->address), reterr);
}

/* Rule (c), for processes that were there before their recording. */
static int orphan_free(struct heap *h, struct heap_space *s, struct tape_event *row,
		       struct tape_err *reterr)
{
	uint64_t seq;
	int rc;

	row->object = tape_objects_orphan(h->objects);
	row->cache = TAPE_CACHE_UNKNOWN;
	row->flags |= TAPE_F_ORPHAN | TAPE_F_UNKNOWN | TAPE_F_UNNAMED;
	h->stats.orphan_frees++;
	rc = append(h, row, &seq, reterr);
	return rc < 0 ? rc : remember_free(h, s, row, seq, reterr);
}

/* A free where nothing lives. */
static int free_unseen(struct heap *h, struct heap_space *s, struct tape_event *row,
		       struct tape_err *reterr)
{
	const struct tape_past *past =
		s->parent ? tape_objects_past(h->pasts, s->id, row->address) : NULL;
	uint64_t seq;
	int rc;

	if (past)
		return infer_alloc(h, s, row, past->ts, past->cache, reterr);
	if (inherited_at(h, s, row->address, &row->object, &row->cache) != INHERITED_LIVE)
		return s->start_unseen
			       ? orphan_free(h, s, row, reterr)
			       : infer_alloc(h, s, row, s->start_ts, TAPE_CACHE_UNKNOWN, reterr);
	row->flags |= TAPE_F_INHERITED;
	h->stats.inherited_frees++;
	rc = append(h, row, &seq, reterr);
	return rc < 0 ? rc : remember_free(h, s, row, seq, reterr);
}

int heap_free(struct heap *h, struct heap_space *s, const struct heap_event *ev,
	      struct tape_err *reterr)
{
	uint64_t now = heap_ts(h, ev->ts);
	struct tape_live *live = tape_objects_find(h->objects, s->id, ev->address);
	struct tape_event row = start_row(ev, now, TAPE_OP_FREE);
	int rc = heap_sites_find(&h->sites, s->image, ev->ip, &row.site, reterr);

	h->stats.frees++;
	if (rc < 0)
		return rc;
	return live ? append_free(h, s, &row, live, reterr) : free_unseen(h, s, &row, reterr);
}

void heap_prefetch(const struct heap *h, const struct heap_space *s, uint64_t address)
{
	tape_objects_prefetch(h->objects, s->id, address);
}

/* ---- the rest ---- */

void heap_loss_open(struct heap *h, uint64_t ts)
{
	h->loss_open_ts = ts;
}

int heap_loss(struct heap *h, int32_t cpu, uint64_t ts_begin, uint64_t ts_end, uint64_t events,
	      const char *reason, struct tape_err *reterr)
{
	h->any_loss = true;
	h->stats.lost += events;
	h->stats.lost_unknown += !events;
	if (ts_end > h->loss_end_ts)
		h->loss_end_ts = ts_end;
	return tape_define_loss(h->t, cpu, ts_begin, ts_end, events, reason, reterr);
}

int heap_finish(struct heap *h, struct tape_err *reterr)
{
	const struct {
		const char *key;
		uint64_t value;
	} numbers[] = {
		{"forks", h->stats.forks},	     {"execs", h->stats.execs},
		{"exits", h->stats.exits},	     {"inherited_frees", h->stats.inherited_frees},
		{"clock_steps_back", h->stats.late}, {"lifetime_violations", h->stats.violations},
	};
	uint64_t all = h->traced + h->inferred;
	struct tape_cache unknown = {.name = "unknown", .coverage = 1};
	int rc = define_caches(h, all ? (double)h->traced / (double)all : 1, reterr);

	if (rc >= 0 && h->stats.orphan_frees + h->stats.inferred_allocs)
		rc = tape_define_cache(h->t, &unknown, reterr);
	for (size_t i = 0; rc >= 0 && i < sizeof(numbers) / sizeof(numbers[0]); i++)
		rc = tape_meta_set_int(h->t, numbers[i].key, (int64_t)numbers[i].value, reterr);
	return rc;
}
