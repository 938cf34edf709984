/* SPDX-License-Identifier: MIT */
/* What comes after its chunk was written: far frees and late cache names. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/writer.h"

/* ---- far frees ---- */

static int far_compare(const void *a, const void *b)
{
	const struct tape_far_free *x = a, *y = b;
	uint64_t gx = x->object >> STORE_OBJECTS_SHIFT, gy = y->object >> STORE_OBJECTS_SHIFT;

	if (gx != gy)
		return gx < gy ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static int far_row(struct tape *t, const struct tape_far_free *frees, uint32_t nr,
		   struct tape_err *reterr)
{
	int64_t id = (int64_t)(frees[0].object >> STORE_OBJECTS_SHIFT) * STORE_FAR_PER_OBJECTS;
	const void *data;
	size_t bytes;
	sqlite3_stmt *s;
	int rc = tape_far_encode(t->writer->codec, frees, nr, &data, &bytes);

	if (rc < 0)
		return tape_err_set(reterr, rc, "encoding far frees: %s", tape_err_name(rc));
	rc = store_statement(t, STORE_FAR_ADD, &s, reterr);
	if (rc < 0)
		return rc;
	sqlite3_bind_int64(s, 1, id);
	sqlite3_bind_int64(s, 2, nr);
	sqlite3_bind_blob64(s, 3, data, bytes, SQLITE_STATIC);
	return store_run(t, s, "writing far frees", reterr);
}

int store_far_spill(struct tape *t, struct tape_err *reterr)
{
	struct store_writer *w = t->writer;
	int rc = t->begun ? 0 : store_begin(t, reterr);

	qsort(w->far, w->far_nr, sizeof(*w->far), far_compare);
	for (uint32_t begin = 0, end; rc == 0 && begin < w->far_nr; begin = end) {
		uint64_t group = w->far[begin].object >> STORE_OBJECTS_SHIFT;

		for (end = begin + 1; end < w->far_nr && end - begin < TAPE_CHUNK_EVENTS; end++)
			if (w->far[end].object >> STORE_OBJECTS_SHIFT != group)
				break;
		rc = far_row(t, w->far + begin, end - begin, reterr);
	}
	w->far_nr = 0;
	return rc;
}

/* ---- late cache names ---- */

static int late_compare(const void *a, const void *b)
{
	const struct store_late *x = a, *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Id of the written chunk that holds @seq. */
static int64_t chunk_of(const struct store_writer *w, uint64_t seq)
{
	uint64_t lo = 0, hi = w->chunks_nr;

	assert(hi > 0);
	while (hi - lo > 1) {
		uint64_t middle = lo + (hi - lo) / 2;

		if (w->chunk_begin[middle] <= seq)
			lo = middle;
		else
			hi = middle;
	}
	return (int64_t)lo;
}

/* The remembered names to a temporary table, grouped by chunk. */
static int late_spill(struct tape *t, struct tape_err *reterr)
{
	struct store_writer *w = t->writer;
	int rc = 0;

	if (!w->late_spilled)
		rc = store_exec(t, "CREATE TEMP TABLE late(chunk INTEGER NOT NULL, data BLOB NOT NULL)",
				"remembering cache names", reterr);
	w->late_spilled = true;
	qsort(w->late, w->late_nr, sizeof(*w->late), late_compare);
	for (uint32_t begin = 0, end; rc == 0 && begin < w->late_nr; begin = end) {
		int64_t chunk = chunk_of(w, w->late[begin].seq);
		sqlite3_stmt *s;

		for (end = begin + 1; end < w->late_nr; end++)
			if (chunk + 1 < (int64_t)w->chunks_nr &&
			    w->late[end].seq >= w->chunk_begin[chunk + 1])
				break;
		rc = store_statement(t, STORE_LATE_ADD, &s, reterr);
		if (rc < 0)
			break;
		sqlite3_bind_int64(s, 1, chunk);
		sqlite3_bind_blob64(s, 2, w->late + begin, sizeof(*w->late) * (end - begin),
				    SQLITE_STATIC);
		rc = store_run(t, s, "remembering cache names", reterr);
	}
	w->late_nr = 0;
	return rc;
}

int store_late_add(struct tape *t, const struct store_late *late, struct tape_err *reterr)
{
	struct store_writer *w = t->writer;

	w->late[w->late_nr++] = *late;
	return w->late_nr < STORE_LATE_MAX ? 0 : late_spill(t, reterr);
}

static void batch_patch(struct tape_batch *b, const struct store_late *late, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		uint32_t row = (uint32_t)(late[i].seq - b->first_seq);

		assert(row < b->events);
		b->cache[row] = late[i].cache;
		b->flags[row] = (uint16_t)((b->flags[row] & ~TAPE_F_UNNAMED) |
					   (late[i].unnamed ? TAPE_F_UNNAMED : 0));
	}
}

/* Apply every list of the chunk @s stands on; moves @s to the next chunk's first list. */
static int chunk_patch(struct tape *t, const struct store_chunk *chunks, sqlite3_stmt *s, int *step,
		       struct tape_batch *b, struct tape_err *reterr)
{
	struct store_writer *w = t->writer;
	int64_t id = sqlite3_column_int64(s, 0);
	struct store_bytes bytes;
	int rc;

	b->valid = 0;
	rc = store_chunk_decode(t, w->codec, &chunks[id], TAPE_COLS_SUMMARY, b, reterr);
	if (rc == 0)
		rc = store_patched_bytes(w->codec, b, &bytes, reterr);
	while (rc == 0 && *step == SQLITE_ROW && sqlite3_column_int64(s, 0) == id) {
		batch_patch(b, sqlite3_column_blob(s, 1),
			    (size_t)sqlite3_column_bytes(s, 1) / sizeof(struct store_late));
		*step = sqlite3_step(s);
	}
	if (rc < 0)
		return rc;
	return store_chunk_rewrite(t, w->codec, &chunks[id], b, &bytes, &w->summary, reterr);
}

/* All lists, chunk by chunk. */
static int chunks_patch(struct tape *t, const struct store_chunk *chunks, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_batch_destroyp) struct tape_batch *b = tape_batch_create(TAPE_CHUNK_EVENTS);
	sqlite3_stmt *s;
	int rc = 0, step;

	if (!b)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	/* within a chunk in the order they were written, so that the last name wins */
	if (sqlite3_prepare_v2(t->db, "SELECT chunk, data FROM temp.late ORDER BY chunk, rowid", -1, &s,
			       NULL) != SQLITE_OK)
		return store_fail(t, "naming caches", reterr);
	step = sqlite3_step(s);
	while (rc == 0 && step == SQLITE_ROW)
		rc = chunk_patch(t, chunks, s, &step, b, reterr);
	if (rc == 0 && step != SQLITE_DONE)
		rc = store_fail(t, "naming caches", reterr);
	sqlite3_finalize(s);
	return rc;
}

int store_late_apply(struct tape *t, struct tape_err *reterr)
{
	struct store_writer *w = t->writer;
	struct store_chunk *chunks = NULL;
	size_t chunks_nr;
	int rc;

	if (!w->late_nr && !w->late_spilled)
		return 0;
	rc = late_spill(t, reterr);
	if (rc == 0)
		rc = store_chunks_load(t, &chunks, &chunks_nr, reterr);
	if (rc == 0)
		rc = chunks_patch(t, chunks, reterr);
	free(chunks);
	sqlite3_finalize(t->statements[STORE_LATE_ADD]);
	t->statements[STORE_LATE_ADD] = NULL;
	if (rc == 0)
		rc = store_exec(t, "DROP TABLE temp.late", "naming caches", reterr);
	w->late_spilled = false;
	return rc;
}

/* ---- markers ---- */

static int marker_out(struct tape *t, struct store_marker *m, struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc = store_statement(t, STORE_MARKER_ADD, &s, reterr);

	if (rc < 0)
		return rc;
	store_bind_u64(s, 1, m->seq);
	store_bind_u64(s, 2, m->ts);
	sqlite3_bind_int(s, 3, m->cpu);
	sqlite3_bind_text(s, 4, m->text, -1, SQLITE_STATIC);
	rc = store_run(t, s, "writing a marker", reterr);
	if (rc == 0) {
		free(m->text);
		m->text = NULL;
	}
	return rc;
}

int store_markers_out(struct tape *t, uint64_t end_seq, struct tape_err *reterr)
{
	struct store_writer *w = t->writer;
	int rc = 0;

	while (rc == 0 && w->markers_out < w->markers_nr && w->markers[w->markers_out].seq < end_seq) {
		rc = marker_out(t, &w->markers[w->markers_out], reterr);
		w->markers_out += rc == 0;
	}
	return rc;
}
