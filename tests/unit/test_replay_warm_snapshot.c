/* SPDX-License-Identifier: MIT */
/* --warm snapshot: the slabs a kernel counted stand there before the first event of the window. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "replay/engine.h"
#include "store/tape.h"

enum { CACHE = 1, CPUS = 4, NODES = 2 };

static struct tape_event event(uint8_t op, uint16_t cpu, uint32_t slot, uint64_t object,
			       uint16_t flags, uint64_t ts)
{
	struct tape_event ev = tape_event_blank();

	ev.op = op;
	ev.cpu = cpu;
	ev.cache = CACHE;
	ev.slot = slot;
	ev.object = object;
	ev.flags = flags;
	ev.gfp = TAPE_GFP_KERNEL;
	ev.size = op == TAPE_OP_ALLOC ? 256 : 0;
	ev.ts = ev.ts_lo = ev.ts_hi = ts;
	return ev;
}

static void append(struct tape *t, uint8_t op, uint16_t cpu, uint32_t slot, uint64_t object,
		   uint16_t flags, uint64_t ts)
{
	struct tape_event ev = event(op, cpu, slot, object, flags, ts);

	assert_int_equal(tape_writer_append(t, &ev, NULL, NULL), 0);
}

/*
 * Objects 0 and 1 are allocated before the marker, object 0 is freed before it too; behind it
 * object 1 and an orphan are freed.
 */
static struct tape *recording(void)
{
	struct tape_cache row = { .id = CACHE, .name = "c256", .object_size = 256, .coverage = 1 };
	struct tape *t;

	assert_int_equal(tape_create(NULL, false, &t, NULL), 0);
	for (uint16_t cpu = 0; cpu < CPUS; cpu++)
		assert_int_equal(tape_define_cpu(t, cpu, (int16_t)(cpu / 2), NULL), 0);
	assert_int_equal(tape_define_cache(t, &row, NULL), 0);
	append(t, TAPE_OP_ALLOC, 0, 0, 0, 0, 1000);
	append(t, TAPE_OP_ALLOC, 2, 1, 1, 0, 2000);
	append(t, TAPE_OP_FREE, 0, 0, 0, 0, 3000);
	assert_int_equal(tape_writer_marker(t, 4000, 0, "begin", NULL), 0);
	append(t, TAPE_OP_FREE, 2, 1, 1, 0, 5000);
	append(t, TAPE_OP_FREE, 0, TAPE_NO_SLOT, TAPE_NO_OBJECT, TAPE_F_ORPHAN, 6000);
	return t;
}

static void put_state(struct tape *t, int64_t run, const char *name, int64_t value)
{
	assert_int_equal(tape_run_counter(t, run, CACHE, -1, name, value, NULL), 0);
}

static int64_t begin_snapshot(struct tape *t)
{
	static const uint16_t cpu_node[CPUS] = { 0, 0, 1, 1 };
	struct tape_run run = { .variant = "kernel:6.1", .mode = "before", .args = "",
				.started = "", .cpus = CPUS, .nodes = NODES,
				.cpu_node = cpu_node };

	assert_int_equal(tape_run_begin(t, &run, NULL), 0);
	return run.id;
}

/* 16 objects in a slab: node 0 has 3 slabs, 2 of them partial with 17 objects; node 1 has one. */
static void put_sysfs(struct tape *t)
{
	int64_t run = begin_snapshot(t);

	put_state(t, run, "slabs", 4);
	put_state(t, run, "slabs.N0", 3);
	put_state(t, run, "slabs.N1", 1);
	put_state(t, run, "total_objects.N0", 48);
	put_state(t, run, "total_objects.N1", 16);
	put_state(t, run, "objects.N0", 33);
	put_state(t, run, "objects.N1", 16);
	put_state(t, run, "partial.N0", 2);
	put_state(t, run, "objects_partial.N0", 17);
	assert_int_equal(tape_run_end(t, run, 0, 0, -1, NULL), 0);
}

static struct replay_result *replay(struct tape *t, const char *variant, const char *from)
{
	struct replay_config cfg = REPLAY_CONFIG_DEFAULT;
	struct replay_result *r = NULL;
	struct tape_err err = { 0 };

	cfg.variant = variant;
	cfg.warm = REPLAY_WARM_SNAPSHOT;
	cfg.count_from = from;
	cfg.strict = true;
	if (replay_run(t, &cfg, &r, &err) < 0)
		fail_msg("%s", err.text);
	return r;
}

static int64_t counter(const struct replay_result *r, const char *name)
{
	for (size_t i = 0; i < r->caches[0].nr_counters; i++)
		if (!strcmp(r->caches[0].counters[i].name, name))
			return r->caches[0].counters[i].sum;
	fail_msg("no counter %s", name);
	return 0;
}

static void slabs_stand_as_counted(void **state)
{
	struct tape *t = recording();
	struct replay_result *r;

	(void)state;
	put_sysfs(t);
	assert_int_equal(tape_writer_finish(t, NULL), 0);
	r = replay(t, "slub-6.1", "begin");
	assert_int_equal(r->warmed, 33 + 16);
	assert_int_equal(r->ops, 2); /* what lies before the marker is not executed */
	assert_int_equal(counter(r, "alloc_fastpath"), 0);
	assert_int_equal(counter(r, "free_slowpath"), 2);
	assert_int_equal(r->caches[0].state.slabs, 4);
	assert_int_equal(r->caches[0].state.total_objects, 64);
	/* object 1 came from node 1's only slab, which was full: now on CPU 2's partial list */
	assert_int_equal(r->caches[0].free_class[0] + r->caches[0].free_class[1], 2);
	replay_result_destroy(r);
	tape_close(t);
}

static void every_variant_starts_with_the_same_objects(void **state)
{
	const struct alloc_variant *v;
	struct tape *t = recording();

	(void)state;
	put_sysfs(t);
	assert_int_equal(tape_writer_finish(t, NULL), 0);
	for (uint32_t i = 0; (v = alloc_variant_at(i, ALLOC_SYNC_SERIAL)) != NULL; i++) {
		struct replay_result *r = replay(t, v->name, "begin");

		if (r->warmed != 49 || r->ops != 2 || r->skipped)
			fail_msg("%s: warmed %u, ops %u", v->name, (unsigned int)r->warmed,
				 (unsigned int)r->ops);
		replay_result_destroy(r);
	}
	tape_close(t);
}

/* /proc/slabinfo knows sums only: shared out over the nodes, what is free on few slabs. */
static void slabinfo_is_enough(void **state)
{
	struct tape *t = recording();
	struct replay_result *r;
	int64_t run;

	(void)state;
	run = begin_snapshot(t);
	put_state(t, run, "slabs", 4);
	put_state(t, run, "total_objects", 64);
	put_state(t, run, "objects", 50);
	assert_int_equal(tape_run_end(t, run, 0, 0, -1, NULL), 0);
	assert_int_equal(tape_writer_finish(t, NULL), 0);
	r = replay(t, "slub-6.1", "begin");
	assert_int_equal(r->warmed, 50);
	assert_int_equal(r->caches[0].state.slabs, 4);
	replay_result_destroy(r);
	tape_close(t);
}

static void without_window_the_whole_tape_runs(void **state)
{
	struct tape *t = recording();
	struct replay_result *r;

	(void)state;
	put_sysfs(t);
	assert_int_equal(tape_writer_finish(t, NULL), 0);
	r = replay(t, "slub-6.1", NULL);
	assert_int_equal(r->ops, 5);
	assert_int_equal(r->warmed, 49);
	replay_result_destroy(r);
	tape_close(t);
}

static void what_cannot_be_is_refused(void **state)
{
	struct replay_config cfg = REPLAY_CONFIG_DEFAULT;
	struct replay_result *r;
	struct tape_err err = { 0 };
	struct tape *t = recording();

	(void)state;
	assert_int_equal(tape_writer_finish(t, NULL), 0);
	cfg.variant = "slub-6.1";
	cfg.warm = REPLAY_WARM_SNAPSHOT;
	assert_int_equal(replay_run(t, &cfg, &r, &err), -TAPE_E_USAGE);
	assert_non_null(strstr(err.text, "no snapshot"));
	cfg.jitter_ns = 10;
	assert_int_equal(replay_run(t, &cfg, &r, &err), -TAPE_E_USAGE);
	assert_non_null(strstr(err.text, "--jitter"));
	tape_close(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slabs_stand_as_counted),
		cmocka_unit_test(every_variant_starts_with_the_same_objects),
		cmocka_unit_test(slabinfo_is_enough),
		cmocka_unit_test(without_window_the_whole_tape_runs),
		cmocka_unit_test(what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
