/* SPDX-License-Identifier: MIT */
#include "replay/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct take {
	struct replay_snapshot *s;
	size_t last; /* the counter of the previous call: names come in runs or in order */
	bool failed;
};

static struct replay_counter *counter_add(struct replay_snapshot *s, const char *name)
{
	struct replay_counter *c;

	if (s->nr == s->capacity) {
		size_t capacity = s->capacity ? s->capacity * 2 : 32;
		struct replay_counter *grown = realloc(s->counters, capacity * sizeof(*grown));

		if (!grown)
			return NULL;
		s->counters = grown;
		s->capacity = capacity;
	}
	c = &s->counters[s->nr];
	memset(c, 0, sizeof(*c));
	c->per_cpu = calloc(s->cpus, sizeof(*c->per_cpu));
	if (!c->per_cpu)
		return NULL;
	s->nr++;
	snprintf(c->name, sizeof(c->name), "%s", name);
	return c;
}

static struct replay_counter *counter_find(struct take *t, const char *name)
{
	struct replay_snapshot *s = t->s;

	for (size_t n = 0; n < s->nr; n++) {
		size_t i = (t->last + n) % s->nr;

		if (!strcmp(s->counters[i].name, name)) {
			t->last = i;
			return &s->counters[i];
		}
	}
	t->last = s->nr;
	return counter_add(s, name);
}

static void take_one(void *ctx, uint32_t cpu, const char *name, int64_t value)
{
	struct take *t = ctx;
	struct replay_counter *c = t->failed ? NULL : counter_find(t, name);

	if (!c || cpu >= t->s->cpus) {
		t->failed = true;
		return;
	}
	c->per_cpu[cpu] += value;
	c->sum += value;
}

static void read_counters(const struct alloc_cache *c, const struct alloc_variant *v,
			  alloc_counter_fn fn, void *ctx)
{
	(v->read_counters ? v->read_counters : alloc_read_counters)(c, fn, ctx);
}

int replay_snapshot_take(struct replay_snapshot *s, const struct alloc_cache *c,
			 const struct alloc_variant *v, uint32_t cpus)
{
	struct take t = { .s = s };
	const uint64_t *hist;

	*s = (struct replay_snapshot){ .cpus = cpus };
	read_counters(c, v, take_one, &t);
	hist = alloc_refill_hist(c, &s->refill_entries);
	s->refill_hist = calloc(s->refill_entries ? s->refill_entries : 1, sizeof(*hist));
	if (t.failed || !s->refill_hist) {
		replay_snapshot_fini(s);
		return -ENOMEM;
	}
	if (s->refill_entries)
		memcpy(s->refill_hist, hist, s->refill_entries * sizeof(*hist));
	for (uint32_t i = 0; i < ALLOC_FREE_CLASSES; i++)
		s->free_class[i] = alloc_free_class(c, i);
	return 0;
}

void replay_snapshot_fini(struct replay_snapshot *s)
{
	for (size_t i = 0; i < s->nr; i++)
		free(s->counters[i].per_cpu);
	free(s->counters);
	free(s->refill_hist);
	*s = (struct replay_snapshot){ 0 };
}

void replay_snapshot_subtract(struct replay_snapshot *s, const struct replay_snapshot *base)
{
	for (size_t i = 0; i < s->nr && i < base->nr; i++) {
		s->counters[i].sum -= base->counters[i].sum;
		for (uint32_t cpu = 0; cpu < s->cpus; cpu++)
			s->counters[i].per_cpu[cpu] -= base->counters[i].per_cpu[cpu];
	}
	if (!base->nr)
		return;
	for (uint32_t i = 0; i < ALLOC_FREE_CLASSES; i++)
		s->free_class[i] -= base->free_class[i];
	for (uint32_t i = 0; i < s->refill_entries && i < base->refill_entries; i++)
		s->refill_hist[i] -= base->refill_hist[i];
}

struct sums {
	int64_t *sums;
	char (*names)[40];
	size_t nr, capacity, next;
};

/*
 * Callbacks come CPU by CPU or counter by counter; a position is found from the names by
 * remembering where the last one stood.
 */
static void sum_one(void *ctx, uint32_t cpu, const char *name, int64_t value)
{
	struct sums *s = ctx;

	(void)cpu;
	for (size_t n = 0; n < s->nr; n++) {
		size_t i = (s->next + n) % s->nr;

		if (!strcmp(s->names[i], name)) {
			s->sums[i] += value;
			s->next = i;
			return;
		}
	}
	if (s->nr < s->capacity) {
		snprintf(s->names[s->nr], sizeof(*s->names), "%s", name);
		s->sums[s->nr] = value;
		s->next = s->nr++;
	}
}

size_t replay_counter_sums(const struct alloc_cache *c, const struct alloc_variant *v,
			   int64_t *sums, char (*names)[40], size_t nr, size_t capacity)
{
	struct sums s = { .sums = sums, .names = names, .nr = nr, .capacity = capacity };

	memset(sums, 0, nr * sizeof(*sums));
	read_counters(c, v, sum_one, &s);
	return s.nr;
}
