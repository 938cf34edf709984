/* SPDX-License-Identifier: MIT */
/* Writing events: batches fill, wait a while for late cache names, and become chunks. */
#include "store/writer.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

int store_writer_create(struct tape *t, struct tape_err *reterr)
{
	struct store_writer *w = t->writer = calloc(1, sizeof(*w));

	if (w) {
		w->current = tape_batch_create(TAPE_CHUNK_EVENTS);
		w->codec = tape_codec_create();
		w->encoder = store_encoder_create();
		w->far = malloc(sizeof(*w->far) * STORE_LATE_MAX);
		w->late = malloc(sizeof(*w->late) * STORE_LATE_MAX);
	}
	if (!w || !w->current || !w->codec || !w->encoder || !w->far || !w->late ||
	    store_summary_init(&w->summary) < 0)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	w->begun_nr = 1;
	return 0;
}

void store_writer_destroy(struct store_writer *w)
{
	if (!w)
		return;
	for (uint32_t i = 0; i < w->pending_nr; i++)
		tape_batch_destroy(w->pending[i]);
	for (uint32_t i = 0; i < w->spare_nr; i++)
		tape_batch_destroy(w->spare[i]);
	tape_batch_destroy(w->current);
	store_encoder_destroy(w->encoder);
	tape_codec_destroy(w->codec);
	store_summary_fini(&w->summary);
	free(w->chunk_begin);
	free(w->far);
	free(w->late);
	for (size_t i = w->markers_out; i < w->markers_nr; i++)
		free(w->markers[i].text);
	free(w->markers);
	free(w);
}

int store_writer_fail(struct tape *t, int rc, struct tape_err *reterr)
{
	struct store_writer *w = t->writer;

	if (w->failure.code == 0) {
		store_rollback(t);
		if (reterr)
			w->failure = *reterr;
		w->failure.code = rc;
	}
	return rc;
}

/* 0 when events can be written. */
static int writer_check(struct tape *t, struct tape_err *reterr)
{
	struct store_writer *w = t->writer;

	if (!w)
		return tape_err_set(reterr, -TAPE_E_USAGE, "%s: the tape is not open for appending",
				    t->path);
	if (w->failure.code < 0)
		return tape_err_set(reterr, w->failure.code, "%s",
				    w->failure.text[0] ? w->failure.text : "writing failed before");
	return 0;
}

static int chunk_begin_add(struct store_writer *w, uint64_t first_seq)
{
	if (w->chunks_nr == w->chunks_room) {
		uint64_t room = w->chunks_room ? w->chunks_room * 2 : 1024;
		uint64_t *grown = realloc(w->chunk_begin, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		w->chunk_begin = grown;
		w->chunks_room = room;
	}
	w->chunk_begin[w->chunks_nr++] = first_seq;
	return 0;
}

/* Insert an encoded chunk; commits every few chunks. */
static int chunk_out(struct tape *t, const struct store_encoded *e, struct tape_err *reterr)
{
	struct store_writer *w = t->writer;
	int rc = t->begun ? 0 : store_begin(t, reterr);

	if (rc == 0)
		rc = store_chunk_insert(t, e, reterr);
	if (rc == 0)
		rc = store_markers_out(t, e->batch->first_seq + e->batch->events, reterr);
	if (rc == 0 && ++w->uncommitted >= STORE_CHUNKS_PER_COMMIT) {
		w->uncommitted = 0;
		rc = store_end(t, reterr);
	}
	return rc;
}

/* Insert what the encoder has done; @all: wait for everything it was given. */
static int encoded_out(struct tape *t, bool all, struct tape_err *reterr)
{
	struct store_writer *w = t->writer;
	struct store_encoded *e;
	int rc = 0;

	while (rc == 0 && (e = store_encoder_take(w->encoder, all || store_encoder_full(w->encoder)))) {
		rc = chunk_out(t, e, reterr);
		w->spare[w->spare_nr++] = store_encoder_put(w->encoder);
	}
	return rc;
}

/* Pending batches beyond the newest @keep go to the encoder. */
static int pending_out(struct tape *t, uint32_t keep, struct tape_err *reterr)
{
	struct store_writer *w = t->writer;
	int rc = encoded_out(t, false, reterr);

	while (rc == 0 && w->pending_nr > keep) {
		struct tape_batch *b = w->pending[0];

		if (chunk_begin_add(w, b->first_seq) < 0)
			return tape_err_set(reterr, -ENOMEM, "out of memory");
		store_encoder_submit(w->encoder, (int64_t)w->chunks_nr - 1, b);
		w->pending_nr--;
		memmove(w->pending, w->pending + 1, sizeof(*w->pending) * w->pending_nr);
		rc = encoded_out(t, false, reterr);
	}
	return rc;
}

/* The current batch becomes pending, an empty one takes its place. */
static int batch_turn(struct tape *t, struct tape_err *reterr)
{
	struct store_writer *w = t->writer;
	int rc = pending_out(t, STORE_PENDING - 1, reterr);
	struct tape_batch *fresh;

	if (rc < 0)
		return rc;
	fresh = w->spare_nr ? w->spare[--w->spare_nr] : tape_batch_create(TAPE_CHUNK_EVENTS);
	if (!fresh)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	fresh->events = 0;
	fresh->first_seq = w->next_seq;
	w->pending[w->pending_nr++] = w->current;
	w->current = fresh;
	w->window_object[w->begun_nr % STORE_WINDOW] = w->next_object;
	w->begun_nr++;
	/* chunk begun_nr - 1 is being filled; chunk begun_nr - 1 - STORE_NEAR_CHUNKS is near */
	if (w->begun_nr > STORE_WINDOW)
		w->near_object = w->window_object[w->begun_nr % STORE_WINDOW];
	return 0;
}

static int event_check(struct tape *t, const struct tape_event *ev, struct tape_err *reterr)
{
	struct store_writer *w = t->writer;

	if (ev->ts < w->last_ts)
		return tape_err_set(reterr, -TAPE_E_FORMAT,
				    "%s, seq %" PRIu64 ": time goes back from %" PRIu64 " to %" PRIu64
				    " ns", t->path, w->next_seq, w->last_ts, ev->ts);
	if (ev->op >= TAPE_OP_MAX || ev->ctx >= TAPE_CTX_MAX || ev->cpu >= TAPE_CPU_MAX ||
	    ev->node_req < -1 || ev->node_req >= TAPE_NODE_MAX || ev->mem_node < -1 ||
	    ev->mem_node >= TAPE_NODE_MAX ||
	    (ev->cache > TAPE_CACHE_MAX && ev->cache != TAPE_NO_CACHE))
		return tape_err_set(reterr, -TAPE_E_LIMIT,
				    "%s, seq %" PRIu64 ": op %d, ctx %d, cpu %d, nodes %d and %d or cache"
				    " %d is beyond its limit", t->path, w->next_seq, ev->op, ev->ctx,
				    ev->cpu, ev->node_req, ev->mem_node, ev->cache);
	return 0;
}

/* Keep a second record of a free that is far behind its alloc. */
static int far_note(struct tape *t, const struct tape_event *ev, struct tape_err *reterr)
{
	struct store_writer *w = t->writer;

	w->far[w->far_nr++] = (struct tape_far_free){
		.object = ev->object,
		.seq = w->next_seq,
		.ts = ev->ts,
		.site = ev->site,
		.cpu = ev->cpu,
		.flags = ev->flags,
	};
	return w->far_nr < STORE_LATE_MAX ? 0 : store_far_spill(t, reterr);
}

int tape_writer_append(struct tape *t, const struct tape_event *ev, uint64_t *ret_seq,
		       struct tape_err *reterr)
{
	struct store_writer *w = t->writer;
	struct tape_err own = { 0 }, *why = reterr ? reterr : &own;
	int rc;

	if (!w || w->failure.code < 0)
		return writer_check(t, reterr);
	rc = event_check(t, ev, reterr);
	if (rc < 0)
		return rc;
	if (w->current->events == TAPE_CHUNK_EVENTS)
		rc = batch_turn(t, why);
	if (rc == 0 && ev->object < w->near_object && tape_op_frees(ev->op))
		rc = far_note(t, ev, why);
	if (rc < 0)
		return store_writer_fail(t, rc, why);
	tape_batch_push(w->current, ev);
	if (ev->object >= w->next_object && ev->object != TAPE_NO_OBJECT)
		w->next_object = ev->object + 1;
	w->last_ts = ev->ts;
	if (ret_seq)
		*ret_seq = w->next_seq;
	w->next_seq++;
	return 0;
}

/* Room for one more marker row. */
static struct store_marker *marker_add(struct store_writer *w)
{
	if (w->markers_nr == w->markers_room) {
		size_t room = w->markers_room ? w->markers_room * 2 : 64;
		struct store_marker *grown = realloc(w->markers, room * sizeof(*grown));

		if (!grown)
			return NULL;
		w->markers = grown;
		w->markers_room = room;
	}
	return &w->markers[w->markers_nr];
}

int tape_writer_marker(struct tape *t, uint64_t ts, uint16_t cpu, const char *text,
		       struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) char *copy = strdup(text);
	struct tape_event ev = tape_event_blank();
	struct store_marker *m;
	uint64_t seq;
	int rc = writer_check(t, reterr);

	if (rc < 0)
		return rc;
	m = marker_add(t->writer);
	if (!m || !copy)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	ev.ts = ev.ts_lo = ev.ts_hi = ts;
	ev.cpu = cpu;
	ev.op = TAPE_OP_MARKER;
	ev.arg = (int64_t)t->writer->markers_nr;
	rc = tape_writer_append(t, &ev, &seq, reterr);
	if (rc < 0)
		return rc;
	/* the row must not be on disk before its event */
	*m = (struct store_marker){ .seq = seq, .ts = ts, .cpu = cpu, .text = tape_steal(&copy) };
	t->writer->markers_nr++;
	return 0;
}

int tape_writer_resolve(struct tape *t, uint64_t alloc_seq, uint64_t object, uint16_t cache,
			bool unnamed, struct tape_err *reterr)
{
	struct store_writer *w = t->writer;
	struct tape_batch *b;
	uint32_t i = 0;
	int rc = writer_check(t, reterr);

	(void)object; /* its row is made from the event */
	if (rc < 0)
		return rc;
	if (alloc_seq >= w->next_seq || cache > TAPE_CACHE_MAX)
		return tape_err_set(reterr, -TAPE_E_LIMIT, "no event %" PRIu64 " to name", alloc_seq);
	while (i < w->pending_nr && alloc_seq - w->pending[i]->first_seq >= w->pending[i]->events)
		i++;
	b = i < w->pending_nr ? w->pending[i] : w->current;
	if (alloc_seq - b->first_seq >= b->events) {
		const struct store_late late = { alloc_seq, w->late_nr, cache, unnamed };

		return store_late_add(t, &late, reterr);
	}
	i = (uint32_t)(alloc_seq - b->first_seq);
	b->cache[i] = cache;
	b->flags[i] = (uint16_t)((b->flags[i] & ~TAPE_F_UNNAMED) | (unnamed ? TAPE_F_UNNAMED : 0));
	return 0;
}

/* Everything pending into chunks, committed. */
static int writer_flush(struct tape *t, struct tape_err *reterr)
{
	struct store_writer *w = t->writer;
	int rc = w->current->events ? batch_turn(t, reterr) : 0;

	if (rc == 0)
		rc = pending_out(t, 0, reterr);
	if (rc == 0)
		rc = encoded_out(t, true, reterr);
	if (rc == 0 && t->begun) {
		w->uncommitted = 0;
		rc = store_end(t, reterr);
	}
	return rc;
}

int tape_writer_flush(struct tape *t, struct tape_err *reterr)
{
	struct tape_err own = { 0 }, *why = reterr ? reterr : &own;
	int rc = writer_check(t, reterr);

	if (rc < 0)
		return rc;
	rc = writer_flush(t, why);
	return rc < 0 ? store_writer_fail(t, rc, why) : 0;
}

/* What meta says of a finished tape. */
static int meta_write(struct tape *t, struct tape_err *reterr)
{
	struct tape_totals totals;
	int rc = tape_totals_get(t, &totals, reterr);

	if (rc == 0)
		rc = tape_meta_set_int(t, "events", (int64_t)totals.events, reterr);
	if (rc == 0)
		rc = tape_meta_set_int(t, "objects", (int64_t)totals.objects, reterr);
	if (rc == 0)
		rc = tape_meta_set_int(t, "peak_live", (int64_t)totals.peak_live, reterr);
	if (rc == 0)
		rc = tape_meta_set_int(t, "chunks", (int64_t)totals.chunks, reterr);
	return rc == 0 ? tape_meta_set_int(t, "complete", 1, reterr) : rc;
}

/* Back to one file.  A reader that is looking on keeps the journal until it leaves. */
static int journal_end(struct tape *t, struct tape_err *reterr)
{
	struct tape_err why = { 0 };
	int rc;

	sqlite3_busy_timeout(t->db, 1000);
	rc = store_exec(t, "PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(TRUNCATE);"
			   "PRAGMA journal_mode = DELETE", "finishing the tape", &why);
	if (rc < 0 && (sqlite3_errcode(t->db) & 0xff) != SQLITE_BUSY &&
	    (sqlite3_errcode(t->db) & 0xff) != SQLITE_LOCKED)
		return tape_err_set(reterr, rc, "%s", why.text);
	sqlite3_busy_timeout(t->db, STORE_BUSY_MS);
	return 0;
}

static int writer_finish(struct tape *t, struct tape_err *reterr)
{
	int rc = writer_flush(t, reterr);

	if (rc == 0)
		rc = store_begin(t, reterr);
	if (rc == 0)
		rc = store_far_spill(t, reterr);
	if (rc == 0)
		rc = store_late_apply(t, reterr);
	if (rc == 0)
		rc = meta_write(t, reterr);
	if (rc == 0)
		rc = store_end(t, reterr);
	if (rc < 0)
		return rc;
	store_statements_drop(t);
	return t->path[0] ? journal_end(t, reterr) : 0;
}

int tape_writer_finish(struct tape *t, struct tape_err *reterr)
{
	struct tape_err own = { 0 }, *why = reterr ? reterr : &own;
	int rc = writer_check(t, reterr);

	if (rc < 0)
		return rc;
	rc = writer_finish(t, why);
	if (rc < 0)
		return store_writer_fail(t, rc, why);
	store_writer_destroy(t->writer);
	t->writer = NULL;
	return store_replace(t, reterr);
}
