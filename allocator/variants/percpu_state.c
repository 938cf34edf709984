/* SPDX-License-Identifier: MIT */
/* What can be seen of a cache from outside: sysfs values, invariants, the dump of the goldens. */
#include "allocator/variants/percpu.h"
#include "allocator/variants/slub_common.h"

void percpu_cached(const struct alloc_cache *c, struct alloc_cached *by_node)
{
	const struct percpu_cache *p = percpu_cache(c);

	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++) {
		const struct percpu_cpu *pc = &p->cpus[cpu];
		struct alloc_cached *at = &by_node[c->machine->cpu_node[cpu]];

		if (pc->slab)
			at->objs += alloc_freelist_length(c, pc->freelist, pc->slab->word.objects);
		if (p->queues)
			at->objs += p->queues[cpu].in_nr + p->queues[cpu].out_nr +
				    alloc_freelist_length(c, pc->claimed, UINT32_MAX - 1);
	}
}

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
			st.cpu_slabs += p->policy->era == ALLOC_ERA_3_2 ? head->pobjects
									: head->slabs;
	}
	alloc_cached_sum(c, &st);
	*ret_state = st;
}

static int broken(char *why, size_t why_bytes, const struct alloc_slab *s, uint32_t cpu,
		  const char *what)
{
	snprintf(why, why_bytes, "slab %u (cpu %u): %s", s->id, cpu, what);
	return -1;
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
		const struct percpu_cpu *pc = &p->cpus[cpu];

		if (slub_check_cpu_slab(c, cpu, pc->slab, pc->freelist, why, why_bytes) < 0 ||
		    check_cpu_partial(p, cpu, &cpu_partial, why, why_bytes) < 0)
			return -1;
		if (p->queues && check_queue(p, cpu, why, why_bytes) < 0)
			return -1;
		cpu_slabs += pc->slab != NULL;
	}
	return slub_check_census(c, p->nodes, cpu_slabs, cpu_partial, why, why_bytes);
}

void percpu_each_free(const struct alloc_cache *c, alloc_obj_fn fn, void *ctx)
{
	struct percpu_cache *p = percpu_cache(c);

	alloc_slabs_each_free(c, fn, ctx);
	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++) {
		alloc_list_each(c, p->cpus[cpu].freelist, fn, ctx);
		alloc_list_each(c, p->cpus[cpu].claimed, fn, ctx);
		if (!p->queues)
			continue;
		alloc_list_each(c, p->queues[cpu].in_head, fn, ctx);
		alloc_list_each(c, p->queues[cpu].out_head, fn, ctx);
	}
}

static void dump_cpu(const struct percpu_cache *p, struct alloc_dump *d, uint32_t cpu, bool full)
{
	const struct percpu_cpu *pc = &p->cpus[cpu];
	const struct alloc_cache *c = &p->head;
	char key[16];

	snprintf(key, sizeof(key), "%u", cpu);
	d->object_begin(d->ctx, key);
	if (pc->slab)
		slub_dump_cpu_slab(c, d, pc->slab, pc->freelist, full);
	if (pc->partial)
		d->array_begin(d->ctx, "partial");
	for (const struct alloc_slab *s = pc->partial; s; s = percpu_next(s)) {
		slub_dump_slab_begin(c, d, NULL, s, full);
		d->number(d->ctx, "count", s->slabs);
		if (p->policy->limit_in_objs)
			d->number(d->ctx, "pobjects", s->pobjects);
		d->end(d->ctx);
	}
	if (pc->partial)
		d->end(d->ctx);
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
	slub_dump_nodes(c, d, p->nodes, full);
}
