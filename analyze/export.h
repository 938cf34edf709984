/* SPDX-License-Identifier: MIT */
/*
 * A tape in other programs' formats.
 *
 *	ops		the .ops script a tape was imported from (analyze/export_ops.h)
 *	csv, json	one line per event (json: one object per line), or per transition of a run
 *	folded		stacks for flame graphs: cache;module;site weight
 *	speedscope	the same, as profiles of allocations, requested bytes and bytes alive at the end
 *	perfetto	Chrome's trace event format: events on CPU tracks, live objects as counters;
 *			of a run: refills and drains on CPU tracks, slabs from birth to death, samples
 *			as counters, locks as totals
 *	ctf		CTF 1.8, one stream per CPU (a directory)
 *
 * Nothing is left half done: an export is written aside, read back and counted against what was
 * written and against the tape, and only then gets its name (or goes to standard output).
 */
#ifndef SLABTAPE_ANALYZE_EXPORT_H
#define SLABTAPE_ANALYZE_EXPORT_H

#include <stdint.h>

#include "base/error.h"

struct tape;

struct export_config {
	uint64_t begin_ns, end_ns; /* half open; 0, UINT64_MAX: everything */
	int32_t cache;		   /* only this one; -1: all */
	int64_t run;		   /* csv, json, perfetto: show this run; -1: the events */
	const char *weight;	   /* folded: "hit", "bytes" or "live_bytes" */
};
#define EXPORT_CONFIG_ALL \
	((struct export_config){ .end_ns = UINT64_MAX, .cache = -1, .run = -1, .weight = "bytes" })

struct export_sums {
	uint64_t records; /* lines, packets or trace events */
	uint64_t events;  /* events (or rows) of the tape among them; folded, speedscope: weight */
};

extern const char export_formats[]; /* names, for messages */

/*
 * Write @t as @format to @path (NULL or "-": standard output; ctf: a directory that must not
 * exist).  An existing file is replaced.  *ret_sums: what was found on reading it back.
 * -TAPE_E_USAGE: no such format, or an option it does not know; -TAPE_E_IO: cannot be written, or
 * what is there is not what was written.
 */
int export_tape(struct tape *t, const char *format, const struct export_config *cfg,
		const char *path, struct export_sums *ret_sums, struct tape_err *reterr)
	TAPE_MUST_CHECK;

#endif
