/* SPDX-License-Identifier: MIT */
/* slabtape stat: rates, mixes and shares of a tape; one run as slabinfo shows it. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "analyze/ask.h"
#include "analyze/stat.h"
#include "analyze/verdict.h"
#include "base/cleanup.h"
#include "cli/open_source.h"
#include "cli/range_opts.h"
#include "cli/rows.h"
#include "cli/verb.h"
#include "cli/verdict_print.h"

static struct {
	char *by, *sort, *time, *cache;
	int cpu, want_json, want_csv;
	long long run, limit;
	int activity, display, loss, report, counters;
	char *fail_if;
	int verdicts;
} opt;

static const struct poptOption options[] = {
	{ "by", '\0', POPT_ARG_STRING, &opt.by, 0, "one row per cache (default), cpu, node, site or time",
	  "WHAT" },
	{ "sort", 's', POPT_ARG_STRING, &opt.sort, 0,
	  "hit (default), bytes, frag, pingpong, callsite, free, remote, cross_node, life, live, "
	  "live_bytes", "KEY" },
	{ "time", '\0', POPT_ARG_STRING, &opt.time, 0,
	  "only from A to before B: times (2s, 1.5ms) or markers", "A-B" },
	{ "cpu", '\0', POPT_ARG_INT, &opt.cpu, 0, "only what this CPU did", "CPU" },
	{ "cache", '\0', POPT_ARG_STRING, &opt.cache, 0, "only this cache", "NAME" },
	{ "limit", 'l', POPT_ARG_LONGLONG, &opt.limit, 0,
	  "rows (default 20; 0: all); --by time: parts of the recording", "N" },
	{ "run", '\0', POPT_ARG_LONGLONG, &opt.run, 0, "show this run (slabtape info lists them)",
	  "RUN" },
	{ "activity", 'A', POPT_ARG_NONE, &opt.activity, 0,
	  "of the run: allocations, frees, fast paths, as slabinfo -AD (default)", NULL },
	{ "display-active", 'D', POPT_ARG_NONE, &opt.display, 0, "same as -A, as slabinfo spells it",
	  NULL },
	{ "loss", 'L', POPT_ARG_NONE, &opt.loss, 0, "of the run: lost bytes and locality, as slabinfo -L",
	  NULL },
	{ "report", 'r', POPT_ARG_NONE, &opt.report, 0, "of the run: every counter, as slabinfo -r", NULL },
	{ "counters", '\0', POPT_ARG_NONE, &opt.counters, 0,
	  "of the run: per CPU, as the files of /sys/kernel/slab print them", NULL },
	{ "verdicts", '\0', POPT_ARG_NONE, &opt.verdicts, 0,
	  "only the verdicts, each with its evidence and the query that shows it", NULL },
	{ "fail-if", '\0', POPT_ARG_STRING, &opt.fail_if, 0,
	  "exit 1 when one of these verdicts or findings is met; any: every finding",
	  "any|thrash,leak,..." },
	{ "json", '\0', POPT_ARG_NONE, &opt.want_json, 0, "as JSON", NULL },
	{ "csv", '\0', POPT_ARG_NONE, &opt.want_csv, 0, "as CSV", NULL },
	POPT_TABLEEND,
};

/* Headings that readers of perf kmem and slabinfo know; the keys stay those of the JSON. */
static const struct rows_heading headings[] = {
	{ "name", "Name" },
	{ "hit", "Hit" },
	{ "hit_per_s", "Hit/s" },
	{ "free", "Free" },
	{ "bytes", "Total_req" },
	{ "slot_bytes", "Total_alloc" },
	{ "frag", "Frag" },
	{ "pingpong", "Ping-pong" },
	{ "remote", "Remote" },
	{ "cross_node", "Xnode" },
	{ "life_ns", "Life(ns)" },
	{ "life_max_ns", "Longest(ns)" },
	{ "live", "Live" },
	{ "live_bytes", "Live_bytes" },
	{ "coverage", "Coverage" },
	{ "begin_s", "From(s)" },
	{ "peak", "Peak" },
	{ "peak_bytes", "Peak_bytes" },
	{ "objects", "Objects" },
	{ "alloc", "Alloc" },
	{ "fast_alloc", "%FastAl" },
	{ "fast_free", "%FastFr" },
	{ "fallback", "Fallb" },
	{ "order", "O" },
	{ "cmpxchg_fail", "CmpX" },
	{ "object_size", "Objsize" },
	{ "loss_bytes", "Loss" },
	{ "slabs", "Slabs" },
	{ "partial", "Part" },
	{ "cpu_slabs", "Cpu" },
	{ "objs_per_slab", "O/S" },
	{ "partial_percent", "%Fr" },
	{ "used_percent", "%Ef" },
	{ "node_mismatch", "Mism" },
	{ "counter", "Counter" },
	{ "value", "Value" },
	{ "percent", "%" },
	{ NULL, NULL },
};

static double real(const json_t *row, const char *key)
{
	return 100 * analyze_real(row, key);
}

static void print_summary(const json_t *s)
{
	printf("%" PRId64 " events in %.3f s on %" PRId64 " CPUs, %" PRId64 " nodes; %" PRId64
	       " lost, %" PRId64 " inferred, %" PRId64 " orphan frees\n",
	       analyze_int(s, "events"), analyze_real(s, "seconds"), analyze_int(s, "cpus"),
	       analyze_int(s, "nodes"), analyze_int(s, "lost"), analyze_int(s, "inferred"),
	       analyze_int(s, "orphan_frees"));
	printf("%" PRId64 " allocations of %" PRId64 " bytes, %" PRId64 " frees", analyze_int(s, "hit"),
	       analyze_int(s, "bytes"), analyze_int(s, "free"));
	if (!json_is_null(json_object_get(s, "frag")))
		printf("; internal fragmentation %.1f %%", real(s, "frag"));
	if (!json_is_null(json_object_get(s, "remote")))
		printf("; freed on another CPU %.1f %%, on another node %.1f %%", real(s, "remote"),
		       real(s, "cross_node"));
	printf("\n\n");
}

/* Lines like those of /sys/kernel/slab: cache/counter:value and the CPUs behind it. */
static void print_sysfs(const json_t *rows)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
		printf("%s/%s:%" PRId64 "%s\n", analyze_text(row, "name"), analyze_text(row, "counter"),
		       analyze_int(row, "value"), analyze_text(row, "per_cpu"));
}

static int print_json(json_t *report)
{
	int rc = json_dumpf(report, stdout, JSON_INDENT(1)) || putchar('\n') < 0 ? -TAPE_E_IO : 0;

	json_decref(report);
	return rc;
}

static int stat_run(struct tape *t, const struct stat_config *cfg, struct tape_err *reterr)
{
	enum stat_view view = opt.counters ? STAT_COUNTERS : opt.report ? STAT_REPORT :
			      opt.loss ? STAT_LOSS : STAT_ACTIVITY;
	json_t *rows;
	int rc = stat_run_table(t, opt.run, view, cfg->cache,
				view >= STAT_REPORT && opt.limit == 20 ? -1 : cfg->limit, &rows, reterr);

	if (rc < 0)
		return rc;
	if (opt.want_json)
		return print_json(json_pack("{s:I, s:o}", "run", (json_int_t)opt.run, "rows", rows));
	if (opt.want_csv)
		rc = rows_print(stdout, OUTPUT_CSV, rows);
	else if (view == STAT_COUNTERS)
		print_sysfs(rows);
	else
		rc = rows_print_headed(stdout, OUTPUT_TABLE, rows, headings);
	json_decref(rows);
	return rc;
}

static int print_tape(json_t *summary, json_t *rows, const json_t *verdicts)
{
	int rc;

	if (opt.want_csv)
		return rows_print(stdout, OUTPUT_CSV, rows);
	print_summary(summary);
	rc = rows_print_headed(stdout, OUTPUT_TABLE, rows, headings);
	if (verdicts) {
		printf("\nverdicts (--verdicts shows evidence and queries)\n");
		verdict_print(verdicts, false);
	}
	return rc;
}

static int stat_tape(struct tape *t, const struct stat_config *cfg, json_t *verdicts,
		     struct tape_err *reterr)
{
	json_t *rows, *summary, *report;
	int rc = stat_summary(t, cfg, &summary, reterr);

	if (rc < 0)
		return rc;
	rc = stat_table(t, cfg, &rows, reterr);
	if (rc < 0) {
		json_decref(summary);
		return rc;
	}
	if (opt.want_json) {
		report = json_pack("{s:o, s:o}", "summary", summary, "rows", rows);
		if (verdicts)
			json_object_set(report, "verdicts", verdicts);
		return print_json(report);
	}
	rc = print_tape(summary, rows, verdicts);
	json_decref(summary);
	json_decref(rows);
	return rc;
}

static int print_verdicts(json_t *verdicts)
{
	if (opt.want_json)
		return print_json(json_pack("{s:O}", "verdicts", verdicts));
	if (opt.want_csv)
		return verdict_print_csv(verdicts);
	verdict_print(verdicts, true);
	return 0;
}

/* Verdicts are about the whole recording: a part of it gets none unless they are asked for. */
static bool want_verdicts(const struct stat_config *cfg)
{
	bool part = opt.time || cfg->cpu >= 0 || opt.run >= 0;

	return opt.verdicts || opt.fail_if || (!part && !opt.want_csv);
}

/* The exit code: 1 when --fail-if is met. */
static int show(struct tape *t, const struct stat_config *cfg, struct tape_err *reterr)
{
	const struct verdict_config which = { .run = opt.run, .cache = opt.cache };
	json_t *verdicts = NULL;
	int rc = want_verdicts(cfg) ? verdict_ask(t, &which, &verdicts, reterr) : 0;

	if (rc == 0 && opt.verdicts)
		rc = print_verdicts(verdicts);
	else if (rc == 0)
		rc = opt.run >= 0 ? stat_run(t, cfg, reterr) : stat_tape(t, cfg, verdicts, reterr);
	if (rc == 0 && opt.fail_if && verdict_found(verdicts, opt.fail_if))
		rc = 1;
	json_decref(verdicts);
	return rc;
}

/* Every word of --fail-if must mean something. */
static int check_fail_if(const char *list)
{
	while (list && *list) {
		size_t n = strcspn(list, ",");

		if (!verdict_known(list, n))
			return cli_usage("stat", "--fail-if: no verdict or finding '%.*s'", (int)n, list);
		list += n + (list[n] == ',');
	}
	return 0;
}

/* 0, or the exit code of a usage error that was printed. */
static int check_options(struct stat_config *cfg)
{
	int by = opt.by ? stat_by_find(opt.by) : STAT_BY_CACHE;

	if (by < 0)
		return cli_usage("stat", "--by %s: cache, cpu, node, site or time", opt.by);
	if (opt.sort && !stat_sort_find(opt.sort))
		return cli_usage("stat", "--sort %s: %s", opt.sort, stat_sort_names);
	if (opt.sort && by == STAT_BY_TIME)
		return cli_usage("stat", "--sort has no meaning with --by time");
	if (opt.cpu < -1)
		return cli_usage("stat", "--cpu %d: a CPU is 0 or more", opt.cpu);
	if (opt.run < 0 && (opt.activity || opt.display || opt.loss || opt.report || opt.counters))
		return cli_usage("stat", "-A, -L, -r and --counters show a run: add --run RUN");
	if (opt.run >= 0 && (opt.by || opt.sort || opt.time || opt.cpu >= 0))
		return cli_usage("stat", "--by, --sort, --time and --cpu are about events, not --run");
	if (opt.verdicts && (opt.time || opt.cpu >= 0))
		return cli_usage("stat", "--verdicts are about the whole recording, not --time or --cpu");
	cfg->by = (enum stat_by)by;
	cfg->sort = opt.sort;
	cfg->cpu = opt.cpu;
	cfg->limit = opt.limit ? opt.limit : -1;
	return check_fail_if(opt.fail_if);
}

static int run(const char *path, struct stat_config *cfg)
{
	TAPE_CLEANUP(tape_closep_tape) struct tape *t = NULL;
	struct tape_range range = TAPE_RANGE_ALL;
	struct tape_err err = { 0 };
	int rc = cli_open_source(path, TAPE_READ, &t, &err);

	if (rc == 0 && opt.cache)
		rc = cli_find_cache(t, opt.cache, &cfg->cache, &err);
	if (rc == 0 && opt.time)
		rc = cli_parse_span(t, opt.time, &range, &err);
	if (rc == 0) {
		cfg->begin_ns = range.ts_begin;
		cfg->end_ns = range.ts_end;
		rc = show(t, cfg, &err);
	}
	return rc < 0 ? cli_fail("stat", rc, &err) : rc;
}

static int run_stat(int argc, const char **argv);

extern const struct cli_verb cli_verb_stat;
const struct cli_verb cli_verb_stat = { "stat", "TAPE [OPTION...]",
					"rates, shares and verdicts of a tape or a run", run_stat,
					options };

static int run_stat(int argc, const char **argv)
{
	struct stat_config cfg = STAT_CONFIG_ALL;
	const char *path;
	poptContext con;
	int rc;

	opt.cpu = -1;
	opt.run = -1;
	opt.limit = 20;
	con = cli_parse(&cli_verb_stat, argc, argv, &rc);
	if (!con)
		return rc;
	path = poptGetArg(con);
	if (!path || poptPeekArg(con))
		rc = cli_usage("stat", "one TAPE expected; see slabtape stat --help");
	else
		rc = check_options(&cfg);
	if (rc == 0)
		rc = run(path, &cfg);
	poptFreeContext(con);
	return rc;
}
