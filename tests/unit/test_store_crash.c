/* SPDX-License-Identifier: MIT */
/* A writer killed at any moment, or one whose disk is full, leaves a valid prefix. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <sqlite3.h>

#include "store/tape.h"
#include "tests/unit/store_fixture.h"

#define ROUNDS 12
#define ROUNDS_MAX 40 /* on a machine so slow that no event reaches the disk in time */

static char path[64];
static struct tape_err err;

#define OK(call)                                                        \
	do {                                                            \
		int rc_ = (call);                                       \
		if (rc_ < 0)                                            \
			fail_msg("%s: %d %s", #call, rc_, err.text);    \
	} while (0)

/* Writes until it is killed, flushing now and then as a live source does. */
static void child_writes(void)
{
	struct fixture f;
	struct tape *t = NULL;

	fixture_init(&f);
	unlink(path); /* what an earlier round left: no old tape to keep */
	if (tape_create(path, false, &t, &err) < 0)
		_exit(2);
	for (uint32_t round = 0; round < 1000; round++) {
		if (fixture_append(&f, t, 20000, &err) < 0)
			_exit(3);
		if (round % 7 == 6 && tape_writer_flush(t, &err) < 0)
			_exit(4);
		if (tape_writer_resolve(t, f.seq / 2, 0, 3, false, &err) < 0)
			_exit(5);
	}
	_exit(0);
}

static void nap_us(uint64_t us)
{
	struct timespec t = { (time_t)(us / 1000000), (long)(us % 1000000 * 1000) };

	nanosleep(&t, NULL);
}

/* What is in @path is what the fixture makes, event by event, from the first. */
static uint64_t assert_prefix(struct tape *t)
{
	struct tape_reader *r = NULL;
	const struct tape_batch *b;
	struct fixture f;
	uint64_t seq = 0;
	int more;

	fixture_init(&f);
	OK(tape_reader_open(t, &TAPE_RANGE_ALL, TAPE_COLS_ALL, &r, &err));
	while ((more = tape_reader_next(r, &b, &err)) == 1) {
		for (uint32_t i = 0; i < b->events; i++, seq++) {
			struct tape_event expected = fixture_next(&f);

			assert_int_equal(b->ts[i], expected.ts);
			assert_int_equal(b->object[i], expected.object);
			assert_int_equal(b->slot[i], expected.slot);
			assert_int_equal(b->address[i], expected.address);
		}
	}
	OK(more);
	tape_reader_close(r);
	fixture_fini(&f);
	return seq;
}

static void assert_valid_prefix(uint64_t *ret_events)
{
	struct tape *t = NULL;
	struct tape_totals totals;
	char *note = NULL;

	OK(tape_open(path, TAPE_READ, &t, &err));
	OK(tape_verify(t, &note, &err));
	assert_non_null(note);
	free(note);
	OK(tape_totals_get(t, &totals, &err));
	assert_false(totals.complete);
	assert_int_equal(assert_prefix(t), totals.events);
	*ret_events = totals.events;
	tape_close(t);
}

static void killed_writer_leaves_a_prefix(void **state)
{
	struct fixture f = { .seed = 4242424242u };
	uint64_t events, most = 0;

	(void)state;
	for (uint32_t round = 0; round < ROUNDS || (!most && round < ROUNDS_MAX); round++) {
		pid_t child;
		int status;

		unlink(path);
		child = fork();
		if (child == 0)
			child_writes();
		assert_true(child > 0);
		nap_us(fixture_rnd(&f) % (20000u << (round % 5 + round / ROUNDS)));
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		if (access(path, F_OK) != 0)
			continue; /* killed before the tape had its name */
		assert_valid_prefix(&events);
		most = events > most ? events : most;
	}
	assert_true(most > 0);
}

static void full_disk_keeps_what_was_whole(void **state)
{
	struct fixture f;
	struct tape *t = NULL;
	uint64_t events;
	int rc = 0;

	(void)state;
	fixture_init(&f);
	unlink(path);
	OK(tape_create(path, false, &t, &err));
	OK(fixture_append(&f, t, 100000, &err));
	OK(tape_writer_flush(t, &err));
	/* SQLite's own limit gives the error of a full disk */
	assert_int_equal(sqlite3_exec(tape_db(t), "PRAGMA max_page_count = 1000", NULL, NULL, NULL),
			 SQLITE_OK);
	for (uint32_t i = 0; rc == 0 && i < 500; i++)
		rc = fixture_append(&f, t, 20000, &err);
	assert_int_equal(rc, -TAPE_E_IO);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(tape_writer_finish(t, &err), -TAPE_E_IO); /* and it stays */
	tape_close(t);
	fixture_fini(&f);
	assert_valid_prefix(&events);
	assert_true(events >= 100000);
}

static void unfinished_tape_is_readable_beside_its_writer(void **state)
{
	struct fixture f;
	struct tape *t = NULL;
	uint64_t events;

	(void)state;
	fixture_init(&f);
	unlink(path);
	OK(tape_create(path, false, &t, &err));
	OK(fixture_append(&f, t, 70000, &err));
	OK(tape_writer_flush(t, &err));
	OK(fixture_append(&f, t, 100, &err));
	assert_valid_prefix(&events);
	assert_int_equal(events, 70000);
	OK(tape_writer_finish(t, &err));
	tape_close(t);
	fixture_fini(&f);
}

static int teardown(void **state)
{
	char name[80];

	(void)state;
	unlink(path);
	snprintf(name, sizeof(name), "%s-wal", path);
	unlink(name);
	snprintf(name, sizeof(name), "%s-shm", path);
	unlink(name);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_writer_leaves_a_prefix),
		cmocka_unit_test(full_disk_keeps_what_was_whole),
		cmocka_unit_test(unfinished_tape_is_readable_beside_its_writer),
	};
	snprintf(path, sizeof(path), "/tmp/test-crash-%ld.tape", (long)getpid());
	return cmocka_run_group_tests(tests, NULL, teardown);
}
