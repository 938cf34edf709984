/* SPDX-License-Identifier: MIT */
/*
 * Recording a program: start it with the interposer preloaded, turn what it reports into a tape
 * while it runs, finish the tape when it ends.
 *
 * Back-ends (record_backend.h) differ in how events come out of the program: shared memory
 * (native) or LTTng-UST.
 */
#ifndef SLABTAPE_CAPTURE_RECORD_H
#define SLABTAPE_CAPTURE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/heap.h"

struct record_backend;

struct record_options {
	const char *output; /* path of the tape */
	bool overwrite;
	const char *const *argv; /* program and arguments, NULL-terminated */
	const struct record_backend *backend;
	uint64_t buffer_bytes; /* 0: the back-end's default */
	bool lossless;	       /* hold the program up rather than lose events */
	bool snapshot;	       /* LTTng: keep only the last buffer_bytes of events */
	bool system_daemon;    /* LTTng: the session daemon that runs already */
	uint64_t max_bytes;    /* stop recording when the tape is larger; 0: no limit */
	uint64_t duration_ns;  /* stop recording after that time; 0: when the program ends */
};

struct record_summary {
	struct heap_stats stats;
	uint64_t events;     /* allocs and frees in the tape, without inferred ones */
	uint64_t elapsed_ns; /* of the recording */
	uint64_t finish_ns;  /* from its end until the tape was complete */
	uint64_t tape_bytes;
	double overhead_ns;  /* estimated cost of one event in the program; 0 unknown */
	const char *stopped; /* why recording ended before the program did; NULL: it did not */
	int exit_status;     /* what the verb shall exit with, see design section 9 */
};

/*
 * Record one run.  0: the tape is complete and ret_summary->exit_status is the program's (128 +
 * signal).  Negative: no tape is left; exit_status is 127 (program not found), 126 (not
 * executable) or 125.  While it runs, SIGINT, SIGTERM and SIGHUP are passed on to the program; a
 * second one ends the recording at once.
 */
int record_run(const struct record_options *options, struct record_summary *ret_summary,
	       struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
