/* SPDX-License-Identifier: MIT */
/* A part of a tape as a tape of its own. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/store_internal.h"
#include "traces/objects.h"

struct cutter {
	struct tape *from, *to;
	const struct tape_cut *cut;
	struct tape_objects *objects; /* "address" is the old id */
	struct tape_marker *markers;
	size_t markers_nr, markers_at;
	struct tape_err *reterr;
};

/* ---- small tables ---- */

/* Copy the rows of @select to @insert, which has as many parameters. */
static int rows_copy(struct cutter *c, const char *select, const char *insert)
{
	sqlite3_stmt *in = NULL, *out = NULL;
	int rc = 0, step = SQLITE_ROW;

	if (sqlite3_prepare_v2(c->from->db, select, -1, &in, NULL) != SQLITE_OK)
		rc = store_fail(c->from, "copying tables", c->reterr);
	else if (sqlite3_prepare_v2(c->to->db, insert, -1, &out, NULL) != SQLITE_OK)
		rc = store_fail(c->to, "copying tables", c->reterr);
	while (rc == 0 && (step = sqlite3_step(in)) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(in); i++)
			sqlite3_bind_value(out, i + 1, sqlite3_column_value(in, i));
		rc = store_run(c->to, out, "copying tables", c->reterr);
	}
	if (rc == 0 && step != SQLITE_DONE)
		rc = store_fail(c->from, "copying tables", c->reterr);
	sqlite3_finalize(in);
	sqlite3_finalize(out);
	return rc;
}

/* meta but what counts events or belongs to the writer. */
static const char meta_select[] =
	"SELECT key, value FROM meta WHERE key NOT IN ('format', 'complete', 'events', 'objects',"
	" 'chunks', 'peak_live', 'null_frees', 'failed_allocs', 'created', 'tool_version')";

static int tables_copy(struct cutter *c)
{
	static const char *const tables[][2] = {
		{ meta_select, "INSERT OR REPLACE INTO meta VALUES(?, ?)" },
		{ "SELECT * FROM cpu", "INSERT INTO cpu VALUES(?, ?)" },
		{ "SELECT * FROM cache", "INSERT INTO cache VALUES(?, ?, ?, ?, ?, ?)" },
		{ "SELECT * FROM cache_knob ORDER BY rowid", "INSERT INTO cache_knob VALUES(?, ?, ?)" },
		{ "SELECT * FROM site", "INSERT INTO site VALUES(?, ?, ?, ?, ?)" },
		{ "SELECT * FROM thread", "INSERT INTO thread VALUES(?, ?, ?)" },
	};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(tables) / sizeof(tables[0]); i++)
		rc = rows_copy(c, tables[i][0], tables[i][1]);
	return rc;
}

/* Losses that touch the times of the cut's events. */
static int losses_copy(struct cutter *c, uint64_t ts_min, uint64_t ts_max)
{
	char select[256];

	snprintf(select, sizeof(select),
		 "SELECT * FROM loss WHERE ts_end >= %" PRId64 " AND ts_begin <= %" PRId64
		 " AND (%d < 0 OR cpu IS NULL OR cpu = %d) ORDER BY rowid",
		 (int64_t)ts_min, (int64_t)ts_max, c->cut->cpu, c->cut->cpu);
	return rows_copy(c, select, "INSERT INTO loss VALUES(?, ?, ?, ?, ?)");
}

static int source_note(struct cutter *c)
{
	const struct tape_range *r = &c->cut->range;
	char text[200];
	int rc;

	snprintf(text, sizeof(text),
		 "seq %" PRIu64 "..%" PRIu64 ", ts %" PRIu64 "..%" PRIu64 ", cpu %d, cache %d",
		 r->seq_begin, r->seq_end, r->ts_begin, r->ts_end, c->cut->cpu, c->cut->cache);
	rc = tape_meta_set(c->to, "cut_source", c->from->path, c->reterr);
	return rc < 0 ? rc : tape_meta_set(c->to, "cut_range", text, c->reterr);
}

/* ---- events ---- */

static int no_memory(struct cutter *c)
{
	return tape_err_set(c->reterr, -ENOMEM, "out of memory");
}

static bool wanted(const struct cutter *c, const struct tape_event *ev)
{
	const struct tape_cut *cut = c->cut;

	if (ev->op == TAPE_OP_MARKER)
		return true;
	return (cut->cpu < 0 || ev->cpu == cut->cpu) &&
	       (cut->cache < 0 || ev->cache == cut->cache || ev->cache == TAPE_NO_CACHE);
}

/* New object and slot for an alloc or a free; an alloc outside the cut makes an orphan. */
static int event_renumber(struct cutter *c, struct tape_event *ev)
{
	struct tape_live *live;
	int rc = 0;

	if (ev->object == TAPE_NO_OBJECT)
		return 0;
	live = tape_objects_find(c->objects, 0, ev->object);
	if (tape_op_allocates(ev->op) && !live) {
		bool has_slot = ev->slot != TAPE_NO_SLOT;

		live = tape_objects_add(c->objects, 0, ev->object);
		if (!live)
			return no_memory(c);
		ev->object = live->object;
		ev->slot = has_slot ? live->slot : TAPE_NO_SLOT;
	} else if (live) {
		ev->object = live->object;
		ev->slot = ev->slot != TAPE_NO_SLOT ? live->slot : TAPE_NO_SLOT;
		if (tape_op_frees(ev->op) && !(ev->flags & TAPE_F_INHERITED))
			rc = tape_objects_remove(c->objects, live, ev->ts, 0);
	} else {
		ev->slot = TAPE_NO_SLOT;
		ev->object = TAPE_NO_OBJECT;
		if (tape_op_frees(ev->op) && !(ev->flags & TAPE_F_INHERITED)) {
			ev->object = tape_objects_orphan(c->objects);
			ev->flags |= TAPE_F_ORPHAN;
		}
	}
	return rc < 0 ? no_memory(c) : 0;
}

/* The text of the marker event @seq. */
static const char *marker_text(struct cutter *c, uint64_t seq)
{
	while (c->markers_at < c->markers_nr && c->markers[c->markers_at].seq < seq)
		c->markers_at++;
	if (c->markers_at == c->markers_nr || c->markers[c->markers_at].seq != seq)
		return "";
	return c->markers[c->markers_at].name;
}

static int event_copy(struct cutter *c, struct tape_event *ev, uint64_t seq)
{
	int rc;

	if (ev->op == TAPE_OP_MARKER)
		return tape_writer_marker(c->to, ev->ts, ev->cpu, marker_text(c, seq), c->reterr);
	rc = event_renumber(c, ev);
	return rc < 0 ? rc : tape_writer_append(c->to, ev, NULL, c->reterr);
}

static int events_copy(struct cutter *c)
{
	uint64_t ts_min = UINT64_MAX, ts_max = 0;
	struct tape_reader *r;
	const struct tape_batch *b;
	int rc = tape_reader_open(c->from, &c->cut->range, TAPE_COLS_ALL, &r, c->reterr);

	if (rc < 0)
		return rc;
	while ((rc = tape_reader_next(r, &b, c->reterr)) == 1) {
		ts_min = ts_min == UINT64_MAX ? b->ts[0] : ts_min;
		ts_max = b->ts[b->events - 1];
		for (uint32_t i = 0; i < b->events && rc >= 0; i++) {
			struct tape_event ev;

			tape_batch_get(b, i, &ev);
			if (wanted(c, &ev))
				rc = event_copy(c, &ev, b->first_seq + i);
		}
		if (rc < 0)
			break;
	}
	tape_reader_close(r);
	return rc < 0 || ts_min == UINT64_MAX ? rc : losses_copy(c, ts_min, ts_max);
}

int tape_cut(struct tape *from, const struct tape_cut *cut, const char *path, bool overwrite,
	     struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_closep_tape) struct tape *to = NULL;
	struct cutter c = { .from = from, .cut = cut, .reterr = reterr };
	int rc = tape_create(path, overwrite, &to, reterr);

	if (rc < 0)
		return rc;
	c.to = to;
	c.objects = tape_objects_create(false);
	rc = c.objects ? tape_markers_get(from, &c.markers, &c.markers_nr, reterr) : no_memory(&c);
	if (rc == 0)
		rc = tables_copy(&c);
	if (rc == 0)
		rc = source_note(&c);
	if (rc == 0)
		rc = events_copy(&c);
	if (rc == 0)
		rc = tape_writer_finish(to, reterr);
	tape_objects_destroy(c.objects);
	free(c.markers);
	if (rc < 0)
		tape_discard(tape_steal(&to));
	return rc;
}
