/* SPDX-License-Identifier: MIT */
/* Columns that look at no object: numbers as they are, by op class, times, calls, threads. */
#include "traces/columns.h"

/* ---- plain: one stream ---- */

void tape_plain_encode(struct tape_scratch *s, enum tape_col col, const struct tape_batch *b,
		       struct tape_buf *out)
{
	tape_column_load(b, col, 0, b->events, s->values[0]);
	tape_ints_encode(s->values[0], b->events, out);
}

bool tape_plain_decode(struct tape_scratch *s, enum tape_col col, struct tape_cursor *in,
		       struct tape_batch *b)
{
	uint64_t block[TAPE_INTS_BLOCK];
	const uint64_t *dict;
	uint32_t entries;

	tape_ints_open(&s->streams[0], in, b->events);
	dict = tape_ints_dict(&s->streams[0], &entries);
	if (dict)
		return tape_column_gather(b, col, &s->streams[0], dict, entries) &&
		       tape_ints_done(&s->streams[0]);
	for (uint32_t at = 0, nr; at < b->events; at += nr) {
		nr = b->events - at < TAPE_INTS_BLOCK ? b->events - at : TAPE_INTS_BLOCK;
		tape_ints_next(&s->streams[0], block, nr);
		if (!tape_column_store(b, col, at, nr, block))
			return false;
	}
	return tape_ints_done(&s->streams[0]);
}

/* ---- split: allocs in one stream, all other rows in a second ---- */

static uint32_t allocs_count(const struct tape_batch *b)
{
	uint32_t allocs_nr = 0;

	for (uint32_t i = 0; i < b->events; i++)
		allocs_nr += tape_op_class[b->op[i]] == TAPE_ROW_ALLOC;
	return allocs_nr;
}

void tape_split_encode(struct tape_scratch *s, enum tape_col col, const struct tape_batch *b,
		       struct tape_buf *out)
{
	uint64_t *all = s->values[2];
	uint32_t nr[2] = { 0 };

	tape_column_load(b, col, 0, b->events, all);
	for (uint32_t i = 0; i < b->events; i++) {
		uint32_t other = tape_op_class[b->op[i]] != TAPE_ROW_ALLOC;

		s->values[other][nr[other]++] = all[i];
	}
	tape_ints_encode(s->values[0], nr[0], out);
	tape_ints_encode(s->values[1], nr[1], out);
}

/* Two streams of one number each, as gfp often is: true when the column was filled. */
static bool split_constants(struct tape_scratch *s, enum tape_col col, struct tape_batch *b)
{
	uint64_t both[2], block[TAPE_INTS_BLOCK];

	if (!tape_ints_constant(&s->streams[0], &both[0]) ||
	    !tape_ints_constant(&s->streams[1], &both[1]))
		return false;
	for (uint32_t at = 0, nr; at < b->events; at += nr) {
		nr = b->events - at < TAPE_INTS_BLOCK ? b->events - at : TAPE_INTS_BLOCK;
		for (uint32_t i = 0; i < nr; i++)
			block[i] = both[tape_op_class[b->op[at + i]] != TAPE_ROW_ALLOC];
		if (!tape_column_store(b, col, at, nr, block))
			return false;
	}
	return true;
}

bool tape_split_decode(struct tape_scratch *s, enum tape_col col, struct tape_cursor *in,
		       struct tape_batch *b)
{
	uint64_t block[TAPE_INTS_BLOCK];
	uint8_t classes[TAPE_INTS_BLOCK];
	uint32_t allocs_nr = allocs_count(b);

	tape_ints_open(&s->streams[0], in, allocs_nr);
	tape_ints_open(&s->streams[1], in, b->events - allocs_nr);
	if (split_constants(s, col, b))
		return true;
	for (uint32_t at = 0, nr; at < b->events; at += nr) {
		nr = b->events - at < TAPE_INTS_BLOCK ? b->events - at : TAPE_INTS_BLOCK;
		for (uint32_t i = 0; i < nr; i++)
			classes[i] = tape_op_class[b->op[at + i]] != TAPE_ROW_ALLOC;
		if (!tape_rows_merge(s->streams, classes, nr, block) ||
		    !tape_column_store(b, col, at, nr, block))
			return false;
	}
	return tape_ints_done(&s->streams[0]) && tape_ints_done(&s->streams[1]);
}

/* ---- ts: differences to the row before, in the largest unit that divides them all ---- */

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Largest number that divides all @nr @values; 1 when they are all 0. */
static uint64_t common_unit(const uint64_t *values, uint32_t nr)
{
	uint64_t unit = 0;

	for (uint32_t i = 0; i < nr && unit != 1; i++)
		unit = gcd(values[i], unit);
	return unit ? unit : 1;
}

void tape_ts_encode(struct tape_scratch *s, enum tape_col col, const struct tape_batch *b,
		    struct tape_buf *out)
{
	uint64_t *step = s->values[0], unit;

	(void)col;
	step[0] = 0;
	for (uint32_t i = 1; i < b->events; i++)
		step[i] = b->ts[i] - b->ts[i - 1];
	unit = common_unit(step, b->events);
	for (uint32_t i = 0; unit != 1 && i < b->events; i++)
		step[i] /= unit;
	tape_buf_varint(out, b->ts[0]);
	tape_buf_varint(out, unit);
	tape_ints_encode(step, b->events, out);
}

bool tape_ts_decode(struct tape_scratch *s, enum tape_col col, struct tape_cursor *in,
		    struct tape_batch *b)
{
	uint64_t block[TAPE_INTS_BLOCK];
	uint64_t ts = tape_cursor_varint(in), unit = tape_cursor_varint(in);

	(void)col;
	tape_ints_open(&s->streams[0], in, b->events);
	for (uint32_t at = 0, nr; at < b->events; at += nr) {
		nr = b->events - at < TAPE_INTS_BLOCK ? b->events - at : TAPE_INTS_BLOCK;
		tape_ints_next(&s->streams[0], block, nr);
		for (uint32_t i = 0; unit != 1 && i < nr; i++)
			block[i] *= unit;
		for (uint32_t i = 0; i < nr; i++)
			b->ts[at + i] = ts += block[i];
	}
	return tape_ints_done(&s->streams[0]);
}

/* ---- ts_lo, ts_hi: how far the window reaches from ts ---- */

void tape_window_encode(struct tape_scratch *s, enum tape_col col, const struct tape_batch *b,
			struct tape_buf *out)
{
	uint64_t *reach = s->values[0];

	for (uint32_t i = 0; i < b->events; i++)
		reach[i] = col == TAPE_COL_TS_LO ? b->ts[i] - b->ts_lo[i] : b->ts_hi[i] - b->ts[i];
	tape_ints_encode(reach, b->events, out);
}

bool tape_window_decode(struct tape_scratch *s, enum tape_col col, struct tape_cursor *in,
			struct tape_batch *b)
{
	uint64_t block[TAPE_INTS_BLOCK];

	tape_ints_open(&s->streams[0], in, b->events);
	for (uint32_t at = 0, nr; at < b->events; at += nr) {
		nr = b->events - at < TAPE_INTS_BLOCK ? b->events - at : TAPE_INTS_BLOCK;
		tape_ints_next(&s->streams[0], block, nr);
		if (col == TAPE_COL_TS_LO)
			for (uint32_t i = 0; i < nr; i++)
				b->ts_lo[at + i] = b->ts[at + i] - block[i];
		else
			for (uint32_t i = 0; i < nr; i++)
				b->ts_hi[at + i] = b->ts[at + i] + block[i];
	}
	return tape_ints_done(&s->streams[0]);
}

/* ---- bulk: 0, or 1 + difference to the last row with a call id ---- */

void tape_bulk_encode(struct tape_scratch *s, enum tape_col col, const struct tape_batch *b,
		      struct tape_buf *out)
{
	uint64_t *steps = s->values[0];
	uint64_t last = 0;

	(void)col;
	for (uint32_t i = 0; i < b->events; i++) {
		steps[i] = b->bulk[i] ? 1 + tape_zigzag(b->bulk[i] - last) : 0;
		last = b->bulk[i] ? b->bulk[i] : last;
	}
	tape_ints_encode(steps, b->events, out);
}

bool tape_bulk_decode(struct tape_scratch *s, enum tape_col col, struct tape_cursor *in,
		      struct tape_batch *b)
{
	uint64_t block[TAPE_INTS_BLOCK];
	uint64_t last = 0;

	tape_ints_open(&s->streams[0], in, b->events);
	for (uint32_t at = 0, nr; at < b->events; at += nr) {
		nr = b->events - at < TAPE_INTS_BLOCK ? b->events - at : TAPE_INTS_BLOCK;
		tape_ints_next(&s->streams[0], block, nr);
		for (uint32_t i = 0; i < nr; i++) {
			if (!block[i])
				continue;
			last += tape_unzigzag(block[i] - 1);
			block[i] = last;
		}
		if (!tape_column_store(b, col, at, nr, block))
			return false;
	}
	return tape_ints_done(&s->streams[0]);
}

/* ---- tid: form 0 plain, form 1 only the rows whose tid is not the CPU's last ---- */

/* Rows that differ from the CPU's last tid: distances to values[0], tids to values[1]. */
static uint32_t tid_changes(struct tape_scratch *s, const struct tape_batch *b)
{
	uint32_t changes = 0, last_row = 0;

	memset(s->last_tid, 0, sizeof(s->last_tid));
	for (uint32_t i = 0; i < b->events; i++) {
		if (b->tid[i] == s->last_tid[b->cpu[i]])
			continue;
		s->last_tid[b->cpu[i]] = b->tid[i];
		s->values[0][changes] = i - last_row;
		s->values[1][changes++] = (uint32_t)b->tid[i];
		last_row = i;
	}
	return changes;
}

void tape_tid_encode(struct tape_scratch *s, enum tape_col col, const struct tape_batch *b,
		     struct tape_buf *out)
{
	uint32_t changes = tid_changes(s, b);

	if (changes > b->events / 2) {
		tape_buf_u8(out, 0);
		tape_plain_encode(s, col, b, out);
		return;
	}
	tape_buf_u8(out, 1);
	tape_buf_varint(out, changes);
	tape_ints_encode(s->values[0], changes, out);
	tape_ints_encode(s->values[1], changes, out);
}

/* Rows [from, to) have their CPU's last tid. */
static void tid_fill(struct tape_scratch *s, struct tape_batch *b, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		b->tid[i] = s->last_tid[b->cpu[i]];
}

static bool tid_decode_changes(struct tape_scratch *s, struct tape_cursor *in, struct tape_batch *b)
{
	uint64_t distance[TAPE_INTS_BLOCK], tid[TAPE_INTS_BLOCK], row = 0, next = 0;
	uint64_t changes = tape_cursor_varint(in);

	if (changes > b->events)
		return false;
	memset(s->last_tid, 0, sizeof(s->last_tid));
	tape_ints_open(&s->streams[0], in, (uint32_t)changes);
	tape_ints_open(&s->streams[1], in, (uint32_t)changes);
	for (uint32_t at = 0, nr; at < changes; at += nr) {
		nr = changes - at < TAPE_INTS_BLOCK ? (uint32_t)changes - at : TAPE_INTS_BLOCK;
		tape_ints_next(&s->streams[0], distance, nr);
		tape_ints_next(&s->streams[1], tid, nr);
		for (uint32_t i = 0; i < nr; i++) {
			if (distance[i] >= b->events - row || row + distance[i] < next ||
			    tid[i] > UINT32_MAX)
				return false;
			row += distance[i];
			tid_fill(s, b, next, row);
			s->last_tid[b->cpu[row]] = (int32_t)tid[i];
			b->tid[row] = (int32_t)tid[i];
			next = row + 1;
		}
	}
	tid_fill(s, b, next, b->events);
	return tape_ints_done(&s->streams[0]) && tape_ints_done(&s->streams[1]);
}

bool tape_tid_decode(struct tape_scratch *s, enum tape_col col, struct tape_cursor *in,
		     struct tape_batch *b)
{
	uint8_t form = tape_cursor_u8(in);

	if (form == 0)
		return tape_plain_decode(s, col, in, b);
	return form == 1 && tid_decode_changes(s, in, b);
}
