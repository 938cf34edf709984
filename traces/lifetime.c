/* SPDX-License-Identifier: MIT */
/* One bit for every id that has begun, and the object of every slot. */
#include "traces/lifetime.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* An id may run ahead of the count of ids by this much; what is dense at the end does not. */
#define AHEAD_MAX (UINT64_C(1) << 24)
#define SLOT_ROOM_MIN 4096u

struct tape_lifetime {
	uint64_t *begun; /* bit map by id */
	uint64_t begun_words;
	uint64_t begun_nr, highest; /* ids begun; highest id + 1 */
	uint64_t *object_of;	    /* by slot: id + 1, 0 free */
	uint64_t slots_room;
};

struct tape_lifetime *tape_lifetime_create(void)
{
	return calloc(1, sizeof(struct tape_lifetime));
}

void tape_lifetime_destroy(struct tape_lifetime *l)
{
	if (!l)
		return;
	free(l->begun);
	free(l->object_of);
	free(l);
}

/* *@array becomes at least @want words long, new ones 0. */
static int words_grow(uint64_t **array, uint64_t *room, uint64_t want, uint64_t least)
{
	uint64_t words = *room ? *room : least, *grown;

	while (words < want)
		words *= 2;
	if (words == *room)
		return 0;
	grown = realloc(*array, words * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + *room, 0, (words - *room) * sizeof(*grown));
	*array = grown;
	*room = words;
	return 0;
}

static int broken(struct tape_err *reterr, uint64_t seq, uint64_t object, const char *what)
{
	return tape_err_set(reterr, -TAPE_E_FORMAT, "seq %" PRIu64 ", object %" PRIu64 ": %s", seq,
			    object, what);
}

static int id_begins(struct tape_lifetime *l, uint64_t seq, uint64_t object,
		     struct tape_err *reterr)
{
	uint64_t bit = UINT64_C(1) << (object & 63);

	if (object > l->begun_nr + AHEAD_MAX)
		return broken(reterr, seq, object, "the id is far above the number of objects");
	if (words_grow(&l->begun, &l->begun_words, (object >> 6) + 1, 64) < 0)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	if (l->begun[object >> 6] & bit)
		return broken(reterr, seq, object, "the id begins a second time");
	l->begun[object >> 6] |= bit;
	l->begun_nr++;
	l->highest = object >= l->highest ? object + 1 : l->highest;
	assert(l->begun_nr <= l->highest);
	return 0;
}

static int alloc_check(struct tape_lifetime *l, uint64_t seq, uint64_t object, uint32_t slot,
		       struct tape_err *reterr)
{
	int rc = id_begins(l, seq, object, reterr);

	if (rc < 0 || slot == TAPE_NO_SLOT)
		return rc;
	if (slot >= l->highest + AHEAD_MAX)
		return broken(reterr, seq, object, "the slot is far above the number of objects");
	if (words_grow(&l->object_of, &l->slots_room, (uint64_t)slot + 1, SLOT_ROOM_MIN) < 0)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	if (l->object_of[slot])
		return broken(reterr, seq, object, "its slot belongs to a live object");
	l->object_of[slot] = object + 1;
	return 0;
}

static int free_check(struct tape_lifetime *l, uint64_t seq, uint64_t object, uint32_t slot,
		      struct tape_err *reterr)
{
	bool begun = object >> 6 < l->begun_words && l->begun[object >> 6] >> (object & 63) & 1;

	if (!begun)
		return broken(reterr, seq, object, "freed before its alloc");
	if (slot == TAPE_NO_SLOT)
		return 0;
	if (slot >= l->slots_room || l->object_of[slot] != object + 1)
		return broken(reterr, seq, object,
			      "freed twice, or not with the slot of its alloc");
	l->object_of[slot] = 0;
	return 0;
}

int tape_lifetime_take(struct tape_lifetime *l, const struct tape_batch *b, struct tape_err *reterr)
{
	int rc = 0;

	assert((b->valid & TAPE_COLS_LIFETIME) == TAPE_COLS_LIFETIME);
	for (uint32_t i = 0; rc == 0 && i < b->events; i++) {
		uint64_t seq = b->first_seq + i, object = b->object[i];

		if (object == TAPE_NO_OBJECT || (b->flags[i] & TAPE_F_INHERITED))
			continue;
		if (tape_op_allocates(b->op[i]))
			rc = alloc_check(l, seq, object, b->slot[i], reterr);
		else if (tape_op_frees(b->op[i]) && (b->flags[i] & TAPE_F_ORPHAN))
			rc = id_begins(l, seq, object, reterr);
		else if (tape_op_frees(b->op[i]))
			rc = free_check(l, seq, object, b->slot[i], reterr);
	}
	return rc;
}

int tape_lifetime_finish(const struct tape_lifetime *l, uint64_t *ret_objects,
			 struct tape_err *reterr)
{
	if (l->begun_nr != l->highest)
		return tape_err_set(reterr, -TAPE_E_FORMAT,
				    "object ids are not dense: %" PRIu64 " ids up to %" PRIu64,
				    l->begun_nr, l->highest);
	*ret_objects = l->begun_nr;
	return 0;
}
