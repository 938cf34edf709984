/* SPDX-License-Identifier: MIT */
/*
 * The scheduler is a winner tree over the CPUs' keys (sim_core.h): leaf i is CPU i, each inner
 * node holds the smaller of its two children.  Keys name their CPU, so a node is one number, ties
 * in time fall to the smaller CPU, and the way up is a minimum with each sibling in turn: no
 * branch, and no load waits for another.
 *
 *	keys[1] ---- keys[2] ---- keys[4] = CPU 0, keys[5] = CPU 1
 *		\--- keys[3] ---- keys[6] = CPU 2, keys[7] = CPU 3
 *
 * The running CPU's leaf is SIM_NEVER, so the root is always the best *other* CPU, and a
 * sim_yield() that need not switch is one comparison.
 */
#include "replay/sim_core.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/fiber.h"

enum vcpu_state { VCPU_ABSENT = 0, VCPU_RUNNABLE, VCPU_RUNNING, VCPU_BLOCKED,
	VCPU_PAUSED, VCPU_DONE };

struct sim_lock {
	struct sim_lock *next; /* all locks of the sim */
	struct sim_lock_stats stats;
	uint64_t since_ps; /* time of the last acquisition */
	uint16_t *line;	   /* owner of the cache line it stands in */
	uint16_t own_line; /* where that is, for a lock without an address */
	uint32_t holder;   /* CPU, or UINT32_MAX */
	uint32_t head, tail, queued;
};

static void set_key(struct sim *s, uint32_t cpu, uint64_t key)
{
	uint64_t *keys = s->keys;

	for (uint32_t i = s->leaves + cpu; i; i /= 2) {
		uint64_t sibling = keys[i ^ 1];

		keys[i] = key;
		key = sibling < key ? sibling : key;
	}
}

/*
 * The best keys are too far from the epoch to tell apart: it moves to the earliest CPU that could
 * run.  @cpu runs, and would go on.
 */
static void move_epoch(struct sim *s)
{
	s->epoch_ps = SIM_NEVER;
	for (uint32_t cpu = 0; cpu < s->cpus; cpu++)
		if (s->vcpus[cpu].state == VCPU_RUNNABLE && s->vcpus[cpu].now_ps < s->epoch_ps)
			s->epoch_ps = s->vcpus[cpu].now_ps;
	for (uint32_t cpu = 0; cpu < s->cpus; cpu++)
		if (s->vcpus[cpu].state == VCPU_RUNNABLE)
			set_key(s, cpu, sim_key(s, cpu));
}

struct sim *sim_create(uint32_t cpus, const uint16_t *cpu_node, const struct sim_costs *costs)
{
	struct sim *s = calloc(1, sizeof(*s));

	assert(cpus > 0 && cpus <= 1u << SIM_KEY_CPU_BITS);
	if (!s)
		return NULL;
	s->cpus = cpus;
	s->cpu_node = cpu_node;
	s->costs = *costs;
	for (s->leaves = 2; s->leaves < cpus;)
		s->leaves *= 2;
	s->vcpus = aligned_alloc(64, cpus * sizeof(*s->vcpus));
	s->keys = aligned_alloc(64, (2 * s->leaves * sizeof(*s->keys) + 63) / 64 * 64);
	s->host = fiber_create_main();
	if (sim_lines_init(&s->lines) < 0 || !s->vcpus || !s->keys || !s->host) {
		s->cpus = 0; /* no fibers yet */
		sim_destroy(s);
		return NULL;
	}
	memset(s->vcpus, 0, cpus * sizeof(*s->vcpus));
	for (uint32_t i = 0; i < 2 * s->leaves; i++)
		s->keys[i] = SIM_NEVER;
	return s;
}

void sim_destroy(struct sim *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->cpus; i++)
		fiber_destroy(s->vcpus[i].fiber);
	for (struct sim_lock *l = s->locks, *next; l; l = next) {
		next = l->next;
		free(l);
	}
	sim_lines_fini(&s->lines);
	fiber_destroy(s->host);
	free(s->vcpus);
	free(s->keys);
	free(s);
}

/* Stop @from and continue the best runnable CPU, or the host when there is none. */
static void switch_to_best(struct sim *s, struct fiber *from)
{
	uint32_t cpu;

	if (s->keys[1] == SIM_NEVER) {
		if (from != s->host)
			fiber_switch(from, s->host);
		return;
	}
	if (s->keys[1] >> SIM_KEY_CPU_BITS == SIM_KEY_TIME_MAX)
		move_epoch(s);
	cpu = (uint32_t)s->keys[1] & ((1u << SIM_KEY_CPU_BITS) - 1);
	s->vcpus[cpu].state = VCPU_RUNNING;
	s->running = cpu;
	set_key(s, cpu, SIM_NEVER);
	if (s->keys[1] != SIM_NEVER)
		fiber_prefetch(s->vcpus[s->keys[1] & ((1u << SIM_KEY_CPU_BITS) - 1)].fiber);
	if (s->vcpus[cpu].fiber != from)
		fiber_switch(from, s->vcpus[cpu].fiber);
}

static void vcpu_main(void *arg)
{
	struct sim_vcpu *v = arg;
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
	struct sim_vcpu *v = &s->vcpus[cpu];

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
	set_key(s, cpu, sim_key(s, cpu));
	return 0;
}

int sim_run(struct sim *s, struct tape_err *reterr)
{
	switch_to_best(s, s->host);
	if (s->unfinished == s->paused)
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

void sim_let_others(struct sim *s, uint32_t cpu, uint64_t key)
{
	struct sim_vcpu *v = &s->vcpus[cpu];

	assert(v->state == VCPU_RUNNING);
	v->state = VCPU_RUNNABLE;
	set_key(s, cpu, key);
	switch_to_best(s, v->fiber);
}

uint64_t sim_block(struct sim *s, uint32_t cpu)
{
	struct sim_vcpu *v = &s->vcpus[cpu];
	uint64_t since_ps = v->now_ps;

	assert(v->state == VCPU_RUNNING);
	v->state = VCPU_BLOCKED;
	switch_to_best(s, v->fiber);
	return v->now_ps - since_ps;
}

void sim_pause(struct sim *s, uint32_t cpu)
{
	assert(s->vcpus[cpu].state == VCPU_RUNNING);
	s->vcpus[cpu].state = VCPU_PAUSED;
	s->paused++;
	switch_to_best(s, s->vcpus[cpu].fiber);
}

uint64_t sim_meet_ps(const struct sim *s)
{
	uint64_t at_ps = s->end_ps;

	for (uint32_t cpu = 0; cpu < s->cpus; cpu++)
		if (s->vcpus[cpu].state == VCPU_PAUSED && s->vcpus[cpu].now_ps > at_ps)
			at_ps = s->vcpus[cpu].now_ps;
	return at_ps;
}

void sim_resume(struct sim *s)
{
	uint64_t at_ps = sim_meet_ps(s);

	for (uint32_t cpu = 0; cpu < s->cpus; cpu++) {
		if (s->vcpus[cpu].state != VCPU_PAUSED)
			continue;
		s->vcpus[cpu].now_ps = at_ps;
		s->vcpus[cpu].state = VCPU_RUNNABLE;
		set_key(s, cpu, sim_key(s, cpu));
	}
	s->paused = 0;
}

void sim_wake(struct sim *s, uint32_t sleeper, uint64_t at_ps)
{
	struct sim_vcpu *v = &s->vcpus[sleeper];

	assert(v->state == VCPU_BLOCKED);
	if (v->now_ps < at_ps)
		v->now_ps = at_ps;
	v->state = VCPU_RUNNABLE;
	set_key(s, sleeper, sim_key(s, sleeper));
}

/* What it costs to reach the lock's line. */
static uint64_t line_cost(const struct sim *s, uint32_t cpu, const struct sim_lock *l)
{
	uint16_t owner = *l->line;

	if (owner == SIM_NOBODY || owner == cpu + 1)
		return s->costs.line_local_ps;
	return s->cpu_node[owner - 1] == s->cpu_node[cpu] ? s->costs.line_same_node_ps
							  : s->costs.line_other_node_ps;
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
	sim_work(s, cpu, s->costs.atomic_ps + line_cost(s, cpu, l));
	take(s, cpu, l);
	return 0;
}

bool sim_lock_try(struct sim *s, uint32_t cpu, struct sim_lock *l)
{
	sim_yield(s, cpu);
	if (l->holder != UINT32_MAX) {
		l->stats.try_failed++;
		sim_work(s, cpu, line_cost(s, cpu, l));
		return false;
	}
	sim_work(s, cpu, s->costs.atomic_ps + line_cost(s, cpu, l));
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

void sim_lock_clear(struct sim_lock *l)
{
	assert(l->holder == UINT32_MAX);
	l->stats = (struct sim_lock_stats){ 0 };
}

const struct sim_lock_stats *sim_lock_stats(const struct sim_lock *l)
{
	return &l->stats;
}
