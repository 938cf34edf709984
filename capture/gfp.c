/* SPDX-License-Identifier: MIT */
#include "capture/gfp.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "traces/event.h"

/*
 * One row per raw flag that says something to a tape.  Source of the default values: Linux v6.1
 * include/linux/gfp_types.h.
 */
static const struct {
	const char *name;
	uint64_t raw;
	uint16_t bits;
} flags[CAPTURE_GFP_BITS] = {
	{ "__GFP_DIRECT_RECLAIM", 0x400, TAPE_GFP_MAY_BLOCK | TAPE_GFP_MAY_SPIN },
	{ "__GFP_KSWAPD_RECLAIM", 0x800, TAPE_GFP_MAY_SPIN },
	{ "__GFP_ACCOUNT", 0x400000, TAPE_GFP_ACCOUNT },
	{ "__GFP_RECLAIMABLE", 0x10, TAPE_GFP_RECLAIMABLE },
	{ "__GFP_DMA", 0x01, TAPE_GFP_DMA },
	{ "__GFP_THISNODE", 0x200000, TAPE_GFP_THISNODE },
	{ "__GFP_NOFAIL", 0x8000, TAPE_GFP_NOFAIL },
	{ "__GFP_ZERO", 0x100, TAPE_GFP_ZERO },
	{ "GFP_DMA", 0x01, TAPE_GFP_DMA },
};

/* Names that stand for several raw flags in text. */
static const struct {
	const char *name;
	uint16_t bits;
} composites[] = {
	{ "GFP_KERNEL", TAPE_GFP_KERNEL },
	{ "GFP_KERNEL_ACCOUNT", TAPE_GFP_KERNEL | TAPE_GFP_ACCOUNT },
	{ "GFP_ATOMIC", TAPE_GFP_NOWAIT },
	{ "GFP_NOWAIT", TAPE_GFP_NOWAIT },
	{ "GFP_NOFS", TAPE_GFP_KERNEL },
	{ "GFP_NOIO", TAPE_GFP_KERNEL },
	{ "GFP_USER", TAPE_GFP_KERNEL },
	{ "GFP_HIGHUSER", TAPE_GFP_KERNEL },
	{ "GFP_HIGHUSER_MOVABLE", TAPE_GFP_KERNEL },
	{ "GFP_TRANSHUGE", TAPE_GFP_KERNEL },
	{ "GFP_TEMPORARY", TAPE_GFP_KERNEL | TAPE_GFP_RECLAIMABLE },
	{ "__GFP_RECLAIM", TAPE_GFP_KERNEL },
	{ "__GFP_WAIT", TAPE_GFP_KERNEL },
};

void capture_gfp_map_default(struct capture_gfp_map *m)
{
	memset(m, 0, sizeof(*m));
	for (int i = 0; i < CAPTURE_GFP_BITS; i++)
		m->raw[i] = flags[i].raw;
}

/* Recursive descent over the C expressions kernels print: | & << ~ ( ), casts, numbers. */
struct eval {
	const char *at, *end;
	bool bad;
	int depth;
};

static uint64_t eval_or(struct eval *e);

static void skip_blanks(struct eval *e)
{
	while (e->at < e->end && isspace((unsigned char)*e->at))
		e->at++;
}

static bool take(struct eval *e, const char *token)
{
	size_t len = strlen(token);

	skip_blanks(e);
	if ((size_t)(e->end - e->at) < len || memcmp(e->at, token, len))
		return false;
	e->at += len;
	return true;
}

/* "( gfp_t)" and the like: a parenthesis that starts with a letter. */
static bool take_cast(struct eval *e)
{
	const char *p = e->at;

	if (p >= e->end || *p != '(')
		return false;
	for (p++; p < e->end && isspace((unsigned char)*p); p++)
		;
	if (p >= e->end || !isalpha((unsigned char)*p))
		return false;
	while (p < e->end && *p != ')')
		p++;
	e->at = p < e->end ? p + 1 : p;
	return true;
}

static uint64_t eval_number(struct eval *e)
{
	char digits[32];
	size_t len = 0;
	uint64_t value;
	char *end;

	while (e->at + len < e->end && len < sizeof(digits) - 1 &&
	       isalnum((unsigned char)e->at[len])) {
		digits[len] = e->at[len];
		len++;
	}
	digits[len] = '\0';
	value = strtoull(digits, &end, 0);
	if (end == digits || end[strspn(end, "uUlL")])
		e->bad = true;
	e->at += len;
	return value;
}

static uint64_t eval_unary(struct eval *e)
{
	uint64_t value = 0;

	if (++e->depth > 200)
		e->bad = true;
	skip_blanks(e);
	if (e->bad || e->at >= e->end) {
		e->bad = true;
	} else if (take(e, "~")) {
		value = ~eval_unary(e);
	} else if (take_cast(e)) {
		value = eval_unary(e);
	} else if (take(e, "(")) {
		value = eval_or(e);
		e->bad |= !take(e, ")");
	} else {
		value = eval_number(e);
	}
	e->depth--;
	return value;
}

static uint64_t eval_shift(struct eval *e)
{
	uint64_t value = eval_unary(e);

	while (!e->bad && take(e, "<<"))
		value <<= eval_unary(e) & 63;
	return value;
}

static uint64_t eval_and(struct eval *e)
{
	uint64_t value = eval_shift(e);

	while (!e->bad && take(e, "&"))
		value &= eval_shift(e);
	return value;
}

static uint64_t eval_or(struct eval *e)
{
	uint64_t value = eval_and(e);

	while (!e->bad && take(e, "|"))
		value |= eval_and(e);
	return value;
}

/* Index of the flag named by the @len bytes at @name, -1 when it says nothing to a tape. */
static int find_flag(const char *name, size_t len)
{
	for (int i = 0; i < CAPTURE_GFP_BITS; i++)
		if (strlen(flags[i].name) == len && !memcmp(flags[i].name, name, len))
			return i;
	return -1;
}

void capture_gfp_map_parse(struct capture_gfp_map *m, const char *print_fmt, size_t len)
{
	const char *at = print_fmt, *end = print_fmt + len;
	struct capture_gfp_map found = { 0 };
	bool any = false;

	while ((at = memchr(at, '{', (size_t)(end - at)))) {
		struct eval e = { .at = at + 1, .end = end };
		uint64_t value = eval_or(&e);
		const char *quote;
		int flag;

		at++;
		if (e.bad || !take(&e, ",") || !take(&e, "\""))
			continue;
		quote = memchr(e.at, '"', (size_t)(end - e.at));
		if (!quote)
			break;
		flag = find_flag(e.at, (size_t)(quote - e.at));
		if (flag >= 0)
			found.raw[flag] = value;
		any |= flag >= 0;
		at = quote;
	}
	if (any)
		*m = found;
	else
		capture_gfp_map_default(m);
}

uint16_t capture_gfp_bits(struct capture_gfp_map *m, uint64_t raw)
{
	uint16_t bits = 0;

	if (raw == m->last_raw)
		return m->last_bits;
	for (int i = 0; i < CAPTURE_GFP_BITS; i++)
		if (raw & m->raw[i])
			bits |= flags[i].bits;
	m->last_raw = raw;
	m->last_bits = bits;
	return bits;
}

static uint16_t bits_of_name(const char *name, size_t len)
{
	int flag = find_flag(name, len);

	if (flag >= 0)
		return flags[flag].bits;
	for (size_t i = 0; i < sizeof(composites) / sizeof(composites[0]); i++)
		if (strlen(composites[i].name) == len && !memcmp(composites[i].name, name, len))
			return composites[i].bits;
	return 0;
}

uint16_t capture_gfp_from_text(const char *text, size_t len)
{
	const char *end = text + len;
	uint16_t bits = 0;

	while (text < end) {
		const char *bar = memchr(text, '|', (size_t)(end - text));
		size_t part = (size_t)((bar ? bar : end) - text);

		bits |= bits_of_name(text, part);
		text += part + 1;
	}
	return bits;
}
