/* SPDX-License-Identifier: MIT */
/* check_golden SLABTAPE VARIANT CASES EXPECTED NAME: one golden case as a test. */
#include <stdio.h>

#include "golden_check.h"

int main(int argc, char **argv)
{
	struct golden_case c = { .tape = true };

	if (argc != 6) {
		fputs("usage: check_golden SLABTAPE VARIANT CASES EXPECTED NAME\n", stderr);
		return 2;
	}
	c.slabtape = argv[1];
	c.variant = argv[2];
	c.cases = argv[3];
	c.expected = argv[4];
	c.name = argv[5];
	return golden_check(&c) ? 1 : 0;
}
