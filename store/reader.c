/* SPDX-License-Identifier: MIT */
/* Reading events of a range, chunk by chunk, in seq order. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/store_internal.h"

struct tape_reader {
	struct tape *tape;
	struct tape_range range;
	uint32_t columns;	    /* to decode, closed */
	struct store_chunk *chunks; /* all of the tape */
	size_t chunks_nr, at;	    /* next chunk to look at */
	struct tape_codec *codec;
	struct tape_batch *batch; /* the decoded chunk */
	struct tape_batch view;	  /* its rows inside the range; borrows the arrays */
	uint32_t blank;		  /* columns of batch that hold defaults in all rows */
};

/* Columns that do not depend on others when absent, so that one fill serves many chunks. */
#define BLANK_STAYS (~(1u << TAPE_COL_TS_LO | 1u << TAPE_COL_TS_HI))

static size_t first_chunk(const struct tape_reader *r)
{
	size_t lo = 0, hi = r->chunks_nr;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;
		const struct store_chunk *c = &r->chunks[middle];

		if (c->first_seq + c->events <= r->range.seq_begin || c->ts_max < r->range.ts_begin)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

int tape_reader_open(struct tape *t, const struct tape_range *range, uint32_t columns,
		     struct tape_reader **ret_reader, struct tape_err *reterr)
{
	struct tape_reader *r = calloc(1, sizeof(*r));
	bool cut_by_ts = range->ts_begin > 0 || range->ts_end < UINT64_MAX;
	int rc;

	if (!r)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	r->tape = t;
	r->range = *range;
	r->columns = tape_columns_close(columns | (cut_by_ts ? 1u << TAPE_COL_TS : 0));
	r->codec = tape_codec_create();
	r->batch = tape_batch_create(TAPE_CHUNK_EVENTS);
	rc = r->codec && r->batch ? store_chunks_load(t, &r->chunks, &r->chunks_nr, reterr) :
				    tape_err_set(reterr, -ENOMEM, "out of memory");
	if (rc < 0) {
		tape_reader_close(r);
		return rc;
	}
	r->at = first_chunk(r);
	*ret_reader = r;
	return 0;
}

/* Absent columns that already hold their defaults need no work. */
static void blank_keep(struct tape_reader *r, const struct store_chunk *chunk)
{
	uint32_t absent = r->columns & ~chunk->columns & BLANK_STAYS;
	uint32_t fresh = absent & ~r->blank;

	r->batch->events = r->batch->capacity;
	for (int col = 0; col < TAPE_COL_MAX; col++)
		if (fresh & 1u << col)
			tape_batch_blank(r->batch, col);
	r->blank = absent;
	r->batch->valid = absent;
}

/* Rows [*from, *to) of the decoded chunk are inside the range. */
static void rows_inside(const struct tape_reader *r, uint32_t *from, uint32_t *to)
{
	const struct tape_batch *b = r->batch;
	const struct tape_range *range = &r->range;

	*from = 0;
	*to = b->events;
	if (range->seq_begin > b->first_seq)
		*from = (uint32_t)(range->seq_begin - b->first_seq);
	if (range->seq_end - b->first_seq < b->events)
		*to = (uint32_t)(range->seq_end - b->first_seq);
	if (range->ts_begin > 0)
		while (*from < *to && b->ts[*from] < range->ts_begin)
			++*from;
	if (range->ts_end < UINT64_MAX)
		while (*to > *from && b->ts[*to - 1] >= range->ts_end)
			--*to;
}

static void view_make(struct tape_reader *r, uint32_t from, uint32_t to)
{
	struct tape_batch *v = &r->view;

	*v = *r->batch;
	v->memory = NULL;
	v->first_seq += from;
	v->events = v->capacity = to - from;
#define MOVE(col, field) v->field += from;
	TAPE_BATCH_FIELDS(MOVE)
#undef MOVE
}

int tape_reader_next(struct tape_reader *r, const struct tape_batch **ret_batch,
		     struct tape_err *reterr)
{
	while (r->at < r->chunks_nr) {
		const struct store_chunk *chunk = &r->chunks[r->at];
		uint32_t from, to;
		int rc;

		if (chunk->first_seq >= r->range.seq_end || chunk->ts_min >= r->range.ts_end)
			return 0;
		r->at++;
		blank_keep(r, chunk);
		rc = store_chunk_decode(r->tape, r->codec, chunk, r->columns, r->batch, reterr);
		if (rc < 0)
			return rc;
		rows_inside(r, &from, &to);
		if (from >= to)
			continue;
		view_make(r, from, to);
		*ret_batch = &r->view;
		return 1;
	}
	return 0;
}

void tape_reader_close(struct tape_reader *r)
{
	if (!r)
		return;
	free(r->chunks);
	tape_codec_destroy(r->codec);
	tape_batch_destroy(r->batch);
	free(r);
}
