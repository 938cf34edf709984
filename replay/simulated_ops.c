/* SPDX-License-Identifier: MIT */
/*
 * One operation of a virtual CPU: the variant's call, and the hand-over of objects between CPUs.
 *
 * An object is freed only after its allocation returned (dependency wait, never lock wait).  What
 * no other CPU can look at is not a reason to let others run: a new object's line, and the free of
 * an object by the CPU that allocated it, unless small objects share lines.
 */
#include <stdlib.h>

#include "allocator/slab.h"
#include "replay/simulated_internal.h"

static void *waiter_mark(uint32_t cpu)
{
	return (void *)((uintptr_t)cpu << 3 | 1);
}
static bool is_waiter(const void *v)
{
	return (uintptr_t)v & 1;
}
static bool is_object(const void *v)
{
	return (uintptr_t)v > (uintptr_t)OBJECT_GONE && !is_waiter(v);
}

/* ---- prefilled sheaves: their operations happen in recorded order ---- */

static struct alloc_sheaf **sheaf_claim(struct simulated *m, uint32_t cpu, const struct sim_op *op)
{
	struct simulated_cpu *v = &m->vcpus[cpu];
	struct simulated_sheaf *s = &v->sheaves[op->aux];

	sim_yield(m->sim, cpu);
	if (s->turn != op->nr) {
		v->waits_sheaf = s;
		v->waits_for = op->nr;
		s->waiting++;
		m->dependency_ps += sim_block(m->sim, cpu);
		s->waiting--;
		v->waits_sheaf = NULL;
	}
	return &s->sheaf;
}

static void sheaf_pass(struct simulated *m, uint32_t cpu, const struct sim_op *op)
{
	struct simulated_sheaf *s = &m->vcpus[cpu].sheaves[op->aux];

	s->turn++;
	for (uint32_t other = 0; s->waiting && other < m->cpus; other++)
		if (m->vcpus[other].waits_sheaf == s && m->vcpus[other].waits_for == s->turn) {
			sim_wake(m->sim, other, sim_now_ps(m->sim, cpu));
			return;
		}
}

/* ---- objects ---- */

/* With --state slabs are numbered by the first object handed out. */
static void number_slab(struct simulated *m, uint16_t cache, void *obj)
{
	struct alloc_slab_info info;
	struct alloc_slab *s;
	uint32_t index, number;

	if (!m->o.numbered || !(s = alloc_slab_of(m->o.machine, obj, &index)))
		return;
	alloc_slab_info(s, &info);
	if (replay_number_get(&m->o.run_of[cache]->numbers, info.id, &number) < 0)
		abort(); /* out of memory on a fiber: nothing to return an error to */
}

static uint64_t line_ps(const struct simulated *m, enum simulated_distance d)
{
	return d == SIMULATED_LOCAL	? m->costs.line_local_ps :
	       d == SIMULATED_SAME_NODE ? m->costs.line_same_node_ps :
					  m->costs.line_other_node_ps;
}

/* The caller writes its new object; returns from when on others see it (struct simulated_object). */
static uint64_t write_new(struct simulated *m, uint32_t cpu, uint16_t cache, void *obj)
{
	uint16_t *line;
	uint64_t at_ps = sim_now_ps(m->sim, cpu);
	enum simulated_distance d = SIMULATED_LOCAL;

	if (!m->run_ahead || !m->own_line[cache]) {
		sim_line(m->sim, cpu, obj, true);
		return 0;
	}
	line = sim_lines_owner(&m->sim->lines, obj);
	if (*line != SIM_NOBODY && *line != cpu + 1)
		d = m->sim->cpu_node[*line - 1] == m->sim->cpu_node[cpu] ? SIMULATED_SAME_NODE :
									   SIMULATED_OTHER_NODE;
	*line = (uint16_t)(cpu + 1);
	sim_work(m->sim, cpu, line_ps(m, d));
	return at_ps << 2 | d;
}

/* What is left of the last lap under this id is freed first. */
static void free_left(struct simulated *m, uint32_t cpu, const struct sim_op *op)
{
	void **left = &m->vcpus[cpu].left[op->object];
	void *obj = *left;

	if (!obj)
		return;
	*left = NULL;
	sim_line(m->sim, cpu, obj, true);
	m->o.v->free(m->o.cache_of[op->cache], cpu, obj);
}

static void publish(struct simulated *m, uint32_t cpu, const struct sim_op *op, void *obj)
{
	struct simulated_object *at = &m->vcpus[cpu].objects[op->object];
	void *before;

	if (obj) {
		number_slab(m, op->cache, obj);
		at->since = write_new(m, cpu, op->cache, obj);
	} else {
		m->o.failed++;
	}
	before = at->obj; /* after the yield in write_new(): somebody may have begun to wait */
	at->obj = obj ? obj : OBJECT_FAILED;
	if (is_waiter(before))
		sim_wake(m->sim, (uint32_t)((uintptr_t)before >> 3), sim_now_ps(m->sim, cpu));
}

/*
 * The object is there in host order; is it in virtual time?  Else wait until it is.  Its
 * allocator is who wrote its line last.
 */
static void wait_until_seen(struct simulated *m, uint32_t cpu, struct simulated_object *at)
{
	uint64_t now_ps = sim_now_ps(m->sim, cpu), seen_ps = at->since >> 2;
	uint32_t by = *sim_lines_owner(&m->sim->lines, at->obj) - 1u;
	void *obj = at->obj;

	if (seen_ps < now_ps || (seen_ps == now_ps && by <= cpu))
		return;
	at->obj = waiter_mark(cpu); /* whoever frees it twice sees that somebody waits */
	seen_ps += line_ps(m, (enum simulated_distance)(at->since & 3));
	if (seen_ps > now_ps)
		m->dependency_ps += seen_ps - now_ps;
	sim_sleep_until(m->sim, cpu, seen_ps);
	sim_yield(m->sim, cpu);
	at->obj = obj;
}

/* The free list's link goes into the object. */
static void write_old(struct simulated *m, uint32_t cpu, const struct sim_op *op, void *obj)
{
	if (m->run_ahead && m->own_line[op->cache])
		sim_line_private(m->sim, cpu, obj, true);
	else
		sim_line(m->sim, cpu, obj, true);
}

/* The object, waited for when its allocation is still to come; NULL: there is none to free. */
static void *claim(struct simulated *m, uint32_t cpu, const struct sim_op *op)
{
	struct simulated_object *at;
	void *obj;

	if (op->object == SIM_NO_OBJECT)
		return NULL;
	at = &m->vcpus[cpu].objects[op->object];
	if (!(op->flags & SIM_OP_OWN && m->run_ahead && is_object(at->obj))) {
		sim_yield(m->sim, cpu);
		if (!at->obj) {
			at->obj = waiter_mark(cpu);
			m->dependency_ps += sim_block(m->sim, cpu);
		} else if (at->since && is_object(at->obj)) {
			wait_until_seen(m, cpu, at);
		}
	}
	obj = at->obj;
	if (!is_object(obj)) {
		m->o.skipped += obj != OBJECT_FAILED;
		return NULL;
	}
	at->obj = OBJECT_GONE;
	write_old(m, cpu, op, obj);
	return obj;
}

/* ---- kfree_rcu on variants that have none of their own ---- */

void simulated_rcu_run(struct simulated *m, uint32_t cpu, uint64_t now_ps)
{
	struct simulated_rcu *q = &m->vcpus[cpu].rcu;
	void **objs = m->vcpus[cpu].bulk;

	while (q->head < q->nr && q->entries[q->head].due_ps <= now_ps) {
		struct alloc_cache *c = q->entries[q->head].cache;
		uint64_t n = 0;

		while (q->head < q->nr && q->entries[q->head].cache == c &&
		       q->entries[q->head].due_ps <= now_ps && n < SIMULATED_BULK_MAX)
			objs[n++] = q->entries[q->head++].obj;
		m->o.v->free_bulk(c, cpu, (uint32_t)n, objs);
	}
	if (q->head == q->nr)
		q->head = q->nr = 0;
}

static void rcu_queue(struct simulated *m, uint32_t cpu, struct alloc_cache *c, void *obj)
{
	struct simulated_rcu *q = &m->vcpus[cpu].rcu;
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

/* ---- operations ---- */

static void do_alloc_bulk(struct simulated *m, uint32_t cpu, struct alloc_cache *c,
			  const struct sim_op *op)
{
	void **objs = m->vcpus[cpu].bulk;
	uint32_t got;

	for (uint32_t i = 0; m->left && i < op->nr; i++)
		free_left(m, cpu, &op[i]);
	got = m->o.v->alloc_bulk(c, cpu, op->gfp, op->nr, objs);
	for (uint32_t i = 0; i < op->nr; i++)
		publish(m, cpu, &op[i], got ? objs[i] : NULL);
}

static void do_free_bulk(struct simulated *m, uint32_t cpu, struct alloc_cache *c,
			 const struct sim_op *op)
{
	void **objs = m->vcpus[cpu].bulk;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < op->nr; i++) {
		void *obj = claim(m, cpu, &op[i]);

		if (obj)
			objs[nr++] = obj;
	}
	if (nr)
		m->o.v->free_bulk(c, cpu, nr, objs);
}

static void do_free(struct simulated *m, uint32_t cpu, struct alloc_cache *c, const struct sim_op *op)
{
	void *obj = claim(m, cpu, op);

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

	if (m->left && op->op == TAPE_OP_SHEAF_ALLOC)
		free_left(m, cpu, op);
	if (!v->prefill) {
		if (op->op == TAPE_OP_SHEAF_ALLOC)
			publish(m, cpu, op, v->alloc(c, cpu, ALLOC_NODE_ANY, op->gfp));
		return;
	}
	s = sheaf_claim(m, cpu, op);
	if (op->op == TAPE_OP_PREFILL) {
		if (*s)
			v->sheaf_return(c, cpu, *s);
		*s = v->prefill(c, cpu, op->gfp, op->object);
	} else if (op->op == TAPE_OP_SHEAF_ALLOC) {
		publish(m, cpu, op, *s ? v->sheaf_alloc(c, cpu, *s)
				       : v->alloc(c, cpu, ALLOC_NODE_ANY, op->gfp));
	} else if (*s && op->op == TAPE_OP_SHEAF_REFILL) {
		m->o.failed += v->sheaf_refill(c, cpu, op->gfp, s, op->object) < 0;
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
			simulated_rcu_run(m, cpu, SIM_NEVER);
	}
}

void simulated_execute(struct simulated *m, uint32_t cpu, const struct sim_op *op)
{
	struct alloc_cache *c = m->o.cache_of[op->cache];

	switch (op->op) {
	case TAPE_OP_ALLOC:
		if (m->left)
			free_left(m, cpu, op);
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
		alloc_cache_page_limit(c, op->aux);
		break;
	case TAPE_OP_SHRINK:
	case TAPE_OP_RCU_BARRIER:
		do_global(m, c, op);
		break;
	default:
		do_sheaf(m, cpu, c, op);
	}
}

/* The object that @op frees, when it is there already. */
static const char *to_be_freed(const struct simulated *m, const struct simulated_cpu *v,
			       const struct sim_op *op)
{
	const void *obj;

	if (!tape_op_frees(op->op) || op->object >= m->streams.objects)
		return NULL;
	obj = v->objects[op->object].obj;
	return is_object(obj) ? obj : NULL;
}

static struct alloc_slab *const *slab_of_page(const struct alloc_machine *machine, const char *obj)
{
	return &machine->page_slab[(uint64_t)(obj - machine->base) >> ALLOC_PAGE_SHIFT];
}

/*
 * Between two operations of one CPU the others run: time enough for memory to come.  Each step
 * needs what the step before brought: operation, object's entry, object, its slab.
 */
void simulated_look_ahead(const struct simulated *m, const struct simulated_cpu *v,
			  const struct sim_op *next)
{
	const struct alloc_machine *machine = m->o.machine;
	const char *obj = to_be_freed(m, v, next);

	if (obj)
		__builtin_prefetch(*slab_of_page(machine, obj), 1);
	obj = to_be_freed(m, v, next + 1);
	if (obj) {
		__builtin_prefetch(obj, 1);
		__builtin_prefetch(slab_of_page(machine, obj));
		__builtin_prefetch(sim_lines_owner(&m->sim->lines, obj), 1);
	}
	if (next[2].object < m->streams.objects)
		__builtin_prefetch(&v->objects[next[2].object], 1);
	__builtin_prefetch(next + 3);
}
