/* SPDX-License-Identifier: MIT */
#include "cli/open_source.h"

#include <string.h>
#include <sys/stat.h>

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

int cli_check_output(const char *option, const char *out, const char *in, struct tape_err *reterr)
{
	struct stat a, b;

	if (!out || !strcmp(out, "-") || stat(out, &a) || stat(in, &b) || a.st_dev != b.st_dev ||
	    a.st_ino != b.st_ino)
		return 0;
	return tape_err_set(reterr, -TAPE_E_USAGE, "%s %s: the output is the input; it would be "
			    "destroyed", option, out);
}
