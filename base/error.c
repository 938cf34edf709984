/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int exit_code;
} codes[TAPE_E_MAX - TAPE_E_FIRST] = {
	[TAPE_E_USAGE - TAPE_E_FIRST] = { "usage", 2 },
	[TAPE_E_FORMAT - TAPE_E_FIRST] = { "bad input", 3 },
	[TAPE_E_TRUNCATED - TAPE_E_FIRST] = { "truncated input", 3 },
	[TAPE_E_VERSION - TAPE_E_FIRST] = { "unsupported version", 3 },
	[TAPE_E_LIMIT - TAPE_E_FIRST] = { "limit exceeded", 3 },
	[TAPE_E_LOST - TAPE_E_FIRST] = { "too many events lost", 4 },
	[TAPE_E_DIVERGED - TAPE_E_FIRST] = { "replay diverged", 5 },
	[TAPE_E_TRACER - TAPE_E_FIRST] = { "no tracer or permission", 6 },
	[TAPE_E_IO - TAPE_E_FIRST] = { "input/output error", 7 },
	[TAPE_E_INVARIANT - TAPE_E_FIRST] = { "allocator invariant broken", 5 },
	[TAPE_E_DIFFERS - TAPE_E_FIRST] = { "difference found", 1 },
};

int tape_err_set(struct tape_err *reterr, int code, const char *fmt, ...)
{
	va_list ap;

	assert(code < 0);
	if (!reterr)
		return code;
	reterr->code = code;
	va_start(ap, fmt);
	vsnprintf(reterr->text, sizeof(reterr->text), fmt, ap);
	va_end(ap);
	return code;
}

const char *tape_err_name(int code)
{
	int e = -code;

	if (code >= 0)
		return "success";
	if (e >= TAPE_E_FIRST && e < TAPE_E_MAX)
		return codes[e - TAPE_E_FIRST].name;
	return strerror(e);
}

int tape_exit_code(int code)
{
	int e = -code;

	if (code >= 0)
		return 0;
	if (e >= TAPE_E_FIRST && e < TAPE_E_MAX)
		return codes[e - TAPE_E_FIRST].exit_code;
	switch (e) {
	case EACCES:
	case EPERM:
		return 6;
	case EINVAL:
	case EEXIST:
		return 2;
	case ENOENT:
	case EISDIR:
	case ENOTDIR:
		return 3;
	default:
		return 7;
	}
}
