/* SPDX-License-Identifier: MIT */
/*
 * From an event in a ring-buffer page to a row: what trace.dat files and live recordings share.
 *
 *	td_decoder_init -> td_decode_event ... -> td_decoder_fini
 *
 * Events must come merged over the CPUs, in time order.  One thread.
 */
#ifndef SLABTAPE_CAPTURE_TRACEDAT_DECODE_H
#define SLABTAPE_CAPTURE_TRACEDAT_DECODE_H

#include "capture/ingest.h"
#include "capture/kallsyms.h"
#include "capture/tracedat_events.h"
#include "capture/tracedat_pages.h"

struct td_decoder {
	const struct tracedat *td; /* formats, symbols, names; borrowed */
	struct ingest *ing;	   /* borrowed */
	struct capture_stats *stats;
	struct tape_err *reterr;
	struct td_events events;
	struct kallsyms symbols;
};

/*
 * Read the formats and symbols of @td.  Errors as td_events_read() and kallsyms_read(); @reterr
 * is kept for the decoder's life.  ing and stats are set by the caller before the first event.
 */
int td_decoder_init(struct td_decoder *d, const struct tracedat *td, struct tape_err *reterr)
	TAPE_MUST_CHECK;
void td_decoder_fini(struct td_decoder *d);

/* Hand the current event of @s over.  -TAPE_E_FORMAT when it contradicts its own format. */
int td_decode_event(struct td_decoder *d, const struct td_stream *s) TAPE_MUST_CHECK;

/* Names of threads: "PID NAME" lines (saved_cmdlines). */
int td_decode_threads(struct td_decoder *d, const char *text, size_t len) TAPE_MUST_CHECK;

#endif
