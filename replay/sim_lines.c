/* SPDX-License-Identifier: MIT */
#include "replay/sim_lines.h"

#include <stdlib.h>

struct entry {
	uint64_t line; /* 0: free; line 0 cannot be written by a program */
	uint32_t owner;
};

struct sim_lines {
	struct entry *entries;
	uint64_t mask, used;
};

static struct entry *find(const struct sim_lines *t, uint64_t line)
{
	uint64_t i = (line * 0x9E3779B97F4A7C15ull) >> 20;

	while (t->entries[i & t->mask].line && t->entries[i & t->mask].line != line)
		i++;
	return &t->entries[i & t->mask];
}

struct sim_lines *sim_lines_create(void)
{
	struct sim_lines *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->mask = (1u << 12) - 1;
	t->entries = calloc(t->mask + 1, sizeof(*t->entries));
	if (!t->entries) {
		free(t);
		return NULL;
	}
	return t;
}

void sim_lines_destroy(struct sim_lines *t)
{
	if (!t)
		return;
	free(t->entries);
	free(t);
}

static void grow(struct sim_lines *t)
{
	struct sim_lines bigger = { .mask = t->mask * 2 + 1, .used = t->used };

	bigger.entries = calloc(bigger.mask + 1, sizeof(*bigger.entries));
	if (!bigger.entries)
		abort();
	for (uint64_t i = 0; i <= t->mask; i++)
		if (t->entries[i].line)
			*find(&bigger, t->entries[i].line) = t->entries[i];
	free(t->entries);
	*t = bigger;
}

uint32_t *sim_lines_owner(struct sim_lines *t, uint64_t line)
{
	struct entry *e = find(t, line);

	if (!e->line) {
		if (t->used * 2 > t->mask) {
			grow(t);
			e = find(t, line);
		}
		t->used++;
		e->line = line;
		e->owner = UINT32_MAX;
	}
	return &e->owner;
}
