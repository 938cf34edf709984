/* SPDX-License-Identifier: MIT */
/*
 * Canned queries about slabs, samples and pairs of runs, against plain loops over the same rows.
 */
#include "query_fixture.h"

#include <stdlib.h>

enum { CACHES = 3, SLABS = 40, PINS = 300, SITES = 5, MOMENTS = 30, NODES = 2, STEPS = 3000 };

struct fixture {
	struct tape *t;
	struct tape_run run;
	struct tape_slab slabs[SLABS];
	struct tape_pinned pins[PINS];
	struct tape_sample samples[MOMENTS * CACHES * NODES];
};

static void add_slabs(struct fixture *f, struct tape_run_buffer *b)
{
	for (uint32_t i = 0; i < SLABS; i++) {
		f->slabs[i] = (struct tape_slab){ .slab = i, .born_seq = i, .born_ts = i, .died_seq = -1,
			.died_ts = -1, .objects = 32, .cache = (uint16_t)(i % CACHES),
			.order = (uint8_t)rnd(4), .state = 3 };
		assert_int_equal(tape_run_buffer_slab(b, &f->slabs[i]), 0);
	}
	for (uint32_t i = 0; i < PINS; i++) {
		uint32_t slab = rnd(SLABS);

		f->pins[i] = (struct tape_pinned){ .slab = slab, .object = 1000 + i, .alloc_seq = i,
			.age_ns = rnd(2000000000), .alloc_site = rnd(SITES), .inuse = 1 + slab % 8,
			.objects = 32, .cache = f->slabs[slab].cache };
		assert_int_equal(tape_run_buffer_pinned(b, &f->pins[i]), 0);
	}
}

static void add_samples(struct fixture *f)
{
	struct tape_err err = { 0 };

	for (uint32_t i = 0; i < MOMENTS * CACHES * NODES; i++) {
		uint32_t total = 100 + rnd(1000), inuse = 50 + rnd(total - 50);

		f->samples[i] = (struct tape_sample){ .ts = (i / (CACHES * NODES)) * 7000000000ull,
			.cache = (uint16_t)(i / NODES % CACHES), .node = (uint16_t)(i % NODES),
			.slabs = 1 + rnd(90), .objects_inuse = inuse, .objects_total = total,
			.cached_objs = rnd(50) };
		must(tape_run_sample(f->t, f->run.id, &f->samples[i], &err), &err);
	}
}

static int setup(void **state)
{
	struct fixture *f = test_calloc(1, sizeof(*f));
	struct tape_run_buffer *b;
	struct tape_err err = { 0 };

	f->t = query_tape(CACHES);
	f->run = (struct tape_run){ .variant = "null", .mode = "ordered" };
	assert_int_equal(tape_run_buffer_create(&b), 0);
	add_slabs(f, b);
	must(tape_run_begin(f->t, &f->run, &err), &err);
	must(tape_run_buffer_write(f->t, f->run.id, b, &err), &err);
	add_samples(f);
	must(tape_run_end(f->t, f->run.id, 0, 0, -1, &err), &err);
	tape_run_buffer_destroy(b);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tape_close(f->t);
	test_free(f);
	return 0;
}

/* What one row of pinned-slabs must say. */
struct pinned_row {
	int64_t slabs, objects, bytes, oldest, example;
	double full;
};

static struct pinned_row expect_pinned(const struct fixture *f, int cache, uint32_t site)
{
	struct pinned_row row = { .example = INT64_MAX };
	bool seen[SLABS] = { false };

	for (int i = 0; i < PINS; i++) {
		const struct tape_pinned *p = &f->pins[i];

		if (p->cache != cache || p->alloc_site != site)
			continue;
		row.objects++;
		row.oldest = (int64_t)p->age_ns > row.oldest ? (int64_t)p->age_ns : row.oldest;
		row.example = (int64_t)p->object < row.example ? (int64_t)p->object : row.example;
		if (seen[p->slab])
			continue;
		seen[p->slab] = true;
		row.slabs++;
		row.bytes += 4096 << f->slabs[p->slab].order;
		row.full += (double)p->inuse / p->objects;
	}
	return row;
}

static void test_pinned_slabs(void **state)
{
	struct fixture *f = *state;
	sqlite3_stmt *s = query_prepare(f->t, "pinned-slabs");
	int64_t before = INT64_MAX;
	int rows = 0;

	for (; sqlite3_step(s) == SQLITE_ROW; rows++) {
		struct pinned_row want = expect_pinned(f, cache_of(s, 2),
						       (uint32_t)sqlite3_column_int64(s, 3));

		assert_int_equal(sqlite3_column_int64(s, 5), want.slabs);
		assert_int_equal(sqlite3_column_int64(s, 6), want.objects);
		assert_int_equal(sqlite3_column_int64(s, 7), want.bytes);
		assert_float_equal(sqlite3_column_double(s, 8), want.full / (double)want.slabs, 0.0001);
		assert_float_equal(sqlite3_column_double(s, 9), (double)want.oldest / 1e9, 0.001);
		assert_int_equal(sqlite3_column_int64(s, 10), want.example);
		assert_true(sqlite3_column_int64(s, 7) <= before);
		before = sqlite3_column_int64(s, 7);
	}
	sqlite3_finalize(s);
	assert_int_equal(rows, CACHES * SITES);
}

/* Sums over the samples of one moment; @cache -1: all. */
static void check_moment(const struct fixture *f, sqlite3_stmt *s, uint64_t moment, int cache)
{
	int64_t slabs = 0, room = 0, used = 0, cached = 0;

	for (int i = 0; i < MOMENTS * CACHES * NODES; i++) {
		const struct tape_sample *x = &f->samples[i];
		int64_t size = 64 << x->cache;

		if (x->ts != moment * 7000000000ull || (cache >= 0 && x->cache != cache))
			continue;
		slabs += (int64_t)x->slabs;
		room += (int64_t)x->objects_total * size;
		used += ((int64_t)x->objects_inuse - (int64_t)x->cached_objs) * size;
		cached += (int64_t)x->cached_objs * size;
	}
	assert_float_equal(sqlite3_column_double(s, 2), 7.0 * (double)moment, 0.001);
	assert_int_equal(sqlite3_column_int64(s, 3), slabs);
	assert_int_equal(sqlite3_column_int64(s, 4), room);
	assert_int_equal(sqlite3_column_int64(s, 5), used);
	assert_int_equal(sqlite3_column_int64(s, 6), cached);
	assert_float_equal(sqlite3_column_double(s, 7), 1 - (double)used / (double)room, 0.0001);
}

static void test_fragmentation(void **state)
{
	struct fixture *f = *state;

	for (int cache = -1; cache < CACHES; cache += 2) {
		sqlite3_stmt *s = query_prepare(f->t, "fragmentation");
		char name[20];
		uint64_t moment = 0;

		snprintf(name, sizeof(name), "cache-%d", cache);
		if (cache >= 0)
			sqlite3_bind_text(s, sqlite3_bind_parameter_index(s, ":cache"), name, -1,
					  SQLITE_TRANSIENT);
		for (; sqlite3_step(s) == SQLITE_ROW; moment++)
			check_moment(f, s, moment, cache);
		sqlite3_finalize(s);
		assert_int_equal(moment, MOMENTS);
	}
}

/* ---- pairs of runs ---- */

static void add_run(struct tape *t, const struct tape_transition *rows, uint32_t nr)
{
	struct tape_run run = { .variant = "null", .mode = "ordered" };
	struct tape_run_buffer *b;
	struct tape_err err = { 0 };

	assert_int_equal(tape_run_buffer_create(&b), 0);
	for (uint32_t i = 0; i < nr; i++)
		assert_int_equal(tape_run_buffer_transition(b, &rows[i]), 0);
	must(tape_run_begin(t, &run, &err), &err);
	must(tape_run_buffer_write(t, run.id, b, &err), &err);
	must(tape_run_end(t, run.id, 0, 0, -1, &err), &err);
	tape_run_buffer_destroy(b);
}

/* The query about runs @a and @b gives step @step and so many rows. */
static void parts_at(struct tape *t, int a, int b, int64_t step, int rows)
{
	sqlite3_stmt *s = query_prepare(t, "first-divergence");
	int seen = 0;

	sqlite3_bind_int(s, sqlite3_bind_parameter_index(s, ":a"), a);
	sqlite3_bind_int(s, sqlite3_bind_parameter_index(s, ":b"), b);
	for (; sqlite3_step(s) == SQLITE_ROW; seen++)
		assert_int_equal(sqlite3_column_int64(s, 0), step);
	assert_int_equal(seen, rows);
	sqlite3_finalize(s);
}

static void test_first_divergence(void **state)
{
	static struct tape_transition rows[STEPS], other[STEPS];
	struct tape *t = query_tape(CACHES);
	sqlite3_stmt *s;
	uint32_t naive = 0;

	(void)state;
	for (uint32_t i = 0; i < STEPS; i++)
		rows[i] = (struct tape_transition){ .seq = i / 2, .ts = i, .slab = rnd(50), .objects = 32,
			.inuse = rnd(33), .cpu = (uint16_t)rnd(4), .cache = (uint16_t)rnd(CACHES),
			.from = (uint8_t)rnd(6), .to = (uint8_t)rnd(6), .op = TAPE_OP_FREE };
	memcpy(other, rows, sizeof(rows));
	for (uint32_t i = 1234; i < STEPS; i++) {
		other[i].inuse = rnd(33);
		other[i].ts++; /* time alone is no difference */
	}
	other[700].ts++;
	while (rows[naive].inuse == other[naive].inuse)
		naive++;
	add_run(t, rows, STEPS);
	add_run(t, rows, STEPS);
	add_run(t, other, STEPS);
	add_run(t, rows, 900);
	parts_at(t, 1, 2, 0, 0);
	parts_at(t, 1, 3, naive + 1, 2);
	parts_at(t, 1, 4, 901, 1);
	parts_at(t, 4, 1, 901, 1);
	s = query_prepare(t, "first-divergence"); /* the last two: 3 and 4 */
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int64(s, 0), 901);
	assert_int_equal(sqlite3_column_int64(s, 1), 3);
	assert_int_equal(sqlite3_column_int64(s, 3), rows[900].seq);
	assert_int_equal(sqlite3_column_int64(s, 8), rows[900].slab);
	assert_string_equal(text_at(s, 10), tape_slab_state_name(rows[900].to));
	sqlite3_finalize(s);
	tape_close(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pinned_slabs),
		cmocka_unit_test(test_fragmentation),
		cmocka_unit_test(test_first_divergence),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
