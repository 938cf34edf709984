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
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "replay/modes_internal.h"
#include "replay/ordered_internal.h"
#include "replay/simulated_internal.h"

/* ---- objects: NULL not allocated yet, a pointer, or one of these ---- */
#define OBJECT_FAILED ((void *)(uintptr_t)2) /* allocation returned NULL */
#define OBJECT_GONE ((void *)(uintptr_t)4)
static void *waiter_mark(uint32_t cpu)
{
	return (void *)((uintptr_t)cpu << 3 | 1);
}
static bool is_waiter(const void *v)
{
	return (uintptr_t)v & 1;
}

static void **object_at(struct simulated *m, uint32_t cpu, uint64_t object)
{
	return &m->objects[cpu / m->streams.cpus * m->streams.objects + object];
}

/* ---- prefilled sheaves: their operations happen in recorded order ---- */

static uint32_t sheaf_index(const struct simulated *m, uint32_t cpu, uint32_t sheaf)
{
	return cpu / m->streams.cpus * m->streams.sheaves + sheaf;
}

static struct alloc_sheaf **sheaf_claim(struct simulated *m, uint32_t cpu, const struct sim_op *op)
{
	uint32_t sheaf = 0, index;
	struct simulated_sheaf *s;

	sim_op_sheaf(op, &sheaf);
	index = sheaf_index(m, cpu, sheaf);
	s = &m->sheaves[index];
	sim_yield(m->sim, cpu);
	if (s->turn != op->turn) {
		m->waits_sheaf[cpu] = index + 1;
		m->waits_for[cpu] = op->turn;
		s->waiting++;
		m->dependency_ps += sim_block(m->sim, cpu);
		s->waiting--;
		m->waits_sheaf[cpu] = 0;
	}
	return &s->sheaf;
}

static void sheaf_pass(struct simulated *m, uint32_t cpu, const struct sim_op *op)
{
	uint32_t sheaf = 0, index;
	struct simulated_sheaf *s;

	sim_op_sheaf(op, &sheaf);
	index = sheaf_index(m, cpu, sheaf);
	s = &m->sheaves[index];
	s->turn++;
	for (uint32_t other = 0; s->waiting && other < m->cpus; other++)
		if (m->waits_sheaf[other] == index + 1 && m->waits_for[other] == s->turn) {
			sim_wake(m->sim, other, sim_now_ps(m->sim, cpu));
			return;
		}
}

/* With --state slabs are numbered by the first object handed out. */
static void number_slab(struct simulated *m, uint16_t cache, void *obj)
{
	struct alloc_slab_info info;
	struct alloc_slab *s;
	uint32_t index, number;

	if (!m->o.observer.transition || !(s = alloc_slab_of(m->o.machine, obj, &index)))
		return;
	alloc_slab_info(s, &info);
	if (replay_number_get(&m->o.run_of[cache]->numbers, info.id, &number) < 0)
		abort(); /* out of memory on a fiber: nothing to return an error to */
}

static void publish(struct simulated *m, uint32_t cpu, const struct sim_op *op, void *obj)
{
	void **at = object_at(m, cpu, op->object), *before;

	if (obj) {
		number_slab(m, op->cache, obj);
		sim_line(m->sim, cpu, obj, true); /* the caller writes its object */
	} else {
		m->o.failed++;
	}
	before = *at; /* after the yield in sim_line(): somebody may have begun to wait */
	*at = obj ? obj : OBJECT_FAILED;
	if (is_waiter(before))
		sim_wake(m->sim, (uint32_t)((uintptr_t)before >> 3), sim_now_ps(m->sim, cpu));
}

/* The object, waited for when its allocation is still to come; NULL: there is none to free. */
static void *claim(struct simulated *m, uint32_t cpu, uint64_t object)
{
	void **at, *obj;

	if (object == TAPE_NO_OBJECT)
		return NULL;
	sim_yield(m->sim, cpu);
	at = object_at(m, cpu, object);
	if (!*at) {
		*at = waiter_mark(cpu);
		m->dependency_ps += sim_block(m->sim, cpu);
	}
	obj = *at;
	if (is_waiter(obj) || obj == OBJECT_GONE || obj == OBJECT_FAILED) {
		m->o.skipped += obj != OBJECT_FAILED;
		return NULL;
	}
	*at = OBJECT_GONE;
	sim_line(m->sim, cpu, obj, true); /* the free list's link goes into it */
	return obj;
}

/* ---- kfree_rcu on variants that have none of their own ---- */

static void rcu_run(struct simulated *m, uint32_t cpu, uint64_t now_ps)
{
	struct simulated_rcu *q = &m->rcu[cpu];

	while (q->head < q->nr && q->entries[q->head].due_ps <= now_ps) {
		struct alloc_cache *c = q->entries[q->head].cache;
		uint64_t n = 0;

		while (q->head < q->nr && q->entries[q->head].cache == c &&
		       q->entries[q->head].due_ps <= now_ps && n < SIMULATED_BULK_MAX)
			m->bulk[cpu][n++] = q->entries[q->head++].obj;
		m->o.v->free_bulk(c, cpu, (uint32_t)n, m->bulk[cpu]);
	}
	if (q->head == q->nr)
		q->head = q->nr = 0;
}

static void rcu_queue(struct simulated *m, uint32_t cpu, struct alloc_cache *c, void *obj)
{
	struct simulated_rcu *q = &m->rcu[cpu];
	uint64_t due_ps = m->serial ? SIM_NEVER
				    : sim_now_ps(m->sim, cpu) + m->o.plan->rcu_delay_ns * SIM_PS_PER_NS;

	if (q->nr == q->capacity) {
		q->capacity = q->capacity ? q->capacity * 2 : 256;
		q->entries = realloc(q->entries, q->capacity * sizeof(*q->entries));
		if (!q->entries)
			abort(); /* out of memory on a fiber: nothing to return an error to */
	}
	q->entries[q->nr++] = (struct simulated_rcu_entry){ c, obj, due_ps };
}

/* ---- one operation ---- */

static void do_alloc_bulk(struct simulated *m, uint32_t cpu, struct alloc_cache *c,
			  const struct sim_op *op)
{
	void **objs = m->bulk[cpu];
	uint32_t got = m->o.v->alloc_bulk(c, cpu, op->gfp, op->rows, objs);

	for (uint32_t i = 0; i < op->rows; i++)
		publish(m, cpu, &op[i], got ? objs[i] : NULL);
}

static void do_free_bulk(struct simulated *m, uint32_t cpu, struct alloc_cache *c,
			 const struct sim_op *op)
{
	void **objs = m->bulk[cpu];
	uint32_t nr = 0;

	for (uint32_t i = 0; i < op->rows; i++) {
		void *obj = claim(m, cpu, op[i].object);

		if (obj)
			objs[nr++] = obj;
	}
	if (nr)
		m->o.v->free_bulk(c, cpu, nr, objs);
}

static void do_free(struct simulated *m, uint32_t cpu, struct alloc_cache *c, const struct sim_op *op)
{
	void *obj = claim(m, cpu, op->object);

	if (!obj)
		return;
	if (op->op == TAPE_OP_FREE)
		m->o.v->free(c, cpu, obj);
	else if (m->o.v->free_rcu)
		m->o.v->free_rcu(c, cpu, obj);
	else
		rcu_queue(m, cpu, c, obj);
}

static void do_sheaf(struct simulated *m, uint32_t cpu, struct alloc_cache *c, const struct sim_op *op)
{
	const struct alloc_variant *v = m->o.v;
	struct alloc_sheaf **s;
	uint32_t objs = tape_sheaf_objs((int64_t)op->arg);

	if (!v->prefill) {
		if (op->op == TAPE_OP_SHEAF_ALLOC)
			publish(m, cpu, op, v->alloc(c, cpu, ALLOC_NODE_ANY, op->gfp));
		return;
	}
	s = sheaf_claim(m, cpu, op);
	if (op->op == TAPE_OP_PREFILL) {
		if (*s)
			v->sheaf_return(c, cpu, *s);
		*s = v->prefill(c, cpu, op->gfp, objs);
	} else if (op->op == TAPE_OP_SHEAF_ALLOC) {
		publish(m, cpu, op, *s ? v->sheaf_alloc(c, cpu, *s)
				       : v->alloc(c, cpu, ALLOC_NODE_ANY, op->gfp));
	} else if (*s && op->op == TAPE_OP_SHEAF_REFILL) {
		m->o.failed += v->sheaf_refill(c, cpu, op->gfp, s, objs) < 0;
	} else if (*s) {
		v->sheaf_return(c, cpu, *s);
		*s = NULL;
	}
	sheaf_pass(m, cpu, op);
}

/* Operations that need every other CPU idle: only one at a time does that. */
static void do_global(struct simulated *m, struct alloc_cache *c, const struct sim_op *op)
{
	if (!m->serial) {
		m->o.skipped++;
	} else if (op->op == TAPE_OP_SHRINK) {
		m->o.v->shrink(c);
	} else if (m->o.v->rcu_barrier) {
		m->o.v->rcu_barrier(c);
	} else {
		for (uint32_t cpu = 0; cpu < m->cpus; cpu++)
			rcu_run(m, cpu, SIM_NEVER);
	}
}

static void execute(struct simulated *m, uint32_t cpu, const struct sim_op *op)
{
	struct alloc_cache *c = m->o.cache_of[op->cache];

	switch (op->op) {
	case TAPE_OP_ALLOC:
		publish(m, cpu, op, m->o.v->alloc(c, cpu, op->node, op->gfp));
		break;
	case TAPE_OP_FREE:
	case TAPE_OP_FREE_RCU:
		do_free(m, cpu, c, op);
		break;
	case TAPE_OP_ALLOC_BULK:
		do_alloc_bulk(m, cpu, c, op);
		break;
	case TAPE_OP_FREE_BULK:
		do_free_bulk(m, cpu, c, op);
		break;
	case TAPE_OP_FLUSH:
		m->o.v->flush_cpu(c, cpu);
		break;
	case TAPE_OP_PAGE_LIMIT:
		sim_yield(m->sim, cpu);
		alloc_cache_page_limit(c, (uint32_t)op->arg);
		break;
	case TAPE_OP_SHRINK:
	case TAPE_OP_RCU_BARRIER:
		do_global(m, c, op);
		break;
	default:
		do_sheaf(m, cpu, c, op);
	}
}

/* ---- one virtual CPU ---- */

static void wait_for_turn(struct simulated *m, uint32_t cpu, uint32_t seq)
{
	while (m->turn_seq != seq) {
		m->waits_turn[cpu] = true;
		sim_block(m->sim, cpu);
	}
	m->waits_turn[cpu] = false;
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
	if (next != cpu && m->waits_turn[next])
		sim_wake(m->sim, next, sim_now_ps(m->sim, cpu));
}

static void timer_work(struct simulated *m, uint32_t cpu)
{
	uint64_t now_ps = sim_now_ps(m->sim, cpu);

	if (m->rcu[cpu].nr && m->rcu[cpu].entries[m->rcu[cpu].head].due_ps <= now_ps)
		rcu_run(m, cpu, now_ps);
	if (m->o.plan->script || !m->o.v->tick || now_ps < m->next_tick_ps[cpu])
		return;
	for (size_t i = 0; i < m->o.nr_caches; i++)
		m->o.v->tick(m->o.caches[i]->cache, cpu, now_ps / SIM_PS_PER_NS);
	m->next_tick_ps[cpu] = now_ps + REPLAY_TICK_NS * SIM_PS_PER_NS;
}

static void one_operation(struct simulated *m, uint32_t cpu, const struct sim_op *op)
{
	uint64_t accesses = sim_hooks_accesses(cpu);

	timer_work(m, cpu);
	sim_work(m->sim, cpu, m->costs.op_fast_ps);
	execute(m, cpu, op);
	if (sim_hooks_accesses(cpu) != accesses)
		sim_work(m->sim, cpu, m->costs.op_slow_ps);
	m->o.ops++;
}

static void vcpu(void *arg, uint32_t cpu)
{
	struct simulated *m = arg;
	uint32_t stream = cpu % m->streams.cpus;
	const struct sim_op *ops = m->streams.ops[stream];

	for (uint64_t i = 0; i < m->streams.nr[stream]; i += ops[i].rows) {
		if (m->pace == REPLAY_PACE_TRACE) {
			sim_work(m->sim, cpu, ops[i].gap_ns * SIM_PS_PER_NS);
			m->think_ps += ops[i].gap_ns * SIM_PS_PER_NS;
		}
		if (m->serial)
			wait_for_turn(m, cpu, ops[i].seq);
		one_operation(m, cpu, &ops[i]);
		if (m->serial)
			pass_turn(m, cpu);
	}
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
	int rc;

	for (uint32_t cpu = 0; cpu < m->cpus; cpu++) {
		if (!m->streams.nr[cpu % m->streams.cpus])
			continue;
		rc = sim_spawn(m->sim, cpu, 0, vcpu, m);
		if (rc < 0)
			return tape_err_set(reterr, rc, "virtual CPU %u: no stack", cpu);
	}
	sim_hooks_live(true);
	rc = sim_run(m->sim, reterr);
	sim_hooks_live(false);
	for (uint32_t cpu = 0; rc >= 0 && cpu < m->cpus; cpu++)
		rcu_run(m, cpu, SIM_NEVER);
	m->o.elapsed_ns = host_ns() - start_ns;
	return rc;
}

int replay_simulated(struct replay_plan *p, struct replay_result **ret_result,
		     struct tape_err *reterr)
{
	struct simulated m;
	int rc = simulated_init(&m, p, reterr);

	if (rc >= 0)
		rc = run_all(&m, reterr);
	if (rc >= 0)
		rc = ordered_window(&m.o, UINT64_MAX);
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
