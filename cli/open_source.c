/* SPDX-License-Identifier: MIT */
#include "cli/open_source.h"

#include "capture/import.h"

int cli_open_source(const char *path, enum tape_open_mode mode, struct tape **ret_tape,
		    struct tape_err *reterr)
{
	if (mode == TAPE_READ_WRITE || tape_is_tape(path))
		return tape_open(path, mode, ret_tape, reterr);
	return capture_open_source(path, NULL, ret_tape, NULL, reterr);
}
