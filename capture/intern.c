/* SPDX-License-Identifier: MIT */
#include "capture/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a over 8 bytes at a time. */
static uint64_t hash_text(const char *text, size_t len)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ len;

	while (len) {
		size_t part = len < 8 ? len : 8;
		uint64_t word = 0;

		memcpy(&word, text, part);
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
		text += part;
		len -= part;
	}
	return hash;
}

static uint32_t find_hashed(const struct intern *in, const char *text, size_t len, uint64_t hash)
{
	if (!in->table)
		return UINT32_MAX;
	for (uint32_t i = (uint32_t)hash & in->mask; in->table[i]; i = (i + 1) & in->mask) {
		const struct intern_text *t = &in->texts[in->table[i] - 1];

		if (t->hash == hash && t->len == len && !memcmp(t->text, text, len))
			return in->table[i] - 1;
	}
	return UINT32_MAX;
}

static void put(uint32_t *table, uint32_t mask, uint64_t hash, uint32_t nr)
{
	uint32_t i = (uint32_t)hash & mask;

	while (table[i])
		i = (i + 1) & mask;
	table[i] = nr + 1;
}

static int grow(struct intern *in)
{
	uint32_t capacity = in->capacity ? in->capacity * 2 : 64, mask = capacity * 2 - 1;
	struct intern_text *texts = realloc(in->texts, capacity * sizeof(*texts));
	uint32_t *table;

	if (!texts)
		return -ENOMEM;
	in->texts = texts;
	table = calloc(mask + 1, sizeof(*table));
	if (!table)
		return -ENOMEM;
	for (uint32_t i = 0; i < in->nr; i++)
		put(table, mask, texts[i].hash, i);
	free(in->table);
	in->table = table;
	in->mask = mask;
	in->capacity = capacity;
	return 0;
}

int intern_get(struct intern *in, const char *text, size_t len, uint32_t *ret_nr, bool *ret_new)
{
	uint64_t hash = hash_text(text, len);
	uint32_t nr = find_hashed(in, text, len, hash);
	char *copy;

	*ret_new = nr == UINT32_MAX;
	if (!*ret_new) {
		*ret_nr = nr;
		return 0;
	}
	if (in->nr == in->capacity && grow(in) < 0)
		return -ENOMEM;
	copy = malloc(len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, len);
	copy[len] = '\0';
	in->texts[in->nr] = (struct intern_text){ copy, len, hash };
	put(in->table, in->mask, hash, in->nr);
	*ret_nr = in->nr++;
	return 0;
}

uint32_t intern_find(const struct intern *in, const char *text, size_t len)
{
	return find_hashed(in, text, len, hash_text(text, len));
}

void intern_fini(struct intern *in)
{
	for (uint32_t i = 0; i < in->nr; i++)
		free(in->texts[i].text);
	free(in->texts);
	free(in->table);
	*in = (struct intern){ 0 };
}
