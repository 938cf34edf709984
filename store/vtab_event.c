/* SPDX-License-Identifier: MIT */
/*
 * Virtual table `event`: one row per event, straight from the chunks.
 *
 * A cursor walks the chunks that can match (up or down), decodes the used columns of one at a
 * time and selects its rows column by column; xNext only moves an index.  A condition on
 * `object` first asks the object chunks for the two events of that object.
 */
#include <stdlib.h>
#include <string.h>

#include "store/vtab.h"
#include "store/vtab_common.h"
#include "store/vtab_objects.h"
#include "store/vtab_rows.h"

static const struct vtab_column columns[EV_MAX] = {
	[EV_SEQ] = { "seq", "INTEGER", VTAB_RANGE, VTAB_UNIQUE,
		     "number of the event in the total order, from 0" },
	[EV_TS] = { "ts", "INTEGER", VTAB_RANGE, VTAB_UNIQUE, "ns since the start of the tape" },
	[EV_CPU] = { "cpu", "INTEGER", VTAB_SET, 0.2, "CPU it happened on" },
	[EV_NODE] = { "node", "INTEGER", VTAB_SET, 0.5, "node of that CPU" },
	[EV_OP] = { "op", "TEXT", VTAB_NAME, 0.3, "operation by name", tape_op_parse },
	[EV_CACHE] = { "cache", "INTEGER", VTAB_SET, 0.05, "cache id; NULL when none" },
	[EV_OBJECT] = { "object", "INTEGER", VTAB_RANGE, VTAB_UNIQUE,
			"object id; NULL when none" },
	[EV_SIZE] = { "size", "INTEGER", VTAB_RANGE, 0.05,
		      "requested bytes; 0 unknown or no allocation" },
	[EV_NODE_REQ] = { "node_req", "INTEGER", VTAB_RANGE, 0.3, "node asked for; -1 none" },
	[EV_MEM_NODE] = { "mem_node", "INTEGER", VTAB_RANGE, 0.5,
			  "node of the memory; -1 unknown" },
	[EV_SITE] = { "site", "INTEGER", VTAB_RANGE, 0.02, "call site id; 0 unknown" },
	[EV_TID] = { "tid", "INTEGER", VTAB_RANGE, 0.05, "thread id; 0 unknown" },
	[EV_GFP] = { "gfp", "INTEGER", VTAB_NONE, 1, "gfp bits, see gfp_text()" },
	[EV_CTX] = { "ctx", "TEXT", VTAB_NONE, 1,
		     "task, softirq, hardirq or nmi; NULL unknown" },
	[EV_BULK] = { "bulk", "INTEGER", VTAB_RANGE, 0.001,
		      "id of the bulk call, from 1; 0 single" },
	[EV_ARG] = { "arg", "INTEGER", VTAB_NONE, 1, "number whose meaning depends on op" },
	[EV_FLAGS] = { "flags", "INTEGER", VTAB_NONE, 1, "flag bits, see flags_text()" },
	[EV_ADDRESS] = { "address", "INTEGER", VTAB_RANGE, 0.001,
			 "address as recorded (signed 64 bits); 0 unknown" },
	[EV_SLOT] = { "slot", "INTEGER", VTAB_NONE, 1,
		      "smallest number free at the alloc; NULL when none" },
	[EV_TS_LO] = { "ts_lo", "INTEGER", VTAB_NONE, 1,
		       "inferred events: earliest possible time; else ts" },
	[EV_TS_HI] = { "ts_hi", "INTEGER", VTAB_NONE, 1,
		       "inferred events: latest possible time; else ts" },
};

const struct vtab_table vtab_event_table = {
	.name = "event",
	.columns = columns,
	.nr = EV_MAX,
	.order_major = EV_SEQ,
	.order_minor = EV_TS,
};

struct event_cursor {
	sqlite3_vtab_cursor base;
	struct vtab_filter filter;
	uint32_t decode; /* columns */
	/* Chunks [chunk, end) are still to come, or [begin, chunk) when descending. */
	size_t begin, chunk, end;
	/* The rows of an object, when the object chunks know them: at most two. */
	bool listed_seqs;
	unsigned int seqs_nr;
	uint64_t seqs[2];
	struct vtab_objects *objects; /* the block asked last */
	struct vtab_page *page; /* current chunk; kept from one xFilter to the next */
	uint32_t *sel;		/* TAPE_CHUNK_EVENTS, made on first use */
	uint32_t first, nr, at; /* rows of the chunk, and the current one among them */
	bool listed;		/* rows are sel[], not a run from `first` */
	bool eof;
};

static int event_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
			 sqlite3_vtab **ret_vtab, char **ret_message)
{
	(void)aux;
	(void)argc;
	(void)ret_message;
	return vtab_connect(db, &vtab_event_table, argv[1], ret_vtab);
}

/* Another function than xConnect, or SQLite would offer the table without CREATE. */
static int event_create(sqlite3 *db, void *aux, int argc, const char *const *argv,
			sqlite3_vtab **ret_vtab, char **ret_message)
{
	return event_connect(db, aux, argc, argv, ret_vtab, ret_message);
}

static int event_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	struct vtab *v = (struct vtab *)base;
	int rc = vtab_use(v);

	return rc == SQLITE_OK ? vtab_plan(v->table, info, (double)v->source->events) : rc;
}

static int event_open(sqlite3_vtab *base, sqlite3_vtab_cursor **ret_cursor)
{
	struct event_cursor *c;
	int rc = vtab_use((struct vtab *)base);

	if (rc != SQLITE_OK)
		return rc;
	c = sqlite3_malloc(sizeof(*c));
	if (!c)
		return SQLITE_NOMEM;
	memset(c, 0, sizeof(*c));
	*ret_cursor = &c->base;
	return SQLITE_OK;
}

static int event_close(sqlite3_vtab_cursor *base)
{
	struct event_cursor *c = (struct event_cursor *)base;

	vtab_page_put(c->page);
	vtab_filter_fini(&c->filter);
	free(c->objects);
	sqlite3_free(c->sel);
	sqlite3_free(c);
	return SQLITE_OK;
}

/* True when @chunk holds one of the listed events. */
static bool holds_listed(const struct event_cursor *c, const struct store_chunk *chunk)
{
	for (unsigned int i = 0; i < c->seqs_nr; i++)
		if (c->seqs[i] >= chunk->first_seq && c->seqs[i] - chunk->first_seq < chunk->events)
			return true;
	return false;
}

static bool chunk_possible(const struct event_cursor *c, const struct store_chunk *chunk)
{
	if (c->listed_seqs && !holds_listed(c, chunk))
		return false;
	return vtab_rows_possible(&c->filter, chunk);
}

/* Decode chunk number @index and select its rows. */
static int load_chunk(struct event_cursor *c, struct vtab_source *s, size_t index)
{
	char *message = NULL;
	int rc;

	if (!c->page || c->page->chunk != index || (c->decode & ~c->page->batch->valid)) {
		vtab_page_put(c->page);
		c->page = NULL;
		rc = vtab_source_page(s, index, c->decode, &c->page, &message);
		if (rc != SQLITE_OK)
			return vtab_fail(c->base.pVtab, rc, message);
	}
	c->nr = vtab_rows_select(&c->filter, c->page->batch, c->sel, &c->first, &c->listed);
	c->at = 0;
	return SQLITE_OK;
}

/* Go on to the next chunk that has rows. */
static int next_chunk(struct event_cursor *c)
{
	struct vtab_source *s = ((struct vtab *)c->base.pVtab)->source;

	while (c->filter.descending ? c->chunk > c->begin : c->chunk < c->end) {
		size_t index = c->filter.descending ? --c->chunk : c->chunk++;
		int rc;

		/* The list may have been read again since, by another cursor. */
		if (index >= s->chunks_nr || !chunk_possible(c, &s->chunks[index]))
			continue;
		rc = load_chunk(c, s, index);
		if (rc != SQLITE_OK || c->nr)
			return rc;
	}
	c->eof = true;
	return SQLITE_OK;
}

/* First chunk whose @last (seq or ts) is not below @value. */
static size_t first_chunk(const struct store_chunk *chunks, size_t nr, bool by_ts, int64_t value)
{
	size_t lo = 0, hi = nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct store_chunk *k = &chunks[mid];
		uint64_t last = by_ts ? k->ts_max : k->first_seq + k->events - 1;

		if ((int64_t)last < value)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The chunks that the intervals of seq and ts leave, by bisection. */
static void bound_chunks(struct event_cursor *c, const struct vtab_source *s)
{
	const struct vtab_interval *seq = &c->filter.range[EV_SEQ], *ts = &c->filter.range[EV_TS];
	const struct store_chunk *chunks = s->chunks;
	size_t nr = s->chunks_nr;
	size_t by_seq = first_chunk(chunks, nr, false, seq->lo);
	size_t by_ts = first_chunk(chunks, nr, true, ts->lo);
	size_t top_seq = first_chunk(chunks, nr, false, seq->hi);
	size_t top_ts = ts->hi == INT64_MAX ? nr : first_chunk(chunks, nr, true, ts->hi + 1);
	size_t top = top_seq < top_ts ? top_seq : top_ts;

	c->begin = by_seq > by_ts ? by_seq : by_ts;
	c->end = top < nr ? top + 1 : nr;
	if (c->end < c->begin)
		c->end = c->begin;
	c->chunk = c->filter.descending ? c->end : c->begin;
}

/* One object is wanted: its events' numbers, when its row is at hand. */
static int list_events(struct event_cursor *c, struct vtab_source *s, char **ret_message)
{
	struct vtab_interval *seq = &c->filter.range[EV_SEQ];
	const struct vtab_interval *object = &c->filter.range[EV_OBJECT];
	int rc;

	c->listed_seqs = false;
	if (object->lo != object->hi)
		return SQLITE_OK;
	rc = vtab_object_events(s, (uint64_t)object->lo, &c->objects, c->seqs, &c->seqs_nr,
				&c->listed_seqs, ret_message);
	if (rc != SQLITE_OK || !c->listed_seqs)
		return rc;
	if (!c->seqs_nr) {
		c->filter.empty = true;
		return SQLITE_OK;
	}
	/* Ascending. */
	if (seq->lo < (int64_t)c->seqs[0])
		seq->lo = (int64_t)c->seqs[0];
	if (seq->hi > (int64_t)c->seqs[c->seqs_nr - 1])
		seq->hi = (int64_t)c->seqs[c->seqs_nr - 1];
	return SQLITE_OK;
}

static int prepare(struct event_cursor *c, struct vtab_source *s, char **ret_message)
{
	int rc = vtab_rows_prepare(&c->filter, s);

	if (rc == SQLITE_OK)
		rc = list_events(c, s, ret_message);
	if (rc == SQLITE_OK && !c->sel) {
		c->sel = sqlite3_malloc(TAPE_CHUNK_EVENTS * sizeof(*c->sel));
		rc = c->sel ? SQLITE_OK : SQLITE_NOMEM;
	}
	return rc;
}

static int event_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_text, int argc,
			sqlite3_value **argv)
{
	struct event_cursor *c = (struct event_cursor *)base;
	struct vtab *v = (struct vtab *)base->pVtab;
	char *message = NULL;
	int rc = vtab_filter_read(&c->filter, v->table, idx_num, idx_text, argc, argv);

	if (rc == SQLITE_OK)
		rc = prepare(c, v->source, &message);
	if (rc != SQLITE_OK)
		return vtab_fail(base->pVtab, rc, message);
	c->decode = vtab_rows_columns(&c->filter);
	c->nr = c->at = 0;
	c->eof = c->filter.empty;
	if (c->eof)
		return SQLITE_OK;
	bound_chunks(c, v->source);
	return next_chunk(c);
}

static int event_next(sqlite3_vtab_cursor *base)
{
	struct event_cursor *c = (struct event_cursor *)base;

	return ++c->at < c->nr ? SQLITE_OK : next_chunk(c);
}

static int event_eof(sqlite3_vtab_cursor *base)
{
	return ((struct event_cursor *)base)->eof;
}

static uint32_t current_row(const struct event_cursor *c)
{
	uint32_t i = c->filter.descending ? c->nr - 1 - c->at : c->at;

	return c->listed ? c->sel[i] : c->first + i;
}

static void result_unless(sqlite3_context *ctx, int64_t value, bool is_null)
{
	if (!is_null)
		sqlite3_result_int64(ctx, value);
}

static void result_name(sqlite3_context *ctx, const char *name)
{
	sqlite3_result_text(ctx, name, -1, SQLITE_STATIC);
}

static void result_node(sqlite3_context *ctx, const struct event_cursor *c, uint16_t cpu)
{
	int node = ((struct vtab *)c->base.pVtab)->source->cpu_node[cpu];

	result_unless(ctx, node, node < 0);
}

#define NUMBER_CASE(column, array)                            \
	case column:                                          \
		sqlite3_result_int64(ctx, (int64_t)b->array[row]); \
		break

static int event_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
	const struct event_cursor *c = (const struct event_cursor *)base;
	const struct tape_batch *b = c->page->batch;
	uint32_t row = current_row(c);

	switch (column) {
	case EV_SEQ:
		sqlite3_result_int64(ctx, (int64_t)(b->first_seq + row));
		break;
	case EV_NODE:
		result_node(ctx, c, b->cpu[row]);
		break;
	case EV_OP:
		result_name(ctx, tape_op_name(b->op[row]));
		break;
	case EV_CACHE:
		result_unless(ctx, b->cache[row], b->cache[row] == TAPE_NO_CACHE);
		break;
	case EV_OBJECT:
		result_unless(ctx, (int64_t)b->object[row], b->object[row] == TAPE_NO_OBJECT);
		break;
	case EV_SLOT:
		result_unless(ctx, b->slot[row], b->slot[row] == TAPE_NO_SLOT);
		break;
	case EV_CTX:
		if (b->ctx[row] != TAPE_CTX_UNKNOWN)
			result_name(ctx, tape_ctx_name(b->ctx[row]));
		break;
	NUMBER_CASE(EV_TS, ts);
	NUMBER_CASE(EV_CPU, cpu);
	NUMBER_CASE(EV_SIZE, size);
	NUMBER_CASE(EV_NODE_REQ, node_req);
	NUMBER_CASE(EV_MEM_NODE, mem_node);
	NUMBER_CASE(EV_SITE, site);
	NUMBER_CASE(EV_TID, tid);
	NUMBER_CASE(EV_GFP, gfp);
	NUMBER_CASE(EV_BULK, bulk);
	NUMBER_CASE(EV_ARG, arg);
	NUMBER_CASE(EV_FLAGS, flags);
	NUMBER_CASE(EV_ADDRESS, address);
	NUMBER_CASE(EV_TS_LO, ts_lo);
	NUMBER_CASE(EV_TS_HI, ts_hi);
	default:
		break;
	}
	return SQLITE_OK;
}

static int event_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret_rowid)
{
	const struct event_cursor *c = (const struct event_cursor *)base;

	*ret_rowid = (sqlite3_int64)(c->page->batch->first_seq + current_row(c));
	return SQLITE_OK;
}

const sqlite3_module vtab_event_module = {
	.iVersion = 1,
	.xCreate = event_create,
	.xConnect = event_connect,
	.xBestIndex = event_best_index,
	.xDisconnect = vtab_disconnect,
	.xDestroy = vtab_disconnect,
	.xOpen = event_open,
	.xClose = event_close,
	.xFilter = event_filter,
	.xNext = event_next,
	.xEof = event_eof,
	.xColumn = event_column,
	.xRowid = event_rowid,
};
