/* SPDX-License-Identifier: MIT */
/*
 * Virtual table `object`: one row per object, its alloc and its free joined.
 *
 * A cursor loads 64 Ki ids at a time and selects among them column by column.
 */
#include <stdlib.h>
#include <string.h>

#include "store/vtab.h"
#include "store/vtab_common.h"
#include "store/vtab_objects.h"

static const struct vtab_column columns[OB_MAX] = {
	[OB_OBJECT] = { "object", "INTEGER", VTAB_RANGE, VTAB_UNIQUE,
			"id, from 0 in the order of allocation" },
	[OB_CACHE] = { "cache", "INTEGER", VTAB_SET, 0.05, "cache id" },
	[OB_SIZE] = { "size", "INTEGER", VTAB_RANGE, 0.05, "requested bytes; NULL without alloc" },
	[OB_ALLOC_SEQ] = { "alloc_seq", "INTEGER", VTAB_RANGE, VTAB_UNIQUE,
			   "event that allocated it; NULL: before the recording" },
	[OB_ALLOC_TS] = { "alloc_ts", "INTEGER", VTAB_RANGE, VTAB_UNIQUE,
			  "ns since the start of the tape" },
	[OB_ALLOC_CPU] = { "alloc_cpu", "INTEGER", VTAB_SET, 0.2, "CPU" },
	[OB_ALLOC_SITE] = { "alloc_site", "INTEGER", VTAB_RANGE, 0.02, "call site id; 0 unknown" },
	[OB_FREE_SEQ] = { "free_seq", "INTEGER", VTAB_RANGE, 0.001,
			  "event that freed it; NULL: alive at the end" },
	[OB_FREE_TS] = { "free_ts", "INTEGER", VTAB_RANGE, 0.001, "ns since the start of the tape" },
	[OB_FREE_CPU] = { "free_cpu", "INTEGER", VTAB_SET, 0.2, "CPU" },
	[OB_FREE_SITE] = { "free_site", "INTEGER", VTAB_RANGE, 0.02, "call site id; 0 unknown" },
	[OB_LIFETIME_NS] = { "lifetime_ns", "INTEGER", VTAB_RANGE, 0.001,
			     "free_ts - alloc_ts; NULL when one is missing" },
	[OB_REMOTE] = { "remote", "INTEGER", VTAB_RANGE, 0.5,
			"1: freed on another CPU than allocated; NULL when one is missing" },
	[OB_CROSS_NODE] = { "cross_node", "INTEGER", VTAB_RANGE, 0.5,
			    "1: freed on another node than that of its memory (of alloc_cpu where the "
			    "memory's is unknown)" },
	[OB_INFERRED] = { "inferred", "INTEGER", VTAB_RANGE, 0.5,
			  "1: its alloc or its free was not traced" },
	[OB_ALLOC_NODE] = { "alloc_node", "INTEGER", VTAB_SET, 0.5, "node of alloc_cpu" },
	[OB_FREE_NODE] = { "free_node", "INTEGER", VTAB_SET, 0.5, "node of free_cpu" },
	[OB_MEM_NODE] = { "mem_node", "INTEGER", VTAB_SET, 0.5,
			  "node of its memory; NULL unknown" },
	[OB_FREED] = { "freed", "INTEGER", VTAB_RANGE, 0.5, "1 freed, 0 alive at the end" },
	[OB_LIFETIME_LOG2] = { "lifetime_log2", "INTEGER", VTAB_RANGE, 0.1,
			       "n for lifetimes of 2^n to 2^(n+1) - 1 ns (0: below 2 ns)" },
};

const struct vtab_table vtab_object_table = {
	.name = "object",
	.columns = columns,
	.nr = OB_MAX,
	.order_major = OB_OBJECT,
	.order_minor = -1,
};

struct object_cursor {
	sqlite3_vtab_cursor base;
	struct vtab_filter filter;
	uint32_t decode;
	/* Blocks [begin, block) or [block, end) are still to come. */
	uint64_t begin, block, end;
	struct vtab_objects *objects; /* current block; kept from one xFilter to the next */
	uint32_t *sel;
	int64_t *values; /* scratch of VTAB_OBJECTS */
	uint32_t nr, at;
	bool eof;
};

static int object_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
			  sqlite3_vtab **ret_vtab, char **ret_message)
{
	(void)aux;
	(void)argc;
	(void)ret_message;
	return vtab_connect(db, &vtab_object_table, argv[1], ret_vtab);
}

/* Another function than xConnect, or SQLite would offer the table without CREATE. */
static int object_create(sqlite3 *db, void *aux, int argc, const char *const *argv,
			 sqlite3_vtab **ret_vtab, char **ret_message)
{
	return object_connect(db, aux, argc, argv, ret_vtab, ret_message);
}

static int object_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	struct vtab *v = (struct vtab *)base;
	int rc = vtab_use(v);

	if (rc != SQLITE_OK)
		return rc;
	rc = vtab_plan(v->table, info, (double)vtab_objects_total(v->source));
	/* A row costs about twice that of an event: two events make it. */
	info->estimatedCost *= 2;
	return rc;
}

static int object_close(sqlite3_vtab_cursor *base)
{
	struct object_cursor *c = (struct object_cursor *)base;

	vtab_filter_fini(&c->filter);
	free(c->objects);
	sqlite3_free(c->sel);
	sqlite3_free(c->values);
	sqlite3_free(c);
	return SQLITE_OK;
}

static int object_open(sqlite3_vtab *base, sqlite3_vtab_cursor **ret_cursor)
{
	struct object_cursor *c;
	int rc = vtab_use((struct vtab *)base);

	if (rc != SQLITE_OK)
		return rc;
	c = sqlite3_malloc(sizeof(*c));
	if (!c)
		return SQLITE_NOMEM;
	memset(c, 0, sizeof(*c));
	c->sel = sqlite3_malloc(VTAB_OBJECTS * sizeof(*c->sel));
	c->values = sqlite3_malloc(VTAB_OBJECTS * sizeof(*c->values));
	if (!c->sel || !c->values) {
		object_close(&c->base);
		return SQLITE_NOMEM;
	}
	*ret_cursor = &c->base;
	return SQLITE_OK;
}

/* Go on to the next block that has rows. */
static int next_block(struct object_cursor *c)
{
	struct vtab_source *s = ((struct vtab *)c->base.pVtab)->source;
	char *message = NULL;

	c->at = 0;
	while (c->filter.descending ? c->block > c->begin : c->block < c->end) {
		uint64_t block = c->filter.descending ? --c->block : c->block++;
		int rc = vtab_objects_load(s, block, c->decode, &c->objects, &message);

		if (rc != SQLITE_OK)
			return vtab_fail(c->base.pVtab, rc, message);
		c->nr = vtab_objects_select(&c->filter, s, c->objects, c->sel, c->values);
		if (c->nr)
			return SQLITE_OK;
	}
	c->eof = true;
	return SQLITE_OK;
}

static int object_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_text, int argc,
			 sqlite3_value **argv)
{
	struct object_cursor *c = (struct object_cursor *)base;
	struct vtab *v = (struct vtab *)base->pVtab;
	const struct vtab_interval *id = &c->filter.range[OB_OBJECT];
	uint64_t total = vtab_objects_total(v->source);
	int rc = vtab_filter_read(&c->filter, v->table, idx_num, idx_text, argc, argv);

	if (rc != SQLITE_OK)
		return rc;
	vtab_objects_prepare(&c->filter, v->source);
	c->decode = vtab_objects_columns(c->filter.used | c->filter.ranged | c->filter.picked);
	c->nr = 0;
	c->eof = c->filter.empty || id->lo > id->hi || !total || id->lo >= (int64_t)total;
	if (c->eof)
		return SQLITE_OK;
	if (id->hi < (int64_t)total - 1)
		total = (uint64_t)id->hi + 1;
	c->begin = (uint64_t)id->lo >> STORE_OBJECTS_SHIFT;
	c->end = (total + VTAB_OBJECTS - 1) >> STORE_OBJECTS_SHIFT;
	c->block = c->filter.descending ? c->end : c->begin;
	return next_block(c);
}

static int object_next(sqlite3_vtab_cursor *base)
{
	struct object_cursor *c = (struct object_cursor *)base;

	return ++c->at < c->nr ? SQLITE_OK : next_block(c);
}

static int object_eof(sqlite3_vtab_cursor *base)
{
	return ((struct object_cursor *)base)->eof;
}

static const uint32_t *current(const struct object_cursor *c)
{
	return &c->sel[c->filter.descending ? c->nr - 1 - c->at : c->at];
}

static int object_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
	const struct object_cursor *c = (const struct object_cursor *)base;
	int64_t value = -1;

	vtab_objects_values(((struct vtab *)base->pVtab)->source, c->objects, column, current(c), 1,
			    &value);
	if (value >= 0)
		sqlite3_result_int64(ctx, value);
	return SQLITE_OK;
}

static int object_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret_rowid)
{
	const struct object_cursor *c = (const struct object_cursor *)base;

	*ret_rowid = (sqlite3_int64)((c->objects->block << STORE_OBJECTS_SHIFT) + *current(c));
	return SQLITE_OK;
}

const sqlite3_module vtab_object_module = {
	.iVersion = 1,
	.xCreate = object_create,
	.xConnect = object_connect,
	.xBestIndex = object_best_index,
	.xDisconnect = vtab_disconnect,
	.xDestroy = vtab_disconnect,
	.xOpen = object_open,
	.xClose = object_close,
	.xFilter = object_filter,
	.xNext = object_next,
	.xEof = object_eof,
	.xColumn = object_column,
	.xRowid = object_rowid,
};
