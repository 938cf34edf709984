/* SPDX-License-Identifier: MIT */
/*
 * What stands behind the SRC argument of an import: one file, a CTF recording (a folder with
 * `metadata`, or with `kernel/metadata`), or a directory as `record --print-script` leaves it.
 *
 *	trace.dat | trace.txt | trace | trace-cmd-report.txt	the events, the first that exists
 *	cpuN.raw, formats, ...					pages of ring buffers (tracedat_raw.c)
 *	slab.before, slab.after					dumps of /sys/kernel/slab
 *	slabinfo.before, slabinfo.after				without those: /proc/slabinfo
 *	zoneinfo						copy of /proc/zoneinfo
 *	kcore							first 4 KiB of /proc/kcore
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
	char *events; /* path of the events, "-" for standard input; a folder when is_ctf or is_raw */
	bool is_ctf;  /* a CTF recording: a folder with a file `metadata` */
	bool is_raw;  /* pages of ring buffers: a folder with a file `cpu0.raw` */
	char *slab_before, *slab_after, *zoneinfo, *topology, *release, *kcore; /* NULL: none */
};

/* Fill @s from @path and @options (may be NULL).  Released with capture_source_fini(). */
int capture_source_find(const char *path, const struct capture_options *options,
			struct capture_source *ret_s, struct tape_err *reterr) TAPE_MUST_CHECK;
void capture_source_fini(struct capture_source *s);

/* malloc'ed path of @dir/@name with the first suffix that exists; NULL when none does. */
char *capture_source_file(const char *dir, const char *name);

/* Format by content, from the first bytes of @in.  Consumes nothing. */
int capture_source_detect(struct capture_input *in, enum capture_format *ret_format,
			  struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
