/* SPDX-License-Identifier: MIT */
/*
 * Virtual tables `transition`, `refill`, `slab` and `pinned`: what replays recorded.
 *
 * All are the same code over a list of columns.  A cursor holds one chunk, its used columns
 * decoded to 64-bit numbers.  Rows come in the order of the runs, within a run in the order in
 * which they happened; rowid ascends with them.
 */
#include <stdlib.h>

#include "store/vtab.h"
#include "store/vtab_run.h"

struct run_cursor {
	sqlite3_vtab_cursor base;
	struct vtab_filter filter;
	struct run_scan scan;
	uint32_t at;
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

static enum run_kind kind_of(const struct vtab *v)
{
	int kind = 0;

	while (vtab_run_tables[kind] != v->table)
		kind++;
	return (enum run_kind)kind;
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

	run_scan_close(&c->scan);
	vtab_filter_fini(&c->filter);
	free(c);
	return SQLITE_OK;
}

static int run_open(sqlite3_vtab *base, sqlite3_vtab_cursor **ret_cursor)
{
	struct vtab *v = (struct vtab *)base;
	struct run_cursor *c;
	char *message = NULL;
	int rc = vtab_use(v);

	if (rc != SQLITE_OK)
		return rc;
	c = calloc(1, sizeof(*c));
	if (!c)
		return SQLITE_NOMEM;
	rc = run_scan_open(&c->scan, v->source, kind_of(v), &message);
	if (rc != SQLITE_OK) {
		run_close(&c->base);
		return vtab_fail(base, rc, message);
	}
	*ret_cursor = &c->base;
	return SQLITE_OK;
}

static int next_chunk(struct run_cursor *c)
{
	char *message = NULL;
	int rc = run_scan_next(&c->scan, ((struct vtab *)c->base.pVtab)->source, &c->filter,
			       c->filter.used, &message);

	c->at = 0;
	c->eof = rc != SQLITE_ROW;
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK :
						       vtab_fail(c->base.pVtab, rc, message);
}

static int run_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_text, int argc,
		      sqlite3_value **argv)
{
	struct run_cursor *c = (struct run_cursor *)base;
	struct vtab *v = (struct vtab *)base->pVtab;
	int rc = vtab_filter_read(&c->filter, v->table, idx_num, idx_text, argc, argv);

	if (rc != SQLITE_OK)
		return rc;
	run_scan_rewind(&c->scan);
	c->eof = c->filter.empty;
	return c->eof ? SQLITE_OK : next_chunk(c);
}

static int run_next(sqlite3_vtab_cursor *base)
{
	struct run_cursor *c = (struct run_cursor *)base;

	return ++c->at < c->scan.nr ? SQLITE_OK : next_chunk(c);
}

static int run_eof(sqlite3_vtab_cursor *base)
{
	return ((struct run_cursor *)base)->eof;
}

static int run_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
	const struct run_cursor *c = (const struct run_cursor *)base;
	const struct run_scan *s = &c->scan;

	run_column_result(ctx, s->kind, column,
			  column ? s->columns[column - 1][s->sel[c->at]] : s->chunk->run);
	return SQLITE_OK;
}

static int run_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret_rowid)
{
	const struct run_cursor *c = (const struct run_cursor *)base;

	*ret_rowid = c->scan.chunk->id * (sqlite3_int64)TAPE_CHUNK_EVENTS + c->scan.sel[c->at];
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
