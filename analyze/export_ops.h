/* SPDX-License-Identifier: MIT */
/*
 * Print the .ops script a tape was imported from.
 *
 * What comes out equals what went in, without comments, blank lines and blanks around a line.
 */
#ifndef SLABTAPE_ANALYZE_EXPORT_OPS_H
#define SLABTAPE_ANALYZE_EXPORT_OPS_H

#include <stdio.h>

#include "base/error.h"

struct tape;

/*
 * Write the script of @t to @out.  -TAPE_E_FORMAT when @t was not imported from a script,
 * -TAPE_E_TRUNCATED when it is incomplete, -TAPE_E_IO when @out cannot be written.
 */
int export_ops(struct tape *t, FILE *out, struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
