/* SPDX-License-Identifier: MIT */
/*
 * event_agg: the table `event` with equal rows merged, counted and summed over columns.
 *
 *	SELECT cpu, sum(events), sum(bytes) FROM event_agg GROUP BY cpu;
 *	SELECT bucket, sum(events) FROM event_agg(1000000) WHERE op = 'alloc' GROUP BY bucket;
 *
 * The columns that a statement names are the key; rows that agree in them become one row with
 * their number (`events`), their bytes and their first and last time.  Because these add up, the
 * statement's own GROUP BY, joins and conditions mean what they mean on `event`.  seq and ts can
 * only be compared, they are never part of the key.
 */
#include <string.h>

#include "store/vtab.h"
#include "store/vtab_common.h"
#include "store/vtab_group.h"
#include "store/vtab_rows.h"

/* The parameters come first: table-valued function arguments are the hidden columns in order. */
enum { P_BUCKET_NS, P_TAPE, P_MAX };
/* After P_MAX the columns of `event`, then: */
enum { M_BUCKET = EV_MAX, M_EVENTS, M_BYTES, M_TS_FIRST, M_TS_LAST, M_MAX };
#define BIT(column) (UINT64_C(1) << (column))

static const struct vtab_column columns[P_MAX + M_MAX] = {
	[P_BUCKET_NS] = { "bucket_ns", "HIDDEN", VTAB_PARAM, 1, "argument 1: width of a bucket" },
	[P_TAPE] = { "tape", "HIDDEN", VTAB_PARAM, 1,
		     "argument 2: schema name of an attached tape; default main" },
	[P_MAX + EV_SEQ] = { "seq", "INTEGER HIDDEN", VTAB_RANGE, VTAB_UNIQUE, "only compared" },
	[P_MAX + EV_TS] = { "ts", "INTEGER HIDDEN", VTAB_RANGE, VTAB_UNIQUE, "only compared" },
	[P_MAX + EV_CPU] = { "cpu", "INTEGER", VTAB_SET, 0.2, "key" },
	[P_MAX + EV_NODE] = { "node", "INTEGER", VTAB_SET, 0.5, "key: node of the CPU" },
	[P_MAX + EV_OP] = { "op", "TEXT", VTAB_OP, 0.3, "key" },
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

struct agg_cursor {
	sqlite3_vtab_cursor base;
	struct vtab_filter filter; /* parameters dropped: columns as in `event` */
	struct vtab_source *source;
	uint32_t *sel;
	int64_t bucket_ns;	  /* 0: none */
	int8_t key_of[M_MAX];	  /* position among the keys, -1 none */
	int8_t measure_of[M_MAX]; /* position among the measures, -1 none */
	struct group_by *groups;
	size_t at;
};

static int agg_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
		       sqlite3_vtab **ret_vtab, char **ret_message)
{
	(void)aux;
	(void)argc;
	(void)argv;
	(void)ret_message;
	return vtab_connect(db, &vtab_event_agg_table, NULL, ret_vtab);
}

static int agg_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	return vtab_plan_function(((struct vtab *)base)->table, info);
}

static int agg_open(sqlite3_vtab *base, sqlite3_vtab_cursor **ret_cursor)
{
	struct agg_cursor *c = sqlite3_malloc(sizeof(*c));

	(void)base;
	if (!c)
		return SQLITE_NOMEM;
	memset(c, 0, sizeof(*c));
	c->sel = sqlite3_malloc(TAPE_CHUNK_EVENTS * sizeof(*c->sel));
	if (!c->sel) {
		sqlite3_free(c);
		return SQLITE_NOMEM;
	}
	*ret_cursor = &c->base;
	return SQLITE_OK;
}

static int agg_close(sqlite3_vtab_cursor *base)
{
	struct agg_cursor *c = (struct agg_cursor *)base;

	group_destroy(c->groups);
	vtab_source_close(c->source);
	vtab_filter_fini(&c->filter);
	sqlite3_free(c->sel);
	sqlite3_free(c);
	return SQLITE_OK;
}

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

/* Times never decrease, so a division is needed only where a bucket ends. */
static void round_down(int64_t *ts, uint32_t n, int64_t width)
{
	int64_t begin = 0, end = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (ts[i] >= end) {
			begin = ts[i] - ts[i] % width;
			end = begin > INT64_MAX - width ? INT64_MAX : begin + width;
		}
		ts[i] = begin;
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

		if (m < 0)
			continue;
		if (column == M_EVENTS) {
			group_count(c->groups, (unsigned int)m);
			continue;
		}
		load_values(c->source, b, source[column], sel, first, n, values);
		group_fold(c->groups, (unsigned int)m, values);
	}
}

/* Group the rows that pass of one decoded chunk.  Returns an SQLite code. */
static int take_batch(struct agg_cursor *c, const struct tape_batch *b, char **ret_message)
{
	int64_t *values = group_values(c->groups);
	uint32_t first;
	bool listed, too_many;
	uint32_t n = vtab_rows_select(&c->filter, b, c->sel, &first, &listed);
	const uint32_t *sel = listed ? c->sel : NULL;

	if (!n)
		return SQLITE_OK;
	group_begin(c->groups, n);
	for (int column = 0; column <= M_BUCKET; column++) {
		if (c->key_of[column] < 0)
			continue;
		load_values(c->source, b, column == M_BUCKET ? EV_TS : column, sel, first, n,
			    values);
		if (column == M_BUCKET)
			round_down(values, n, c->bucket_ns);
		group_refine(c->groups, values);
	}
	measure(c, b, sel, first, n);
	if (group_end(c->groups, &too_many))
		return SQLITE_OK;
	if (!too_many)
		return SQLITE_NOMEM;
	*ret_message = sqlite3_mprintf("slabtape: event_agg: more than %u groups; name fewer "
				       "columns or use the table event", GROUPS_MAX);
	return SQLITE_TOOBIG;
}

static int run(struct agg_cursor *c, char **ret_message)
{
	uint32_t decode = vtab_rows_columns(&c->filter);
	int rc = vtab_rows_prepare(&c->filter, c->source);

	if (c->key_of[M_BUCKET] >= 0 || c->measure_of[M_TS_FIRST] >= 0 ||
	    c->measure_of[M_TS_LAST] >= 0)
		decode |= 1u << TAPE_COL_TS;
	if (c->measure_of[M_BYTES] >= 0)
		decode |= 1u << TAPE_COL_SIZE;
	for (size_t i = 0; rc == SQLITE_OK && !c->filter.empty && i < c->source->chunks_nr; i++) {
		struct vtab_page *page;

		if (!vtab_rows_possible(&c->filter, &c->source->chunks[i]))
			continue;
		rc = vtab_source_page(c->source, i, decode, &page, ret_message);
		if (rc != SQLITE_OK)
			break;
		rc = take_batch(c, page->batch, ret_message);
		vtab_page_put(page);
	}
	return rc;
}

/* ---- keys, measures, parameters ---- */

static int make_groups(struct agg_cursor *c)
{
	static const enum group_fold fold_of[M_MAX] = {
		[M_EVENTS] = GROUP_SUM, [M_BYTES] = GROUP_SUM,
		[M_TS_FIRST] = GROUP_LEAST, [M_TS_LAST] = GROUP_MOST };
	enum group_fold folds[M_MAX];
	unsigned int keys = 0, measures = 0;

	for (int column = 0; column < M_MAX; column++) {
		bool used = c->filter.used & BIT(column);
		bool is_key = column <= M_BUCKET && column != EV_SEQ && column != EV_TS;

		if (column == M_BUCKET && !c->bucket_ns)
			used = false;
		c->key_of[column] = used && is_key ? (int8_t)keys++ : -1;
		c->measure_of[column] = -1;
		if (used && column > M_BUCKET) {
			folds[measures] = fold_of[column];
			c->measure_of[column] = (int8_t)measures++;
		}
	}
	if (keys > GROUP_KEYS_MAX)
		return SQLITE_TOOBIG;
	group_destroy(c->groups);
	c->groups = group_create(keys, measures, folds);
	return c->groups ? SQLITE_OK : SQLITE_NOMEM;
}

static int read_bucket(struct agg_cursor *c, char **ret_message)
{
	sqlite3_value *v = c->filter.param[P_BUCKET_NS];

	c->bucket_ns = 0;
	if (!v || sqlite3_value_type(v) == SQLITE_NULL)
		return SQLITE_OK;
	c->bucket_ns = sqlite3_value_int64(v);
	if (sqlite3_value_numeric_type(v) == SQLITE_INTEGER && c->bucket_ns > 0)
		return SQLITE_OK;
	*ret_message = sqlite3_mprintf("slabtape: bucket_ns is a width in ns, 1 or more, not '%s'",
				       sqlite3_value_text(v));
	return SQLITE_ERROR;
}

static int agg_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_text, int argc,
		      sqlite3_value **argv)
{
	struct agg_cursor *c = (struct agg_cursor *)base;
	struct vtab *v = (struct vtab *)base->pVtab;
	char *message = NULL;
	int rc = vtab_filter_read(&c->filter, v->table, idx_num, idx_text, argc, argv);

	if (rc == SQLITE_OK)
		rc = read_bucket(c, &message);
	if (rc == SQLITE_OK)
		rc = vtab_function_source(v->db, c->filter.param[P_TAPE], &c->source, &message);
	if (rc != SQLITE_OK)
		return vtab_fail(base->pVtab, rc, message);
	vtab_filter_drop(&c->filter, P_MAX);
	c->at = 0;
	rc = make_groups(c);
	if (rc == SQLITE_TOOBIG)
		message = sqlite3_mprintf("slabtape: event_agg: more than %d columns as a key",
					  GROUP_KEYS_MAX);
	if (rc == SQLITE_OK)
		rc = run(c, &message);
	return rc == SQLITE_OK ? rc : vtab_fail(base->pVtab, rc, message);
}

/* ---- the result ---- */

static int agg_next(sqlite3_vtab_cursor *base)
{
	((struct agg_cursor *)base)->at++;
	return SQLITE_OK;
}

static int agg_eof(sqlite3_vtab_cursor *base)
{
	const struct agg_cursor *c = (const struct agg_cursor *)base;

	return c->at >= group_nr(c->groups);
}

static bool has_null(int column)
{
	return column == EV_CACHE || column == EV_OBJECT || column == EV_NODE || column == EV_SLOT;
}

static void key_result(sqlite3_context *ctx, int column, int64_t value)
{
	if (column == EV_OP)
		sqlite3_result_text(ctx, tape_op_name((uint8_t)value), -1, SQLITE_STATIC);
	else if (column == EV_CTX && value)
		sqlite3_result_text(ctx, tape_ctx_name((uint8_t)value), -1, SQLITE_STATIC);
	else if (column != EV_CTX && !(has_null(column) && value == -1))
		sqlite3_result_int64(ctx, value);
}

static int agg_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
	const struct agg_cursor *c = (const struct agg_cursor *)base;

	column -= P_MAX;
	if (column < 0) {
		if (column == P_BUCKET_NS - P_MAX && c->bucket_ns)
			sqlite3_result_int64(ctx, c->bucket_ns);
		else if (column == P_TAPE - P_MAX)
			sqlite3_result_text(ctx, c->source->tape.schema, -1, SQLITE_TRANSIENT);
		return SQLITE_OK;
	}
	if (column == EV_SEQ || column == EV_TS)
		return vtab_fail(base->pVtab, SQLITE_ERROR,
				 sqlite3_mprintf("slabtape: event_agg: %s can only be compared "
						 "with <, <=, =, >=, > and a value; bucket, "
						 "ts_first and ts_last can be read",
						 column == EV_SEQ ? "seq" : "ts"));
	if (c->key_of[column] >= 0)
		key_result(ctx, column, group_key(c->groups, c->at,
						  (unsigned int)c->key_of[column]));
	else if (c->measure_of[column] >= 0)
		sqlite3_result_int64(ctx, group_measure(c->groups, c->at,
							(unsigned int)c->measure_of[column]));
	return SQLITE_OK;
}

static int agg_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret_rowid)
{
	*ret_rowid = (sqlite3_int64)((struct agg_cursor *)base)->at;
	return SQLITE_OK;
}

const sqlite3_module vtab_event_agg_module = {
	.iVersion = 1,
	.xConnect = agg_connect,
	.xBestIndex = agg_best_index,
	.xDisconnect = vtab_disconnect,
	.xOpen = agg_open,
	.xClose = agg_close,
	.xFilter = agg_filter,
	.xNext = agg_next,
	.xEof = agg_eof,
	.xColumn = agg_column,
	.xRowid = agg_rowid,
};
