/* SPDX-License-Identifier: MIT */
#include "analyze/queries.h"

#include <string.h>

const struct analyze_query *analyze_query_find(const char *name)
{
	for (const struct analyze_query *q = analyze_queries; q->name; q++)
		if (!strcmp(q->name, name))
			return q;
	return NULL;
}

/* The next header line ("-- ..." without the dashes) from *@at on; false after the last. */
static bool next_line(const char **at, struct analyze_line *ret_line)
{
	if (strncmp(*at, "-- ", 3) != 0)
		return false;
	ret_line->text = *at + 3;
	ret_line->bytes = strcspn(ret_line->text, "\n");
	*at = ret_line->text + ret_line->bytes;
	if (**at)
		(*at)++;
	return true;
}

/* True when @line begins with @key; then cut it and the blanks behind it off. */
static bool cut_key(struct analyze_line *line, const char *key)
{
	size_t n = strlen(key);

	if (line->bytes < n || strncmp(line->text, key, n) != 0)
		return false;
	while (n < line->bytes && line->text[n] == ' ')
		n++;
	line->text += n;
	line->bytes -= n;
	return true;
}

bool analyze_query_line(const struct analyze_query *q, const char *key,
			struct analyze_line *ret_line)
{
	const char *at = q->sql;
	struct analyze_line line;

	while (next_line(&at, &line)) {
		if (!cut_key(&line, key) || !line.bytes || *line.text != ':')
			continue;
		cut_key(&line, ":");
		*ret_line = line;
		return true;
	}
	return false;
}

static void copy(char *to, size_t room, const char *from, size_t bytes)
{
	if (bytes >= room)
		bytes = room - 1;
	memcpy(to, from, bytes);
	to[bytes] = 0;
}

/* "name=default: meaning" or "name: meaning". */
static void parse_param(struct analyze_line line, struct analyze_param *ret_param)
{
	const char *colon = memchr(line.text, ':', line.bytes);
	size_t head = colon ? (size_t)(colon - line.text) : line.bytes;
	const char *equals = memchr(line.text, '=', head);
	size_t name = equals ? (size_t)(equals - line.text) : head;

	memset(ret_param, 0, sizeof(*ret_param));
	copy(ret_param->name, sizeof(ret_param->name), line.text, name);
	ret_param->has_value = equals != NULL;
	if (equals)
		copy(ret_param->value, sizeof(ret_param->value), equals + 1, head - name - 1);
	line.text += head;
	line.bytes -= head;
	cut_key(&line, ":");
	ret_param->meaning = line;
}

bool analyze_query_param(const struct analyze_query *q, unsigned int at,
			 struct analyze_param *ret_param)
{
	const char *from = q->sql;
	struct analyze_line line;

	while (next_line(&from, &line)) {
		if (!cut_key(&line, "param ") || at--)
			continue;
		parse_param(line, ret_param);
		return true;
	}
	return false;
}
