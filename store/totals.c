/* SPDX-License-Identifier: MIT */
/* The counts of a tape, from chunk rows, chunk_stat and meta: no event is decoded. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_internal.h"

static int chunk_totals(struct tape *t, struct tape_totals *r, struct tape_err *reterr)
{
	static const char sql[] =
		"SELECT count(*), sum(events), sum(bytes), sum(bytes_raw), max(last_object) + 1,"
		" max(slots), min(ts_min), max(ts_max), sum(inferred_allocs), sum(inferred_frees),"
		" sum(orphan_frees), sum(null_frees), sum(failed_allocs) FROM chunk";
	uint64_t *const into[] = { &r->chunks, &r->events, &r->bytes, &r->bytes_raw, &r->objects,
		&r->peak_live, &r->ts_min, &r->ts_max, &r->inferred_allocs, &r->inferred_frees,
		&r->orphan_frees, &r->null_frees, &r->failed_allocs };
	sqlite3_stmt *s;
	int rc = 0;

	if (sqlite3_prepare_v2(t->db, sql, -1, &s, NULL) != SQLITE_OK)
		return store_fail(t, "counting chunks", reterr);
	if (sqlite3_step(s) == SQLITE_ROW)
		for (size_t i = 0; i < sizeof(into) / sizeof(into[0]); i++)
			*into[i] = (uint64_t)sqlite3_column_int64(s, (int)i);
	else
		rc = store_fail(t, "counting chunks", reterr);
	sqlite3_finalize(s);
	return rc;
}

static int op_totals(struct tape *t, struct tape_totals *r, struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc = 0, step = SQLITE_ROW;

	if (sqlite3_prepare_v2(t->db, "SELECT op, sum(events) FROM chunk_stat GROUP BY op", -1, &s,
			       NULL) != SQLITE_OK)
		return store_fail(t, "counting ops", reterr);
	while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
		int op = tape_op_parse((const char *)sqlite3_column_text(s, 0));

		if (op < 0)
			rc = tape_err_set(reterr, -TAPE_E_FORMAT, "%s: chunk_stat has an unknown op",
					  t->path);
		else
			r->ops[op] = (uint64_t)sqlite3_column_int64(s, 1);
	}
	if (rc == 0 && step != SQLITE_DONE)
		rc = store_fail(t, "counting ops", reterr);
	sqlite3_finalize(s);
	return rc;
}

int tape_totals_get(struct tape *t, struct tape_totals *ret_totals, struct tape_err *reterr)
{
	struct tape_totals r;
	int64_t lost, unknown;
	int rc;

	memset(&r, 0, sizeof(r));
	rc = chunk_totals(t, &r, reterr);
	if (rc == 0)
		rc = op_totals(t, &r, reterr);
	if (rc == 0)
		rc = store_query_int(t, "SELECT sum(events) FROM loss", 0, &lost, reterr);
	if (rc == 0)
		rc = store_query_int(t, "SELECT count(*) FROM loss WHERE events = 0", 0, &unknown,
				     reterr);
	if (rc < 0)
		return rc;
	r.lost = (uint64_t)lost;
	r.lost_unknown = (uint64_t)unknown;
	/* what importers counted without making a row of it */
	r.null_frees += (uint64_t)tape_meta_get_int(t, "null_frees", 0);
	r.failed_allocs += (uint64_t)tape_meta_get_int(t, "failed_allocs", 0);
	r.complete = tape_meta_get_int(t, "complete", 0) == 1;
	*ret_totals = r;
	return 0;
}

int tape_orphan_ranges_get(struct tape *t, struct tape_range **ret_ranges, size_t *ret_nr,
			   struct tape_err *reterr)
{
	struct tape_range *ranges = NULL;
	size_t nr = 0;
	sqlite3_stmt *s;
	int rc = 0, step = SQLITE_DONE;

	if (sqlite3_prepare_v2(t->db, "SELECT first_seq, last_seq + 1 FROM chunk WHERE"
			       " orphan_frees > 0 ORDER BY id", -1, &s, NULL) != SQLITE_OK)
		return store_fail(t, "reading the chunk index", reterr);
	while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
		struct tape_range *grown = realloc(ranges, (nr + 1) * sizeof(*ranges));

		if (!grown) {
			rc = tape_err_set(reterr, -ENOMEM, "out of memory");
			break;
		}
		ranges = grown;
		ranges[nr] = TAPE_RANGE_ALL;
		ranges[nr].seq_begin = (uint64_t)sqlite3_column_int64(s, 0);
		ranges[nr++].seq_end = (uint64_t)sqlite3_column_int64(s, 1);
	}
	if (rc == 0 && step != SQLITE_DONE)
		rc = store_fail(t, "reading the chunk index", reterr);
	sqlite3_finalize(s);
	if (rc < 0)
		free(ranges);
	*ret_ranges = rc < 0 ? NULL : ranges;
	*ret_nr = rc < 0 ? 0 : nr;
	return rc;
}
