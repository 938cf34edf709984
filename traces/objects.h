/* SPDX-License-Identifier: MIT */
/*
 * Which object lives at which address: dense object ids, slots, and the memory of what was freed.
 *
 * An importer asks this map about every event (design section 3, rules a to e):
 *
 *	alloc at A:  tape_objects_find(A) gives an object  -> (a) its free was not traced
 *	             then tape_objects_add(A)
 *	free at A:   tape_objects_find(A) gives the object -> tape_objects_remove()
 *	             else tape_objects_past(A) says freed  -> (b) an alloc was not traced since then
 *	             else                                  -> (c) allocated before the recording:
 *	                                                      tape_objects_orphan()
 *
 * The key is (address space, address), so several processes and the kernel share one map.
 * Memory: 80 bytes a live object at the peak, and with @keep_past 48 bytes or so a distinct
 * address that was ever freed.  One thread at a time.
 */
#ifndef SLABTAPE_TRACES_OBJECTS_H
#define SLABTAPE_TRACES_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A live object.  The map sets the first five fields; the others are the importer's. */
struct tape_live {
	uint64_t address;
	uint64_t object; /* dense id, new for each tape_objects_add() */
	uint32_t space;	 /* address space */
	uint32_t slot;	 /* the smallest number that was free; reused after the removal */
	uint32_t in_use; /* internal: 1 */
	uint32_t site;
	uint64_t alloc_seq, alloc_ts;
	uint64_t size;
	uint16_t cache, cpu, flags;
	int16_t mem_node;
};

/* The latest free of an address. */
struct tape_past {
	uint64_t address;
	uint64_t ts, seq, object;
	uint32_t space;
	uint16_t cache;
	uint16_t in_use; /* internal: 1 */
};

struct tape_objects;

/* An empty map; NULL when out of memory.  @keep_past: remember the last free of every address. */
struct tape_objects *tape_objects_create(bool keep_past);
void tape_objects_destroy(struct tape_objects *o); /* NULL is accepted */

/*
 * The object that lives at @address, or NULL.  Borrowed until the next add; the importer may
 * change the fields that are its own.
 */
struct tape_live *tape_objects_find(const struct tape_objects *o, uint32_t space, uint64_t address);

/*
 * A new object at @address, where none lives (asserted): the next id, the smallest free slot,
 * the importer's fields all 0.  Borrowed until the next add.  NULL when out of memory.
 */
struct tape_live *tape_objects_add(struct tape_objects *o, uint32_t space, uint64_t address);

/*
 * @live (from find or add) is freed by event @seq at @ts.  Its slot is free again and, with
 * @keep_past, the free is remembered.  -ENOMEM: removed, but not remembered.
 */
int tape_objects_remove(struct tape_objects *o, struct tape_live *live, uint64_t ts, uint64_t seq)
	TAPE_MUST_CHECK;

/* The next id, for an object without alloc in the recording; it takes no slot. */
uint64_t tape_objects_orphan(struct tape_objects *o);

/* The last free of @address, or NULL.  Borrowed until the next remove or past_set. */
const struct tape_past *tape_objects_past(const struct tape_objects *o, uint32_t space,
					  uint64_t address);

/* Remember a free that removed nothing from the map (an orphan's). */
int tape_objects_past_set(struct tape_objects *o, const struct tape_past *past) TAPE_MUST_CHECK;

/*
 * Start fetching the memory that find() of this address will read.  A loop that knows its next
 * few dozen addresses is two to three times as fast with it once the map leaves the cache.
 */
void tape_objects_prefetch(const struct tape_objects *o, uint32_t space, uint64_t address);

/*
 * Call @each for every live object, ascending slot, until it returns other than 0 (which is
 * returned).  @each may remove the object it is given, nothing else.
 */
int tape_objects_each(struct tape_objects *o, int (*each)(struct tape_live *live, void *context),
		      void *context);

uint64_t tape_objects_live(const struct tape_objects *o);  /* objects alive now */
uint64_t tape_objects_peak(const struct tape_objects *o);  /* highest slot ever taken + 1 */
uint64_t tape_objects_total(const struct tape_objects *o); /* ids given out; the next id */

#endif
