/* SPDX-License-Identifier: MIT */
/* Reading event chunks: their index and their columns. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "store/store_internal.h"

static uint64_t column_u64(sqlite3_stmt *s, int at)
{
	return (uint64_t)sqlite3_column_int64(s, at);
}

static bool is_null(sqlite3_stmt *s, int at)
{
	return sqlite3_column_type(s, at) == SQLITE_NULL;
}

/* One row into *ret_chunk, checked against the event that must come next. */
static int chunk_row(struct tape *t, sqlite3_stmt *s, const struct store_chunk *before,
		     struct store_chunk *ret_chunk, struct tape_err *reterr)
{
	uint64_t expected_seq = before ? before->first_seq + before->events : 0;
	uint64_t last_seq = column_u64(s, 2), events = column_u64(s, 5);
	struct store_chunk c = {
		.id = sqlite3_column_int64(s, 0),
		.first_seq = column_u64(s, 1),
		.ts_min = column_u64(s, 3),
		.ts_max = column_u64(s, 4),
		.events = (uint32_t)events,
		.columns = (uint32_t)column_u64(s, 6),
		.first_object = is_null(s, 7) ? UINT64_MAX : column_u64(s, 7),
		.last_object = is_null(s, 7) ? 0 : column_u64(s, 8),
		.cpu_mask = column_u64(s, 9),
	};

	if (events == 0 || events > TAPE_CHUNK_EVENTS || last_seq - c.first_seq + 1 != events ||
	    c.id != (before ? before->id + 1 : 0) || (c.columns & ~TAPE_COLS_ALL) ||
	    c.ts_min > c.ts_max || (before && c.ts_min < before->ts_max))
		return tape_err_set(reterr, -TAPE_E_FORMAT, "%s: chunk %" PRId64 " is not valid", t->path,
				    c.id);
	if (c.first_seq != expected_seq)
		return tape_err_set(reterr, -TAPE_E_FORMAT,
				    "%s: chunk %" PRId64 " begins at seq %" PRIu64
				    ", expected %" PRIu64 ": a chunk is missing", t->path, c.id,
				    c.first_seq, expected_seq);
	*ret_chunk = c;
	return 0;
}

int store_chunks_load(struct tape *t, struct store_chunk **ret_chunks, size_t *ret_nr,
		      struct tape_err *reterr)
{
	struct store_chunk *chunks = NULL;
	size_t nr = 0, room = 0;
	sqlite3_stmt *s;
	int rc = 0, step = SQLITE_DONE;

	if (store_prepare(t, "SELECT id, first_seq, last_seq, ts_min, ts_max, events, columns,"
			     " first_object, last_object, cpu_mask FROM \"%w\".chunk ORDER BY id", 0,
			  &s) != SQLITE_OK)
		return store_fail(t, "reading the chunk index", reterr);
	while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
		if (nr == room) {
			size_t want = room ? room * 2 : 64;
			struct store_chunk *grown = realloc(chunks, want * sizeof(*chunks));

			if (!grown) {
				rc = tape_err_set(reterr, -ENOMEM, "out of memory");
				break;
			}
			chunks = grown;
			room = want;
		}
		rc = chunk_row(t, s, nr ? &chunks[nr - 1] : NULL, &chunks[nr], reterr);
		nr++;
	}
	if (rc == 0 && step != SQLITE_DONE)
		rc = store_fail(t, "reading the chunk index", reterr);
	sqlite3_finalize(s);
	if (rc < 0) {
		free(chunks);
		return rc;
	}
	*ret_chunks = chunks;
	*ret_nr = nr;
	return 0;
}

static int column_read(struct tape *t, struct tape_codec *c, const struct store_chunk *chunk,
		       enum tape_col col, struct tape_batch *b, struct tape_err *reterr)
{
	struct tape_err why = { 0 };
	sqlite3_stmt *s;
	int rc, step;

	if (!(chunk->columns & 1u << col))
		return tape_column_decode(c, col, NULL, 0, b, reterr);
	rc = store_statement(t, STORE_COLUMN_GET, &s, reterr);
	if (rc < 0)
		return rc;
	sqlite3_bind_int64(s, 1, chunk->id * STORE_COLUMNS_PER_CHUNK + col);
	step = sqlite3_step(s);
	if (step == SQLITE_ROW && sqlite3_column_bytes(s, 0) > 0)
		rc = tape_column_decode(c, col, sqlite3_column_blob(s, 0),
					(size_t)sqlite3_column_bytes(s, 0), b, &why);
	else if (step == SQLITE_ROW || step == SQLITE_DONE)
		rc = tape_err_set(&why, -TAPE_E_FORMAT, "column %s is missing", tape_column_name(col));
	else
		rc = store_fail(t, "reading a column", &why);
	sqlite3_reset(s);
	if (rc < 0)
		tape_err_set(reterr, rc, "%s, chunk %" PRId64 " (seq %" PRIu64 "): %s", t->path,
			     chunk->id, chunk->first_seq, why.text);
	return rc;
}

int store_chunk_decode(struct tape *t, struct tape_codec *c, const struct store_chunk *chunk,
		       uint32_t columns, struct tape_batch *b, struct tape_err *reterr)
{
	uint32_t wanted = tape_columns_close(columns) & ~b->valid;
	sqlite3_stmt *hold;
	int rc = store_statement(t, STORE_CHUNK_HOLD, &hold, reterr);

	if (rc < 0)
		return rc;
	assert(chunk->events <= b->capacity);
	/* an open statement keeps the file's read lock: one lock a chunk, not one a column */
	sqlite3_bind_int64(hold, 1, chunk->id);
	sqlite3_step(hold);
	b->first_seq = chunk->first_seq;
	b->events = chunk->events;
	while (wanted && rc == 0) {
		/* the lowest column whose needs are met; needs are closed, so there is one */
		for (int col = 0; col < TAPE_COL_MAX; col++) {
			if (!(wanted & 1u << col) || (tape_column_needs(col) & ~b->valid))
				continue;
			rc = column_read(t, c, chunk, col, b, reterr);
			wanted &= ~(1u << col);
			break;
		}
	}
	sqlite3_reset(hold);
	return rc;
}
