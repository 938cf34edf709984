/* SPDX-License-Identifier: MIT */
/* Where results of replays go: the tape itself, or the one given with --results. */
#ifndef SLABTAPE_CLI_REPLAY_STORE_H
#define SLABTAPE_CLI_REPLAY_STORE_H

#include "replay/engine.h"

/*
 * Store @r as a run.  @results: a tape (made when it does not exist; its caches must have the
 * numbers they have in @r), NULL: @tape_path, when that is a tape.  A source that was imported on
 * the fly stores nothing.  A tape that cannot be written gives a note on stderr, no error.
 */
int cli_store_result(const char *verb, const char *tape_path, const char *results,
		     const struct replay_result *r, const char *args, struct tape_err *reterr)
	TAPE_MUST_CHECK;
/* Whether cli_store_result() will store a run: a tape or --results. */
bool cli_stores_result(const char *tape_path, const char *results);
/* @argv as one text, for run.args; malloc'ed. */
char *cli_join_args(int argc, const char **argv);

#endif
