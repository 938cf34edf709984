/* SPDX-License-Identifier: MIT */
/*
 * Classes and verdicts of a comparison with a recording.  The limits and where they come from:
 * docs/allocator-model.md, "Fidelity".
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare.h"

#define COVERAGE_JUDGED 0.999
#define COVERAGE_INDICATIVE 0.9
#define AGREEMENT_CONTENDED 0.9
#define NOISE 0.03	/* one replay of a contended cache */
#define LARGE 300	/* class B judges counters from here on */
#define SEEDS 8u	/* class B needs this many replays */

/* What one thread cannot show: failed compare-exchanges. */
static bool needs_concurrency(const char *name)
{
	return !strncmp(name, "cmpxchg_", 8);
}

static bool judged(const struct compare_row *row, size_t col)
{
	return !row->state && row->value[0].there && row->value[col].there &&
	       !needs_concurrency(row->name);
}

static double off_by(const struct compare_row *row, double value)
{
	double kernel = row->value[0].spread.mean;

	return kernel ? fabs(value - kernel) / kernel : value ? INFINITY : 0;
}

static void fail(struct compare_cache *cache, const char *what, const struct compare_row *row,
		 double off)
{
	size_t len = strlen(cache->verdict);

	cache->failed = true;
	snprintf(cache->verdict + len, sizeof(cache->verdict) - len, "%s%s %s by %.2f %%",
		 len ? "; " : "", row->name, what, off * 100);
}

/* Class A: the first replay, counter by counter. */
static void judge_a(struct compare_cache *cache, size_t col)
{
	int64_t worst = 0;

	for (size_t i = 0; i < cache->nr_rows; i++) {
		const struct compare_row *row = &cache->rows[i];
		int64_t kernel = row->value[0].first, off = llabs(row->value[col].first - kernel);

		if (!judged(row, col))
			continue;
		worst = off > worst ? off : worst;
		if (off > 3 && (double)off > 0.002 * (double)kernel)
			fail(cache, "is off", row, off_by(row, (double)row->value[col].first));
	}
	if (!cache->failed && !worst)
		snprintf(cache->verdict, sizeof(cache->verdict), "exact in every counter");
	else if (!cache->failed)
		snprintf(cache->verdict, sizeof(cache->verdict), "within limits, at most %lld off",
			 (long long)worst);
}

/* Limit of the mean under --follow, by counter; 0: not judged there. */
static double follow_limit(const char *name)
{
	static const struct {
		const char *name;
		double limit;
	} limits[] = {
		{ "alloc_fastpath", 0.01 }, { "alloc_slowpath", 0.01 }, { "free_fastpath", 0.01 },
		{ "free_slowpath", 0.01 }, { "deactivate_bypass", 0.01 },
		{ "cpu_partial_free", 0.01 }, { "cpu_partial_drain", 0.01 },
		{ "free_add_partial", 0.01 }, { "alloc_refill", 0.02 },
		{ "cpu_partial_alloc", 0.02 }, { "cpu_partial_node", 0.02 },
		{ "alloc_from_partial", 0.02 }, { "free_frozen", 0.03 },
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		if (!strcmp(limits[i].name, name))
			return limits[i].limit;
	return 0;
}

static bool tight(const char *name)
{
	return !strcmp(name, "alloc_fastpath") || !strcmp(name, "free_slowpath");
}

static void judge_b_row(struct compare_cache *cache, const struct compare_row *row, size_t col,
			bool follow)
{
	const struct compare_value *v = &row->value[col];
	double kernel = row->value[0].spread.mean, mean = off_by(row, v->spread.mean);
	double wide = NOISE * kernel;

	if (follow) {
		double limit = follow_limit(row->name);

		if (limit && mean > limit)
			fail(cache, "is off", row, mean);
		return;
	}
	if (mean > (tight(row->name) ? 0.005 : 0.06))
		fail(cache, "is off in the mean", row, mean);
	if (off_by(row, (double)v->first) > 0.10)
		fail(cache, "is off in one replay", row, off_by(row, (double)v->first));
	if (kernel < (double)v->spread.min - wide || kernel > (double)v->spread.max + wide)
		fail(cache, "lies outside the replays; the mean is off", row, mean);
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* How far the means of the judged counters of @cache are off; returns how many there are. */
static size_t means_of(const struct compare_cache *cache, size_t col, double *off, size_t capacity)
{
	size_t nr = 0;

	for (size_t i = 0; i < cache->nr_rows && nr < capacity; i++)
		if (judged(&cache->rows[i], col) && cache->rows[i].value[0].first >= LARGE)
			off[nr++] = off_by(&cache->rows[i],
					   cache->rows[i].value[col].spread.mean);
	qsort(off, nr, sizeof(*off), by_value);
	return nr;
}

static void judge_b(struct compare_cache *cache, size_t col, bool follow)
{
	double off[256];
	size_t nr = means_of(cache, col, off, 256);

	for (size_t i = 0; i < cache->nr_rows; i++)
		if (judged(&cache->rows[i], col) && cache->rows[i].value[0].first >= LARGE)
			judge_b_row(cache, &cache->rows[i], col, follow);
	if (!nr)
		snprintf(cache->verdict, sizeof(cache->verdict), "not judged: contended, and no "
			 "counter reaches %d", LARGE);
	else if (!cache->failed)
		snprintf(cache->verdict, sizeof(cache->verdict), "within limits: means %.2f %% off "
			 "in the median, %.2f %% at worst", off[nr / 2] * 100, off[nr - 1] * 100);
}

static void judge_cache(const struct compare *c, struct compare_cache *cache)
{
	const struct compare_column *col = &c->columns[1];
	double coverage = cache->cache->coverage;

	if (coverage < COVERAGE_INDICATIVE) {
		cache->class = 'C';
		snprintf(cache->verdict, sizeof(cache->verdict), "indicative: only %.1f %% of its "
			 "events were traced", coverage * 100);
	} else if (coverage < COVERAGE_JUDGED) {
		snprintf(cache->verdict, sizeof(cache->verdict), "not judged: %.2f %% of its events "
			 "were traced, the rest inferred", coverage * 100);
	} else if (cache->recorded->moved * 2 > cache->recorded->kernel_allocs) {
		snprintf(cache->verdict, sizeof(cache->verdict), "not judged: %lld of the kernel's "
			 "%lld allocs lie before the window's marker",
			 (long long)cache->recorded->moved,
			 (long long)cache->recorded->kernel_allocs);
	} else if (!cache->recorded->comparable) {
		snprintf(cache->verdict, sizeof(cache->verdict), "not judged: the kernel counted "
			 "%lld allocs and %lld frees, the recording has %llu and %llu",
			 (long long)cache->recorded->kernel_allocs,
			 (long long)cache->recorded->kernel_frees,
			 (unsigned long long)cache->recorded->allocs,
			 (unsigned long long)cache->recorded->frees);
	} else if (!cache->recorded->kernel_allocs && !cache->recorded->kernel_frees) {
		snprintf(cache->verdict, sizeof(cache->verdict), "idle in the window");
	} else if (cache->agreement < 0) {
		snprintf(cache->verdict, sizeof(cache->verdict), "not judged: without addresses "
			 "contention cannot be measured");
	} else if (cache->agreement >= AGREEMENT_CONTENDED) {
		cache->class = 'A';
		judge_a(cache, 1);
	} else {
		cache->class = 'B';
		if (col->nr < SEEDS && !c->follow) /* one replay is a draw, not a verdict */
			snprintf(cache->verdict, sizeof(cache->verdict), "not judged: contended, "
				 "wants --repeat %u", SEEDS);
		else
			judge_b(cache, 1, c->follow);
	}
}

/* All contended caches together: the median over caches and counters has a limit of its own. */
static void summarize(struct compare *c)
{
	struct compare_summary *s = &c->summary;
	double *off = calloc(c->nr_caches ? c->nr_caches * 256 : 1, sizeof(*off));
	size_t nr = 0;

	for (size_t i = 0; i < c->nr_caches; i++) {
		const struct compare_cache *cache = &c->caches[i];

		s->a += cache->class == 'A';
		s->a_exact += cache->class == 'A' && !strncmp(cache->verdict, "exact", 5);
		s->a_failed += cache->class == 'A' && cache->failed;
		s->c += cache->class == 'C';
		if (cache->class == 'B' && off) {
			size_t more = means_of(cache, 1, off + nr, 256);

			s->b += more != 0;
			s->b_failed += more && cache->failed;
			nr += more;
		}
	}
	if (nr) {
		qsort(off, nr, sizeof(*off), by_value);
		s->b_median = off[nr / 2];
		s->b_worst = off[nr - 1];
	}
	free(off);
}

void compare_judge(struct compare *c)
{
	for (size_t i = 0; c->recorded && i < c->nr_caches; i++)
		judge_cache(c, &c->caches[i]);
	if (c->recorded)
		summarize(c);
}

bool compare_indistinct(const struct compare *c, const struct compare_cache *cache,
			const struct compare_row *row, size_t col)
{
	const struct compare_value *a = &row->value[0], *b = &row->value[col];

	if (a->spread.mean == b->spread.mean || c->script || !a->there || !b->there || c->recorded)
		return false;
	if (c->columns[0].nr > 1 || c->columns[col].nr > 1)
		return a->spread.min <= b->spread.max && b->spread.min <= a->spread.max;
	/* One replay each: below the noise, unless the cache is known to be uncontended. */
	return cache->agreement < AGREEMENT_CONTENDED && off_by(row, b->spread.mean) < NOISE;
}
