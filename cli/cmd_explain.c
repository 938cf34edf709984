/* SPDX-License-Identifier: MIT */
/* slabtape explain: where a cache's sizes, order and limits come from. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/sizing.h"
#include "base/cleanup.h"
#include "capture/import.h"
#include "cli/replay_opts.h"
#include "cli/verb.h"
#include "replay/plan.h"
#include "store/tape.h"

#define ROWS_MAX 32

static struct {
	const char *variant;
	int json, csv;
} opt = { .variant = "slub" };

static const struct poptOption options[] = {
	{ "variant", '\0', POPT_ARG_STRING, &opt.variant, 0, "allocator (see `slabtape variants`)",
	  "NAME" },
	{ "json", '\0', POPT_ARG_NONE, &opt.json, 0, "as JSON", NULL },
	{ "csv", '\0', POPT_ARG_NONE, &opt.csv, 0, "as CSV", NULL },
	CLI_REPLAY_OPTIONS,
	POPT_TABLEEND,
};

static int run(int argc, const char **argv);

extern const struct cli_verb cli_verb_explain;
const struct cli_verb cli_verb_explain = { "explain", "TAPE|SOURCE CACHE [--variant NAME]",
	"sizes, order and limits of a cache, with the formulas and the kernel version", run,
	options };

struct row {
	const char *name;
	int64_t value;
	char how[200];
	char *recorded; /* as the tape has it, NULL: not recorded */
};

struct explain {
	const struct replay_plan *plan;
	const struct replay_plan_cache *cache;
	const struct alloc_cache *live;
	enum alloc_era era;
	bool slub;
	struct alloc_geometry geo;
	struct row rows[ROWS_MAX];
	size_t nr;
};

static void add(struct explain *e, const char *name, int64_t value, const char *fmt, ...)
	TAPE_PRINTF(4, 5);

static void add(struct explain *e, const char *name, int64_t value, const char *fmt, ...)
{
	struct row *r = &e->rows[e->nr];
	va_list ap;

	if (e->nr == ROWS_MAX)
		return;
	e->nr++;
	r->name = name;
	r->value = value;
	va_start(ap, fmt);
	vsnprintf(r->how, sizeof(r->how), fmt, ap);
	va_end(ap);
	if (tape_knob_get(e->plan->tape, e->cache->row.id, name, &r->recorded, NULL) < 0)
		r->recorded = NULL;
}

/* "slub-6.1-halffull" follows the formulas of 6.1. */
static bool era_of(const char *variant, enum alloc_era *ret)
{
	static const struct {
		const char *prefix;
		enum alloc_era era;
	} eras[] = {
		{ "slub-2.6.30", ALLOC_ERA_2_6_30 }, { "slub-3.2", ALLOC_ERA_3_2 },
		{ "slub-5.15", ALLOC_ERA_5_15 },     { "slub-6.12", ALLOC_ERA_6_12 },
		{ "slub-6.1", ALLOC_ERA_6_1 },	     { "slub-7.2", ALLOC_ERA_7_2 },
	};

	for (size_t i = 0; i < sizeof(eras) / sizeof(*eras); i++) {
		size_t len = strlen(eras[i].prefix);

		if (!strncmp(variant, eras[i].prefix, len) && strchr("-", variant[len])) {
			*ret = eras[i].era;
			return true;
		}
	}
	return false;
}

static uint32_t fls32(uint32_t v)
{
	return v ? 32u - (uint32_t)__builtin_clz(v) : 0;
}

static void explain_size(struct explain *e)
{
	const struct alloc_geometry *g = &e->geo;
	const uint64_t flags = e->cache->row.flags;
	const bool behind = flags & (TAPE_CACHE_RCU | TAPE_CACHE_CTOR);

	add(e, "object_size", g->object_size, "%s", "as recorded");
	add(e, "align", g->align, "max(requested %" PRIu64 ", 8%s)", e->cache->row.align,
	    flags & TAPE_CACHE_HWALIGN ? ", cache line halved while the object fits half" : "");
	add(e, "offset", g->offset, "%s", behind ?
	    "free pointer behind the object: constructor or lookups under RCU" :
	    e->slub && e->era < ALLOC_ERA_5_15 ? "free pointer at the object's start" :
	    "free pointer inside the object: align_down(object_size / 2, 8)");
	add(e, "slab_size", g->size, "align_up(align_up(%u, 8)%s, %u)", g->object_size,
	    behind ? " + 8" : "", g->align);
}

static void explain_order(struct explain *e)
{
	const struct alloc_geometry *g = &e->geo;
	const uint32_t bytes = 4096u << g->order, cpus = e->plan->cpus;

	if (e->slub)
		add(e, "min_objects", 4 * (fls32(cpus) + 1), "4 * (fls(%u CPUs) + 1)", cpus);
	add(e, "order", g->order, "%s; %u bytes leave %u unused", !e->slub ?
	    "the variant's own rule" : e->era < ALLOC_ERA_6_12 ?
	    "first order up to 3 that wastes <= 1/16, then 1/8, 1/4; else min_objects - 1" :
	    "first order from get_order(min_objects * size) up to 3 that wastes <= 1/16, 1/8, "
	    "1/4, 1/2", bytes, bytes - g->objects * g->size);
	add(e, "objs_per_slab", g->objects, "floor((4096 << %u) / %u)", g->order, g->size);
	add(e, "min_order", g->min_order, "get_order(%u): the shape when the preferred one fails",
	    g->size);
	add(e, "min_objs_per_slab", g->min_objects, "floor((4096 << %u) / %u)", g->min_order,
	    g->size);
}

/* How a knob's default comes about; NULL: the registry's own text. */
static void knob_formula(const struct explain *e, const char *name, char *how, size_t bytes)
{
	const bool old = e->era < ALLOC_ERA_6_1;

	if (e->slub && !strcmp(name, "min_partial"))
		snprintf(how, bytes, "clamp(ilog2(%u)%s, 5, 10)", e->geo.size,
			 e->era == ALLOC_ERA_2_6_30 ? "" : " / 2");
	else if (e->slub && !strcmp(name, "cpu_partial") && e->era >= ALLOC_ERA_7_2)
		snprintf(how, bytes, "constant: there are no per-cpu partial lists");
	else if (e->slub && !strcmp(name, "cpu_partial"))
		snprintf(how, bytes, "by size %u: >= 4096: %d, >= 1024: %d, >= 256: %d, else %d",
			 e->geo.size, old ? 2 : 6, old ? 6 : 24, old ? 13 : 52, old ? 30 : 120);
	else if (e->slub && !strcmp(name, "sheaf_capacity"))
		snprintf(how, bytes, "by size %u: >= 4096: 4, >= 1024: 12, >= 256: 26, else 60; "
			 "32 + 8 * that rounded up to a kmalloc size", e->geo.size);
}

static void explain_knobs(struct explain *e)
{
	const struct alloc_variant *v = e->plan->variant;
	int64_t value, cpu_partial = 0;

	for (uint32_t i = 0; i < v->nr_knobs; i++) {
		char how[160];

		snprintf(how, sizeof(how), "%s", v->knobs[i].what);
		if (v->get_knob(e->live, v->knobs[i].name, &value) < 0)
			continue;
		knob_formula(e, v->knobs[i].name, how, sizeof(how));
		add(e, v->knobs[i].name, value, "%s", how);
		for (size_t k = 0; k < e->cache->nr_knobs; k++)
			if (!strcmp(e->cache->knobs[k].name, v->knobs[i].name))
				snprintf(e->rows[e->nr - 1].how, sizeof(e->rows[0].how),
					 "set by the tape or --set (default: %s)", how);
	}
	if (v->get_knob(e->live, "cpu_partial_slabs", &value) < 0)
		return;
	v->get_knob(e->live, "cpu_partial", &cpu_partial);
	add(e, "cpu_partial_slabs", value, "ceil(2 * %" PRId64 " / %u objects per slab)",
	    cpu_partial, e->geo.objects);
}

static void print_text(const struct explain *e)
{
	printf("%s on %s (%s; %s), %u CPUs on %u nodes\n", e->cache->row.name,
	       e->plan->variant->name, e->plan->variant->era, e->plan->variant->origin,
	       e->plan->cpus, e->plan->nodes);
	for (size_t i = 0; i < e->nr; i++) {
		printf("  %-26s %8" PRId64 "  %s", e->rows[i].name, e->rows[i].value,
		       e->rows[i].how);
		if (e->rows[i].recorded)
			printf("  [recorded: %s]", e->rows[i].recorded);
		putchar('\n');
	}
}

static void print_csv(const struct explain *e)
{
	puts("cache,variant,name,value,recorded,how");
	for (size_t i = 0; i < e->nr; i++)
		printf("%s,%s,%s,%" PRId64 ",%s,\"%s\"\n", e->cache->row.name,
		       e->plan->variant->name, e->rows[i].name, e->rows[i].value,
		       e->rows[i].recorded ? e->rows[i].recorded : "", e->rows[i].how);
}

static void print_json(const struct explain *e)
{
	json_t *rows = json_array(), *j;

	for (size_t i = 0; i < e->nr; i++)
		json_array_append_new(rows, json_pack("{s:s, s:I, s:s, s:s?}", "name",
			e->rows[i].name, "value", (json_int_t)e->rows[i].value, "how",
			e->rows[i].how, "recorded", e->rows[i].recorded));
	j = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:o}", "cache", e->cache->row.name, "variant",
		      e->plan->variant->name, "era", e->plan->variant->era, "source",
		      e->plan->variant->origin, "cpus", (int)e->plan->cpus, "nodes",
		      (int)e->plan->nodes, "values", rows);
	json_dumpf(j, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(j);
}

/* Create the cache on a machine like the plan's and describe it. */
static int explain_live(struct explain *e, struct tape_err *err)
{
	const struct replay_plan *p = e->plan;
	const uint64_t flags = e->cache->row.flags;
	const struct alloc_machine_config machine = { .cpus = p->cpus, .nodes = p->nodes,
						      .cpu_node = p->cpu_node };
	const struct alloc_cache_config cfg = {
		.name = e->cache->row.name, .object_size = (uint32_t)e->cache->row.object_size,
		.align = (uint32_t)e->cache->row.align,
		.flags = (flags & TAPE_CACHE_HWALIGN ? ALLOC_F_HWCACHE_ALIGN : 0u) |
			 (flags & TAPE_CACHE_RCU ? ALLOC_F_RCU : 0u) |
			 (flags & TAPE_CACHE_CTOR ? ALLOC_F_CTOR : 0u),
		.knobs = e->cache->knobs, .nr_knobs = e->cache->nr_knobs,
	};
	struct alloc_machine *m = NULL;
	struct alloc_cache *c = NULL;
	int rc = alloc_machine_create(&machine, &m);

	if (rc >= 0)
		rc = p->variant->create(m, &cfg, &c);
	if (rc >= 0) {
		e->live = c;
		alloc_cache_geometry(c, &e->geo);
		explain_size(e);
		explain_order(e);
		explain_knobs(e);
		if (opt.json)
			print_json(e);
		else if (opt.csv)
			print_csv(e);
		else
			print_text(e);
		p->variant->destroy(c);
	}
	alloc_machine_destroy(m);
	for (size_t i = 0; i < e->nr; i++)
		free(e->rows[i].recorded);
	return rc < 0 ? tape_err_set(err, rc, "%s on %s: %s", cfg.name, p->variant->name,
				     strerror(-rc)) : 0;
}

static int explain_cache(const char *path, const char *name, const struct replay_config *cfg)
{
	TAPE_CLEANUP(tape_closep_tape) struct tape *t = NULL;
	struct replay_plan *p = NULL;
	struct explain e = { 0 };
	struct tape_err err = { 0 };
	int rc = capture_open_source(path, NULL, &t, NULL, &err);

	if (rc >= 0)
		rc = replay_plan_create(t, cfg, ALLOC_SYNC_SERIAL, &p, &err);
	if (rc >= 0) {
		e.plan = p;
		e.slub = era_of(p->variant->name, &e.era);
		for (size_t i = 0; i < p->nr_caches; i++)
			if (!strcmp(p->caches[i].row.name, name))
				e.cache = &p->caches[i];
		if (!e.cache)
			rc = tape_err_set(&err, -TAPE_E_USAGE, "%s: the tape has no such cache", name);
		else if (e.cache->left_out)
			rc = tape_err_set(&err, -TAPE_E_USAGE, "%s: its size is not known", name);
		else
			rc = explain_live(&e, &err);
	}
	replay_plan_destroy(p);
	return rc < 0 ? cli_fail("explain", rc, &err) : 0;
}

static int run(int argc, const char **argv)
{
	int code = 0;
	poptContext con = cli_parse(&cli_verb_explain, argc, argv, &code);
	struct replay_config cfg;
	const char *path, *cache;

	if (!con)
		return code;
	path = poptGetArg(con);
	cache = path ? poptGetArg(con) : NULL;
	if (!cache || poptPeekArg(con))
		code = cli_usage("explain", "want a tape or source and the name of a cache");
	else
		code = cli_replay_config("explain", &cfg);
	if (!code) {
		cfg.variant = opt.variant;
		code = explain_cache(path, cache, &cfg);
	}
	poptFreeContext(con);
	return code;
}
