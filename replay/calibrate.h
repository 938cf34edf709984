/* SPDX-License-Identifier: MIT */
/*
 * Calibration: the cost table of this host, for comparing simulated runs with runs on real threads.
 *
 *	calibrate.c		one thread: instructions, atomics, the page provider; the table
 *	calibrate_pair.c	two threads on two CPUs: cache lines and locks that change hands
 *
 * Every figure is the smallest of several rounds in wall time, on pinned threads (the hand-over of
 * a lock is a difference: the middle one).  On a busy host use more rounds.  What cannot be measured here (no second CPU, no second node)
 * keeps a figure derived from the built-in table and says so.
 */
#ifndef SLABTAPE_REPLAY_CALIBRATE_H
#define SLABTAPE_REPLAY_CALIBRATE_H

#include <stdio.h>

#include "replay/sim_costs.h"

#define CALIBRATE_ROUNDS_MAX 1000u

struct replay_calibration {
	struct replay_costs costs;
	char how[REPLAY_COSTS_MAX][96]; /* of each key: "measured: ...", "derived: ..." */
	double lock_pair_ns;		/* an uncontended lock and its release */
	uint32_t cpus, nodes;		/* this process may use */
};

/*
 * Measure with @rounds rounds (1 .. CALIBRATE_ROUNDS_MAX); takes about @rounds * 10 ms.
 * -ENOMEM, or -TAPE_E_USAGE for a bad number of rounds.
 */
int replay_calibrate(uint32_t rounds, struct replay_calibration *ret_result,
		     struct tape_err *reterr) TAPE_MUST_CHECK;

/* The table as a file that replay_costs_read() takes.  0 or -TAPE_E_IO. */
int replay_calibration_write(const struct replay_calibration *r, FILE *out) TAPE_MUST_CHECK;

#endif
