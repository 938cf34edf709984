/* SPDX-License-Identifier: MIT */
/* What is written to a tape is what is read from it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "store/tape.h"

#define EVENTS 200000u

static char path[64];
static struct tape_err err;

#define OK(call)                                                        \
	do {                                                            \
		int rc_ = (call);                                       \
		if (rc_ < 0)                                            \
			fail_msg("%s: %d %s", #call, rc_, err.text);    \
	} while (0)

/* Event @seq of the test tape: objects live for @far allocs. */
static struct tape_event event_at(uint64_t seq)
{
	struct tape_event ev = tape_event_blank();
	uint64_t pair = seq / 2;

	ev.ts = ev.ts_lo = ev.ts_hi = seq * 100 + seq % 7;
	ev.cpu = (uint16_t)(seq % 3);
	ev.cache = (uint16_t)(1 + pair % 5);
	ev.tid = 1000 + ev.cpu;
	ev.op = seq % 2 ? TAPE_OP_FREE : TAPE_OP_ALLOC;
	ev.object = pair;
	ev.slot = 0;
	ev.size = seq % 2 ? 0 : 10 + pair % 100;
	ev.address = 0x1000 + ev.cache * 64;
	return ev;
}

static struct tape *tape_new(void)
{
	struct tape *t = NULL;

	snprintf(path, sizeof(path), "/tmp/test-store-%ld.tape", (long)getpid());
	OK(tape_create(path, true, &t, &err));
	return t;
}

static void append(struct tape *t, uint64_t from, uint64_t to)
{
	for (uint64_t seq = from; seq < to; seq++) {
		struct tape_event ev = event_at(seq);
		uint64_t got;

		OK(tape_writer_append(t, &ev, &got, &err));
		assert_int_equal(got, seq);
	}
}

static void assert_events(struct tape *t, const struct tape_range *range, uint64_t from, uint64_t to)
{
	struct tape_reader *r = NULL;
	const struct tape_batch *b;
	uint64_t seq = from;
	int more;

	OK(tape_reader_open(t, range, TAPE_COLS_ALL, &r, &err));
	while ((more = tape_reader_next(r, &b, &err)) == 1) {
		assert_int_equal(b->first_seq, seq);
		for (uint32_t i = 0; i < b->events; i++, seq++) {
			struct tape_event ev, expected = event_at(seq);

			tape_batch_get(b, i, &ev);
			assert_memory_equal(&ev, &expected, sizeof(ev));
		}
	}
	OK(more);
	assert_int_equal(seq, to);
	tape_reader_close(r);
}

static void events_round_trip(void **state)
{
	struct tape *t = tape_new();
	struct tape_totals totals;
	char name[80];

	(void)state;
	OK(tape_define_cpu(t, 2, 1, &err));
	append(t, 0, EVENTS / 2);
	OK(tape_writer_flush(t, &err)); /* a short chunk in the middle */
	append(t, EVENTS / 2, EVENTS);
	OK(tape_writer_finish(t, &err));
	assert_events(t, &TAPE_RANGE_ALL, 0, EVENTS);
	tape_close(t);

	snprintf(name, sizeof(name), "%s-wal", path);
	assert_int_not_equal(access(name, F_OK), 0); /* one file */
	assert_true(tape_is_tape(path));
	OK(tape_open(path, TAPE_READ, &t, &err));
	assert_events(t, &TAPE_RANGE_ALL, 0, EVENTS);
	assert_events(t, &(struct tape_range){ 65530, 65540, 0, UINT64_MAX }, 65530, 65540);
	assert_events(t, &(struct tape_range){ 5, 6, 0, UINT64_MAX }, 5, 6);
	assert_events(t, &(struct tape_range){ 10, UINT64_MAX, 1000 * 100, 1010 * 100 }, 1000, 1010);
	assert_events(t, &(struct tape_range){ EVENTS, UINT64_MAX, 0, UINT64_MAX }, EVENTS, EVENTS);
	OK(tape_totals_get(t, &totals, &err));
	assert_int_equal(totals.events, EVENTS);
	assert_int_equal(totals.objects, EVENTS / 2);
	assert_int_equal(totals.ops[TAPE_OP_ALLOC], EVENTS / 2);
	assert_int_equal(totals.ops[TAPE_OP_FREE], EVENTS / 2);
	assert_int_equal(totals.peak_live, 1);
	assert_int_equal(totals.ts_max, event_at(EVENTS - 1).ts);
	assert_true(totals.complete);
	assert_int_equal(tape_meta_get_int(t, "events", -1), EVENTS);
	tape_close(t);
}

static void small_tables_round_trip(void **state)
{
	struct tape *t = tape_new();
	struct tape_cache cache = { .id = 7, .name = "dentry", .object_size = 192, .coverage = 0.5 };
	struct tape_cache *caches;
	struct tape_marker *markers;
	struct tape_machine machine;
	char *text;
	size_t nr;

	(void)state;
	OK(tape_meta_set(t, "source", "a test", &err));
	OK(tape_define_cpu(t, 0, 0, &err));
	OK(tape_define_cpu(t, 3, 1, &err));
	OK(tape_define_cache(t, &cache, &err));
	OK(tape_define_knob(t, 7, "min_partial", "5", &err));
	OK(tape_define_knob(t, 7, "min_partial", "6", &err));
	OK(tape_define_site(t, 1, UINT64_C(0xffffffff81000000), "f", NULL, 4, &err));
	OK(tape_define_thread(t, 5, 4, "cat", &err));
	OK(tape_define_loss(t, -1, 1, 2, 3, "overwritten", &err));
	OK(tape_writer_marker(t, 10, 3, "one two", &err));
	OK(tape_writer_marker(t, 11, 3, "three", &err));
	assert_int_equal(tape_define_cpu(t, TAPE_CPU_MAX, 0, &err), -TAPE_E_LIMIT);
	OK(tape_writer_finish(t, &err));

	OK(tape_meta_get(t, "source", &text, &err));
	assert_string_equal(text, "a test");
	free(text);
	OK(tape_meta_get(t, "nothing", &text, &err));
	assert_null(text);
	OK(tape_machine_get(t, &machine, &err));
	assert_int_equal(machine.cpus, 4);
	assert_int_equal(machine.nodes, 2);
	assert_int_equal(machine.cpu_node[3], 1);
	OK(tape_caches_get(t, &caches, &nr, &err));
	assert_int_equal(nr, 1);
	assert_string_equal(caches[0].name, "dentry");
	assert_true(caches[0].coverage == 0.5);
	free(caches);
	OK(tape_knob_get(t, 7, "min_partial", &text, &err));
	assert_string_equal(text, "6");
	free(text);
	OK(tape_markers_get(t, &markers, &nr, &err));
	assert_int_equal(nr, 2);
	assert_string_equal(markers[0].name, "one two");
	assert_int_equal(markers[1].seq, 1);
	free(markers);
	tape_close(t);
}

static void bad_appends_are_refused(void **state)
{
	struct tape *t = tape_new();
	struct tape_event ev = event_at(5);

	(void)state;
	OK(tape_writer_append(t, &ev, NULL, &err));
	ev = event_at(4);
	assert_int_equal(tape_writer_append(t, &ev, NULL, &err), -TAPE_E_FORMAT);
	ev = event_at(6);
	ev.op = TAPE_OP_MAX;
	assert_int_equal(tape_writer_append(t, &ev, NULL, &err), -TAPE_E_LIMIT);
	tape_close(t);
	assert_int_equal(tape_create(path, false, &t, &err), -EEXIST);
}

static void runs_round_trip(void **state)
{
	struct tape *t = tape_new();
	const uint16_t nodes[2] = { 0, 1 };
	struct tape_run run = { .variant = "slub-6.1", .mode = "ordered", .cpus = 2, .nodes = 2,
				.cpu_node = nodes, .started = "2026-01-01T00:00:00Z" };

	(void)state;
	append(t, 0, 10);
	OK(tape_writer_finish(t, &err));
	tape_close(t);
	OK(tape_open(path, TAPE_READ_WRITE, &t, &err));
	OK(tape_run_begin(t, &run, &err));
	OK(tape_run_knob(t, run.id, "*", "min_partial", "5", &err));
	OK(tape_run_counter(t, run.id, 1, -1, "alloc_fastpath", 10, &err));
	OK(tape_run_free_class(t, run.id, 1, "full->partial", 2, &err));
	OK(tape_run_end(t, run.id, 123, 10, -1, &err));
	tape_close(t);
	OK(tape_open(path, TAPE_READ, &t, &err));
	tape_close(t);
}

static void resolve_reaches_every_event(void **state)
{
	/* the first chunk is written long before, the last is pending */
	const uint64_t events = 12 * TAPE_CHUNK_EVENTS;
	struct tape *t = tape_new();
	struct tape_reader *r = NULL;
	const struct tape_batch *b;
	struct tape_totals before, after;

	(void)state;
	append(t, 0, events);
	OK(tape_writer_resolve(t, 0, 0, 40, false, &err));
	OK(tape_writer_resolve(t, 0, 0, 41, false, &err));
	OK(tape_writer_resolve(t, 70000, 35000, 42, true, &err));
	OK(tape_writer_resolve(t, events - 2, events / 2 - 1, 43, false, &err));
	OK(tape_writer_flush(t, &err));
	OK(tape_totals_get(t, &before, &err));
	OK(tape_writer_finish(t, &err));
	OK(tape_totals_get(t, &after, &err));
	assert_int_equal(before.ops[TAPE_OP_ALLOC], after.ops[TAPE_OP_ALLOC]);
	OK(tape_reader_open(t, &TAPE_RANGE_ALL, 1u << TAPE_COL_CACHE | 1u << TAPE_COL_FLAGS, &r, &err));
	while (tape_reader_next(r, &b, &err) == 1) {
		for (uint32_t i = 0; i < b->events; i++) {
			uint64_t seq = b->first_seq + i;
			uint16_t cache = event_at(seq).cache;

			cache = seq == 0 ? 41 : seq == 70000 ? 42 : seq == events - 2 ? 43 : cache;
			assert_int_equal(b->cache[i], cache);
			assert_int_equal(b->flags[i], seq == 70000 ? TAPE_F_UNNAMED : 0);
		}
	}
	tape_reader_close(r);
	tape_close(t);
}

/* So many late names that they go to the temporary table on the way. */
static void many_late_names_arrive(void **state)
{
	const uint64_t events = 12 * TAPE_CHUNK_EVENTS, named = 100000, names = (1u << 20) + 50000;
	struct tape *t = tape_new();
	struct tape_reader *r = NULL;
	const struct tape_batch *b;
	char *note;

	(void)state;
	append(t, 0, events);
	for (uint64_t i = 0; i < names; i++)
		OK(tape_writer_resolve(t, i % named * 2, i % named, (uint16_t)(i / named), false, &err));
	OK(tape_writer_finish(t, &err));
	OK(tape_verify(t, &note, &err));
	assert_null(note);
	OK(tape_reader_open(t, &TAPE_RANGE_ALL, 1u << TAPE_COL_CACHE, &r, &err));
	while (tape_reader_next(r, &b, &err) == 1) {
		for (uint32_t i = 0; i < b->events; i++) {
			uint64_t seq = b->first_seq + i, object = seq / 2;
			uint16_t cache = event_at(seq).cache;

			if (seq % 2 == 0 && object < named)
				cache = (uint16_t)((names - 1 - object) / named);
			assert_int_equal(b->cache[i], cache);
		}
	}
	tape_reader_close(r);
	tape_close(t);
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_round_trip),
		cmocka_unit_test(small_tables_round_trip),
		cmocka_unit_test(bad_appends_are_refused),
		cmocka_unit_test(runs_round_trip),
		cmocka_unit_test(resolve_reaches_every_event),
		cmocka_unit_test(many_late_names_arrive),
	};
	return cmocka_run_group_tests(tests, NULL, teardown);
}
