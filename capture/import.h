/* SPDX-License-Identifier: MIT */
/*
 * Import: any source we can read becomes a tape.
 *
 * Sources: `.ops` scripts, trace.dat, ftrace text (`trace`, `trace-cmd report`, `perf script`),
 * each as a file, compressed (zstd, gzip, xz) or `-`; CTF folders of lttng-modules; or a directory as `record --kernel --print-script`
 * makes it (docs in capture/README.md).
 */
#ifndef SLABTAPE_CAPTURE_IMPORT_H
#define SLABTAPE_CAPTURE_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct tape;

enum capture_format {
	CAPTURE_FORMAT_UNKNOWN = 0,
	CAPTURE_FORMAT_TAPE,
	CAPTURE_FORMAT_OPS,
	CAPTURE_FORMAT_TRACEDAT,
	CAPTURE_FORMAT_TEXT,
	CAPTURE_FORMAT_CTF,
	CAPTURE_FORMAT_RAW, /* pages of ring buffers */
	CAPTURE_FORMAT_MAX
};

/* Where inferred events stand: see design, "What tracers do not see". */
enum capture_infer { CAPTURE_INFER_LATE = 0, CAPTURE_INFER_EARLY, CAPTURE_INFER_NONE };

/* Direct map of x86-64 Linux without KASLR and with 4-level page tables. */
#define CAPTURE_DIRECT_MAP_X86_64 UINT64_C(0xffff888000000000)

struct capture_options {
	const char *slab_before, *slab_after; /* dumps of /sys/kernel/slab, NULL: none */
	const char *zoneinfo;		      /* copy of /proc/zoneinfo, NULL: none */
	const char *topology;		      /* "0-3:0,4-7:1", NULL: from the source */
	const char *release;		      /* kernel release when the source names none */
	uint64_t direct_map_base;	      /* 0: CAPTURE_DIRECT_MAP_X86_64 when zoneinfo is given */
	enum capture_infer infer;
	const char *command; /* recorded in meta.command, NULL: none */
	/* Called a few times a second; @total_bytes 0 when not known.  NULL: never. */
	void (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
	void *progress_ctx;
};

/* What an import saw and made; all counts of events. */
struct capture_stats {
	enum capture_format format;
	uint64_t kmalloc, cache_alloc, kfree, cache_free, markers; /* read from the source */
	uint64_t other;		/* events of kinds a tape does not keep */
	uint64_t script_ops;	/* .ops */
	uint64_t tape_events;	/* rows of the tape */
	uint64_t inferred_allocs, inferred_frees, orphan_frees;
	uint64_t null_frees, failed_allocs;
	uint64_t unnamed;	/* allocations whose cache nobody named */
	uint64_t guessed;	/* allocations named by their page's neighbours or call site */
	uint64_t lost, lost_unknown; /* events; losses of an unknown number */
	uint64_t elapsed_ns;
};

const char *capture_format_name(enum capture_format format);

/* Find out what @path ("-", a file or a directory) holds.  -TAPE_E_FORMAT when nothing known. */
int capture_detect(const char *path, enum capture_format *ret_format, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/*
 * Import @path into @t, a fresh tape from tape_create(), and finish it.  On failure the tape
 * holds a prefix and meta.complete stays 0; the caller removes the file.  Errors name file and
 * offset or line.
 */
int capture_import(const char *path, const struct capture_options *options, struct tape *t,
		   struct capture_stats *ret_stats, struct tape_err *reterr) TAPE_MUST_CHECK;

/*
 * For verbs that take "a tape or a source": open @path when it is a tape, else import it into a
 * temporary tape.  @options and @ret_stats may be NULL.  The caller closes *ret_tape.
 */
int capture_open_source(const char *path, const struct capture_options *options,
			struct tape **ret_tape, struct capture_stats *ret_stats,
			struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
