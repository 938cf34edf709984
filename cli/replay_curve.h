/* SPDX-License-Identifier: MIT */
/* A curve over CPU counts: one tape on machines of several sizes, each a scaled-up copy of it. */
#ifndef SLABTAPE_CLI_REPLAY_CURVE_H
#define SLABTAPE_CLI_REPLAY_CURVE_H

#include "cli/output.h"
#include "cli/replay_opts.h"

struct tape;

/* One machine of the curve: means over the repeats, and the spread of the throughput. */
struct cli_curve_point {
	uint32_t cpus, nodes, scale, repeats;
	double ops_per_s, ops_per_s_min, ops_per_s_max; /* of virtual time */
	double virtual_ns;
	double wait_share;	/* time waited for locks, of all CPUs' time, 0..1 */
	double list_lock_share; /* of that, for list_lock */
	double contended_share; /* contended acquisitions of list_lock, of all of them, 0..1 */
	double dependency_share;
};

/*
 * The copies of @t that make @cpus CPUs.  -TAPE_E_USAGE: not a multiple of the tape's CPUs.
 */
int cli_curve_scale(struct tape *t, uint32_t cpus, uint32_t *ret_scale, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/* What @nr results of one machine say. */
struct cli_curve_point cli_curve_point_of(struct replay_result *const *results, uint32_t nr);

/*
 * Rows in @format; the last column is the throughput over that of the first point.  @r, a result of
 * the curve, gives variant, pace and costs, which stand above the table and around the JSON rows:
 *	{ "slabtape", "format", "variant", "mode", "pace", "seed", "costs": {..}, "curve": [..] }
 */
int cli_curve_print(const struct cli_curve_point *points, uint32_t nr,
		    const struct replay_result *r, enum output_format format) TAPE_MUST_CHECK;

#endif
