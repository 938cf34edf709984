/* SPDX-License-Identifier: MIT */
/*
 * One column of records that are no events (transitions, refills of a run): up to
 * TAPE_CHUNK_EVENTS signed numbers <-> one compressed frame.  docs/tape-format.md, "run_column".
 *
 * The numbers are written in zigzag, either as they are or (@steps) as differences to the one
 * before, which suits times and sequence numbers.
 */
#ifndef SLABTAPE_TRACES_RECORDS_H
#define SLABTAPE_TRACES_RECORDS_H

#include "traces/chunk.h"

/* @nr: 1..TAPE_CHUNK_EVENTS.  *ret_data is borrowed from the codec until its next call. */
int tape_records_encode(struct tape_codec *c, const int64_t *values, uint32_t nr, bool steps,
			const void **ret_data, size_t *ret_bytes) TAPE_MUST_CHECK;

/* Decode exactly @nr numbers, written with the same @steps.  -TAPE_E_FORMAT. */
int tape_records_decode(struct tape_codec *c, const void *data, size_t bytes, uint32_t nr,
			bool steps, int64_t *ret_values, struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
