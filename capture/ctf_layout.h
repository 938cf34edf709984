/* SPDX-License-Identifier: MIT */
/*
 * Is a CTF folder laid out exactly as our own tracepoints on LTTng-UST 2.13 are written?  Then the
 * fast reader (ctf_stream.h) knows every byte of its packets; anything else is for babeltrace2.
 *
 * The metadata is compared statement by statement with what the fast reader was written for:
 * types, packet header and context, event header, streams without contexts, clock of 1 GHz, and
 * the fields of each event (ust/lttng_tracepoints.h, include/slabtape/).
 */
#ifndef SLABTAPE_CAPTURE_CTF_LAYOUT_H
#define SLABTAPE_CAPTURE_CTF_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CTF_STREAM_CLASSES 16 /* limits of our own recordings; more is for babeltrace2 */
#define CTF_EVENT_CLASSES 32

struct ctf_layout {
	uint8_t uuid[16];
	/* By stream class and event class: enum ctf_what; 0xff: none. */
	uint8_t what[CTF_STREAM_CLASSES][CTF_EVENT_CLASSES];
};

/*
 * Read @dir/metadata.  1: it is our layout, *ret_layout is filled; 0: it is something else, with
 * the first difference in @why (@why_bytes).  Negative: it cannot be read.
 */
int ctf_layout_read(const char *dir, struct ctf_layout *ret_layout, char *why, size_t why_bytes,
		    struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
