/* SPDX-License-Identifier: MIT */
/*
 * Slots: each live object holds the smallest number that was free when it was allocated, so that
 * a replay needs one array as large as the peak of live objects.
 */
#ifndef SLABTAPE_CAPTURE_SLOTS_H
#define SLABTAPE_CAPTURE_SLOTS_H

#include "traces/freeset.h"

struct capture_slots {
	struct tape_freeset free;
	uint32_t next; /* numbers from here on were never given out */
};

static inline int capture_slots_init(struct capture_slots *s)
{
	s->next = 0;
	return tape_freeset_init(&s->free, 4096);
}

static inline void capture_slots_fini(struct capture_slots *s)
{
	tape_freeset_fini(&s->free);
}

/* *ret_slot: the smallest free number.  -ENOMEM. */
static inline int capture_slots_take(struct capture_slots *s, uint32_t *ret_slot)
{
	if (s->free.members) {
		*ret_slot = (uint32_t)tape_freeset_min(&s->free);
		tape_freeset_remove(&s->free, *ret_slot);
		return 0;
	}
	if (s->next == s->free.capacity) {
		int rc = tape_freeset_grow(&s->free, s->free.capacity * 2);

		if (rc < 0)
			return rc;
	}
	*ret_slot = s->next++;
	return 0;
}

static inline void capture_slots_put(struct capture_slots *s, uint32_t slot)
{
	tape_freeset_add(&s->free, slot);
}

#endif
