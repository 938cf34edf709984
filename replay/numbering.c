/* SPDX-License-Identifier: MIT */
#include "replay/numbering.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void replay_numbering_fini(struct replay_numbering *n)
{
	free(n->number);
	free(n->slab_id);
	free(n->dead);
	free(n->mentioned);
	*n = (struct replay_numbering){ 0 };
}

static int grow_ids(struct replay_numbering *n, uint32_t id)
{
	uint32_t slabs = n->slabs ? n->slabs : 64;
	uint32_t *number;

	while (slabs <= id)
		slabs *= 2;
	number = realloc(n->number, slabs * sizeof(*number));
	if (!number)
		return -ENOMEM;
	memset(number + n->slabs, 0xff, (slabs - n->slabs) * sizeof(*number));
	n->number = number;
	n->slabs = slabs;
	return 0;
}

static int grow_numbers(struct replay_numbering *n)
{
	uint32_t capacity = n->capacity ? n->capacity * 2 : 64;
	uint32_t *slab_id = realloc(n->slab_id, capacity * sizeof(*slab_id));
	bool *dead, *mentioned;

	if (!slab_id)
		return -ENOMEM;
	n->slab_id = slab_id;
	dead = realloc(n->dead, capacity * sizeof(*dead));
	if (!dead)
		return -ENOMEM;
	n->dead = dead;
	mentioned = realloc(n->mentioned, capacity * sizeof(*mentioned));
	if (!mentioned)
		return -ENOMEM;
	n->mentioned = mentioned;
	n->capacity = capacity;
	return 0;
}

int replay_number_get(struct replay_numbering *n, uint32_t id, uint32_t *ret_number)
{
	int rc = 0;

	if (id >= n->slabs)
		rc = grow_ids(n, id);
	if (rc >= 0 && n->number[id] == REPLAY_NO_NUMBER) {
		if (n->numbered == n->capacity)
			rc = grow_numbers(n);
		if (rc < 0)
			return rc;
		n->slab_id[n->numbered] = id;
		n->dead[n->numbered] = n->mentioned[n->numbered] = false;
		n->number[id] = n->numbered++;
	}
	if (rc < 0)
		return rc;
	*ret_number = n->number[id];
	return 0;
}

void replay_number_died(struct replay_numbering *n, uint32_t id)
{
	uint32_t number = replay_number_of(n, id);

	if (number != REPLAY_NO_NUMBER)
		n->dead[number] = true;
}

uint32_t replay_numbers_live(const struct replay_numbering *n)
{
	uint32_t live = 0;

	for (uint32_t i = 0; i < n->numbered; i++)
		live += !n->dead[i];
	return live;
}
