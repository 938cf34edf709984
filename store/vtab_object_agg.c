/* SPDX-License-Identifier: MIT */
/*
 * object_agg: the table `object` with equal rows merged, counted and summed over columns.
 *
 *	SELECT alloc_cpu, free_cpu, sum(objects) FROM object_agg WHERE freed = 1 GROUP BY 1, 2;
 *	SELECT lifetime_log2, sum(objects) FROM object_agg GROUP BY 1;
 *
 * Ids, sequence numbers and times can only be compared (store/vtab_agg.h says why).
 */
#include <stdlib.h>

#include "store/vtab.h"
#include "store/vtab_agg.h"
#include "store/vtab_objects.h"

/* After the columns of `object`: */
enum { M_BUCKET = OB_MAX, M_OBJECTS, M_BYTES, M_LIFETIME_NS, M_LIFETIME_MIN, M_LIFETIME_MAX, M_MAX };
#define BIT(column) (UINT64_C(1) << (column))

static const struct vtab_column columns[AGG_PARAMS + M_MAX] = {
	[AGG_BUCKET_NS] = { "bucket_ns", "HIDDEN", VTAB_PARAM, 1, "argument 1: width of a bucket" },
	[AGG_TAPE] = { "tape", "HIDDEN", VTAB_PARAM, 1,
		       "argument 2: schema name of an attached tape; default main" },
	[AGG_PARAMS + OB_OBJECT] = { "object", "INTEGER HIDDEN", VTAB_RANGE, VTAB_UNIQUE,
				     "only compared" },
	[AGG_PARAMS + OB_CACHE] = { "cache", "INTEGER", VTAB_SET, 0.05, "key" },
	[AGG_PARAMS + OB_SIZE] = { "size", "INTEGER", VTAB_RANGE, 0.05, "key: requested bytes" },
	[AGG_PARAMS + OB_ALLOC_SEQ] = { "alloc_seq", "INTEGER HIDDEN", VTAB_RANGE, VTAB_UNIQUE,
					"only compared" },
	[AGG_PARAMS + OB_ALLOC_TS] = { "alloc_ts", "INTEGER HIDDEN", VTAB_RANGE, VTAB_UNIQUE,
				       "only compared" },
	[AGG_PARAMS + OB_ALLOC_CPU] = { "alloc_cpu", "INTEGER", VTAB_SET, 0.2,
					"key; NULL: allocated before the recording" },
	[AGG_PARAMS + OB_ALLOC_SITE] = { "alloc_site", "INTEGER", VTAB_RANGE, 0.02, "key" },
	[AGG_PARAMS + OB_FREE_SEQ] = { "free_seq", "INTEGER HIDDEN", VTAB_RANGE, 1,
				       "only compared" },
	[AGG_PARAMS + OB_FREE_TS] = { "free_ts", "INTEGER HIDDEN", VTAB_RANGE, 1, "only compared" },
	[AGG_PARAMS + OB_FREE_CPU] = { "free_cpu", "INTEGER", VTAB_SET, 0.2, "key; NULL: not freed" },
	[AGG_PARAMS + OB_FREE_SITE] = { "free_site", "INTEGER", VTAB_RANGE, 0.02, "key" },
	[AGG_PARAMS + OB_LIFETIME_NS] = { "life_ns", "INTEGER HIDDEN", VTAB_RANGE, 1,
					  "only compared: ns from alloc to free" },
	[AGG_PARAMS + OB_REMOTE] = { "remote", "INTEGER", VTAB_RANGE, 0.5, "key" },
	[AGG_PARAMS + OB_CROSS_NODE] = { "cross_node", "INTEGER", VTAB_RANGE, 0.5, "key" },
	[AGG_PARAMS + OB_INFERRED] = { "inferred", "INTEGER", VTAB_RANGE, 0.5, "key" },
	[AGG_PARAMS + OB_ALLOC_NODE] = { "alloc_node", "INTEGER", VTAB_SET, 0.5,
					 "key: node of alloc_cpu" },
	[AGG_PARAMS + OB_FREE_NODE] = { "free_node", "INTEGER", VTAB_SET, 0.5,
					"key: node of free_cpu" },
	[AGG_PARAMS + OB_MEM_NODE] = { "mem_node", "INTEGER", VTAB_SET, 0.5,
				       "key: node of the memory; NULL unknown" },
	[AGG_PARAMS + OB_FREED] = { "freed", "INTEGER", VTAB_RANGE, 0.5, "key: 1 freed, 0 alive" },
	[AGG_PARAMS + OB_LIFETIME_LOG2] = { "lifetime_log2", "INTEGER", VTAB_RANGE, 0.1,
		"key: n for lifetimes of 2^n to 2^(n+1) - 1 ns (0: below 2 ns); NULL not freed" },
	[AGG_PARAMS + M_BUCKET] = { "bucket", "INTEGER", VTAB_NONE, 1,
		"key: alloc_ts rounded down to bucket_ns; NULL without bucket_ns" },
	[AGG_PARAMS + M_OBJECTS] = { "objects", "INTEGER", VTAB_NONE, 1, "number of objects" },
	[AGG_PARAMS + M_BYTES] = { "bytes", "INTEGER", VTAB_NONE, 1, "sum of size" },
	[AGG_PARAMS + M_LIFETIME_NS] = { "lifetime_ns", "INTEGER", VTAB_NONE, 1,
					 "sum of the lifetimes of freed objects, ns" },
	[AGG_PARAMS + M_LIFETIME_MIN] = { "lifetime_min", "INTEGER", VTAB_NONE, 1,
					  "shortest of them; NULL none" },
	[AGG_PARAMS + M_LIFETIME_MAX] = { "lifetime_max", "INTEGER", VTAB_NONE, 1,
					  "longest of them; NULL none" },
};

const struct vtab_table vtab_object_agg_table = {
	.name = "object_agg",
	.columns = columns,
	.nr = AGG_PARAMS + M_MAX,
	.order_major = -1,
	.order_minor = -1,
};

struct work {
	struct vtab_objects *block;
	uint32_t sel[VTAB_OBJECTS];
};

/* Values of measure @column; objects without a lifetime or size add nothing. */
static void measure_values(const struct agg_cursor *c, struct work *w, int column, uint32_t n,
			   int64_t *values)
{
	int64_t none = column == M_LIFETIME_MIN ? INT64_MAX : column == M_LIFETIME_MAX ? INT64_MIN : 0;

	vtab_objects_values(c->source, w->block, column == M_BYTES ? OB_SIZE : OB_LIFETIME_NS, w->sel,
			    n, values);
	for (uint32_t i = 0; i < n; i++)
		values[i] = values[i] < 0 ? none : values[i];
}

static int take_block(struct agg_cursor *c, struct work *w, char **ret_message)
{
	int64_t *values = group_values(c->groups);
	uint32_t n = vtab_objects_select(&c->filter, c->source, w->block, w->sel, values);

	if (!n)
		return SQLITE_OK;
	group_begin(c->groups, n);
	for (int column = 0; column <= M_BUCKET; column++) {
		if (c->key_of[column] < 0)
			continue;
		vtab_objects_values(c->source, w->block, column == M_BUCKET ? OB_ALLOC_TS : column,
				    w->sel, n, values);
		if (column == M_BUCKET)
			agg_round_down(values, n, c->bucket_ns);
		group_refine(c->groups, values);
	}
	for (int column = M_OBJECTS; column < M_MAX; column++) {
		if (c->measure_of[column] < 0)
			continue;
		if (column == M_OBJECTS) {
			group_count(c->groups, (unsigned int)c->measure_of[column]);
			continue;
		}
		measure_values(c, w, column, n, values);
		group_fold(c->groups, (unsigned int)c->measure_of[column], values);
	}
	return agg_end_batch(c, ret_message);
}

static uint32_t columns_needed(const struct agg_cursor *c)
{
	uint64_t used = c->filter.used | c->filter.ranged | c->filter.picked;

	if (used & BIT(M_BYTES))
		used |= BIT(OB_SIZE);
	if (used & (BIT(M_LIFETIME_NS) | BIT(M_LIFETIME_MIN) | BIT(M_LIFETIME_MAX)))
		used |= BIT(OB_LIFETIME_NS);
	if (c->key_of[M_BUCKET] >= 0)
		used |= BIT(OB_ALLOC_TS);
	return vtab_objects_columns(used);
}

static int object_run(struct agg_cursor *c, char **ret_message)
{
	struct work *w = malloc(sizeof(*w));
	uint64_t total = vtab_objects_total(c->source), blocks;
	const struct vtab_interval *id = &c->filter.range[OB_OBJECT];
	int rc = SQLITE_OK;

	if (!w)
		return SQLITE_NOMEM;
	w->block = NULL;
	vtab_objects_prepare(&c->filter, c->source);
	blocks = (total + VTAB_OBJECTS - 1) >> STORE_OBJECTS_SHIFT;
	for (uint64_t block = 0; rc == SQLITE_OK && block < blocks; block++) {
		int64_t first = (int64_t)(block << STORE_OBJECTS_SHIFT);

		if (id->lo > first + (int64_t)VTAB_OBJECTS - 1 || id->hi < first)
			continue;
		rc = vtab_objects_load(c->source, block, columns_needed(c), &w->block, ret_message);
		if (rc == SQLITE_OK)
			rc = take_block(c, w, ret_message);
	}
	free(w->block);
	free(w);
	return rc;
}

static void object_result(sqlite3_context *ctx, int column, int64_t value)
{
	(void)column;
	if (value >= 0)
		sqlite3_result_int64(ctx, value);
}

static const enum group_fold fold[M_MAX] = {
	[M_OBJECTS] = GROUP_SUM,
	[M_BYTES] = GROUP_SUM,
	[M_LIFETIME_NS] = GROUP_SUM,
	[M_LIFETIME_MIN] = GROUP_LEAST,
	[M_LIFETIME_MAX] = GROUP_MOST,
};

static const struct agg_kind kind = {
	.table = &vtab_object_agg_table,
	.bucket = M_BUCKET,
	.nr = M_MAX,
	.compare_only = BIT(OB_OBJECT) | BIT(OB_ALLOC_SEQ) | BIT(OB_ALLOC_TS) | BIT(OB_FREE_SEQ) |
			BIT(OB_FREE_TS) | BIT(OB_LIFETIME_NS),
	.fold = fold,
	.run = object_run,
	.result = object_result,
};

static int object_agg_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
			      sqlite3_vtab **ret_vtab, char **ret_message)
{
	(void)aux;
	(void)argc;
	(void)argv;
	(void)ret_message;
	return agg_connect(db, &kind, ret_vtab);
}

static int object_agg_open(sqlite3_vtab *base, sqlite3_vtab_cursor **ret_cursor)
{
	(void)base;
	return agg_open(&kind, ret_cursor);
}

const sqlite3_module vtab_object_agg_module = {
	AGG_MODULE_METHODS,
	.xConnect = object_agg_connect,
	.xOpen = object_agg_open,
};
