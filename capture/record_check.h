/* SPDX-License-Identifier: MIT */
/*
 * Can a library be preloaded into this program?  Answered from its file before it runs, so that a
 * recording that must stay empty is an error with a reason.
 */
#ifndef SLABTAPE_CAPTURE_RECORD_CHECK_H
#define SLABTAPE_CAPTURE_RECORD_CHECK_H

#include "base/error.h"

/*
 * Find @name as execvp() does.  -ENOENT: not found; -EACCES: found, not executable.
 * *ret_path is malloc'ed.
 */
int record_find_program(const char *name, char **ret_path, struct tape_err *reterr) TAPE_MUST_CHECK;

/*
 * -TAPE_E_TRACER with the reason when the program at @path is static, set-user-id, built with a
 * sanitizer that wants to be first, or for another machine or C library.  Follows #! lines.
 * A file that is no ELF and no script passes: exec decides.
 */
int record_check_program(const char *path, struct tape_err *reterr) TAPE_MUST_CHECK;

/* Why a program that ran recorded nothing, as far as its file tells; static text. */
const char *record_why_silent(const char *path);

#endif
