/* SPDX-License-Identifier: MIT */
/* Integer streams, writing: look at the numbers once, choose a form, write it. */
#include "traces/ints.h"

#define DIRECT_MAX 8192u /* numbers below find their index without hashing */
#define HASH_SLOTS 1024u /* power of two, > 2 * TAPE_INTS_DICT */

/* What is known about the numbers before a form is chosen. */
struct survey {
	uint64_t all_bits; /* OR of all numbers */
	uint32_t runs;
	uint32_t entries; /* distinct numbers; TAPE_INTS_DICT + 1: more than a dictionary holds */
	uint64_t dict[TAPE_INTS_DICT];
	uint16_t slots[HASH_SLOTS]; /* index in dict + 1, 0 empty */
	uint8_t index[TAPE_INTS_NR_MAX]; /* of every number, as long as entries fits */
};

static uint32_t hash_slot(uint64_t value)
{
	return (uint32_t)(value * UINT64_C(0x9E3779B97F4A7C15) >> 54) & (HASH_SLOTS - 1);
}

/* Index of @value in the dictionary, which gets it when it is new and there is room. */
static uint32_t dict_index(struct survey *s, uint64_t value)
{
	uint32_t slot = hash_slot(value);

	for (; s->slots[slot]; slot = (slot + 1) & (HASH_SLOTS - 1))
		if (s->dict[s->slots[slot] - 1u] == value)
			return s->slots[slot] - 1u;
	if (s->entries >= TAPE_INTS_DICT) {
		s->entries = TAPE_INTS_DICT + 1;
		return 0;
	}
	s->dict[s->entries] = value;
	s->slots[slot] = (uint16_t)++s->entries;
	return s->entries - 1;
}

/* As survey_dict(), for numbers below DIRECT_MAX. */
static void survey_dict_direct(struct survey *s, const uint64_t *values, uint32_t nr)
{
	uint16_t known[DIRECT_MAX] = { 0 }; /* index + 1 */

	for (uint32_t i = 0; i < nr; i++) {
		uint16_t *index = &known[values[i]];

		if (!*index) {
			if (s->entries == TAPE_INTS_DICT) {
				s->entries++;
				return;
			}
			s->dict[s->entries] = values[i];
			*index = (uint16_t)++s->entries;
		}
		s->index[i] = (uint8_t)(*index - 1);
	}
}

/* Give every number its dictionary index; gives up at the first that finds no room. */
static void survey_dict(struct survey *s, const uint64_t *values, uint32_t nr)
{
	uint64_t last = nr ? ~values[0] : 0;
	uint32_t index = 0;

	for (uint32_t i = 0; i < nr; i++) {
		if (values[i] != last)
			index = dict_index(s, values[i]);
		if (s->entries > TAPE_INTS_DICT)
			return;
		s->index[i] = (uint8_t)index;
		last = values[i];
	}
}

static void survey_take(struct survey *s, const uint64_t *values, uint32_t nr)
{
	uint64_t bits = nr ? values[0] : 0;
	uint64_t runs = nr > 0;

	assert(nr <= TAPE_INTS_NR_MAX);
	memset(s->slots, 0, sizeof(s->slots));
	for (uint32_t i = 1; i < nr; i++) {
		bits |= values[i];
		runs += values[i] != values[i - 1];
	}
	s->all_bits = bits;
	s->runs = (uint32_t)runs;
	s->entries = 0;
	if (bits < DIRECT_MAX)
		survey_dict_direct(s, values, nr);
	else
		survey_dict(s, values, nr);
	assert(s->runs <= nr && (s->entries <= s->runs || s->entries > TAPE_INTS_DICT));
}

static uint32_t mask_planes(uint64_t all_bits, uint8_t *ret_mask)
{
	uint32_t planes = 0;

	*ret_mask = 0;
	for (uint32_t k = 0; k < 8; k++) {
		if (all_bits >> (8 * k) & 0xff) {
			*ret_mask |= (uint8_t)(1u << k);
			planes++;
		}
	}
	return planes;
}

static uint32_t dict_bits(uint32_t entries)
{
	return entries <= 1 ? 0 : entries <= 2 ? 1 : entries <= 4 ? 2 : entries <= 16 ? 4 : 8;
}

static void planes_write(const uint64_t *values, uint32_t nr, uint8_t mask, struct tape_buf *out)
{
	tape_buf_u8(out, mask);
	for (uint32_t k = 0; k < 8; k++) {
		uint8_t *at;

		if (!(mask & 1u << k))
			continue;
		tape_buf_cut(out);
		at = tape_buf_add(out, nr);
		for (uint32_t i = 0; at && i < nr; i++)
			at[i] = (uint8_t)(values[i] >> (8 * k));
	}
	tape_buf_cut(out);
}

static void indices_pack(const uint8_t *restrict index, uint32_t nr, uint32_t bits,
			 uint8_t *restrict at)
{
	uint32_t per_byte = 8 / bits, whole = nr / per_byte * per_byte;

	for (uint32_t i = 0; i < whole; i += per_byte) {
		uint32_t byte = 0;

		for (uint32_t j = 0; j < per_byte; j++)
			byte |= (uint32_t)index[i + j] << (j * bits);
		*at++ = (uint8_t)byte;
	}
	if (whole < nr)
		*at = 0;
	for (uint32_t i = whole; i < nr; i++)
		*at |= (uint8_t)(index[i] << ((i - whole) * bits));
}

static void dict_write(const struct survey *s, uint32_t nr, struct tape_buf *out)
{
	uint32_t bits = dict_bits(s->entries);
	uint64_t entry_bits = 0;
	uint8_t mask, *at;

	assert(s->entries <= TAPE_INTS_DICT);
	tape_buf_u8(out, TAPE_INTS_DICT_FORM);
	tape_buf_u8(out, (uint8_t)bits);
	tape_buf_varint(out, s->entries);
	for (uint32_t i = 0; i < s->entries; i++)
		entry_bits |= s->dict[i];
	mask_planes(entry_bits, &mask);
	planes_write(s->dict, s->entries, mask, out);
	if (!bits)
		return;
	at = tape_buf_add(out, ((size_t)nr * bits + 7) / 8);
	if (at)
		indices_pack(s->index, nr, bits, at);
	tape_buf_cut(out);
}

/* Bytes of the PLANES and, where there is a dictionary, of the DICT form before compression. */
static size_t planes_bytes(const struct survey *s, uint32_t nr)
{
	uint8_t mask;

	return (size_t)mask_planes(s->all_bits, &mask) * nr;
}

static size_t dict_bytes(const struct survey *s, uint32_t nr)
{
	return ((size_t)nr * dict_bits(s->entries) + 7) / 8 + planes_bytes(s, s->entries);
}

/* PLANES or DICT, whichever the survey makes smaller. */
static void plain_write(const struct survey *s, const uint64_t *values, uint32_t nr,
			struct tape_buf *out)
{
	size_t planes = planes_bytes(s, nr);
	uint8_t mask;

	if (s->entries <= TAPE_INTS_DICT && (dict_bytes(s, nr) < planes || !planes)) {
		dict_write(s, nr, out);
		return;
	}
	mask_planes(s->all_bits, &mask);
	tape_buf_u8(out, TAPE_INTS_PLANES);
	planes_write(values, nr, mask, out);
}

static void runs_write(const uint64_t *values, uint32_t nr, uint32_t runs, struct tape_buf *out)
{
	uint64_t *run_values = malloc(sizeof(*run_values) * 2 * runs);
	uint64_t *run_lengths = run_values + runs;
	struct survey s;
	uint32_t at = 0;

	if (!run_values) {
		out->failed = true;
		return;
	}
	for (uint32_t i = 0, begin = 0; i < nr; i++) {
		if (i + 1 < nr && values[i + 1] == values[i])
			continue;
		run_values[at] = values[i];
		run_lengths[at++] = i - begin;
		begin = i + 1;
	}
	assert(at == runs);
	tape_buf_u8(out, TAPE_INTS_RUNS);
	tape_buf_varint(out, runs);
	survey_take(&s, run_values, runs);
	plain_write(&s, run_values, runs, out);
	survey_take(&s, run_lengths, runs);
	plain_write(&s, run_lengths, runs, out);
	free(run_values);
}

/* Bytes of the RUNS form before compression, roughly: lengths seldom need two bytes. */
static size_t runs_bytes_guess(const struct survey *s)
{
	uint8_t mask;
	size_t value_bytes = s->entries <= TAPE_INTS_DICT ? 1 : mask_planes(s->all_bits, &mask);

	return s->runs * (value_bytes + 1) + s->runs / 4 + 8;
}

static size_t plain_bytes_guess(const struct survey *s, uint32_t nr)
{
	return s->entries <= TAPE_INTS_DICT ? dict_bytes(s, nr) : planes_bytes(s, nr);
}

void tape_ints_encode(const uint64_t *values, uint32_t nr, struct tape_buf *out)
{
	struct survey s;

	survey_take(&s, values, nr);
	if (nr > 16 && s.entries > 1 && runs_bytes_guess(&s) < plain_bytes_guess(&s, nr))
		runs_write(values, nr, s.runs, out);
	else
		plain_write(&s, values, nr, out);
}
