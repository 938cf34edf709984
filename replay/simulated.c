/* SPDX-License-Identifier: MIT */
/*
 * The simulated engine: every virtual CPU executes its stream of operations in virtual time.
 *
 * Order inside a CPU is the recording's; order between CPUs follows from virtual time, except that
 * an object is freed only after its allocation returned (dependency wait, never lock wait).
 * --scale K runs K copies of the recorded streams on K times as many CPUs with disjoint objects.
 *
 * --pace asap    a CPU's next operation begins when the one before has ended
 *        trace   after the recorded gap (think time)
 *        serial  one operation at a time in recorded order: decides exactly what ordered decides
 *
 * Counting windows and laps: every CPU runs up to the border and waits there for the others, so
 * that the border is one moment of virtual time.
 *
 *	CPU 0  ops before --count-from .....|  counted .......|
 *	CPU 1  ops before .... (waits)      |  counted ...    |  at --count-to all stop
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "replay/modes_internal.h"
#include "replay/simulated_internal.h"

/* ---- one virtual CPU ---- */

static void wait_for_turn(struct simulated *m, uint32_t cpu, uint32_t seq)
{
	while (m->turn_seq != seq) {
		m->vcpus[cpu].waits_turn = true;
		sim_block(m->sim, cpu);
	}
	m->vcpus[cpu].waits_turn = false;
}

static void pass_turn(struct simulated *m, uint32_t cpu)
{
	uint32_t next;

	do
		m->turn_seq++;
	while (m->turn_seq < m->turns && m->cpu_of_seq[m->turn_seq] == UINT16_MAX);
	if (m->turn_seq == m->turns)
		return;
	next = m->cpu_of_seq[m->turn_seq];
	if (next != cpu && m->vcpus[next].waits_turn)
		sim_wake(m->sim, next, sim_now_ps(m->sim, cpu));
}

/* For the recorder: what happens now is no operation's doing (@begins), or is again. */
static void timer_begins(struct simulated *m, uint32_t cpu, bool begins)
{
	if (m->seen)
		m->seen[cpu].timer = begins;
}

static void timer_work(struct simulated *m, uint32_t cpu)
{
	struct simulated_cpu *v = &m->vcpus[cpu];
	uint64_t now_ps = sim_now_ps(m->sim, cpu);

	if (v->rcu.nr && v->rcu.entries[v->rcu.head].due_ps <= now_ps) {
		timer_begins(m, cpu, true);
		simulated_rcu_run(m, cpu, now_ps);
		timer_begins(m, cpu, false);
	}
	if (now_ps < v->next_tick_ps)
		return;
	timer_begins(m, cpu, true);
	for (size_t i = 0; i < m->o.nr_caches; i++)
		m->o.v->tick(m->o.caches[i]->cache, cpu, now_ps / SIM_PS_PER_NS);
	timer_begins(m, cpu, false);
	v->next_tick_ps = now_ps + REPLAY_TICK_NS * SIM_PS_PER_NS;
}

/* xorshift64: what --jitter adds before an operation. */
static uint64_t jitter_ps(const struct simulated *m, struct simulated_cpu *v)
{
	v->random ^= v->random << 13;
	v->random ^= v->random >> 7;
	v->random ^= v->random << 17;
	return v->random % m->jitter_ps;
}

static void think(struct simulated *m, uint32_t cpu, const struct sim_op *op)
{
	if (m->pace == REPLAY_PACE_TRACE) {
		sim_work(m->sim, cpu, op->gap_ns * SIM_PS_PER_NS);
		m->think_ps += op->gap_ns * SIM_PS_PER_NS;
	}
	if (m->jitter_ps)
		sim_work(m->sim, cpu, jitter_ps(m, &m->vcpus[cpu]));
}

static void one_operation(struct simulated *m, uint32_t cpu, const struct sim_op *op)
{
	uint64_t accesses = m->sim->vcpus[cpu].accesses;

	timer_work(m, cpu);
	sim_work(m->sim, cpu, m->costs.op_fast_ps);
	simulated_execute(m, cpu, op);
	if (m->sim->vcpus[cpu].accesses != accesses)
		sim_work(m->sim, cpu, m->costs.op_slow_ps);
	m->o.ops++;
}

static void run_to_stop(struct simulated *m, uint32_t cpu)
{
	struct simulated_cpu *v = &m->vcpus[cpu];

	while (v->next < v->nr && v->ops[v->next].seq < m->stop_seq) {
		const struct sim_op *op = &v->ops[v->next];

		v->next += sim_op_rows(op);
		simulated_look_ahead(m, v, op + sim_op_rows(op));
		think(m, cpu, op);
		if (m->serial)
			wait_for_turn(m, cpu, op->seq);
		one_operation(m, cpu, op);
		if (m->serial)
			pass_turn(m, cpu);
	}
}

static void vcpu(void *arg, uint32_t cpu)
{
	struct simulated *m = arg;

	run_to_stop(m, cpu);
	while (!m->last_stop) {
		sim_pause(m->sim, cpu);
		run_to_stop(m, cpu);
	}
}

/* ---- windows and laps ---- */

static int run_to(struct simulated *m, uint64_t stop_seq, bool last, struct tape_err *reterr)
{
	int rc;

	m->stop_seq = stop_seq;
	m->last_stop = last;
	sim_hooks_live(true);
	m->running = true;
	rc = sim_run(m->sim, reterr);
	sim_hooks_live(false);
	simulated_at_rest(m, stop_seq < m->o.plan->totals.events ? stop_seq : m->o.plan->totals.events);
	return rc;
}

/* The window of the whole run begins at this moment. */
static void count_from_here(struct simulated *m)
{
	sim_hooks_clear();
	m->counted_from_ps = sim_meet_ps(m->sim);
	m->counted_ops = m->o.ops;
	m->dependency_ps = m->think_ps = 0;
}

/* The tape once: from border to border.  @last: nothing comes behind it. */
static int run_lap(struct simulated *m, bool last, struct tape_err *reterr)
{
	const struct replay_plan *p = m->o.plan;
	uint64_t seq = 0;
	int rc = 0;

	while (seq < p->to_seq && rc >= 0) {
		uint64_t next = replay_next_window(p, seq);
		bool over = next >= p->to_seq;

		rc = run_to(m, next, over && last, reterr);
		if (rc >= 0 && next != UINT64_MAX)
			rc = ordered_window(&m->o, next);
		if (next == p->from_seq)
			count_from_here(m);
		if (!over && rc >= 0)
			sim_resume(m->sim);
		seq = next;
	}
	for (uint32_t cpu = 0; rc >= 0 && cpu < m->cpus; cpu++)
		simulated_rcu_run(m, cpu, SIM_NEVER);
	return rc < 0 ? rc : 0;
}

static int run_laps(struct simulated *m, struct tape_err *reterr)
{
	int rc = 0;

	for (uint32_t lap = 0; lap < m->o.laps && rc >= 0; lap++) {
		if (lap) {
			simulated_rewind(m);
			simulated_warm(m);
			sim_resume(m->sim);
		}
		rc = run_lap(m, lap + 1 == m->o.laps, reterr);
		if (rc >= 0 && m->o.laps > 1)
			rc = ordered_lap_end(&m->o);
	}
	return rc;
}

/* ---- the run ---- */

static uint64_t host_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int run_all(struct simulated *m, struct tape_err *reterr)
{
	uint64_t start_ns = host_ns();
	int rc = 0;

	for (uint32_t cpu = 0; cpu < m->cpus; cpu++) {
		if (!m->vcpus[cpu].nr)
			continue;
		rc = sim_spawn(m->sim, cpu, 0, vcpu, m);
		if (rc < 0)
			return tape_err_set(reterr, rc, "virtual CPU %u: no stack", cpu);
	}
	rc = run_laps(m, reterr);
	m->o.elapsed_ns = host_ns() - start_ns;
	return rc;
}

int replay_simulated(struct replay_plan *p, struct replay_result **ret_result,
		     struct tape_err *reterr)
{
	struct simulated m;
	int rc = simulated_init(&m, p, reterr);

	if (rc >= 0) {
		simulated_warm(&m);
		rc = simulated_begin_counting(&m, reterr);
	}
	if (rc >= 0)
		rc = run_all(&m, reterr);
	if (rc >= 0)
		rc = ordered_window(&m.o, UINT64_MAX);
	if (rc >= 0)
		rc = simulated_record_finish(&m, reterr);
	if (rc >= 0)
		rc = ordered_result(&m.o, ret_result);
	if (rc >= 0)
		rc = simulated_result(&m, *ret_result, reterr);
	if (rc < 0 && *ret_result) {
		replay_result_destroy(*ret_result);
		*ret_result = NULL;
	}
	simulated_fini(&m);
	return rc;
}
