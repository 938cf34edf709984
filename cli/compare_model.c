/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare.h"

static const struct replay_cache *cache_of(const struct replay_result *r, uint16_t id)
{
	for (size_t i = 0; i < r->nr_caches; i++)
		if (r->caches[i].cache == id)
			return &r->caches[i];
	return NULL;
}

static const struct {
	const char *name;
	size_t offset;
} state_values[] = {
	{ "slabs", offsetof(struct alloc_cache_state, slabs) },
	{ "total_objects", offsetof(struct alloc_cache_state, total_objects) },
	{ "objects", offsetof(struct alloc_cache_state, objects) },
	{ "partial", offsetof(struct alloc_cache_state, partial) },
	{ "objects_partial", offsetof(struct alloc_cache_state, objects_partial) },
	{ "cpu_slabs", offsetof(struct alloc_cache_state, cpu_slabs) },
	{ "slabs_cpu_partial", offsetof(struct alloc_cache_state, slabs_cpu_partial) },
};

static bool value_of(const struct replay_cache *c, const struct compare_row *row, int64_t *ret)
{
	uint64_t value;

	for (size_t i = 0; row->state && i < sizeof(state_values) / sizeof(*state_values); i++)
		if (!strcmp(state_values[i].name, row->name)) {
			memcpy(&value, (const char *)&c->state + state_values[i].offset,
			       sizeof(value));
			*ret = (int64_t)value;
			return true;
		}
	for (size_t i = 0; !row->state && i < c->nr_counters; i++)
		if (!strcmp(c->counters[i].name, row->name)) {
			*ret = c->counters[i].sum;
			return true;
		}
	return false;
}

static void fill_value(const struct compare_column *col, const struct compare_cache *cache,
		       struct compare_row *row, struct compare_value *v)
{
	int64_t one;

	*v = (struct compare_value){ .spread = { INT64_MAX, INT64_MIN, 0 } };
	if (!col->results) {
		v->there = cache->recorded && cli_recorded_value(cache->recorded, row->name, &one);
		if (v->there) {
			v->spread = (struct cli_spread){ one, one, (double)one };
			v->first = one;
		}
		return;
	}
	for (uint32_t i = 0; i < col->nr; i++) {
		const struct replay_cache *c = cache_of(col->results[i], cache->cache->cache);

		if (!c || !value_of(c, row, &one))
			continue;
		if (!v->there)
			v->first = one;
		v->there = true;
		v->spread.min = one < v->spread.min ? one : v->spread.min;
		v->spread.max = one > v->spread.max ? one : v->spread.max;
		v->spread.mean += (double)one / col->nr;
	}
}

static int add_row(struct compare_cache *cache, const char *name, bool state)
{
	struct compare_row *grown;

	for (size_t i = 0; i < cache->nr_rows; i++)
		if (!strcmp(cache->rows[i].name, name))
			return 0;
	grown = realloc(cache->rows, (cache->nr_rows + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	cache->rows = grown;
	grown += cache->nr_rows++;
	memset(grown, 0, sizeof(*grown));
	snprintf(grown->name, sizeof(grown->name), "%s", name);
	grown->state = state;
	return 0;
}

/* Rows: the counters of every column in its order, then the state. */
static int build_rows(struct compare *c, struct compare_cache *cache)
{
	int rc = 0;

	for (size_t col = 0; col < c->nr_columns; col++) {
		const struct replay_cache *rcache = c->columns[col].results ?
			cache_of(c->columns[col].results[0], cache->cache->cache) : NULL;

		for (size_t i = 0; rcache && i < rcache->nr_counters && rc >= 0; i++)
			rc = add_row(cache, rcache->counters[i].name, false);
	}
	for (size_t i = 0; cache->recorded && i < cache->recorded->nr_counters && rc >= 0; i++)
		rc = add_row(cache, cache->recorded->values[i].name, false);
	for (size_t i = 0; i < sizeof(state_values) / sizeof(*state_values) && rc >= 0; i++)
		rc = add_row(cache, state_values[i].name, true);
	for (size_t i = 0; i < cache->nr_rows && rc >= 0; i++)
		for (size_t col = 0; col < c->nr_columns; col++)
			fill_value(&c->columns[col], cache, &cache->rows[i],
				   &cache->rows[i].value[col]);
	return rc;
}

static double agreement_of(const struct compare *cmp, const struct compare_column *col, uint16_t id)
{
	uint64_t same = 0, total = 0;

	for (uint32_t i = 0; i < (cmp->measure ? 1 : col->nr); i++) {
		const struct replay_cache *c = cache_of(cmp->measure ? cmp->measure :
							col->results[i], id);

		same += c ? c->placed_same : 0;
		total += c ? c->placed_total : 0;
	}
	return total ? (double)same / (double)total : -1;
}

int compare_build(struct compare *c)
{
	const struct compare_column *first = &c->columns[c->columns[0].results ? 0 : 1];
	const struct replay_result *r = first->results[0];

	c->caches = calloc(r->nr_caches ? r->nr_caches : 1, sizeof(*c->caches));
	if (!c->caches)
		return -ENOMEM;
	c->script = r->script;
	for (size_t i = 0; i < r->nr_caches; i++) {
		struct compare_cache *cache = &c->caches[c->nr_caches];
		int rc;

		cache->cache = &r->caches[i];
		cache->class = '-';
		cache->agreement = agreement_of(c, first, cache->cache->cache);
		if (c->recorded) {
			cache->recorded = cli_recorded_find(c->recorded, cache->cache->cache);
			if (!cache->recorded)
				continue;
		}
		c->nr_caches++;
		rc = build_rows(c, cache);
		if (rc < 0)
			return rc;
	}
	return 0;
}

void compare_fini(struct compare *c)
{
	for (size_t i = 0; i < c->nr_caches; i++)
		free(c->caches[i].rows);
	free(c->caches);
}
