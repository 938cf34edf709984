/* SPDX-License-Identifier: MIT */
/* Checking a whole tape: every stored number is worked out again from the events. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_internal.h"
#include "traces/far.h"
#include "traces/lifetime.h"

struct verify {
	struct tape *t;
	struct tape_err *reterr;
	struct store_chunk *chunks;
	size_t chunks_nr;
	struct tape_codec *codec;
	struct tape_batch *batch;
	struct store_summary summary;
	struct tape_lifetime *lifetime;
	struct tape_far_free *far; /* TAPE_CHUNK_EVENTS */
	bool complete;
	/* worked out from the events */
	uint64_t stats_nr, columns_nr, markers_nr, events, peak_live;
	uint64_t window_object[STORE_NEAR_CHUNKS + 1], next_object;
	uint64_t far_nr, far_sum; /* far frees: count and a sum of hashes, in any order */
};

static int bad_chunk(struct verify *v, const struct store_chunk *c, const char *what)
{
	return tape_err_set(v->reterr, -TAPE_E_FORMAT, "%s, chunk %" PRId64 " (seq %" PRIu64 "): %s",
			    v->t->path, c->id, c->first_seq, what);
}

static int bad_tape(struct verify *v, const char *what)
{
	return tape_err_set(v->reterr, -TAPE_E_FORMAT, "%s: %s", v->t->path, what);
}

/* ---- times ---- */

static int times_check(struct verify *v, const struct store_chunk *c)
{
	const struct tape_batch *b = v->batch;

	for (uint32_t i = 1; i < b->events; i++)
		if (b->ts[i] < b->ts[i - 1])
			return bad_chunk(v, c, "time goes back");
	for (uint32_t i = 0; i < b->events; i++)
		if (b->ts_lo[i] > b->ts_hi[i])
			return bad_chunk(v, c, "ts_lo is above ts_hi");
	if (b->ts[0] != c->ts_min || b->ts[b->events - 1] != c->ts_max)
		return bad_chunk(v, c, "ts_min or ts_max differ from the events");
	return 0;
}

/* ---- chunk rows and chunk_stat ---- */

static int stats_check(struct verify *v, const struct store_chunk *c)
{
	static const char sql[] = "SELECT id, chunk, cpu, ifnull(cache, 65535), op, events, bytes FROM"
				  " chunk_stat WHERE id >= ? AND id < ? ORDER BY id";
	sqlite3_stmt *s;
	bool good = true;
	uint32_t i = 0;

	if (sqlite3_prepare_v2(v->t->db, sql, -1, &s, NULL) != SQLITE_OK)
		return store_fail(v->t, "reading chunk_stat", v->reterr);
	sqlite3_bind_int64(s, 1, c->id * STORE_STATS_PER_CHUNK);
	sqlite3_bind_int64(s, 2, (c->id + 1) * STORE_STATS_PER_CHUNK);
	for (; good && sqlite3_step(s) == SQLITE_ROW; i++) {
		const struct store_stat *stat = &v->summary.stats[i];
		const char *op = (const char *)sqlite3_column_text(s, 4);

		good = i < v->summary.stats_nr && op && sqlite3_column_int64(s, 1) == c->id &&
		       sqlite3_column_int64(s, 2) == (int64_t)(stat->key >> 32) &&
		       sqlite3_column_int64(s, 3) == (int64_t)(stat->key >> 8 & 0xffff) &&
		       tape_op_parse(op) == (int)(stat->key & 0xff) &&
		       sqlite3_column_int64(s, 5) == (int64_t)stat->events &&
		       sqlite3_column_int64(s, 6) == (int64_t)stat->bytes;
	}
	sqlite3_finalize(s);
	v->stats_nr += i;
	return good && i == v->summary.stats_nr ? 0 : bad_chunk(v, c, "chunk_stat differs from the events");
}

/* The numbers of the chunk row that the summary also has, in the order of the query. */
static int row_check(struct verify *v, const struct store_chunk *c)
{
	static const char sql[] =
		"SELECT cpu_mask, ifnull(cpu, -1), ifnull(first_object, -1), ifnull(last_object, 0),"
		" slots, inferred_allocs, inferred_frees, orphan_frees, null_frees, failed_allocs,"
		" bytes, (SELECT total(length(data)) FROM chunk_column WHERE id >= ?1 * 64 AND"
		" id < (?1 + 1) * 64), caches FROM chunk WHERE id = ?1";
	const struct store_summary *y = &v->summary;
	const uint64_t want[] = { y->cpu_mask, (uint64_t)(int64_t)y->cpu, y->first_object,
		y->last_object, y->slots, y->inferred_allocs, y->inferred_frees, y->orphan_frees,
		y->null_frees, y->failed_allocs };
	sqlite3_stmt *s;
	bool good;

	if (sqlite3_prepare_v2(v->t->db, sql, -1, &s, NULL) != SQLITE_OK)
		return store_fail(v->t, "reading a chunk", v->reterr);
	sqlite3_bind_int64(s, 1, c->id);
	good = sqlite3_step(s) == SQLITE_ROW;
	for (int i = 0; good && i < (int)(sizeof(want) / sizeof(want[0])); i++)
		good = (uint64_t)sqlite3_column_int64(s, i) == want[i];
	good = good && sqlite3_column_int64(s, 10) == sqlite3_column_int64(s, 11) &&
	       sqlite3_column_bytes(s, 12) == (int)y->caches_bytes &&
	       (!y->caches_bytes || !memcmp(sqlite3_column_blob(s, 12), y->caches, y->caches_bytes));
	sqlite3_finalize(s);
	return good ? 0 : bad_chunk(v, c, "the chunk row differs from the events");
}

/* ---- far frees ---- */

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
	return x ^ x >> 31;
}

static uint64_t far_hash(const struct tape_far_free *f)
{
	uint64_t hash = mix(f->object + 1);

	hash = mix(hash ^ f->seq);
	hash = mix(hash ^ f->ts);
	return mix(hash ^ ((uint64_t)f->site << 32 | (uint32_t)f->cpu << 16 | f->flags));
}

/* The events of chunk number @index that must stand in far_free. */
static void far_expect(struct verify *v, size_t index)
{
	const struct tape_batch *b = v->batch;
	uint64_t near_object = 0;

	v->window_object[index % (STORE_NEAR_CHUNKS + 1)] = v->next_object;
	if (index > STORE_NEAR_CHUNKS)
		near_object = v->window_object[(index + 1) % (STORE_NEAR_CHUNKS + 1)];
	for (uint32_t i = 0; i < b->events; i++) {
		struct tape_far_free f = { b->object[i], b->first_seq + i, b->ts[i], b->site[i],
					   b->cpu[i], b->flags[i] };

		if (tape_op_frees(b->op[i]) && f.object < near_object) {
			v->far_nr++;
			v->far_sum += far_hash(&f);
		}
		if (f.object != TAPE_NO_OBJECT && f.object >= v->next_object)
			v->next_object = f.object + 1;
	}
}

/* One far_free row: taken off again what far_expect() added. */
static int far_row(struct verify *v, sqlite3_stmt *s)
{
	int64_t id = sqlite3_column_int64(s, 0), frees = sqlite3_column_int64(s, 1);
	int rc;

	if (frees < 1 || frees > TAPE_CHUNK_EVENTS || (uint64_t)frees > v->far_nr)
		return bad_tape(v, "far_free differs from the events");
	rc = tape_far_decode(v->codec, sqlite3_column_blob(s, 2), (size_t)sqlite3_column_bytes(s, 2),
			     (uint32_t)frees, v->far, v->reterr);
	if (rc < 0)
		return rc;
	for (int64_t i = 0; i < frees; i++) {
		if ((int64_t)(v->far[i].object >> STORE_OBJECTS_SHIFT) != id / STORE_FAR_PER_OBJECTS)
			return bad_tape(v, "a far_free row holds an object of another group");
		v->far_sum -= far_hash(&v->far[i]);
	}
	v->far_nr -= (uint64_t)frees;
	return 0;
}

static int fars_check(struct verify *v)
{
	sqlite3_stmt *s;
	int rc = 0, step = SQLITE_ROW;

	if (sqlite3_prepare_v2(v->t->db, "SELECT id, frees, data FROM far_free ORDER BY id", -1, &s,
			       NULL) != SQLITE_OK)
		return store_fail(v->t, "reading far frees", v->reterr);
	while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW)
		rc = far_row(v, s);
	if (rc == 0 && step != SQLITE_DONE)
		rc = store_fail(v->t, "reading far frees", v->reterr);
	sqlite3_finalize(s);
	if (rc == 0 && v->complete && (v->far_nr || v->far_sum))
		rc = bad_tape(v, "far_free differs from the events");
	return rc;
}

/* ---- the whole ---- */

static int chunk_check(struct verify *v, size_t index)
{
	const struct store_chunk *c = &v->chunks[index];
	struct tape_batch *b = v->batch;
	struct tape_err why = { 0 };
	int rc;

	b->valid = 0;
	rc = store_chunk_decode(v->t, v->codec, c, TAPE_COLS_ALL, b, v->reterr);
	if (rc == 0)
		rc = times_check(v, c);
	if (rc < 0)
		return rc;
	rc = tape_lifetime_take(v->lifetime, b, &why);
	if (rc < 0)
		return tape_err_set(v->reterr, rc, "%s, chunk %" PRId64 ": %s", v->t->path, c->id,
				    why.text);
	store_summary_take(&v->summary, b);
	far_expect(v, index);
	v->events += b->events;
	v->columns_nr += (uint32_t)__builtin_popcount(c->columns);
	if (v->summary.slots > v->peak_live)
		v->peak_live = v->summary.slots;
	for (uint32_t i = 0; i < b->events; i++)
		v->markers_nr += b->op[i] == TAPE_OP_MARKER;
	rc = stats_check(v, c);
	return rc < 0 ? rc : row_check(v, c);
}

static int count_check(struct verify *v, const char *sql, uint64_t want, const char *what)
{
	int64_t got;
	int rc = store_query_int(v->t, sql, 0, &got, v->reterr);

	if (rc == 0 && (uint64_t)got != want)
		rc = tape_err_set(v->reterr, -TAPE_E_FORMAT, "%s: %s: %" PRId64 ", expected %" PRIu64,
				  v->t->path, what, got, want);
	return rc;
}

static int counts_check(struct verify *v)
{
	uint64_t objects;
	int rc = count_check(v, "SELECT count(*) FROM chunk_stat", v->stats_nr, "rows of chunk_stat");

	if (rc == 0)
		rc = count_check(v, "SELECT count(*) FROM chunk_column", v->columns_nr,
				 "rows of chunk_column");
	if (rc == 0)
		rc = count_check(v, "SELECT count(*) FROM marker", v->markers_nr, "rows of marker");
	if (rc < 0 || !v->complete)
		return rc;
	rc = tape_lifetime_finish(v->lifetime, &objects, v->reterr);
	if (rc == 0)
		rc = count_check(v, "SELECT value FROM meta WHERE key = 'events'", v->events,
				 "meta.events");
	if (rc == 0)
		rc = count_check(v, "SELECT value FROM meta WHERE key = 'objects'", objects,
				 "meta.objects");
	if (rc == 0)
		rc = count_check(v, "SELECT value FROM meta WHERE key = 'chunks'", v->chunks_nr,
				 "meta.chunks");
	if (rc == 0)
		rc = count_check(v, "SELECT value FROM meta WHERE key = 'peak_live'", v->peak_live,
				 "meta.peak_live");
	return rc;
}

/* SQLite's own view of the file. */
static int pages_check(struct verify *v)
{
	sqlite3_stmt *s;
	const char *text = "no answer";
	int rc = 0;

	if (sqlite3_prepare_v2(v->t->db, "PRAGMA quick_check(1)", -1, &s, NULL) != SQLITE_OK)
		return store_fail(v->t, "checking the file", v->reterr);
	if (sqlite3_step(s) == SQLITE_ROW)
		text = (const char *)sqlite3_column_text(s, 0);
	if (strcmp(text, "ok") != 0)
		rc = bad_tape(v, text);
	sqlite3_finalize(s);
	return rc;
}

static int verify_init(struct verify *v)
{
	v->codec = tape_codec_create();
	v->batch = tape_batch_create(TAPE_CHUNK_EVENTS);
	v->lifetime = tape_lifetime_create();
	v->far = malloc(sizeof(*v->far) * TAPE_CHUNK_EVENTS);
	if (!v->codec || !v->batch || !v->lifetime || !v->far || store_summary_init(&v->summary) < 0)
		return tape_err_set(v->reterr, -ENOMEM, "out of memory");
	v->complete = tape_meta_get_int(v->t, "complete", 0) == 1;
	return store_chunks_load(v->t, &v->chunks, &v->chunks_nr, v->reterr);
}

static void verify_fini(struct verify *v)
{
	tape_codec_destroy(v->codec);
	tape_batch_destroy(v->batch);
	tape_lifetime_destroy(v->lifetime);
	store_summary_fini(&v->summary);
	free(v->far);
	free(v->chunks);
}

int tape_verify(struct tape *t, char **ret_note, struct tape_err *reterr)
{
	struct verify v = { .t = t, .reterr = reterr };
	char *note = NULL;
	int rc = store_schema_check(t, reterr);

	if (rc == 0)
		rc = verify_init(&v);
	if (rc == 0)
		rc = pages_check(&v);
	for (size_t i = 0; rc == 0 && i < v.chunks_nr; i++)
		rc = chunk_check(&v, i);
	if (rc == 0)
		rc = counts_check(&v);
	if (rc == 0)
		rc = fars_check(&v);
	if (rc == 0 && !v.complete &&
	    asprintf(&note, "the recording was cut off after event %" PRIu64
			    ": its end, late cache names and far frees are missing", v.events) < 0)
		rc = tape_err_set(reterr, -ENOMEM, "out of memory");
	verify_fini(&v);
	if (rc == 0)
		*ret_note = note;
	return rc;
}
