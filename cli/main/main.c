/* SPDX-License-Identifier: MIT */
/* slabtape: find the verb, run it. */
#include <stdio.h>
#include <string.h>

#include "cli/verb.h"

/* What could not be written is a failure, whichever verb wrote it. */
static int finish(const struct cli_verb *verb, int code)
{
	if ((fflush(stdout) || ferror(stdout)) && !code)
		return cli_fail(verb->name, -TAPE_E_IO, NULL);
	return code;
}

int main(int argc, const char **argv)
{
	if (argc < 2) {
		cli_verbs_print(stderr);
		return 2;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		cli_verbs_print(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("slabtape " SLABTAPE_VERSION);
		return 0;
	}
	for (const struct cli_verb *const *v = cli_verbs; *v; v++)
		if (!strcmp(argv[1], (*v)->name))
			return finish(*v, (*v)->run(argc - 1, argv + 1));
	fprintf(stderr, "slabtape: %s: no such verb; slabtape --help lists them\n", argv[1]);
	return 2;
}
