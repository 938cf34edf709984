/* SPDX-License-Identifier: MIT */
/*
 * Which virtual CPU wrote a cache line last: an exact map, so that results depend on no address.
 *
 *	address  | region number : line in the region : byte in the line |
 *	                 |                  |
 *	          hash table of     2-byte owners of the
 *	          regions  ------>  region's 32768 lines
 *
 * Lines in use lie close together (slabs of an arena, structures of the heap), so a region of
 * 2 MiB stands for thousands of them, the table of regions stays in the first-level cache, and
 * two bytes a line keep the owners of what is in use there too.
 */
#ifndef SLABTAPE_REPLAY_SIM_LINES_H
#define SLABTAPE_REPLAY_SIM_LINES_H

#include <stdint.h>

#define SIM_LINE_SHIFT 6u    /* 64 bytes */
#define SIM_REGION_SHIFT 21u /* 2 MiB */
#define SIM_NOBODY 0u	     /* owner of a line that nobody wrote yet; else CPU + 1 */

struct sim_region {
	uint64_t number; /* address >> SIM_REGION_SHIFT; 0: free (programs have nothing there) */
	uint16_t *owners;
};

struct sim_lines {
	struct sim_region *regions; /* open addressing, at most half full */
	uint64_t mask, used;
};

/* Where to look for a region first: arenas lie at multiples of large powers of two. */
static inline uint64_t sim_region_hash(uint64_t number)
{
	return number * 0x9E3779B97F4A7C15ull >> 40;
}

/* 0 or -ENOMEM.  fini accepts what init left behind. */
int sim_lines_init(struct sim_lines *t);
void sim_lines_fini(struct sim_lines *t);

/* The region's owners, made when it is new; ends the process when out of memory (a fiber has
 * nobody to return an error to). */
uint16_t *sim_lines_region(struct sim_lines *t, uint64_t number);

/* The owner of @address's line: SIM_NOBODY or CPU + 1.  Stays where it is until fini. */
static inline uint16_t *sim_lines_owner(struct sim_lines *t, const void *address)
{
	uint64_t at = (uintptr_t)address, number = at >> SIM_REGION_SHIFT;
	const struct sim_region *r = &t->regions[sim_region_hash(number) & t->mask];
	uint16_t *owners = r->number == number ? r->owners : sim_lines_region(t, number);

	return &owners[at >> SIM_LINE_SHIFT & ((1u << (SIM_REGION_SHIFT - SIM_LINE_SHIFT)) - 1)];
}

#endif
