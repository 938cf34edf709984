/* SPDX-License-Identifier: MIT */
/*
 * Canned queries about what runs recorded, against plain loops over the same rows.  (Queries about
 * events: tests/sql/test_queries.py.)
 */
#include "query_fixture.h"

#define ROWS 4000
#define CACHES 2
#define SLABS 50
#define SOURCES 6

struct fixture {
	struct tape *t;
	struct tape_run run;
	struct tape_refill refills[ROWS];
	struct tape_transition transitions[ROWS];
	struct tape_lock locks[3];
};

static void add_rows(struct fixture *f)
{
	struct tape_run_buffer *b;
	struct tape_err err = { 0 };
	uint64_t ts = 0;

	assert_int_equal(tape_run_buffer_create(&b), 0);
	for (uint64_t i = 0; i < ROWS; i++) {
		uint8_t state = (uint8_t)rnd(6);
		uint64_t slab = rnd(SLABS);

		ts += rnd(5000);
		f->refills[i] = (struct tape_refill){ .seq = i, .ts = ts, .objects = 1 + rnd(10),
			.cache = (uint16_t)rnd(CACHES), .source = (uint8_t)rnd(SOURCES) };
		f->transitions[i] = (struct tape_transition){ .seq = i, .ts = ts, .slab = slab, .to = state,
			.from = (uint8_t)((state + 1) % 6), .cache = (uint16_t)(slab % CACHES) };
		assert_int_equal(tape_run_buffer_refill(b, &f->refills[i]), 0);
		assert_int_equal(tape_run_buffer_transition(b, &f->transitions[i]), 0);
	}
	must(tape_run_buffer_write(f->t, f->run.id, b, &err), &err);
	tape_run_buffer_destroy(b);
	for (uint32_t i = 0; i < 3; i++) {
		f->locks[i] = (struct tape_lock){ .lock = "list_lock", .path = i ? "free" : "refill",
			.node = (uint16_t)i, .acquisitions = 1000, .contended = 100 * i,
			.wait_ns = 5000 * i, .max_wait_ns = 70 * i, .max_queue = i };
		must(tape_run_lock(f->t, f->run.id, &f->locks[i], &err), &err);
	}
}

static int setup(void **state)
{
	struct fixture *f = test_calloc(1, sizeof(*f));
	struct tape_err err = { 0 };

	f->t = query_tape(CACHES);
	f->run = (struct tape_run){ .variant = "null", .mode = "ordered" };
	must(tape_run_begin(f->t, &f->run, &err), &err);
	add_rows(f);
	must(tape_run_end(f->t, f->run.id, 0, 0, -1, &err), &err);
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

static void test_refill_size(void **state)
{
	struct fixture *f = *state;
	sqlite3_stmt *s = query_prepare(f->t, "refill-size");
	int rows = 0;

	for (; sqlite3_step(s) == SQLITE_ROW; rows++) {
		int64_t n = 0, objects = 0, least = INT64_MAX, most = 0, small = 0;

		for (int i = 0; i < ROWS; i++) {
			const struct tape_refill *r = &f->refills[i];

			if (r->cache != cache_of(s, 2) ||
			    strcmp(tape_refill_source_name(r->source), text_at(s, 3)) != 0)
				continue;
			n++;
			objects += r->objects;
			least = r->objects < least ? r->objects : least;
			most = r->objects > most ? r->objects : most;
			small += r->objects <= 2;
		}
		assert_int_equal(sqlite3_column_int64(s, 4), n);
		assert_int_equal(sqlite3_column_int64(s, 5), objects);
		assert_float_equal(sqlite3_column_double(s, 6), (double)objects / (double)n, 0.006);
		assert_int_equal(sqlite3_column_int64(s, 7), least);
		assert_int_equal(sqlite3_column_int64(s, 8), most);
		assert_float_equal(sqlite3_column_double(s, 9), (double)small / (double)n, 0.0001);
	}
	sqlite3_finalize(s);
	assert_int_equal(rows, CACHES * SOURCES);
}

/* Stays of @cache in @state: until the slab's next transition. */
static void count_stays(const struct fixture *f, int cache, const char *state, int64_t *ret_stays,
			int64_t *ret_ns, int64_t *ret_still)
{
	*ret_stays = *ret_ns = *ret_still = 0;
	for (int i = 0; i < ROWS; i++) {
		const struct tape_transition *a = &f->transitions[i];
		int j = i + 1;

		if (a->cache != cache || strcmp(tape_slab_state_name(a->to), state) != 0)
			continue;
		while (j < ROWS && f->transitions[j].slab != a->slab)
			j++;
		if (j == ROWS) {
			(*ret_still)++;
			continue;
		}
		(*ret_stays)++;
		*ret_ns += (int64_t)(f->transitions[j].ts - a->ts);
	}
}

static void test_partial_residency(void **state)
{
	struct fixture *f = *state;
	sqlite3_stmt *s = query_prepare(f->t, "partial-residency");
	int rows = 0;

	for (; sqlite3_step(s) == SQLITE_ROW; rows++) {
		int64_t stays, ns, still;

		count_stays(f, cache_of(s, 2), text_at(s, 3), &stays, &ns, &still);
		assert_int_equal(sqlite3_column_int64(s, 4), stays);
		assert_float_equal(sqlite3_column_double(s, 5), (double)ns / (double)stays / 1e3, 0.06);
		assert_non_null(text_at(s, 7));
		assert_int_equal(sqlite3_column_int64(s, 8), still);
	}
	sqlite3_finalize(s);
	assert_int_equal(rows, CACHES * 2);
}

static void test_contention(void **state)
{
	struct fixture *f = *state;
	sqlite3_stmt *s = query_prepare(f->t, "contention");
	double waited = 0;

	for (int i = 0; i < 3; i++)
		waited += (double)f->locks[i].wait_ns;
	for (int i = 2; i >= 0; i--) { /* most waited for first */
		const struct tape_lock *l = &f->locks[i];

		assert_int_equal(sqlite3_step(s), SQLITE_ROW);
		assert_string_equal(text_at(s, 5), l->path);
		assert_int_equal(sqlite3_column_int64(s, 4), l->node);
		assert_float_equal(sqlite3_column_double(s, 7), (double)l->contended / 1000, 0.0001);
		assert_int_equal(sqlite3_column_int64(s, 8), l->wait_ns);
		assert_float_equal(sqlite3_column_double(s, 9), (double)l->wait_ns / waited, 0.0001);
		assert_int_equal(sqlite3_column_int64(s, 12), l->max_queue);
	}
	assert_int_equal(sqlite3_step(s), SQLITE_DONE);
	sqlite3_finalize(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refill_size),
		cmocka_unit_test(test_partial_residency),
		cmocka_unit_test(test_contention),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
