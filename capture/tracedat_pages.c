/* SPDX-License-Identifier: MIT */
#include "capture/tracedat_pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COMMIT_BYTES_MASK ((1u << 27) - 1)
#define COMMIT_MISSED (1u << 31)
#define COMMIT_MISSED_STORED (1u << 30)
#define DELTA_BITS 27

enum { TYPE_PADDING = 29, TYPE_TIME_EXTEND = 30, TYPE_TIME_STAMP = 31 };

static uint32_t get32(const uint8_t *p)
{
	uint32_t value;

	memcpy(&value, p, 4);
	return value;
}

static int corrupt(const struct td_stream *s, const char *what, struct tape_err *reterr)
{
	return tape_err_set(reterr, -TAPE_E_FORMAT,
			    "trace.dat (%s, CPU %u, offset %llu): %s: the file is corrupt",
			    s->td->path, s->cpu, (unsigned long long)s->page_offset, what);
}

int td_stream_init(struct td_stream *s, const struct tracedat *td, const struct tracedat_cpu *cpu,
		   struct tape_err *reterr)
{
	memset(s, 0, sizeof(*s));
	s->td = td;
	s->cpu = cpu->cpu;
	s->at = s->page_offset = cpu->offset;
	s->end = cpu->offset + cpu->size;
	if (td->cpu_compressed && cpu->size) {
		/* The size in the file leaves out the number of chunks in front. */
		if (td->size - s->end < 4)
			return corrupt(s, "no room for the chunks", reterr);
		s->chunks_left = get32(td->map + s->at);
		s->at += 4;
		s->end += 4;
	}
	return 0;
}

void td_stream_fini(struct td_stream *s)
{
	free(s->chunk);
	s->chunk = NULL;
}

void td_stream_feed(struct td_stream *s, const uint8_t *pages, size_t bytes)
{
	s->page_offset += (uint64_t)(s->pages_end - s->fed);
	s->page = s->fed = pages;
	s->pages_end = pages + bytes;
}

static int load_compressed(struct td_stream *s, struct tape_err *reterr)
{
	uint64_t len, out_len;

	if (!s->chunks_left)
		return 0;
	s->page_offset = s->at;
	if (s->end - s->at < 8)
		return corrupt(s, "a chunk's header ends beyond the CPU's data", reterr);
	len = get32(s->td->map + s->at);
	out_len = get32(s->td->map + s->at + 4);
	s->at += 8;
	if (len > s->end - s->at)
		return corrupt(s, "a chunk ends beyond the CPU's data", reterr);
	if (out_len > TRACEDAT_CHUNK_MAX)
		return corrupt(s, "a chunk of more than 64 MiB", reterr);
	if (out_len > s->chunk_capacity) {
		uint8_t *grown = realloc(s->chunk, out_len);

		if (!grown)
			return tape_err_set(reterr, -ENOMEM, "out of memory");
		s->chunk = grown;
		s->chunk_capacity = out_len;
	}
	if (tracedat_decompress(s->td, s->td->map + s->at, (size_t)len, s->chunk, out_len) < 0)
		return corrupt(s, "a chunk does not decompress", reterr);
	s->at += len;
	s->chunks_left--;
	s->page = s->chunk;
	s->pages_end = s->chunk + out_len;
	return 1;
}

/* More pages into memory.  1, 0 at the end of the CPU's data. */
static int load_pages(struct td_stream *s, struct tape_err *reterr)
{
	if (s->td->cpu_compressed)
		return load_compressed(s, reterr);
	if (s->at >= s->end)
		return 0;
	s->page = s->td->map + s->at;
	s->pages_end = s->td->map + s->end;
	s->at = s->end;
	return 1;
}

/* Behind the data of a page: how many events were lost before it, when there was room for it. */
static void read_missed(struct td_stream *s, uint64_t commit, size_t page_bytes, size_t header)
{
	size_t end = header + (commit & COMMIT_BYTES_MASK);

	s->missed = true;
	s->missed_events = 0;
	if (!(commit & COMMIT_MISSED_STORED) || end + s->td->long_bytes > page_bytes)
		return;
	if (s->td->long_bytes == 8)
		memcpy(&s->missed_events, s->page + end, 8);
	else
		s->missed_events = get32(s->page + end);
}

/* Open the next page that is in memory. */
static int open_page(struct td_stream *s, struct tape_err *reterr)
{
	size_t header = 8 + s->td->long_bytes, left = (size_t)(s->pages_end - s->page);
	size_t page_bytes = left < s->td->page_bytes ? left : s->td->page_bytes;
	uint64_t commit = 0;

	if (s->td->map && !s->td->cpu_compressed)
		s->page_offset = (uint64_t)(s->page - s->td->map);
	if (page_bytes < header)
		return corrupt(s, "a page without header", reterr);
	memcpy(&s->raw_ts, s->page, 8);
	memcpy(&commit, s->page + 8, s->td->long_bytes);
	if ((commit & COMMIT_BYTES_MASK) > page_bytes - header)
		return corrupt(s, "a page holds more than a page", reterr);
	if (commit & COMMIT_MISSED)
		read_missed(s, commit, page_bytes, header);
	s->event_at = s->page + header;
	s->event_end = s->event_at + (commit & COMMIT_BYTES_MASK);
	s->page += page_bytes;
	return 1;
}

static uint64_t to_ns(const struct tracedat *td, uint64_t raw)
{
	if (td->tsc_mult) {
		__extension__ unsigned __int128 wide = raw - td->tsc_offset;

		raw = (uint64_t)(wide * td->tsc_mult >> td->tsc_shift);
	}
	return raw + (uint64_t)td->ts_offset_ns;
}

/* The next event of the current page.  1, 0 at its end. */
static int next_in_page(struct td_stream *s, struct tape_err *reterr)
{
	while (s->event_end - s->event_at >= 4) {
		uint32_t head = get32(s->event_at), type, array = 0;
		uint64_t delta;
		size_t left = (size_t)(s->event_end - s->event_at) - 4;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		type = head & 31;
		delta = head >> 5;
#else
		type = head >> DELTA_BITS;
		delta = head & ((1u << DELTA_BITS) - 1);
#endif
		s->event_at += 4;
		if (type == 0 || type >= TYPE_PADDING) {
			if (type == TYPE_PADDING && !delta)
				return 0; /* nothing more in this page */
			if (left < 4)
				return corrupt(s, "an event ends beyond its page", reterr);
			array = get32(s->event_at);
			s->event_at += 4;
			left -= 4;
		}
		if (type == TYPE_TIME_EXTEND) {
			s->raw_ts += ((uint64_t)array << DELTA_BITS) + delta;
			continue;
		}
		if (type == TYPE_TIME_STAMP) {
			/* 59 bits are stored; the top five are those of the page. */
			s->raw_ts = (s->raw_ts & UINT64_C(31) << 59) |
				    (((uint64_t)array << DELTA_BITS) + delta);
			continue;
		}
		s->raw_ts += delta;
		if (type == TYPE_PADDING) { /* a discarded event: array counts itself */
			uint64_t skip = array < 4 ? 0 : ((uint64_t)array - 4 + 3) & ~UINT64_C(3);

			if (skip > left)
				return 0;
			s->event_at += skip;
			continue;
		}
		s->event_bytes = type ? type * 4 : array < 4 ? 0 : ((array - 4) + 3) & ~3u;
		if (s->event_bytes > left || s->event_bytes < 2)
			return corrupt(s, "an event ends beyond its page", reterr);
		s->event = s->event_at;
		s->event_at += s->event_bytes;
		s->ts = to_ns(s->td, s->raw_ts);
		return 1;
	}
	return 0;
}

int td_stream_next(struct td_stream *s, struct tape_err *reterr)
{
	for (;;) {
		int rc = s->event_at ? next_in_page(s, reterr) : 0;

		if (rc)
			return rc;
		s->event_at = NULL;
		rc = s->page < s->pages_end ? 1 : load_pages(s, reterr);
		if (rc <= 0)
			return rc;
		if (s->page == s->pages_end)
			continue;
		rc = open_page(s, reterr);
		if (rc < 0)
			return rc;
	}
}
