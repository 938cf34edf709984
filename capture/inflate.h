/* SPDX-License-Identifier: MIT */
/*
 * One way in for compressed streams: bytes in, bytes out.  Internal to capture/input.c.
 */
#ifndef SLABTAPE_CAPTURE_INFLATE_H
#define SLABTAPE_CAPTURE_INFLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct capture_inflate;

/*
 * Decompressor for the stream that starts with the @len bytes at @magic, or *ret_inf = NULL when
 * they are no known compression.  -TAPE_E_VERSION when this build has no decoder for it.
 */
int capture_inflate_create(const unsigned char *magic, size_t len,
			   struct capture_inflate **ret_inf, struct tape_err *reterr)
	TAPE_MUST_CHECK;
void capture_inflate_destroy(struct capture_inflate *inf); /* NULL is accepted */

/*
 * Consume from @in (*@in_used of @in_len bytes) and produce into @out.  Returns the bytes
 * produced or -TAPE_E_FORMAT with a short reason in @reterr.
 */
int capture_inflate_run(struct capture_inflate *inf, const void *in, size_t in_len,
			size_t *in_used, void *out, size_t out_len, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/* True when the input may end here (every started frame is complete). */
bool capture_inflate_at_end(const struct capture_inflate *inf);

#endif
