/* SPDX-License-Identifier: MIT */
/*
 * The simulation core against closed forms: order at locks, saturation, M/D/1, a
 * compare-exchange that fails exactly when somebody came between.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/sim_core.h"

#define NS SIM_PS_PER_NS
static const struct sim_costs free_costs; /* nothing costs anything */
static const uint16_t one_node[256];

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}
static double uniform(uint64_t *x)
{
	return ((double)(next_random(x) >> 11) + 0.5) / 9007199254740992.0;
}

struct work {
	struct sim *sim;
	struct sim_lock *lock;
	uint64_t before_ps, hold_ps, rounds, waited_ps, random;
	double think_mean_ns;
	uint64_t short_ps, long_ps;
};

static void once(void *arg, uint32_t cpu)
{
	struct work *w = (struct work *)arg + cpu;

	sim_work(w->sim, cpu, w->before_ps);
	w->waited_ps = sim_lock_acquire(w->sim, cpu, w->lock);
	sim_work(w->sim, cpu, w->hold_ps);
	sim_lock_release(w->sim, cpu, w->lock);
}

/* A starts at 0 with 600 ns before the lock, B at 10 with 20 ns, hold 60: neither waits. */
static void late_locker_does_not_block_early_one(void **state)
{
	struct sim *s = sim_create(2, one_node, &free_costs);
	struct sim_lock *l = sim_lock_create(s, NULL);
	struct work w[2] = { { .sim = s, .lock = l, .before_ps = 600 * NS, .hold_ps = 60 * NS },
			     { .sim = s, .lock = l, .before_ps = 20 * NS, .hold_ps = 60 * NS } };

	(void)state;
	assert_int_equal(sim_spawn(s, 0, 0, once, w), 0);
	assert_int_equal(sim_spawn(s, 1, 10 * NS, once, w), 0);
	assert_int_equal(sim_run(s, NULL), 0);
	assert_int_equal(w[0].waited_ps, 0);
	assert_int_equal(w[1].waited_ps, 0);
	assert_int_equal(sim_end_ps(s), 660 * NS);
	assert_int_equal(sim_lock_stats(l)->contended, 0);
	sim_destroy(s);
}

static void hold_again_and_again(void *arg, uint32_t cpu)
{
	struct work *w = arg;

	for (uint64_t i = 0; i < w->rounds; i++) {
		sim_lock_acquire(w->sim, cpu, w->lock);
		sim_work(w->sim, cpu, w->hold_ps);
		sim_lock_release(w->sim, cpu, w->lock);
	}
}

/* A lock that is always wanted passes 1 / (hold + hand-over) holders per second. */
static void saturated_lock_runs_at_its_rate(void **state)
{
	const struct sim_costs costs = { .handover_same_node_ps = 90 * NS };
	struct sim *s = sim_create(16, one_node, &costs);
	struct work w = { .sim = s, .lock = sim_lock_create(s, NULL), .hold_ps = 60 * NS, .rounds = 1000 };
	double expected_ns = 16 * 1000 * (60.0 + 90.0), got_ns;

	(void)state;
	for (uint32_t cpu = 0; cpu < 16; cpu++)
		assert_int_equal(sim_spawn(s, cpu, 0, hold_again_and_again, &w), 0);
	assert_int_equal(sim_run(s, NULL), 0);
	got_ns = (double)sim_end_ps(s) / NS;
	assert_true(fabs(got_ns / expected_ns - 1) < 0.01);
	sim_destroy(s);
}

static void think_and_lock(void *arg, uint32_t cpu)
{
	struct work *w = arg;
	uint64_t random = w->random + cpu * 7919 + 1;

	for (int i = 0; i < 10; i++)
		next_random(&random);
	for (uint64_t i = 0; i < w->rounds; i++) {
		sim_work(w->sim, cpu, (uint64_t)(-log(uniform(&random)) * w->think_mean_ns * NS));
		sim_work(w->sim, cpu, next_random(&random) >> 63 ? w->long_ps : w->short_ps);
		sim_lock_acquire(w->sim, cpu, w->lock);
		sim_work(w->sim, cpu, w->hold_ps);
		sim_lock_release(w->sim, cpu, w->lock);
	}
}

/* 64 CPUs, 20 or 600 ns before the lock, hold 60, think time exponential with mean 10 us. */
static void closed_network_has_its_known_wait(void **state)
{
	struct sim *s = sim_create(64, one_node, &free_costs);
	struct work w = { .sim = s, .lock = sim_lock_create(s, NULL), .hold_ps = 60 * NS, .rounds = 20000,
			  .think_mean_ns = 10000, .short_ps = 20 * NS, .long_ps = 600 * NS,
			  .random = 12345 };
	const struct sim_lock_stats *st = sim_lock_stats(w.lock);
	double mean_ns, share;

	(void)state;
	for (uint32_t cpu = 0; cpu < 64; cpu++)
		assert_int_equal(sim_spawn(s, cpu, 0, think_and_lock, &w), 0);
	assert_int_equal(sim_run(s, NULL), 0);
	mean_ns = (double)st->wait_ps / NS / (double)st->acquisitions;
	share = (double)st->contended / (double)st->acquisitions;
	print_message("mean wait %.2f ns, contended %.4f\n", mean_ns, share);
	assert_true(fabs(mean_ns - 17.0) < 0.05 * 17.0);
	assert_true(fabs(share - 0.364) < 0.01);
	sim_destroy(s);
}

/* Poisson arrivals, one constant service: mean wait = rho * S / (2 * (1 - rho)). */
struct arrivals {
	struct sim *sim;
	struct sim_lock *lock;
	double at_ns[256];
};
static void arrive_once(void *arg, uint32_t cpu)
{
	struct arrivals *a = arg;
	uint64_t service_ps = 100 * NS;

	(void)cpu;
	sim_lock_acquire(a->sim, cpu, a->lock);
	sim_work(a->sim, cpu, service_ps);
	sim_lock_release(a->sim, cpu, a->lock);
}
static void poisson_arrivals_have_the_textbook_wait(void **state)
{
	enum { ROUNDS = 500, BATCH = 256 };
	uint64_t random = 88172645463325252ull;
	double rho = 0.3, wait_ns = 0, expected_ns = rho * 100 / (2 * (1 - rho));
	struct arrivals a;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		double t_ns = 0;

		a.sim = sim_create(BATCH, one_node, &free_costs);
		a.lock = sim_lock_create(a.sim, NULL);
		for (uint32_t i = 0; i < BATCH; i++) {
			t_ns += -log(uniform(&random)) * 100 / rho;
			assert_int_equal(sim_spawn(a.sim, i, (uint64_t)(t_ns * NS), arrive_once, &a),
					 0);
		}
		assert_int_equal(sim_run(a.sim, NULL), 0);
		wait_ns += (double)sim_lock_stats(a.lock)->wait_ps / NS / BATCH;
		sim_destroy(a.sim);
	}
	wait_ns /= ROUNDS;
	print_message("M/D/1 mean wait %.3f ns, textbook %.3f\n", wait_ns, expected_ns);
	assert_true(fabs(wait_ns / expected_ns - 1) < 0.05);
}

/* B writes at 50; A reads at 40 and exchanges at 60: A's exchange fails.  C, at 70..80, succeeds. */
struct exchange {
	struct sim *sim;
	uint64_t word;
	bool ok[3];
};
static void read_then_exchange(void *arg, uint32_t cpu)
{
	static const uint64_t read_at[3] = { 40, 50, 70 }, write_at[3] = { 60, 50, 80 };
	struct exchange *e = arg;
	uint64_t seen;

	sim_sleep_until(e->sim, cpu, read_at[cpu] * NS);
	sim_line(e->sim, cpu, &e->word, false);
	seen = e->word;
	sim_sleep_until(e->sim, cpu, write_at[cpu] * NS);
	sim_line(e->sim, cpu, &e->word, true);
	e->ok[cpu] = e->word == seen;
	if (e->ok[cpu])
		e->word++;
}
static void exchange_fails_iff_somebody_came_between(void **state)
{
	struct exchange e = { .sim = sim_create(3, one_node, &free_costs) };

	(void)state;
	for (uint32_t cpu = 0; cpu < 3; cpu++)
		assert_int_equal(sim_spawn(e.sim, cpu, 0, read_then_exchange, &e), 0);
	assert_int_equal(sim_run(e.sim, NULL), 0);
	assert_false(e.ok[0]);
	assert_true(e.ok[1]);
	assert_true(e.ok[2]);
	sim_destroy(e.sim);
}

static void block_forever(void *arg, uint32_t cpu)
{
	sim_block(arg, cpu);
}
static void deadlock_is_reported(void **state)
{
	struct sim *s = sim_create(2, one_node, &free_costs);
	struct tape_err err;

	(void)state;
	assert_int_equal(sim_spawn(s, 1, 5 * NS, block_forever, s), 0);
	assert_int_equal(sim_run(s, &err), -TAPE_E_INVARIANT);
	assert_non_null(strstr(err.text, "cpu 1"));
	sim_destroy(s);
}

/* Lines: 10 ns here, 50 from the node, 200 from another; a read leaves the line where it is. */
static void toucher(void *arg, uint32_t cpu)
{
	struct exchange *e = arg;

	sim_sleep_until(e->sim, cpu, cpu * 1000 * NS);
	sim_line(e->sim, cpu, &e->word, cpu != 1);
}
static void lines_cost_by_distance(void **state)
{
	static const uint16_t nodes[3] = { 0, 0, 1 };
	const struct sim_costs costs = { .line_local_ps = 10 * NS, .line_same_node_ps = 50 * NS,
					 .line_other_node_ps = 200 * NS };
	struct exchange e = { .sim = sim_create(3, nodes, &costs) };

	(void)state;
	for (uint32_t cpu = 0; cpu < 3; cpu++)
		assert_int_equal(sim_spawn(e.sim, cpu, 0, toucher, &e), 0);
	assert_int_equal(sim_run(e.sim, NULL), 0);
	assert_int_equal(sim_now_ps(e.sim, 0), 10 * NS);
	assert_int_equal(sim_now_ps(e.sim, 1), 1050 * NS);
	assert_int_equal(sim_now_ps(e.sim, 2), 2200 * NS);
	sim_destroy(e.sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_locker_does_not_block_early_one),
		cmocka_unit_test(saturated_lock_runs_at_its_rate),
		cmocka_unit_test(closed_network_has_its_known_wait),
		cmocka_unit_test(poisson_arrivals_have_the_textbook_wait),
		cmocka_unit_test(exchange_fails_iff_somebody_came_between),
		cmocka_unit_test(deadlock_is_reported),
		cmocka_unit_test(lines_cost_by_distance),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
