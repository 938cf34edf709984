/* SPDX-License-Identifier: MIT */
/*
 * One column <-> the bytes that are then compressed.  Internal to traces/.
 *
 * A column is written as a few header numbers and one or more integer streams (ints.h).  Which
 * streams, and what the numbers in them mean, is the business of one encode and one decode
 * function per column; tape_column_kinds[] lists them.  docs/tape-format.md has the formulas.
 */
#ifndef SLABTAPE_TRACES_COLUMNS_H
#define SLABTAPE_TRACES_COLUMNS_H

#include "traces/chunk.h"
#include "traces/bytes.h"
#include "traces/freeset.h"
#include "traces/ints.h"

#define TAPE_WINDOW TAPE_CHUNK_EVENTS	/* objects whose alloc row a chunk remembers */
#define TAPE_SLOT_MODEL_LIMIT (1u << 24) /* slots above are never predicted */
#define TAPE_ADDRESS_CONTEXTS 4096u
#define TAPE_STREAMS 3u /* most streams of one column */

/* Scratch memory of the column functions; contents mean nothing between two calls. */
struct tape_scratch {
	uint64_t *values[TAPE_STREAMS];	       /* TAPE_CHUNK_EVENTS numbers each: streams to write */
	struct tape_ints streams[TAPE_STREAMS]; /* streams being read */
	uint16_t *row_of; /* TAPE_WINDOW + 1: row + 1 of the alloc of an object, 0 none */
	uint8_t *classes; /* TAPE_CHUNK_EVENTS */
	struct tape_freeset free_slots; /* empty between two calls */
	uint64_t contexts[TAPE_ADDRESS_CONTEXTS];
	int32_t last_tid[TAPE_CPU_MAX];
};

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

struct tape_codec {
	struct ZSTD_CCtx_s *compress;
	struct ZSTD_DCtx_s *decompress;
	struct tape_buf raw, packed;
	struct tape_scratch scratch;
};

/* c->raw to one zstd frame in c->packed.  -ENOMEM. */
int tape_frame_write(struct tape_codec *c) TAPE_MUST_CHECK;
/* One zstd frame to c->raw. */
int tape_frame_read(struct tape_codec *c, const void *data, size_t bytes, struct tape_err *reterr)
	TAPE_MUST_CHECK;

typedef void tape_column_encode_fn(struct tape_scratch *s, enum tape_col col,
				   const struct tape_batch *b, struct tape_buf *out);
/* Returns false when the bytes are malformed. */
typedef bool tape_column_decode_fn(struct tape_scratch *s, enum tape_col col,
				   struct tape_cursor *in, struct tape_batch *b);

struct tape_column_kind {
	const char *name;
	uint32_t needs; /* bit mask, transitively closed */
	tape_column_encode_fn *encode;
	tape_column_decode_fn *decode;
};
extern const struct tape_column_kind tape_column_kinds[TAPE_COL_MAX];

tape_column_encode_fn tape_plain_encode, tape_split_encode, tape_ts_encode, tape_window_encode,
	tape_bulk_encode, tape_tid_encode, tape_object_encode, tape_slot_encode,
	tape_address_encode;
tape_column_decode_fn tape_plain_decode, tape_split_decode, tape_ts_decode, tape_window_decode,
	tape_bulk_decode, tape_tid_decode, tape_object_decode, tape_slot_decode,
	tape_address_decode;

/* ---- columns as 64-bit numbers (column_access.c) ---- */

/*
 * Rows [at, at + nr) of @col as numbers that are small for usual values, and back: unsigned
 * fields as they are, tid as its 32 bits, nodes + 1, arg in zigzag.
 */
void tape_column_load(const struct tape_batch *b, enum tape_col col, uint32_t at, uint32_t nr,
		      uint64_t *ret_values);
/* False when a number is outside the column's type or the limits of event.h. */
bool tape_column_store(struct tape_batch *b, enum tape_col col, uint32_t at, uint32_t nr,
		       const uint64_t *values);
/*
 * All rows of @col from the unread stream @s, which is a dictionary of @entries numbers @dict.
 * False when an entry or an index is out of range.
 */
bool tape_column_gather(struct tape_batch *b, enum tape_col col, struct tape_ints *s,
			const uint64_t *dict, uint32_t entries);
/* True when every row holds the default of tape_event_blank() (ts_lo, ts_hi: equals ts). */
bool tape_column_is_blank(const struct tape_batch *b, enum tape_col col);

/* ---- rows that take their number from one of several streams ---- */

enum tape_row_class { TAPE_ROW_ALLOC = 0, TAPE_ROW_FREE, TAPE_ROW_OTHER };

/* Class of each op (ops are below TAPE_OP_MAX: decoding checks it, encoding relies on it). */
extern const uint8_t tape_op_class[TAPE_OP_MAX];

/*
 * The next @nr (<= TAPE_INTS_BLOCK) rows' numbers in row order: row i takes the next number of
 * streams[classes[i]].  @classes: below TAPE_STREAMS.  False when a stream has too few numbers.
 */
bool tape_rows_merge(struct tape_ints streams[TAPE_STREAMS], const uint8_t *classes, uint32_t nr,
		     uint64_t *ret_values);

#endif
