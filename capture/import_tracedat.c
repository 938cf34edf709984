/* SPDX-License-Identifier: MIT */
/*
 * trace.dat: the CPUs' event streams merged by time.
 *
 * A heap of CPUs ordered by (time of the next event, CPU) makes the order total and stable; the
 * CPU at the top goes on while it is the oldest.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "capture/import_internal.h"
#include "capture/ingest.h"
#include "capture/input.h"
#include "capture/kallsyms.h"
#include "capture/source.h"
#include "capture/tracedat_events.h"
#include "capture/tracedat_pages.h"
#include "store/tape.h"

#define MARKER_PREFIX "slabtape:"
#define PROGRESS_EVENTS (1u << 18)

/* struct trace_entry's flags: Linux include/linux/trace_events.h */
enum { ENTRY_HARDIRQ = 0x08, ENTRY_SOFTIRQ = 0x10, ENTRY_NMI = 0x40 };

struct tracedat_import {
	const struct import_job *job;
	struct tape_err *reterr;
	struct tracedat *td;
	struct td_events events;
	struct kallsyms symbols;
	struct ingest *ing;
	struct td_stream *streams;
	size_t streams_nr;
	struct td_stream **heap;
	size_t heap_nr;
	uint64_t seen;
};

static void heap_down(struct tracedat_import *im, size_t at)
{
	struct td_stream **heap = im->heap, *moving = heap[at];

	for (;;) {
		size_t child = at * 2 + 1;

		if (child >= im->heap_nr)
			break;
		if (child + 1 < im->heap_nr && td_stream_before(heap[child + 1], heap[child]))
			child++;
		if (!td_stream_before(heap[child], moving))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moving;
}

/* What a page's header says was lost before it. */
static int declare_loss(struct tracedat_import *im, struct td_stream *s, uint64_t before_ts)
{
	s->missed = false;
	return ingest_loss(im->ing, (int32_t)s->cpu, before_ts, s->ts, s->missed_events,
			   "ring buffer overrun", im->reterr);
}

/* Step @s; losses in front of its new event are declared at once, before any later event. */
static int advance(struct tracedat_import *im, struct td_stream *s)
{
	uint64_t before_ts = s->event ? s->ts : 0;
	int rc = td_stream_next(s, im->reterr);

	if (rc > 0 && s->missed) {
		int loss = declare_loss(im, s, before_ts);

		return loss < 0 ? loss : rc;
	}
	return rc;
}

static int site_of(struct tracedat_import *im, uint64_t address, uint32_t *ret_site)
{
	const struct kallsyms_symbol *found;
	struct ingest_symbol symbol = { .address = address };
	bool is_new;
	int rc = ingest_site_by_address(im->ing, address, ret_site, &is_new, im->reterr);

	if (rc < 0 || !is_new)
		return rc;
	found = kallsyms_find(&im->symbols, address);
	if (found) {
		symbol.symbol = found->name;
		symbol.symbol_len = found->name_len;
		symbol.module = found->module;
		symbol.module_len = found->module_len;
		symbol.offset = address - found->address;
	}
	return ingest_site_define(im->ing, *ret_site, &symbol, im->reterr);
}

static uint8_t context_of(uint64_t flags)
{
	if (flags & ENTRY_NMI)
		return TAPE_CTX_NMI;
	if (flags & ENTRY_HARDIRQ)
		return TAPE_CTX_HARDIRQ;
	return flags & ENTRY_SOFTIRQ ? TAPE_CTX_SOFTIRQ : TAPE_CTX_TASK;
}

static int corrupt_event(const struct tracedat_import *im, const struct td_stream *s,
			 const char *what)
{
	return tape_err_set(im->reterr, -TAPE_E_FORMAT,
			    "trace.dat (%s, CPU %u, offset %llu): %s: the file is corrupt",
			    im->td->path, s->cpu, (unsigned long long)s->page_offset, what);
}

/* The cache's name in an event: a data_loc field, offset | length << 16. */
static int name_of(const struct tracedat_import *im, const struct td_stream *s,
		   const struct td_format *f, struct capture_raw *raw)
{
	uint32_t loc, offset, len;

	if (!f->field[TD_FIELD_NAME].bytes)
		return 0;
	loc = (uint32_t)td_field_get(f, TD_FIELD_NAME, s->event);
	offset = loc & 0xffff;
	len = loc >> 16;
	if (f->name_relative)
		offset += f->field[TD_FIELD_NAME].offset + f->field[TD_FIELD_NAME].bytes;
	if (!len || len > s->event_bytes || offset > s->event_bytes - len)
		return corrupt_event(im, s, "a cache name lies outside its event");
	raw->cache = (const char *)s->event + offset;
	raw->cache_len = (uint32_t)strnlen(raw->cache, len);
	if (!raw->cache_len)
		raw->cache = NULL;
	return 0;
}

static int kmem_event(struct tracedat_import *im, struct td_stream *s, struct td_format *f)
{
	const uint8_t *event = s->event;
	struct capture_raw raw = {
		.ts = s->ts,
		.address = td_field_get(f, TD_FIELD_PTR, event),
		.tid = (int32_t)td_field_get(f, TD_FIELD_PID, event),
		.cpu = (uint16_t)s->cpu,
		.node_req = TAPE_NODE_NONE,
		.is_free = f->kind == TD_KFREE || f->kind == TD_CACHE_FREE,
		.is_kmalloc = f->kind == TD_KMALLOC || f->kind == TD_KFREE,
		.ctx = context_of(td_field_get(f, TD_FIELD_FLAGS, event)),
	};
	int rc = site_of(im, td_field_get(f, TD_FIELD_SITE, event), &raw.site);

	if (rc >= 0)
		rc = name_of(im, s, f, &raw);
	if (rc < 0)
		return rc;
	if (!raw.is_free) {
		raw.bytes_req = td_field_get(f, TD_FIELD_BYTES_REQ, event);
		raw.bytes_alloc = td_field_get(f, TD_FIELD_BYTES_ALLOC, event);
		raw.gfp = capture_gfp_bits(&f->gfp, td_field_get(f, TD_FIELD_GFP, event));
		raw.accounted = f->kmalloc_accounts && raw.gfp & TAPE_GFP_ACCOUNT;
		if (f->field[TD_FIELD_NODE].bytes)
			raw.node_req = (int16_t)td_field_get(f, TD_FIELD_NODE, event);
		if (raw.node_req < 0 || raw.node_req >= TAPE_NODE_MAX)
			raw.node_req = TAPE_NODE_NONE;
	}
	return ingest_event(im->ing, &raw, im->reterr);
}

/* Text of a trace_printk format or string at @address: `0xADDRESS : "text"` lines. */
static const char *printk_at(const struct tracedat *td, uint64_t address, size_t *ret_len)
{
	const char *at = td->printk.data, *end = at + td->printk.len;

	while (at && at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		const char *open = memchr(at, '"', (size_t)(stop - at));

		if (open && strtoull(at, NULL, 16) == address) {
			const char *close = memrchr(open + 1, '"', (size_t)(stop - open - 1));

			*ret_len = (size_t)((close ? close : stop) - open - 1);
			return open + 1;
		}
		at = stop + 1;
	}
	return NULL;
}

/* Texts that begin with "slabtape:" are markers; other prints are not kept. */
static int print_event(struct tracedat_import *im, struct td_stream *s, const struct td_format *f)
{
	char text[512];
	const char *at;
	size_t len;

	if (f->kind == TD_PRINT) {
		at = (const char *)s->event + f->field[TD_FIELD_BUF].offset;
		len = strnlen(at, s->event_bytes - f->field[TD_FIELD_BUF].offset);
	} else {
		at = printk_at(im->td, td_field_get(f, TD_FIELD_FMT, s->event), &len);
	}
	if (!at || len < strlen(MARKER_PREFIX) || memcmp(at, MARKER_PREFIX, strlen(MARKER_PREFIX))) {
		im->job->stats->other++;
		return 0;
	}
	len = len < sizeof(text) - 1 ? len : sizeof(text) - 1;
	memcpy(text, at, len);
	while (len && (text[len - 1] == '\n' || text[len - 1] == ' '))
		len--;
	text[len] = '\0';
	return ingest_marker(im->ing, s->ts, s->cpu, text, im->reterr);
}

static int one_event(struct tracedat_import *im, struct td_stream *s)
{
	struct td_format *f;
	uint16_t id;

	memcpy(&id, s->event, sizeof(id));
	f = &im->events.format[im->events.by_id[id]];
	if (s->event_bytes < f->min_bytes)
		return corrupt_event(im, s, "an event is too short");
	switch (f->kind) {
	case TD_OTHER:
		im->job->stats->other++;
		return 0;
	case TD_PRINT:
	case TD_BPRINT:
	case TD_BPUTS:
		return print_event(im, s, f);
	default:
		return kmem_event(im, s, f);
	}
}

static void report_progress(const struct tracedat_import *im)
{
	const struct capture_options *o = im->job->options;
	uint64_t done = 0, total = 0;

	if (!o->progress)
		return;
	for (size_t i = 0; i < im->streams_nr; i++) {
		total += im->td->cpus[i].size;
		done += im->td->cpus[i].size - (im->streams[i].end - im->streams[i].at);
	}
	o->progress(o->progress_ctx, done, total);
}

static int merge(struct tracedat_import *im)
{
	while (im->heap_nr) {
		struct td_stream *s = im->heap[0];
		int rc = one_event(im, s);

		if (rc < 0)
			return rc;
		if (++im->seen % PROGRESS_EVENTS == 0)
			report_progress(im);
		rc = advance(im, s);
		if (rc < 0)
			return rc;
		if (!rc)
			im->heap[0] = im->heap[--im->heap_nr];
		if (im->heap_nr > 1)
			heap_down(im, 0);
	}
	return 0;
}

static int open_streams(struct tracedat_import *im)
{
	size_t nr = im->td->cpus_nr;

	im->streams = calloc(nr, sizeof(*im->streams));
	im->heap = calloc(nr, sizeof(struct td_stream *));
	if (!im->streams || !im->heap)
		return tape_err_set(im->reterr, -ENOMEM, "out of memory");
	im->streams_nr = nr;
	for (size_t i = 0; i < nr; i++) {
		int rc = ingest_cpu(im->ing, im->td->cpus[i].cpu, im->reterr);

		if (rc >= 0)
			rc = td_stream_init(&im->streams[i], im->td, &im->td->cpus[i], im->reterr);
		if (rc >= 0)
			rc = advance(im, &im->streams[i]);
		if (rc < 0)
			return rc;
		if (rc)
			im->heap[im->heap_nr++] = &im->streams[i];
	}
	for (size_t i = im->heap_nr / 2; i-- > 0;)
		heap_down(im, i);
	return 0;
}

/* "PID NAME" lines of the saved command lines. */
static int read_threads(struct tracedat_import *im)
{
	const char *at = im->td->cmdlines.data, *end = at + im->td->cmdlines.len;
	int rc = ingest_thread(im->ing, 0, "<idle>", 6, im->reterr);

	while (rc >= 0 && at && at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		const char *space = memchr(at, ' ', (size_t)(stop - at));

		if (space)
			rc = ingest_thread(im->ing, (int32_t)strtol(at, NULL, 10), space + 1,
					   (size_t)(stop - space - 1), im->reterr);
		at = stop + 1;
	}
	return rc;
}

/* Losses the ring buffers counted but no page header shows (the oldest events overwritten). */
static int declare_overruns(struct tracedat_import *im)
{
	uint64_t told = im->job->stats->lost, counted = 0;

	for (size_t i = 0; i < im->td->stats_nr; i++)
		counted += im->td->stats[i].overrun + im->td->stats[i].dropped;
	if (counted <= told)
		return 0;
	return ingest_loss(im->ing, -1, 0, UINT64_MAX, counted - told,
			   "overrun counted by the ring buffers, time unknown", im->reterr);
}

static int store_meta(struct tracedat_import *im)
{
	struct tape *t = im->job->t;
	int rc = tape_meta_set(t, "source", "trace.dat", im->reterr);

	if (rc >= 0 && im->td->clock)
		rc = tape_meta_set(t, "clock", im->td->clock, im->reterr);
	if (rc >= 0 && im->td->buffers > 1)
		rc = tape_meta_set_int(t, "trace_instances", im->td->buffers, im->reterr);
	return rc;
}

static void fini(struct tracedat_import *im)
{
	for (size_t i = 0; i < im->streams_nr; i++)
		td_stream_fini(&im->streams[i]);
	free(im->streams);
	free(im->heap);
	kallsyms_fini(&im->symbols);
	ingest_destroy(im->ing);
	tracedat_close(im->td);
}

int import_tracedat(struct capture_input *in, const struct import_job *job,
		    struct tape_err *reterr)
{
	struct tracedat_import im = { .job = job, .reterr = reterr };
	int rc = tracedat_open(in, &im.td, reterr);

	if (rc >= 0)
		rc = td_events_read(im.td, &im.events, reterr);
	if (rc >= 0 && im.td->kallsyms.len)
		rc = kallsyms_read(&im.symbols, im.td->kallsyms.data, im.td->kallsyms.len, reterr);
	if (rc >= 0 && im.td->release)
		rc = import_release(job, im.td->release, reterr);
	if (rc >= 0)
		rc = ingest_create(job, &im.ing, reterr);
	if (rc >= 0)
		rc = store_meta(&im);
	if (rc >= 0)
		rc = read_threads(&im);
	if (rc >= 0)
		rc = open_streams(&im);
	if (rc >= 0)
		rc = merge(&im);
	if (rc >= 0)
		rc = declare_overruns(&im);
	if (rc >= 0)
		rc = ingest_finish(im.ing, reterr);
	fini(&im);
	return rc;
}
