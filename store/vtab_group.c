/* SPDX-License-Identifier: MIT */
/*
 * Local groups (of one chunk) are numbered from 0 in order of appearance.  Refining maps the pair
 * (group, value) to a new number, through a plain table when the values are dense and through a
 * hash otherwise.  Memory: a few MB of scratch and the result.
 */
#include "store/vtab_group.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define DIRECT_MAX (1u << 17)
#define PAIRS (1u << 17) /* hash slots; at most GROUP_ROWS_MAX are used */

struct pair {
	int64_t value;
	uint32_t group;
	uint32_t number; /* new number + 1; 0 free */
};

struct group_by {
	unsigned int keys, measures;
	enum group_fold folds[GROUP_MEASURES_MAX];
	/* the chunk */
	uint32_t rows, groups;
	unsigned int refined; /* keys done */
	uint32_t *of_row;     /* group of each row */
	int64_t *values;
	int64_t *local_keys, *next_keys; /* [key * GROUP_ROWS_MAX + group] */
	int64_t *local;			 /* [measure * GROUP_ROWS_MAX + group] */
	uint32_t *direct;
	struct pair *pairs;
	/* the result: entries of (keys + measures) numbers, and a hash of entry + 1 */
	int64_t *entries;
	size_t nr, room;
	uint32_t *hash;
	size_t hash_size;
};

static size_t width(const struct group_by *g)
{
	return g->keys + g->measures;
}

struct group_by *group_create(unsigned int keys, unsigned int measures,
			      const enum group_fold *folds)
{
	struct group_by *g = calloc(1, sizeof(*g));
	size_t column = GROUP_ROWS_MAX * sizeof(int64_t);

	assert(keys <= GROUP_KEYS_MAX && measures <= GROUP_MEASURES_MAX);
	if (!g)
		return NULL;
	g->keys = keys;
	g->measures = measures;
	if (measures)
		memcpy(g->folds, folds, measures * sizeof(*folds));
	g->hash_size = 1024;
	g->of_row = malloc(GROUP_ROWS_MAX * sizeof(*g->of_row));
	g->values = malloc(column);
	g->local_keys = malloc(column * (keys + 1));
	g->next_keys = malloc(column * (keys + 1));
	g->local = malloc(column * (measures + 1));
	g->direct = malloc(DIRECT_MAX * sizeof(*g->direct));
	g->pairs = malloc(PAIRS * sizeof(*g->pairs));
	g->hash = calloc(g->hash_size, sizeof(*g->hash));
	if (!g->of_row || !g->values || !g->local_keys || !g->next_keys || !g->local ||
	    !g->direct || !g->pairs || !g->hash) {
		group_destroy(g);
		return NULL;
	}
	return g;
}

void group_destroy(struct group_by *g)
{
	if (!g)
		return;
	free(g->of_row);
	free(g->values);
	free(g->local_keys);
	free(g->next_keys);
	free(g->local);
	free(g->direct);
	free(g->pairs);
	free(g->entries);
	free(g->hash);
	free(g);
}

int64_t *group_values(struct group_by *g)
{
	return g->values;
}

void group_begin(struct group_by *g, uint32_t rows)
{
	assert(rows > 0 && rows <= GROUP_ROWS_MAX);
	g->rows = rows;
	g->groups = 1;
	g->refined = 0;
	memset(g->of_row, 0, rows * sizeof(*g->of_row));
}

/* ---- refining ---- */

/* Number a pair seen for the first time: its key is the old group's key and @value. */
static uint32_t new_group(struct group_by *g, uint32_t number, uint32_t parent, int64_t value)
{
	for (unsigned int k = 0; k < g->refined; k++)
		g->next_keys[k * GROUP_ROWS_MAX + number] =
			g->local_keys[k * GROUP_ROWS_MAX + parent];
	g->next_keys[g->refined * GROUP_ROWS_MAX + number] = value;
	return number + 1;
}

static uint32_t refine_direct(struct group_by *g, const int64_t *values, int64_t low,
			      uint32_t span)
{
	uint32_t *of_row = g->of_row, *direct = g->direct, groups = 0;

	memset(direct, 0, (size_t)g->groups * span * sizeof(*direct));
	for (uint32_t i = 0; i < g->rows; i++) {
		uint32_t *slot = &direct[of_row[i] * span + (uint32_t)(values[i] - low)];

		if (!*slot)
			*slot = new_group(g, groups++, of_row[i], values[i]);
		of_row[i] = *slot - 1;
	}
	return groups;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9E3779B97F4A7C15);
	return h ^ h >> 29;
}

static uint32_t refine_hash(struct group_by *g, const int64_t *values)
{
	uint32_t *of_row = g->of_row, groups = 0;

	memset(g->pairs, 0, PAIRS * sizeof(*g->pairs));
	for (uint32_t i = 0; i < g->rows; i++) {
		size_t at = mix(mix(1, of_row[i]), (uint64_t)values[i]) % PAIRS;
		struct pair *p = &g->pairs[at];

		while (p->number && (p->group != of_row[i] || p->value != values[i])) {
			at = (at + 1) % PAIRS;
			p = &g->pairs[at];
		}
		if (!p->number)
			*p = (struct pair){ values[i], of_row[i],
					    new_group(g, groups++, of_row[i], values[i]) };
		of_row[i] = p->number - 1;
	}
	return groups;
}

void group_refine(struct group_by *g, const int64_t *values)
{
	int64_t low = values[0], high = values[0], *swap = g->local_keys;
	uint64_t span;

	assert(g->refined < g->keys);
	for (uint32_t i = 1; i < g->rows; i++) {
		low = values[i] < low ? values[i] : low;
		high = values[i] > high ? values[i] : high;
	}
	span = (uint64_t)high - (uint64_t)low + 1;
	if (span && span <= DIRECT_MAX && span * g->groups <= DIRECT_MAX)
		g->groups = refine_direct(g, values, low, (uint32_t)span);
	else
		g->groups = refine_hash(g, values);
	g->local_keys = g->next_keys;
	g->next_keys = swap;
	g->refined++;
}

/* ---- measures ---- */

static int64_t fold_start(enum group_fold fold)
{
	return fold == GROUP_SUM ? 0 : fold == GROUP_LEAST ? INT64_MAX : INT64_MIN;
}

static int64_t *measure_start(struct group_by *g, unsigned int m)
{
	int64_t *local = g->local + m * GROUP_ROWS_MAX;

	assert(m < g->measures);
	for (uint32_t i = 0; i < g->groups; i++)
		local[i] = fold_start(g->folds[m]);
	return local;
}

void group_count(struct group_by *g, unsigned int m)
{
	int64_t *local = measure_start(g, m);

	for (uint32_t i = 0; i < g->rows; i++)
		local[g->of_row[i]]++;
}

/* Sums wrap; the caller's quantities (bytes, ns since tape start) stay far below 2^63. */
static int64_t fold_two(enum group_fold fold, int64_t a, int64_t b)
{
	if (fold == GROUP_SUM)
		return (int64_t)((uint64_t)a + (uint64_t)b);
	return fold == GROUP_LEAST ? (b < a ? b : a) : (b > a ? b : a);
}

void group_fold(struct group_by *g, unsigned int m, const int64_t *values)
{
	int64_t *local = measure_start(g, m);
	const uint32_t *of_row = g->of_row;

	if (g->folds[m] == GROUP_SUM) {
		for (uint32_t i = 0; i < g->rows; i++)
			local[of_row[i]] = fold_two(GROUP_SUM, local[of_row[i]], values[i]);
		return;
	}
	for (uint32_t i = 0; i < g->rows; i++)
		local[of_row[i]] = fold_two(g->folds[m], local[of_row[i]], values[i]);
}

/* ---- the result ---- */

static uint64_t hash_entry(const struct group_by *g, const int64_t *entry)
{
	uint64_t h = 1;

	for (unsigned int k = 0; k < g->keys; k++)
		h = mix(h, (uint64_t)entry[k]);
	return h;
}

static bool grow(struct group_by *g)
{
	size_t room = g->room ? 2 * g->room : 256, size = 4 * room;
	int64_t *entries = realloc(g->entries, room * width(g) * sizeof(*entries));
	uint32_t *hash;

	if (!entries)
		return false;
	g->entries = entries;
	hash = calloc(size, sizeof(*hash));
	if (!hash)
		return false;
	for (size_t e = 0; e < g->nr; e++) {
		size_t at = hash_entry(g, entries + e * width(g)) % size;

		while (hash[at])
			at = (at + 1) % size;
		hash[at] = (uint32_t)e + 1;
	}
	free(g->hash);
	g->hash = hash;
	g->hash_size = size;
	g->room = room;
	return true;
}

/* The result's entry with the keys of @probe, made when absent. */
static int64_t *find_entry(struct group_by *g, const int64_t *probe)
{
	size_t at = hash_entry(g, probe) % g->hash_size;
	int64_t *entry;

	for (; g->hash[at]; at = (at + 1) % g->hash_size) {
		entry = g->entries + (g->hash[at] - 1) * width(g);
		if (!memcmp(entry, probe, g->keys * sizeof(*probe)))
			return entry;
	}
	g->hash[at] = (uint32_t)++g->nr;
	entry = g->entries + (g->nr - 1) * width(g);
	memcpy(entry, probe, g->keys * sizeof(*probe));
	for (unsigned int m = 0; m < g->measures; m++)
		entry[g->keys + m] = fold_start(g->folds[m]);
	return entry;
}

bool group_end(struct group_by *g, bool *ret_too_many)
{
	assert(g->refined == g->keys);
	*ret_too_many = false;
	for (uint32_t i = 0; i < g->groups; i++) {
		int64_t probe[GROUP_KEYS_MAX], *entry;

		if (g->nr == GROUPS_MAX) {
			*ret_too_many = true;
			return false;
		}
		if (g->nr == g->room && !grow(g))
			return false;
		for (unsigned int k = 0; k < g->keys; k++)
			probe[k] = g->local_keys[k * GROUP_ROWS_MAX + i];
		entry = find_entry(g, probe);
		for (unsigned int m = 0; m < g->measures; m++)
			entry[g->keys + m] = fold_two(g->folds[m], entry[g->keys + m],
						      g->local[m * GROUP_ROWS_MAX + i]);
	}
	return true;
}

size_t group_nr(const struct group_by *g)
{
	return g->nr;
}

int64_t group_key(const struct group_by *g, size_t group, unsigned int key)
{
	return g->entries[group * width(g) + key];
}

int64_t group_measure(const struct group_by *g, size_t group, unsigned int m)
{
	return g->entries[group * width(g) + g->keys + m];
}
