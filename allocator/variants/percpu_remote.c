/* SPDX-License-Identifier: MIT */
/*
 * slub-6.1-remotequeue: objects go home in batches (the idea of 2011; the design is this
 * project's, the numbers are SLQB's).
 *
 *	CPU b frees an object that CPU a last had in its slab
 *	  b's outgoing queue {target a} --batch full--> a's incoming list
 *	  a's incoming list --a runs dry--> a's claimed objects
 *
 * A free joins the outgoing queue when the object's slab is not the CPU's own and was last loaded
 * by another CPU.  A queue holds objects of one target only.  When the target has more than
 * `remote_high` objects waiting, the batch goes to the slabs at once.
 */
#include "allocator/variants/percpu.h"

#include <errno.h>

int percpu_remote_create(struct percpu_cache *p)
{
	uint32_t cpus = p->head.machine->cpus;

	p->queues = aligned_alloc(64, cpus * sizeof(*p->queues));
	if (!p->queues)
		return -ENOMEM;
	memset(p->queues, 0, cpus * sizeof(*p->queues));
	for (uint32_t cpu = 0; cpu < cpus; cpu++)
		alloc_lock_init(&p->queues[cpu].lock, &p->head, p->head.machine->cpu_node[cpu],
				ALLOC_LOCK_REMOTE, ALLOC_RANK_CPU);
	return 0;
}

/* Every object of @list to its slab, as the slow path would, FREE_SLOWPATH not counted again. */
static void free_each_to_slab(struct percpu_cache *p, uint32_t cpu, void *list)
{
	void *next;

	for (; list; list = next) {
		next = alloc_free_next(&p->head, list);
		percpu_free_to_slab(p, cpu, alloc_obj_slab(p->head.machine, list), list, list, 1);
	}
}

static void *take_outgoing(struct percpu_queue *q)
{
	void *list = q->out_head;

	q->out_head = q->out_tail = NULL;
	q->out_nr = 0;
	return list;
}

static void flush_outgoing(struct percpu_cache *p, uint32_t cpu)
{
	struct percpu_queue *q = &p->queues[cpu], *home = &p->queues[q->out_target];

	if (!q->out_nr)
		return;
	alloc_count(&p->head, cpu, ALLOC_C_REMOTE_FLUSH);
	alloc_count_add(&p->head, cpu, ALLOC_C_REMOTE_FLUSH_OBJECTS, q->out_nr);
	if (alloc_racy_read(cpu, &home->in_nr) > p->queue_high) {
		free_each_to_slab(p, cpu, take_outgoing(q));
		return;
	}
	assert(q->out_target != cpu && q->out_tail);
	alloc_lock_acquire(&home->lock, cpu, ALLOC_PATH_FREE);
	if (home->in_tail)
		alloc_free_link(&p->head, home->in_tail, q->out_head);
	else
		home->in_head = q->out_head;
	home->in_tail = q->out_tail;
	if (home->in_nr < p->queue_batch && home->in_nr + q->out_nr >= p->queue_batch)
		alloc_shared_write(&home->in_check, 1);
	alloc_shared_write(&home->in_nr, home->in_nr + q->out_nr);
	alloc_lock_release(&home->lock, cpu);
	take_outgoing(q);
}

void percpu_remote_free_slow(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, void *head,
			     void *tail, uint32_t cnt)
{
	struct percpu_queue *q = &p->queues[cpu];
	uint32_t home;

	alloc_word_read(cpu, s); /* simulated: the slab's structure comes here, in its turn */
	/* Relaxed: a hint; a stale home costs a detour and nothing else. */
	home = __atomic_load_n(&s->origin_cpu, __ATOMIC_RELAXED);
	if (home == cpu) {
		percpu_free_slow(p, cpu, s, head, tail, cnt);
		return;
	}
	alloc_count(&p->head, cpu, ALLOC_C_FREE_SLOWPATH);
	alloc_count_add(&p->head, cpu, ALLOC_C_REMOTE_QUEUE, cnt);
	assert(home < p->head.machine->cpus && cnt);
	if (q->out_target != home)
		flush_outgoing(p, cpu);
	q->out_target = home;
	alloc_free_link(&p->head, tail, NULL);
	if (q->out_tail)
		alloc_free_link(&p->head, q->out_tail, head);
	else
		q->out_head = head;
	q->out_tail = tail;
	q->out_nr += cnt;
	if (q->out_nr >= p->queue_batch)
		flush_outgoing(p, cpu);
}

/* The whole incoming list of @cpu; its length is added to *ret_nr. */
static void *take_incoming(struct percpu_cache *p, uint32_t cpu, uint64_t *ret_nr)
{
	struct percpu_queue *q = &p->queues[cpu];
	void *list;

	alloc_lock_acquire(&q->lock, cpu, ALLOC_PATH_REFILL);
	list = q->in_head;
	assert(!list == !q->in_nr);
	*ret_nr = q->in_nr;
	q->in_head = q->in_tail = NULL;
	alloc_shared_write(&q->in_nr, 0);
	alloc_shared_write(&q->in_check, 0);
	alloc_lock_release(&q->lock, cpu);
	return list;
}

/* First claimed object if it fits the node asked for. */
static void *pop_claimed(struct percpu_cache *p, uint32_t cpu, int32_t node)
{
	struct percpu_cpu *pc = &p->cpus[cpu];
	void *obj = pc->claimed;

	if (!obj || percpu_wrong_node(alloc_obj_slab(p->head.machine, obj), node))
		return NULL;
	pc->claimed = alloc_free_next(&p->head, obj);
	return obj;
}

void *percpu_remote_alloc_slow(struct percpu_cache *p, uint32_t cpu, int32_t node, uint32_t gfp)
{
	void *obj = pop_claimed(p, cpu, node);
	uint64_t nr;

	if (obj) {
		alloc_count(&p->head, cpu, ALLOC_C_ALLOC_FASTPATH);
		return obj;
	}
	if (!p->cpus[cpu].claimed && alloc_racy_read(cpu, &p->queues[cpu].in_check)) {
		p->cpus[cpu].claimed = take_incoming(p, cpu, &nr);
		alloc_count(&p->head, cpu, ALLOC_C_REMOTE_CLAIM);
		alloc_count_add(&p->head, cpu, ALLOC_C_REMOTE_CLAIM_OBJECTS, nr);
		obj = pop_claimed(p, cpu, node);
		if (obj) {
			alloc_count(&p->head, cpu, ALLOC_C_ALLOC_SLOWPATH);
			return obj;
		}
	}
	return percpu_alloc_slow(p, cpu, node, gfp);
}

void percpu_remote_flush_cpu(struct alloc_cache *c, uint32_t cpu)
{
	struct percpu_cache *p = percpu_cache(c);
	uint64_t nr;

	if (p->queues) { /* not while the cache is being made */
		void *claimed = p->cpus[cpu].claimed;

		p->cpus[cpu].claimed = NULL;
		free_each_to_slab(p, cpu, claimed);
		free_each_to_slab(p, cpu, take_incoming(p, cpu, &nr));
		free_each_to_slab(p, cpu, take_outgoing(&p->queues[cpu]));
	}
	percpu_flush_cpu(c, cpu);
}
