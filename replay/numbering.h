/* SPDX-License-Identifier: MIT */
/*
 * Slab numbers: slabs are numbered in the order in which their first object was handed to a
 * caller.  A slab that was given back and comes again is a new slab (another id) and gets a new
 * number.  Only --paths, final and checkpoints know these numbers; SQL uses slab ids.
 */
#ifndef SLABTAPE_REPLAY_NUMBERING_H
#define SLABTAPE_REPLAY_NUMBERING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define REPLAY_NO_NUMBER UINT32_MAX

struct replay_numbering {
	uint32_t *number;  /* [slabs] by slab id; REPLAY_NO_NUMBER */
	uint32_t slabs;
	uint32_t *slab_id; /* [numbered] by number */
	bool *dead;	   /* [numbered] */
	bool *mentioned;   /* [numbered] scratch of a state dump */
	uint32_t numbered, capacity;
};

void replay_numbering_fini(struct replay_numbering *n);
/* The number of slab @id, a new one when it has none.  -ENOMEM. */
int replay_number_get(struct replay_numbering *n, uint32_t id, uint32_t *ret_number) TAPE_MUST_CHECK;
/* The number of slab @id or REPLAY_NO_NUMBER. */
static inline uint32_t replay_number_of(const struct replay_numbering *n, uint32_t id)
{
	return id < n->slabs ? n->number[id] : REPLAY_NO_NUMBER;
}
/* Slab @id went back to the page allocator. */
void replay_number_died(struct replay_numbering *n, uint32_t id);
uint32_t replay_numbers_live(const struct replay_numbering *n);

#endif
