/* SPDX-License-Identifier: MIT */
#include "capture/map64.h"

#include <assert.h>
#include <stdlib.h>

static int grow(struct map64 *m)
{
	size_t capacity = m->entries ? (m->mask + 1) * 2 : 1024;
	struct map64_entry *entries = calloc(capacity, sizeof(*entries));

	if (!entries)
		return -1;
	for (size_t i = 0; m->entries && i <= m->mask; i++) {
		size_t at = map64_hash(m->entries[i].key) & (capacity - 1);

		if (!m->entries[i].key)
			continue;
		while (entries[at].key)
			at = (at + 1) & (capacity - 1);
		entries[at] = m->entries[i];
	}
	free(m->entries);
	m->entries = entries;
	m->mask = capacity - 1;
	return 0;
}

uint64_t *map64_at(struct map64 *m, uint64_t key, bool *ret_new)
{
	size_t i;

	assert(key);
	if ((!m->entries || m->used >= m->mask / 4 * 3) && grow(m) < 0)
		return NULL;
	for (i = map64_hash(key) & m->mask; m->entries[i].key; i = (i + 1) & m->mask) {
		if (m->entries[i].key == key) {
			*ret_new = false;
			return &m->entries[i].value;
		}
	}
	m->entries[i].key = key;
	m->used++;
	*ret_new = true;
	return &m->entries[i].value;
}

void map64_fini(struct map64 *m)
{
	free(m->entries);
	*m = (struct map64){ 0 };
}
