/* SPDX-License-Identifier: MIT */
/*
 * Reading numbers and texts out of a range of bytes without ever leaving it.  Internal to the
 * trace.dat reader.  After a read beyond the end every further read gives 0 and `failed` stays.
 */
#ifndef SLABTAPE_CAPTURE_TRACEDAT_CURSOR_H
#define SLABTAPE_CAPTURE_TRACEDAT_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct td_cursor {
	const uint8_t *at, *end;
	const uint8_t *start;
	uint64_t offset; /* of start, in the file (of its section when that is compressed) */
	bool failed;
};

static inline struct td_cursor td_cursor_make(const uint8_t *data, size_t len, uint64_t offset)
{
	return (struct td_cursor){ .at = data, .end = data + len, .start = data,
				   .offset = offset };
}

static inline uint64_t td_offset(const struct td_cursor *c)
{
	return c->offset + (uint64_t)(c->at - c->start);
}

static inline size_t td_left(const struct td_cursor *c)
{
	return (size_t)(c->end - c->at);
}

/* @len bytes, or NULL. */
static inline const uint8_t *td_bytes(struct td_cursor *c, uint64_t len)
{
	const uint8_t *data = c->at;

	if (c->failed || len > td_left(c)) {
		c->failed = true;
		return NULL;
	}
	c->at += len;
	return data;
}

static inline uint64_t td_number(struct td_cursor *c, size_t bytes)
{
	const uint8_t *data = td_bytes(c, bytes);
	uint64_t value = 0;

	/* Same byte order as the host: checked when the file is opened. */
	if (data && bytes == 2) {
		uint16_t half;

		memcpy(&half, data, 2);
		value = half;
	} else if (data && bytes == 4) {
		uint32_t word;

		memcpy(&word, data, 4);
		value = word;
	} else if (data && bytes == 8) {
		memcpy(&value, data, 8);
	}
	return value;
}

/* A NUL-terminated text, or NULL. */
static inline const char *td_string(struct td_cursor *c)
{
	const uint8_t *nul = c->failed ? NULL : memchr(c->at, 0, td_left(c));
	const char *text = (const char *)c->at;

	if (!nul) {
		c->failed = true;
		return NULL;
	}
	c->at = nul + 1;
	return text;
}

#endif
