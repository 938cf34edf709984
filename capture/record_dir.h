/* SPDX-License-Identifier: MIT */
/* Private folders of a recording: made where there is room, those of killed recorders removed. */
#ifndef SLABTAPE_CAPTURE_RECORD_DIR_H
#define SLABTAPE_CAPTURE_RECORD_DIR_H

#include <stddef.h>

#include "base/error.h"

/*
 * Make "BASE/PREFIX.UID.PID.XXXXXX" in the first of @bases (NULL and relative ones are passed over)
 * that takes it, with a path of at most @path_max bytes, and remove those that recorders of this
 * user left in it that are no more.  *ret_dir: malloc'ed.  @what: "the shared buffers", for the
 * error.  -TAPE_E_IO, -ENOMEM.
 */
int record_dir_make(const char *prefix, const char *const *bases, size_t nr, size_t path_max,
		    const char *what, char **ret_dir, struct tape_err *reterr) TAPE_MUST_CHECK;
/* Remove @path and all that is in it. */
void record_dir_remove(const char *path);

#endif
