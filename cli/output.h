/* SPDX-License-Identifier: MIT */
/*
 * Rows on stdout as a table, CSV, JSON or markdown: what every verb that prints a table uses.
 *
 *	o = output_begin(stdout, OUTPUT_CSV, 2, (const char *[]){ "cpu", "events" });
 *	output_int(o, 0); output_int(o, 17);	one call per cell, rows follow from the count
 *	rc = output_end(o);
 *
 * table and markdown need column widths: the first OUTPUT_HELD_ROWS rows are held back to find
 * them, later rows are printed as they come, so that memory stays bounded.
 */
#ifndef SLABTAPE_CLI_OUTPUT_H
#define SLABTAPE_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OUTPUT_HELD_ROWS 1000

enum output_format { OUTPUT_TABLE, OUTPUT_CSV, OUTPUT_JSON, OUTPUT_MARKDOWN, OUTPUT_MAX };

/* -1 when @name is no format ("table", "csv", "json", "markdown"). */
int output_parse(const char *name);

struct output;

/* @names are copied; @columns >= 1.  NULL when out of memory. */
struct output *output_begin(FILE *out, enum output_format format, int columns,
			    const char *const *names);
void output_int(struct output *o, int64_t value);
void output_uint(struct output *o, uint64_t value);
void output_real(struct output *o, double value);
void output_text(struct output *o, const char *text, size_t bytes);
void output_blob(struct output *o, const void *data, size_t bytes); /* as hexadecimal text */
void output_null(struct output *o);
/* Print what is left and free @o (NULL is accepted).  0, -ENOMEM or -TAPE_E_IO. */
int output_end(struct output *o);

/* A JSON string literal of @text. */
void output_json_string(FILE *out, const char *text, size_t bytes);

#endif
