/* SPDX-License-Identifier: MIT */
/*
 * Every address an import has seen and what stands there: the live object, or when it was freed.
 *
 * Entries stay when objects are freed: a free of an address seen before and one never seen mean
 * different things.  Memory: about 90 bytes per distinct address.
 */
#ifndef SLABTAPE_CAPTURE_ADDRMAP_H
#define SLABTAPE_CAPTURE_ADDRMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum addrmap_flag {
	ADDRMAP_LIVE = 1,
	ADDRMAP_UNNAMED = 2, /* no event named the live object's cache so far */
	ADDRMAP_BIG = 4,     /* pages of a large kmalloc */
};

struct addrmap_entry {
	uint64_t address;   /* 0: empty */
	uint64_t object;    /* the live object, or the last one */
	uint64_t alloc_seq; /* event that allocated it; UINT64_MAX: none in the tape */
	uint64_t last_ts;   /* ns, of the last event at this address */
	uint32_t slot, site;
	uint32_t alloc_bytes; /* what the allocator gave; 0 unknown */
	uint32_t req_bytes;   /* what was asked for; 0 unknown */
	uint16_t cache;
	uint16_t flags; /* enum addrmap_flag */
};

struct addrmap {
	struct addrmap_entry *entries;
	size_t mask, used; /* a zeroed struct is an empty map */
};

/* Entry of @address (not 0), added blank when new; valid until the next call.  NULL: no memory. */
struct addrmap_entry *addrmap_at(struct addrmap *m, uint64_t address, bool *ret_new)
	TAPE_MUST_CHECK;
/* Is there a live object at @address? */
bool addrmap_is_live(const struct addrmap *m, uint64_t address);
void addrmap_fini(struct addrmap *m);

#endif
