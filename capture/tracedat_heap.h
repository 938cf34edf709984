/* SPDX-License-Identifier: MIT */
/*
 * Streams ordered by (time of their current event, CPU): at[0] is the oldest.  The memory of `at`
 * is the caller's and has room for every stream.
 */
#ifndef SLABTAPE_CAPTURE_TRACEDAT_HEAP_H
#define SLABTAPE_CAPTURE_TRACEDAT_HEAP_H

#include "capture/tracedat_pages.h"

struct td_heap {
	struct td_stream **at;
	size_t nr;
};

/* The stream at @i has a later event than before: let it sink. */
static inline void td_heap_down(struct td_heap *h, size_t i)
{
	struct td_stream **at = h->at, *moving = at[i];

	for (;;) {
		size_t child = i * 2 + 1;

		if (child >= h->nr)
			break;
		if (child + 1 < h->nr && td_stream_before(at[child + 1], at[child]))
			child++;
		if (!td_stream_before(at[child], moving))
			break;
		at[i] = at[child];
		i = child;
	}
	at[i] = moving;
}

static inline void td_heap_push(struct td_heap *h, struct td_stream *s)
{
	size_t i = h->nr++;

	while (i && td_stream_before(s, h->at[(i - 1) / 2])) {
		h->at[i] = h->at[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	h->at[i] = s;
}

/* Take the oldest stream out. */
static inline void td_heap_pop(struct td_heap *h)
{
	h->at[0] = h->at[--h->nr];
	if (h->nr > 1)
		td_heap_down(h, 0);
}

#endif
