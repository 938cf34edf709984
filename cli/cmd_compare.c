/* SPDX-License-Identifier: MIT */
/* slabtape compare: one tape on several variants, or on one against the recorded kernel. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "capture/import.h"
#include "cli/compare.h"
#include "cli/replay_opts.h"
#include "cli/replay_store.h"
#include "cli/verb.h"
#include "store/tape.h"

#define RECORDED_REPEAT 8u /* replays against a recording unless --repeat says otherwise */

static struct {
	const char *variants, *against, *results, *cache;
	int json, csv;
} opt;

static const struct poptOption options[] = {
	{ "variants", '\0', POPT_ARG_STRING, &opt.variants, 0,
	  "allocators to compare; the first is the baseline", "A,B,C" },
	{ "against", '\0', POPT_ARG_STRING, &opt.against, 0,
	  "baseline: the recorded kernel's own counters", "recorded" },
	{ "cache", '\0', POPT_ARG_STRING, &opt.cache, 0, "show this cache only", "NAME" },
	{ "json", '\0', POPT_ARG_NONE, &opt.json, 0, "one JSON object", NULL },
	{ "csv", '\0', POPT_ARG_NONE, &opt.csv, 0, "one line per cache, counter and source", NULL },
	{ "results", '\0', POPT_ARG_STRING, &opt.results, 0, "store the runs in this tape", "FILE" },
	CLI_REPLAY_OPTIONS,
	POPT_TABLEEND,
};

static int run(int argc, const char **argv);

extern const struct cli_verb cli_verb_compare;
const struct cli_verb cli_verb_compare = { "compare",
	"TAPE|SOURCE --variants A,B,C | --against recorded [OPTION...]",
	"counters of several variants side by side", run, options };

struct session {
	const char *path, *args;
	struct tape *tape;
	struct replay_config cfg;
	uint32_t repeat;
	struct cli_recorded recorded;
	struct compare compare;
	struct replay_result *measure;
	char *names; /* copy of --variants, cut into names */
	char early[80];
};

/* @nr replays of @variant as one more column. */
static int add_column(struct session *s, const char *variant, const char *name, uint32_t nr,
		      struct tape_err *err)
{
	struct replay_config cfg = s->cfg;
	struct compare_column *col = &s->compare.columns[s->compare.nr_columns];
	int rc = 0;

	if (s->compare.nr_columns == COMPARE_COLUMNS_MAX)
		return tape_err_set(err, -TAPE_E_LIMIT, "more than %d columns", COMPARE_COLUMNS_MAX);
	cfg.variant = variant;
	col->results = calloc(nr, sizeof(struct replay_result *));
	if (!col->results)
		return tape_err_set(err, -ENOMEM, "out of memory");
	s->compare.nr_columns++;
	for (; col->nr < nr && rc >= 0; cfg.seed++) {
		rc = replay_run(s->tape, &cfg, &col->results[col->nr], err);
		if (rc >= 0)
			rc = cli_store_result("compare", s->path, opt.results,
					      col->results[col->nr++], s->args, err);
	}
	col->name = name ? name : col->nr ? col->results[0]->variant->name : variant;
	return rc;
}

static int add_variants(struct session *s, struct tape_err *err)
{
	char *rest = s->names, *v;
	int rc = 0;

	while (rc >= 0 && (v = strsep(&rest, ",")) != NULL)
		rc = *v ? add_column(s, v, NULL, s->repeat, err) :
			  tape_err_set(err, -TAPE_E_USAGE, "--variants %s: a name is empty",
				       opt.variants);
	return rc;
}

/* ---- against a recording ---- */

/* The variant that models the recorded kernel: "6.1.192" -> slub-6.1. */
static const char *recorded_variant(struct tape *t, char *buf, size_t bytes)
{
	TAPE_CLEANUP(tape_freep) char *kernel = NULL;
	unsigned major, minor;

	if (tape_meta_get(t, "kernel", &kernel, NULL) < 0 || !kernel ||
	    sscanf(kernel, "%u.%u", &major, &minor) != 2)
		return NULL;
	snprintf(buf, bytes, "slub-%u.%u", major, minor);
	return alloc_variant_find(buf, ALLOC_SYNC_SERIAL) ? buf : NULL;
}

static bool marker_there(struct tape *t, const char *name)
{
	TAPE_CLEANUP(tape_freep) struct tape_marker *markers = NULL;
	size_t nr = 0, len = strlen(name);

	if (tape_markers_get(t, &markers, &nr, NULL) < 0)
		return false;
	for (size_t i = 0; i < nr; i++)
		if (!strncmp(markers[i].name, name, len) &&
		    (!markers[i].name[len] || markers[i].name[len] == ' '))
			return true;
	return false;
}

static int recorded_config(struct session *s, struct tape_err *err)
{
	static char own[64];
	const struct alloc_variant *v;
	int rc;

	if (!s->cfg.count_from && marker_there(s->tape, "slabtape:BEGIN"))
		s->cfg.count_from = "slabtape:BEGIN";
	if (!s->cfg.count_to && marker_there(s->tape, "slabtape:END"))
		s->cfg.count_to = "slabtape:END";
	rc = cli_recorded_load(s->tape, s->cfg.count_from, s->cfg.count_to, &s->recorded, err);
	if (rc < 0)
		return rc;
	s->cfg.from = s->recorded.from;
	s->cfg.nr_from = s->recorded.nr_caches;
	s->cfg.agreement = true;
	s->cfg.variant = opt.variants ? opt.variants : recorded_variant(s->tape, own, sizeof(own));
	if (!s->cfg.variant)
		return tape_err_set(err, -TAPE_E_USAGE, "--against recorded: no variant is known "
				    "for the recorded kernel; name one with --variants");
	v = alloc_variant_find(s->cfg.variant, ALLOC_SYNC_SERIAL);
	/* Start by address where that is possible and nothing else was asked for. */
	if (v && v->alloc_placed && s->cfg.warm == REPLAY_WARM_ORPHANS && s->cfg.count_from)
		s->cfg.warm = REPLAY_WARM_ADDRESS;
	return 0;
}

static bool any_indicative(const struct compare_column *col)
{
	for (size_t i = 0; i < col->results[0]->nr_caches; i++)
		if (col->results[0]->caches[i].coverage < 0.9)
			return true;
	return false;
}

static int against_recorded(struct session *s, struct tape_err *err)
{
	int rc = recorded_config(s, err);

	if (rc < 0)
		return rc;
	s->compare.recorded = &s->recorded;
	s->compare.follow = s->cfg.follow;
	s->compare.columns[s->compare.nr_columns++] = (struct compare_column){ .name = "recorded",
									       .nr = 1 };
	if (s->cfg.follow) { /* contention shows only where placement is free */
		struct replay_config cfg = s->cfg;

		cfg.follow = false;
		rc = replay_run(s->tape, &cfg, &s->measure, err);
		s->compare.measure = s->measure;
	}
	if (rc >= 0)
		rc = add_column(s, s->cfg.variant, NULL, s->repeat, err);
	if (rc >= 0 && s->cfg.infer == REPLAY_INFER_LATE &&
	    any_indicative(&s->compare.columns[1])) {
		s->cfg.infer = REPLAY_INFER_EARLY;
		snprintf(s->early, sizeof(s->early), "early inferred");
		rc = add_column(s, s->cfg.variant, s->early, 1, err);
		s->compare.columns[2].class_c_only = true;
	}
	return rc;
}

static void keep_one_cache(struct compare *c, const char *name)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->nr_caches; i++) {
		if (strcmp(c->caches[i].cache->name, name))
			free(c->caches[i].rows);
		else
			c->caches[kept++] = c->caches[i];
	}
	c->nr_caches = kept;
}

static int show(struct session *s, struct tape_err *err)
{
	int rc = compare_build(&s->compare);

	if (rc < 0)
		return tape_err_set(err, rc, "out of memory");
	if (opt.cache)
		keep_one_cache(&s->compare, opt.cache);
	if (opt.cache && !s->compare.nr_caches)
		return tape_err_set(err, -TAPE_E_USAGE, "--cache %s: no such cache was replayed",
				    opt.cache);
	compare_judge(&s->compare);
	if (opt.json) {
		json_t *j = compare_json(&s->compare);

		json_dumpf(j, stdout, JSON_INDENT(1));
		putchar('\n');
		json_decref(j);
	} else if (opt.csv) {
		compare_print_csv(&s->compare);
	} else {
		compare_print(&s->compare);
	}
	return fflush(stdout) ? -TAPE_E_IO : 0;
}

static void session_fini(struct session *s)
{
	compare_fini(&s->compare);
	for (size_t col = 0; col < s->compare.nr_columns; col++) {
		struct compare_column *c = &s->compare.columns[col];

		for (uint32_t i = 0; c->results && i < c->nr; i++)
			replay_result_destroy(c->results[i]);
		free(c->results);
	}
	replay_result_destroy(s->measure);
	cli_recorded_fini(&s->recorded);
	tape_close(s->tape);
	free(s->names);
}

static int compare_source(struct session *s)
{
	struct tape_err err = { 0 };
	int rc = capture_open_source(s->path, NULL, &s->tape, NULL, &err);

	s->repeat = cli_replay_repeat();
	if (rc >= 0 && opt.against) {
		if (s->repeat == 1 && !s->cfg.follow)
			s->repeat = RECORDED_REPEAT;
		rc = against_recorded(s, &err);
	} else if (rc >= 0) {
		s->names = strdup(opt.variants);
		rc = s->names ? add_variants(s, &err) : -ENOMEM;
	}
	if (rc >= 0)
		rc = show(s, &err);
	return rc < 0 ? cli_fail("compare", rc, &err) : 0;
}

static int run(int argc, const char **argv)
{
	int code = 0;
	poptContext con = cli_parse(&cli_verb_compare, argc, argv, &code);
	TAPE_CLEANUP(tape_freep) char *args = cli_join_args(argc, argv);
	struct session s = { 0 };

	if (!con)
		return code;
	s.path = poptGetArg(con);
	s.args = args;
	if (!s.path || poptPeekArg(con))
		code = cli_usage("compare", "want one tape or source, got %s",
				 s.path ? "more" : "none");
	else if (opt.against && strcmp(opt.against, "recorded"))
		code = cli_usage("compare", "--against %s: only `recorded` is known", opt.against);
	else if (!opt.variants && !opt.against)
		code = cli_usage("compare", "want --variants A,B,C or --against recorded");
	else
		code = cli_replay_config("compare", &s.cfg);
	if (!code)
		code = compare_source(&s);
	session_fini(&s);
	poptFreeContext(con);
	return code;
}
