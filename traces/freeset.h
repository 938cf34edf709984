/* SPDX-License-Identifier: MIT */
/*
 * A set of small numbers that gives its smallest member: free slots.
 *
 * A bit map with summary levels above it, 64 to 1: bit i of level l + 1 says that word i of
 * level l is not 0.  Adding and taking touch one word a level, and levels above the one that
 * already says so are left alone, so both cost a few ns up to millions of members.
 *
 *	level 2  [. . 1 .]			levels - 1 is one word
 *	level 1  [....][....][.1..][....]
 *	level 0  the members
 *
 * Only as many levels are looked at as the largest number needs, so a large capacity costs
 * address space and nothing else.
 *
 * Invariant: bit i of level[l + 1] == (level[l][i] != 0) for l + 1 < levels; members == bits
 * set in level 0.
 */
#ifndef SLABTAPE_TRACES_FREESET_H
#define SLABTAPE_TRACES_FREESET_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define TAPE_FREESET_LEVELS 6

struct tape_freeset {
	uint64_t *level[TAPE_FREESET_LEVELS];
	uint32_t levels;   /* in use, >= 1: enough for every number added so far */
	uint32_t levels_max;
	uint64_t capacity; /* numbers below this can be members: 64 to the power of levels_max */
	uint64_t members;
};

/* An empty set for numbers below @capacity (rounded up; grows later).  -ENOMEM. */
int tape_freeset_init(struct tape_freeset *s, uint64_t capacity) TAPE_MUST_CHECK;
void tape_freeset_fini(struct tape_freeset *s);

/* Make room for numbers below @capacity.  -ENOMEM; the set is unchanged then. */
int tape_freeset_grow(struct tape_freeset *s, uint64_t capacity) TAPE_MUST_CHECK;

static inline bool tape_freeset_has(const struct tape_freeset *s, uint64_t number)
{
	return number < s->capacity && s->level[0][number >> 6] >> (number & 63) & 1;
}

/*
 * Add @number (below the capacity).  Adding a member changes nothing.  Every level is written:
 * whether a word was empty before cannot be predicted, and a wrong guess costs more than a store.
 */
static inline void tape_freeset_add(struct tape_freeset *s, uint64_t number)
{
	uint32_t levels;

	assert(number < s->capacity);
	while (number >> (6 * s->levels)) {
		s->level[s->levels][0] = s->members != 0;
		s->levels++;
	}
	levels = s->levels;
	s->members += !(s->level[0][number >> 6] >> (number & 63) & 1);
	for (uint32_t l = 0; l < levels; l++, number >>= 6)
		s->level[l][number >> 6] |= UINT64_C(1) << (number & 63);
}

/* Remove @number; removing a number that is no member changes nothing. */
static inline void tape_freeset_remove(struct tape_freeset *s, uint64_t number)
{
	if (!tape_freeset_has(s, number))
		return;
	s->members--;
	for (uint32_t l = 0; l < s->levels; l++) {
		uint64_t *word = &s->level[l][number >> 6];

		*word &= ~(UINT64_C(1) << (number & 63));
		if (*word)
			return;
		number >>= 6;
	}
}

/* The smallest member; the set is not empty (asserted). */
static inline uint64_t tape_freeset_min(const struct tape_freeset *s)
{
	uint64_t at = 0;

	assert(s->members > 0);
	for (uint32_t l = s->levels; l-- > 0;)
		at = at << 6 | (uint64_t)__builtin_ctzll(s->level[l][at]);
	return at;
}

/*
 * Remove @min, the smallest member, and return the next smallest (UINT64_MAX: none left).
 * Without branches that depend on the members, as tape_freeset_add().
 */
static inline uint64_t tape_freeset_take_min(struct tape_freeset *s, uint64_t min)
{
	uint64_t at = min, empty = 1;

	assert(tape_freeset_has(s, min) && tape_freeset_min(s) == min);
	for (uint32_t l = 0; l < s->levels; l++, at >>= 6) {
		uint64_t word = s->level[l][at >> 6] & ~(empty << (at & 63));

		s->level[l][at >> 6] = word;
		empty = word == 0;
	}
	return --s->members ? tape_freeset_min(s) : UINT64_MAX;
}

/* Remove every member; costs what is in the set, not its capacity. */
static inline void tape_freeset_clear(struct tape_freeset *s)
{
	while (s->members)
		tape_freeset_remove(s, tape_freeset_min(s));
}

#endif
