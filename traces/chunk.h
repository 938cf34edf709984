/* SPDX-License-Identifier: MIT */
/*
 * The chunk codec: columns of a batch <-> compressed bytes.  No I/O, no SQL.
 *
 * Every column is encoded by itself (transform to small integers, then one zstd frame, level 3,
 * content checksum on), so that a query which needs two columns decodes two.  A column whose
 * rows all hold the default of tape_event_blank() (ts_lo/ts_hi: equal to ts) is not stored at
 * all.  docs/tape-format.md gives the exact bytes.
 */
#ifndef SLABTAPE_TRACES_CHUNK_H
#define SLABTAPE_TRACES_CHUNK_H

#include <stddef.h>

#include "traces/batch.h"

struct tape_codec; /* reusable zstd contexts and scratch memory; one thread at a time */

struct tape_codec *tape_codec_create(void);
void tape_codec_destroy(struct tape_codec *c);

/*
 * Encode column @col of @b.  @ret_data is borrowed from the codec until its next call;
 * *ret_bytes 0 means "not stored".  @ret_raw_bytes: size before compression.
 * Columns depend on others when decoded: see tape_column_needs().
 */
int tape_column_encode(struct tape_codec *c, enum tape_col col, const struct tape_batch *b,
		       const void **ret_data, size_t *ret_bytes, size_t *ret_raw_bytes) TAPE_MUST_CHECK;

/*
 * Decode @bytes at @data (@bytes 0: column not stored) into column @col of @b, whose `events`
 * and `first_seq` are set and in which the columns of tape_column_needs(@col) are valid.  Marks
 * the column valid.  -TAPE_E_FORMAT or -TAPE_E_TRUNCATED when the bytes do not hold exactly
 * b->events values; nothing of @b but the column's own array is touched.
 */
int tape_column_decode(struct tape_codec *c, enum tape_col col, const void *data, size_t bytes,
		       struct tape_batch *b, struct tape_err *reterr) TAPE_MUST_CHECK;

/* Columns (bit mask, transitively closed, without @col itself) that must be decoded first. */
uint32_t tape_column_needs(enum tape_col col);

/* Write the value an absent column reads as into every row of @b; ts_lo and ts_hi need ts. */
void tape_batch_blank(struct tape_batch *b, enum tape_col col);

/* Lower-case name used in the tape and in messages ("ts", "node_req", ...). */
const char *tape_column_name(enum tape_col col);

/* @mask plus everything needed to decode it. */
uint32_t tape_columns_close(uint32_t mask);

#endif
