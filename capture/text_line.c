/* SPDX-License-Identifier: MIT */
#include "capture/text_line.h"

#include <stdlib.h>
#include <string.h>

#include "traces/event.h"

static const struct {
	const char *name;
	size_t len;
} keys[TEXT_KEY_MAX] = {
	[TEXT_CALL_SITE] = { "call_site", 9 },	   [TEXT_PTR] = { "ptr", 3 },
	[TEXT_NAME] = { "name", 4 },		   [TEXT_BYTES_REQ] = { "bytes_req", 9 },
	[TEXT_BYTES_ALLOC] = { "bytes_alloc", 11 }, [TEXT_GFP] = { "gfp_flags", 9 },
	[TEXT_NODE] = { "node", 4 },		   [TEXT_ACCOUNTED] = { "accounted", 9 },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits at *@at, which moves behind them; false when there are none or too many. */
static bool take_digits(const char **at, uint64_t *ret)
{
	const char *start = *at;
	uint64_t value = 0;

	while (is_digit(**at) && *at - start < 19)
		value = value * 10 + (uint64_t)(*(*at)++ - '0');
	*ret = value;
	return *at > start && !is_digit(**at);
}

/* The "[CPU]" of @line: a blank, a bracket, digits, a bracket, a blank.  NULL: none. */
static const char *find_cpu(const char *line, uint32_t *ret_cpu, const char **ret_behind)
{
	for (const char *at = strchr(line, '['); at; at = strchr(at + 1, '[')) {
		const char *p = at + 1;
		uint64_t cpu;

		if (at == line || at[-1] != ' ' || !take_digits(&p, &cpu) || p[0] != ']' ||
		    p[1] != ' ' || cpu >= TAPE_CPU_MAX)
			continue;
		*ret_cpu = (uint32_t)cpu;
		*ret_behind = p + 2;
		return at;
	}
	return NULL;
}

/* "comm-12", "comm-12 (  7)", "comm 12", "comm 12/13" in front of the CPU. */
static bool parse_task(const char *line, const char *end, struct text_line *ret)
{
	const char *start = line, *number;
	uint64_t tid;

	while (start < end && *start == ' ')
		start++;
	while (end > start && end[-1] == ' ')
		end--;
	if (end > start && end[-1] == ')') {
		while (end > start && *end != '(')
			end--;
		while (end > start && end[-1] == ' ')
			end--;
	}
	for (number = end; number > start && is_digit(number[-1]); number--)
		;
	if (number == end || number == start)
		return false;
	if (!take_digits(&(const char *){ number }, &tid) || tid > INT32_MAX)
		return false;
	ret->tid = (int32_t)tid;
	if (number[-1] == '/') { /* perf: PID/TID */
		for (number--; number > start && is_digit(number[-1]); number--)
			;
		if (number == start)
			return false;
	}
	if (number[-1] != '-' && number[-1] != ' ')
		return false;
	for (end = number - 1; end > start && end[-1] == ' '; end--)
		;
	ret->comm = (struct text_span){ start, (size_t)(end - start) };
	return true;
}

/* The third character of ftrace's flags: kernel/trace/trace_output.c trace_print_lat_fmt(). */
static uint8_t context_of(const char *flags, size_t len)
{
	switch (len >= 3 ? flags[2] : '\0') {
	case 'Z':
	case 'z':
		return TAPE_CTX_NMI;
	case 'H':
	case 'h':
		return TAPE_CTX_HARDIRQ;
	case 's':
		return TAPE_CTX_SOFTIRQ;
	case '.':
		return TAPE_CTX_TASK;
	default:
		return TAPE_CTX_UNKNOWN;
	}
}

/* "12.345678:" or "12.345678901:" (seconds), "12345:" (a clock that counts).  Moves *@at. */
static bool take_time(const char **at, uint64_t *ret_ns)
{
	uint64_t whole, part;
	const char *dot;

	if (!take_digits(at, &whole))
		return false;
	if (**at == ':') {
		*ret_ns = whole;
		return true;
	}
	if (**at != '.' || whole > UINT64_MAX / 2000000000u)
		return false;
	dot = ++*at;
	if (!take_digits(at, &part) || *at - dot > 9 || **at != ':')
		return false;
	for (long digits = *at - dot; digits < 9; digits++)
		part *= 10;
	*ret_ns = whole * 1000000000u + part;
	return true;
}

bool text_line_parse(const char *line, size_t len, struct text_line *ret)
{
	const char *end = line + len, *at, *bracket, *stop;

	memset(ret, 0, sizeof(*ret));
	bracket = find_cpu(line, &ret->cpu, &at);
	if (!bracket || !parse_task(line, bracket, ret))
		return false;
	at += strspn(at, " ");
	if (!is_digit(*at)) {
		size_t flags = strcspn(at, " ");

		ret->ctx = context_of(at, flags);
		at += flags;
		at += strspn(at, " ");
	}
	if (!take_time(&at, &ret->ts_ns))
		return false;
	at++;
	at += strspn(at, " ");
	stop = memchr(at, ':', (size_t)(end - at));
	if (!stop)
		return false;
	/* perf writes "system:event:" */
	if (stop + 1 < end && stop[1] != ' ') {
		const char *second = memchr(stop + 1, ':', (size_t)(end - stop - 1));
		const char *blank = memchr(stop + 1, ' ', (size_t)(end - stop - 1));

		if (second && (!blank || second < blank)) {
			at = stop + 1;
			stop = second;
		}
	}
	ret->event = (struct text_span){ at, (size_t)(stop - at) };
	at = stop + 1;
	at += strspn(at, " ");
	ret->rest = (struct text_span){ at, (size_t)(end - at) };
	return true;
}

/* Index of the key that stands at @at as "key=", or -1. */
static int key_at(const char *at, size_t left)
{
	for (int i = 0; i < TEXT_KEY_MAX; i++)
		if (left > keys[i].len && at[keys[i].len] == '=' &&
		    !memcmp(at, keys[i].name, keys[i].len))
			return i;
	return -1;
}

void text_line_fields(const struct text_span *rest, struct text_span ret_fields[TEXT_KEY_MAX])
{
	const char *at = rest->at, *end = rest->at + rest->len;
	int open = -1;

	memset(ret_fields, 0, TEXT_KEY_MAX * sizeof(*ret_fields));
	while (at < end) {
		const char *blank = memchr(at, ' ', (size_t)(end - at));
		int key = key_at(at, (size_t)(end - at));

		if (key >= 0) {
			if (open >= 0) /* the blank in front is no part of the value */
				ret_fields[open].len = (size_t)(at - 1 - ret_fields[open].at);
			ret_fields[key] = (struct text_span){ at + keys[key].len + 1, 0 };
			open = key;
		}
		at = blank ? blank + 1 : end;
	}
	if (open >= 0)
		ret_fields[open].len = (size_t)(end - ret_fields[open].at);
	for (int i = 0; i < TEXT_KEY_MAX; i++)
		while (ret_fields[i].len && ret_fields[i].at[ret_fields[i].len - 1] == ' ')
			ret_fields[i].len--;
}

bool text_line_lost(const char *line, uint32_t *ret_cpu, uint64_t *ret_events)
{
	const char *at = line + strspn(line, " ");
	uint64_t cpu, events = 0;

	if (strncmp(at, "CPU:", 4))
		return false;
	at += 4;
	if (!take_digits(&at, &cpu) || cpu >= TAPE_CPU_MAX || strncmp(at, " [", 2))
		return false;
	at += 2;
	if (!strncmp(at, "LOST ", 5))
		at += 5;
	if (is_digit(*at) && !take_digits(&at, &events))
		return false;
	at += strspn(at, " ");
	if (strncmp(at, "EVENTS", 6))
		return false;
	*ret_cpu = (uint32_t)cpu;
	*ret_events = events;
	return true;
}
