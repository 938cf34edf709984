/* SPDX-License-Identifier: MIT */
#include "cli/open_source.h"

#if __has_include("capture/import.h")
#include "capture/import.h"
#define CAN_IMPORT 1
#else
#define CAN_IMPORT 0
#endif

int cli_open_source(const char *path, enum tape_open_mode mode, struct tape **ret_tape,
		    struct tape_err *reterr)
{
	if (!CAN_IMPORT || mode == TAPE_READ_WRITE || tape_is_tape(path))
		return tape_open(path, mode, ret_tape, reterr);
#if CAN_IMPORT
	return capture_open_source(path, NULL, ret_tape, NULL, reterr);
#endif
}
