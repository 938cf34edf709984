/* SPDX-License-Identifier: MIT */
#include "capture/import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "capture/import_internal.h"
#include "capture/input.h"
#include "capture/source.h"
#include "store/tape.h"

static const char *const format_names[CAPTURE_FORMAT_MAX] = {
	[CAPTURE_FORMAT_UNKNOWN] = "unknown",	[CAPTURE_FORMAT_TAPE] = "tape",
	[CAPTURE_FORMAT_OPS] = "ops",		[CAPTURE_FORMAT_TRACEDAT] = "trace.dat",
	[CAPTURE_FORMAT_TEXT] = "ftrace-text",	[CAPTURE_FORMAT_CTF] = "ctf",
	[CAPTURE_FORMAT_RAW] = "ring-buffer-pages",
};

const char *capture_format_name(enum capture_format format)
{
	return format_names[format < CAPTURE_FORMAT_MAX ? format : CAPTURE_FORMAT_UNKNOWN];
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int capture_detect(const char *path, enum capture_format *ret_format, struct tape_err *reterr)
{
	TAPE_CLEANUP(capture_input_closep) struct capture_input *in = NULL;
	struct capture_source source;
	int rc = capture_source_find(path, NULL, &source, reterr);

	if (rc < 0)
		return rc;
	if (source.is_ctf || source.is_raw)
		*ret_format = source.is_ctf ? CAPTURE_FORMAT_CTF : CAPTURE_FORMAT_RAW;
	else
		rc = capture_input_open(source.events, &in, reterr);
	if (rc >= 0 && in)
		rc = capture_source_detect(in, ret_format, reterr);
	capture_source_fini(&source);
	return rc;
}

int import_release(const struct import_job *job, const char *release, struct tape_err *reterr)
{
	if (job->options->release)
		return 0;
	free(job->source->release);
	job->source->release = strdup(release);
	return job->source->release ? 0 : tape_err_set(reterr, -ENOMEM, "out of memory");
}

static int import_ctf_folder(const struct import_job *job, struct tape_err *reterr)
{
	job->stats->format = CAPTURE_FORMAT_CTF;
#ifdef CAPTURE_CTF
	return import_ctf(job->source->events, job, reterr);
#else
	return tape_err_set(reterr, -TAPE_E_VERSION,
			    "open (%s): a CTF recording; this build has no babeltrace2",
			    job->source->events);
#endif
}

static int import_events(const struct import_job *job, struct tape_err *reterr)
{
	TAPE_CLEANUP(capture_input_closep) struct capture_input *in = NULL;
	int rc;

	if (job->source->is_ctf)
		return import_ctf_folder(job, reterr);
	if (job->source->is_raw) {
		job->stats->format = CAPTURE_FORMAT_RAW;
		return import_raw(job->source->events, job, reterr);
	}
	rc = capture_input_open(job->source->events, &in, reterr);
	if (rc >= 0)
		rc = capture_source_detect(in, &job->stats->format, reterr);
	if (rc < 0)
		return rc;
	switch (job->stats->format) {
	case CAPTURE_FORMAT_OPS:
		return import_ops(in, job, reterr);
	case CAPTURE_FORMAT_TRACEDAT:
		return import_tracedat(in, job, reterr);
	case CAPTURE_FORMAT_TEXT:
		return import_text(in, job, reterr);
	default:
		return tape_err_set(reterr, -TAPE_E_FORMAT, "import (%s): is a tape already",
				    job->source->events);
	}
}

int capture_import(const char *path, const struct capture_options *options, struct tape *t,
		   struct capture_stats *ret_stats, struct tape_err *reterr)
{
	static const struct capture_options defaults;
	struct capture_source source;
	struct import_job job = { .source = &source, .options = options ? options : &defaults,
				  .t = t, .stats = ret_stats };
	uint64_t started_ns = now_ns();
	int rc = capture_source_find(path, options, &source, reterr);

	if (rc < 0)
		return rc;
	memset(ret_stats, 0, sizeof(*ret_stats));
	rc = import_events(&job, reterr);
	if (rc >= 0 && job.options->command)
		rc = tape_meta_set(t, "command", job.options->command, reterr);
	if (rc >= 0)
		rc = tape_writer_finish(t, reterr);
	capture_source_fini(&source);
	ret_stats->elapsed_ns = now_ns() - started_ns;
	return rc;
}

int capture_open_source(const char *path, const struct capture_options *options,
			struct tape **ret_tape, struct capture_stats *ret_stats,
			struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_closep_tape) struct tape *t = NULL;
	struct capture_stats stats;
	int rc;

	if (strcmp(path, "-") && tape_is_tape(path)) {
		if (ret_stats)
			*ret_stats = (struct capture_stats){ .format = CAPTURE_FORMAT_TAPE };
		return tape_open(path, TAPE_READ, ret_tape, reterr);
	}
	rc = tape_create(NULL, false, &t, reterr);
	if (rc >= 0)
		rc = capture_import(path, options, t, ret_stats ? ret_stats : &stats, reterr);
	if (rc < 0)
		return rc;
	*ret_tape = tape_steal(&t);
	return 0;
}
