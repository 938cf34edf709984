/* SPDX-License-Identifier: MIT */
/* Every batch comes back exactly; damaged bytes give an error and never a crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <zstd.h>

#include "traces/chunk.h"
#include "traces/far.h"

static uint64_t seed = 88172645463325252u; /* global for the debugger */

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* A number of random magnitude: small ones and the extremes are both common. */
static uint64_t wild(void)
{
	switch (rnd() % 8) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX - rnd() % 3;
	case 2:
		return (UINT64_C(1) << 63) + rnd() % 5 - 2;
	default:
		return rnd() >> rnd() % 64;
	}
}

static struct tape_event wild_event(uint64_t kind)
{
	struct tape_event ev = tape_event_blank();

	ev.ts = kind & 1 ? wild() : rnd() % 1000;
	ev.ts_lo = kind & 2 ? wild() : ev.ts;
	ev.ts_hi = kind & 2 ? wild() : ev.ts;
	ev.object = kind & 4 ? wild() : rnd() % 300;
	ev.address = kind & 8 ? wild() : rnd() % 5000 * 16;
	ev.size = kind & 16 ? wild() : rnd() % 3 * 64;
	ev.arg = kind & 32 ? (int64_t)wild() : 0;
	ev.slot = kind & 64 ? (uint32_t)wild() : (uint32_t)(rnd() % 100);
	ev.site = kind & 128 ? (uint32_t)wild() : (uint32_t)(rnd() % 7);
	ev.bulk = kind & 256 ? (uint32_t)wild() : (uint32_t)(rnd() % 2);
	ev.tid = kind & 512 ? (int32_t)wild() : (int32_t)(rnd() % 4);
	ev.cpu = (uint16_t)(rnd() % (kind & 1024 ? TAPE_CPU_MAX : 2));
	ev.cache = (uint16_t)(kind & 2048 ? wild() : rnd() % 20);
	ev.node_req = (int16_t)((int)(rnd() % (TAPE_NODE_MAX + 1)) - 1);
	ev.mem_node = kind & 4096 ? (int16_t)(rnd() % TAPE_NODE_MAX) : TAPE_NODE_NONE;
	ev.gfp = (uint16_t)wild();
	ev.flags = kind & 8192 ? (uint16_t)wild() : 0;
	ev.op = (uint8_t)(rnd() % (kind & 16384 ? TAPE_OP_MAX : 2));
	ev.ctx = (uint8_t)(rnd() % TAPE_CTX_MAX);
	return ev;
}

/* One allocator's life as importers write it: dense ids, smallest free slot. */
struct life {
	uint64_t next, ts;
	uint32_t live[512], live_nr; /* slots */
	uint64_t object_of[512], address_of[512];
};

static struct tape_event life_event(struct life *l)
{
	struct tape_event ev = tape_event_blank();
	uint32_t pick;

	ev.ts = ev.ts_lo = ev.ts_hi = l->ts += rnd() % 2000;
	ev.cpu = (uint16_t)(rnd() % 4);
	ev.tid = 100 + ev.cpu;
	ev.op = l->live_nr == 0 || (l->live_nr < 512 && rnd() % 2) ? TAPE_OP_ALLOC : TAPE_OP_FREE;
	if (ev.op == TAPE_OP_ALLOC) {
		for (ev.slot = 0; l->object_of[ev.slot]; ev.slot++)
			;
		l->object_of[ev.slot] = l->next + 1;
		l->address_of[ev.slot] = 0x7f0000001000 + ev.slot * 192;
		l->live[l->live_nr++] = ev.slot;
		ev.object = l->next++;
		ev.size = 1 + rnd() % 192;
	} else {
		pick = (uint32_t)(rnd() % l->live_nr);
		ev.slot = l->live[pick];
		l->live[pick] = l->live[--l->live_nr];
		ev.object = l->object_of[ev.slot] - 1;
		l->object_of[ev.slot] = 0;
	}
	ev.address = l->address_of[ev.slot];
	ev.cache = (uint16_t)(ev.slot % 5);
	return ev;
}

struct column_bytes {
	void *data;
	size_t bytes, raw_bytes;
};

static void encode_all(struct tape_codec *c, const struct tape_batch *b,
		       struct column_bytes out[TAPE_COL_MAX])
{
	for (int col = 0; col < TAPE_COL_MAX; col++) {
		const void *data;

		assert_int_equal(tape_column_encode(c, (enum tape_col)col, b, &data, &out[col].bytes,
						    &out[col].raw_bytes), 0);
		out[col].data = malloc(out[col].bytes + 1);
		if (out[col].bytes)
			memcpy(out[col].data, data, out[col].bytes);
	}
}

static void free_all(struct column_bytes out[TAPE_COL_MAX])
{
	for (int col = 0; col < TAPE_COL_MAX; col++)
		free(out[col].data);
}

/* Decode what stands before @col needs, then @col from @data. */
static int decode_one(struct tape_codec *c, struct column_bytes in[TAPE_COL_MAX], int col,
		      const void *data, size_t bytes, struct tape_batch *b)
{
	uint32_t needs = tape_column_needs((enum tape_col)col);
	static const enum tape_col order[] = { TAPE_COL_OP, TAPE_COL_CPU, TAPE_COL_TS,
		TAPE_COL_SITE, TAPE_COL_OBJECT };

	b->valid = 0;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		if (needs & 1u << order[i])
			assert_int_equal(tape_column_decode(c, order[i], in[order[i]].data,
							    in[order[i]].bytes, b, NULL), 0);
	return tape_column_decode(c, (enum tape_col)col, data, bytes, b, NULL);
}

static void assert_column_equal(const struct tape_batch *a, const struct tape_batch *b, int col)
{
	switch (col) {
#define COMPARE(column, field)                                                              \
	case TAPE_COL_##column:                                                             \
		assert_memory_equal(a->field, b->field, sizeof(*a->field) * a->events);     \
		break;
		TAPE_BATCH_FIELDS(COMPARE)
#undef COMPARE
	}
}

static void assert_round_trip(struct tape_codec *c, const struct tape_batch *in)
{
	struct tape_batch *out = tape_batch_create(in->capacity);
	struct column_bytes bytes[TAPE_COL_MAX];

	out->events = in->events;
	encode_all(c, in, bytes);
	for (int col = 0; col < TAPE_COL_MAX; col++) {
		assert_int_equal(decode_one(c, bytes, col, bytes[col].data, bytes[col].bytes, out), 0);
		if (in->events)
			assert_column_equal(in, out, col);
	}
	free_all(bytes);
	tape_batch_destroy(out);
}

static void random_batches_round_trip(void **state)
{
	struct tape_codec *c = tape_codec_create();

	(void)state;
	for (uint32_t round = 0; round < 400; round++) {
		uint32_t events = round % 50 == 49 ? 20000 : (uint32_t)(rnd() % 1500) + 1;
		struct tape_batch *b = tape_batch_create(events);
		uint64_t kind = round < 16 ? UINT64_C(1) << round : rnd() & rnd();

		for (uint32_t i = 0; i < events; i++) {
			struct tape_event ev = wild_event(kind);

			tape_batch_push(b, &ev);
		}
		assert_round_trip(c, b);
		tape_batch_destroy(b);
	}
	tape_codec_destroy(c);
}

static void edge_batches_round_trip(void **state)
{
	struct tape_codec *c = tape_codec_create();
	struct tape_batch *b = tape_batch_create(TAPE_CHUNK_EVENTS);
	struct life l = { 0 };

	(void)state;
	b->valid = TAPE_COLS_ALL;
	assert_round_trip(c, b); /* no rows */
	for (uint32_t i = 0; i < TAPE_CHUNK_EVENTS; i++) {
		struct tape_event ev = life_event(&l);

		tape_batch_push(b, &ev);
		if (i < 3)
			assert_round_trip(c, b);
	}
	assert_round_trip(c, b); /* a full chunk */
	b->events = 0;
	for (uint32_t i = 0; i < TAPE_CHUNK_EVENTS; i++) {
		struct tape_event ev = tape_event_blank();

		tape_batch_push(b, &ev);
	}
	assert_round_trip(c, b); /* nothing but defaults */
	tape_batch_destroy(b);
	tape_codec_destroy(c);
}

/* A life's columns cost what the format promises: ids and slots of allocs next to nothing. */
static void usual_batches_are_small(void **state)
{
	struct tape_codec *c = tape_codec_create();
	struct tape_batch *b = tape_batch_create(TAPE_CHUNK_EVENTS);
	struct column_bytes bytes[TAPE_COL_MAX];
	struct life l = { 0 };

	(void)state;
	for (uint32_t i = 0; i < TAPE_CHUNK_EVENTS; i++) {
		struct tape_event ev = life_event(&l);

		tape_batch_push(b, &ev);
	}
	encode_all(c, b, bytes);
	assert_true(bytes[TAPE_COL_SLOT].bytes < 2000);
	assert_true(bytes[TAPE_COL_TID].bytes < 200);
	assert_true(bytes[TAPE_COL_OP].bytes < 9000);
	assert_int_equal(bytes[TAPE_COL_TS_LO].bytes, 0);
	assert_int_equal(bytes[TAPE_COL_BULK].bytes, 0);
	free_all(bytes);
	tape_batch_destroy(b);
	tape_codec_destroy(c);
}

static void damaged_bytes_give_errors(void **state)
{
	struct tape_codec *c = tape_codec_create();
	struct tape_batch *b = tape_batch_create(3000), *out = tape_batch_create(3000);
	struct column_bytes bytes[TAPE_COL_MAX];

	(void)state;
	for (uint32_t i = 0; i < 3000; i++) {
		struct tape_event ev = wild_event(0xffff);

		tape_batch_push(b, &ev);
	}
	out->events = 3000;
	encode_all(c, b, bytes);
	for (int col = 0; col < TAPE_COL_MAX; col++) {
		uint8_t *data = bytes[col].data;

		assert_true(bytes[col].bytes > 0);
		for (uint32_t i = 0; i < 60; i++) { /* the checksum sees every bit that matters */
			size_t at = rnd() % bytes[col].bytes;
			uint8_t bit = (uint8_t)(1u << rnd() % 8);
			int rc;

			data[at] ^= bit;
			rc = decode_one(c, bytes, col, data, bytes[col].bytes, out);
			data[at] ^= bit;
			if (rc == 0) /* a padding bit */
				assert_column_equal(b, out, col);
			rc = decode_one(c, bytes, col, data, rnd() % bytes[col].bytes, out);
			assert_true(rc <= 0);
		}
		assert_int_equal(decode_one(c, bytes, col, "", 1, out), -TAPE_E_FORMAT);
		out->events = 2999;
		assert_true(decode_one(c, bytes, TAPE_COL_OP, bytes[TAPE_COL_OP].data,
				       bytes[TAPE_COL_OP].bytes, out) < 0);
		out->events = 3000;
	}
	free_all(bytes);
	tape_batch_destroy(b);
	tape_batch_destroy(out);
	tape_codec_destroy(c);
}

/* Change a few bytes, or the length, of what is inside the frame. */
static size_t mutate(uint8_t *raw, size_t bytes)
{
	switch (rnd() % 4) {
	case 0:
		return bytes ? rnd() % bytes : 0;
	case 1:
		raw[bytes] = (uint8_t)rnd();
		return bytes + 1;
	default:
		for (uint32_t i = 0; bytes && i <= rnd() % 4; i++) {
			/* headers stand at the beginning */
			size_t at = rnd() % 2 ? rnd() % bytes : rnd() % (bytes < 24 ? bytes : 24);

			raw[at] = (uint8_t)(rnd() % 3 ? rnd() : rnd() % 4);
		}
		return bytes;
	}
}

/* Bytes with a right checksum but wrong contents: the decoder itself must hold. */
static void wrong_contents_never_crash(void **state)
{
	static uint8_t raw[1 << 20], packed[1 << 21];
	struct tape_codec *c = tape_codec_create();
	struct tape_batch *b = tape_batch_create(1000), *out = tape_batch_create(1000);
	struct life l = { 0 };
	uint32_t refused = 0;

	(void)state;
	out->events = 1000;
	for (uint32_t round = 0; round < 6; round++) {
		struct column_bytes bytes[TAPE_COL_MAX];

		b->events = 0;
		for (uint32_t i = 0; i < 1000; i++) {
			struct tape_event ev = round % 2 ? wild_event(rnd() & 0x7fff) : life_event(&l);

			tape_batch_push(b, &ev);
		}
		encode_all(c, b, bytes);
		for (uint32_t i = 0; i < 200 * TAPE_COL_MAX; i++) {
			int col = (int)(i % TAPE_COL_MAX);
			size_t got, changed;

			if (!bytes[col].bytes)
				continue;
			got = ZSTD_decompress(raw, sizeof(raw) - 1, bytes[col].data, bytes[col].bytes);
			assert_false(ZSTD_isError(got));
			changed = mutate(raw, got);
			got = ZSTD_compress(packed, sizeof(packed), raw, changed, 1);
			refused += decode_one(c, bytes, col, packed, got, out) < 0;
			for (uint32_t row = 0; row < 1000; row++) { /* what engines index by */
				assert_true(!(out->valid & 1u << TAPE_COL_OP) || out->op[row] < TAPE_OP_MAX);
				assert_true(!(out->valid & 1u << TAPE_COL_CPU) || out->cpu[row] < TAPE_CPU_MAX);
			}
		}
		free_all(bytes);
	}
	assert_true(refused > 0);
	tape_batch_destroy(b);
	tape_batch_destroy(out);
	tape_codec_destroy(c);
}

static void far_frees_round_trip(void **state)
{
	static struct tape_far_free in[5001], out[5001];
	struct tape_codec *c = tape_codec_create();
	const void *data;
	void *copy;
	size_t bytes;

	(void)state;
	for (uint32_t nr = 1; nr <= 5000; nr = nr * 3 + 1) {
		for (uint32_t i = 0; i < nr; i++)
			in[i] = (struct tape_far_free){ 0x123450000u + rnd() % 65536, i * 7, wild(),
							(uint32_t)wild(), (uint16_t)(rnd() % TAPE_CPU_MAX),
							(uint16_t)wild() };
		assert_int_equal(tape_far_encode(c, in, nr, &data, &bytes), 0);
		copy = malloc(bytes);
		memcpy(copy, data, bytes);
		memset(out, 0, sizeof(out));
		assert_int_equal(tape_far_decode(c, copy, bytes, nr, out, NULL), 0);
		for (uint32_t i = 0; i < nr; i++) {
			assert_int_equal(out[i].object, in[i].object);
			assert_int_equal(out[i].seq, in[i].seq);
			assert_int_equal(out[i].ts, in[i].ts);
			assert_int_equal(out[i].site, in[i].site);
			assert_int_equal(out[i].cpu, in[i].cpu);
			assert_int_equal(out[i].flags, in[i].flags);
		}
		if (nr > 300) /* fewer are dictionaries, in which one more index may fit */
			assert_true(tape_far_decode(c, copy, bytes, nr + 1, out, NULL) < 0);
		assert_true(tape_far_decode(c, copy, bytes / 2, nr, out, NULL) < 0);
		free(copy);
	}
	tape_codec_destroy(c);
}

static void needs_are_closed(void **state)
{
	(void)state;
	for (int col = 0; col < TAPE_COL_MAX; col++) {
		uint32_t needs = tape_column_needs((enum tape_col)col);

		assert_int_equal(tape_columns_close(needs), needs);
		assert_false(needs & 1u << col);
		assert_non_null(tape_column_name((enum tape_col)col));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_batches_round_trip),
		cmocka_unit_test(edge_batches_round_trip),
		cmocka_unit_test(usual_batches_are_small),
		cmocka_unit_test(damaged_bytes_give_errors),
		cmocka_unit_test(wrong_contents_never_crash),
		cmocka_unit_test(far_frees_round_trip),
		cmocka_unit_test(needs_are_closed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
