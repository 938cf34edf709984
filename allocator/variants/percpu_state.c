/* SPDX-License-Identifier: MIT */
/* What can be seen of a cache from outside: sysfs values, invariants, the dump of the goldens. */
#include "allocator/dump.h"
#include "allocator/variants/percpu.h"

void percpu_state(const struct alloc_cache *c, struct alloc_cache_state *ret_state)
{
	struct percpu_cache *p = percpu_cache(c);
	struct alloc_cache_state st = { 0 };

	alloc_nodes_state(c, p->nodes, &st);
	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++) {
		const struct percpu_cpu *pc = &p->cpus[cpu];
		const struct alloc_slab *head = pc->partial;

		st.slabs_cpu_partial += head ? head->slabs : 0;
		if (!pc->slab)
			continue; /* its partial slabs are skipped too, as in the kernel */
		st.cpu_slabs++;
		/* 3.2 adds the estimate of objects where it means slabs. */
		if (head)
			st.cpu_slabs += p->policy->era == ALLOC_ERA_3_2 ? head->pobjects : head->slabs;
		st.cached_objs += alloc_freelist_length(c, pc->freelist, pc->slab->word.objects);
	}
	for (uint32_t cpu = 0; p->queues && cpu < c->machine->cpus; cpu++)
		st.cached_objs += p->queues[cpu].in_nr + p->queues[cpu].out_nr +
				  alloc_freelist_length(c, p->cpus[cpu].claimed, UINT32_MAX - 1);
	*ret_state = st;
}

static int broken(char *why, size_t why_bytes, const struct alloc_slab *s, uint32_t cpu,
		  const char *what)
{
	snprintf(why, why_bytes, "slab %u (cpu %u): %s", s->id, cpu, what);
	return -1;
}

/* The CPU's slab: frozen, its two lists disjoint parts of the slab. */
static int check_cpu_slab(const struct percpu_cache *p, uint32_t cpu, char *why, size_t why_bytes)
{
	const struct percpu_cpu *pc = &p->cpus[cpu];
	const struct alloc_slab *s = pc->slab;

	if (!s && pc->freelist) {
		snprintf(why, why_bytes, "cpu %u has objects and no slab", cpu);
		return -1;
	}
	if (!s)
		return 0;
	if (s->state != ALLOC_STATE_CPU || !s->word.frozen || s->flags & ALLOC_SLAB_LISTED)
		return broken(why, why_bytes, s, cpu, "is the cpu slab and not in its state");
	if (alloc_freelist_length(&p->head, pc->freelist, s->word.objects) > s->word.inuse)
		return broken(why, why_bytes, s, cpu, "more objects on the CPU than in use");
	for (const void *o = pc->freelist; o; o = alloc_free_next(&p->head, o))
		if (alloc_obj_slab(p->head.machine, o) != s)
			return broken(why, why_bytes, s, cpu, "an object of another slab on the CPU");
	return alloc_slab_check(&p->head, s, why, why_bytes);
}

static int check_cpu_partial(const struct percpu_cache *p, uint32_t cpu, uint64_t *ret_slabs,
			     char *why, size_t why_bytes)
{
	for (const struct alloc_slab *s = p->cpus[cpu].partial; s; s = percpu_next(s)) {
		const struct alloc_slab *next = percpu_next(s);

		if (s->state != ALLOC_STATE_CPU_PARTIAL || s->flags & ALLOC_SLAB_LISTED ||
		    s->word.frozen != p->policy->freeze_partials || !s->word.freelist)
			return broken(why, why_bytes, s, cpu, "does not belong on the cpu list");
		if (s->slabs != (next ? next->slabs : 0) + 1)
			return broken(why, why_bytes, s, cpu, "wrong length of the cpu list");
		if (alloc_slab_check(&p->head, s, why, why_bytes) < 0)
			return -1;
		++*ret_slabs;
	}
	return 0;
}

struct census {
	const struct percpu_cache *cache;
	uint64_t states[ALLOC_STATE_MAX], slabs, objects;
	const struct alloc_slab *bad;
};

static void count_slab(void *ctx, struct alloc_slab *s)
{
	struct census *n = ctx;

	n->states[s->state]++;
	n->slabs++;
	n->objects += s->word.objects;
	if (s->state == ALLOC_STATE_FULL &&
	    (s->word.freelist || s->word.frozen || s->word.inuse != s->word.objects))
		n->bad = s;
	if ((s->state == ALLOC_STATE_EMPTY && s->word.inuse) || s->state == ALLOC_STATE_NONE)
		n->bad = s;
}

/* Every slab is where its state says, and none is lost. */
static int check_census(const struct percpu_cache *p, uint64_t cpu_slabs, uint64_t cpu_partial,
			char *why, size_t why_bytes)
{
	struct census n = { .cache = p };
	struct alloc_cache_state st = { 0 };

	alloc_slabs_each(&p->head, count_slab, &n);
	alloc_nodes_state(&p->head, p->nodes, &st);
	if (n.bad)
		return broken(why, why_bytes, n.bad, 0, "state and count disagree");
	if (n.slabs != st.slabs || n.objects != st.total_objects ||
	    n.states[ALLOC_STATE_CPU] != cpu_slabs ||
	    n.states[ALLOC_STATE_CPU_PARTIAL] != cpu_partial ||
	    n.states[ALLOC_STATE_PARTIAL] + n.states[ALLOC_STATE_EMPTY] != st.partial) {
		snprintf(why, why_bytes,
			 "%llu slabs live, nodes say %llu; %llu of %llu cpu, %llu of %llu cpu_partial",
			 (unsigned long long)n.slabs, (unsigned long long)st.slabs,
			 (unsigned long long)cpu_slabs,
			 (unsigned long long)n.states[ALLOC_STATE_CPU],
			 (unsigned long long)cpu_partial,
			 (unsigned long long)n.states[ALLOC_STATE_CPU_PARTIAL]);
		return -1;
	}
	return 0;
}

static int check_queue(const struct percpu_cache *p, uint32_t cpu, char *why, size_t why_bytes)
{
	const struct percpu_queue *q = &p->queues[cpu];

	if (alloc_freelist_length(&p->head, q->in_head, UINT32_MAX - 1) == q->in_nr &&
	    alloc_freelist_length(&p->head, q->out_head, UINT32_MAX - 1) == q->out_nr)
		return 0;
	snprintf(why, why_bytes, "cpu %u: a queue's length and count disagree", cpu);
	return -1;
}

int percpu_check(const struct alloc_cache *c, char *why, size_t why_bytes)
{
	struct percpu_cache *p = percpu_cache(c);
	uint64_t cpu_slabs = 0, cpu_partial = 0;

	for (uint32_t i = 0; i < c->machine->nodes; i++)
		if (alloc_node_check(c, &p->nodes[i], why, why_bytes) < 0)
			return -1;
	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++) {
		if (check_cpu_slab(p, cpu, why, why_bytes) < 0 ||
		    check_cpu_partial(p, cpu, &cpu_partial, why, why_bytes) < 0)
			return -1;
		if (p->queues && check_queue(p, cpu, why, why_bytes) < 0)
			return -1;
		cpu_slabs += p->cpus[cpu].slab != NULL;
	}
	return check_census(p, cpu_slabs, cpu_partial, why, why_bytes);
}

static void dump_list(const struct alloc_cache *c, struct alloc_dump *d, const char *key,
		      const struct alloc_slab *s, const void *list)
{
	d->array_begin(d->ctx, key);
	for (; list; list = alloc_free_next(c, list))
		d->number(d->ctx, NULL, alloc_obj_index(c, s, list));
	d->end(d->ctx);
}

/* The keys every slab has; the caller adds its own and ends the object. */
static void dump_slab_begin(const struct alloc_cache *c, struct alloc_dump *d, const char *key,
			    const struct alloc_slab *s, bool full)
{
	d->object_begin(d->ctx, key);
	d->slab(d->ctx, "slab", s);
	d->number(d->ctx, "node", s->node);
	d->number(d->ctx, "inuse", s->word.inuse);
	d->number(d->ctx, "objects", s->word.objects);
	d->number(d->ctx, "frozen", s->word.frozen);
	if (full)
		dump_list(c, d, "free", s, s->word.freelist);
}

static void dump_cpu(const struct percpu_cache *p, struct alloc_dump *d, uint32_t cpu, bool full)
{
	const struct percpu_cpu *pc = &p->cpus[cpu];
	const struct alloc_cache *c = &p->head;
	char key[16];

	snprintf(key, sizeof(key), "%u", cpu);
	d->object_begin(d->ctx, key);
	if (pc->slab) {
		dump_slab_begin(c, d, "slab", pc->slab, full);
		if (full)
			dump_list(c, d, "cpu_free", pc->slab, pc->freelist);
		d->end(d->ctx);
	}
	if (pc->partial)
		d->array_begin(d->ctx, "partial");
	for (const struct alloc_slab *s = pc->partial; s; s = percpu_next(s)) {
		dump_slab_begin(c, d, NULL, s, full);
		d->number(d->ctx, "count", s->slabs);
		if (p->policy->limit_in_objs)
			d->number(d->ctx, "pobjects", s->pobjects);
		d->end(d->ctx);
	}
	if (pc->partial)
		d->end(d->ctx);
	d->end(d->ctx);
}

static void dump_node(const struct percpu_cache *p, struct alloc_dump *d, uint32_t node, bool full)
{
	const struct alloc_node *n = &p->nodes[node];
	const struct alloc_slab *s = alloc_partial_first(n);
	char key[16];

	snprintf(key, sizeof(key), "%u", node);
	d->object_begin(d->ctx, key);
	d->number(d->ctx, "nr_partial", (int64_t)n->nr_partial);
	d->number(d->ctx, "nr_slabs", (int64_t)n->nr_slabs);
	d->number(d->ctx, "total_objects", (int64_t)n->total_objects);
	if (s) {
		d->array_begin(d->ctx, "partial");
		for (; s; s = alloc_partial_next(n, s)) {
			dump_slab_begin(&p->head, d, NULL, s, full);
			d->end(d->ctx);
		}
		d->end(d->ctx);
	}
	d->end(d->ctx);
}

void percpu_dump(const struct alloc_cache *c, struct alloc_dump *d, bool full)
{
	struct percpu_cache *p = percpu_cache(c);

	d->object_begin(d->ctx, "cpus");
	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++)
		if (p->cpus[cpu].slab || p->cpus[cpu].partial)
			dump_cpu(p, d, cpu, full);
	d->end(d->ctx);
	d->object_begin(d->ctx, "nodes");
	for (uint32_t node = 0; node < c->machine->nodes; node++)
		dump_node(p, d, node, full);
	d->end(d->ctx);
	if (full)
		alloc_dump_slabs(c, d);
}
