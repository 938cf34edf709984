/* SPDX-License-Identifier: MIT */
/* slabtape info: what a tape holds, in counts. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/ask.h"
#include "base/cleanup.h"
#include "cli/open_source.h"
#include "cli/output.h"
#include "cli/rows.h"
#include "cli/verb.h"
#include "store/tape.h"

static int want_json, want_csv;

static const struct poptOption options[] = {
	{ "json", '\0', POPT_ARG_NONE, &want_json, 0, "as JSON", NULL },
	{ "csv", '\0', POPT_ARG_NONE, &want_csv, 0, "as CSV: section, name, value", NULL },
	POPT_TABLEEND,
};

/* The lists of the report; each is a query on the plain tables. */
static const struct {
	const char *name, *sql;
} lists[] = {
	{ "meta", "SELECT key, value FROM meta ORDER BY key" },
	{ "cpus", "SELECT cpu, node, coalesce(e, 0) AS events FROM cpu LEFT JOIN (SELECT cpu,"
		  " sum(events) AS e FROM chunk_stat GROUP BY cpu) USING(cpu) ORDER BY cpu" },
	{ "caches", "SELECT cache, name, object_size, coalesce(a, 0) AS allocs,"
		    " coalesce(f, 0) AS frees, coalesce(b, 0) AS bytes, coverage FROM cache LEFT JOIN"
		    " (SELECT cache, sum(CASE WHEN op IN ('alloc', 'alloc_bulk', 'sheaf_alloc') THEN"
		    " events END) AS a, sum(CASE WHEN op IN ('free', 'free_rcu', 'free_bulk') THEN"
		    " events END) AS f, sum(bytes) AS b FROM chunk_stat GROUP BY cache) USING(cache)"
		    " ORDER BY allocs + frees DESC, cache" },
	{ "markers", "SELECT seq, ts, cpu, name FROM marker ORDER BY seq" },
	{ "loss", "SELECT cpu, ts_begin, ts_end, events, reason FROM loss ORDER BY ts_begin" },
	{ "runs", "SELECT run, variant, mode, cpus, nodes, seed, started, ops FROM run"
		  " ORDER BY run" },
};
#define LISTS (sizeof(lists) / sizeof(lists[0]))

static json_t *ops_json(const struct tape_totals *n)
{
	json_t *ops = json_object();

	for (int op = 0; op < TAPE_OP_MAX; op++)
		if (n->ops[op])
			json_object_set_new(ops, tape_op_name((uint8_t)op),
					    json_integer((json_int_t)n->ops[op]));
	return ops;
}

static void set_int(json_t *j, const char *key, uint64_t value)
{
	json_object_set_new(j, key, json_integer((json_int_t)value));
}

static json_t *totals_json(const char *path, const struct tape_totals *n)
{
	json_t *j = json_object();
	struct stat st;

	json_object_set_new(j, "tape", json_string(path));
	json_object_set_new(j, "complete", json_boolean(n->complete));
	set_int(j, "events", n->events);
	set_int(j, "objects", n->objects);
	set_int(j, "peak_live", n->peak_live);
	set_int(j, "lost", n->lost);
	set_int(j, "lost_unknown", n->lost_unknown);
	set_int(j, "inferred_allocs", n->inferred_allocs);
	set_int(j, "inferred_frees", n->inferred_frees);
	set_int(j, "orphan_frees", n->orphan_frees);
	set_int(j, "null_frees", n->null_frees);
	set_int(j, "failed_allocs", n->failed_allocs);
	set_int(j, "ts_min", n->ts_min);
	set_int(j, "ts_max", n->ts_max);
	set_int(j, "chunks", n->chunks);
	set_int(j, "bytes_raw", n->bytes_raw);
	set_int(j, "bytes", n->bytes);
	if (!stat(path, &st) && S_ISREG(st.st_mode))
		set_int(j, "file_bytes", (uint64_t)st.st_size);
	json_object_set_new(j, "bytes_per_event",
			    n->events ? json_real((double)n->bytes / (double)n->events) :
					json_null());
	json_object_set_new(j, "ops", ops_json(n));
	return j;
}

static int collect(struct tape *t, const char *path, json_t **ret_report, struct tape_err *reterr)
{
	struct tape_totals n;
	json_t *report;
	int rc = tape_totals_get(t, &n, reterr);

	if (rc < 0)
		return rc;
	report = totals_json(path, &n);
	for (size_t i = 0; rc == 0 && i < LISTS; i++) {
		json_t *rows;

		rc = analyze_ask(tape_db(t), lists[i].sql, NULL, &rows, reterr);
		if (rc == 0)
			json_object_set_new(report, lists[i].name, rows);
	}
	if (rc < 0)
		json_decref(report);
	else
		*ret_report = report;
	return rc;
}

/* ---- text ---- */

static json_int_t get(const json_t *report, const char *key)
{
	return json_integer_value(json_object_get(report, key));
}

static void print_totals(const json_t *r)
{
	double bytes = json_number_value(json_object_get(r, "bytes_per_event"));

	printf("tape       %s (%s)\n", json_string_value(json_object_get(r, "tape")),
	       json_is_true(json_object_get(r, "complete")) ? "complete" :
		       "not complete: a prefix of the recording");
	printf("events     %" JSON_INTEGER_FORMAT " in %" JSON_INTEGER_FORMAT
	       " chunks, %.2f bytes/event (raw %" JSON_INTEGER_FORMAT " bytes)\n",
	       get(r, "events"), get(r, "chunks"), bytes, get(r, "bytes_raw"));
	printf("time       %.9f .. %.9f s\n", (double)get(r, "ts_min") / 1e9,
	       (double)get(r, "ts_max") / 1e9);
	printf("objects    %" JSON_INTEGER_FORMAT ", at most %" JSON_INTEGER_FORMAT " live at once\n",
	       get(r, "objects"), get(r, "peak_live"));
	printf("lost       %" JSON_INTEGER_FORMAT " events", get(r, "lost"));
	if (get(r, "lost_unknown"))
		printf(", and an unknown number in %" JSON_INTEGER_FORMAT " losses (table loss)",
		       get(r, "lost_unknown"));
	putchar('\n');
	printf("inferred   %" JSON_INTEGER_FORMAT " allocs, %" JSON_INTEGER_FORMAT " frees; %"
	       JSON_INTEGER_FORMAT " orphan frees\n", get(r, "inferred_allocs"),
	       get(r, "inferred_frees"), get(r, "orphan_frees"));
	printf("not kept   %" JSON_INTEGER_FORMAT " frees of NULL, %" JSON_INTEGER_FORMAT
	       " failed allocations\n", get(r, "null_frees"), get(r, "failed_allocs"));
}

/* Take caches that no event names off the end of the list (busiest first); how many. */
static size_t drop_idle(json_t *rows)
{
	size_t nr = json_array_size(rows), kept = nr;

	while (kept) {
		const json_t *row = json_array_get(rows, kept - 1);

		if (get(row, "allocs") || get(row, "frees"))
			break;
		json_array_remove(rows, --kept);
	}
	return nr - kept;
}

static int print_text(json_t *report)
{
	json_t *ops = json_object_get(report, "ops"), *value;
	const char *op;
	int rc = 0;

	print_totals(report);
	json_object_foreach(ops, op, value)
		printf("  %-13s %" JSON_INTEGER_FORMAT "\n", op, json_integer_value(value));
	for (size_t i = 0; rc == 0 && i < LISTS; i++) {
		json_t *rows = json_object_get(report, lists[i].name);
		size_t idle = strcmp(lists[i].name, "caches") ? 0 : drop_idle(rows);

		if (json_array_size(rows)) {
			printf("\n%s\n", lists[i].name);
			fflush(stdout);
			rc = rows_print(stdout, OUTPUT_TABLE, rows);
		}
		if (idle)
			printf("%zu more caches without events (--json has them)\n", idle);
	}
	return rc;
}

/* ---- CSV: every number with its section ---- */

static void csv_value(struct output *o, const char *section, const char *name, const json_t *value)
{
	output_text(o, section, strlen(section));
	output_text(o, name, strlen(name));
	if (json_is_integer(value))
		output_int(o, json_integer_value(value));
	else if (json_is_real(value))
		output_real(o, json_real_value(value));
	else if (json_is_boolean(value))
		output_int(o, json_is_true(value));
	else if (json_is_string(value))
		output_text(o, json_string_value(value), json_string_length(value));
	else
		output_null(o);
}

static void csv_rows(struct output *o, const char *section, json_t *rows)
{
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const char *key;
		json_t *value;
		char name[96];

		json_object_foreach(json_array_get(rows, i), key, value) {
			snprintf(name, sizeof(name), "%zu.%s", i, key);
			csv_value(o, section, name, value);
		}
	}
}

static int print_csv(json_t *report)
{
	static const char *const names[] = { "section", "name", "value" };
	struct output *o = output_begin(stdout, OUTPUT_CSV, 3, names);
	const char *key, *op;
	json_t *value, *count;

	json_object_foreach(report, key, value) {
		if (json_is_array(value))
			csv_rows(o, key, value);
		else if (json_is_object(value))
			json_object_foreach(value, op, count)
				csv_value(o, key, op, count);
		else
			csv_value(o, "tape", key, value);
	}
	return output_end(o);
}

static int run(const char *path)
{
	TAPE_CLEANUP(tape_closep_tape) struct tape *t = NULL;
	struct tape_err err = { 0 };
	json_t *report = NULL;
	int rc = cli_open_source(path, TAPE_READ, &t, &err);

	if (rc == 0)
		rc = collect(t, path, &report, &err);
	if (rc < 0)
		return cli_fail("info", rc, &err);
	if (want_json)
		rc = json_dumpf(report, stdout, JSON_INDENT(1)) || putchar('\n') < 0 ? -TAPE_E_IO : 0;
	else
		rc = want_csv ? print_csv(report) : print_text(report);
	json_decref(report);
	return rc < 0 ? cli_fail("info", rc, NULL) : 0;
}

static int run_info(int argc, const char **argv);

extern const struct cli_verb cli_verb_info;
const struct cli_verb cli_verb_info = { "info", "TAPE [--json|--csv]", "what a tape holds",
					run_info, options };

static int run_info(int argc, const char **argv)
{
	int rc;
	poptContext con = cli_parse(&cli_verb_info, argc, argv, &rc);
	const char *path = con ? poptGetArg(con) : NULL;

	if (!con)
		return rc;
	if (!path)
		rc = cli_usage("info", "which tape?");
	else if (poptPeekArg(con))
		rc = cli_usage("info", "one tape only; '%s' is left over", poptPeekArg(con));
	else
		rc = run(path);
	poptFreeContext(con);
	return rc;
}
