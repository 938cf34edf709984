/* SPDX-License-Identifier: MIT */
/*
 * Rows that runs record (--record): against the tape's own events and objects, under the limit,
 * in every way of ordering, and while somebody else reads.  Counters against them:
 * tests/consistency/.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/gen.h"
#include "replay/engine.h"
#include "replay/recorder.h"
#include "store/tape.h"

static void must(int rc, const struct tape_err *err)
{
	if (rc < 0)
		fail_msg("%s", err->text);
}

static struct tape *generate(const char *path, const char *pattern)
{
	const struct gen_config cfg = { .pattern = pattern, .cpus = 8, .nodes = 2, .events = 30000,
					.seed = 3 };
	struct tape_err err = { 0 };
	struct tape *t;

	must(tape_create(path, true, &t, &err), &err);
	must(gen_run(t, &cfg, &err), &err);
	return t;
}

static struct replay_config config(const char *variant)
{
	struct replay_config cfg = REPLAY_CONFIG_DEFAULT;

	cfg.variant = variant;
	cfg.record = REPLAY_RECORD_ALL;
	return cfg;
}

/* Replay and store; the run's number. */
static int64_t record(struct tape *t, const struct replay_config *cfg)
{
	struct replay_result *r = NULL;
	struct tape_err err = { 0 };
	int64_t run;

	must(replay_run(t, cfg, &r, &err), &err);
	must(replay_result_store(t, r, "test", &run, &err), &err);
	replay_result_destroy(r);
	return run;
}

static int64_t number(struct tape *t, int64_t run, const char *sql)
{
	sqlite3_stmt *s;
	int64_t value;

	if (sqlite3_prepare_v2(tape_db(t), sql, -1, &s, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(tape_db(t)));
	sqlite3_bind_int64(s, 1, run);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	value = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return value;
}

static void gives(struct tape *t, int64_t run, const char *sql, int64_t want)
{
	int64_t got = number(t, run, sql);

	if (got != want)
		fail_msg("%s\ngives %lld, not %lld", sql, (long long)got, (long long)want);
}

/* Steps that do not begin where the slab's last one ended. */
static const char broken_chains[] =
	"SELECT count(*) FROM (SELECT from_state, lag(to_state, 1, 'none') OVER (PARTITION BY slab ORDER BY"
	" rowid) AS was FROM transition WHERE run = ?) WHERE from_state <> was";

static void rows_fit_the_events(void **state)
{
	static const char *const variants[] = { "slub-2.6.30", "slub-6.1", "slub-7.2", "slab-6.1",
						"slqb-2.6.31" };
	struct tape *t = generate(NULL, "hackbench");

	(void)state;
	for (size_t i = 0; i < sizeof(variants) / sizeof(*variants); i++) {
		struct replay_config cfg = config(variants[i]);
		int64_t run = record(t, &cfg);

		assert_true(number(t, run, "SELECT count(*) FROM transition WHERE run = ?") > 100);
		gives(t, run, broken_chains, 0);
		gives(t, run, "SELECT count(*) FROM transition t LEFT JOIN event e USING(seq) WHERE t.run = ?"
			      " AND t.op IS NOT NULL AND (t.op IS NOT e.op OR t.ts <> e.ts OR t.cpu <>"
			      " e.cpu OR t.cache <> e.cache)", 0);
		gives(t, run, "SELECT count(*) FROM refill r LEFT JOIN event e USING(seq) WHERE r.run = ? AND"
			      " (r.ts IS NOT e.ts OR r.cpu <> e.cpu OR r.node <> e.node)", 0);
		gives(t, run, "SELECT count(*) FROM slab s JOIN transition t USING(run, slab) WHERE s.run = ?"
			      " AND t.from_state = 'none' AND (s.born_seq <> t.seq OR s.node <> t.node OR"
			      " s.objects <> t.objects)", 0);
		gives(t, run, "SELECT count(DISTINCT ts) <= 64 AND count(DISTINCT ts) > 30 FROM sample"
			      " WHERE run = ?", 1);
		gives(t, run, "SELECT count(*) FROM sample WHERE run = ? AND (objects_inuse > objects_total"
			      " OR partial + cpu_partial_slabs > slabs)", 0);
		gives(t, run, "SELECT sum(acquisitions) > 0 AND sum(wait_ns + contended) = 0 FROM lock"
			      " WHERE run = ?", 1);
	}
	tape_close(t);
}

static void pinned_objects_are_live(void **state)
{
	struct tape *t = generate(NULL, "hackbench");
	struct replay_config cfg = config("slub-6.1");
	int64_t run = record(t, &cfg);

	(void)state;
	assert_true(number(t, run, "SELECT count(*) FROM pinned WHERE run = ?") > 10);
	gives(t, run, "SELECT count(*) FROM pinned p LEFT JOIN object o USING(object) WHERE p.run = ? AND"
		      " (o.free_seq IS NOT NULL OR o.alloc_seq <> p.alloc_seq OR o.alloc_site <>"
		      " p.alloc_site OR o.cache <> p.cache OR p.age <> (SELECT max(ts_max) FROM chunk) -"
		      " o.alloc_ts)", 0);
	gives(t, run, "SELECT count(*) FROM pinned WHERE run = ? AND 4 * inuse > objects", 0);
	/* On a listed slab nothing but objects of the tape is in use: each of them is a row. */
	gives(t, run, "SELECT count(*) FROM (SELECT p.inuse AS inuse, count(*) AS n FROM pinned p JOIN slab s"
		      " USING(run, slab) WHERE p.run = ? AND s.state = 'partial' GROUP BY p.slab)"
		      " WHERE inuse <> n", 0);
	assert_true(number(t, run, "SELECT count(*) FROM pinned p JOIN slab s USING(run, slab) WHERE p.run ="
				   " ? AND s.state = 'partial'") > 3);
	tape_close(t);
}

static void the_limit_ends_rows_at_an_event(void **state)
{
	struct tape *t = generate(NULL, "hackbench");
	struct replay_config cfg = config("slub-6.1");
	int64_t whole = record(t, &cfg), part, seq;

	(void)state;
	cfg.record_limit = 50;
	part = record(t, &cfg);
	assert_int_equal(whole, 1);
	assert_int_equal(part, 2);
	gives(t, whole, "SELECT truncated_seq IS NULL FROM run WHERE run = ?", 1);
	seq = number(t, part, "SELECT truncated_seq FROM run WHERE run = ?");
	assert_true(seq > 0);
	assert_true(number(t, part, "SELECT count(*) FROM transition WHERE run = ?") >= 50 ||
		    number(t, part, "SELECT count(*) FROM refill WHERE run = ?") >= 50);
	/* What is there is what the whole run did before that event. */
	gives(t, seq, "SELECT count(*) FROM (SELECT seq, slab, to_state, inuse FROM transition WHERE run = 1"
		      " AND seq < ?1 EXCEPT SELECT seq, slab, to_state, inuse FROM transition WHERE run = 2)", 0);
	gives(t, seq, "SELECT (SELECT count(*) FROM transition WHERE run = 1 AND seq < ?1) = (SELECT count(*)"
		      " FROM transition WHERE run = 2) AND (SELECT count(*) FROM refill WHERE run = 1 AND"
		      " seq < ?1) = (SELECT count(*) FROM refill WHERE run = 2)", 1);
	gives(t, part, "SELECT count(*) FROM pinned WHERE run = ?", 0);
	/* Samples and locks go on. */
	gives(t, 0, "SELECT (SELECT count(*) FROM sample WHERE run = 1) = (SELECT count(*) FROM sample WHERE"
		    " run = 2) AND (SELECT sum(acquisitions) FROM lock WHERE run = 1) = (SELECT"
		    " sum(acquisitions) FROM lock WHERE run = 2) FROM run WHERE ?1 = 0", 1);
	tape_close(t);
}

static void any_order_keeps_chains(void **state)
{
	struct tape *t = generate(NULL, "mmap1");
	struct replay_config cfg = config("slub-6.1");
	int64_t run;

	(void)state;
	cfg.jitter_ns = 3000;
	run = record(t, &cfg);
	gives(t, run, broken_chains, 0);
	gives(t, run, "SELECT count(*) FROM transition t LEFT JOIN event e USING(seq) WHERE t.run = ? AND"
		      " t.op IS NOT NULL AND (t.op IS NOT e.op OR abs(t.ts - e.ts) > 3000 OR t.cpu <> e.cpu)", 0);
	cfg.jitter_ns = 0;
	cfg.laps = 3;
	run = record(t, &cfg);
	gives(t, run, broken_chains, 0);
	gives(t, run, "SELECT max(ts) > 2 * (SELECT max(ts_max) FROM chunk) FROM transition WHERE run = ?", 1);
	gives(t, run, "SELECT count(*) FROM (SELECT ts, lag(ts) OVER (ORDER BY rowid) AS before FROM"
		      " transition WHERE run = ?) WHERE ts < before", 0);
	tape_close(t);
}

static void virtual_time_is_recorded(void **state)
{
	static const enum replay_pace paces[] = { REPLAY_PACE_ASAP, REPLAY_PACE_TRACE,
						  REPLAY_PACE_SERIAL };
	static const char *const variants[] = { "slub-6.1", "slub-7.2", "slab-6.1" };
	struct tape *t = generate(NULL, "hackbench");

	(void)state;
	for (int i = 0; i < 9; i++) {
		struct replay_config cfg = config(variants[i / 3]);
		int64_t run;

		cfg.mode = REPLAY_SIMULATED;
		cfg.pace = paces[i % 3];
		run = record(t, &cfg);
		gives(t, run, broken_chains, 0);
		gives(t, run, "SELECT count(*) FROM transition t LEFT JOIN event e USING(seq) WHERE t.run = ?"
			      " AND t.op IS NOT NULL AND (t.op IS NOT e.op OR t.ts <> e.ts OR t.cpu <>"
			      " e.cpu)", 0);
		gives(t, run, "SELECT count(*) > 0 FROM transition WHERE run = ? AND vts > 0", 1);
		gives(t, run, "SELECT count(DISTINCT vts) BETWEEN 2 AND 64 FROM sample WHERE run = ?", 1);
		gives(t, run, "SELECT sum(acquisitions) > 0 AND sum(hold_ns) > 0 FROM lock WHERE run = ?", 1);
		gives(t, run, "SELECT count(*) FROM pinned p LEFT JOIN object o USING(object) WHERE p.run = ?"
			      " AND (o.free_seq IS NOT NULL OR o.alloc_seq <> p.alloc_seq)", 0);
		gives(t, run, "SELECT (SELECT count(*) FROM slab WHERE run = ?1 AND died_seq IS NULL) = (SELECT"
			      " sum(value) FROM counter WHERE run = ?1 AND name = 'slabs')", 1);
	}
	tape_close(t);
}

static void recording_changes_nothing(void **state)
{
	struct tape *t = generate(NULL, "hackbench");

	(void)state;
	for (int mode = 0; mode < 2; mode++) {
		struct replay_config cfg = config("slub-7.2");
		int64_t with, without;

		cfg.mode = mode ? REPLAY_SIMULATED : REPLAY_ORDERED;
		cfg.pace = mode ? REPLAY_PACE_ASAP : REPLAY_PACE_TRACE;
		with = record(t, &cfg);
		cfg.record = 0;
		without = record(t, &cfg);
		assert_int_equal(without, with + 1);
		gives(t, with, "SELECT count(*) FROM counter a LEFT JOIN counter b ON b.run = a.run + 1 AND"
			       " b.cache = a.cache AND b.cpu IS a.cpu AND b.name = a.name WHERE a.run = ?"
			       " AND b.value IS NOT a.value", 0);
		gives(t, without, "SELECT (SELECT count(*) FROM run_chunk WHERE run = ?1) + (SELECT count(*) FROM"
				  " sample WHERE run = ?1) + (SELECT count(*) FROM lock WHERE run = ?1)", 0);
	}
	tape_close(t);
}

/* ---- reading while runs are written ---- */

struct reader {
	const char *path;
	int stop;
	int64_t reads, odd;
	char failure[600];
};

static void *read_on(void *arg)
{
	struct reader *r = arg;
	struct tape_err err = { 0 };
	struct tape *t = NULL;

	if (tape_open(r->path, TAPE_READ, &t, &err) < 0) {
		snprintf(r->failure, sizeof(r->failure), "%s", err.text);
		return NULL;
	}
	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED) && !*r->failure) {
		sqlite3_stmt *s = NULL;

		/* Every run is the same: each has as many rows as the first. */
		if (sqlite3_prepare_v2(tape_db(t), "SELECT count(*), max(n) - min(n) FROM (SELECT run,"
				       " count(*) AS n FROM transition GROUP BY run)", -1, &s, NULL) ||
		    sqlite3_step(s) != SQLITE_ROW)
			snprintf(r->failure, sizeof(r->failure), "%s", sqlite3_errmsg(tape_db(t)));
		else
			r->odd += sqlite3_column_int64(s, 1) != 0;
		sqlite3_finalize(s);
		r->reads++;
	}
	tape_close(t);
	return NULL;
}

static void readers_go_on(void **state)
{
	char path[] = "/tmp/test_recorder.XXXXXX";
	int fd = mkstemp(path);
	struct tape *t = generate(path, "hackbench");
	struct replay_config cfg = config("slub-6.1");
	struct reader r = { .path = path };
	struct tape_err err = { 0 };
	pthread_t thread;

	(void)state;
	tape_close(t);
	must(tape_open(path, TAPE_READ_WRITE, &t, &err), &err);
	record(t, &cfg);
	assert_int_equal(pthread_create(&thread, NULL, read_on, &r), 0);
	for (int i = 0; i < 8; i++)
		record(t, &cfg);
	__atomic_store_n(&r.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_string_equal(r.failure, "");
	assert_true(r.reads > 2);
	assert_int_equal(r.odd, 0);
	gives(t, 0, "SELECT count(*) FROM run WHERE ?1 = 0", 9);
	tape_close(t);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_fit_the_events),
		cmocka_unit_test(pinned_objects_are_live),
		cmocka_unit_test(the_limit_ends_rows_at_an_event),
		cmocka_unit_test(any_order_keeps_chains),
		cmocka_unit_test(virtual_time_is_recorded),
		cmocka_unit_test(recording_changes_nothing),
		cmocka_unit_test(readers_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
