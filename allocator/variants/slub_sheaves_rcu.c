/* SPDX-License-Identifier: MIT */
/*
 * kfree_rcu batching and prefilled sheaves of slub-7.2 (specification 8.7, 8.8).
 *
 *	free_rcu -> rcu_free sheaf --full--> waiting --grace period over--> barn, or flushed
 *	        \-> deferred (another node's object, no memory) ----------> one bulk free
 *
 * Grace periods are a delay in tape time, rcu_delay_ns from the CPU's last tick; 0 ends them
 * inside the operation that filled the sheaf.
 */
#include "allocator/variants/slub_sheaves.h"

#include <errno.h>
#include <stdlib.h>

/* The grace period of @s is over. */
static void rcu_done(struct sheaves_cache *sc, uint32_t cpu, struct alloc_sheaf *s)
{
	struct sheaves_barn *b = &sc->barns[sc->cpus[cpu].node];

	if (s->to_barn && !sheaves_barn_crowded(sc, cpu)) {
		sheaves_barn_put_full(sc, cpu, s);
		alloc_count(&sc->head, cpu, ALLOC_C_BARN_PUT);
		return;
	}
	if (s->to_barn)
		alloc_count(&sc->head, cpu, ALLOC_C_BARN_PUT_FAIL);
	sheaves_flush(sc, cpu, s);
	if (s->to_barn && alloc_racy_read(cpu, &b->nr_empty) < SHEAVES_BARN_EMPTY_MAX)
		sheaves_barn_put_empty(sc, cpu, s);
	else
		sheaves_drop(sc, cpu, s);
}

void sheaves_rcu_start(struct sheaves_cache *sc, uint32_t cpu, struct alloc_sheaf *s, bool to_barn)
{
	struct sheaves_cpu *pc = &sc->cpus[cpu];

	s->to_barn = to_barn;
	s->next = NULL;
	s->due_ns = pc->now_ns + (uint64_t)sc->rcu_delay_ns;
	if (!sc->rcu_delay_ns) {
		rcu_done(sc, cpu, s);
		return;
	}
	*pc->waiting_end = s;
	pc->waiting_end = &s->next;
}

/* End the grace periods that are due at @now_ns, oldest first. */
static void end_waiting(struct sheaves_cache *sc, uint32_t cpu, uint64_t now_ns)
{
	struct sheaves_cpu *pc = &sc->cpus[cpu];
	struct alloc_sheaf *s;

	while ((s = pc->waiting) && s->due_ns <= now_ns) {
		pc->waiting = s->next;
		if (!pc->waiting)
			pc->waiting_end = &pc->waiting;
		rcu_done(sc, cpu, s);
	}
}

/* The queue is taken over first: a simulated CPU may queue more while its objects are freed. */
static void free_deferred(struct sheaves_cache *sc, uint32_t cpu)
{
	struct sheaves_cpu *pc = &sc->cpus[cpu];
	uint32_t nr = pc->nr_deferred;
	void **objs = pc->deferred;

	if (!nr)
		return;
	pc->deferred = NULL;
	pc->nr_deferred = pc->room_deferred = 0;
	sheaves_free_bulk(&sc->head, cpu, nr, objs);
	free(objs);
}

/* Not for a sheaf: one bulk free after the grace period of the first object queued. */
static void defer(struct sheaves_cache *sc, uint32_t cpu, void *obj)
{
	struct sheaves_cpu *pc = &sc->cpus[cpu];

	if (pc->nr_deferred == pc->room_deferred) {
		uint32_t room = 2 * pc->room_deferred + SHEAVES_BATCH;
		void **array = realloc(pc->deferred, room * sizeof(*array));

		if (!array) {
			/* The kernel waits for a grace period here and frees directly, too. */
			sheaves_free(&sc->head, cpu, obj);
			return;
		}
		pc->deferred = array;
		pc->room_deferred = room;
	}
	if (!pc->nr_deferred)
		pc->deferred_due_ns = pc->now_ns + (uint64_t)sc->rcu_delay_ns;
	pc->deferred[pc->nr_deferred++] = obj;
}

/* An empty sheaf to collect in: the spare if it is empty, one of the barn, a new one, or NULL. */
static struct alloc_sheaf *rcu_sheaf(struct sheaves_cache *sc, uint32_t cpu)
{
	struct sheaves_cpu *pc = &sc->cpus[cpu];
	struct alloc_sheaf *s = pc->spare;

	if (s && !s->size) {
		pc->spare = NULL;
		return s;
	}
	s = sheaves_barn_get_empty(sc, cpu);
	return s ? s : sheaves_new(sc, cpu, (uint32_t)sc->capacity);
}

void sheaves_free_rcu(struct alloc_cache *c, uint32_t cpu, void *obj)
{
	struct sheaves_cache *sc = sheaves_of(c);
	struct sheaves_cpu *pc = &sc->cpus[cpu];
	struct alloc_sheaf *s;

	if (alloc_obj_slab(c->machine, obj)->node != pc->node) {
		defer(sc, cpu, obj);
		return;
	}
	if (!pc->rcu_free && !(pc->rcu_free = rcu_sheaf(sc, cpu))) {
		alloc_count(c, cpu, ALLOC_C_FREE_RCU_SHEAF_FAIL);
		defer(sc, cpu, obj);
		return;
	}
	s = pc->rcu_free;
	s->objects[s->size++] = obj;
	alloc_count(c, cpu, ALLOC_C_FREE_RCU_SHEAF);
	if (s->size == s->capacity) {
		pc->rcu_free = NULL;
		sheaves_rcu_start(sc, cpu, s, true);
	}
}

void sheaves_rcu_barrier(struct alloc_cache *c)
{
	struct sheaves_cache *sc = sheaves_of(c);

	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++) {
		struct sheaves_cpu *pc = &sc->cpus[cpu];
		struct alloc_sheaf *s = pc->rcu_free;

		end_waiting(sc, cpu, UINT64_MAX);
		pc->rcu_free = NULL;
		if (s) {
			sheaves_flush(sc, cpu, s);
			sheaves_drop(sc, cpu, s);
		}
		free_deferred(sc, cpu);
	}
}

void sheaves_tick(struct alloc_cache *c, uint32_t cpu, uint64_t now_ns)
{
	struct sheaves_cache *sc = sheaves_of(c);
	struct sheaves_cpu *pc = &sc->cpus[cpu];

	pc->now_ns = now_ns;
	end_waiting(sc, cpu, now_ns);
	if (pc->nr_deferred && pc->deferred_due_ns <= now_ns)
		free_deferred(sc, cpu);
	if (sc->policy)
		sc->policy->tick(sc, cpu, now_ns);
}

/* Larger than a regular sheaf: a sheaf of its own, filled like a bulk allocation. */
static struct alloc_sheaf *prefill_oversize(struct sheaves_cache *sc, uint32_t cpu, uint32_t gfp,
					    uint32_t objs)
{
	struct alloc_sheaf *s = sheaves_new(sc, cpu, objs);

	if (!s)
		return NULL;
	alloc_count(&sc->head, cpu, ALLOC_C_SHEAF_PREFILL_OVERSIZE);
	s->size = sheaves_alloc_bulk_slow(sc, cpu, gfp, objs, s->objects);
	if (s->size == objs)
		return s;
	sheaves_drop(sc, cpu, s);
	return NULL;
}

/* A sheaf to fill: the spare, one of the barn, or a new one. */
static struct alloc_sheaf *prefill_take(struct sheaves_cache *sc, uint32_t cpu)
{
	struct alloc_cache *c = &sc->head;
	struct sheaves_cpu *pc = &sc->cpus[cpu];
	struct alloc_sheaf *s = pc->spare;

	if (s) {
		pc->spare = NULL;
		alloc_count(c, cpu, ALLOC_C_SHEAF_PREFILL_FAST);
		return s;
	}
	alloc_count(c, cpu, ALLOC_C_SHEAF_PREFILL_SLOW);
	s = sheaves_barn_get_any(sc, cpu);
	alloc_count(c, cpu, s && s->size ? ALLOC_C_BARN_GET : ALLOC_C_BARN_GET_FAIL);
	return s ? s : sheaves_new(sc, cpu, (uint32_t)sc->capacity);
}

struct alloc_sheaf *sheaves_prefill(struct alloc_cache *c, uint32_t cpu, uint32_t gfp,
				    uint32_t objs)
{
	struct sheaves_cache *sc = sheaves_of(c);
	struct alloc_sheaf *s;

	if (objs > sc->capacity)
		return prefill_oversize(sc, cpu, gfp, objs);
	s = prefill_take(sc, cpu);
	if (s && s->size < objs && sheaves_refill(sc, cpu, gfp, s) < 0) {
		sheaves_flush(sc, cpu, s);
		sheaves_drop(sc, cpu, s);
		return NULL;
	}
	return s;
}

void *sheaves_sheaf_alloc(struct alloc_cache *c, uint32_t cpu, struct alloc_sheaf *s)
{
	(void)c;
	(void)cpu;
	return s->size ? s->objects[--s->size] : NULL;
}

int sheaves_sheaf_refill(struct alloc_cache *c, uint32_t cpu, uint32_t gfp,
			 struct alloc_sheaf **s, uint32_t objs)
{
	struct sheaves_cache *sc = sheaves_of(c);
	struct alloc_sheaf *old = *s, *new;
	uint32_t want = old->capacity - old->size;

	if (old->size >= objs)
		return 0;
	if (objs <= old->capacity && old->capacity == sc->capacity)
		return sheaves_refill(sc, cpu, gfp, old);
	if (objs <= old->capacity) {
		if (!sheaves_alloc_bulk_slow(sc, cpu, gfp, want, old->objects + old->size))
			return -ENOMEM;
		old->size += want;
		return 0;
	}
	new = sheaves_prefill(c, cpu, gfp, objs);
	if (!new)
		return -ENOMEM;
	*s = new;
	sheaves_sheaf_return(c, cpu, old);
	return 0;
}

void sheaves_sheaf_return(struct alloc_cache *c, uint32_t cpu, struct alloc_sheaf *s)
{
	struct sheaves_cache *sc = sheaves_of(c);
	struct sheaves_cpu *pc = &sc->cpus[cpu];
	bool regular = s->capacity == sc->capacity;

	if (regular && !pc->spare) {
		pc->spare = s;
		alloc_count(c, cpu, ALLOC_C_SHEAF_RETURN_FAST);
		return;
	}
	if (regular)
		alloc_count(c, cpu, ALLOC_C_SHEAF_RETURN_SLOW);
	if (!regular || sheaves_barn_crowded(sc, cpu) ||
	    sheaves_refill(sc, cpu, ALLOC_GFP_MAY_BLOCK | ALLOC_GFP_MAY_SPIN, s) < 0) {
		sheaves_flush(sc, cpu, s);
		sheaves_drop(sc, cpu, s);
		return;
	}
	sheaves_barn_put_full(sc, cpu, s);
	alloc_count(c, cpu, ALLOC_C_BARN_PUT);
}
