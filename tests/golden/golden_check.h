/* SPDX-License-Identifier: MIT */
/*
 * Compare what the command line says about a golden case with what a real kernel did.
 *
 * golden_check() replays the script with `replay --json --state --no-timing --paths`, compares
 * every value of the .expect file and every byte of the .path file, then makes a tape of the
 * script (`import`), replays that (same JSON, same bytes in the .path file) and turns it back into
 * a script (`export --to ops`, same but for comments and blank lines).  Differences go to stderr.
 */
#ifndef SLABTAPE_TESTS_GOLDEN_CHECK_H
#define SLABTAPE_TESTS_GOLDEN_CHECK_H

#include <stdbool.h>

struct golden_case {
	const char *slabtape; /* the program */
	const char *variant;
	const char *cases;    /* folder of the scripts */
	const char *expected; /* folder of .expect and .path */
	const char *name;
	bool tape;	      /* also by way of a tape */
	bool own_counters;    /* counters the kernel does not have are no difference while 0 */
};

/* Number of differences; a file that is missing or a program that fails is one. */
int golden_check(const struct golden_case *c);

#endif
