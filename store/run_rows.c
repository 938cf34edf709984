/* SPDX-License-Identifier: MIT */
#include "store/run_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "traces/records.h"

const struct run_kind_spec run_kinds[RUN_KINDS] = {
	[RUN_TRANSITION] = { "transition", TR_MAX, 1u << TR_SEQ | 1u << TR_TS | 1u << TR_VTS },
	[RUN_REFILL] = { "refill", RE_MAX, 1u << RE_SEQ | 1u << RE_TS | 1u << RE_VTS },
};

void store_rows_destroy(struct store_rows *r)
{
	if (!r)
		return;
	for (int i = 0; i < RUN_COLUMNS_MAX; i++)
		free(r->columns[i]);
	tape_codec_destroy(r->codec);
	free(r);
}

static struct store_rows *rows_create(enum run_kind kind)
{
	struct store_rows *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->codec = tape_codec_create();
	for (int i = 0; i < run_kinds[kind].columns; i++)
		r->columns[i] = malloc(TAPE_CHUNK_EVENTS * sizeof(int64_t));
	for (int i = 0; i < run_kinds[kind].columns; i++) {
		if (r->columns[i] && r->codec)
			continue;
		store_rows_destroy(r);
		return NULL;
	}
	return r;
}

static int chunk_row(struct tape *t, enum run_kind kind, const struct store_rows *r,
		     int64_t *ret_id, struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc = store_statement(t, STORE_RUN_CHUNK_ADD, &s, reterr);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(s, 1, r->run);
	sqlite3_bind_text(s, 2, run_kinds[kind].name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 3, r->nr);
	sqlite3_bind_int64(s, 4, r->columns[0][0]);
	sqlite3_bind_int64(s, 5, r->columns[0][r->nr - 1]);
	sqlite3_bind_int64(s, 6, r->columns[1][0]);
	sqlite3_bind_int64(s, 7, r->columns[1][r->nr - 1]);
	rc = store_run(t, s, "writing a chunk of a run", reterr);
	*ret_id = sqlite3_last_insert_rowid(t->db);
	return rc;
}

int store_rows_flush(struct tape *t, enum run_kind kind, struct tape_err *reterr)
{
	const struct run_kind_spec *k = &run_kinds[kind];
	struct store_rows *r = t->rows[kind];
	int64_t id = 0;
	int rc;

	if (!r || !r->nr)
		return 0;
	rc = chunk_row(t, kind, r, &id, reterr);
	for (int i = 0; rc == 0 && i < k->columns; i++) {
		sqlite3_stmt *s;
		const void *data;
		size_t bytes;

		rc = tape_records_encode(r->codec, r->columns[i], r->nr, k->steps >> i & 1, &data,
					 &bytes);
		if (rc < 0)
			return tape_err_set(reterr, rc, "encoding a run: %s", tape_err_name(rc));
		rc = store_statement(t, STORE_RUN_COLUMN_ADD, &s, reterr);
		if (rc < 0)
			break;
		sqlite3_bind_int64(s, 1, id * STORE_COLUMNS_PER_CHUNK + i);
		sqlite3_bind_blob64(s, 2, data, bytes, SQLITE_STATIC);
		rc = store_run(t, s, "writing a chunk of a run", reterr);
	}
	r->nr = 0;
	return rc;
}

/* Append one row of @values; seq and ts must not go back within a run. */
static int rows_add(struct tape *t, enum run_kind kind, int64_t run, const int64_t *values,
		    struct tape_err *reterr)
{
	struct store_rows *r = t->rows[kind];

	if (!r)
		r = t->rows[kind] = rows_create(kind);
	if (!r)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	if (r->nr && (r->nr == TAPE_CHUNK_EVENTS || r->run != run)) {
		int rc = store_rows_flush(t, kind, reterr);

		if (rc < 0)
			return rc;
	}
	if (r->nr && (values[0] < r->columns[0][r->nr - 1] || values[1] < r->columns[1][r->nr - 1]))
		return tape_err_set(reterr, -TAPE_E_FORMAT,
				    "run %lld: %s rows go back at seq %lld", (long long)run,
				    run_kinds[kind].name, (long long)values[0]);
	r->run = run;
	for (int i = 0; i < run_kinds[kind].columns; i++)
		r->columns[i][r->nr] = values[i];
	r->nr++;
	return 0;
}

int tape_run_transition(struct tape *t, int64_t run, const struct tape_transition *tr,
			struct tape_err *reterr)
{
	const int64_t values[TR_MAX] = {
		[TR_SEQ] = (int64_t)tr->seq,   [TR_TS] = (int64_t)tr->ts,   [TR_VTS] = (int64_t)tr->vts,
		[TR_CPU] = tr->cpu,	       [TR_NODE] = tr->node,	    [TR_CACHE] = tr->cache,
		[TR_SLAB] = (int64_t)tr->slab, [TR_FROM] = tr->from,	    [TR_TO] = tr->to,
		[TR_INUSE] = tr->inuse,	       [TR_OBJECTS] = tr->objects, [TR_OP] = tr->op,
	};

	return rows_add(t, RUN_TRANSITION, run, values, reterr);
}

int tape_run_refill(struct tape *t, int64_t run, const struct tape_refill *re,
		    struct tape_err *reterr)
{
	const int64_t values[RE_MAX] = {
		[RE_SEQ] = (int64_t)re->seq, [RE_TS] = (int64_t)re->ts, [RE_VTS] = (int64_t)re->vts,
		[RE_CPU] = re->cpu,	     [RE_CACHE] = re->cache,	[RE_SOURCE] = re->source,
		[RE_OBJECTS] = re->objects,
	};

	return rows_add(t, RUN_REFILL, run, values, reterr);
}

/* ---- names ---- */

static const char *const state_names[] = { "none", "cpu", "cpu_partial", "partial", "full", "empty",
					   "parked", "detached" };
static const char *const source_names[] = { "cpu_partial", "node_partial", "remote_node",
					    "new_slab", "spare", "barn" };

const char *tape_slab_state_name(int64_t state)
{
	return state >= 0 && state < (int64_t)(sizeof(state_names) / sizeof(*state_names)) ?
		       state_names[state] : NULL;
}

const char *tape_refill_source_name(int64_t source)
{
	return source >= 0 && source < (int64_t)(sizeof(source_names) / sizeof(*source_names)) ?
		       source_names[source] : NULL;
}
