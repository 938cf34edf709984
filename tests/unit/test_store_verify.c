/* SPDX-License-Identifier: MIT */
/* A good tape verifies; every kind of damage is named; objects and cuts agree with the events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <sqlite3.h>

#include "store/objects_reader.h"
#include "store/tape.h"
#include "tests/unit/store_fixture.h"
#include "traces/chunk.h"

#define EVENTS (6u * TAPE_CHUNK_EVENTS + 1000u)

static char good_path[64], bad_path[64];
static struct tape_err err;

#define OK(call)                                                        \
	do {                                                            \
		int rc_ = (call);                                       \
		if (rc_ < 0)                                            \
			fail_msg("%s: %d %s", #call, rc_, err.text);    \
	} while (0)

static int make_good_tape(void **state)
{
	struct fixture f;
	struct tape *t = NULL;

	(void)state;
	snprintf(good_path, sizeof(good_path), "/tmp/test-verify-%ld.tape", (long)getpid());
	snprintf(bad_path, sizeof(bad_path), "/tmp/test-verify-%ld-bad.tape", (long)getpid());
	fixture_init(&f);
	OK(tape_create(good_path, true, &t, &err));
	OK(tape_define_cpu(t, 3, 0, &err));
	OK(tape_define_loss(t, -1, 5, 10, 1, "early", &err));
	OK(fixture_append(&f, t, EVENTS, &err));
	OK(tape_writer_finish(t, &err));
	tape_close(t);
	fixture_fini(&f);
	return 0;
}

static int remove_tapes(void **state)
{
	(void)state;
	unlink(good_path);
	unlink(bad_path);
	return 0;
}

static int verify(const char *path)
{
	struct tape *t = NULL;
	char *note = NULL;
	int rc = tape_open(path, TAPE_READ, &t, &err);

	if (rc == 0)
		rc = tape_verify(t, &note, &err);
	if (rc == 0)
		assert_null(note);
	free(note);
	tape_close(t);
	return rc;
}

static void good_tape_verifies(void **state)
{
	(void)state;
	OK(verify(good_path));
}

static void copy_file(const char *from, const char *to)
{
	FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
	char block[65536];
	size_t bytes;

	assert_non_null(in);
	assert_non_null(out);
	while ((bytes = fread(block, 1, sizeof(block), in)) > 0)
		assert_int_equal(fwrite(block, 1, bytes, out), bytes);
	fclose(in);
	assert_int_equal(fclose(out), 0);
}

/* The good tape after @sql. */
static void make_bad_tape(const char *sql)
{
	sqlite3 *db;
	char *why = NULL;

	copy_file(good_path, bad_path);
	assert_int_equal(sqlite3_open(bad_path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s: %s", sql, why);
	sqlite3_close(db);
}

static void damage_is_named(void **state)
{
	static const struct {
		const char *sql, *text;
	} cases[] = {
		{ "DELETE FROM chunk WHERE id = 2", "chunk 3 is not valid" },
		{ "DELETE FROM chunk WHERE id = 0", "chunk 1 is not valid" },
		{ "UPDATE chunk SET first_seq = first_seq + 1, events = events - 1 WHERE id = 3",
		  "a chunk is missing" },
		{ "DELETE FROM chunk_column WHERE id = 2 * 64 + 4", "column object is missing" },
		{ "INSERT INTO chunk_column VALUES(99 * 64, x'00')", "rows of chunk_column" },
		{ "UPDATE chunk_column SET data = CAST(substr(data, 1, 40) || x'00112233' ||"
		  " substr(data, 45) AS BLOB) WHERE id = 64 + 4", "column object" },
		{ "UPDATE chunk_column SET data = (SELECT data FROM chunk_column WHERE id = 64)"
		  " WHERE id = 2 * 64", "ts_min or ts_max differ" },
		{ "UPDATE chunk_stat SET events = events + 1 WHERE id = 16777216 + 3",
		  "chunk_stat differs" },
		{ "DELETE FROM chunk_stat WHERE id = 16777216 + 3", "chunk_stat differs" },
		{ "INSERT INTO chunk_stat VALUES(99 * 16777216, 99, 0, 1, 'alloc', 1, 1)",
		  "rows of chunk_stat" },
		{ "UPDATE chunk SET cpu_mask = 1 WHERE id = 1", "the chunk row differs" },
		{ "UPDATE chunk SET bytes = bytes + 1 WHERE id = 1", "the chunk row differs" },
		{ "DELETE FROM far_free WHERE id = (SELECT min(id) FROM far_free)", "far_free differs" },
		{ "DELETE FROM marker WHERE seq = (SELECT max(seq) FROM marker)", "rows of marker" },
		{ "UPDATE meta SET value = value + 1 WHERE key = 'events'", "meta.events" },
		{ "UPDATE meta SET value = value + 1 WHERE key = 'objects'", "meta.objects" },
		{ "UPDATE meta SET value = value + 1 WHERE key = 'peak_live'", "meta.peak_live" },
		{ "DELETE FROM meta WHERE key = 'chunks'", "meta.chunks" },
		{ "DROP TABLE loss", "no 'loss'" },
		{ "DROP TABLE loss; CREATE TABLE loss(cpu)", "schema of 'loss'" },
		{ "CREATE TRIGGER t AFTER INSERT ON loss BEGIN DELETE FROM cpu; END", "no triggers" },
		{ "PRAGMA application_id = 1", "not a tape" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rc;

		make_bad_tape(cases[i].sql);
		rc = verify(bad_path);
		if (rc != -TAPE_E_FORMAT || !strstr(err.text, cases[i].text))
			fail_msg("%s: %d %s", cases[i].sql, rc, err.text);
		assert_non_null(strstr(err.text, bad_path));
	}
	make_bad_tape("PRAGMA user_version = 2");
	assert_int_equal(verify(bad_path), -TAPE_E_VERSION);
}

/* Exchange the slots of two live objects, correctly encoded: only the lifetimes can tell. */
static void swapped_slot_is_named(void **state)
{
	struct tape_codec *c = tape_codec_create();
	struct tape_reader *r = NULL;
	const struct tape_batch *b;
	struct tape *t = NULL;
	const void *data;
	size_t bytes, raw_bytes;
	sqlite3_stmt *s;

	(void)state;
	copy_file(good_path, bad_path);
	OK(tape_open(bad_path, TAPE_READ_WRITE, &t, &err));
	OK(tape_reader_open(t, &TAPE_RANGE_ALL, TAPE_COLS_ALL, &r, &err));
	assert_int_equal(tape_reader_next(r, &b, &err), 1);
	for (uint32_t i = 1000;; i++) {
		if (b->op[i] == TAPE_OP_FREE && b->slot[i] != TAPE_NO_SLOT) {
			b->slot[i]++;
			break;
		}
	}
	OK(tape_column_encode(c, TAPE_COL_SLOT, b, &data, &bytes, &raw_bytes));
	assert_int_equal(sqlite3_prepare_v2(tape_db(t), "UPDATE chunk_column SET data = ? WHERE id = 5",
					    -1, &s, NULL), SQLITE_OK);
	sqlite3_bind_blob(s, 1, data, (int)bytes, SQLITE_STATIC);
	assert_int_equal(sqlite3_step(s), SQLITE_DONE);
	sqlite3_finalize(s);
	tape_reader_close(r);
	tape_close(t);
	tape_codec_destroy(c);
	assert_int_equal(verify(bad_path), -TAPE_E_FORMAT);
	assert_non_null(strstr(err.text, "slot"));
}

static void write_bytes(const char *data, size_t bytes)
{
	FILE *out = fopen(bad_path, "wb");

	assert_non_null(out);
	fwrite(data, 1, bytes, out);
	fclose(out);
}

static void broken_files_give_one_clear_error(void **state)
{
	struct tape *t = NULL;
	struct stat st;

	(void)state;
	write_bytes("", 0);
	assert_int_equal(tape_open(bad_path, TAPE_READ, &t, &err), -TAPE_E_TRUNCATED);
	assert_non_null(strstr(err.text, "empty"));
	assert_non_null(strstr(err.text, bad_path));
	write_bytes("hello, this is text", 19);
	assert_int_equal(tape_open(bad_path, TAPE_READ, &t, &err), -TAPE_E_FORMAT);
	assert_false(tape_is_tape(bad_path));
	copy_file(good_path, bad_path);
	assert_int_equal(stat(bad_path, &st), 0);
	assert_int_equal(truncate(bad_path, st.st_size / 2), 0);
	assert_int_equal(tape_open(bad_path, TAPE_READ, &t, &err), -TAPE_E_TRUNCATED);
	assert_int_equal(truncate(bad_path, 50), 0);
	assert_int_equal(tape_open(bad_path, TAPE_READ, &t, &err), -TAPE_E_TRUNCATED);
	unlink(bad_path);
	assert_true(tape_open(bad_path, TAPE_READ, &t, &err) < 0);
	assert_non_null(strstr(err.text, bad_path));
	assert_true(tape_open("/tmp", TAPE_READ, &t, &err) < 0);
}

/* ---- objects ---- */

struct object_row {
	uint64_t alloc_seq, free_seq, alloc_ts, free_ts, size;
	uint16_t cache, free_cpu;
};

static struct object_row *objects_by_events(struct tape *t, uint64_t objects)
{
	struct object_row *rows = malloc(objects * sizeof(*rows));
	struct tape_reader *r = NULL;
	const struct tape_batch *b;

	assert_non_null(rows);
	for (uint64_t i = 0; i < objects; i++)
		rows[i] = (struct object_row){ .alloc_seq = TAPE_NO_SEQ, .free_seq = TAPE_NO_SEQ };
	OK(tape_reader_open(t, &TAPE_RANGE_ALL, TAPE_COLS_ALL, &r, &err));
	while (tape_reader_next(r, &b, &err) == 1) {
		for (uint32_t i = 0; i < b->events; i++) {
			struct object_row *o = &rows[b->object[i]];

			if (tape_op_allocates(b->op[i])) {
				o->alloc_seq = b->first_seq + i;
				o->alloc_ts = b->ts[i];
				o->size = b->size[i];
				o->cache = b->cache[i];
			} else if (tape_op_frees(b->op[i])) {
				o->free_seq = b->first_seq + i;
				o->free_ts = b->ts[i];
				o->free_cpu = b->cpu[i];
				o->cache = b->cache[i];
			}
		}
	}
	tape_reader_close(r);
	return rows;
}

static void assert_objects(struct tape *t, const struct object_row *rows, uint64_t from, uint64_t to)
{
	struct tape_objects_reader *r = NULL;
	const struct tape_object_batch *b;
	uint64_t object = from;
	int more;

	OK(tape_objects_open(t, from, to, TAPE_COLS_ALL, &r, &err));
	while ((more = tape_objects_next(r, &b, &err)) == 1) {
		assert_int_equal(b->first_object, object);
		for (uint32_t i = 0; i < b->objects; i++, object++) {
			assert_int_equal(b->alloc_seq[i], rows[object].alloc_seq);
			assert_int_equal(b->free_seq[i], rows[object].free_seq);
			assert_int_equal(b->alloc_ts[i], rows[object].alloc_ts);
			assert_int_equal(b->free_ts[i], rows[object].free_ts);
			assert_int_equal(b->size[i], rows[object].size);
			assert_int_equal(b->cache[i], rows[object].cache);
			assert_int_equal(b->free_cpu[i], rows[object].free_cpu);
		}
	}
	OK(more);
	assert_int_equal(object, to);
	tape_objects_close(r);
}

static void objects_equal_events(void **state)
{
	struct object_row *rows;
	struct tape *t = NULL;
	uint64_t objects;

	(void)state;
	OK(tape_open(good_path, TAPE_READ, &t, &err));
	OK(tape_objects_count(t, &objects, &err));
	assert_int_equal(objects, tape_meta_get_int(t, "objects", 0));
	rows = objects_by_events(t, objects);
	assert_objects(t, rows, 0, objects);
	assert_objects(t, rows, 65530, 65550);
	assert_objects(t, rows, objects - 1, objects);
	free(rows);
	tape_close(t);
}

/* ---- cut ---- */

static void assert_cut(const struct tape_cut *cut, uint64_t expected_events)
{
	struct tape *t = NULL;
	struct tape_totals totals;
	char *text = NULL;

	OK(tape_open(good_path, TAPE_READ, &t, &err));
	OK(tape_cut(t, cut, bad_path, true, &err));
	tape_close(t);
	OK(verify(bad_path));
	OK(tape_open(bad_path, TAPE_READ, &t, &err));
	OK(tape_totals_get(t, &totals, &err));
	if (expected_events)
		assert_int_equal(totals.events, expected_events);
	assert_true(totals.complete);
	OK(tape_meta_get(t, "cut_source", &text, &err));
	assert_string_equal(text, good_path);
	free(text);
	tape_close(t);
}

static void cuts_are_good_tapes(void **state)
{
	struct tape_cut cut = TAPE_CUT_ALL;

	(void)state;
	assert_cut(&cut, EVENTS);
	cut.range.seq_begin = 100000;
	cut.range.seq_end = 300000;
	assert_cut(&cut, 200000);
	cut.cpu = 2;
	assert_cut(&cut, 0);
	cut.cpu = -1;
	cut.cache = 3;
	assert_cut(&cut, 0);
	cut.range.seq_begin = cut.range.seq_end = 10;
	assert_cut(&cut, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_tape_verifies),
		cmocka_unit_test(damage_is_named),
		cmocka_unit_test(swapped_slot_is_named),
		cmocka_unit_test(broken_files_give_one_clear_error),
		cmocka_unit_test(objects_equal_events),
		cmocka_unit_test(cuts_are_good_tapes),
	};
	return cmocka_run_group_tests(tests, make_good_tape, remove_tapes);
}
