/* SPDX-License-Identifier: MIT */
/* `record --kernel`: the part of the verb that differs from recording a program. */
#ifndef SLABTAPE_CLI_RECORD_KERNEL_VERB_H
#define SLABTAPE_CLI_RECORD_KERNEL_VERB_H

#include <jansson.h>
#include <stdbool.h>

#include "capture/record_kernel.h"

/* Where the summary goes. */
struct cli_record_report {
	bool json, quiet;
	const char *file;   /* JSON summary; NULL: none */
	long long max_lost; /* -1: no limit */
};

/* Write @root where @r says; 0 or -1. */
int cli_record_write_json(json_t *root, const struct cli_record_report *r);

/* Record, print, return the exit code (design section 9). */
int cli_record_kernel(const struct record_kernel_options *o, const struct cli_record_report *r);

#endif
