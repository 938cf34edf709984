/* SPDX-License-Identifier: MIT */
#include "cli/replay_print.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_head(const struct replay_result *r, bool timing)
{
	printf("%s, %s, %u CPUs on %u nodes, seed %" PRIu64 ": %" PRIu64 " operations",
	       r->variant->name, replay_mode_name(r->mode), r->cpus, r->nodes, r->seed, r->ops);
	if (timing && r->ops)
		printf(" in %.1f ms (%.1f ns each)", (double)r->elapsed_ns / 1e6,
		       (double)r->elapsed_ns / (double)r->ops);
	printf("\n");
	if (r->skipped)
		printf("skipped: %" PRIu64 " events that cannot be executed\n", r->skipped);
	if (r->left_out)
		printf("left out: %" PRIu64 " events of objects whose cache or size nobody named, "
		       "or that are whole pages\n", r->left_out);
	if (r->warmed)
		printf("warmed: %" PRIu64 " objects from before the recording\n", r->warmed);
	if (r->failed)
		printf("failed: %" PRIu64 " allocations\n", r->failed);
}

static void print_knob(const char *name, int64_t value)
{
	if (value >= 0)
		printf("  %s %" PRId64, name, value);
}

static void print_cache(const struct replay_cache *c)
{
	printf("\n%s: object_size %u  size %u  order %u  objs_per_slab %u", c->name,
	       c->geo.object_size, c->geo.size, c->geo.order, c->geo.objects);
	print_knob("min_partial", c->min_partial);
	print_knob("cpu_partial", c->cpu_partial);
	print_knob("cpu_partial_slabs", c->cpu_partial_slabs);
	print_knob("sheaf_capacity", c->sheaf_capacity);
	if (c->coverage < 0.9)
		printf("\n  INDICATIVE ONLY: %.1f %% of its events were traced, the rest inferred",
		       c->coverage * 100);
	else if (c->coverage < 1)
		printf("  coverage %.4f", c->coverage);
	printf("\n  slabs %" PRIu64 "  objects %" PRIu64 "/%" PRIu64 "  partial %" PRIu64
	       "  objects_partial %" PRIu64 "  cpu_slabs %" PRIu64 "  slabs_cpu_partial %" PRIu64
	       "\n", c->state.slabs, c->state.objects, c->state.total_objects, c->state.partial,
	       c->state.objects_partial, c->state.cpu_slabs, c->state.slabs_cpu_partial);
	for (size_t i = 0; i < c->nr_counters; i++)
		if (c->counters[i].sum)
			printf("  %-28s %12" PRId64 "\n", c->counters[i].name, c->counters[i].sum);
	if (c->placed_total)
		printf("  placement agreement %.2f %% of %" PRIu64 " allocations\n",
		       100.0 * (double)c->placed_same / (double)c->placed_total, c->placed_total);
}

static int by_wait(const void *a, const void *b)
{
	const struct replay_lock *x = a, *y = b;

	return (x->wait_ns < y->wait_ns) - (x->wait_ns > y->wait_ns);
}

/* A result in virtual time means nothing without it. */
void cli_print_costs(json_t *costs)
{
	const char *key;
	json_t *value;

	printf("costs:");
	json_object_foreach(costs, key, value)
		printf(" %s=%g", key, json_number_value(value));
	putchar('\n');
}

/* Virtual time and the locks that cost most of it. */
static void print_sim(const struct replay_sim *s)
{
	enum { SHOWN = 12 };

	printf("virtual time %.3f ms, %.0f operations/s, pace %s, scale %u; waited for objects "
	       "%.3f ms\n", (double)s->virtual_ns / 1e6, s->ops_per_s, replay_pace_name(s->pace),
	       s->scale, (double)s->dependency_wait_ns / 1e6);
	cli_print_costs(s->costs);
	qsort(s->locks, s->nr_locks, sizeof(*s->locks), by_wait);
	printf("%-24s %4s %-10s %-14s %12s %10s %7s %12s %12s\n", "cache", "node", "lock", "path",
	       "acquisitions", "contended", "share %", "wait_ns", "hold_ns");
	for (size_t i = 0; i < s->nr_locks && i < SHOWN; i++) {
		const struct replay_lock *l = &s->locks[i];

		printf("%-24s %4u %-10s %-14s %12" PRIu64 " %10" PRIu64 " %7.2f %12" PRIu64
		       " %12" PRIu64 "\n", *l->cache_name ? l->cache_name : "(page allocator)",
		       l->node, l->lock, l->path, l->acquisitions, l->contended, l->share * 100,
		       l->wait_ns, l->hold_ns);
	}
}

void cli_print_result(const struct replay_result *r, bool timing)
{
	print_head(r, timing);
	if (r->sim)
		print_sim(r->sim);
	for (size_t i = 0; i < r->nr_caches; i++)
		print_cache(&r->caches[i]);
}

void cli_print_result_csv(const struct replay_result *r)
{
	puts("variant,cache,counter,value");
	for (size_t i = 0; i < r->nr_caches; i++)
		for (size_t n = 0; n < r->caches[i].nr_counters; n++)
			printf("%s,%s,%s,%" PRId64 "\n", r->variant->name, r->caches[i].name,
			       r->caches[i].counters[n].name, r->caches[i].counters[n].sum);
}

static const struct replay_cache *cache_by_id(const struct replay_result *r, uint16_t id)
{
	for (size_t i = 0; i < r->nr_caches; i++)
		if (r->caches[i].cache == id)
			return &r->caches[i];
	return NULL;
}

struct cli_spread cli_spread_of(struct replay_result *const *results, uint32_t nr, size_t cache,
				size_t counter)
{
	struct cli_spread s = { INT64_MAX, INT64_MIN, 0 };
	const uint16_t id = results[0]->caches[cache].cache;

	for (uint32_t i = 0; i < nr; i++) {
		const struct replay_cache *c = cache_by_id(results[i], id);
		int64_t v = c && counter < c->nr_counters ? c->counters[counter].sum : 0;

		s.min = v < s.min ? v : s.min;
		s.max = v > s.max ? v : s.max;
		s.mean += (double)v / nr;
	}
	return s;
}

/* What a simulated run says about the whole machine. */
enum sim_figure { SIM_VIRTUAL_NS, SIM_OPS_PER_S, SIM_DEPENDENCY_NS, SIM_LOCK_WAIT_NS, SIM_FIGURES };
static const char *const sim_figures[SIM_FIGURES] = { "virtual_ns", "ops_per_s",
	"dependency_wait_ns", "lock_wait_ns" };

static double sim_figure_of(const struct replay_sim *s, enum sim_figure figure)
{
	double wait_ns = 0;

	switch (figure) {
	case SIM_VIRTUAL_NS:
		return (double)s->virtual_ns;
	case SIM_OPS_PER_S:
		return s->ops_per_s;
	case SIM_DEPENDENCY_NS:
		return (double)s->dependency_wait_ns;
	default:
		for (size_t i = 0; i < s->nr_locks; i++)
			wait_ns += (double)s->locks[i].wait_ns;
		return wait_ns;
	}
}

struct real_spread {
	double min, mean, max;
};
static struct real_spread sim_spread_of(struct replay_result *const *results, uint32_t nr,
					enum sim_figure figure)
{
	struct real_spread s = { sim_figure_of(results[0]->sim, figure), 0,
				 sim_figure_of(results[0]->sim, figure) };

	for (uint32_t i = 0; i < nr; i++) {
		const double v = sim_figure_of(results[i]->sim, figure);

		s.min = v < s.min ? v : s.min;
		s.max = v > s.max ? v : s.max;
		s.mean += v / nr;
	}
	return s;
}

static void print_sim_spread(struct replay_result *const *results, uint32_t nr)
{
	for (int i = 0; i < SIM_FIGURES; i++) {
		struct real_spread s = sim_spread_of(results, nr, (enum sim_figure)i);

		printf("  %-28s %12.0f %14.1f %12.0f\n", sim_figures[i], s.min, s.mean, s.max);
	}
}

static json_t *sim_spread_json(struct replay_result *const *results, uint32_t nr)
{
	json_t *j = json_object();

	for (int i = 0; i < SIM_FIGURES; i++) {
		struct real_spread s = sim_spread_of(results, nr, (enum sim_figure)i);

		json_object_set_new(j, sim_figures[i], json_pack("{s:f, s:f, s:f}", "min", s.min,
								 "mean", s.mean, "max", s.max));
	}
	return j;
}

void cli_print_spread(struct replay_result *const *results, uint32_t nr)
{
	print_head(results[0], false);
	printf("%u replays: min, mean and max\n", nr);
	if (results[0]->sim)
		print_sim_spread(results, nr);
	for (size_t i = 0; i < results[0]->nr_caches; i++) {
		const struct replay_cache *c = &results[0]->caches[i];

		printf("\n%s:\n", c->name);
		for (size_t n = 0; n < c->nr_counters; n++) {
			struct cli_spread s = cli_spread_of(results, nr, i, n);

			if (s.min || s.max)
				printf("  %-28s %12" PRId64 " %14.1f %12" PRId64 "\n",
				       c->counters[n].name, s.min, s.mean, s.max);
		}
	}
}

json_t *cli_spread_json(struct replay_result *const *results, uint32_t nr)
{
	json_t *j = json_object(), *caches = json_array();

	for (size_t i = 0; i < results[0]->nr_caches; i++) {
		const struct replay_cache *c = &results[0]->caches[i];
		json_t *counters = json_object();

		for (size_t n = 0; n < c->nr_counters; n++) {
			struct cli_spread s = cli_spread_of(results, nr, i, n);

			json_object_set_new(counters, c->counters[n].name,
					    json_pack("{s:I, s:f, s:I}", "min", (json_int_t)s.min,
						      "mean", s.mean, "max", (json_int_t)s.max));
		}
		json_array_append_new(caches, json_pack("{s:s, s:o}", "name", c->name, "counters",
							counters));
	}
	json_object_set_new(j, "runs", json_integer(nr));
	if (results[0]->sim)
		json_object_set_new(j, "simulated", sim_spread_json(results, nr));
	json_object_set_new(j, "caches", caches);
	return j;
}
