/* SPDX-License-Identifier: MIT */
/* slabtape cut: a part of a tape as a tape of its own. */
#include <jansson.h>

#include "base/cleanup.h"
#include "cli/open_source.h"
#include "cli/range_opts.h"
#include "cli/verb.h"
#include "store/tape.h"

static char *output, *from, *to, *cache_name;
static int want_json, force, cpu = -1;

static const struct poptOption options[] = {
	{ "output", 'o', POPT_ARG_STRING, &output, 0, "tape to write", "TAPE" },
	{ "force", 'f', POPT_ARG_NONE, &force, 0, "overwrite an existing tape", NULL },
	{ "from", '\0', POPT_ARG_STRING, &from, 0,
	  "begin at this marker (first word) or time since the start", "MARKER|TIME" },
	{ "to", '\0', POPT_ARG_STRING, &to, 0,
	  "end before this marker or time (12s, 1.5ms, 300us, 7ns)", "MARKER|TIME" },
	{ "cpu", '\0', POPT_ARG_INT, &cpu, 0, "only this CPU's events", "CPU" },
	{ "cache", '\0', POPT_ARG_STRING, &cache_name, 0, "only this cache's events", "NAME" },
	{ "json", '\0', POPT_ARG_NONE, &want_json, 0, "print the summary as JSON", NULL },
	POPT_TABLEEND,
};

static int bounds(struct tape *t, struct tape_range *range, struct tape_err *reterr)
{
	int rc = 0;

	if (from && !cli_parse_time(from, &range->ts_begin))
		rc = cli_find_marker(t, from, &range->seq_begin, NULL, reterr);
	if (rc == 0 && to && !cli_parse_time(to, &range->ts_end))
		rc = cli_find_marker(t, to, &range->seq_end, NULL, reterr);
	if (rc < 0)
		return rc;
	if (range->seq_begin >= range->seq_end || range->ts_begin >= range->ts_end)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--to %s is not after --from %s",
				    to ? to : "(end)", from ? from : "(begin)");
	return 0;
}

static int print_summary(const char *path, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_closep_tape) struct tape *t = NULL;
	struct tape_totals n;
	json_t *j;
	int rc = tape_open(path, TAPE_READ, &t, reterr);

	if (rc == 0)
		rc = tape_totals_get(t, &n, reterr);
	if (rc < 0)
		return rc;
	if (!want_json) {
		printf("%s: %llu events, %llu objects, %llu orphan frees\n", path,
		       (unsigned long long)n.events, (unsigned long long)n.objects,
		       (unsigned long long)n.orphan_frees);
		return 0;
	}
	j = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "tape", path, "events", (json_int_t)n.events,
		      "objects", (json_int_t)n.objects, "orphan_frees", (json_int_t)n.orphan_frees,
		      "ts_min", (json_int_t)n.ts_min, "ts_max", (json_int_t)n.ts_max);
	json_dumpf(j, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(j);
	return 0;
}

static int run(const char *path)
{
	TAPE_CLEANUP(tape_closep_tape) struct tape *t = NULL;
	struct tape_cut cut = TAPE_CUT_ALL;
	struct tape_err err = { 0 };
	int rc = cli_open_source(path, TAPE_READ, &t, &err);

	cut.cpu = cpu;
	if (rc == 0)
		rc = bounds(t, &cut.range, &err);
	if (rc == 0 && cache_name)
		rc = cli_find_cache(t, cache_name, &cut.cache, &err);
	if (rc == 0)
		rc = tape_cut(t, &cut, output, force, &err);
	if (rc == 0)
		rc = print_summary(output, &err);
	return rc < 0 ? cli_fail("cut", rc, &err) : 0;
}

static int run_cut(int argc, const char **argv);

extern const struct cli_verb cli_verb_cut;
const struct cli_verb cli_verb_cut = { "cut", "TAPE -o OUT [--from M] [--to M] [--cpu N] [--cache NAME]",
				       "a part of a tape as a tape", run_cut, options };

static int run_cut(int argc, const char **argv)
{
	int rc;
	poptContext con = cli_parse(&cli_verb_cut, argc, argv, &rc);
	const char *path = con ? poptGetArg(con) : NULL;

	if (!con)
		return rc;
	if (!path)
		rc = cli_usage("cut", "which tape?");
	else if (poptPeekArg(con))
		rc = cli_usage("cut", "one tape only; '%s' is left over", poptPeekArg(con));
	else if (!output)
		rc = cli_usage("cut", "--output is missing");
	else if (cpu < -1)
		rc = cli_usage("cut", "--cpu %d: a CPU is 0 or more", cpu);
	else
		rc = run(path);
	poptFreeContext(con);
	return rc;
}
