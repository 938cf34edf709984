/* SPDX-License-Identifier: MIT */
/*
 * The virtual tables against SQLite itself: the same rows stand in an ordinary table, and random
 * conditions, orders and groupings must give the same answer on both.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "vtab_model.h"

/* ---- comparing ---- */

/* All rows of @sql as text; sqlite3_free'd by the caller. */
static char *rows_text(sqlite3 *db, const char *sql)
{
	sqlite3_str *text = sqlite3_str_new(db);
	sqlite3_stmt *s;
	int step;

	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	while ((step = sqlite3_step(s)) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(s); i++) {
			const char *cell = (const char *)sqlite3_column_text(s, i);

			sqlite3_str_appendf(text, "%s|", cell ? cell : "NULL");
		}
		sqlite3_str_appendchar(text, 1, '\n');
	}
	if (step != SQLITE_DONE)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_finalize(s);
	return sqlite3_str_finish(text);
}

/* @ours and @theirs give the same rows in the same order. */
static void same_rows(sqlite3 *db, const char *ours, const char *theirs)
{
	char *a = rows_text(db, ours), *b = rows_text(db, theirs);

	if ((a != NULL) != (b != NULL) || (a && strcmp(a, b) != 0))
		fail_msg("seed %llu\n%s\n%.500s\n%s\n%.500s", (unsigned long long)seed, ours, a, theirs,
			 b);
	sqlite3_free(a);
	sqlite3_free(b);
}

static const char *const numbers[] = { "seq", "ts", "cpu", "node", "cache", "object", "size",
	"node_req", "mem_node", "site", "tid", "gfp", "bulk", "arg", "flags", "address", "slot",
	"ts_lo" };
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static const char *const object_numbers[] = { "object", "cache", "size", "alloc_seq", "alloc_ts",
	"alloc_cpu", "alloc_site", "free_seq", "free_ts", "free_cpu", "free_site", "lifetime_ns",
	"remote", "cross_node", "inferred", "alloc_node", "free_node", "mem_node", "freed" };
#define OBJECT_NUMBERS (sizeof(object_numbers) / sizeof(object_numbers[0]))

/* A value of @column taken from the rows, or something else that may stand in a condition. */
static char *random_value(sqlite3 *db, const char *table, const char *column)
{
	static const char *const odd[] = { "NULL", "'abc'", "x'00'", "-1", "1e300", "-1e300", "2.5",
					   "'3'", "9223372036854775807", "(-9223372036854775807 - 1)" };
	char *sql, *value;

	if (!rnd(6))
		return sqlite3_mprintf("%s", odd[rnd(sizeof(odd) / sizeof(odd[0]))]);
	sql = sqlite3_mprintf("SELECT ifnull(%s, 0) + %d FROM %s WHERE rowid = %d", column,
			      (int)rnd(3) - 1, table, 1 + (int)rnd(table[1] ? EVENTS / 3 : EVENTS));
	value = rows_text(db, sql);
	sqlite3_free(sql);
	value[strcspn(value, "|")] = 0;
	return value;
}

static char *random_number_term(sqlite3 *db, const char *table, const char *column)
{
	static const char *const compare[] = { "=", "<", "<=", ">", ">=", "IS", "<>" };
	char *a = random_value(db, table, column), *b = random_value(db, table, column), *term;

	if (!rnd(5))
		term = sqlite3_mprintf("%s IN (%s, %s)", column, a, b);
	else if (!rnd(3))
		term = sqlite3_mprintf("%s BETWEEN min(%s, %s) AND max(%s, %s)", column, a, b, a, b);
	else
		term = sqlite3_mprintf("%s %s %s", column, compare[rnd(7)], a);
	sqlite3_free(a);
	sqlite3_free(b);
	return term;
}

static char *random_event_term(sqlite3 *db)
{
	static const char *const ops[] = { "'alloc'", "'free'", "'flush'", "'nonsense'", "NULL", "1",
					   "'free_rcu'" };
	if (!rnd(4))
		return sqlite3_mprintf(rnd(2) ? "op = %s" : "op IN (%s, 'sheaf_alloc')",
				       ops[rnd(sizeof(ops) / sizeof(ops[0]))]);
	return random_number_term(db, "m", numbers[rnd(NUMBERS)]);
}

static char *random_object_term(sqlite3 *db)
{
	return random_number_term(db, "mo", object_numbers[rnd(OBJECT_NUMBERS)]);
}
static char *random_where(sqlite3 *db, char *(*random_term)(sqlite3 *))
{
	char *where = random_term(db);

	for (uint32_t more = rnd(3); more; more--) {
		char *term = random_term(db);

		where = sqlite3_mprintf("%z AND %s", where, term);
		sqlite3_free(term);
	}
	return where;
}

/* Run @format (with %s for the table and for the condition) on both tables. */
static void both(sqlite3 *db, const char *format, const char *where)
{
	char *ours = sqlite3_mprintf(format, "event", where);
	char *theirs = sqlite3_mprintf(format, "m", where);

	same_rows(db, ours, theirs);
	sqlite3_free(ours);
	sqlite3_free(theirs);
}

static void test_columns(void **state)
{
	struct fixture *f = *state;

	same_rows(f->db, "SELECT * FROM event", "SELECT * FROM m");
	same_rows(f->db, "SELECT count(*) FROM event", "SELECT count(*) FROM m");
	same_rows(f->db, "SELECT rowid FROM event WHERE rowid < 5", "SELECT seq FROM m WHERE seq < 5");
}

static void test_conditions(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < ROUNDS; i++) {
		char *where = random_where(f->db, random_event_term);

		both(f->db, "SELECT count(*), sum(seq), sum(seq * seq %% 10007) FROM %s WHERE %s", where);
		sqlite3_free(where);
	}
}

static void test_order(void **state)
{
	static const char *const formats[] = {
		"SELECT seq FROM %s WHERE %s ORDER BY seq DESC LIMIT 30",
		"SELECT seq FROM %s WHERE %s ORDER BY ts, seq LIMIT 30",
		"SELECT seq FROM %s WHERE %s ORDER BY ts DESC, seq DESC LIMIT 30",
		"SELECT seq FROM %s WHERE %s ORDER BY ts DESC, seq LIMIT 30",
		"SELECT seq, cpu FROM %s WHERE %s ORDER BY seq, cpu LIMIT 30 OFFSET 20",
		"SELECT ts, count(*) FROM %s WHERE %s GROUP BY ts LIMIT 30",
	};
	struct fixture *f = *state;

	for (int i = 0; i < ROUNDS / 2; i++) {
		char *where = random_where(f->db, random_event_term);

		both(f->db, formats[i % 6], where);
		sqlite3_free(where);
	}
}

/* Order by seq or ts needs no sorter. */
static void test_order_is_consumed(void **state)
{
	struct fixture *f = *state;
	char *plan = rows_text(f->db, "EXPLAIN QUERY PLAN SELECT * FROM event ORDER BY ts DESC");

	assert_null(strstr(plan, "TEMP B-TREE"));
	sqlite3_free(plan);
	plan = rows_text(f->db, "EXPLAIN QUERY PLAN SELECT * FROM event ORDER BY cpu");
	assert_non_null(strstr(plan, "TEMP B-TREE"));
	sqlite3_free(plan);
}

static void test_joins(void **state)
{
	struct fixture *f = *state;

	both(f->db, "SELECT c.name, count(*) FROM %s e JOIN cache c USING(cache) WHERE %s"
		    " GROUP BY c.name", "cpu = 2");
	both(f->db, "SELECT count(*), sum(b.seq - a.seq) FROM (SELECT * FROM m WHERE op = 'alloc' LIMIT"
		    " 300) a JOIN %s b ON b.object = a.object WHERE %s", "b.op <> 'alloc'");
	both(f->db, "SELECT count(*), sum(b.ts) FROM (SELECT * FROM m ORDER BY size LIMIT 300) a JOIN %s"
		    " b ON b.seq = a.seq + 1 WHERE %s", "b.cpu IN (1, 2)");
}

static char *random_keys(void)
{
	static const char *const keys[] = { "cpu", "node", "op", "cache", "size", "node_req",
		"mem_node", "site", "tid", "gfp", "ctx", "flags" };
	char *text = sqlite3_mprintf("%s", keys[rnd(12)]);

	for (uint32_t more = rnd(3); more; more--)
		text = sqlite3_mprintf("%z, %s", text, keys[rnd(12)]);
	return text;
}

/* False for what can only be compared with one value. */
static bool agg_allows(const char *where)
{
	static const char *const not[] = { "IS", "<>", "object IN", "seq IN", "ts IN" };

	for (size_t i = 0; i < sizeof(not) / sizeof(not[0]); i++)
		if (strstr(where, not[i]))
			return false;
	return true;
}

static void test_aggregates(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < ROUNDS / 2; i++) {
		char *where = random_where(f->db, random_event_term), *keys = random_keys();
		char *ours = sqlite3_mprintf("SELECT %s, sum(events), sum(bytes), min(ts_first),"
			" max(ts_last) FROM event_agg WHERE %s GROUP BY %s ORDER BY %s", keys, where, keys,
			keys);
		char *theirs = sqlite3_mprintf("SELECT %s, count(*), sum(size), min(ts), max(ts) FROM m"
			" WHERE %s GROUP BY %s ORDER BY %s", keys, where, keys, keys);

		if (agg_allows(where))
			same_rows(f->db, ours, theirs);
		sqlite3_free(ours);
		sqlite3_free(theirs);
		sqlite3_free(where);
		sqlite3_free(keys);
	}
	same_rows(f->db, "SELECT bucket, cpu, sum(events) FROM event_agg(777777) WHERE ts >= 1000000"
			 " GROUP BY bucket, cpu",
		  "SELECT ts / 777777 * 777777 AS b, cpu, count(*) FROM m WHERE ts >= 1000000"
		  " GROUP BY b, cpu");
	same_rows(f->db, "SELECT sum(events) FROM event_agg", "SELECT count(*) FROM m");
}

static void test_objects(void **state)
{
	struct fixture *f = *state;
	char *far = rows_text(f->db, "SELECT sum(frees) > 100 FROM far_free");

	assert_string_equal(far, "1|\n"); /* or the test would not reach them */
	sqlite3_free(far);
	same_rows(f->db, "SELECT object, cache, size, alloc_seq, alloc_ts, alloc_cpu, alloc_site,"
			 " free_seq, free_ts, free_cpu, free_site, lifetime_ns, remote, cross_node,"
			 " inferred, alloc_node, free_node, mem_node, freed FROM object",
		  "SELECT * FROM mo");
	for (int i = 0; i < ROUNDS; i++) {
		char *where = random_where(f->db, random_object_term);
		char *ours = sqlite3_mprintf("SELECT object, lifetime_ns FROM object WHERE %s ORDER BY 1", where);
		char *theirs = sqlite3_mprintf("SELECT object, lifetime_ns FROM mo WHERE %s ORDER BY 1", where);

		same_rows(f->db, ours, theirs);
		sqlite3_free(ours);
		sqlite3_free(theirs);
		sqlite3_free(where);
	}
	same_rows(f->db, "SELECT object FROM object ORDER BY object DESC LIMIT 50 OFFSET 9",
		  "SELECT object FROM mo ORDER BY object DESC LIMIT 50 OFFSET 9");
	same_rows(f->db, "SELECT count(*), sum(e.seq) FROM object o JOIN event e ON e.seq = o.free_seq"
			 " WHERE o.remote = 1",
		  "SELECT count(*), sum(free_seq) FROM mo WHERE remote = 1");
}

static void test_object_aggregates(void **state)
{
	static const char *const keys[] = { "cache", "alloc_cpu, free_cpu", "alloc_node, free_node",
		"remote, cross_node", "freed, inferred", "alloc_site, cache", "size", "mem_node" };
	struct fixture *f = *state;

	for (int i = 0; i < ROUNDS / 2; i++) {
		char *where = random_where(f->db, random_object_term);
		const char *key = keys[i % 8];
		char *ours = sqlite3_mprintf("SELECT %s, sum(objects), sum(bytes), sum(lifetime_ns),"
			" min(lifetime_min), max(lifetime_max) FROM object_agg WHERE %s GROUP BY %s"
			" ORDER BY %s", key, where, key, key);
		char *theirs = sqlite3_mprintf("SELECT %s, count(*), ifnull(sum(size), 0),"
			" ifnull(sum(lifetime_ns), 0), min(lifetime_ns), max(lifetime_ns) FROM mo WHERE %s"
			" GROUP BY %s ORDER BY %s", key, where, key, key);

		if (!strstr(where, "lifetime_ns") && agg_allows(where))
			same_rows(f->db, ours, theirs);
		sqlite3_free(ours);
		sqlite3_free(theirs);
		sqlite3_free(where);
	}
	same_rows(f->db, "SELECT bucket, sum(objects) FROM object_agg(555555) GROUP BY bucket",
		  "SELECT alloc_ts / 555555 * 555555 AS b, count(*) FROM mo GROUP BY b");
	same_rows(f->db, "SELECT sum(objects) FROM object_agg WHERE life_ns >= 1024 AND life_ns < 4096",
		  "SELECT count(*) FROM mo WHERE lifetime_ns >= 1024 AND lifetime_ns < 4096");
	same_rows(f->db, "SELECT sum(objects) FROM object_agg WHERE lifetime_log2 IN (10, 11)",
		  "SELECT count(*) FROM mo WHERE lifetime_ns >= 1024 AND lifetime_ns < 4096");
}

/* A tape whose writer never finished lacks far frees; the events of an object are all found. */
static void test_unfinished(void **state)
{
	char path[] = "/tmp/slabtape-vtab-XXXXXX", *text;
	struct maker *m = test_calloc(1, sizeof(*m));
	struct tape_err err = { 0 };
	struct tape *t;

	(void)state;
	close(mkstemp(path));
	must(tape_create(path, true, &t, &err), &err);
	describe(t);
	for (uint32_t i = 0; i < 160000; i++) {
		struct tape_event ev = next_event(m);

		must(tape_writer_append(t, &ev, NULL, &err), &err);
		if (i % 400 == 399)
			must(tape_writer_flush(t, &err), &err);
	}
	tape_close(t);
	must(tape_open(path, TAPE_READ, &t, &err), &err);
	/* the last ids of the first 64 Ki: their frees stand in chunks that begin no id of it */
	text = rows_text(tape_db(t), "WITH n(object, n) AS MATERIALIZED (SELECT object, count(*) FROM event"
				     " WHERE object BETWEEN 65486 AND 65535 GROUP BY object) SELECT count(*),"
				     " sum(n.n = (SELECT count(*) FROM event e WHERE e.object = n.object)),"
				     " sum(n.n) > (SELECT sum(1 + freed) FROM object WHERE object BETWEEN 65486"
				     " AND 65535) FROM n");
	assert_string_equal(text, "50|50|1|\n"); /* 1: such frees are missing in `object` */
	sqlite3_free(text);
	tape_close(t);
	unlink(path);
	test_free(m);
}

static void test_errors(void **state)
{
	static const struct {
		const char *sql, *message;
	} cases[] = {
		{ "SELECT ts FROM event_agg", "can only be compared" },
		{ "SELECT bucket FROM event_agg(-5)", "bucket_ns is a width" },
		{ "SELECT cpu FROM event_agg(NULL, 'nowhere')", "nowhere" },
		{ "SELECT object FROM event_agg", NULL },
		{ "INSERT INTO event(seq) VALUES(1)", "may not be modified" },
		{ "SELECT nonsense FROM event", "no such column" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *message = NULL;
		int rc = sqlite3_exec(f->db, cases[i].sql, NULL, NULL, &message);

		if (!cases[i].message)
			assert_int_equal(rc, SQLITE_OK);
		else if (rc == SQLITE_OK || !strstr(message, cases[i].message))
			fail_msg("%s: %s", cases[i].sql, message ? message : "no error");
		sqlite3_free(message);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_order_is_consumed),
		cmocka_unit_test(test_joins),
		cmocka_unit_test(test_aggregates),
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_object_aggregates),
		cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
