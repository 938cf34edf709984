/* SPDX-License-Identifier: MIT */
/*
 * Virtual tables `transition` and `refill`: what replays recorded, from run_chunk and run_column.
 *
 * Both are the same code over a list of columns.  A cursor holds one chunk, its used columns
 * decoded to 64-bit numbers.  Rows come in the order of the runs, within a run in seq order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/run_rows.h"
#include "store/vtab.h"
#include "store/vtab_common.h"
#include "traces/event.h"
#include "traces/records.h"

#define BIT(column) (UINT64_C(1) << (column))

static int parse_state(const char *name)
{
	for (int i = 0; tape_slab_state_name(i); i++)
		if (!strcmp(tape_slab_state_name(i), name))
			return i;
	return -1;
}

static int parse_source(const char *name)
{
	for (int i = 0; tape_refill_source_name(i); i++)
		if (!strcmp(tape_refill_source_name(i), name))
			return i;
	return -1;
}

static const char *op_name(int64_t op)
{
	return op >= 0 && op < TAPE_OP_MAX ? tape_op_name((uint8_t)op) : NULL;
}

/* SQL column 0 is the run; column i + 1 is column i of the kind. */
static const struct vtab_column transition_columns[TR_MAX + 1] = {
	{ "run", "INTEGER", VTAB_RANGE, 0.3, "run", NULL },
	[TR_SEQ + 1] = { "seq", "INTEGER", VTAB_RANGE, 0.001, "event that caused it", NULL },
	[TR_TS + 1] = { "ts", "INTEGER", VTAB_RANGE, 0.001, "time of that event, ns", NULL },
	[TR_VTS + 1] = { "vts", "INTEGER", VTAB_RANGE, 0.001,
			 "virtual time, ns, in simulated runs; else 0", NULL },
	[TR_CPU + 1] = { "cpu", "INTEGER", VTAB_SET, 0.2, "CPU that did it", NULL },
	[TR_NODE + 1] = { "node", "INTEGER", VTAB_SET, 0.5, "node of the slab", NULL },
	[TR_CACHE + 1] = { "cache", "INTEGER", VTAB_SET, 0.05, "cache id", NULL },
	[TR_SLAB + 1] = { "slab", "INTEGER", VTAB_RANGE, 0.001,
			  "slab, numbered in order of birth within the run", NULL },
	[TR_FROM + 1] = { "from_state", "TEXT", VTAB_NAME, 0.2, "where the slab was", parse_state },
	[TR_TO + 1] = { "to_state", "TEXT", VTAB_NAME, 0.2, "where it is now", parse_state },
	[TR_INUSE + 1] = { "inuse", "INTEGER", VTAB_RANGE, 0.1, "its objects in use, after", NULL },
	[TR_OBJECTS + 1] = { "objects", "INTEGER", VTAB_RANGE, 0.5, "its objects in all", NULL },
	[TR_OP + 1] = { "op", "TEXT", VTAB_NAME, 0.3, "operation of that event", tape_op_parse },
};

static const struct vtab_column refill_columns[RE_MAX + 1] = {
	{ "run", "INTEGER", VTAB_RANGE, 0.3, "run", NULL },
	[RE_SEQ + 1] = { "seq", "INTEGER", VTAB_RANGE, 0.001, "event that caused it", NULL },
	[RE_TS + 1] = { "ts", "INTEGER", VTAB_RANGE, 0.001, "time of that event, ns", NULL },
	[RE_VTS + 1] = { "vts", "INTEGER", VTAB_RANGE, 0.001,
			 "virtual time, ns, in simulated runs; else 0", NULL },
	[RE_CPU + 1] = { "cpu", "INTEGER", VTAB_SET, 0.2, "CPU", NULL },
	[RE_CACHE + 1] = { "cache", "INTEGER", VTAB_SET, 0.05, "cache id", NULL },
	[RE_SOURCE + 1] = { "source", "TEXT", VTAB_NAME, 0.2, "where the objects came from",
			    parse_source },
	[RE_OBJECTS + 1] = { "objects", "INTEGER", VTAB_RANGE, 0.1, "usable objects obtained",
			     NULL },
};

const struct vtab_table vtab_transition_table = { "transition", transition_columns, TR_MAX + 1, -1, -1 };
const struct vtab_table vtab_refill_table = { "refill", refill_columns, RE_MAX + 1, -1, -1 };

struct run_chunk {
	int64_t id, run, rows;
	int64_t first_seq, last_seq, ts_min, ts_max;
};

struct run_cursor {
	sqlite3_vtab_cursor base;
	enum run_kind kind;
	struct vtab_filter filter;
	struct run_chunk *chunks;
	size_t chunks_nr, next; /* next: chunk to look at */
	int64_t *columns[RUN_COLUMNS_MAX]; /* decoded ones of the current chunk */
	int64_t run;			   /* of the current chunk */
	uint32_t *sel;
	uint32_t nr, at;
	bool eof;
};

static int run_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
		       sqlite3_vtab **ret_vtab, char **ret_message)
{
	(void)argc;
	(void)ret_message;
	return vtab_connect(db, *(const struct vtab_table *const *)aux, argv[1], ret_vtab);
}

/* Another function than xConnect, or SQLite would offer the table without CREATE. */
static int run_create(sqlite3 *db, void *aux, int argc, const char *const *argv,
		      sqlite3_vtab **ret_vtab, char **ret_message)
{
	return run_connect(db, aux, argc, argv, ret_vtab, ret_message);
}

static int run_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	struct vtab *v = (struct vtab *)base;
	int64_t rows = 0;
	struct tape_err err = { 0 };
	char *message = NULL;
	int rc = vtab_use(v);

	if (rc != SQLITE_OK)
		return rc;
	rc = store_query_int(&v->source->tape, "SELECT sum(rows) FROM \"%w\".run_chunk", 0, &rows, &err);
	if (rc < 0) {
		rc = vtab_source_failed(rc, &err, &message);
		return vtab_fail(base, rc, message);
	}
	return vtab_plan(v->table, info, (double)rows + 1);
}

static int run_close(sqlite3_vtab_cursor *base)
{
	struct run_cursor *c = (struct run_cursor *)base;

	for (int i = 0; i < RUN_COLUMNS_MAX; i++)
		free(c->columns[i]);
	free(c->chunks);
	free(c->sel);
	vtab_filter_fini(&c->filter);
	free(c);
	return SQLITE_OK;
}

static struct run_chunk chunk_read(sqlite3_stmt *s)
{
	return (struct run_chunk){
		.id = sqlite3_column_int64(s, 0),
		.run = sqlite3_column_int64(s, 1),
		.rows = sqlite3_column_int64(s, 2),
		.first_seq = sqlite3_column_int64(s, 3),
		.last_seq = sqlite3_column_int64(s, 4),
		.ts_min = sqlite3_column_int64(s, 5),
		.ts_max = sqlite3_column_int64(s, 6),
	};
}

/* The chunks of this kind, in order.  0 or a negative code of store/. */
static int list_chunks(struct run_cursor *c, struct tape *t, struct tape_err *reterr)
{
	size_t room = 0;
	sqlite3_stmt *s;
	int step;

	c->chunks_nr = 0;
	if (store_prepare(t, "SELECT id, run, rows, first_seq, last_seq, ts_min, ts_max FROM"
			     " \"%w\".run_chunk WHERE kind = ? ORDER BY run, id", 0, &s) != SQLITE_OK)
		return store_fail(t, "reading the chunks of runs", reterr);
	sqlite3_bind_text(s, 1, run_kinds[c->kind].name, -1, SQLITE_STATIC);
	while ((step = sqlite3_step(s)) == SQLITE_ROW) {
		if (c->chunks_nr == room) {
			struct run_chunk *grown;

			room = room ? 2 * room : 64;
			grown = realloc(c->chunks, room * sizeof(*grown));
			if (!grown)
				break;
			c->chunks = grown;
		}
		c->chunks[c->chunks_nr] = chunk_read(s);
		if (c->chunks[c->chunks_nr].rows < 1 ||
		    c->chunks[c->chunks_nr].rows > (int64_t)TAPE_CHUNK_EVENTS)
			break;
		c->chunks_nr++;
	}
	sqlite3_finalize(s);
	if (step == SQLITE_DONE)
		return 0;
	if (step != SQLITE_ROW)
		return store_fail(t, "reading the chunks of runs", reterr);
	return tape_err_set(reterr, -TAPE_E_FORMAT, "%s: chunk of a run: not valid, or out of memory",
			    t->path);
}

static int run_open(sqlite3_vtab *base, sqlite3_vtab_cursor **ret_cursor)
{
	struct vtab *v = (struct vtab *)base;
	struct run_cursor *c;
	struct tape_err err = { 0 };
	char *message = NULL;
	int rc = vtab_use(v);

	if (rc != SQLITE_OK)
		return rc;
	c = calloc(1, sizeof(*c));
	if (!c)
		return SQLITE_NOMEM;
	c->kind = v->table == &vtab_transition_table ? RUN_TRANSITION : RUN_REFILL;
	c->sel = malloc(TAPE_CHUNK_EVENTS * sizeof(*c->sel));
	rc = c->sel ? list_chunks(c, &v->source->tape, &err) : tape_err_set(&err, -ENOMEM, "out of memory");
	if (rc < 0) {
		rc = vtab_source_failed(rc, &err, &message);
		run_close(&c->base);
		return vtab_fail(base, rc, message);
	}
	*ret_cursor = &c->base;
	return SQLITE_OK;
}

static int decode_column(struct run_cursor *c, struct vtab_source *s, const struct run_chunk *chunk,
			 int column, struct tape_err *reterr)
{
	struct tape_err why = { 0 };
	sqlite3_stmt *row;
	int rc = store_statement(&s->tape, STORE_RUN_COLUMN_GET, &row, reterr);

	if (rc < 0)
		return rc;
	if (!c->columns[column])
		c->columns[column] = malloc(TAPE_CHUNK_EVENTS * sizeof(int64_t));
	if (!c->columns[column])
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	sqlite3_bind_int64(row, 1, chunk->id * STORE_COLUMNS_PER_CHUNK + column);
	if (sqlite3_step(row) == SQLITE_ROW)
		rc = tape_records_decode(s->codec, sqlite3_column_blob(row, 0),
					 (size_t)sqlite3_column_bytes(row, 0), (uint32_t)chunk->rows,
					 run_kinds[c->kind].steps >> column & 1, c->columns[column], &why);
	else
		rc = tape_err_set(&why, -TAPE_E_FORMAT, "the column is missing");
	sqlite3_reset(row);
	if (rc < 0)
		tape_err_set(reterr, rc, "%s, run %lld, %s chunk %lld, column %d: %s", s->tape.path,
			     (long long)chunk->run, run_kinds[c->kind].name, (long long)chunk->id,
			     column, why.text);
	return rc;
}

/* Keep the rows of sel[0..n) whose number in @column passes. */
static uint32_t keep(const struct run_cursor *c, int column, uint32_t n)
{
	const int64_t *values = c->columns[column];
	const uint8_t *set = c->filter.picked & BIT(column + 1) ? c->filter.set[column + 1] : NULL;
	int64_t lo = c->filter.range[column + 1].lo, hi = c->filter.range[column + 1].hi;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		int64_t v = values[c->sel[i]];

		c->sel[kept] = c->sel[i];
		kept += set ? v >= 0 && v < VTAB_SET_VALUES && set[v] : v >= lo && v <= hi;
	}
	return kept;
}

static int load_chunk(struct run_cursor *c, const struct run_chunk *chunk, char **ret_message)
{
	struct vtab_source *s = ((struct vtab *)c->base.pVtab)->source;
	uint64_t tests = c->filter.ranged | c->filter.picked;
	struct tape_err err = { 0 };
	int rc = 0;

	for (int i = 0; rc == 0 && i < run_kinds[c->kind].columns; i++)
		if ((c->filter.used | tests) & BIT(i + 1))
			rc = decode_column(c, s, chunk, i, &err);
	if (rc < 0)
		return vtab_source_failed(rc, &err, ret_message);
	c->run = chunk->run;
	c->nr = (uint32_t)chunk->rows;
	for (uint32_t i = 0; i < c->nr; i++)
		c->sel[i] = i;
	for (int i = 0; i < run_kinds[c->kind].columns; i++)
		if (tests & BIT(i + 1))
			c->nr = keep(c, i, c->nr);
	return SQLITE_OK;
}

static int next_chunk(struct run_cursor *c)
{
	const struct vtab_filter *f = &c->filter;

	c->at = c->nr = 0;
	while (c->next < c->chunks_nr) {
		const struct run_chunk *chunk = &c->chunks[c->next++];
		char *message = NULL;
		int rc;

		if (!vtab_filter_meets(f, 0, chunk->run, chunk->run) ||
		    !vtab_filter_meets(f, TR_SEQ + 1, chunk->first_seq, chunk->last_seq) ||
		    !vtab_filter_meets(f, TR_TS + 1, chunk->ts_min, chunk->ts_max))
			continue;
		rc = load_chunk(c, chunk, &message);
		if (rc != SQLITE_OK)
			return vtab_fail(c->base.pVtab, rc, message);
		if (c->nr)
			return SQLITE_OK;
	}
	c->eof = true;
	return SQLITE_OK;
}

static int run_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_text, int argc,
		      sqlite3_value **argv)
{
	struct run_cursor *c = (struct run_cursor *)base;
	struct vtab *v = (struct vtab *)base->pVtab;
	int rc = vtab_filter_read(&c->filter, v->table, idx_num, idx_text, argc, argv);

	if (rc != SQLITE_OK)
		return rc;
	c->next = 0;
	c->eof = c->filter.empty;
	return c->eof ? SQLITE_OK : next_chunk(c);
}

static int run_next(sqlite3_vtab_cursor *base)
{
	struct run_cursor *c = (struct run_cursor *)base;

	return ++c->at < c->nr ? SQLITE_OK : next_chunk(c);
}

static int run_eof(sqlite3_vtab_cursor *base)
{
	return ((struct run_cursor *)base)->eof;
}

static int run_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
	const struct run_cursor *c = (const struct run_cursor *)base;
	const char *name;
	int64_t value;

	if (column == 0) {
		sqlite3_result_int64(ctx, c->run);
		return SQLITE_OK;
	}
	value = c->columns[--column][c->sel[c->at]];
	if (c->kind == RUN_TRANSITION && (column == TR_FROM || column == TR_TO))
		name = tape_slab_state_name(value);
	else if (c->kind == RUN_TRANSITION && column == TR_OP)
		name = op_name(value);
	else if (c->kind == RUN_REFILL && column == RE_SOURCE)
		name = tape_refill_source_name(value);
	else {
		sqlite3_result_int64(ctx, value);
		return SQLITE_OK;
	}
	if (name)
		sqlite3_result_text(ctx, name, -1, SQLITE_STATIC);
	return SQLITE_OK;
}

static int run_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret_rowid)
{
	const struct run_cursor *c = (const struct run_cursor *)base;

	*ret_rowid = c->chunks[c->next - 1].id * (sqlite3_int64)TAPE_CHUNK_EVENTS + c->sel[c->at];
	return SQLITE_OK;
}

const sqlite3_module vtab_run_module = {
	.iVersion = 1,
	.xCreate = run_create,
	.xConnect = run_connect,
	.xBestIndex = run_best_index,
	.xDisconnect = vtab_disconnect,
	.xDestroy = vtab_disconnect,
	.xOpen = run_open,
	.xClose = run_close,
	.xFilter = run_filter,
	.xNext = run_next,
	.xEof = run_eof,
	.xColumn = run_column,
	.xRowid = run_rowid,
};
