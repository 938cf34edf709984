/* SPDX-License-Identifier: MIT */
/*
 * Verdicts: one sentence about a cache, with its evidence and the query that shows it.
 *
 * A verdict is a file in analyze/verdicts/, in the form of the canned queries (analyze/queries.h)
 * with these lines more:
 *
 *	-- data: what a tape must hold so that it can be asked
 *	-- loss: largest share of lost events at which it is given, 0..1
 *	-- param NAME=VALUE: why this is the threshold
 *	-- text KIND: the sentence; {column}, {column%} a share as percent, {column:b} bytes
 *	-- note: KIND			kinds that tell what is there and are no findings
 *
 * Its SELECT gives one row per run and cache that there is enough data about; its column `finding`
 * is one of the kinds or NULL, the others are the evidence.  :run and :cache (a name) restrict it.
 *
 * No verdict is given about a cache with coverage below 0.9, nor where more events were lost than
 * the verdict bears.  What a kernel counted itself (runs 'recorded' and 'kernel:...') is judged all
 * the same, since what the trace misses does not touch it, unless the file has a line
 *
 *	-- coverage: why the kernel's own counters miss what the tracer misses
 */
#ifndef SLABTAPE_ANALYZE_VERDICT_H
#define SLABTAPE_ANALYZE_VERDICT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct tape;

#define VERDICT_COVERAGE_MIN 0.9

struct verdict_config {
	const char *name;  /* one verdict; NULL: all */
	int64_t run;	   /* one run; -1: all runs, and the events */
	const char *cache; /* one cache; NULL: all */
};

/*
 * *ret_verdicts: one object per verdict, in the order of their names:
 *
 *	verdict, question, judged	rows that it looked at
 *	state		"finding", "none", "refused" (nothing but refusals), "no data"
 *	findings	[ { finding, note, run, variant, cache, text, evidence {}, sql } ]
 *	refused		[ { run, variant, cache, reason } ]
 *	data		what would be needed
 *
 * -TAPE_E_USAGE: no verdict of that name.
 */
int verdict_ask(struct tape *t, const struct verdict_config *cfg, json_t **ret_verdicts,
		struct tape_err *reterr) TAPE_MUST_CHECK;

/*
 * Is there a finding of one of @kinds (kinds or verdict names separated by commas; "any": every
 * kind that is no note)?
 */
bool verdict_found(const json_t *verdicts, const char *kinds);

/* True when @name (@bytes of it) is a kind or a verdict, or "any". */
bool verdict_known(const char *name, size_t bytes);

#endif
