/* SPDX-License-Identifier: MIT */
/*
 * Integer streams: a known number of 64-bit numbers <-> bytes, in the cheapest of three forms.
 *
 *	PLANES	u8 mask, then for every set bit k of the mask one byte plane: byte k of each number
 *	DICT	u8 bits (0, 1, 2, 4, 8), varint entries, PLANES of the entries, then the packed
 *		indices, first number in the lowest bits of a byte
 *	RUNS	varint runs, one stream (PLANES or DICT) of their values and one of their lengths - 1
 *
 * The form is the first byte.  How many numbers there are is not stored: the reader knows.
 * Planes keep numbers of one magnitude together, which zstd's entropy stage likes and which
 * decodes without a branch per number.  docs/tape-format.md has the layout with an example.
 */
#ifndef SLABTAPE_TRACES_INTS_H
#define SLABTAPE_TRACES_INTS_H

#include "base/error.h"
#include "traces/bytes.h"

#define TAPE_INTS_BLOCK 512u /* most numbers tape_ints_next() gives at once */
#define TAPE_INTS_DICT 256u  /* most dictionary entries */
#define TAPE_INTS_NR_MAX 65536u /* most numbers of a stream that is written */

enum tape_ints_form { TAPE_INTS_PLANES = 0, TAPE_INTS_DICT_FORM, TAPE_INTS_RUNS, TAPE_INTS_MAX };

/* Append the @nr numbers at @values as one stream to @out (out of memory: out->failed). */
void tape_ints_encode(const uint64_t *values, uint32_t nr, struct tape_buf *out);

/* One PLANES or DICT stream being read. */
struct tape_ints_plain {
	const uint8_t *plane[8]; /* PLANES: borrowed from the input, NULL where the byte is 0 */
	const uint8_t *packed;	 /* DICT: borrowed from the input */
	uint64_t dict[TAPE_INTS_DICT];
	uint32_t entries; /* of dict */
	uint32_t at, nr;  /* next number, numbers in all; at <= nr */
	uint8_t form, bits, planes;
};

/* One stream being read. */
struct tape_ints {
	struct tape_ints_plain plain; /* the numbers, or the values of the runs */
	struct tape_ints_plain lengths;
	uint64_t run_value;
	uint64_t run_left; /* numbers left in the current run */
	uint32_t left;	   /* numbers not yet read */
	uint64_t values[64], counts[64];
	uint32_t fetched, used; /* of values and counts; used <= fetched <= 64 */
	bool runs;
	bool bad;
};

/*
 * Begin reading a stream of @nr numbers at @in, which moves past it.  The bytes stay borrowed
 * until the last number is read.  Malformed: in->bad, and the stream reads as zeros.
 */
void tape_ints_open(struct tape_ints *s, struct tape_cursor *in, uint32_t nr);

/*
 * The next @nr (<= TAPE_INTS_BLOCK) numbers to @ret_values.  The caller never asks for more
 * than were announced (asserted).  Malformed contents set s->bad and give arbitrary numbers.
 */
void tape_ints_next(struct tape_ints *s, uint64_t *ret_values, uint32_t nr);

/*
 * A stream that is a dictionary can be read as indices into it instead, which keeps narrow
 * columns narrow: tape_ints_dict() gives the entries (NULL: it is no dictionary), then
 * tape_ints_indices() the next @nr (<= TAPE_INTS_BLOCK) indices, in @room or borrowed from the
 * input, all below the number of entries; NULL when one is not.
 */
const uint64_t *tape_ints_dict(const struct tape_ints *s, uint32_t *ret_entries);
const uint8_t *tape_ints_indices(struct tape_ints *s, uint8_t room[TAPE_INTS_BLOCK], uint32_t nr);

/* Numbers not yet read. */
static inline uint32_t tape_ints_left(const struct tape_ints *s)
{
	return s->left;
}

/* True when every number was read and nothing was malformed. */
bool tape_ints_done(const struct tape_ints *s);

/* True, with the value, when all numbers of an unread stream are equal and that is cheap to see
 * (a stream without numbers counts, as 0). */
bool tape_ints_constant(const struct tape_ints *s, uint64_t *ret_value);

#endif
