/* SPDX-License-Identifier: MIT */
/*
 * The verb table: one row per verb of the command line, one cmd_<verb>.c file per row.
 *
 * A verb's file only parses, calls the modules and prints; it defines cli_verb_<name>, which
 * verbs.def lists.  Its options are a popt table that also yields --help and completion
 * (options.h).
 */
#ifndef SLABTAPE_CLI_VERB_H
#define SLABTAPE_CLI_VERB_H

#include <popt.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct cli_verb {
	const char *name;
	const char *args; /* argument spec for usage lines, e.g. "TAPE [OPTION...]" */
	const char *help; /* one line */
	/* @argv[0] is the verb; returns the process exit code. */
	int (*run)(int argc, const char **argv);
	const struct poptOption *options; /* for completion and lint; NULL: none */
};

extern const struct cli_verb *const cli_verbs[]; /* ends with NULL; filled in verb.c */

/* The list of verbs, a line each. */
void cli_verbs_print(FILE *out);
/* Print "slabtape: VERB: text" once on stderr; returns the exit code of @err (or @code). */
int cli_fail(const char *verb, int code, const struct tape_err *err);
/* Usage error that names the option; exit code 2. */
int cli_usage(const char *verb, const char *fmt, ...) TAPE_PRINTF(2, 3);
/*
 * Parse @argv with @options.  Returns a popt context whose leftover arguments are the verb's
 * operands (freed with poptFreeContext), or NULL with *ret_exit set (0 after --help).
 */
poptContext cli_parse(const struct cli_verb *verb, int argc, const char **argv, int *ret_exit);

#endif
