/* SPDX-License-Identifier: MIT */
/*
 * Transitions, refills, locks and samples of runs: written through store/tape.h, read in SQL and
 * compared with an ordinary table that got the same rows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "allocator/hooks.h"
#include "store/run_buffer.h"
#include "store/tape.h"

#define ROWS 100000 /* more than one chunk */

static uint64_t seed = 7;

static uint32_t rnd(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 20) % below;
}

static void must(int rc, const struct tape_err *err)
{
	if (rc < 0)
		fail_msg("%s", err->text);
}

static void exec(sqlite3 *db, const char *sql)
{
	char *message = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s: %s", sql, message);
}

static struct tape_transition random_transition(uint64_t *seq, uint64_t *ts)
{
	*seq += rnd(3);
	*ts += rnd(1000);
	return (struct tape_transition){
		.seq = *seq, .ts = *ts, .vts = rnd(2) ? *ts * 2 : 0, .slab = rnd(5000),
		.inuse = rnd(33), .objects = 32, .cpu = (uint16_t)rnd(8), .node = (uint16_t)rnd(2),
		.cache = (uint16_t)rnd(5), .from = (uint8_t)rnd(8), .to = (uint8_t)rnd(8),
		.op = (uint8_t)rnd(TAPE_OP_MAX),
	};
}

static void model_add(sqlite3_stmt *s, int64_t run, const struct tape_transition *tr)
{
	const int64_t numbers[] = { run, (int64_t)tr->seq, (int64_t)tr->ts, (int64_t)tr->vts, tr->cpu,
		tr->node, tr->cache, (int64_t)tr->slab, 0, 0, tr->inuse, tr->objects };

	sqlite3_reset(s);
	for (int i = 0; i < 12; i++)
		sqlite3_bind_int64(s, i + 1, numbers[i]);
	sqlite3_bind_text(s, 9, tape_slab_state_name(tr->from), -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 10, tape_slab_state_name(tr->to), -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 13, tape_op_name(tr->op), -1, SQLITE_STATIC);
	assert_int_equal(sqlite3_step(s), SQLITE_DONE);
}

/* Slabs 0 to 9, the odd ones dead; slab 4 is pinned by object 44. */
static void add_slabs(struct tape_run_buffer *b)
{
	const struct tape_pinned p = { .slab = 4, .object = 44, .alloc_seq = 4, .alloc_ts = 40,
				       .age_ns = 7, .alloc_site = 3, .inuse = 1, .objects = 32 };

	for (uint32_t i = 0; i < 10; i++) {
		struct tape_slab s = { .slab = i, .born_seq = i, .born_ts = i * 10, .died_seq = -1,
				       .died_ts = -1, .objects = 32, .cache = 1, .order = 2, .state = 3 };

		if (i % 2) {
			s.died_seq = 100 + i;
			s.died_ts = 1000 + i;
			s.state = 0;
		}
		assert_int_equal(tape_run_buffer_slab(b, &s), 0);
	}
	assert_int_equal(tape_run_buffer_pinned(b, &p), 0);
}

static void add_run(struct tape *t, sqlite3_stmt *model, uint32_t rows)
{
	struct tape_run run = { .variant = "null", .mode = "ordered", .cpus = 8, .nodes = 2 };
	uint64_t seq = 0, ts = 0;
	struct tape_run_buffer *b;
	struct tape_err err = { 0 };

	assert_int_equal(tape_run_buffer_create(&b), 0);
	must(tape_run_begin(t, &run, &err), &err);
	for (uint32_t i = 0; i < rows; i++) {
		struct tape_transition tr = random_transition(&seq, &ts);

		assert_int_equal(tape_run_buffer_transition(b, &tr), 0);
		model_add(model, run.id, &tr);
		if (rnd(10) == 0) {
			struct tape_refill re = { .seq = seq, .ts = ts, .objects = rnd(30), .cpu = tr.cpu,
						  .cache = tr.cache, .source = (uint8_t)rnd(6),
						  .node = (uint16_t)rnd(2) };

			assert_int_equal(tape_run_buffer_refill(b, &re), 0);
		}
	}
	if (rows)
		add_slabs(b);
	must(tape_run_buffer_write(t, run.id, b, &err), &err);
	tape_run_buffer_destroy(b);
	must(tape_run_lock(t, run.id, &(struct tape_lock){ .lock = "list_lock", .path = "free",
			   .acquisitions = 5, .max_queue = 3 }, &err), &err);
	must(tape_run_sample(t, run.id, &(struct tape_sample){ .ts = 9, .slabs = 4 }, &err), &err);
	must(tape_run_end(t, run.id, 1, 2, -1, &err), &err);
}

static struct tape *make(void)
{
	struct tape_err err = { 0 };
	sqlite3_stmt *s;
	struct tape *t;

	must(tape_create(NULL, false, &t, &err), &err);
	must(tape_writer_finish(t, &err), &err);
	exec(tape_db(t), "CREATE TEMP TABLE m(run INTEGER, seq INTEGER, ts INTEGER, vts INTEGER,"
			 " cpu INTEGER, node INTEGER, cache INTEGER, slab INTEGER, from_state TEXT,"
			 " to_state TEXT, inuse INTEGER, objects INTEGER, op TEXT)");
	sqlite3_prepare_v2(tape_db(t), "INSERT INTO m VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)", -1, &s, NULL);
	add_run(t, s, ROWS);
	add_run(t, s, 0);
	add_run(t, s, 1000);
	sqlite3_finalize(s);
	return t;
}

static char *rows_text(sqlite3 *db, const char *sql)
{
	sqlite3_str *text = sqlite3_str_new(db);
	sqlite3_stmt *s;
	int step;

	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	while ((step = sqlite3_step(s)) == SQLITE_ROW)
		for (int i = 0; i < sqlite3_column_count(s); i++)
			sqlite3_str_appendf(text, "%s|", (const char *)sqlite3_column_text(s, i));
	if (step != SQLITE_DONE)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_finalize(s);
	return sqlite3_str_finish(text);
}

static void same_rows(sqlite3 *db, const char *ours, const char *theirs)
{
	char *a = rows_text(db, ours), *b = rows_text(db, theirs);

	assert_non_null(a);
	assert_non_null(b);
	assert_true(*a);
	if (strcmp(a, b) != 0)
		fail_msg("%s\n%.400s\n%.400s", ours, a, b);
	sqlite3_free(a);
	sqlite3_free(b);
}

/* @format with the virtual table, then with the model: the same rows. */
static void both(sqlite3 *db, const char *format)
{
	char *ours = sqlite3_mprintf(format, "transition"), *theirs = sqlite3_mprintf(format, "m");

	same_rows(db, ours, theirs);
	sqlite3_free(ours);
	sqlite3_free(theirs);
}

static void test_transitions(void **state)
{
	struct tape *t = make();
	sqlite3 *db = tape_db(t);

	(void)state;
	both(db, "SELECT * FROM %s");
	both(db, "SELECT count(*), sum(seq), sum(slab) FROM %s WHERE run = 1 AND cpu IN (1, 3)");
	both(db, "SELECT count(*), sum(seq) FROM %s WHERE from_state = 'partial' AND to_state <> 'full'");
	both(db, "SELECT count(*), sum(seq) FROM %s WHERE to_state IN ('full', 'empty', 'nothing')");
	both(db, "SELECT * FROM %s WHERE seq BETWEEN 90000 AND 90010 AND run = 1");
	both(db, "SELECT seq, inuse FROM %s WHERE slab = 77 AND node = 1 ORDER BY run, seq");
	both(db, "SELECT count(*), sum(ts) FROM %s WHERE op = 'free' AND ts >= 30000000 AND vts > 0");
	both(db, "SELECT from_state, to_state, count(*) FROM %s GROUP BY 1, 2");
	tape_close(t);
}

static void test_others(void **state)
{
	struct tape *t = make();
	char *text;

	(void)state;
	text = rows_text(tape_db(t), "SELECT run, count(*) > 50, min(source), max(source) FROM refill"
				     " GROUP BY run");
	assert_string_equal(text, "1|1|barn|spare|3|1|barn|spare|");
	sqlite3_free(text);
	text = rows_text(tape_db(t), "SELECT run, lock, acquisitions, max_queue FROM lock UNION ALL"
				     " SELECT run, 'sample', ts, slabs FROM sample ORDER BY 1, 2");
	assert_string_equal(text, "1|list_lock|5|3|1|sample|9|4|2|list_lock|5|3|2|sample|9|4|"
				  "3|list_lock|5|3|3|sample|9|4|");
	sqlite3_free(text);
	tape_close(t);
}

/* The names are the allocator's own. */
static void test_names(void **state)
{
	(void)state;
	for (int i = 0; i < ALLOC_STATE_MAX; i++)
		assert_string_equal(tape_slab_state_name(i), alloc_state_name((enum alloc_state)i));
	assert_null(tape_slab_state_name(ALLOC_STATE_MAX));
	for (int i = 0; i < ALLOC_REFILL_MAX; i++)
		assert_string_equal(tape_refill_source_name(i),
				    alloc_refill_source_name((enum alloc_refill_source)i));
	assert_null(tape_refill_source_name(ALLOC_REFILL_MAX));
}

/* The text of the rows of @sql. */
static void gives(struct tape *t, const char *sql, const char *want)
{
	char *text = rows_text(tape_db(t), sql);

	if (strcmp(text, want) != 0)
		fail_msg("%s\ngives %s\nnot   %s", sql, text, want);
	sqlite3_free(text);
}

static void test_slabs(void **state)
{
	struct tape *t = make();

	(void)state;
	gives(t, "SELECT slab, \"order\", born_seq, died_seq, state FROM slab WHERE run = 3 AND slab"
		 " BETWEEN 4 AND 5", "4|2|4||partial|5|2|5|105|none|");
	gives(t, "SELECT count(*), min(died_ts) FROM slab WHERE died_seq < 104", "4|1001|");
	gives(t, "SELECT count(*) FROM slab WHERE died_seq IS NULL AND run = 1", "5|");
	gives(t, "SELECT count(*) FROM slab WHERE born_seq > 7 AND run = 1 AND state = 'none'", "1|");
	gives(t, "SELECT run, slab, object, alloc_site, age, inuse FROM pinned WHERE slab = 4",
	      "1|4|44|3|7|1|3|4|44|3|7|1|");
	gives(t, "SELECT p.object, s.born_ts FROM pinned p JOIN slab s USING(run, slab) WHERE run = 1",
	      "44|40|");
	tape_close(t);
}

/* An aggregate function is its table with equal rows merged. */
static void test_aggregates(void **state)
{
	struct tape *t = make();
	sqlite3 *db = tape_db(t);

	(void)state;
	same_rows(db, "SELECT run, from_state, to_state, sum(transitions), min(ts_first), max(ts_last)"
		      " FROM transition_agg GROUP BY 1, 2, 3",
		  "SELECT run, from_state, to_state, count(*), min(ts), max(ts) FROM m GROUP BY 1, 2, 3");
	same_rows(db, "SELECT cpu, node, cache, op, sum(transitions) FROM transition_agg WHERE run = 1 AND"
		      " to_state IN ('full', 'empty') AND seq > 5000 GROUP BY 1, 2, 3, 4",
		  "SELECT cpu, node, cache, op, count(*) FROM m WHERE run = 1 AND"
		  " to_state IN ('full', 'empty') AND seq > 5000 GROUP BY 1, 2, 3, 4");
	same_rows(db, "SELECT bucket, sum(transitions) FROM transition_agg(1000000) WHERE inuse < 9"
		      " GROUP BY 1",
		  "SELECT ts / 1000000 * 1000000, count(*) FROM m WHERE inuse < 9 GROUP BY 1");
	same_rows(db, "SELECT source, sum(refills), sum(objects), min(least), max(most) FROM refill_agg"
		      " WHERE run = 1 GROUP BY 1",
		  "SELECT source, count(*), sum(objects), min(objects), max(objects) FROM refill"
		  " WHERE run = 1 GROUP BY 1");
	same_rows(db, "SELECT size, node, sum(refills) FROM refill_agg WHERE size BETWEEN 3 AND 8 AND"
		      " run = 3 GROUP BY 1, 2",
		  "SELECT objects, node, count(*) FROM refill WHERE objects BETWEEN 3 AND 8 AND"
		  " run = 3 GROUP BY 1, 2");
	tape_close(t);
}

/* In virtual time and under jitter seq goes back; chunks are still found by it. */
static void test_any_order(void **state)
{
	struct tape_run run = { .variant = "null", .mode = "simulated" };
	struct tape_run_buffer *b;
	struct tape_err err = { 0 };
	struct tape *t;

	(void)state;
	must(tape_create(NULL, false, &t, &err), &err);
	must(tape_writer_finish(t, &err), &err);
	must(tape_run_begin(t, &run, &err), &err);
	assert_int_equal(tape_run_buffer_create(&b), 0);
	for (uint32_t i = 0; i < ROWS; i++) {
		struct tape_transition tr = { .seq = ROWS - i, .ts = 2 * (ROWS - i), .vts = i };

		assert_int_equal(tape_run_buffer_transition(b, &tr), 0);
	}
	must(tape_run_buffer_write(t, run.id, b, &err), &err);
	must(tape_run_end(t, run.id, 1, 2, 77, &err), &err);
	tape_run_buffer_destroy(b);
	gives(t, "SELECT seq, ts, vts FROM transition WHERE seq IN (5, 99990)",
	      "5|10|99995|99990|199980|10|");
	gives(t, "SELECT count(*) FROM transition WHERE ts < 21", "10|");
	gives(t, "SELECT first_seq, last_seq FROM run_chunk WHERE id = 1", "34465|100000|");
	gives(t, "SELECT sum(vts <= before) FROM (SELECT vts, lag(vts) OVER (ORDER BY rowid) AS before"
		 " FROM transition)", "0|");
	gives(t, "SELECT truncated_seq FROM run", "77|");
	tape_close(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_transitions),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_slabs),
		cmocka_unit_test(test_aggregates),
		cmocka_unit_test(test_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
