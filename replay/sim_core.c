/* SPDX-License-Identifier: MIT */
/*
 * The scheduler is a winner tree over the CPUs' times: leaf i is CPU i, each inner node holds the
 * smaller of its two children, ties go to the left one (the smaller CPU number).  The running
 * CPU's leaf is SIM_NEVER, so the root is always the best *other* CPU and sim_yield() that need
 * not switch is one comparison.
 */
#include "replay/sim_core.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/fiber.h"
#include "replay/sim_lines.h"

enum vcpu_state { VCPU_ABSENT = 0, VCPU_RUNNABLE, VCPU_RUNNING, VCPU_BLOCKED, VCPU_DONE };

struct vcpu {
	uint64_t now_ps;
	struct fiber *fiber;
	void (*fn)(void *arg, uint32_t cpu);
	void *arg;
	struct sim *sim;
	uint32_t cpu;
	enum vcpu_state state;
	uint32_t next_waiter; /* in a lock's queue; UINT32_MAX at its end */
};

struct sim_lock {
	struct sim_lock *next; /* all locks of the sim */
	struct sim_lock_stats stats;
	uint64_t since_ps; /* time of the last acquisition */
	uint16_t *line;	   /* owner of the cache line it stands in */
	uint16_t own_line; /* where that is, for a lock without an address */
	uint32_t holder;   /* CPU, or UINT32_MAX */
	uint32_t head, tail, queued;
};

struct sim {
	struct sim_costs costs;
	const uint16_t *cpu_node;
	struct vcpu *vcpus;
	uint64_t *tree; /* times; leaves from `leaves` on */
	uint32_t *best; /* CPU behind each tree entry */
	struct sim_lines lines;
	struct sim_lock *locks;
	struct fiber *host;
	uint64_t end_ps;
	uint32_t cpus, leaves, unfinished, running;
};

static void set_time(struct sim *s, uint32_t cpu, uint64_t ps)
{
	uint32_t i = s->leaves + cpu;

	s->tree[i] = ps;
	for (i /= 2; i; i /= 2) {
		uint32_t child = s->tree[2 * i + 1] < s->tree[2 * i] ? 2 * i + 1 : 2 * i;

		s->tree[i] = s->tree[child];
		s->best[i] = s->best[child];
	}
}

struct sim *sim_create(uint32_t cpus, const uint16_t *cpu_node, const struct sim_costs *costs)
{
	struct sim *s = calloc(1, sizeof(*s));

	assert(cpus > 0);
	if (!s)
		return NULL;
	s->cpus = cpus;
	s->cpu_node = cpu_node;
	s->costs = *costs;
	for (s->leaves = 2; s->leaves < cpus;)
		s->leaves *= 2;
	s->vcpus = calloc(cpus, sizeof(*s->vcpus));
	s->tree = malloc(2 * s->leaves * sizeof(*s->tree));
	s->best = calloc(2 * s->leaves, sizeof(*s->best));
	s->host = fiber_create_main();
	if (sim_lines_init(&s->lines) < 0 || !s->vcpus || !s->tree || !s->best || !s->host) {
		sim_destroy(s);
		return NULL;
	}
	for (uint32_t i = 0; i < 2 * s->leaves; i++)
		s->tree[i] = SIM_NEVER;
	for (uint32_t i = 0; i < s->leaves; i++)
		s->best[s->leaves + i] = i;
	return s;
}

void sim_destroy(struct sim *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; s->vcpus && i < s->cpus; i++)
		fiber_destroy(s->vcpus[i].fiber);
	for (struct sim_lock *l = s->locks, *next; l; l = next) {
		next = l->next;
		free(l);
	}
	sim_lines_fini(&s->lines);
	fiber_destroy(s->host);
	free(s->vcpus);
	free(s->tree);
	free(s->best);
	free(s);
}

/* Stop @from and continue the best runnable CPU, or the host when there is none. */
static void switch_to_best(struct sim *s, struct fiber *from)
{
	uint32_t cpu = s->best[1];

	if (s->tree[1] == SIM_NEVER) {
		if (from != s->host)
			fiber_switch(from, s->host);
		return;
	}
	s->vcpus[cpu].state = VCPU_RUNNING;
	s->running = cpu;
	set_time(s, cpu, SIM_NEVER);
	fiber_switch(from, s->vcpus[cpu].fiber);
}

static void vcpu_main(void *arg)
{
	struct vcpu *v = arg;
	struct sim *s = v->sim;

	v->fn(v->arg, v->cpu);
	v->state = VCPU_DONE;
	s->unfinished--;
	if (v->now_ps > s->end_ps)
		s->end_ps = v->now_ps;
	switch_to_best(s, v->fiber);
	abort(); /* nobody continues a finished CPU */
}

int sim_spawn(struct sim *s, uint32_t cpu, uint64_t start_ps, void (*fn)(void *arg, uint32_t cpu),
	      void *arg)
{
	struct vcpu *v = &s->vcpus[cpu];

	assert(cpu < s->cpus && v->state == VCPU_ABSENT && start_ps < SIM_NEVER);
	v->fiber = fiber_create(FIBER_STACK_BYTES, vcpu_main, v);
	if (!v->fiber)
		return -ENOMEM;
	v->now_ps = start_ps;
	v->fn = fn;
	v->arg = arg;
	v->sim = s;
	v->cpu = cpu;
	v->state = VCPU_RUNNABLE;
	s->unfinished++;
	set_time(s, cpu, start_ps);
	return 0;
}

int sim_run(struct sim *s, struct tape_err *reterr)
{
	switch_to_best(s, s->host);
	if (!s->unfinished)
		return 0;
	for (uint32_t cpu = 0; cpu < s->cpus; cpu++)
		if (s->vcpus[cpu].state == VCPU_BLOCKED)
			return tape_err_set(reterr, -TAPE_E_INVARIANT,
					    "cpu %u at %llu ns: waits for what never comes "
					    "(%u virtual CPUs wait)", cpu,
					    (unsigned long long)(s->vcpus[cpu].now_ps / SIM_PS_PER_NS),
					    s->unfinished);
	return tape_err_set(reterr, -TAPE_E_INVARIANT, "simulation stopped with %u CPUs unfinished",
			    s->unfinished);
}

uint64_t sim_end_ps(const struct sim *s)
{
	return s->end_ps;
}

uint32_t sim_running(const struct sim *s)
{
	return s->running;
}

uint64_t sim_now_ps(const struct sim *s, uint32_t cpu)
{
	return s->vcpus[cpu].now_ps;
}

void sim_work(struct sim *s, uint32_t cpu, uint64_t ps)
{
	s->vcpus[cpu].now_ps += ps;
}

void sim_sleep_until(struct sim *s, uint32_t cpu, uint64_t until_ps)
{
	if (s->vcpus[cpu].now_ps < until_ps)
		s->vcpus[cpu].now_ps = until_ps;
}

void sim_yield(struct sim *s, uint32_t cpu)
{
	struct vcpu *v = &s->vcpus[cpu];

	assert(v->state == VCPU_RUNNING);
	if (v->now_ps < s->tree[1] || (v->now_ps == s->tree[1] && cpu < s->best[1]))
		return;
	v->state = VCPU_RUNNABLE;
	set_time(s, cpu, v->now_ps);
	switch_to_best(s, v->fiber);
}

uint64_t sim_block(struct sim *s, uint32_t cpu)
{
	struct vcpu *v = &s->vcpus[cpu];
	uint64_t since_ps = v->now_ps;

	assert(v->state == VCPU_RUNNING);
	v->state = VCPU_BLOCKED;
	switch_to_best(s, v->fiber);
	return v->now_ps - since_ps;
}

void sim_wake(struct sim *s, uint32_t sleeper, uint64_t at_ps)
{
	struct vcpu *v = &s->vcpus[sleeper];

	assert(v->state == VCPU_BLOCKED);
	if (v->now_ps < at_ps)
		v->now_ps = at_ps;
	v->state = VCPU_RUNNABLE;
	set_time(s, sleeper, v->now_ps);
}

static uint64_t line_cost(const struct sim *s, uint32_t cpu, uint16_t owner)
{
	if (owner == SIM_NOBODY || owner == cpu + 1)
		return s->costs.line_local_ps;
	return s->cpu_node[owner - 1] == s->cpu_node[cpu] ? s->costs.line_same_node_ps
							  : s->costs.line_other_node_ps;
}

void sim_line(struct sim *s, uint32_t cpu, const void *address, bool write)
{
	uint16_t *owner;

	sim_yield(s, cpu);
	owner = sim_lines_owner(&s->lines, address);
	sim_work(s, cpu, line_cost(s, cpu, *owner));
	if (write)
		*owner = (uint16_t)(cpu + 1);
}

struct sim_lock *sim_lock_create(struct sim *s, const void *address)
{
	struct sim_lock *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->line = address ? sim_lines_owner(&s->lines, address) : &l->own_line;
	l->holder = l->head = l->tail = UINT32_MAX;
	l->next = s->locks;
	s->locks = l;
	return l;
}

static void take(struct sim *s, uint32_t cpu, struct sim_lock *l)
{
	l->holder = cpu;
	*l->line = (uint16_t)(cpu + 1);
	l->stats.acquisitions++;
	l->since_ps = s->vcpus[cpu].now_ps;
}

static uint64_t wait_in_queue(struct sim *s, uint32_t cpu, struct sim_lock *l)
{
	uint64_t waited_ps;

	s->vcpus[cpu].next_waiter = UINT32_MAX;
	if (l->head == UINT32_MAX)
		l->head = cpu;
	else
		s->vcpus[l->tail].next_waiter = cpu;
	l->tail = cpu;
	if (++l->queued > l->stats.max_queue)
		l->stats.max_queue = l->queued;
	waited_ps = sim_block(s, cpu);
	assert(l->holder == cpu);
	l->stats.contended++;
	l->stats.wait_ps += waited_ps;
	if (waited_ps > l->stats.max_wait_ps)
		l->stats.max_wait_ps = waited_ps;
	return waited_ps;
}

uint64_t sim_lock_acquire(struct sim *s, uint32_t cpu, struct sim_lock *l)
{
	sim_yield(s, cpu);
	assert(l->holder != cpu);
	if (l->holder != UINT32_MAX)
		return wait_in_queue(s, cpu, l);
	sim_work(s, cpu, s->costs.atomic_ps + line_cost(s, cpu, *l->line));
	take(s, cpu, l);
	return 0;
}

bool sim_lock_try(struct sim *s, uint32_t cpu, struct sim_lock *l)
{
	sim_yield(s, cpu);
	if (l->holder != UINT32_MAX) {
		l->stats.try_failed++;
		sim_work(s, cpu, line_cost(s, cpu, *l->line));
		return false;
	}
	sim_work(s, cpu, s->costs.atomic_ps + line_cost(s, cpu, *l->line));
	take(s, cpu, l);
	return true;
}

void sim_lock_release(struct sim *s, uint32_t cpu, struct sim_lock *l)
{
	bool near;
	uint32_t next;

	/* Requests that come before this release in virtual time belong in the queue first. */
	sim_yield(s, cpu);
	assert(l->holder == cpu);
	l->stats.hold_ps += s->vcpus[cpu].now_ps - l->since_ps;
	l->holder = UINT32_MAX;
	next = l->head;
	if (next == UINT32_MAX)
		return;
	l->head = s->vcpus[next].next_waiter;
	l->queued--;
	near = s->cpu_node[next] == s->cpu_node[cpu];
	if (near)
		l->stats.handover_same_node++;
	else
		l->stats.handover_other_node++;
	sim_wake(s, next, s->vcpus[cpu].now_ps + (near ? s->costs.handover_same_node_ps
						       : s->costs.handover_other_node_ps));
	take(s, next, l);
}

const struct sim_lock_stats *sim_lock_stats(const struct sim_lock *l)
{
	return &l->stats;
}
