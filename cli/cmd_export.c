/* SPDX-License-Identifier: MIT */
/* slabtape export: a tape in another program's format. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analyze/export.h"
#include "base/cleanup.h"
#include "cli/open_source.h"
#include "cli/range_opts.h"
#include "cli/verb.h"
#include "store/tape.h"

static struct {
	char *to, *output, *time, *cache, *weight;
	long long run;
	int quiet;
} opt;

static const struct poptOption options[] = {
	{ "to", '\0', POPT_ARG_STRING, &opt.to, 0,
	  "ops, csv, json (lines), folded, speedscope, perfetto or ctf (a directory)", "FORMAT" },
	{ "output", 'o', POPT_ARG_STRING, &opt.output, 0, "file to write (default: stdout)", "FILE" },
	{ "run", '\0', POPT_ARG_LONGLONG, &opt.run, 0,
	  "csv, json, perfetto: what this run recorded instead of the events", "RUN" },
	{ "time", '\0', POPT_ARG_STRING, &opt.time, 0,
	  "only from A to before B: times (2s, 1.5ms) or markers", "A-B" },
	{ "cache", '\0', POPT_ARG_STRING, &opt.cache, 0, "only this cache", "NAME" },
	{ "weight", '\0', POPT_ARG_STRING, &opt.weight, 0,
	  "folded: bytes (requested, default), hit (allocations) or live_bytes", "WHAT" },
	{ "quiet", 'q', POPT_ARG_NONE, &opt.quiet, 0, "no summary on stderr", NULL },
	POPT_TABLEEND,
};

static int run_export(int argc, const char **argv);

extern const struct cli_verb cli_verb_export;
const struct cli_verb cli_verb_export = { "export", "TAPE --to FORMAT [-o FILE] [OPTION...]",
					  "write a tape in another format", run_export, options };

static void print_done(const struct export_sums *sums)
{
	const char *what = !strcmp(opt.to, "folded") || !strcmp(opt.to, "speedscope") ? "weight" : "events";

	if (!opt.quiet && opt.output && strcmp(opt.output, "-") != 0)
		fprintf(stderr, "export: %s: %" PRIu64 " records, %s %" PRIu64 "; read back and counted\n",
			opt.output, sums->records, what, sums->events);
}

static int run(const char *source)
{
	TAPE_CLEANUP(tape_closep_tape) struct tape *t = NULL;
	struct export_config cfg = EXPORT_CONFIG_ALL;
	struct tape_range range = TAPE_RANGE_ALL;
	struct export_sums sums = { 0 };
	struct tape_err err = { 0 };
	int rc = cli_check_output("--output", opt.output, source, &err);

	if (rc == 0)
		rc = cli_open_source(source, TAPE_READ, &t, &err);
	if (rc == 0 && opt.cache)
		rc = cli_find_cache(t, opt.cache, &cfg.cache, &err);
	if (rc == 0 && opt.time)
		rc = cli_parse_span(t, opt.time, &range, &err);
	cfg.begin_ns = range.ts_begin;
	cfg.end_ns = range.ts_end;
	cfg.run = opt.run;
	if (opt.weight)
		cfg.weight = opt.weight;
	if (rc == 0)
		rc = export_tape(t, opt.to, &cfg, opt.output, &sums, &err);
	if (rc < 0)
		return cli_fail("export", rc, &err);
	print_done(&sums);
	return 0;
}

static int check_weight(void)
{
	if (!opt.weight)
		return 0;
	if (strcmp(opt.to, "folded") != 0)
		return cli_usage("export", "--weight goes with --to folded");
	if (strcmp(opt.weight, "bytes") && strcmp(opt.weight, "hit") && strcmp(opt.weight, "live_bytes"))
		return cli_usage("export", "--weight %s: bytes, hit or live_bytes", opt.weight);
	return 0;
}

static int run_export(int argc, const char **argv)
{
	const char *source;
	poptContext con;
	int rc;

	opt.run = -1;
	con = cli_parse(&cli_verb_export, argc, argv, &rc);
	if (!con)
		return rc;
	source = poptGetArg(con);
	if (!source || poptPeekArg(con))
		rc = cli_usage("export", "one TAPE expected; see slabtape export --help");
	else if (!opt.to)
		rc = cli_usage("export", "--to FORMAT is needed: %s", export_formats);
	else
		rc = check_weight();
	if (source && opt.to && rc == 0)
		rc = run(source);
	poptFreeContext(con);
	return rc;
}
