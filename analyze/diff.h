/* SPDX-License-Identifier: MIT */
/*
 * What differs between two tapes or two runs, most telling first.
 *
 * Rows: cache, counter, a, b, delta (b - a), change (delta / a, null when a is 0), a_lo, a_hi, b_lo,
 * b_hi, distinct.  The interval of a run spans the runs of its tape that differ from it in nothing
 * but the seed; a single run and a tape have none (lo = hi).  distinct: the intervals do not meet.
 * Distinct rows come first, then by |delta| / sqrt(|a| + |b|): a difference in units of the
 * scatter that counts of that size have by chance.  Equal values give no row.
 */
#ifndef SLABTAPE_ANALYZE_DIFF_H
#define SLABTAPE_ANALYZE_DIFF_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"

struct tape;

/*
 * Events: per cache hit, free, bytes, pingpong, live (analyze/stat.h).  Caches meet by name.
 * *ret_rows: a new reference.
 */
int diff_tapes(struct tape *a, struct tape *b, json_t **ret_rows, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/* Every counter of run @run_a of @a and run @run_b of @b.  -TAPE_E_USAGE: no such run. */
int diff_runs(struct tape *a, int64_t run_a, struct tape *b, int64_t run_b, json_t **ret_rows,
	      struct tape_err *reterr) TAPE_MUST_CHECK;

/*
 * The first transition in which two runs of @t part, one row for each: the canned query
 * first-divergence.  No rows: they never do.  -TAPE_E_USAGE: a run without transitions.
 */
int diff_first(struct tape *t, int64_t run_a, int64_t run_b, json_t **ret_rows,
	       struct tape_err *reterr) TAPE_MUST_CHECK;

/* Is any row distinct? */
int diff_is_distinct(const json_t *rows);

#endif
