/* SPDX-License-Identifier: MIT */
#include "cli/open_source.h"

#include "capture/import.h"

int cli_open_source(const char *path, enum tape_open_mode mode, struct tape **ret_tape,
		    struct tape_err *reterr)
{
	enum capture_format format = CAPTURE_FORMAT_UNKNOWN;

	/* What looks like a tape but is none gets the better message from tape_open(). */
	if (mode == TAPE_READ_WRITE ||
	    (!capture_detect(path, &format, NULL) && format == CAPTURE_FORMAT_TAPE))
		return tape_open(path, mode, ret_tape, reterr);
	return capture_open_source(path, NULL, ret_tape, NULL, reterr);
}
