/* SPDX-License-Identifier: MIT */
/*
 * The interactive part of `slabtape sql`: reads lines with history and completion (libedit where
 * the build has it), runs statements and a few dot commands.
 */
#ifndef SLABTAPE_CLI_SQL_SHELL_H
#define SLABTAPE_CLI_SQL_SHELL_H

#include "cli/sql_run.h"

/* Read stdin until its end or .quit.  Errors are printed and do not end the shell; returns 0. */
int sql_shell(struct sql_session *s);

#endif
