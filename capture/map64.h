/* SPDX-License-Identifier: MIT */
/*
 * A hash from a non-zero 64-bit key to a 64-bit value.  Open addressing, linear probing, at most
 * 3/4 full, never shrinks.
 */
#ifndef SLABTAPE_CAPTURE_MAP64_H
#define SLABTAPE_CAPTURE_MAP64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct map64_entry {
	uint64_t key, value; /* key 0: empty */
};

struct map64 {
	struct map64_entry *entries;
	size_t mask; /* capacity - 1; a zeroed struct is an empty map */
	size_t used;
};

static inline uint64_t map64_hash(uint64_t key)
{
	key *= UINT64_C(0x9e3779b97f4a7c15);
	return key ^ key >> 29;
}

/* Value of @key, valid until the next map64_at(); NULL when there is none. */
static inline uint64_t *map64_find(const struct map64 *m, uint64_t key)
{
	if (!m->entries)
		return NULL;
	for (size_t i = map64_hash(key) & m->mask;; i = (i + 1) & m->mask) {
		if (m->entries[i].key == key)
			return &m->entries[i].value;
		if (!m->entries[i].key)
			return NULL;
	}
}

/* Value of @key, made 0 when there was none; valid until the next call.  NULL: no memory. */
uint64_t *map64_at(struct map64 *m, uint64_t key, bool *ret_new) TAPE_MUST_CHECK;
void map64_fini(struct map64 *m);

#endif
