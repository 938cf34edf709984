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
#include "capture/source.h"
#include "capture/tracedat_decode.h"
#include "capture/tracedat_heap.h"
#include "store/tape.h"

#define PROGRESS_EVENTS (1u << 18)

struct tracedat_import {
	const struct import_job *job;
	struct tape_err *reterr;
	struct tracedat *td;
	struct td_decoder decoder;
	struct ingest *ing;
	struct td_stream *streams;
	size_t streams_nr;
	struct td_heap heap;
	uint64_t seen;
};

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
	while (im->heap.nr) {
		struct td_stream *s = im->heap.at[0];
		int rc = td_decode_event(&im->decoder, s);

		if (rc < 0)
			return rc;
		if (++im->seen % PROGRESS_EVENTS == 0)
			report_progress(im);
		rc = advance(im, s);
		if (rc < 0)
			return rc;
		if (rc)
			td_heap_down(&im->heap, 0);
		else
			td_heap_pop(&im->heap);
	}
	return 0;
}

static int open_streams(struct tracedat_import *im)
{
	size_t nr = im->td->cpus_nr;

	im->streams = calloc(nr, sizeof(*im->streams));
	im->heap.at = calloc(nr, sizeof(struct td_stream *));
	if (!im->streams || !im->heap.at)
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
			td_heap_push(&im->heap, &im->streams[i]);
	}
	return 0;
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

static int store_meta(struct tracedat_import *im, const char *source)
{
	struct tape *t = im->job->t;
	int rc = tape_meta_set(t, "source", source, im->reterr);

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
	free(im->heap.at);
	td_decoder_fini(&im->decoder);
	ingest_destroy(im->ing);
	tracedat_close(im->td);
}

/* Takes over @td. */
static int import_opened(struct tracedat *td, const char *source, const struct import_job *job,
			 struct tape_err *reterr)
{
	struct tracedat_import im = { .job = job, .reterr = reterr, .td = td };
	int rc = td_decoder_init(&im.decoder, td, reterr);

	if (rc >= 0 && td->release)
		rc = import_release(job, td->release, reterr);
	if (rc >= 0)
		rc = ingest_create(job, &im.ing, reterr);
	if (rc >= 0) {
		im.decoder.ing = im.ing;
		im.decoder.stats = job->stats;
		rc = store_meta(&im, source);
	}
	if (rc >= 0)
		rc = td_decode_threads(&im.decoder, td->cmdlines.data, td->cmdlines.len);
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

int import_tracedat(struct capture_input *in, const struct import_job *job,
		    struct tape_err *reterr)
{
	struct tracedat *td;
	int rc = tracedat_open(in, &td, reterr);

	return rc < 0 ? rc : import_opened(td, "trace.dat", job, reterr);
}

int import_raw(const char *path, const struct import_job *job, struct tape_err *reterr)
{
	struct tracedat *td;
	int rc = tracedat_open_raw(path, &td, reterr);

	return rc < 0 ? rc : import_opened(td, "ring-buffer pages", job, reterr);
}
