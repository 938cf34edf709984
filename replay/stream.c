/* SPDX-License-Identifier: MIT */
#include "replay/stream.h"

#include <errno.h>
#include <stdlib.h>

#include "replay/reorder.h"

struct replay_stream {
	const struct replay_plan *plan;
	struct tape_reader *reader;
	/* only when rows are moved */
	struct replay_reorder *reorder;
	struct tape_batch *out;
	uint64_t *seqs;		/* event numbers of its rows */
	const struct tape_batch *in;
	uint32_t at;		/* next row of @in */
	uint64_t segment;	/* windows of the rows that are coming out */
	uint64_t segment_end;	/* the next event number at which a window begins or ends */
	bool drained;		/* the reader is at its end */
};

/* Inferred rows of the whole tape, for --infer early. */
static int foresee(struct replay_stream *s, uint32_t columns, struct tape_err *reterr)
{
	const struct tape_range all = TAPE_RANGE_ALL;
	const struct tape_batch *b;
	struct tape_reader *r;
	struct tape_event ev;
	int rc = tape_reader_open(s->plan->tape, &all, columns, &r, reterr);

	if (rc < 0)
		return rc;
	while ((rc = tape_reader_next(r, &b, reterr)) > 0)
		for (uint32_t i = 0; i < b->events && rc > 0; i++) {
			if (!(b->flags[i] & TAPE_F_INFERRED))
				continue;
			tape_batch_get(b, i, &ev);
			if (replay_reorder_foresee(s->reorder, b->first_seq + i, &ev) < 0)
				rc = tape_err_set(reterr, -ENOMEM, "--infer early: out of memory");
		}
	tape_reader_close(r);
	replay_reorder_foreseen(s->reorder);
	return rc;
}

uint32_t replay_columns(const struct replay_plan *p, bool times)
{
	static const uint8_t with_arg[] = { TAPE_OP_PREFILL, TAPE_OP_SHEAF_ALLOC,
		TAPE_OP_SHEAF_REFILL, TAPE_OP_SHEAF_RETURN, TAPE_OP_PAGE_LIMIT };
	uint32_t columns = 1u << TAPE_COL_OP | 1u << TAPE_COL_CPU | 1u << TAPE_COL_CACHE |
			   1u << TAPE_COL_SLOT | 1u << TAPE_COL_NODE_REQ | 1u << TAPE_COL_GFP |
			   1u << TAPE_COL_FLAGS;
	const uint64_t *ops = p->totals.ops;

	for (size_t i = 0; i < sizeof(with_arg); i++)
		if (ops[with_arg[i]])
			columns |= 1u << TAPE_COL_ARG;
	if (ops[TAPE_OP_ALLOC_BULK] || ops[TAPE_OP_FREE_BULK])
		columns |= 1u << TAPE_COL_BULK;
	if (times)
		columns |= 1u << TAPE_COL_TS;
	return p->totals.complete ? columns : TAPE_COLS_REPLAY;
}

int replay_stream_open(const struct replay_plan *p, uint32_t columns,
		       struct replay_stream **ret_stream, struct tape_err *reterr)
{
	const struct tape_range range = { p->first_seq, UINT64_MAX, 0, UINT64_MAX };
	struct replay_stream *s = calloc(1, sizeof(*s));
	int rc = 0;

	if (!s)
		return tape_err_set(reterr, -ENOMEM, "replay: out of memory");
	s->plan = p;
	s->segment = UINT64_MAX;
	if (p->cfg->jitter_ns || (p->cfg->infer != REPLAY_INFER_LATE &&
				  p->totals.inferred_allocs + p->totals.inferred_frees)) {
		columns |= TAPE_COLS_REPLAY | 1u << TAPE_COL_TS_LO | 1u << TAPE_COL_TS_HI;
		s->segment = 0;
		s->segment_end = replay_next_window(p, 0);
		s->reorder = replay_reorder_create(p);
		s->out = tape_batch_create(TAPE_CHUNK_EVENTS);
		s->seqs = malloc(TAPE_CHUNK_EVENTS * sizeof(*s->seqs));
		if (!s->reorder || !s->out || !s->seqs)
			rc = tape_err_set(reterr, -ENOMEM, "replay: out of memory");
		if (rc >= 0 && p->cfg->infer == REPLAY_INFER_EARLY)
			rc = foresee(s, columns, reterr);
	}
	if (rc >= 0)
		rc = tape_reader_open(p->tape, &range, columns, &s->reader, reterr);
	if (rc < 0) {
		replay_stream_close(s);
		return rc;
	}
	*ret_stream = s;
	return 0;
}

/* Fill the output with settled rows; true when it is full. */
static bool take_settled(struct replay_stream *s, bool all)
{
	struct tape_event ev;

	while (s->out->events < s->out->capacity) {
		if (!replay_reorder_pop(s->reorder, all, s->drained, &ev,
					&s->seqs[s->out->events]))
			return false;
		tape_batch_push(s->out, &ev);
	}
	return true;
}

/* Make sure that a recorded row is at hand, or note that there are no more. */
static int load(struct replay_stream *s, struct tape_err *reterr)
{
	int rc;

	if (s->drained || (s->in && s->at < s->in->events))
		return 0;
	rc = tape_reader_next(s->reader, &s->in, reterr);
	s->at = 0;
	s->drained = rc <= 0;
	return rc < 0 ? rc : 0;
}

static int feed(struct replay_stream *s, struct tape_err *reterr)
{
	struct tape_event ev;
	int rc;

	tape_batch_get(s->in, s->at, &ev);
	rc = replay_reorder_push(s->reorder, s->in->first_seq + s->at, &ev);
	s->at++;
	return rc < 0 ? tape_err_set(reterr, rc, "reordering: out of memory") : 0;
}

/*
 * Rows come out in the segment in which they are settled; at the end of a segment everything that
 * is inside is settled, so that no event crosses the begin or end of a counting window (inferred
 * events of --infer early come in early, and only then count early).
 */
static int next_moved(struct replay_stream *s, struct tape_err *reterr)
{
	int rc = 0;

	s->out->events = 0;
	while (rc >= 0) {
		bool end;

		rc = load(s, reterr);
		end = s->drained || s->in->first_seq + s->at >= s->segment_end;
		if (rc >= 0 && take_settled(s, end))
			return 1;
		if (rc >= 0 && end && (s->out->events || s->drained))
			return s->out->events != 0;
		if (end) {
			s->segment = s->segment_end;
			s->segment_end = replay_next_window(s->plan, s->segment);
		} else if (rc >= 0) {
			rc = feed(s, reterr);
		}
	}
	return rc;
}

int replay_stream_next(struct replay_stream *s, const struct tape_batch **ret_batch,
		       struct tape_err *reterr)
{
	int rc;

	if (!s->reorder)
		return tape_reader_next(s->reader, ret_batch, reterr);
	rc = next_moved(s, reterr);
	*ret_batch = s->out;
	return rc;
}

uint64_t replay_stream_segment(const struct replay_stream *s)
{
	return s->segment;
}

const uint64_t *replay_stream_seqs(const struct replay_stream *s)
{
	return s->seqs;
}

void replay_stream_close(struct replay_stream *s)
{
	if (!s)
		return;
	tape_reader_close(s->reader);
	replay_reorder_destroy(s->reorder);
	tape_batch_destroy(s->out);
	free(s->seqs);
	free(s);
}
