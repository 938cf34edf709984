/* SPDX-License-Identifier: MIT */
/*
 * Bytes and lines of an input file, decompressed on the way (zstd, gzip, xz by their magic).
 *
 * Offsets count decompressed bytes, lines count from 1: both are what error messages name.
 * Memory: two buffers of at most CAPTURE_LINE_MAX bytes.
 */
#ifndef SLABTAPE_CAPTURE_INPUT_H
#define SLABTAPE_CAPTURE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CAPTURE_LINE_MAX (1u << 20) /* bytes; a longer line is -TAPE_E_LIMIT */

struct capture_input;

/* Open @path ("-": standard input).  -errno as -TAPE_E_IO text; the caller closes *ret_in. */
int capture_input_open(const char *path, struct capture_input **ret_in, struct tape_err *reterr)
	TAPE_MUST_CHECK;
void capture_input_close(struct capture_input *in); /* NULL is accepted */
static inline void capture_input_closep(struct capture_input **in)
{
	capture_input_close(*in);
}

const char *capture_input_path(const struct capture_input *in); /* "standard input" for "-" */
/* Line of the last capture_input_line(), and the offset of its first byte. */
uint64_t capture_input_lineno(const struct capture_input *in);
uint64_t capture_input_offset(const struct capture_input *in);
/* Bytes of the file consumed and its size (0: not known), for progress. */
void capture_input_progress(const struct capture_input *in, uint64_t *ret_done,
			    uint64_t *ret_total);

/*
 * Look at the next bytes without consuming them: *ret_data (borrowed until the next call) holds
 * min(@want, what is left) bytes.  @want <= CAPTURE_LINE_MAX.  Returns the number of bytes.
 */
int capture_input_peek(struct capture_input *in, size_t want, const char **ret_data,
		       struct tape_err *reterr) TAPE_MUST_CHECK;

/*
 * Next line without its newline, NUL-terminated, borrowed until the next call.  1: a line, 0:
 * end of input, negative: error (-TAPE_E_TRUNCATED when a compressed stream ends early).
 */
int capture_input_line(struct capture_input *in, char **ret_line, size_t *ret_len,
		       struct tape_err *reterr) TAPE_MUST_CHECK;

/* Whether the last line ended with the input instead of a newline. */
bool capture_input_line_cut(const struct capture_input *in);

/* Write everything that is left to @fd.  *ret_bytes: how much. */
int capture_input_spool(struct capture_input *in, int fd, uint64_t *ret_bytes,
			struct tape_err *reterr) TAPE_MUST_CHECK;

/* The whole file as one NUL-terminated malloc'ed text; larger than @limit_bytes: TAPE_E_LIMIT. */
int capture_input_slurp(const char *path, size_t limit_bytes, char **ret_text, size_t *ret_len,
			struct tape_err *reterr) TAPE_MUST_CHECK;

/* Whether @in is compressed or a pipe, that is, whether its file cannot be mapped as it is. */
bool capture_input_must_spool(const struct capture_input *in);

#endif
