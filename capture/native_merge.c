/* SPDX-License-Identifier: MIT */
/* Many threads, one order: a heap of streams by the clock of their next event. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "capture/native_internal.h"

#define PREFETCH_EVENTS 24u

static int no_memory(struct tape_err *reterr)
{
	return tape_err_set(reterr, -ENOMEM, "out of memory");
}

/* ---- records that describe processes ---- */

static int text_add(struct native_stream *s, const struct ring_event *e, struct tape_err *reterr)
{
	size_t n = e->where & 0xff;

	if (n > RING_TEXT_BYTES)
		n = RING_TEXT_BYTES;
	if (s->text_len + n + 1 > s->text_capacity) {
		size_t capacity = s->text_capacity ? s->text_capacity * 2 : 256;
		char *grown = realloc(s->text, capacity);

		if (!grown)
			return no_memory(reterr);
		s->text = grown;
		s->text_capacity = capacity;
	}
	memcpy(s->text + s->text_len, &e->address, n); /* address and size are adjacent */
	s->text_len += n;
	s->text[s->text_len] = '\0';
	return 0;
}

_Static_assert(offsetof(struct ring_event, size) == offsetof(struct ring_event, address) + 8,
	       "text lies in two adjacent words");

static int text_end(struct native_stream *s, struct heap *h, struct tape_err *reterr)
{
	const char *name = strrchr(s->text, '/');
	int rc = 0;

	if (s->head.where >> 60 == RING_MODULE)
		rc = heap_module(h, s->space, s->head.address, s->head.size, s->text, reterr);
	else if (s->head.where >> 60 == RING_EXEC)
		rc = heap_thread(h, s->tid, s->pid, name ? name + 1 : s->text, reterr);
	s->head.where = 0;
	return rc;
}

static int handle_text(struct native_stream *s, struct heap *h, const struct ring_event *e,
		       struct tape_err *reterr)
{
	int rc;

	if (!(s->head.where >> 60))
		return 0; /* the record it belongs to was dropped */
	rc = text_add(s, e, reterr);
	return rc < 0 || e->where & RING_TEXT_MORE ? rc : text_end(s, h, reterr);
}

static void text_begin(struct native_stream *s, const struct ring_event *e)
{
	s->head = *e;
	s->text_len = 0;
}

static int handle_control(struct native *n, struct native_stream *s, struct heap *h,
			  const struct ring_event *e, struct tape_err *reterr)
{
	uint64_t ts = native_ns(&n->clock, e->clock);

	switch (e->where >> 60) {
	case RING_LOSS:
		return heap_loss(h, s->cpu, native_ns(&n->clock, e->size), ts, e->address,
				 "buffers full", reterr);
	case RING_EXEC:
		text_begin(s, e);
		return heap_exec(h, ts, s->cpu, s->pid, &s->space, reterr);
	case RING_FORK:
		return heap_fork(h, ts, s->cpu, (int32_t)e->size, s->pid, HEAP_NOW, &s->space,
				 reterr);
	case RING_MODULE:
		text_begin(s, e);
		return 0;
	case RING_TEXT:
		return handle_text(s, h, e, reterr);
	default:
		return tape_err_set(reterr, -TAPE_E_FORMAT,
				    "shared buffers: thread %d wrote a "
				    "record of kind %d",
				    s->tid, (int)(e->where >> 60));
	}
}

static int handle(struct native *n, struct native_stream *s, struct heap *h,
		  const struct ring_event *e, struct tape_err *reterr)
{
	enum ring_kind kind = (enum ring_kind)(e->where >> 60);
	struct heap_event ev;

	s->cpu = (uint16_t)(e->where >> 48 & 0xfff);
	n->events++;
	if (kind > RING_FREE_REALLOC)
		return handle_control(n, s, h, e, reterr);
	if (!s->space)
		s->space = heap_space_of(h, s->pid);
	if (!s->space)
		return no_memory(reterr);
	ev = (struct heap_event){.ts = native_ns(&n->clock, e->clock),
				 .address = e->address,
				 .size = e->size,
				 .ip = e->where & RING_IP_MASK,
				 .tid = s->tid,
				 .cpu = s->cpu,
				 .zeroed = kind == RING_CALLOC};
	return kind >= RING_FREE ? heap_free(h, s->space, &ev, reterr)
				 : heap_alloc(h, s->space, &ev, reterr);
}

/* ---- the merge ---- */

/* Event s->read, which is available. */
static const struct ring_event *current(const struct native *n, const struct native_stream *s)
{
	const struct native_chunk *c = &s->chunks[0];

	assert(s->chunks_nr && s->read >= c->first &&
	       s->read - c->first < ring_chunk_events(n->ring));
	return ring_events(n->ring, c->index) + (s->read - c->first);
}

static void sift_down(struct native *n, uint32_t i)
{
	struct native_stream *s = n->order[i];

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= n->order_nr)
			break;
		if (child + 1 < n->order_nr && n->order[child + 1]->key < n->order[child]->key)
			child++;
		if (n->order[child]->key >= s->key)
			break;
		n->order[i] = n->order[child];
		i = child;
	}
	n->order[i] = s;
}

/* Clock up to which the first stream of the heap may run on. */
static uint64_t run_limit(const struct native *n)
{
	uint64_t limit = n->limit;

	for (uint32_t i = 1; i < 3 && i < n->order_nr; i++)
		if (n->order[i]->key < limit)
			limit = n->order[i]->key;
	return limit;
}

/* The heap's memory for an event a little ahead, as far as this chunk goes. */
static void prefetch(const struct native *n, const struct native_stream *s, const struct heap *h)
{
	uint64_t ahead = s->read + PREFETCH_EVENTS;

	if (s->space && ahead < s->available &&
	    ahead - s->chunks[0].first < ring_chunk_events(n->ring))
		heap_prefetch(h, s->space,
			      ring_events(n->ring, s->chunks[0].index)[ahead - s->chunks[0].first]
				      .address);
}

/* Hand over events of @s up to clock @limit; s->key is the next one's, UINT64_MAX at the end. */
static int run(struct native *n, struct native_stream *s, struct heap *h, uint64_t limit,
	       struct tape_err *reterr)
{
	uint32_t per_chunk = ring_chunk_events(n->ring);
	int rc = 0;

	while (rc >= 0 && s->key <= limit) {
		prefetch(n, s, h);
		rc = handle(n, s, h, current(n, s), reterr);
		s->last_clock = s->key;
		s->read++;
		if (s->read - s->chunks[0].first == per_chunk)
			native_chunk_done(n, s);
		if (s->read == s->available) {
			s->key = UINT64_MAX;
			break;
		}
		s->key = current(n, s)->clock;
	}
	return rc;
}

int native_merge(struct native *n, struct heap *h, struct tape_err *reterr)
{
	uint32_t high = atomic_load_explicit(&n->ring->slots_high, memory_order_relaxed);
	int rc = 0;

	n->order_nr = 0;
	for (uint32_t i = 0; i < high; i++) {
		struct native_stream *s = &n->streams[i];

		if (!s->open || s->read >= s->available)
			continue;
		s->key = current(n, s)->clock;
		n->order[n->order_nr++] = s;
	}
	for (uint32_t i = n->order_nr; i-- > 0;)
		sift_down(n, i);
	while (rc >= 0 && n->order_nr && n->order[0]->key <= n->limit) {
		struct native_stream *s = n->order[0];

		rc = run(n, s, h, run_limit(n), reterr);
		if (s->key == UINT64_MAX && s->read == s->available)
			n->order[0] = n->order[--n->order_nr];
		if (n->order_nr)
			sift_down(n, 0);
	}
	return rc;
}
