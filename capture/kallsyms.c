/* SPDX-License-Identifier: MIT */
#include "capture/kallsyms.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_hex(const char *at, const char *end, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (; at < end; at++) {
		unsigned digit = (unsigned char)*at;

		if (digit >= '0' && digit <= '9')
			digit -= '0';
		else if ((digit | 32) >= 'a' && (digit | 32) <= 'f')
			digit = (digit | 32) - 'a' + 10;
		else
			break;
		value = value << 4 | digit;
	}
	*ret_value = value;
	return at;
}

static bool read_line(const char *at, const char *end, struct kallsyms_symbol *s)
{
	const char *name = skip_hex(at, end, &s->address), *stop;

	/* " T name" */
	if (name == at || end - name < 4 || name[0] != ' ' || name[2] != ' ')
		return false;
	name += 3;
	for (stop = name; stop < end && *stop != ' ' && *stop != '\t'; stop++)
		;
	if (stop == name || stop - name > UINT16_MAX || !s->address)
		return false;
	s->name = name;
	s->name_len = (uint16_t)(stop - name);
	s->module = NULL;
	s->module_len = 0;
	while (stop < end && (*stop == ' ' || *stop == '\t'))
		stop++;
	if (end - stop > 2 && *stop == '[' && end[-1] == ']' && end - stop < UINT16_MAX) {
		s->module = stop + 1;
		s->module_len = (uint16_t)(end - stop - 2);
	}
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct kallsyms_symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

int kallsyms_read(struct kallsyms *k, const char *text, size_t len, struct tape_err *reterr)
{
	const char *end = text + len;
	size_t capacity = 0;
	uint32_t line = 0;

	*k = (struct kallsyms){ 0 };
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		struct kallsyms_symbol s;

		if (read_line(text, newline ? newline : end, &s)) {
			if (k->nr == capacity) {
				struct kallsyms_symbol *grown;

				capacity = capacity ? capacity * 2 : 4096;
				grown = realloc(k->symbols, capacity * sizeof(*grown));
				if (!grown)
					return tape_err_set(reterr, -ENOMEM, "out of memory");
				k->symbols = grown;
			}
			s.line = line;
			k->symbols[k->nr++] = s;
		}
		line++;
		text = newline ? newline + 1 : end;
	}
	if (k->nr)
		qsort(k->symbols, k->nr, sizeof(*k->symbols), by_address);
	return 0;
}

void kallsyms_fini(struct kallsyms *k)
{
	free(k->symbols);
	*k = (struct kallsyms){ 0 };
}

const struct kallsyms_symbol *kallsyms_find(const struct kallsyms *k, uint64_t address)
{
	size_t low = 0, high = k->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (k->symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	/* Of several names at one address the first in the file. */
	for (low--; low && k->symbols[low - 1].address == k->symbols[low].address; low--)
		;
	return &k->symbols[low];
}
