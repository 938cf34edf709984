/* SPDX-License-Identifier: MIT */
/* slabtape replay: one tape or source on one variant. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "capture/import.h"
#include "cli/open_source.h"
#include "cli/replay_curve.h"
#include "cli/replay_opts.h"
#include "cli/replay_print.h"
#include "cli/replay_store.h"
#include "cli/verb.h"
#include "replay/recorder.h"
#include "store/tape.h"

static struct {
	const char *variant, *paths, *results;
	int json, csv, state, no_timing;
} opt = { .variant = "slub" };

static const struct poptOption options[] = {
	{ "variant", '\0', POPT_ARG_STRING, &opt.variant, 0, "allocator (see `slabtape variants`)",
	  "NAME" },
	{ "json", '\0', POPT_ARG_NONE, &opt.json, 0, "one JSON object", NULL },
	{ "csv", '\0', POPT_ARG_NONE, &opt.csv, 0, "one line per cache and counter", NULL },
	{ "state", '\0', POPT_ARG_NONE, &opt.state, 0,
	  "lists and slabs at the end and at checkpoints (JSON)", NULL },
	{ "paths", '\0', POPT_ARG_STRING, &opt.paths, 0,
	  "write what each operation counted and returned", "FILE" },
	{ "no-timing", '\0', POPT_ARG_NONE, &opt.no_timing, 0,
	  "leave out times and the path: equal runs print equal bytes", NULL },
	{ "results", '\0', POPT_ARG_STRING, &opt.results, 0,
	  "store the run in this tape instead of the replayed one", "FILE" },
	CLI_REPLAY_OPTIONS,
	POPT_TABLEEND,
};

static int run(int argc, const char **argv);

extern const struct cli_verb cli_verb_replay;
const struct cli_verb cli_verb_replay = { "replay", "TAPE|SOURCE --variant NAME [OPTION...]",
	"execute a tape's operations on an allocator variant", run, options };

static int open_paths(FILE **ret_file, struct tape_err *err)
{
	*ret_file = NULL;
	if (!opt.paths)
		return 0;
	*ret_file = strcmp(opt.paths, "-") ? fopen(opt.paths, "w") : stdout;
	if (!*ret_file)
		return tape_err_set(err, -errno, "--paths %s: %s", opt.paths, strerror(errno));
	return 0;
}

static void print_results(struct replay_result *const *results, uint32_t nr, struct tape *t)
{
	if (opt.json) {
		json_t *j = replay_result_json(results[0], t, !opt.no_timing);

		if (nr > 1)
			json_object_set_new(j, "repeat", cli_spread_json(results, nr));
		json_dumpf(j, stdout, JSON_INDENT(1));
		putchar('\n');
		json_decref(j);
	} else if (opt.csv) {
		cli_print_result_csv(results[0]);
	} else if (nr > 1) {
		cli_print_spread(results, nr);
	} else {
		cli_print_result(results[0], !opt.no_timing);
	}
}

/* Seeds cfg->seed, +1, ...; what was finished stays in @results on failure too. */
static int run_all(const char *path, struct tape *t, struct replay_config *cfg, uint32_t nr,
		   const char *args, struct replay_result **results, struct tape_err *err)
{
	const bool stored = cli_stores_result(path, opt.results);
	int rc = 0;

	if (!stored)
		cfg->record = 0;
	for (uint32_t i = 0; i < nr && rc >= 0; i++) {
		rc = replay_run(t, cfg, &results[i], err);
		if (rc >= 0 && stored)
			rc = cli_store_result("replay", path, opt.results, results[i], args, err);
		if (results[i]) {
			replay_recorder_destroy(results[i]->recorder);
			results[i]->recorder = NULL;
		}
		if (!cli_replay_record_given()) /* the others differ by their seed only */
			cfg->record = 0;
		cfg->seed++;
		cfg->paths = NULL; /* of the first run only */
	}
	return rc;
}

/* Results of one machine, @nr of them, freed. */
static void destroy_all(struct replay_result **results, uint32_t nr)
{
	for (uint32_t i = 0; results && i < nr; i++)
		replay_result_destroy(results[i]);
	free(results);
}

static int replay_once(const char *path, struct tape *t, struct replay_config *cfg,
		       const char *args, struct tape_err *err)
{
	const uint32_t nr = cli_replay_repeat();
	struct replay_result **results = calloc(nr, sizeof(struct replay_result *));
	FILE *paths = NULL;
	int rc = results ? cli_check_output("--paths", opt.paths, path, err) : -ENOMEM;

	if (rc >= 0)
		rc = open_paths(&paths, err);
	cfg->paths = paths;
	if (!cli_replay_record_given() && cfg->mode != REPLAY_PARALLEL)
		cfg->record = REPLAY_RECORD_ALL;
	if (rc >= 0)
		rc = run_all(path, t, cfg, nr, args, results, err);
	if (paths && paths != stdout && fclose(paths) && rc >= 0)
		rc = tape_err_set(err, -TAPE_E_IO, "--paths %s: %s", opt.paths, strerror(errno));
	if (rc >= 0)
		print_results(results, nr, t);
	destroy_all(results, nr);
	return rc;
}

/* A curve while it is made: its points and one of its results, whose costs are printed. */
struct curve {
	struct cli_curve_point *points;
	uint32_t nr;
	struct replay_result *sample;
};

/* One more machine, of @cfg->scale copies; every one begins with the same seed. */
static int curve_add(struct curve *c, const char *path, struct tape *t, struct replay_config cfg,
		     const char *args, struct tape_err *err)
{
	const uint32_t nr = cli_replay_repeat();
	struct replay_result **results = calloc(nr, sizeof(struct replay_result *));
	int rc = results ? run_all(path, t, &cfg, nr, args, results, err) : -ENOMEM;

	if (rc >= 0) {
		c->points[c->nr++] = cli_curve_point_of(results, nr);
		replay_result_destroy(c->sample);
		c->sample = results[0];
		results[0] = NULL;
	}
	destroy_all(results, nr);
	return rc;
}

static int replay_curve(const char *path, struct tape *t, struct replay_config *cfg,
			const char *args, struct tape_err *err)
{
	const uint32_t *cpus, nr = cli_replay_curve(&cpus);
	struct curve c = { .points = calloc(nr, sizeof(*c.points)) };
	int rc = c.points ? 0 : -ENOMEM;

	/* A number that makes no sense is refused before the first replay. */
	for (uint32_t i = 0; i < nr && rc >= 0; i++)
		rc = cli_curve_scale(t, cpus[i], &cfg->scale, err);
	for (uint32_t i = 0; i < nr && rc >= 0; i++) {
		rc = cli_curve_scale(t, cpus[i], &cfg->scale, err);
		if (rc >= 0)
			rc = curve_add(&c, path, t, *cfg, args, err);
	}
	if (rc >= 0)
		rc = cli_curve_print(c.points, nr, c.sample, opt.json ? OUTPUT_JSON :
						   opt.csv ? OUTPUT_CSV : OUTPUT_TABLE);
	replay_result_destroy(c.sample);
	free(c.points);
	return rc;
}

static int replay_source(const char *path, struct replay_config *cfg, const char *args)
{
	TAPE_CLEANUP(tape_closep_tape) struct tape *t = NULL;
	struct tape_err err = { 0 };
	const uint32_t *cpus;
	int rc = capture_open_source(path, NULL, &t, NULL, &err);

	if (rc >= 0)
		rc = (cli_replay_curve(&cpus) ? replay_curve : replay_once)(path, t, cfg, args, &err);
	if (rc < 0)
		return cli_fail("replay", rc, &err);
	return fflush(stdout) ? cli_fail("replay", -TAPE_E_IO, NULL) : 0;
}

static int run(int argc, const char **argv)
{
	int code = 0;
	poptContext con = cli_parse(&cli_verb_replay, argc, argv, &code);
	TAPE_CLEANUP(tape_freep) char *args = cli_join_args(argc, argv);
	struct replay_config cfg;
	const uint32_t *cpus;
	const char *path;

	if (!con)
		return code;
	path = poptGetArg(con);
	if (!path || poptPeekArg(con))
		code = cli_usage("replay", "want one tape or source, got %s", path ? "more" : "none");
	else if (opt.state && !opt.json)
		code = cli_usage("replay", "--state is shown with --json only");
	else
		code = cli_replay_config("replay", &cfg);
	if (!code && (opt.state || opt.paths) && cli_replay_curve(&cpus))
		code = cli_usage("replay", "--state and --paths show one machine, not a curve");
	if (!code) {
		cfg.variant = opt.variant;
		cfg.want_state = opt.state;
		code = replay_source(path, &cfg, args);
	}
	poptFreeContext(con);
	return code;
}
