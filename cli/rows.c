/* SPDX-License-Identifier: MIT */
#include "cli/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void print_value(struct output *o, const json_t *value)
{
	if (json_is_integer(value))
		output_int(o, json_integer_value(value));
	else if (json_is_real(value))
		output_real(o, json_real_value(value));
	else if (json_is_string(value))
		output_text(o, json_string_value(value), json_string_length(value));
	else if (json_is_boolean(value))
		output_int(o, json_is_true(value));
	else
		output_null(o);
}

static const char *heading_of(const struct rows_heading *headings, const char *key)
{
	for (; headings && headings->key; headings++)
		if (!strcmp(headings->key, key))
			return headings->heading;
	return key;
}

int rows_print(FILE *out, enum output_format format, json_t *rows)
{
	return rows_print_headed(out, format, rows, NULL);
}

int rows_print_headed(FILE *out, enum output_format format, json_t *rows,
		      const struct rows_heading *headings)
{
	json_t *first = json_array_get(rows, 0);
	const char **names, *key;
	struct output *o;
	json_t *value;
	size_t nr = 0;

	if (!first)
		return 0;
	names = calloc(json_object_size(first) + 1, sizeof(*names));
	if (!names)
		return -ENOMEM;
	json_object_foreach(first, key, value)
		names[nr++] = heading_of(headings, key);
	o = output_begin(out, format, (int)nr, names);
	free(names);
	if (!o)
		return -ENOMEM;
	for (size_t i = 0; i < json_array_size(rows); i++)
		json_object_foreach(json_array_get(rows, i), key, value)
			print_value(o, value);
	return output_end(o);
}
