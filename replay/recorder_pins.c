/* SPDX-License-Identifier: MIT */
/*
 * Objects that keep nearly empty slabs alive: live at the end, in a slab with at most a quarter of
 * its objects in use.  The engine knows which event allocated an object; what else is to be said
 * (id, call site, age) is read from the tape.
 */
#include <errno.h>
#include <stdlib.h>

#include "replay/recorder_internal.h"

#define PIN_COLUMNS (1u << TAPE_COL_OBJECT | 1u << TAPE_COL_SITE | 1u << TAPE_COL_TS)
#define FAR_EVENTS 262144u /* chunks between pins this far apart are not decoded */
#define NEARLY_EMPTY 4u /* inuse * this <= objects */

bool replay_recorder_wants_pins(const struct replay_recorder *r)
{
	return r->kinds & REPLAY_RECORD_TRANSITIONS && r->truncated_seq < 0 && !r->rc;
}

void replay_recorder_pin(struct replay_recorder *r, const struct alloc_slab *s, uint64_t alloc_seq)
{
	const struct recorder_cache *c = recorder_find(r, alloc_slab_cache(s));
	struct alloc_slab_info info;

	alloc_slab_info(s, &info);
	if (info.inuse * NEARLY_EMPTY > info.objects || r->nr_pins >= r->limit || !c ||
	    info.id >= c->numbers || !c->number[info.id] ||
	    !recorder_grow(r, &r->pins, r->nr_pins, &r->pins_room, sizeof(*r->pins)))
		return;
	r->pins[r->nr_pins++] = (struct recorder_pin){
		.alloc_seq = alloc_seq, .slab = c->number[info.id] - 1, .inuse = info.inuse,
		.objects = info.objects, .cache = c->id, .node = info.node,
	};
}

static int by_seq(const void *a, const void *b)
{
	const struct recorder_pin *x = a, *y = b;

	return x->alloc_seq < y->alloc_seq ? -1 : x->alloc_seq > y->alloc_seq;
}

static int pin_row(struct replay_recorder *r, const struct recorder_pin *p,
		   const struct tape_batch *b, uint64_t end_ts)
{
	const uint32_t i = (uint32_t)(p->alloc_seq - b->first_seq);

	return tape_run_buffer_pinned(r->rows, &(struct tape_pinned){
		.slab = p->slab, .object = b->object[i], .alloc_seq = p->alloc_seq,
		.alloc_ts = b->ts[i], .age_ns = end_ts > b->ts[i] ? end_ts - b->ts[i] : 0,
		.alloc_site = b->site[i], .inuse = p->inuse, .objects = p->objects,
		.cache = p->cache, .node = p->node });
}

/* Pins [@at, returned): no two of them in a row are far apart. */
static size_t cluster_end(const struct replay_recorder *r, size_t at)
{
	while (++at < r->nr_pins)
		if (r->pins[at].alloc_seq - r->pins[at - 1].alloc_seq > FAR_EVENTS)
			break;
	return at;
}

/* Rows of the pins [@at, @end), from one pass over the events between them. */
static int resolve_cluster(struct replay_recorder *r, size_t at, size_t end, uint64_t end_ts,
			   struct tape_err *reterr)
{
	struct tape_range range = TAPE_RANGE_ALL;
	const struct tape_batch *b;
	struct tape_reader *reader;
	int rc;

	range.seq_begin = r->pins[at].alloc_seq;
	range.seq_end = r->pins[end - 1].alloc_seq + 1;
	rc = tape_reader_open(r->plan->tape, &range, PIN_COLUMNS, &reader, reterr);
	if (rc < 0)
		return rc;
	while (at < end && (rc = tape_reader_next(reader, &b, reterr)) > 0)
		while (at < end && r->pins[at].alloc_seq < b->first_seq + b->events && rc > 0)
			if (pin_row(r, &r->pins[at++], b, end_ts) < 0)
				rc = tape_err_set(reterr, -ENOMEM, "pinned objects: out of memory");
	tape_reader_close(reader);
	return rc < 0 ? rc : 0;
}

int recorder_pins_resolve(struct replay_recorder *r, uint64_t end_ts, struct tape_err *reterr)
{
	int rc = 0;

	if (r->nr_pins)
		qsort(r->pins, r->nr_pins, sizeof(*r->pins), by_seq);
	for (size_t at = 0, end; at < r->nr_pins && rc >= 0; at = end) {
		end = cluster_end(r, at);
		rc = resolve_cluster(r, at, end, end_ts, reterr);
	}
	free(r->pins);
	r->pins = NULL;
	return rc;
}
