/* SPDX-License-Identifier: MIT */
/*
 * Two hash tables, both open addressing with linear probing, at most 5/8 full:
 *
 *	places	(space, address) -> slot; the objects themselves lie in live[slot], so that a
 *		probe looks at 16 bytes an entry and objects never move when the table grows
 *	past	(space, address) -> last free, entries in place, never removed
 *
 * Removal shifts the followers back, so there are no tombstones and no decay.
 */
#include "traces/objects.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traces/freeset.h"

#define TABLE_MIN 1024u /* entries; a power of two */

struct place {
	uint64_t address;
	uint32_t space;
	uint32_t slot; /* + 1; 0: empty */
};

struct tape_objects {
	struct place *places;
	uint64_t places_mask; /* entries - 1 */
	uint32_t places_shift; /* 64 - log2(entries) */
	uint64_t live_nr;
	struct tape_live *live; /* by slot */
	uint64_t live_room;
	struct tape_freeset free_slots; /* slots below peak that no object holds */
	uint64_t peak, next_object;
	bool keep_past;
	struct tape_past *past;
	uint64_t past_mask, past_nr;
	uint32_t past_shift;
};

static uint64_t hash_of(uint32_t space, uint64_t address)
{
	uint64_t x = address ^ space * UINT64_C(0xD6E8FEB86659FD93);

	return (x ^ x >> 32) * UINT64_C(0x9E3779B97F4A7C15);
}

static int places_resize(struct tape_objects *o, uint64_t entries)
{
	struct place *old = o->places, *fresh = calloc(entries, sizeof(*fresh));
	uint64_t old_entries = old ? o->places_mask + 1 : 0;

	assert((entries & (entries - 1)) == 0);
	if (!fresh)
		return -ENOMEM;
	o->places = fresh;
	o->places_mask = entries - 1;
	o->places_shift = 64 - (uint32_t)__builtin_ctzll(entries);
	for (uint64_t i = 0; i < old_entries; i++) {
		uint64_t at;

		if (!old[i].slot)
			continue;
		at = hash_of(old[i].space, old[i].address) >> o->places_shift;
		while (fresh[at].slot)
			at = (at + 1) & o->places_mask;
		fresh[at] = old[i];
	}
	free(old);
	return 0;
}

static int past_resize(struct tape_objects *o, uint64_t entries)
{
	struct tape_past *old = o->past, *fresh = calloc(entries, sizeof(*fresh));
	uint64_t old_entries = old ? o->past_mask + 1 : 0;

	if (!fresh)
		return -ENOMEM;
	o->past = fresh;
	o->past_mask = entries - 1;
	o->past_shift = 64 - (uint32_t)__builtin_ctzll(entries);
	for (uint64_t i = 0; i < old_entries; i++) {
		uint64_t at;

		if (!old[i].in_use)
			continue;
		at = hash_of(old[i].space, old[i].address) >> o->past_shift;
		while (fresh[at].in_use)
			at = (at + 1) & o->past_mask;
		fresh[at] = old[i];
	}
	free(old);
	return 0;
}

struct tape_objects *tape_objects_create(bool keep_past)
{
	struct tape_objects *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->keep_past = keep_past;
	if (places_resize(o, TABLE_MIN) < 0 || tape_freeset_init(&o->free_slots, TABLE_MIN) < 0 ||
	    (keep_past && past_resize(o, TABLE_MIN) < 0)) {
		tape_objects_destroy(o);
		return NULL;
	}
	return o;
}

void tape_objects_destroy(struct tape_objects *o)
{
	if (!o)
		return;
	tape_freeset_fini(&o->free_slots);
	free(o->places);
	free(o->past);
	free(o->live);
	free(o);
}

/* Entry of the key, or the empty one where it belongs. */
static struct place *place_of(const struct tape_objects *o, uint32_t space, uint64_t address)
{
	uint64_t at = hash_of(space, address) >> o->places_shift;

	while (o->places[at].slot &&
	       (o->places[at].address != address || o->places[at].space != space))
		at = (at + 1) & o->places_mask;
	return &o->places[at];
}

struct tape_live *tape_objects_find(const struct tape_objects *o, uint32_t space, uint64_t address)
{
	const struct place *p = place_of(o, space, address);

	return p->slot ? &o->live[p->slot - 1] : NULL;
}

void tape_objects_prefetch(const struct tape_objects *o, uint32_t space, uint64_t address)
{
	uint64_t hash = hash_of(space, address);

	__builtin_prefetch(&o->places[hash >> o->places_shift]);
	if (o->past)
		__builtin_prefetch(&o->past[hash >> o->past_shift]);
}

/* Room for one more object and slot; *ret_slot is not taken yet. */
static int slot_choose(struct tape_objects *o, uint32_t *ret_slot)
{
	if (o->free_slots.members) {
		*ret_slot = (uint32_t)tape_freeset_min(&o->free_slots);
		return 0;
	}
	if (o->peak == o->live_room) {
		uint64_t room = o->live_room ? o->live_room * 2 : TABLE_MIN;
		struct tape_live *grown;

		if (room > UINT32_MAX || tape_freeset_grow(&o->free_slots, room) < 0)
			return -ENOMEM;
		grown = realloc(o->live, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		o->live = grown;
		o->live_room = room;
	}
	*ret_slot = (uint32_t)o->peak;
	return 0;
}

struct tape_live *tape_objects_add(struct tape_objects *o, uint32_t space, uint64_t address)
{
	struct place *p;
	uint32_t slot;

	if ((o->live_nr + 1) * 8 > (o->places_mask + 1) * 5 &&
	    places_resize(o, (o->places_mask + 1) * 2) < 0)
		return NULL;
	if (slot_choose(o, &slot) < 0)
		return NULL;
	p = place_of(o, space, address);
	assert(!p->slot);
	*p = (struct place){ .address = address, .space = space, .slot = slot + 1 };
	if (slot == o->peak)
		o->peak++;
	else
		tape_freeset_remove(&o->free_slots, slot);
	o->live_nr++;
	assert(o->live_nr + o->free_slots.members == o->peak);
	o->live[slot] = (struct tape_live){
		.address = address,
		.object = o->next_object++,
		.space = space,
		.slot = slot,
		.in_use = 1,
	};
	return &o->live[slot];
}

/* Empty @hole: every follower that may lie there moves back. */
static void place_remove(struct tape_objects *o, uint64_t hole)
{
	uint64_t at = hole;

	for (;;) {
		uint64_t home;

		at = (at + 1) & o->places_mask;
		if (!o->places[at].slot)
			break;
		home = hash_of(o->places[at].space, o->places[at].address) >> o->places_shift;
		/* it stays when its home lies in (hole, at], counted around the end */
		if (((at - home) & o->places_mask) < ((at - hole) & o->places_mask))
			continue;
		o->places[hole] = o->places[at];
		hole = at;
	}
	o->places[hole].slot = 0;
}

int tape_objects_remove(struct tape_objects *o, struct tape_live *live, uint64_t ts, uint64_t seq)
{
	struct place *p = place_of(o, live->space, live->address);

	assert(live->in_use && p->slot == live->slot + 1);
	place_remove(o, (uint64_t)(p - o->places));
	live->in_use = 0;
	o->live_nr--;
	tape_freeset_add(&o->free_slots, live->slot);
	if (!o->keep_past)
		return 0;
	return tape_objects_past_set(o, &(struct tape_past){
		.address = live->address,
		.space = live->space,
		.ts = ts,
		.seq = seq,
		.object = live->object,
		.cache = live->cache,
	});
}

uint64_t tape_objects_orphan(struct tape_objects *o)
{
	return o->next_object++;
}

static struct tape_past *past_of(const struct tape_objects *o, uint32_t space, uint64_t address)
{
	uint64_t at = hash_of(space, address) >> o->past_shift;

	while (o->past[at].in_use && (o->past[at].address != address || o->past[at].space != space))
		at = (at + 1) & o->past_mask;
	return &o->past[at];
}

const struct tape_past *tape_objects_past(const struct tape_objects *o, uint32_t space,
					  uint64_t address)
{
	const struct tape_past *p = o->past ? past_of(o, space, address) : NULL;

	return p && p->in_use ? p : NULL;
}

int tape_objects_past_set(struct tape_objects *o, const struct tape_past *past)
{
	struct tape_past *p;

	assert(o->keep_past);
	if ((o->past_nr + 1) * 8 > (o->past_mask + 1) * 5 &&
	    past_resize(o, (o->past_mask + 1) * 2) < 0)
		return -ENOMEM;
	p = past_of(o, past->space, past->address);
	o->past_nr += !p->in_use;
	*p = *past;
	p->in_use = 1;
	return 0;
}

int tape_objects_each(struct tape_objects *o, int (*each)(struct tape_live *live, void *context),
		      void *context)
{
	for (uint64_t slot = 0; slot < o->peak; slot++) {
		int rc = o->live[slot].in_use ? each(&o->live[slot], context) : 0;

		if (rc)
			return rc;
	}
	return 0;
}

uint64_t tape_objects_live(const struct tape_objects *o)
{
	return o->live_nr;
}

uint64_t tape_objects_peak(const struct tape_objects *o)
{
	return o->peak;
}

uint64_t tape_objects_total(const struct tape_objects *o)
{
	return o->next_object;
}
