/* SPDX-License-Identifier: MIT */
/*
 * Bytes out and bytes in: the growing buffer columns are encoded into and the bounded cursor
 * they are decoded from.
 *
 * A cursor never reads past its end: a take that does not fit returns NULL or sets `bad`, and
 * whoever owns the cursor checks `bad` once at the end.  Numbers are little endian; a varint is
 * LEB128, at most 10 bytes, low 7 bits first.
 */
#ifndef SLABTAPE_TRACES_BYTES_H
#define SLABTAPE_TRACES_BYTES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TAPE_BUF_CUTS 48u

struct tape_buf {
	uint8_t *data;
	size_t bytes, capacity;
	size_t cuts[TAPE_BUF_CUTS]; /* offsets at which the data changes its nature: see tape_buf_cut */
	uint32_t cuts_nr;
	bool failed; /* out of memory: contents are incomplete */
};

struct tape_cursor {
	const uint8_t *at, *end;
	bool bad; /* something did not fit or was malformed */
};

static inline void tape_buf_fini(struct tape_buf *b)
{
	free(b->data);
	*b = (struct tape_buf){ 0 };
}

static inline void tape_buf_clear(struct tape_buf *b)
{
	b->bytes = 0;
	b->cuts_nr = 0;
	b->failed = false;
}

/* Room for @bytes more, already counted in; NULL (and `failed`) when out of memory. */
static inline uint8_t *tape_buf_add(struct tape_buf *b, size_t bytes)
{
	uint8_t *at;

	if (b->capacity - b->bytes < bytes) {
		size_t want = (b->bytes + bytes) * 2 + 4096;
		uint8_t *grown = realloc(b->data, want);

		if (!grown) {
			b->failed = true;
			return NULL;
		}
		b->data = grown;
		b->capacity = want;
	}
	at = b->data + b->bytes;
	b->bytes += bytes;
	return at;
}

static inline void tape_buf_u8(struct tape_buf *b, uint8_t value)
{
	uint8_t *at = tape_buf_add(b, 1);

	if (at)
		*at = value;
}

static inline void tape_buf_varint(struct tape_buf *b, uint64_t value)
{
	while (value >= 0x80) {
		tape_buf_u8(b, (uint8_t)(value | 0x80));
		value >>= 7;
	}
	tape_buf_u8(b, (uint8_t)value);
}

/* The bytes before and after this point have other statistics: the compressor starts a block. */
static inline void tape_buf_cut(struct tape_buf *b)
{
	if (b->cuts_nr < TAPE_BUF_CUTS)
		b->cuts[b->cuts_nr++] = b->bytes;
}

/* @bytes bytes of the input, or NULL and `bad` when there are fewer. */
static inline const uint8_t *tape_cursor_take(struct tape_cursor *c, size_t bytes)
{
	const uint8_t *at = c->at;

	assert(c->at <= c->end);
	if ((size_t)(c->end - c->at) < bytes) {
		c->bad = true;
		return NULL;
	}
	c->at += bytes;
	return at;
}

static inline uint8_t tape_cursor_u8(struct tape_cursor *c)
{
	const uint8_t *at = tape_cursor_take(c, 1);

	return at ? *at : 0;
}

static inline uint64_t tape_cursor_varint(struct tape_cursor *c)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = tape_cursor_u8(c);

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	c->bad = true;
	return value;
}

/* Signed differences as small unsigned numbers: 0, -1, 1, -2, ... -> 0, 1, 2, 3, ... */
static inline uint64_t tape_zigzag(uint64_t difference)
{
	return difference << 1 ^ (0 - (difference >> 63));
}

static inline uint64_t tape_unzigzag(uint64_t value)
{
	return value >> 1 ^ (0 - (value & 1));
}

#endif
