/* SPDX-License-Identifier: MIT */
/* Stands in for record_lttng.c in a build without LTTng. */
#include <stddef.h>

#include "capture/record_backend.h"

const struct record_backend *record_lttng_backend(void)
{
	return NULL;
}
