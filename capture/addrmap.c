/* SPDX-License-Identifier: MIT */
#include "capture/addrmap.h"

#include <assert.h>
#include <stdlib.h>

#include "capture/map64.h"

static int grow(struct addrmap *m)
{
	size_t capacity = m->entries ? (m->mask + 1) * 2 : 4096;
	struct addrmap_entry *entries = calloc(capacity, sizeof(*entries));

	if (!entries)
		return -1;
	for (size_t i = 0; m->entries && i <= m->mask; i++) {
		size_t at = map64_hash(m->entries[i].address) & (capacity - 1);

		if (!m->entries[i].address)
			continue;
		while (entries[at].address)
			at = (at + 1) & (capacity - 1);
		entries[at] = m->entries[i];
	}
	free(m->entries);
	m->entries = entries;
	m->mask = capacity - 1;
	return 0;
}

struct addrmap_entry *addrmap_at(struct addrmap *m, uint64_t address, bool *ret_new)
{
	size_t i;

	assert(address);
	if ((!m->entries || m->used >= m->mask / 4 * 3) && grow(m) < 0)
		return NULL;
	for (i = map64_hash(address) & m->mask; m->entries[i].address; i = (i + 1) & m->mask) {
		if (m->entries[i].address == address) {
			*ret_new = false;
			return &m->entries[i];
		}
	}
	m->entries[i].address = address;
	m->used++;
	*ret_new = true;
	return &m->entries[i];
}

bool addrmap_is_live(const struct addrmap *m, uint64_t address)
{
	size_t i;

	if (!m->entries)
		return false;
	for (i = map64_hash(address) & m->mask; m->entries[i].address; i = (i + 1) & m->mask)
		if (m->entries[i].address == address)
			return m->entries[i].flags & ADDRMAP_LIVE;
	return false;
}

void addrmap_fini(struct addrmap *m)
{
	free(m->entries);
	*m = (struct addrmap){ 0 };
}
