/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/compare.h"

static bool all_zero(const struct compare *c, const struct compare_row *row)
{
	for (size_t col = 0; col < c->nr_columns; col++)
		if (row->value[col].there && (row->value[col].spread.min || row->value[col].spread.max))
			return false;
	return true;
}

static bool shown(const struct compare *c, const struct compare_cache *cache, size_t col)
{
	return !c->columns[col].class_c_only || cache->class == 'C';
}

static double delta_of(const struct compare_row *row, size_t col)
{
	return row->value[col].spread.mean - row->value[0].spread.mean;
}

static void print_value(const struct compare_column *col, const struct compare_value *v)
{
	if (!v->there)
		printf(" %12s", "-");
	else if (col->nr > 1)
		printf(" %12.1f", v->spread.mean);
	else
		printf(" %12" PRId64, v->first);
	if (col->nr > 1 && v->there && v->spread.min != v->spread.max)
		printf(" [%" PRId64 "..%" PRId64 "]", v->spread.min, v->spread.max);
}

static void print_row(const struct compare *c, const struct compare_cache *cache,
		      const struct compare_row *row)
{
	printf("  %-26s", row->name);
	for (size_t col = 0; col < c->nr_columns; col++) {
		if (!shown(c, cache, col))
			continue;
		print_value(&c->columns[col], &row->value[col]);
		if (!col)
			continue;
		if (!row->value[0].there || !row->value[col].there) {
			printf(" %10s %9s ", "-", "-");
			continue;
		}
		printf(" %+10.1f", delta_of(row, col));
		if (row->value[0].spread.mean)
			printf(" %+8.2f%%", 100 * delta_of(row, col) / row->value[0].spread.mean);
		else
			printf(" %9s", row->value[col].spread.mean ? "new" : "=");
		putchar(compare_indistinct(c, cache, row, col) ? '~' : ' ');
	}
	putchar('\n');
}

static void print_cache_head(const struct compare *c, const struct compare_cache *cache)
{
	printf("\n%s: size %u", cache->cache->name, cache->cache->geo.object_size);
	if (cache->cache->coverage < 1)
		printf("  coverage %.4f", cache->cache->coverage);
	if (c->recorded) {
		const struct cli_recorded_cache *r = cache->recorded;

		printf("  class %c", cache->class);
		if (r->kernel_allocs)
			printf("  of the kernel's allocs recorded %.4f",
			       (double)r->allocs / (double)r->kernel_allocs);
		if (r->moved)
			printf("  window start moved %+" PRId64 " allocs", -r->moved);
	}
	if (cache->agreement >= 0)
		printf("  placement agreement %.2f %%", cache->agreement * 100);
	putchar('\n');
	if (cache->verdict[0])
		printf("  %s%s\n", cache->failed ? "DIFFERS: " : "", cache->verdict);
	printf("  %-26s", "");
	for (size_t col = 0; col < c->nr_columns; col++)
		if (shown(c, cache, col))
			printf(col ? " %12s %10s %9s " : " %12s", c->columns[col].name, "delta",
			       "change");
	putchar('\n');
}

static void print_notes(const struct compare *c)
{
	size_t class_c = 0, noisy = 0;

	for (size_t i = 0; i < c->nr_caches; i++) {
		class_c += c->caches[i].class == 'C' || c->caches[i].cache->coverage < 0.9;
		for (size_t n = 0; n < c->caches[i].nr_rows; n++)
			for (size_t col = 1; col < c->nr_columns; col++)
				noisy += compare_indistinct(c, &c->caches[i],
							    &c->caches[i].rows[n], col);
	}
	if (noisy)
		puts("\n~ not distinguishable: the spreads of the replays overlap, or a single "
		     "replay differs by less\n  than the 3 % that one different decision can move "
		     "on a contended cache (--repeat R tells).");
	if (class_c)
		puts("\nCaches with coverage below 0.9 are indicative only: late and early placement "
		     "of inferred events are\ntwo assumptions, and the truth may lie outside both.");
}

/* How much happened: counters of every column, so that the busiest cache comes first. */
static double activity(const struct compare *c, const struct compare_cache *cache)
{
	double sum = 0;

	for (size_t n = 0; n < cache->nr_rows; n++)
		for (size_t col = 0; col < c->nr_columns && !cache->rows[n].state; col++)
			if (cache->rows[n].value[col].there)
				sum += cache->rows[n].value[col].spread.mean;
	return sum;
}

/* The busiest cache not printed yet; NULL when only idle ones are left. */
static const struct compare_cache *busiest(const struct compare *c, const bool *printed)
{
	const struct compare_cache *best = NULL;
	double most = 0;

	for (size_t i = 0; i < c->nr_caches; i++)
		if (!printed[i] && activity(c, &c->caches[i]) > most) {
			best = &c->caches[i];
			most = activity(c, best);
		}
	return best;
}

static void print_summary(const struct compare *c)
{
	const struct compare_summary *s = &c->summary;

	printf("\nclass A: %zu caches, %zu exact, %zu outside the limits (3 counts or 0.2 %%)\n", s->a,
	       s->a_exact, s->a_failed);
	if (s->b)
		printf("class B: %zu caches, %zu outside the limits; counters >= 300: %.2f %% off in "
		       "the median, %.2f %% at worst%s\n", s->b, s->b_failed, s->b_median * 100,
		       s->b_worst * 100, s->b_median > 0.02 && !c->follow ?
		       " (limit of the median: 2 %)" : "");
	printf("class C: %zu caches\n", s->c);
}

void compare_print(const struct compare *c)
{
	TAPE_CLEANUP(tape_freep) bool *printed = calloc(c->nr_caches + 1, sizeof(*printed));
	const struct compare_cache *cache;
	size_t idle = c->nr_caches;

	while (printed && (cache = busiest(c, printed))) {
		printed[cache - c->caches] = true;
		idle--;
		print_cache_head(c, cache);
		for (size_t n = 0; n < cache->nr_rows; n++)
			if (!all_zero(c, &cache->rows[n]))
				print_row(c, cache, &cache->rows[n]);
	}
	if (idle)
		printf("\n%zu caches idle in the window are not shown (--json and --csv have "
		       "them).\n", idle);
	if (c->recorded)
		print_summary(c);
	print_notes(c);
}

void compare_print_csv(const struct compare *c)
{
	puts("cache,class,counter,source,mean,min,max,delta,change,distinguishable");
	for (size_t i = 0; i < c->nr_caches; i++)
		for (size_t n = 0; n < c->caches[i].nr_rows; n++) {
			const struct compare_row *row = &c->caches[i].rows[n];

			for (size_t col = 0; col < c->nr_columns && !all_zero(c, row); col++) {
				const struct compare_value *v = &row->value[col];

				if (!v->there || !shown(c, &c->caches[i], col))
					continue;
				printf("%s,%c,%s,%s,%.3f,%" PRId64 ",%" PRId64 ",%.3f,%.6f,%d\n",
				       c->caches[i].cache->name, c->caches[i].class, row->name,
				       c->columns[col].name, v->spread.mean, v->spread.min,
				       v->spread.max, delta_of(row, col), row->value[0].spread.mean ?
				       delta_of(row, col) / row->value[0].spread.mean : 0,
				       !compare_indistinct(c, &c->caches[i], row, col));
			}
		}
}

static json_t *row_json(const struct compare *c, const struct compare_cache *cache,
			const struct compare_row *row)
{
	json_t *values = json_array();

	for (size_t col = 0; col < c->nr_columns; col++) {
		const struct compare_value *v = &row->value[col];
		json_t *one = json_object();

		if (v->there && shown(c, cache, col)) {
			json_object_set_new(one, "mean", json_real(v->spread.mean));
			json_object_set_new(one, "min", json_integer(v->spread.min));
			json_object_set_new(one, "max", json_integer(v->spread.max));
			json_object_set_new(one, "first", json_integer(v->first));
		}
		if (v->there && col && row->value[0].there && shown(c, cache, col)) {
			json_object_set_new(one, "delta", json_real(delta_of(row, col)));
			json_object_set_new(one, "change", row->value[0].spread.mean ?
				json_real(delta_of(row, col) / row->value[0].spread.mean) :
				json_null());
			json_object_set_new(one, "distinguishable",
				json_boolean(!compare_indistinct(c, cache, row, col)));
		}
		json_array_append_new(values, one);
	}
	return json_pack("{s:s, s:b, s:o}", "name", row->name, "state", row->state, "values",
			 values);
}

static json_t *cache_json(const struct compare *c, const struct compare_cache *cache)
{
	json_t *j = json_object(), *rows = json_array();
	const char class[2] = { cache->class, '\0' };

	json_object_set_new(j, "name", json_string(cache->cache->name));
	json_object_set_new(j, "object_size", json_integer(cache->cache->geo.object_size));
	json_object_set_new(j, "coverage", json_real(cache->cache->coverage));
	json_object_set_new(j, "agreement", cache->agreement < 0 ? json_null() :
			    json_real(cache->agreement));
	if (c->recorded) {
		const struct cli_recorded_cache *r = cache->recorded;

		json_object_set_new(j, "class", json_string(class));
		json_object_set_new(j, "comparable", json_boolean(r->comparable));
		json_object_set_new(j, "window_moved", json_integer(r->moved));
		json_object_set_new(j, "kernel_allocs", json_integer(r->kernel_allocs));
		json_object_set_new(j, "kernel_frees", json_integer(r->kernel_frees));
		json_object_set_new(j, "allocs", json_integer((json_int_t)r->allocs));
		json_object_set_new(j, "frees", json_integer((json_int_t)r->frees));
		json_object_set_new(j, "failed", json_boolean(cache->failed));
		json_object_set_new(j, "verdict", json_string(cache->verdict));
	}
	for (size_t n = 0; n < cache->nr_rows; n++)
		json_array_append_new(rows, row_json(c, cache, &cache->rows[n]));
	json_object_set_new(j, "counters", rows);
	return j;
}

json_t *compare_json(const struct compare *c)
{
	json_t *j = json_object(), *columns = json_array(), *caches = json_array();

	for (size_t col = 0; col < c->nr_columns; col++)
		json_array_append_new(columns, json_pack("{s:s, s:i}", "name", c->columns[col].name,
							 "replays", (int)c->columns[col].nr));
	for (size_t i = 0; i < c->nr_caches; i++)
		json_array_append_new(caches, cache_json(c, &c->caches[i]));
	json_object_set_new(j, "slabtape", json_string(SLABTAPE_VERSION));
	json_object_set_new(j, "format", json_integer(1));
	json_object_set_new(j, "against", json_string(c->columns[0].name));
	json_object_set_new(j, "columns", columns);
	json_object_set_new(j, "caches", caches);
	if (c->recorded)
		json_object_set_new(j, "summary", json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f}",
			"class_a", (int)c->summary.a, "class_a_exact", (int)c->summary.a_exact,
			"class_a_failed", (int)c->summary.a_failed, "class_b", (int)c->summary.b,
			"class_b_failed", (int)c->summary.b_failed, "class_c", (int)c->summary.c,
			"class_b_median", c->summary.b_median, "class_b_worst", c->summary.b_worst));
	return j;
}
