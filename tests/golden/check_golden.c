/* SPDX-License-Identifier: MIT */
/* check_golden SLABTAPE VARIANT CASES EXPECTED NAME: one golden case as a test. */
#include <stdio.h>
#include <string.h>

#include "golden_check.h"

int main(int argc, char **argv)
{
	struct golden_case c = { 0 };

	if (argc != 6 && !(argc == 7 && !strcmp(argv[6], "own-counters"))) {
		fputs("usage: check_golden SLABTAPE VARIANT CASES EXPECTED NAME [own-counters]\n",
		      stderr);
		return 2;
	}
	c.slabtape = argv[1];
	c.variant = argv[2];
	c.cases = argv[3];
	c.expected = argv[4];
	c.name = argv[5];
	/* A variant the kernel does not have: the other one of its kind tries the way of a tape. */
	c.own_counters = argc == 7;
	c.tape = !c.own_counters;
	return golden_check(&c) ? 1 : 0;
}
