/* SPDX-License-Identifier: MIT */
/* Traces in text form: ftrace's `trace`, trace-cmd report, perf script. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "capture/gfp.h"
#include "capture/import_internal.h"
#include "capture/ingest.h"
#include "capture/input.h"
#include "capture/text_line.h"
#include "store/tape.h"

#define MARKER_PREFIX "slabtape:"
#define PROGRESS_LINES (1u << 17)

struct text_cpu {
	uint64_t last_ts;
	uint64_t lost; /* events lost before its next line */
	bool losing;
};

struct text_import {
	const struct import_job *job;
	struct capture_input *in;
	struct tape_err *reterr;
	struct ingest *ing;
	struct text_cpu *cpus; /* TAPE_CPU_MAX */
	uint64_t last_ts;      /* of the latest line */
	bool gfp_missing;      /* "gfp_flags=" without a value was seen */
};

static int bad(const struct text_import *im, int code, const char *what, const char *line)
{
	return tape_err_set(im->reterr, code, "%s:%llu: %s: \"%.80s\"",
			    capture_input_path(im->in),
			    (unsigned long long)capture_input_lineno(im->in), what, line);
}

enum text_event { TEXT_EVENT_NONE, TEXT_KMALLOC, TEXT_CACHE_ALLOC, TEXT_KFREE, TEXT_CACHE_FREE };

static enum text_event event_of(const struct text_span *name)
{
	static const struct {
		const char *name;
		enum text_event event;
	} events[] = {
		{ "kfree", TEXT_KFREE },
		{ "kmalloc", TEXT_KMALLOC },
		{ "kmem_cache_free", TEXT_CACHE_FREE },
		{ "kmem_cache_alloc", TEXT_CACHE_ALLOC },
		{ "kmalloc_node", TEXT_KMALLOC },
		{ "kmem_cache_alloc_node", TEXT_CACHE_ALLOC },
	};

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (strlen(events[i].name) == name->len &&
		    !memcmp(events[i].name, name->at, name->len))
			return events[i].event;
	return TEXT_EVENT_NONE;
}

/* A number in @base that fills @span; *ret is left alone when there is none. */
static bool number_of(const struct text_span *span, int base, uint64_t *ret)
{
	char text[32], *end;
	uint64_t value;

	if (!span->at || !span->len || span->len >= sizeof(text))
		return false;
	memcpy(text, span->at, span->len);
	text[span->len] = '\0';
	errno = 0;
	value = strtoull(text, &end, base);
	if (*end || errno)
		return false;
	*ret = value;
	return true;
}

/* "ffff888000dbd5c0", "0xffff...", "(nil)", "(null)", "0". */
static bool pointer_of(const struct text_span *span, uint64_t *ret)
{
	if (!span->at)
		return false;
	if ((span->len == 5 && !memcmp(span->at, "(nil)", 5)) ||
	    (span->len == 6 && !memcmp(span->at, "(null)", 6))) {
		*ret = 0;
		return true;
	}
	return number_of(span, 16, ret);
}

static uint16_t gfp_of(struct text_import *im, const struct text_span *span)
{
	if (!span->at || !span->len) {
		im->gfp_missing = true;
		return TAPE_GFP_KERNEL;
	}
	return capture_gfp_from_text(span->at, span->len);
}

static bool is_true(const struct text_span *span)
{
	return span->len == 4 && !memcmp(span->at, "true", 4);
}

static int fill_alloc(struct text_import *im, const struct text_span *f, const char *line,
		      struct capture_raw *raw)
{
	int64_t node = TAPE_NODE_NONE;
	uint64_t number;

	if (!number_of(&f[TEXT_BYTES_REQ], 10, &raw->bytes_req) ||
	    !number_of(&f[TEXT_BYTES_ALLOC], 10, &raw->bytes_alloc))
		return bad(im, -TAPE_E_FORMAT, "no bytes_req or bytes_alloc", line);
	raw->gfp = gfp_of(im, &f[TEXT_GFP]);
	raw->accounted = raw->is_kmalloc && is_true(&f[TEXT_ACCOUNTED]);
	if (number_of(&f[TEXT_NODE], 10, &number))
		node = (int64_t)number;
	raw->node_req = node >= 0 && node < TAPE_NODE_MAX ? (int16_t)node : TAPE_NODE_NONE;
	return 0;
}

static int kmem_line(struct text_import *im, const struct text_line *l, enum text_event event,
		     const char *line)
{
	struct text_span f[TEXT_KEY_MAX];
	struct capture_raw raw = {
		.ts = l->ts_ns,
		.cpu = (uint16_t)l->cpu,
		.tid = l->tid,
		.ctx = l->ctx,
		.node_req = TAPE_NODE_NONE,
		.is_free = event == TEXT_KFREE || event == TEXT_CACHE_FREE,
		.is_kmalloc = event == TEXT_KMALLOC || event == TEXT_KFREE,
	};
	int rc = 0;

	text_line_fields(&l->rest, f);
	if (!pointer_of(&f[TEXT_PTR], &raw.address))
		return bad(im, -TAPE_E_FORMAT,
			   "no ptr= that is a number (hidden pointers: record with the trace "
			   "option nohash-ptr)",
			   line);
	if (!raw.is_free)
		rc = fill_alloc(im, f, line, &raw);
	if (rc >= 0 && f[TEXT_CALL_SITE].at)
		rc = ingest_site_by_text(im->ing, f[TEXT_CALL_SITE].at, f[TEXT_CALL_SITE].len,
					 &raw.site, im->reterr);
	if (f[TEXT_NAME].len) {
		raw.cache = f[TEXT_NAME].at;
		raw.cache_len = (uint32_t)f[TEXT_NAME].len;
	}
	return rc < 0 ? rc : ingest_event(im->ing, &raw, im->reterr);
}

/* Prints: the text behind "function:" when there is one. */
static int other_line(struct text_import *im, const struct text_line *l)
{
	const char *marker = l->rest.at ? strstr(l->rest.at, MARKER_PREFIX) : NULL;
	char text[512];
	size_t len;

	if (!marker || (marker != l->rest.at && marker[-1] != ' ')) {
		im->job->stats->other++;
		return 0;
	}
	len = (size_t)(l->rest.at + l->rest.len - marker);
	len = len < sizeof(text) - 1 ? len : sizeof(text) - 1;
	memcpy(text, marker, len);
	while (len && text[len - 1] == ' ')
		len--;
	text[len] = '\0';
	return ingest_marker(im->ing, l->ts_ns, l->cpu, text, im->reterr);
}

/* A loss of @cpu ends with its next line at @ts_ns, or where the text ends. */
static int end_loss(struct text_import *im, uint32_t cpu, uint64_t ts_ns)
{
	struct text_cpu *c = &im->cpus[cpu];
	int rc = 0;

	if (c->losing)
		rc = ingest_loss(im->ing, (int32_t)cpu, c->last_ts, ts_ns, c->lost,
				 "ring buffer overrun", im->reterr);
	c->losing = false;
	c->lost = 0;
	c->last_ts = ts_ns;
	if (ts_ns > im->last_ts)
		im->last_ts = ts_ns;
	return rc;
}

static int end_losses(struct text_import *im)
{
	int rc = 0;

	for (uint32_t cpu = 0; cpu < TAPE_CPU_MAX && rc >= 0; cpu++)
		if (im->cpus[cpu].losing)
			rc = end_loss(im, cpu, im->last_ts);
	return rc;
}

static int event_line(struct text_import *im, const struct text_line *l, const char *line)
{
	enum text_event event = event_of(&l->event);
	int rc = end_loss(im, l->cpu, l->ts_ns);

	if (rc >= 0 && !(l->comm.len == 5 && !memcmp(l->comm.at, "<...>", 5)))
		rc = ingest_thread(im->ing, l->tid, l->comm.at, l->comm.len, im->reterr);
	if (rc < 0)
		return rc;
	return event == TEXT_EVENT_NONE ? other_line(im, l) : kmem_line(im, l, event, line);
}

/* "# entries-in-buffer/entries-written: 10/12   #P:2" */
static int header_line(struct text_import *im, const char *line)
{
	const char *at = strstr(line, "entries-written:"), *cpus = strstr(line, "#P:");
	unsigned long long held, written;
	int rc = 0;

	if (!at)
		return 0;
	if (cpus && strtoul(cpus + 3, NULL, 10) > 0)
		rc = ingest_cpu(im->ing, (uint32_t)strtoul(cpus + 3, NULL, 10) - 1, im->reterr);
	at += strlen("entries-written:");
	if (rc >= 0 && sscanf(at, " %llu/%llu", &held, &written) == 2 && written > held)
		rc = ingest_loss(im->ing, -1, 0, 0, written - held,
				 "overwritten before the text was read", im->reterr);
	return rc;
}

/* Lines that belong to these formats and are no events. */
static bool is_decoration(const char *line)
{
	static const char *const starts[] = { "=>", "version =", "<stack trace>", "trace-cmd " };

	line += strspn(line, " \t");
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (!strncmp(line, starts[i], strlen(starts[i])))
			return true;
	return !*line;
}

static int one_line(struct text_import *im, const char *line, size_t len)
{
	struct text_line l;
	uint32_t cpu;
	uint64_t events;

	if (*line == '#')
		return header_line(im, line);
	if (text_line_parse(line, len, &l))
		return event_line(im, &l, line);
	if (text_line_lost(line, &cpu, &events)) {
		im->cpus[cpu].losing = true;
		im->cpus[cpu].lost += events;
		return 0;
	}
	if (!strncmp(line, "cpus=", 5) && strtoul(line + 5, NULL, 10) > 0)
		return ingest_cpu(im->ing, (uint32_t)strtoul(line + 5, NULL, 10) - 1, im->reterr);
	if (is_decoration(line))
		return 0;
	return bad(im, -TAPE_E_FORMAT, "no line of ftrace, trace-cmd report or perf script", line);
}

static void report_progress(const struct text_import *im)
{
	const struct capture_options *o = im->job->options;
	uint64_t done, total;

	if (!o->progress || capture_input_lineno(im->in) % PROGRESS_LINES)
		return;
	capture_input_progress(im->in, &done, &total);
	o->progress(o->progress_ctx, done, total);
}

static int all_lines(struct text_import *im)
{
	char *line;
	size_t len;
	int rc;

	while ((rc = capture_input_line(im->in, &line, &len, im->reterr)) > 0) {
		if (capture_input_line_cut(im->in))
			return bad(im, -TAPE_E_TRUNCATED,
				   "the last line has no end; the file is truncated", line);
		rc = one_line(im, line, len);
		if (rc < 0)
			return rc;
		report_progress(im);
	}
	return rc;
}

static int store_meta(const struct text_import *im)
{
	int rc = tape_meta_set(im->job->t, "source", "ftrace-text", im->reterr);

	if (rc >= 0 && im->gfp_missing)
		rc = tape_meta_set(im->job->t, "gfp", "not recorded; ordinary requests assumed",
				   im->reterr);
	return rc;
}

static int check_seen(const struct text_import *im)
{
	const struct capture_stats *s = im->job->stats;

	if (s->kmalloc + s->cache_alloc + s->kfree + s->cache_free)
		return 0;
	return tape_err_set(im->reterr, -TAPE_E_FORMAT,
			    "%s: no kmem event in %llu lines; record kmem:kmalloc, kmem:kfree, "
			    "kmem:kmem_cache_alloc and kmem:kmem_cache_free",
			    capture_input_path(im->in),
			    (unsigned long long)capture_input_lineno(im->in));
}

int import_text(struct capture_input *in, const struct import_job *job, struct tape_err *reterr)
{
	struct text_import im = { .job = job, .in = in, .reterr = reterr };
	int rc;

	im.cpus = calloc(TAPE_CPU_MAX, sizeof(*im.cpus));
	if (!im.cpus)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	rc = ingest_create(job, &im.ing, reterr);
	if (rc >= 0)
		rc = all_lines(&im);
	if (rc >= 0)
		rc = end_losses(&im);
	if (rc >= 0)
		rc = check_seen(&im);
	if (rc >= 0)
		rc = store_meta(&im);
	if (rc >= 0)
		rc = ingest_finish(im.ing, reterr);
	ingest_destroy(im.ing);
	free(im.cpus);
	return rc;
}
