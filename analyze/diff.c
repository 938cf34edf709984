/* SPDX-License-Identifier: MIT */
#include "analyze/diff.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/ask.h"
#include "analyze/queries.h"
#include "analyze/stat.h"
#include "base/cleanup.h"
#include "store/tape.h"

/* Arguments without the seed; equal ones make repeats of one run. */
#define ARGS(r) "trim(replace(replace(replace(coalesce(" r ".args, ''), '--seed=' || " r ".seed, '')," \
	" '--seed ' || " r ".seed, ''), '  ', ' '))"
#define KNOBS(r) "(SELECT group_concat(k.cache || '.' || k.knob || '=' || k.value) FROM (SELECT * FROM" \
	" run_knob WHERE run = " r ".run ORDER BY cache, knob) k)"

static const char run_sql[] =
	"WITH repeats AS (SELECT r.run FROM run x JOIN run r ON r.variant = x.variant AND r.mode = x.mode"
	" AND r.cpus = x.cpus AND r.nodes = x.nodes AND " ARGS("r") " = " ARGS("x")
	" AND " KNOBS("r") " IS " KNOBS("x") " WHERE x.run = :run)\n"
	"SELECT c.name AS cache, n.name AS counter, sum(n.value) FILTER (WHERE n.run = :run) AS value,"
	" min(n.value) AS lo, max(n.value) AS hi FROM counter n LEFT JOIN cache c USING(cache)"
	" WHERE n.cpu IS NULL AND n.run IN repeats GROUP BY n.cache, n.name ORDER BY n.cache, n.rowid";

static int load_run(struct tape *t, int64_t run, json_t **ret_rows, struct tape_err *reterr)
{
	const struct analyze_bind binds[] = {
		{ .name = "run", .kind = ANALYZE_INT, .number = run },
		{ .name = NULL },
	};
	int rc = analyze_ask(tape_db(t), run_sql, binds, ret_rows, reterr);

	if (rc < 0 || json_array_size(*ret_rows))
		return rc;
	json_decref(*ret_rows);
	*ret_rows = NULL;
	return tape_err_set(reterr, -TAPE_E_USAGE, "%s: run %lld: no such run with counters; slabtape "
			    "info lists them", tape_path(t), (long long)run);
}

/* The table by cache as rows of (cache, counter, value). */
static int load_tape(struct tape *t, json_t **ret_rows, struct tape_err *reterr)
{
	static const char *const counters[] = { "hit", "free", "bytes", "pingpong", "live" };
	const struct stat_config cfg = STAT_CONFIG_ALL;
	json_t *table, *row, *rows = json_array();
	size_t i;
	int rc = stat_table(t, &cfg, &table, reterr);

	if (rc < 0) {
		json_decref(rows);
		return rc;
	}
	json_array_foreach(table, i, row)
		for (size_t k = 0; k < sizeof(counters) / sizeof(counters[0]); k++) {
			json_int_t n = analyze_int(row, counters[k]);

			json_array_append_new(rows, json_pack("{s:s, s:s, s:I, s:I, s:I}", "cache",
				analyze_text(row, "name"), "counter", counters[k], "value", n, "lo", n,
				"hi", n));
		}
	json_decref(table);
	*ret_rows = rows;
	return 0;
}

/* ---- side by side ---- */

static json_t *key_of(const json_t *row)
{
	return json_sprintf("%s\n%s", analyze_text(row, "cache"), analyze_text(row, "counter"));
}

/* What is missing on one side is 0 there. */
static void add(json_t *rows, const json_t *named, const json_t *a, const json_t *b)
{
	json_int_t va = analyze_int(a, "value"), vb = analyze_int(b, "value");
	json_int_t alo = analyze_int(a, "lo"), ahi = analyze_int(a, "hi");
	json_int_t blo = analyze_int(b, "lo"), bhi = analyze_int(b, "hi");
	json_t *row;

	if (va == vb && alo == blo && ahi == bhi)
		return;
	row = json_pack("{s:O, s:O, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:b}", "cache",
			json_object_get(named, "cache"), "counter", json_object_get(named, "counter"), "a",
			va, "b", vb, "delta", vb - va, "change",
			va ? json_real(round(1e4 * (double)(vb - va) / (double)va) / 1e4) : json_null(),
			"a_lo", alo, "a_hi", ahi, "b_lo", blo, "b_hi", bhi, "distinct", ahi < blo || bhi < alo);
	json_array_append_new(rows, row);
}

static double weight(const json_t *row)
{
	double both = fabs(analyze_real(row, "a")) + fabs(analyze_real(row, "b"));
	double w = both > 0 ? fabs(analyze_real(row, "delta")) / sqrt(both) : 0;

	return json_is_true(json_object_get(row, "distinct")) ? w + 1e12 : w;
}

static int by_weight(const void *a, const void *b)
{
	double wa = weight(*(json_t *const *)a), wb = weight(*(json_t *const *)b);

	return wa < wb ? 1 : wa > wb ? -1 : 0;
}

static json_t *ranked(json_t *rows)
{
	size_t nr = json_array_size(rows);
	json_t **order = calloc(nr + 1, sizeof(json_t *)), *sorted = json_array();

	for (size_t i = 0; order && i < nr; i++)
		order[i] = json_array_get(rows, i);
	if (order)
		qsort(order, nr, sizeof(json_t *), by_weight);
	for (size_t i = 0; order && i < nr; i++)
		json_array_append(sorted, order[i]);
	free(order);
	json_decref(rows);
	return sorted;
}

/* Takes both references. */
static json_t *side_by_side(json_t *a, json_t *b)
{
	json_t *of_b = json_object(), *rows = json_array(), *row, *key;
	const char *name;
	size_t i;

	json_array_foreach(b, i, row) {
		key = key_of(row);
		json_object_set(of_b, json_string_value(key), row);
		json_decref(key);
	}
	json_array_foreach(a, i, row) {
		key = key_of(row);
		add(rows, row, row, json_object_get(of_b, json_string_value(key)));
		json_object_del(of_b, json_string_value(key));
		json_decref(key);
	}
	json_object_foreach(of_b, name, row)
		add(rows, row, NULL, row);
	json_decref(of_b);
	json_decref(a);
	json_decref(b);
	return ranked(rows);
}

int diff_tapes(struct tape *a, struct tape *b, json_t **ret_rows, struct tape_err *reterr)
{
	json_t *rows_a, *rows_b;
	int rc = load_tape(a, &rows_a, reterr);

	if (rc < 0)
		return rc;
	rc = load_tape(b, &rows_b, reterr);
	if (rc < 0)
		json_decref(rows_a);
	else
		*ret_rows = side_by_side(rows_a, rows_b);
	return rc;
}

int diff_runs(struct tape *a, int64_t run_a, struct tape *b, int64_t run_b, json_t **ret_rows,
	      struct tape_err *reterr)
{
	json_t *rows_a, *rows_b;
	int rc = load_run(a, run_a, &rows_a, reterr);

	if (rc < 0)
		return rc;
	rc = load_run(b, run_b, &rows_b, reterr);
	if (rc < 0)
		json_decref(rows_a);
	else
		*ret_rows = side_by_side(rows_a, rows_b);
	return rc;
}

int diff_first(struct tape *t, int64_t run_a, int64_t run_b, json_t **ret_rows,
	       struct tape_err *reterr)
{
	const struct analyze_bind binds[] = {
		{ .name = "a", .kind = ANALYZE_INT, .number = run_a },
		{ .name = "b", .kind = ANALYZE_INT, .number = run_b },
		{ .name = NULL },
	};
	json_t *rows;
	int64_t recorded;
	int rc = analyze_ask(tape_db(t), "SELECT count(DISTINCT run) AS n FROM run_chunk WHERE kind ="
			     " 'transition' AND run IN (:a, :b)", binds, &rows, reterr);

	if (rc < 0)
		return rc;
	recorded = analyze_int(json_array_get(rows, 0), "n");
	json_decref(rows);
	if (recorded != (run_a == run_b ? 1 : 2))
		return tape_err_set(reterr, -TAPE_E_USAGE, "--first: runs %lld and %lld must both have been "
				    "replayed with --record transitions", (long long)run_a,
				    (long long)run_b);
	return analyze_ask(tape_db(t), analyze_query_find("first-divergence")->sql, binds, ret_rows,
			   reterr);
}

int diff_is_distinct(const json_t *rows)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
		if (json_is_true(json_object_get(row, "distinct")))
			return 1;
	return 0;
}
