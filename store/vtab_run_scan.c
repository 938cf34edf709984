/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "store/vtab_run.h"
#include "traces/records.h"

#define BIT(column) (UINT64_C(1) << (column))

void run_scan_close(struct run_scan *scan)
{
	for (int i = 0; i < RUN_COLUMNS_MAX; i++)
		free(scan->columns[i]);
	free(scan->chunks);
	free(scan->sel);
	*scan = (struct run_scan){ 0 };
}

void run_scan_rewind(struct run_scan *scan)
{
	scan->next = 0;
	scan->chunk = NULL;
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

/* Append the chunk that @s stands on; false when it is not valid or memory is out. */
static bool chunk_add(struct run_scan *scan, sqlite3_stmt *s, size_t *room)
{
	struct run_chunk c = chunk_read(s);

	if (c.rows < 1 || c.rows > (int64_t)TAPE_CHUNK_EVENTS)
		return false;
	if (scan->chunks_nr == *room) {
		size_t wanted = *room ? 2 * *room : 64;
		struct run_chunk *grown = realloc(scan->chunks, wanted * sizeof(*grown));

		if (!grown)
			return false;
		scan->chunks = grown;
		*room = wanted;
	}
	scan->chunks[scan->chunks_nr++] = c;
	return true;
}

static int list_chunks(struct run_scan *scan, struct tape *t, struct tape_err *reterr)
{
	size_t room = 0;
	sqlite3_stmt *s;
	int step;

	if (store_prepare(t, "SELECT id, run, rows, first_seq, last_seq, ts_min, ts_max FROM"
			     " \"%w\".run_chunk WHERE kind = ? ORDER BY run, id", 0, &s) != SQLITE_OK)
		return store_fail(t, "reading the chunks of runs", reterr);
	sqlite3_bind_text(s, 1, run_kinds[scan->kind].name, -1, SQLITE_STATIC);
	while ((step = sqlite3_step(s)) == SQLITE_ROW)
		if (!chunk_add(scan, s, &room))
			break;
	sqlite3_finalize(s);
	if (step == SQLITE_DONE)
		return 0;
	if (step != SQLITE_ROW)
		return store_fail(t, "reading the chunks of runs", reterr);
	return tape_err_set(reterr, -TAPE_E_FORMAT, "%s: chunk of a run: not valid, or out of memory",
			    t->path);
}

int run_scan_open(struct run_scan *scan, struct vtab_source *s, enum run_kind kind,
		  char **ret_message)
{
	struct tape_err err = { 0 };
	int rc;

	scan->kind = kind;
	scan->sel = malloc(TAPE_CHUNK_EVENTS * sizeof(*scan->sel));
	rc = scan->sel ? list_chunks(scan, &s->tape, &err) :
			 tape_err_set(&err, -ENOMEM, "out of memory");
	if (rc < 0)
		return vtab_source_failed(rc, &err, ret_message);
	return SQLITE_OK;
}

static int decode_column(struct run_scan *scan, struct vtab_source *s,
			 const struct run_chunk *chunk, int column, struct tape_err *reterr)
{
	struct tape_err why = { 0 };
	sqlite3_stmt *row;
	int rc = store_statement(&s->tape, STORE_RUN_COLUMN_GET, &row, reterr);

	if (rc < 0)
		return rc;
	if (!scan->columns[column])
		scan->columns[column] = malloc(TAPE_CHUNK_EVENTS * sizeof(int64_t));
	if (!scan->columns[column])
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	sqlite3_bind_int64(row, 1, chunk->id * STORE_COLUMNS_PER_CHUNK + column);
	if (sqlite3_step(row) == SQLITE_ROW)
		rc = tape_records_decode(s->codec, sqlite3_column_blob(row, 0),
					 (size_t)sqlite3_column_bytes(row, 0), (uint32_t)chunk->rows,
					 run_kinds[scan->kind].steps >> column & 1,
					 scan->columns[column], &why);
	else
		rc = tape_err_set(&why, -TAPE_E_FORMAT, "the column is missing");
	sqlite3_reset(row);
	if (rc < 0)
		tape_err_set(reterr, rc, "%s, run %lld, %s chunk %lld, column %d: %s", s->tape.path,
			     (long long)chunk->run, run_kinds[scan->kind].name, (long long)chunk->id,
			     column, why.text);
	return rc;
}

/* Keep the rows of sel[0..n) whose number in @column passes; NULL never does. */
static uint32_t keep(const struct run_scan *scan, const struct vtab_filter *f, int column, uint32_t n)
{
	const int64_t *values = scan->columns[column];
	const uint8_t *set = f->picked & BIT(column + 1) ? f->set[column + 1] : NULL;
	int64_t lo = f->range[column + 1].lo, hi = f->range[column + 1].hi;
	uint32_t kept = 0;

	if (run_kinds[scan->kind].nullable >> column & 1 && lo < 0)
		lo = 0;
	for (uint32_t i = 0; i < n; i++) {
		int64_t v = values[scan->sel[i]];

		scan->sel[kept] = scan->sel[i];
		kept += set ? v >= 0 && v < VTAB_SET_VALUES && set[v] : v >= lo && v <= hi;
	}
	return kept;
}

static int load_chunk(struct run_scan *scan, struct vtab_source *s, const struct vtab_filter *f,
		      uint64_t used, char **ret_message)
{
	const int columns = run_kinds[scan->kind].columns;
	uint64_t tests = f->ranged | f->picked;
	struct tape_err err = { 0 };
	int rc = 0;

	for (int i = 0; rc == 0 && i < columns; i++)
		if ((used | tests) & BIT(i + 1))
			rc = decode_column(scan, s, scan->chunk, i, &err);
	if (rc < 0)
		return vtab_source_failed(rc, &err, ret_message);
	scan->nr = (uint32_t)scan->chunk->rows;
	for (uint32_t i = 0; i < scan->nr; i++)
		scan->sel[i] = i;
	for (int i = 0; i < columns; i++)
		if (tests & BIT(i + 1))
			scan->nr = keep(scan, f, i, scan->nr);
	return SQLITE_OK;
}

int run_scan_next(struct run_scan *scan, struct vtab_source *s, const struct vtab_filter *f,
		  uint64_t used, char **ret_message)
{
	const struct run_kind_spec *k = &run_kinds[scan->kind];

	while (scan->next < scan->chunks_nr) {
		const struct run_chunk *chunk = &scan->chunks[scan->next++];
		int rc;

		if (!vtab_filter_meets(f, 0, chunk->run, chunk->run) ||
		    !vtab_filter_meets(f, k->seq + 1, chunk->first_seq, chunk->last_seq) ||
		    !vtab_filter_meets(f, k->ts + 1, chunk->ts_min, chunk->ts_max))
			continue;
		scan->chunk = chunk;
		rc = load_chunk(scan, s, f, used, ret_message);
		if (rc != SQLITE_OK)
			return rc;
		if (scan->nr)
			return SQLITE_ROW;
	}
	return SQLITE_DONE;
}
