/* SPDX-License-Identifier: MIT */
/*
 * The kernel's own counters of a recording, and the window of events they belong to.
 *
 * Import stores them as run 'recorded' (differences between two snapshots) and 'kernel:<release>'
 * (the snapshots).  A snapshot is read file by file, a moment before or after its marker, so for
 * each cache the window's start is moved until as many allocations lie in it as the kernel
 * counted: back, or forward, by at most CLI_WINDOW_MOVE_MAX allocations.  A cache is comparable when
 * the window then holds the kernel's number of allocs and frees within 0.2 % (at least 1), and at
 * most half of its allocations lie before the marker: there nobody knows which frees counted.
 */
#ifndef SLABTAPE_CLI_RECORDED_H
#define SLABTAPE_CLI_RECORDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "replay/engine.h"

#define CLI_WINDOW_MOVE_MAX 100

struct tape;

struct cli_recorded_value {
	char name[40];
	int64_t value;
};

struct cli_recorded_cache {
	uint16_t cache;
	struct cli_recorded_value *values; /* counters of the window; then state at its end */
	size_t nr_values, nr_counters;
	int64_t kernel_allocs, kernel_frees;
	uint64_t allocs, frees; /* events in the window */
	uint64_t from_seq;
	int64_t moved;		/* allocations by which the start was moved back */
	bool comparable;
};

struct cli_recorded {
	struct cli_recorded_cache *caches; /* those with any counter */
	size_t nr_caches;
	struct replay_from *from;	   /* [nr_caches], for replay_config */
};

/*
 * @from and @to: the window's markers or times.  -TAPE_E_USAGE when the tape holds no counters of
 * a kernel.  Released with cli_recorded_fini().
 */
int cli_recorded_load(struct tape *t, const char *from, const char *to, struct cli_recorded *ret,
		      struct tape_err *reterr) TAPE_MUST_CHECK;
void cli_recorded_fini(struct cli_recorded *r);
const struct cli_recorded_cache *cli_recorded_find(const struct cli_recorded *r, uint16_t cache);
/* The value of @name; false: the kernel has no such counter. */
bool cli_recorded_value(const struct cli_recorded_cache *c, const char *name, int64_t *ret_value);

#endif
