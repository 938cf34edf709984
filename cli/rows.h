/* SPDX-License-Identifier: MIT */
/* Tables as JSON rows (analyze/ask.h) printed in every format. */
#ifndef SLABTAPE_CLI_ROWS_H
#define SLABTAPE_CLI_ROWS_H

#include <jansson.h>

#include "cli/output.h"

/* Print @rows (objects with the same keys in the same order); nothing when there are none. */
int rows_print(FILE *out, enum output_format format, json_t *rows);

/* What a column is called on paper; a table of them ends with a NULL key. */
struct rows_heading {
	const char *key, *heading;
};

/* The same, with the headings of @headings instead of the keys (NULL: the keys). */
int rows_print_headed(FILE *out, enum output_format format, json_t *rows,
		      const struct rows_heading *headings);

#endif
