/* SPDX-License-Identifier: MIT */
/* slabtape diff: what differs between two tapes or two runs. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/diff.h"
#include "base/cleanup.h"
#include "cli/open_source.h"
#include "cli/rows.h"
#include "cli/verb.h"

static struct {
	char *runs;
	int first, want_json, want_csv;
	long long limit;
	long long run_a, run_b;
} opt;

static const struct poptOption options[] = {
	{ "runs", '\0', POPT_ARG_STRING, &opt.runs, 0,
	  "compare run A of the first tape with run B of the second (of the same when only one is given)",
	  "A,B" },
	{ "first", '\0', POPT_ARG_NONE, &opt.first, 0,
	  "with --runs on one tape: the first slab transition in which they part, with both states", NULL },
	{ "limit", 'l', POPT_ARG_LONGLONG, &opt.limit, 0, "rows (default 40; 0: all)", "N" },
	{ "json", '\0', POPT_ARG_NONE, &opt.want_json, 0, "as JSON", NULL },
	{ "csv", '\0', POPT_ARG_NONE, &opt.want_csv, 0, "as CSV", NULL },
	POPT_TABLEEND,
};

static int run_diff(int argc, const char **argv);

extern const struct cli_verb cli_verb_diff;
const struct cli_verb cli_verb_diff = { "diff", "A [B] [--runs A,B] [--first]",
					"what differs between two tapes or runs (exit 1: they differ)",
					run_diff, options };

/* Print @rows (a reference that is taken); the exit code. */
static int print(json_t *rows, bool differ)
{
	size_t nr = json_array_size(rows), limit = opt.limit > 0 ? (size_t)opt.limit : nr;
	enum output_format format = opt.want_csv ? OUTPUT_CSV : OUTPUT_TABLE;
	json_t *report;
	int rc = 0;

	while (json_array_size(rows) > limit)
		json_array_remove(rows, json_array_size(rows) - 1);
	if (opt.want_json) {
		report = json_pack("{s:b, s:I, s:O}", "differ", differ, "differences", (json_int_t)nr, "rows",
				   rows);
		rc = json_dumpf(report, stdout, JSON_INDENT(1)) || putchar('\n') < 0 ? -TAPE_E_IO : 0;
		json_decref(report);
	} else {
		rc = rows_print(stdout, format, rows);
		if (!nr && !opt.want_csv)
			puts("no difference");
		else if (!differ && !opt.want_csv)
			puts("not distinguishable: every difference lies within the spread over seeds");
		else if (nr > limit && !opt.want_csv)
			printf("%zu more; --limit 0 shows all\n", nr - limit);
	}
	json_decref(rows);
	return rc < 0 ? cli_fail("diff", rc, NULL) : differ;
}

static int run(const char *path_a, const char *path_b)
{
	TAPE_CLEANUP(tape_closep_tape) struct tape *a = NULL;
	TAPE_CLEANUP(tape_closep_tape) struct tape *b = NULL;
	struct tape_err err = { 0 };
	json_t *rows = NULL;
	int rc = cli_open_source(path_a, TAPE_READ, &a, &err);

	if (rc == 0 && path_b)
		rc = cli_open_source(path_b, TAPE_READ, &b, &err);
	if (rc == 0 && opt.first)
		rc = diff_first(a, opt.run_a, opt.run_b, &rows, &err);
	else if (rc == 0 && opt.runs)
		rc = diff_runs(a, opt.run_a, b ? b : a, opt.run_b, &rows, &err);
	else if (rc == 0)
		rc = diff_tapes(a, b, &rows, &err);
	if (rc < 0)
		return cli_fail("diff", rc, &err);
	return print(rows, opt.first ? json_array_size(rows) > 0 : diff_is_distinct(rows));
}

static int check(const char *path_a, const char *path_b)
{
	int end = 0;

	if (!path_a)
		return cli_usage("diff", "which tapes?");
	if (opt.runs && (sscanf(opt.runs, "%lld,%lld%n", &opt.run_a, &opt.run_b, &end) != 2 ||
			 opt.runs[end]))
		return cli_usage("diff", "--runs %s: want two numbers, A,B", opt.runs);
	if (!opt.runs && !path_b)
		return cli_usage("diff", "two tapes, or one and --runs A,B");
	if (opt.first && (!opt.runs || path_b))
		return cli_usage("diff", "--first wants one tape and --runs A,B");
	return 0;
}

static int run_diff(int argc, const char **argv)
{
	const char *path_a, *path_b;
	poptContext con;
	int rc;

	opt.limit = 40;
	con = cli_parse(&cli_verb_diff, argc, argv, &rc);
	if (!con)
		return rc;
	path_a = poptGetArg(con);
	path_b = path_a ? poptGetArg(con) : NULL;
	rc = poptPeekArg(con) ? cli_usage("diff", "'%s' is left over", poptPeekArg(con)) :
				check(path_a, path_b);
	if (rc == 0)
		rc = run(path_a, path_b);
	poptFreeContext(con);
	return rc;
}
