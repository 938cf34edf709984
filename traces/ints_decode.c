/* SPDX-License-Identifier: MIT */
/* Integer streams, reading.  Everything here must be safe on arbitrary bytes. */
#include "traces/ints.h"

static void planes_open(struct tape_ints_plain *p, struct tape_cursor *in, uint32_t nr)
{
	uint8_t mask = tape_cursor_u8(in);

	p->planes = 0;
	for (uint32_t k = 0; k < 8; k++) {
		p->plane[k] = NULL;
		if (mask & 1u << k) {
			p->plane[k] = tape_cursor_take(in, nr);
			p->planes = (uint8_t)(k + 1);
		}
	}
}

/* Add byte plane @plane to @nr numbers. */
static void plane_add(uint64_t *restrict values, const uint8_t *restrict plane, uint32_t nr,
		      uint32_t shift)
{
	for (uint32_t i = 0; i < nr; i++)
		values[i] |= (uint64_t)plane[i] << shift;
}

static void planes_next(struct tape_ints_plain *p, uint64_t *restrict values, uint32_t nr)
{
	const uint8_t *lo = p->plane[0], *hi = p->plane[1];
	uint32_t at = p->at, from = 2;

	if (lo && hi) {
		for (uint32_t i = 0; i < nr; i++)
			values[i] = lo[at + i] | (uint64_t)hi[at + i] << 8;
	} else if (lo) {
		for (uint32_t i = 0; i < nr; i++)
			values[i] = lo[at + i];
	} else {
		memset(values, 0, sizeof(*values) * nr);
		from = 1;
	}
	for (uint32_t k = from; k < p->planes; k++)
		if (p->plane[k])
			plane_add(values, p->plane[k] + at, nr, 8 * k);
}

static void dict_open(struct tape_ints_plain *p, struct tape_cursor *in, uint32_t nr)
{
	uint8_t bits = tape_cursor_u8(in);
	uint64_t entries = tape_cursor_varint(in);
	struct tape_ints_plain planes = { .form = TAPE_INTS_PLANES };

	if (in->bad || (bits != 0 && bits != 1 && bits != 2 && bits != 4 && bits != 8) ||
	    entries > 1u << bits || (entries == 0 && nr > 0)) {
		in->bad = true;
		return;
	}
	p->bits = bits;
	p->entries = (uint32_t)entries;
	planes_open(&planes, in, p->entries);
	if (in->bad)
		return;
	planes_next(&planes, p->dict, p->entries);
	p->packed = tape_cursor_take(in, ((size_t)nr * bits + 7) / 8);
}

/* The next 8 indices: @bits bytes, the first index lowest. */
static inline uint64_t eight_load(const uint8_t *from, uint32_t bits)
{
	uint64_t x = from[0];

	if (bits > 1)
		x |= (uint64_t)from[1] << 8;
	if (bits > 2)
		x |= (uint64_t)from[2] << 16 | (uint64_t)from[3] << 24;
	return x;
}

/* 8 indices of @bits (1, 2 or 4) side by side to one byte each: half of them move up, twice more. */
static inline uint64_t eight_spread(uint64_t x, uint32_t bits)
{
	const uint64_t low = (1u << bits) - 1, byte = UINT64_C(0x0101010101010101) * low;

	x = (x | x << (32 - 4 * bits)) & ((low << (3 * bits) | low << (2 * bits) | low << bits | low) *
					  UINT64_C(0x0000000100000001));
	x = (x | x << (16 - 2 * bits)) & ((low << bits | low) * UINT64_C(0x0001000100010001));
	return (x | x << (8 - bits)) & byte;
}

static inline void eight_put(uint8_t *index, uint64_t x)
{
	for (uint32_t k = 0; k < 8; k++)
		index[k] = (uint8_t)(x >> 8 * k);
}

/* Unpack the indices [at, at + nr) to bytes. */
static void indices_unpack(const struct tape_ints_plain *p, uint8_t *restrict index, uint32_t nr)
{
	uint32_t bits = p->bits, mask = (1u << bits) - 1, i = 0;
	uint32_t begin = p->at * bits;

	if (!(begin & 7))
		for (const uint8_t *from = p->packed + (begin >> 3); i + 8 <= nr; i += 8, from += bits)
			eight_put(index + i, eight_spread(eight_load(from, bits), bits));
	for (; i < nr; i++) {
		uint32_t bit = begin + i * bits;

		index[i] = (uint8_t)(p->packed[bit >> 3] >> (bit & 7) & mask);
	}
}

/* The next @nr indices, in @room or in the input; NULL when one has no entry. */
static const uint8_t *indices_next(const struct tape_ints_plain *p, uint8_t room[TAPE_INTS_BLOCK],
				   uint32_t nr)
{
	const uint8_t *index = room;
	uint8_t highest = 0;

	if (p->bits == 8)
		index = p->packed + p->at;
	else if (p->bits)
		indices_unpack(p, room, nr);
	else
		memset(room, 0, nr);
	for (uint32_t i = 0; i < nr; i++)
		highest = index[i] > highest ? index[i] : highest;
	return nr && highest >= p->entries ? NULL : index;
}

static bool dict_next(struct tape_ints_plain *p, uint64_t *restrict values, uint32_t nr)
{
	uint8_t room[TAPE_INTS_BLOCK];
	const uint8_t *index = indices_next(p, room, nr);

	for (uint32_t i = 0; index && i < nr; i++)
		values[i] = p->dict[index[i]];
	return index != NULL;
}

static void plain_open(struct tape_ints_plain *p, struct tape_cursor *in, uint32_t nr, uint8_t form)
{
	p->at = 0;
	p->nr = nr;
	p->form = form;
	p->entries = 0;
	if (form == TAPE_INTS_PLANES)
		planes_open(p, in, nr);
	else if (form == TAPE_INTS_DICT_FORM)
		dict_open(p, in, nr);
	else
		in->bad = true;
}

/* The next @nr numbers; false when malformed. */
static bool plain_next(struct tape_ints_plain *p, uint64_t *values, uint32_t nr)
{
	bool good = true;

	assert(nr <= TAPE_INTS_BLOCK && nr <= p->nr - p->at);
	if (p->form == TAPE_INTS_PLANES)
		planes_next(p, values, nr);
	else
		good = dict_next(p, values, nr);
	p->at += nr;
	return good;
}

void tape_ints_open(struct tape_ints *s, struct tape_cursor *in, uint32_t nr)
{
	uint8_t form = tape_cursor_u8(in);

	s->runs = form == TAPE_INTS_RUNS;
	s->bad = false;
	s->run_left = 0;
	s->left = nr;
	s->fetched = s->used = 0;
	if (s->runs) {
		uint64_t runs = tape_cursor_varint(in);

		if (runs > nr)
			in->bad = true;
		else
			plain_open(&s->plain, in, (uint32_t)runs, tape_cursor_u8(in));
		if (!in->bad)
			plain_open(&s->lengths, in, (uint32_t)runs, tape_cursor_u8(in));
	} else {
		plain_open(&s->plain, in, nr, form);
	}
	if (in->bad) { /* reads as zeros */
		s->runs = false;
		s->bad = true;
		s->plain = (struct tape_ints_plain){ .nr = nr };
	}
}

/* Fetch the next runs; false when there are none. */
static bool runs_fetch(struct tape_ints *s)
{
	uint32_t left = s->plain.nr - s->plain.at;
	uint32_t nr = left < 64 ? left : 64;

	if (!nr)
		return false;
	if (!plain_next(&s->plain, s->values, nr) || !plain_next(&s->lengths, s->counts, nr))
		return false;
	s->used = 0;
	s->fetched = nr;
	return true;
}

static void runs_next(struct tape_ints *s, uint64_t *values, uint32_t nr)
{
	while (nr) {
		uint32_t take;

		if (!s->run_left) {
			if (s->used == s->fetched && !runs_fetch(s)) {
				s->bad = true;
				memset(values, 0, sizeof(*values) * nr);
				return;
			}
			s->run_value = s->values[s->used];
			s->run_left = (s->counts[s->used++] & UINT32_MAX) + 1;
		}
		take = s->run_left < nr ? (uint32_t)s->run_left : nr;
		for (uint32_t i = 0; i < take; i++)
			values[i] = s->run_value;
		values += take;
		nr -= take;
		s->run_left -= take;
	}
}

void tape_ints_next(struct tape_ints *s, uint64_t *ret_values, uint32_t nr)
{
	assert(nr <= TAPE_INTS_BLOCK && nr <= s->left);
	s->left -= nr;
	if (s->runs)
		runs_next(s, ret_values, nr);
	else if (!plain_next(&s->plain, ret_values, nr))
		s->bad = true;
}

const uint64_t *tape_ints_dict(const struct tape_ints *s, uint32_t *ret_entries)
{
	if (s->runs || s->bad || s->plain.form != TAPE_INTS_DICT_FORM)
		return NULL;
	*ret_entries = s->plain.entries;
	return s->plain.dict;
}

const uint8_t *tape_ints_indices(struct tape_ints *s, uint8_t room[TAPE_INTS_BLOCK], uint32_t nr)
{
	const uint8_t *index;

	assert(nr <= TAPE_INTS_BLOCK && nr <= s->left && !s->runs);
	index = indices_next(&s->plain, room, nr);
	s->left -= nr;
	s->plain.at += nr;
	return index;
}

bool tape_ints_done(const struct tape_ints *s)
{
	if (s->bad || s->left || s->plain.at != s->plain.nr)
		return false;
	return !s->runs || (s->run_left == 0 && s->used == s->fetched);
}

bool tape_ints_constant(const struct tape_ints *s, uint64_t *ret_value)
{
	if (s->runs || s->bad)
		return false;
	if (s->plain.form == TAPE_INTS_DICT_FORM) {
		*ret_value = s->plain.entries ? s->plain.dict[0] : 0;
		return s->plain.bits == 0;
	}
	*ret_value = 0;
	return s->plain.planes == 0;
}
