/* SPDX-License-Identifier: MIT */
/*
 * The events of one CPU: chunks (compressed or not) of ring-buffer pages.
 *
 *	page: u64 timestamp | long commit | data		commit: bytes, | 1<<31 events missed
 *	event: u32 type_len:5, delta:27 | payload		before this page, | 1<<30 their number
 *								stands behind the data
 * Source: Linux include/linux/ring_buffer.h, kernel/trace/ring_buffer.c.  One chunk in memory.
 */
#ifndef SLABTAPE_CAPTURE_TRACEDAT_PAGES_H
#define SLABTAPE_CAPTURE_TRACEDAT_PAGES_H

#include "capture/tracedat.h"

struct td_stream {
	const struct tracedat *td;
	uint32_t cpu;
	uint64_t at, end;	 /* in the file: next chunk or page */
	uint64_t chunks_left;	 /* compressed data */
	uint8_t *chunk;		 /* decompressed chunk, own memory */
	size_t chunk_capacity;
	const uint8_t *page, *pages_end; /* next page in memory */
	uint64_t page_offset;	 /* for messages: offset in the file of the chunk in memory */
	const uint8_t *fed;	 /* start of what td_stream_feed() gave last */
	const uint8_t *event_at, *event_end; /* inside the current page */
	uint64_t raw_ts;
	/* The current event. */
	uint64_t ts;		 /* ns */
	const uint8_t *event;
	uint32_t event_bytes;
	/* Set with the first event after a loss; the reader clears it. */
	bool missed;
	uint64_t missed_events;	 /* 0: number not stored */
};

/* @cpu: an entry of td->cpus.  No memory is taken before the first td_stream_next(). */
int td_stream_init(struct td_stream *s, const struct tracedat *td, const struct tracedat_cpu *cpu,
		   struct tape_err *reterr) TAPE_MUST_CHECK;
void td_stream_fini(struct td_stream *s);

/* Step to the next event.  1, 0 at the end, or an error with file and offset. */
int td_stream_next(struct td_stream *s, struct tape_err *reterr) TAPE_MUST_CHECK;

/*
 * Live data: more pages of a stream whose td has no map, after td_stream_next() returned 0.
 * @pages are borrowed until it returns 0 again.
 */
void td_stream_feed(struct td_stream *s, const uint8_t *pages, size_t bytes);

/* Order of two current events: time, then CPU. */
static inline bool td_stream_before(const struct td_stream *a, const struct td_stream *b)
{
	return a->ts != b->ts ? a->ts < b->ts : a->cpu < b->cpu;
}

#endif
