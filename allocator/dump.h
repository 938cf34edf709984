/* SPDX-License-Identifier: MIT */
/*
 * State dumps: a variant describes its lists as nested objects and arrays, a receiver (JSON in
 * replay/, text in a debugger) writes them down.  The variant chooses the keys; they are those of
 * the golden's "final" and "checkpoints" (tests/golden/README.md).
 *
 * Slabs are named by number of first hand-out, which only the receiver knows: slab() and object()
 * take the slab, the receiver writes the number, null or "?" (docs in replay/state_json.c).
 */
#ifndef SLABTAPE_ALLOCATOR_DUMP_H
#define SLABTAPE_ALLOCATOR_DUMP_H

#include <stdint.h>

struct alloc_slab;

struct alloc_dump {
	void *ctx;
	/* @key is NULL inside arrays.  Every begin is matched by one end. */
	void (*object_begin)(void *ctx, const char *key);
	void (*array_begin)(void *ctx, const char *key);
	void (*end)(void *ctx);
	void (*number)(void *ctx, const char *key, int64_t value);
	void (*string)(void *ctx, const char *key, const char *text);
	/* The number of a slab as a JSON number, null when none of its objects was handed out. */
	void (*slab)(void *ctx, const char *key, const struct alloc_slab *s);
	/* An object as "slab.index". */
	void (*object)(void *ctx, const char *key, const struct alloc_slab *s, uint32_t index);
	/* Number of a slab for lines of text: -1 when it has none. */
	int64_t (*slab_number)(void *ctx, const struct alloc_slab *s);
};

struct alloc_cache;

/*
 * The two entries that end every "final": `full`, the numbers of the slabs in state FULL in
 * ascending order (left out when there are none), and `live_slabs`, how many numbered slabs live.
 */
void alloc_dump_slabs(const struct alloc_cache *c, const struct alloc_dump *d);

#endif
