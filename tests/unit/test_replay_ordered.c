/* SPDX-License-Identifier: MIT */
/* The ordered engine on small tapes made here: one rule per test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "replay/engine.h"
#include "store/tape.h"

enum { CACHE = 1, CPUS = 4 };

struct made {
	struct tape *t;
	uint64_t object, ts;
};

static struct made make(const char *source)
{
	struct made m = { .ts = 1000 };
	struct tape_cache row = { .id = CACHE, .name = "c256", .object_size = 256, .coverage = 1 };

	assert_int_equal(tape_create(NULL, false, &m.t, NULL), 0);
	for (uint16_t cpu = 0; cpu < CPUS; cpu++)
		assert_int_equal(tape_define_cpu(m.t, cpu, (int16_t)(cpu / 2), NULL), 0);
	assert_int_equal(tape_define_cache(m.t, &row, NULL), 0);
	assert_int_equal(tape_meta_set(m.t, "source", source, NULL), 0);
	return m;
}

/* Objects are named by their slot here: slot s is object s + 1 of its last alloc. */
static void put(struct made *m, uint8_t op, uint16_t cpu, uint32_t slot, uint32_t bulk,
		uint16_t flags)
{
	struct tape_event ev = tape_event_blank();

	ev.op = op;
	ev.cpu = cpu;
	ev.cache = CACHE;
	ev.slot = slot;
	ev.bulk = bulk;
	ev.flags = flags;
	ev.gfp = TAPE_GFP_KERNEL;
	ev.size = tape_op_allocates(op) ? 256 : 0;
	ev.object = tape_op_allocates(op) ? m->object++ : slot;
	ev.ts = ev.ts_lo = ev.ts_hi = m->ts += 1000;
	assert_int_equal(tape_writer_append(m->t, &ev, NULL, NULL), 0);
}

static void put_arg(struct made *m, uint8_t op, int64_t arg)
{
	struct tape_event ev = tape_event_blank();

	ev.op = op;
	ev.cache = CACHE;
	ev.arg = arg;
	ev.ts = ev.ts_lo = ev.ts_hi = m->ts += 1000;
	assert_int_equal(tape_writer_append(m->t, &ev, NULL, NULL), 0);
}

static struct replay_result *run(struct made *m, const struct replay_config *cfg)
{
	struct replay_result *r = NULL;
	struct tape_err err = { 0 };
	int rc;

	rc = replay_run(m->t, cfg, &r, &err);
	if (rc < 0)
		fail_msg("%s", err.text);
	return r;
}

static void finish(struct made *m)
{
	assert_int_equal(tape_writer_finish(m->t, NULL), 0);
}

static int64_t counter(const struct replay_result *r, const char *name)
{
	assert_int_equal(r->nr_caches, 1);
	for (size_t i = 0; i < r->caches[0].nr_counters; i++)
		if (!strcmp(r->caches[0].counters[i].name, name))
			return r->caches[0].counters[i].sum;
	fail_msg("no counter %s", name);
	return 0;
}

static struct replay_config config(void)
{
	struct replay_config cfg = REPLAY_CONFIG_DEFAULT;

	cfg.variant = "slub-6.1";
	return cfg;
}

static void a_free_of_nothing_is_skipped_or_strict(void **state)
{
	struct made m = make("test");
	struct replay_config cfg = config();
	struct replay_result *r, *none = NULL;
	struct tape_err err = { 0 };

	(void)state;
	put(&m, TAPE_OP_ALLOC, 0, 0, 0, 0);
	put(&m, TAPE_OP_FREE, 1, 7, 0, 0);
	put(&m, TAPE_OP_FREE, 1, 0, 0, 0);
	finish(&m);
	r = run(&m, &cfg);
	assert_int_equal(r->skipped, 1);
	assert_int_equal(r->ops, 2);
	replay_result_destroy(r);
	cfg.strict = true;
	assert_int_equal(replay_run(m.t, &cfg, &none, &err), -TAPE_E_DIVERGED);
	assert_non_null(strstr(err.text, "seq 1"));
	assert_non_null(strstr(err.text, "cpu 1"));
	assert_non_null(strstr(err.text, "object 7"));
	assert_int_equal(tape_exit_code(-TAPE_E_DIVERGED), 5);
	tape_close(m.t);
}

static void a_free_after_a_failed_alloc_is_no_operation(void **state)
{
	struct made m = make("ops");
	struct replay_config cfg = config();
	struct replay_result *r;

	(void)state;
	put_arg(&m, TAPE_OP_PAGE_LIMIT, 2);
	put(&m, TAPE_OP_ALLOC, 0, 0, 0, 0);
	put(&m, TAPE_OP_FREE, 0, 0, 0, 0);
	put(&m, TAPE_OP_ALLOC_BULK, 0, 1, 5, 0);
	put(&m, TAPE_OP_ALLOC_BULK, 0, 2, 5, 0);
	put(&m, TAPE_OP_FREE_BULK, 0, 1, 6, 0);
	put(&m, TAPE_OP_FREE_BULK, 0, 2, 6, 0);
	finish(&m);
	cfg.strict = true;
	r = run(&m, &cfg);
	assert_int_equal(r->failed, 3);
	assert_int_equal(r->skipped, 0);
	assert_int_equal(r->ops, 5);
	assert_int_equal(counter(r, "free_fastpath") + counter(r, "free_slowpath"), 0);
	replay_result_destroy(r);
	tape_close(m.t);
}

/* Three objects are queued by free_rcu on CPU 0; they are freed there 20 ms after the first. */
static void free_rcu_waits_on_its_cpu(void **state)
{
	struct made m = make("test");
	struct replay_config cfg = config();
	struct replay_knob now = { NULL, "rcu_delay_ns", 0 };
	struct replay_result *r;

	(void)state;
	for (uint32_t s = 0; s < 3; s++)
		put(&m, TAPE_OP_ALLOC, 0, s, 0, 0);
	for (uint32_t s = 0; s < 3; s++)
		put(&m, TAPE_OP_FREE_RCU, 0, s, 0, 0);
	m.ts += 19000000;
	put(&m, TAPE_OP_ALLOC, 0, 0, 0, 0); /* before the grace period ends: object 3 */
	m.ts += 2000000;
	put(&m, TAPE_OP_ALLOC, 0, 1, 0, 0); /* behind it: one of the three */
	finish(&m);
	cfg.want_state = true;
	r = run(&m, &cfg);
	assert_int_equal(counter(r, "free_fastpath"), 1); /* one bulk call of one slab */
	replay_result_destroy(r);
	cfg.knobs = &now;
	cfg.nr_knobs = 1;
	r = run(&m, &cfg);
	assert_int_equal(counter(r, "free_fastpath"), 3); /* each is due when the next comes */
	replay_result_destroy(r);
	tape_close(m.t);
}

/* A bulk call whose rows lie in two chunks is one call. */
static void bulk_rows_straddle_chunks(void **state)
{
	struct made m = make("test");
	struct replay_config cfg = config();
	struct replay_result *r;
	const uint32_t lead = TAPE_CHUNK_EVENTS - 2;

	(void)state;
	for (uint32_t i = 0; i < lead; i++)
		put(&m, i % 2 ? TAPE_OP_FREE : TAPE_OP_ALLOC, 0, 0, 0, 0);
	for (uint32_t s = 0; s < 5; s++)
		put(&m, TAPE_OP_ALLOC_BULK, 2, s, 9, 0);
	for (uint32_t s = 0; s < 5; s++)
		put(&m, TAPE_OP_FREE, 2, s, 0, 0);
	finish(&m);
	r = run(&m, &cfg);
	assert_int_equal(r->ops, lead + 1 + 5);
	assert_int_equal(r->skipped, 0);
	assert_int_equal(counter(r, "alloc_slowpath"), 2); /* CPU 0's first and the bulk refill */
	replay_result_destroy(r);
	tape_close(m.t);
}

static void windows_count_differences(void **state)
{
	struct made m = make("test");
	struct replay_config cfg = config();
	struct replay_result *r;

	(void)state;
	put(&m, TAPE_OP_ALLOC, 0, 0, 0, 0);
	assert_int_equal(tape_writer_marker(m.t, m.ts += 1000, 0, "go first run", NULL), 0);
	put(&m, TAPE_OP_ALLOC, 0, 1, 0, 0);
	put(&m, TAPE_OP_ALLOC, 0, 2, 0, 0);
	assert_int_equal(tape_writer_marker(m.t, m.ts += 1000, 0, "stop", NULL), 0);
	put(&m, TAPE_OP_ALLOC, 0, 3, 0, 0);
	finish(&m);
	cfg.count_from = "go";
	cfg.count_to = "stop";
	r = run(&m, &cfg);
	assert_int_equal(counter(r, "alloc_fastpath"), 2);
	assert_int_equal(counter(r, "alloc_slowpath"), 0);
	replay_result_destroy(r);
	cfg.count_from = "4000ns"; /* the first event of the window */
	cfg.count_to = "5000ns";
	r = run(&m, &cfg);
	assert_int_equal(counter(r, "alloc_fastpath"), 1);
	replay_result_destroy(r);
	cfg.count_from = "nowhere";
	assert_int_equal(replay_run(m.t, &cfg, &r, NULL), -TAPE_E_USAGE);
	tape_close(m.t);
}

static void orphans_are_warmed_and_not_counted(void **state)
{
	struct made m = make("test");
	struct replay_config cfg = config();
	struct replay_result *r;

	(void)state;
	put(&m, TAPE_OP_FREE, 1, TAPE_NO_SLOT, 0, TAPE_F_ORPHAN);
	put(&m, TAPE_OP_FREE, 2, TAPE_NO_SLOT, 0, TAPE_F_ORPHAN);
	finish(&m);
	cfg.strict = true;
	r = run(&m, &cfg);
	assert_int_equal(r->warmed, 2);
	assert_int_equal(counter(r, "alloc_slowpath"), 0);
	assert_int_equal(counter(r, "free_fastpath"), 2); /* on the CPUs that free them */
	replay_result_destroy(r);
	cfg.strict = false;
	cfg.warm = REPLAY_WARM_NONE;
	r = run(&m, &cfg);
	assert_int_equal(r->skipped, 2);
	assert_int_equal(r->warmed, 0);
	replay_result_destroy(r);
	tape_close(m.t);
}

/* A long random tape: smallest free slot, frees on any CPU. */
static struct made make_random(uint32_t events)
{
	struct made m = make("test");
	uint32_t live[500], nr = 0, next = 0, freed[500], nr_freed = 0;
	uint64_t x = 88172645463325252u;

	for (uint32_t i = 0; i < events; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		if (nr && (nr == 500 || x % 100 < 50)) {
			uint32_t at = (uint32_t)(x >> 20) % nr;

			put(&m, TAPE_OP_FREE, (uint16_t)(x >> 8) % CPUS, live[at], 0, 0);
			freed[nr_freed++] = live[at];
			live[at] = live[--nr];
		} else {
			live[nr] = nr_freed ? freed[--nr_freed] : next++;
			put(&m, TAPE_OP_ALLOC, (uint16_t)(x >> 8) % CPUS, live[nr++], 0, 0);
		}
	}
	finish(&m);
	return m;
}

/* Shuffling loses nothing, frees nothing before its alloc, and repeats with its seed. */
static void jitter_keeps_what_must_hold(void **state)
{
	struct made m = make_random(30000);
	struct replay_config cfg = config();
	struct replay_result *plain = run(&m, &cfg), *a, *b, *c;
	int64_t allocs = counter(plain, "alloc_fastpath") + counter(plain, "alloc_slowpath");

	(void)state;
	cfg.strict = true;
	cfg.jitter_ns = 50000;
	a = run(&m, &cfg);
	b = run(&m, &cfg);
	cfg.seed = 2;
	c = run(&m, &cfg);
	assert_int_equal(a->ops, plain->ops);
	assert_int_equal(a->skipped, 0);
	assert_int_equal(counter(a, "alloc_fastpath") + counter(a, "alloc_slowpath"), allocs);
	for (size_t i = 0; i < a->caches[0].nr_counters; i++)
		assert_int_equal(a->caches[0].counters[i].sum, b->caches[0].counters[i].sum);
	assert_int_not_equal(counter(a, "alloc_slowpath"), counter(plain, "alloc_slowpath"));
	assert_int_not_equal(counter(a, "free_fastpath"), counter(c, "free_fastpath"));
	replay_result_destroy(plain);
	replay_result_destroy(a);
	replay_result_destroy(b);
	replay_result_destroy(c);
	tape_close(m.t);
}

static void laps_add_up(void **state)
{
	struct made m = make_random(5000);
	struct replay_config cfg = config();
	struct replay_result *one, *r;
	const struct replay_cache *c;

	(void)state;
	one = run(&m, &cfg);
	cfg.laps = 3;
	cfg.strict = true;
	r = run(&m, &cfg);
	c = &r->caches[0];
	assert_int_equal(c->nr_laps, 3);
	assert_int_equal(r->ops, 3 * one->ops);
	for (size_t i = 0; i < c->nr_counters; i++) {
		assert_int_equal(c->laps[i], one->caches[0].counters[i].sum);
		assert_int_equal(c->laps[i] + c->laps[c->nr_counters + i] +
				 c->laps[2 * c->nr_counters + i], c->counters[i].sum);
	}
	replay_result_destroy(one);
	replay_result_destroy(r);
	tape_close(m.t);
}

/* One object, freed unseen between 3 and 5: early, late or never. */
static void inferred_events_move(void **state)
{
	struct made m = make("test");
	struct replay_config cfg = config();
	struct replay_result *r;
	struct tape_event ev = tape_event_blank();
	static const struct {
		enum replay_infer infer;
		int64_t frees, fast_allocs;
	} want[] = { { REPLAY_INFER_LATE, 1, 2 }, { REPLAY_INFER_EARLY, 1, 2 },
		     { REPLAY_INFER_NONE, 0, 2 } };

	(void)state;
	put(&m, TAPE_OP_ALLOC, 0, 0, 0, 0);
	ev.ts_lo = m.ts;
	put(&m, TAPE_OP_ALLOC, 0, 1, 0, 0);
	ev.op = TAPE_OP_FREE;
	ev.cache = CACHE;
	ev.slot = 0;
	ev.object = 0;
	ev.flags = TAPE_F_INFERRED;
	ev.ts = ev.ts_hi = m.ts += 1000;
	assert_int_equal(tape_writer_append(m.t, &ev, NULL, NULL), 0);
	put(&m, TAPE_OP_ALLOC, 0, 0, 0, 0);
	finish(&m);
	for (size_t i = 0; i < 3; i++) {
		cfg.infer = want[i].infer;
		cfg.want_state = true;
		cfg.strict = true;
		r = run(&m, &cfg);
		assert_int_equal(counter(r, "free_fastpath"), want[i].frees);
		assert_int_equal(counter(r, "alloc_fastpath"), want[i].fast_allocs);
		/* early: the second allocation got the first one's object back */
		assert_int_equal(r->skipped, 0);
		replay_result_destroy(r);
	}
	tape_close(m.t);
}

static void knobs_are_checked(void **state)
{
	struct made m = make("test");
	struct replay_config cfg = config();
	struct replay_result *r = NULL;
	struct tape_err err = { 0 };
	struct replay_knob bad[] = { { NULL, "no_such_knob", 1 }, { "nobody", "min_partial", 1 },
				     { NULL, "remote_node_defrag_ratio", 101 } };
	struct replay_knob good[] = { { NULL, "min_partial", 7 }, { "c256", "min_partial", 9 } };

	(void)state;
	put(&m, TAPE_OP_ALLOC, 0, 0, 0, 0);
	finish(&m);
	cfg.nr_knobs = 1;
	for (size_t i = 0; i < 3; i++) {
		cfg.knobs = &bad[i];
		assert_int_equal(replay_run(m.t, &cfg, &r, &err), -TAPE_E_USAGE);
		assert_non_null(strstr(err.text, bad[i].knob));
	}
	cfg.knobs = good;
	cfg.nr_knobs = 2;
	r = run(&m, &cfg);
	assert_int_equal(r->caches[0].min_partial, 9); /* the cache's own wins */
	replay_result_destroy(r);
	tape_close(m.t);
}

static void every_variant_replays(void **state)
{
	struct made m = make_random(20000);
	struct replay_config cfg = config();
	const struct alloc_variant *v;

	(void)state;
	cfg.strict = true; /* also asks each allocator whether its books balance */
	for (uint32_t i = 0; (v = alloc_variant_at(i, ALLOC_SYNC_SERIAL)); i++) {
		struct replay_result *r;

		cfg.variant = v->name;
		r = run(&m, &cfg);
		assert_int_equal(r->ops, 20000);
		assert_int_equal(r->skipped, 0);
		replay_result_destroy(r);
	}
	tape_close(m.t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_free_of_nothing_is_skipped_or_strict),
		cmocka_unit_test(a_free_after_a_failed_alloc_is_no_operation),
		cmocka_unit_test(free_rcu_waits_on_its_cpu),
		cmocka_unit_test(bulk_rows_straddle_chunks),
		cmocka_unit_test(windows_count_differences),
		cmocka_unit_test(orphans_are_warmed_and_not_counted),
		cmocka_unit_test(jitter_keeps_what_must_hold),
		cmocka_unit_test(laps_add_up),
		cmocka_unit_test(inferred_events_move),
		cmocka_unit_test(knobs_are_checked),
		cmocka_unit_test(every_variant_replays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
