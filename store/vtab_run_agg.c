/* SPDX-License-Identifier: MIT */
/*
 * transition_agg and refill_agg: the tables `transition` and `refill` with equal rows merged.
 *
 *	SELECT from_state, to_state, sum(transitions) FROM transition_agg WHERE run = 1 GROUP BY 1, 2;
 *	SELECT size, sum(refills) FROM refill_agg WHERE source = 'node_partial' GROUP BY size;
 *	SELECT bucket, sum(transitions) FROM transition_agg(1000000) WHERE to_state = 'full'
 *	 GROUP BY bucket;
 *
 * seq, ts and vts can only be compared (store/vtab_agg.h says why).
 */
#include "store/vtab.h"
#include "store/vtab_agg.h"
#include "store/vtab_run.h"
#include "traces/event.h"

#define BIT(column) (UINT64_C(1) << (column))

/* After the run and the columns of the kind: */
enum { TM_BUCKET = TR_MAX + 1, TM_TRANSITIONS, TM_TS_FIRST, TM_TS_LAST, TM_MAX };
enum { RM_BUCKET = RE_MAX + 1, RM_REFILLS, RM_OBJECTS, RM_LEAST, RM_MOST, RM_MAX };

#define PARAMS                                                                                  \
	[AGG_BUCKET_NS] = { "bucket_ns", "HIDDEN", VTAB_PARAM, 1, "argument 1: width of a bucket", \
			    NULL },                                                              \
	[AGG_TAPE] = { "tape", "HIDDEN", VTAB_PARAM, 1,                                          \
		       "argument 2: schema name of an attached tape; default main", NULL }
#define AT(column) [AGG_PARAMS + 1 + (column)]

static const struct vtab_column transition_columns[AGG_PARAMS + TM_MAX] = {
	PARAMS,
	[AGG_PARAMS] = { "run", "INTEGER", VTAB_RANGE, 0.3, "key", NULL },
	AT(TR_SEQ) = { "seq", "INTEGER HIDDEN", VTAB_RANGE, VTAB_UNIQUE, "only compared", NULL },
	AT(TR_TS) = { "ts", "INTEGER HIDDEN", VTAB_RANGE, VTAB_UNIQUE, "only compared", NULL },
	AT(TR_VTS) = { "vts", "INTEGER HIDDEN", VTAB_RANGE, VTAB_UNIQUE, "only compared", NULL },
	AT(TR_CPU) = { "cpu", "INTEGER", VTAB_SET, 0.2, "key", NULL },
	AT(TR_NODE) = { "node", "INTEGER", VTAB_SET, 0.5, "key: node of the slab", NULL },
	AT(TR_CACHE) = { "cache", "INTEGER", VTAB_SET, 0.05, "key", NULL },
	AT(TR_SLAB) = { "slab", "INTEGER HIDDEN", VTAB_RANGE, 0.001, "key", NULL },
	AT(TR_FROM) = { "from_state", "TEXT", VTAB_NAME, 0.2, "key", run_parse_state },
	AT(TR_TO) = { "to_state", "TEXT", VTAB_NAME, 0.2, "key", run_parse_state },
	AT(TR_INUSE) = { "inuse", "INTEGER", VTAB_RANGE, 0.1, "key: objects in use, after", NULL },
	AT(TR_OBJECTS) = { "objects", "INTEGER", VTAB_RANGE, 0.5, "key: objects of the slab", NULL },
	AT(TR_OP) = { "op", "TEXT", VTAB_NAME, 0.3, "key", tape_op_parse },
	[AGG_PARAMS + TM_BUCKET] = { "bucket", "INTEGER", VTAB_NONE, 1,
				     "key: ts rounded down to bucket_ns; NULL without bucket_ns", NULL },
	[AGG_PARAMS + TM_TRANSITIONS] = { "transitions", "INTEGER", VTAB_NONE, 1,
					  "number of transitions", NULL },
	[AGG_PARAMS + TM_TS_FIRST] = { "ts_first", "INTEGER", VTAB_NONE, 1, "least ts, ns", NULL },
	[AGG_PARAMS + TM_TS_LAST] = { "ts_last", "INTEGER", VTAB_NONE, 1, "greatest ts, ns", NULL },
};

static const struct vtab_column refill_columns[AGG_PARAMS + RM_MAX] = {
	PARAMS,
	[AGG_PARAMS] = { "run", "INTEGER", VTAB_RANGE, 0.3, "key", NULL },
	AT(RE_SEQ) = { "seq", "INTEGER HIDDEN", VTAB_RANGE, VTAB_UNIQUE, "only compared", NULL },
	AT(RE_TS) = { "ts", "INTEGER HIDDEN", VTAB_RANGE, VTAB_UNIQUE, "only compared", NULL },
	AT(RE_VTS) = { "vts", "INTEGER HIDDEN", VTAB_RANGE, VTAB_UNIQUE, "only compared", NULL },
	AT(RE_CPU) = { "cpu", "INTEGER", VTAB_SET, 0.2, "key", NULL },
	AT(RE_CACHE) = { "cache", "INTEGER", VTAB_SET, 0.05, "key", NULL },
	AT(RE_SOURCE) = { "source", "TEXT", VTAB_NAME, 0.2, "key", run_parse_source },
	AT(RE_OBJECTS) = { "size", "INTEGER", VTAB_RANGE, 0.1, "key: objects that one refill got", NULL },
	AT(RE_NODE) = { "node", "INTEGER", VTAB_SET, 0.5, "key: node of the CPU", NULL },
	[AGG_PARAMS + RM_BUCKET] = { "bucket", "INTEGER", VTAB_NONE, 1,
				     "key: ts rounded down to bucket_ns; NULL without bucket_ns", NULL },
	[AGG_PARAMS + RM_REFILLS] = { "refills", "INTEGER", VTAB_NONE, 1, "number of refills", NULL },
	[AGG_PARAMS + RM_OBJECTS] = { "objects", "INTEGER", VTAB_NONE, 1, "sum of size", NULL },
	[AGG_PARAMS + RM_LEAST] = { "least", "INTEGER", VTAB_NONE, 1, "smallest size", NULL },
	[AGG_PARAMS + RM_MOST] = { "most", "INTEGER", VTAB_NONE, 1, "greatest size", NULL },
};

const struct vtab_table vtab_transition_agg_table = {
	"transition_agg", transition_columns, AGG_PARAMS + TM_MAX, -1, -1
};
const struct vtab_table vtab_refill_agg_table = {
	"refill_agg", refill_columns, AGG_PARAMS + RM_MAX, -1, -1
};

/* ---- one pass over the rows ---- */

/* What an aggregate needs beyond struct agg_kind; by enum run_kind. */
static const struct {
	int ts;			  /* SQL column that the bucket rounds down */
	int8_t source[VTAB_COLUMNS_MAX]; /* SQL column behind a measure, 0: the count */
} passes[RUN_KINDS] = {
	[RUN_TRANSITION] = { TR_TS + 1, { [TM_TS_FIRST] = TR_TS + 1, [TM_TS_LAST] = TR_TS + 1 } },
	[RUN_REFILL] = { RE_TS + 1, { [RM_OBJECTS] = RE_OBJECTS + 1, [RM_LEAST] = RE_OBJECTS + 1,
				      [RM_MOST] = RE_OBJECTS + 1 } },
};

static uint64_t columns_needed(const struct agg_cursor *c, enum run_kind kind)
{
	uint64_t used = c->filter.used;

	if (c->key_of[c->kind->bucket] >= 0)
		used |= BIT(passes[kind].ts);
	for (int column = c->kind->bucket + 1; column < c->kind->nr; column++)
		if (c->measure_of[column] >= 0)
			used |= BIT(passes[kind].source[column]);
	return used;
}

static void load_values(const struct run_scan *scan, int column, int64_t *values)
{
	for (uint32_t i = 0; i < scan->nr; i++)
		values[i] = column ? scan->columns[column - 1][scan->sel[i]] : scan->chunk->run;
}

static int take_chunk(struct agg_cursor *c, const struct run_scan *scan, char **ret_message)
{
	const int bucket = c->kind->bucket;
	int64_t *values = group_values(c->groups);

	group_begin(c->groups, scan->nr);
	for (int column = 0; column <= bucket; column++) {
		if (c->key_of[column] < 0)
			continue;
		load_values(scan, column == bucket ? passes[scan->kind].ts : column, values);
		if (column == bucket)
			agg_round_down(values, scan->nr, c->bucket_ns);
		group_refine(c->groups, values);
	}
	for (int column = bucket + 1; column < c->kind->nr; column++) {
		int m = c->measure_of[column], source = passes[scan->kind].source[column];

		if (m >= 0 && !source)
			group_count(c->groups, (unsigned int)m);
		if (m < 0 || !source)
			continue;
		load_values(scan, source, values);
		group_fold(c->groups, (unsigned int)m, values);
	}
	return agg_end_batch(c, ret_message);
}

static int rows_run(struct agg_cursor *c, char **ret_message)
{
	enum run_kind kind = c->kind->table == &vtab_transition_agg_table ? RUN_TRANSITION : RUN_REFILL;
	struct run_scan scan = { 0 };
	int rc = run_scan_open(&scan, c->source, kind, ret_message);

	while (rc == SQLITE_OK) {
		rc = run_scan_next(&scan, c->source, &c->filter, columns_needed(c, kind), ret_message);
		if (rc == SQLITE_ROW)
			rc = take_chunk(c, &scan, ret_message);
	}
	run_scan_close(&scan);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static void transition_result(sqlite3_context *ctx, int column, int64_t value)
{
	if (column < TM_BUCKET)
		run_column_result(ctx, RUN_TRANSITION, column, value);
	else
		sqlite3_result_int64(ctx, value);
}

static void refill_result(sqlite3_context *ctx, int column, int64_t value)
{
	if (column < RM_BUCKET)
		run_column_result(ctx, RUN_REFILL, column, value);
	else
		sqlite3_result_int64(ctx, value);
}

static const enum group_fold transition_fold[TM_MAX] = {
	[TM_TRANSITIONS] = GROUP_SUM,
	[TM_TS_FIRST] = GROUP_LEAST,
	[TM_TS_LAST] = GROUP_MOST,
};
static const enum group_fold refill_fold[RM_MAX] = {
	[RM_REFILLS] = GROUP_SUM,
	[RM_OBJECTS] = GROUP_SUM,
	[RM_LEAST] = GROUP_LEAST,
	[RM_MOST] = GROUP_MOST,
};

static const struct agg_kind transition_kind = {
	.table = &vtab_transition_agg_table,
	.bucket = TM_BUCKET,
	.nr = TM_MAX,
	.compare_only = BIT(TR_SEQ + 1) | BIT(TR_TS + 1) | BIT(TR_VTS + 1),
	.fold = transition_fold,
	.run = rows_run,
	.result = transition_result,
};
static const struct agg_kind refill_kind = {
	.table = &vtab_refill_agg_table,
	.bucket = RM_BUCKET,
	.nr = RM_MAX,
	.compare_only = BIT(RE_SEQ + 1) | BIT(RE_TS + 1) | BIT(RE_VTS + 1),
	.fold = refill_fold,
	.run = rows_run,
	.result = refill_result,
};

/* ---- modules: the auxiliary pointer is the table ---- */

static const struct agg_kind *kind_of(const struct vtab_table *t)
{
	return t == &vtab_transition_agg_table ? &transition_kind : &refill_kind;
}

static int run_agg_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
			   sqlite3_vtab **ret_vtab, char **ret_message)
{
	(void)argc;
	(void)argv;
	(void)ret_message;
	return agg_connect(db, kind_of(*(const struct vtab_table *const *)aux), ret_vtab);
}

static int run_agg_open(sqlite3_vtab *base, sqlite3_vtab_cursor **ret_cursor)
{
	return agg_open(kind_of(((struct vtab *)base)->table), ret_cursor);
}

const sqlite3_module vtab_run_agg_module = {
	AGG_MODULE_METHODS,
	.xConnect = run_agg_connect,
	.xOpen = run_agg_open,
};
