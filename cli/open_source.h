/* SPDX-License-Identifier: MIT */
/* Verbs that take a tape also take a source that can be imported. */
#ifndef SLABTAPE_CLI_OPEN_SOURCE_H
#define SLABTAPE_CLI_OPEN_SOURCE_H

#include "store/tape.h"

/*
 * Open @path when it is a tape, else import it into a temporary tape.  TAPE_READ_WRITE is
 * possible for tapes only (-TAPE_E_USAGE).  The caller closes *ret_tape.
 */
int cli_open_source(const char *path, enum tape_open_mode mode, struct tape **ret_tape,
		    struct tape_err *reterr) TAPE_MUST_CHECK;

/*
 * 0 when output @out (NULL or "-": standard output) is another file than input @in; else
 * -TAPE_E_USAGE: writing would destroy what is read.
 */
int cli_check_output(const char *option, const char *out, const char *in, struct tape_err *reterr)
	TAPE_MUST_CHECK;

#endif
