/* SPDX-License-Identifier: MIT */
/* What the importers of capture/ share; not for other modules. */
#ifndef SLABTAPE_CAPTURE_IMPORT_INTERNAL_H
#define SLABTAPE_CAPTURE_IMPORT_INTERNAL_H

#include "capture/import.h"

struct capture_input;
struct capture_source;
struct tape;

/* One import: everything borrowed from capture_import(). */
struct import_job {
	struct capture_source *source;
	const struct capture_options *options;
	struct tape *t;
	struct capture_stats *stats;
};

/*
 * Import one opened source.  Each defines the small tables, appends the events and adds to
 * job->stats; capture_import() calls tape_writer_finish() after it.
 */
int import_ops(struct capture_input *in, const struct import_job *job, struct tape_err *reterr)
	TAPE_MUST_CHECK;

int import_tracedat(struct capture_input *in, const struct import_job *job,
		    struct tape_err *reterr) TAPE_MUST_CHECK;

/* @path: a folder with pages of ring buffers. */
int import_raw(const char *path, const struct import_job *job, struct tape_err *reterr)
	TAPE_MUST_CHECK;

int import_text(struct capture_input *in, const struct import_job *job, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/* @path: the folder.  Only in builds with babeltrace2 (CAPTURE_CTF). */
int import_ctf(const char *path, const struct import_job *job, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/* The recorded kernel's release, from the source itself; one given by hand stands. */
int import_release(const struct import_job *job, const char *release, struct tape_err *reterr)
	TAPE_MUST_CHECK;

#endif
