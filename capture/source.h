/* SPDX-License-Identifier: MIT */
/*
 * What stands behind the SRC argument of an import: one file, a CTF recording (a folder with
 * `metadata`, or with `kernel/metadata`), or a directory as `record --print-script` leaves it.
 *
 *	trace.dat | trace.txt | trace | trace-cmd-report.txt	the events, the first that exists
 *	slab.before, slab.after					dumps of /sys/kernel/slab
 *	slabinfo.before, slabinfo.after				without those: /proc/slabinfo
 *	zoneinfo						copy of /proc/zoneinfo
 *	topology						one line, "0-3:0,4-7:1"
 *	release							one line, `uname -r`
 *
 * Each may carry .zst, .gz or .xz behind its name.  Options given by hand win over files found.
 */
#ifndef SLABTAPE_CAPTURE_SOURCE_H
#define SLABTAPE_CAPTURE_SOURCE_H

#include "capture/import.h"

struct capture_input;

struct capture_source {
	char *events; /* path of the events, "-" for standard input; a folder when is_ctf */
	bool is_ctf;  /* a CTF recording: a folder with a file `metadata` */
	char *slab_before, *slab_after, *zoneinfo, *topology, *release; /* NULL: none */
};

/* Fill @s from @path and @options (may be NULL).  Released with capture_source_fini(). */
int capture_source_find(const char *path, const struct capture_options *options,
			struct capture_source *ret_s, struct tape_err *reterr) TAPE_MUST_CHECK;
void capture_source_fini(struct capture_source *s);

/* Format by content, from the first bytes of @in.  Consumes nothing. */
int capture_source_detect(struct capture_input *in, enum capture_format *ret_format,
			  struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
