/* SPDX-License-Identifier: MIT */
/*
 * event_agg: the table `event` with equal rows merged, counted and summed over columns.
 *
 *	SELECT cpu, sum(events), sum(bytes) FROM event_agg GROUP BY cpu;
 *	SELECT bucket, sum(events) FROM event_agg(1000000) WHERE op = 'alloc' GROUP BY bucket;
 *
 * seq and ts can only be compared (store/vtab_agg.h says why).
 */
#include <string.h>

#include "store/vtab.h"
#include "store/vtab_agg.h"
#include "store/vtab_rows.h"

/* After the columns of `event`: */
enum { M_BUCKET = EV_MAX, M_EVENTS, M_BYTES, M_TS_FIRST, M_TS_LAST, M_MAX };
#define BIT(column) (UINT64_C(1) << (column))
#define P_MAX AGG_PARAMS

static const struct vtab_column columns[P_MAX + M_MAX] = {
	[AGG_BUCKET_NS] = { "bucket_ns", "HIDDEN", VTAB_PARAM, 1, "argument 1: width of a bucket" },
	[AGG_TAPE] = { "tape", "HIDDEN", VTAB_PARAM, 1,
		     "argument 2: schema name of an attached tape; default main" },
	[P_MAX + EV_SEQ] = { "seq", "INTEGER HIDDEN", VTAB_RANGE, VTAB_UNIQUE, "only compared" },
	[P_MAX + EV_TS] = { "ts", "INTEGER HIDDEN", VTAB_RANGE, VTAB_UNIQUE, "only compared" },
	[P_MAX + EV_CPU] = { "cpu", "INTEGER", VTAB_SET, 0.2, "key" },
	[P_MAX + EV_NODE] = { "node", "INTEGER", VTAB_SET, 0.5, "key: node of the CPU" },
	[P_MAX + EV_OP] = { "op", "TEXT", VTAB_NAME, 0.3, "key", tape_op_parse },
	[P_MAX + EV_CACHE] = { "cache", "INTEGER", VTAB_SET, 0.05, "key" },
	[P_MAX + EV_OBJECT] = { "object", "INTEGER HIDDEN", VTAB_RANGE, 0.001, "key" },
	[P_MAX + EV_SIZE] = { "size", "INTEGER", VTAB_RANGE, 0.05, "key: requested bytes" },
	[P_MAX + EV_NODE_REQ] = { "node_req", "INTEGER", VTAB_RANGE, 0.3, "key" },
	[P_MAX + EV_MEM_NODE] = { "mem_node", "INTEGER", VTAB_RANGE, 0.5, "key" },
	[P_MAX + EV_SITE] = { "site", "INTEGER", VTAB_RANGE, 0.02, "key" },
	[P_MAX + EV_TID] = { "tid", "INTEGER", VTAB_RANGE, 0.05, "key" },
	[P_MAX + EV_GFP] = { "gfp", "INTEGER", VTAB_NONE, 1, "key" },
	[P_MAX + EV_CTX] = { "ctx", "TEXT", VTAB_NONE, 1, "key" },
	[P_MAX + EV_BULK] = { "bulk", "INTEGER HIDDEN", VTAB_RANGE, 0.001, "key" },
	[P_MAX + EV_ARG] = { "arg", "INTEGER HIDDEN", VTAB_NONE, 1, "key" },
	[P_MAX + EV_FLAGS] = { "flags", "INTEGER", VTAB_NONE, 1, "key" },
	[P_MAX + EV_ADDRESS] = { "address", "INTEGER HIDDEN", VTAB_RANGE, 0.001, "key" },
	[P_MAX + EV_SLOT] = { "slot", "INTEGER HIDDEN", VTAB_NONE, 1, "key" },
	[P_MAX + EV_TS_LO] = { "ts_lo", "INTEGER HIDDEN", VTAB_NONE, 1, "key" },
	[P_MAX + EV_TS_HI] = { "ts_hi", "INTEGER HIDDEN", VTAB_NONE, 1, "key" },
	[P_MAX + M_BUCKET] = { "bucket", "INTEGER", VTAB_NONE, 1,
			       "key: ts rounded down to bucket_ns; NULL without bucket_ns" },
	[P_MAX + M_EVENTS] = { "events", "INTEGER", VTAB_NONE, 1, "number of events" },
	[P_MAX + M_BYTES] = { "bytes", "INTEGER", VTAB_NONE, 1, "sum of size" },
	[P_MAX + M_TS_FIRST] = { "ts_first", "INTEGER", VTAB_NONE, 1, "least ts, ns" },
	[P_MAX + M_TS_LAST] = { "ts_last", "INTEGER", VTAB_NONE, 1, "greatest ts, ns" },
};

const struct vtab_table vtab_event_agg_table = {
	.name = "event_agg",
	.columns = columns,
	.nr = P_MAX + M_MAX,
	.order_major = -1,
	.order_minor = -1,
};

/* ---- one pass over the tape ---- */

#define LOAD_CASE(column, array, convert)                    \
	case column:                                         \
		for (uint32_t i = 0; i < n; i++) {           \
			uint32_t row = sel ? sel[i] : first + i; \
			values[i] = convert(b->array[row]);  \
		}                                            \
		break
#define AS_IS(v) ((int64_t)(v))
#define OR_NULL(v, none) ((v) == (none) ? -1 : (int64_t)(v))
#define CACHE(v) OR_NULL(v, TAPE_NO_CACHE)
#define SLOT(v) OR_NULL(v, TAPE_NO_SLOT)
#define NODE(v) ((int64_t)s->cpu_node[v])

/* The array itself when it has the right type and all rows from @first on are wanted. */
static const int64_t *direct_values(const struct tape_batch *b, int column, const uint32_t *sel,
				    uint32_t first)
{
	if (sel)
		return NULL;
	switch (column) {
	case EV_TS:
		return (const int64_t *)b->ts + first;
	case EV_SIZE:
		return (const int64_t *)b->size + first;
	case EV_ARG:
		return b->arg + first;
	default:
		return NULL;
	}
}

/* Column @column of the selected rows as numbers; NULL in SQL is -1 where a column has it. */
static void load_values(const struct vtab_source *s, const struct tape_batch *b, int column,
			const uint32_t *sel, uint32_t first, uint32_t n, int64_t *values)
{
	switch (column) {
		LOAD_CASE(EV_TS, ts, AS_IS);
		LOAD_CASE(EV_CPU, cpu, AS_IS);
		LOAD_CASE(EV_NODE, cpu, NODE);
		LOAD_CASE(EV_OP, op, AS_IS);
		LOAD_CASE(EV_CACHE, cache, CACHE);
		LOAD_CASE(EV_OBJECT, object, AS_IS);
		LOAD_CASE(EV_SIZE, size, AS_IS);
		LOAD_CASE(EV_NODE_REQ, node_req, AS_IS);
		LOAD_CASE(EV_MEM_NODE, mem_node, AS_IS);
		LOAD_CASE(EV_SITE, site, AS_IS);
		LOAD_CASE(EV_TID, tid, AS_IS);
		LOAD_CASE(EV_GFP, gfp, AS_IS);
		LOAD_CASE(EV_CTX, ctx, AS_IS);
		LOAD_CASE(EV_BULK, bulk, AS_IS);
		LOAD_CASE(EV_ARG, arg, AS_IS);
		LOAD_CASE(EV_FLAGS, flags, AS_IS);
		LOAD_CASE(EV_ADDRESS, address, AS_IS);
		LOAD_CASE(EV_SLOT, slot, SLOT);
		LOAD_CASE(EV_TS_LO, ts_lo, AS_IS);
		LOAD_CASE(EV_TS_HI, ts_hi, AS_IS);
	default:
		break;
	}
}

static void measure(struct agg_cursor *c, const struct tape_batch *b, const uint32_t *sel,
		    uint32_t first, uint32_t n)
{
	static const int8_t source[M_MAX] = { [M_BYTES] = EV_SIZE, [M_TS_FIRST] = EV_TS,
					      [M_TS_LAST] = EV_TS };
	int64_t *values = group_values(c->groups);

	for (int column = M_EVENTS; column < M_MAX; column++) {
		int m = c->measure_of[column];
		const int64_t *from;

		if (m < 0)
			continue;
		if (column == M_EVENTS) {
			group_count(c->groups, (unsigned int)m);
			continue;
		}
		from = direct_values(b, source[column], sel, first);
		if (!from) {
			load_values(c->source, b, source[column], sel, first, n, values);
			from = values;
		}
		group_fold(c->groups, (unsigned int)m, from);
	}
}

/* Group the rows of one decoded chunk that pass.  Returns an SQLite code. */
static int take_batch(struct agg_cursor *c, const struct tape_batch *b, uint32_t *scratch,
		      char **ret_message)
{
	int64_t *values = group_values(c->groups);
	uint32_t first;
	bool listed;
	uint32_t n = vtab_rows_select(&c->filter, b, scratch, &first, &listed);
	const uint32_t *sel = listed ? scratch : NULL;

	if (!n)
		return SQLITE_OK;
	group_begin(c->groups, n);
	for (int column = 0; column <= M_BUCKET; column++) {
		if (c->key_of[column] < 0)
			continue;
		load_values(c->source, b, column == M_BUCKET ? EV_TS : column, sel, first, n,
			    values);
		if (column == M_BUCKET)
			agg_round_down(values, n, c->bucket_ns);
		group_refine(c->groups, values);
	}
	measure(c, b, sel, first, n);
	return agg_end_batch(c, ret_message);
}

static uint32_t columns_needed(const struct agg_cursor *c)
{
	uint32_t decode = vtab_rows_columns(&c->filter);

	if (c->key_of[M_BUCKET] >= 0 || c->measure_of[M_TS_FIRST] >= 0 ||
	    c->measure_of[M_TS_LAST] >= 0)
		decode |= 1u << TAPE_COL_TS;
	if (c->measure_of[M_BYTES] >= 0)
		decode |= 1u << TAPE_COL_SIZE;
	return decode;
}

static int event_run(struct agg_cursor *c, char **ret_message)
{
	uint32_t *scratch = sqlite3_malloc(TAPE_CHUNK_EVENTS * sizeof(*scratch));
	uint32_t decode = columns_needed(c);
	int rc = scratch ? vtab_rows_prepare(&c->filter, c->source) : SQLITE_NOMEM;

	for (size_t i = 0; rc == SQLITE_OK && i < c->source->chunks_nr; i++) {
		struct vtab_page *page;

		if (!vtab_rows_possible(&c->filter, &c->source->chunks[i]))
			continue;
		rc = vtab_source_page(c->source, i, decode, &page, ret_message);
		if (rc != SQLITE_OK)
			break;
		rc = take_batch(c, page->batch, scratch, ret_message);
		vtab_page_put(page);
	}
	sqlite3_free(scratch);
	return rc;
}

static bool has_null(int column)
{
	return column == EV_CACHE || column == EV_OBJECT || column == EV_NODE || column == EV_SLOT;
}

static void event_result(sqlite3_context *ctx, int column, int64_t value)
{
	if (column == EV_OP)
		sqlite3_result_text(ctx, tape_op_name((uint8_t)value), -1, SQLITE_STATIC);
	else if (column == EV_CTX && value)
		sqlite3_result_text(ctx, tape_ctx_name((uint8_t)value), -1, SQLITE_STATIC);
	else if (column != EV_CTX && !(has_null(column) && value == -1))
		sqlite3_result_int64(ctx, value);
}

static const enum group_fold fold[M_MAX] = {
	[M_EVENTS] = GROUP_SUM,
	[M_BYTES] = GROUP_SUM,
	[M_TS_FIRST] = GROUP_LEAST,
	[M_TS_LAST] = GROUP_MOST,
};

static const struct agg_kind kind = {
	.table = &vtab_event_agg_table,
	.bucket = M_BUCKET,
	.nr = M_MAX,
	.compare_only = BIT(EV_SEQ) | BIT(EV_TS),
	.fold = fold,
	.run = event_run,
	.result = event_result,
};

static int event_agg_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
			     sqlite3_vtab **ret_vtab, char **ret_message)
{
	(void)aux;
	(void)argc;
	(void)argv;
	(void)ret_message;
	return agg_connect(db, &kind, ret_vtab);
}

static int event_agg_open(sqlite3_vtab *base, sqlite3_vtab_cursor **ret_cursor)
{
	(void)base;
	return agg_open(&kind, ret_cursor);
}

const sqlite3_module vtab_event_agg_module = {
	AGG_MODULE_METHODS,
	.xConnect = event_agg_connect,
	.xOpen = event_agg_open,
};
