/* SPDX-License-Identifier: MIT */
/* slabtape: find the verb, run it. */
#include <stdio.h>
#include <string.h>

#include "cli/verb.h"

static void print_help(FILE *out)
{
	fputs("usage: slabtape VERB [ARGUMENT...]\n\n", out);
	for (const struct cli_verb *const *v = cli_verbs; *v; v++)
		fprintf(out, "  %-10s %s\n", (*v)->name, (*v)->help);
	fputs("\nslabtape VERB --help shows a verb's options.\n", out);
}

int main(int argc, const char **argv)
{
	if (argc < 2) {
		print_help(stderr);
		return 2;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_help(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("slabtape " SLABTAPE_VERSION);
		return 0;
	}
	for (const struct cli_verb *const *v = cli_verbs; *v; v++)
		if (!strcmp(argv[1], (*v)->name))
			return (*v)->run(argc - 1, argv + 1);
	fprintf(stderr, "slabtape: %s: no such verb; slabtape --help lists them\n", argv[1]);
	return 2;
}
