/* SPDX-License-Identifier: MIT */
/*
 * Far frees: frees that stand many chunks after their object's alloc.
 *
 * An object row is its alloc and its free.  Most frees follow within a few chunks and are found
 * by decoding those; the others are kept a second time, grouped by object, in blobs of this form
 * (docs/tape-format.md, "far_free").
 */
#ifndef SLABTAPE_TRACES_FAR_H
#define SLABTAPE_TRACES_FAR_H

#include "traces/chunk.h"

struct tape_far_free {
	uint64_t object, seq, ts;
	uint32_t site;
	uint16_t cpu, flags;
};

/* @frees in ascending seq, 1..TAPE_CHUNK_EVENTS.  *ret_data is borrowed from the codec. */
int tape_far_encode(struct tape_codec *c, const struct tape_far_free *frees, uint32_t nr,
		    const void **ret_data, size_t *ret_bytes) TAPE_MUST_CHECK;

/* Decode exactly @nr frees (1..TAPE_CHUNK_EVENTS).  -TAPE_E_FORMAT. */
int tape_far_decode(struct tape_codec *c, const void *data, size_t bytes, uint32_t nr,
		    struct tape_far_free *ret_frees, struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
