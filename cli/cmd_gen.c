/* SPDX-License-Identifier: MIT */
/* slabtape gen: a synthetic tape with the shape of a published workload. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/gen.h"
#include "cli/verb.h"
#include "store/tape.h"

enum { SETTINGS_MAX = 16 };
static struct gen_options {
	int cpus, nodes, overwrite, list, quiet;
	long long events, seed;
	char *out;
	const char **settings;
} opt;

static const struct poptOption gen_options[] = {
	{ "cpus", '\0', POPT_ARG_INT, &opt.cpus, 0, "virtual CPUs (default 16)", "N" },
	{ "nodes", '\0', POPT_ARG_INT, &opt.nodes, 0, "NUMA nodes (default 1)", "M" },
	{ "events", '\0', POPT_ARG_LONGLONG, &opt.events, 0, "events (default 1000000)", "E" },
	{ "seed", '\0', POPT_ARG_LONGLONG, &opt.seed, 0, "seed (default 1)", "S" },
	{ "output", 'o', POPT_ARG_STRING, &opt.out, 0, "tape to write (default PATTERN.tape)", "TAPE" },
	{ "overwrite", 'f', POPT_ARG_NONE, &opt.overwrite, 0, "replace an existing tape", NULL },
	{ "param", '\0', POPT_ARG_ARGV, &opt.settings, 0, "parameter of the pattern, repeatable",
	  "NAME=VALUE" },
	{ "list", '\0', POPT_ARG_NONE, &opt.list, 0, "list patterns and their parameters", NULL },
	{ "quiet", 'q', POPT_ARG_NONE, &opt.quiet, 0, "no summary on stderr", NULL },
	POPT_TABLEEND,
};

static int list_patterns(void)
{
	const struct gen_pattern *p;

	for (uint32_t i = 0; (p = gen_pattern_at(i)); i++) {
		printf("%-10s %s\n           source: %s\n", p->name, p->what, p->source);
		for (int k = 0; k < GEN_PARAMS_MAX && p->params[k].name; k++)
			printf("           --param %s=%" PRId64 "   %s\n", p->params[k].name,
			       p->params[k].value, p->params[k].what);
	}
	return 0;
}

extern const struct cli_verb cli_verb_gen;

/* "name=value" texts into @settings; the texts are cut at "=".  Returns their number or -1. */
static int parse_settings(const char **texts, struct gen_setting *settings)
{
	int nr = 0;

	for (; texts && *texts; texts++, nr++) {
		char *equals = strchr((char *)(uintptr_t)*texts, '='), *end;

		if (!equals || nr == SETTINGS_MAX)
			return -1;
		errno = 0;
		settings[nr].value = strtoll(equals + 1, &end, 10);
		if (errno || *end || end == equals + 1)
			return -1;
		*equals = '\0';
		settings[nr].name = *texts;
	}
	return nr;
}

static int generate(const char *pattern, const struct gen_setting *settings, int nr)
{
	struct gen_config cfg = { .pattern = pattern, .cpus = (uint32_t)opt.cpus,
				  .nodes = (uint32_t)opt.nodes, .events = (uint64_t)opt.events,
				  .seed = (uint64_t)opt.seed, .settings = settings,
				  .nr_settings = (size_t)nr };
	struct tape_err err = { 0 };
	struct tape *tape = NULL;
	char path[128];
	const char *out = opt.out;
	int rc;

	if (!out) {
		snprintf(path, sizeof(path), "%s.tape", pattern);
		out = path;
	}
	rc = tape_create(out, opt.overwrite, &tape, &err);
	if (rc >= 0)
		rc = gen_run(tape, &cfg, &err);
	if (rc < 0) {
		tape_discard(tape); /* half a generated tape is worth nothing */
		return cli_fail("gen", rc, &err);
	}
	tape_close(tape);
	if (!opt.quiet)
		fprintf(stderr, "gen: %s written\n", out);
	return 0;
}

static int run(int argc, const char **argv)
{
	struct gen_setting settings[SETTINGS_MAX];
	const char *pattern;
	poptContext con;
	int rc, nr;

	opt = (struct gen_options){ .cpus = 16, .nodes = 1, .events = 1000000, .seed = 1 };
	con = cli_parse(&cli_verb_gen, argc, argv, &rc);
	if (!con)
		return rc;
	pattern = poptGetArg(con);
	nr = parse_settings(opt.settings, settings);
	if (opt.list)
		rc = list_patterns();
	else if (!pattern || poptPeekArg(con))
		rc = cli_usage("gen", "one PATTERN is needed; gen --list names them");
	else if (nr < 0)
		rc = cli_usage("gen", "--param takes NAME=NUMBER, at most %d times", SETTINGS_MAX);
	else if (opt.cpus < 1 || opt.nodes < 1 || opt.events < 1)
		rc = cli_usage("gen", "--cpus, --nodes and --events must be at least 1");
	else
		rc = generate(pattern, settings, nr);
	free(opt.out);
	poptFreeContext(con);
	return rc;
}

const struct cli_verb cli_verb_gen = { "gen", "PATTERN [OPTION...]",
				       "make a synthetic tape with the shape of a published workload",
				       run, gen_options };
