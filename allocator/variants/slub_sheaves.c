/* SPDX-License-Identifier: MIT */
/*
 * Variant slub-7.2: allocation and free of single objects through sheaves, bulk calls, flush.
 *
 *	alloc:	main -> spare -> full sheaf of the barn -> refill of an empty sheaf -> one object
 *	free:	main -> spare -> barn exchange -> a new sheaf; another node's object: its slab
 *
 * The kernel drops its per-CPU lock around refills and sheaf allocations and looks again
 * afterwards; here a CPU is inside one operation at a time, so what it left is what it finds.
 */
#include "allocator/variants/slub_sheaves.h"

ALLOC_VARIANT_DECLARE(slub_7_2);

static const uint8_t slub_7_2_counters[] = {
	ALLOC_C_ALLOC_FASTPATH, ALLOC_C_ALLOC_SLOWPATH, ALLOC_C_FREE_RCU_SHEAF,
	ALLOC_C_FREE_RCU_SHEAF_FAIL, ALLOC_C_FREE_FASTPATH, ALLOC_C_FREE_SLOWPATH,
	ALLOC_C_FREE_ADD_PARTIAL, ALLOC_C_FREE_REMOVE_PARTIAL, ALLOC_C_ALLOC_SLAB,
	ALLOC_C_ALLOC_NODE_MISMATCH, ALLOC_C_FREE_SLAB, ALLOC_C_ORDER_FALLBACK,
	ALLOC_C_CMPXCHG_DOUBLE_FAIL, ALLOC_C_SHEAF_FLUSH, ALLOC_C_SHEAF_REFILL,
	ALLOC_C_SHEAF_ALLOC, ALLOC_C_SHEAF_FREE, ALLOC_C_BARN_GET, ALLOC_C_BARN_GET_FAIL,
	ALLOC_C_BARN_PUT, ALLOC_C_BARN_PUT_FAIL, ALLOC_C_SHEAF_PREFILL_FAST,
	ALLOC_C_SHEAF_PREFILL_SLOW, ALLOC_C_SHEAF_PREFILL_OVERSIZE, ALLOC_C_SHEAF_RETURN_FAST,
	ALLOC_C_SHEAF_RETURN_SLOW,
};

static void swap_main(struct sheaves_cpu *pc)
{
	struct alloc_sheaf *s = pc->main;

	pc->main = pc->spare;
	pc->spare = s;
}

/* main is empty: a sheaf with objects from the spare or the barn takes its place.  False: none. */
static bool full_to_main(struct sheaves_cache *sc, uint32_t cpu)
{
	struct sheaves_cpu *pc = &sc->cpus[cpu];
	struct alloc_sheaf *full;

	assert(!pc->main->size);
	if (pc->spare && pc->spare->size) {
		swap_main(pc);
		alloc_note_refill(&sc->head, cpu, ALLOC_REFILL_SPARE, pc->main->size);
		return true;
	}
	full = sheaves_barn_swap_empty(sc, cpu, pc->main);
	if (!full) {
		alloc_count(&sc->head, cpu, ALLOC_C_BARN_GET_FAIL);
		return false;
	}
	alloc_count(&sc->head, cpu, ALLOC_C_BARN_GET);
	pc->main = full;
	alloc_note_refill(&sc->head, cpu, ALLOC_REFILL_BARN, full->size);
	return true;
}

/* main is empty and nothing full is near: fill an empty sheaf from slabs.  False: no memory. */
static bool refill_main(struct sheaves_cache *sc, uint32_t cpu, uint32_t gfp)
{
	struct sheaves_cpu *pc = &sc->cpus[cpu];
	struct alloc_sheaf *s;

	if (full_to_main(sc, cpu))
		return true;
	s = pc->spare;
	pc->spare = NULL;
	if (!s)
		s = sheaves_barn_get_empty(sc, cpu);
	if (!s && !(s = sheaves_new(sc, cpu, (uint32_t)sc->capacity)))
		return false;
	if (sheaves_refill(sc, cpu, gfp, s) < 0) {
		sheaves_flush(sc, cpu, s);
		sheaves_drop(sc, cpu, s);
		return false;
	}
	pc->spare = pc->main;
	pc->main = s;
	return true;
}

static void *pop_main(struct sheaves_cache *sc, uint32_t cpu, struct alloc_sheaf *s)
{
	void *obj = s->objects[--s->size];

	alloc_count(&sc->head, cpu, ALLOC_C_ALLOC_FASTPATH);
	return obj;
}

/* All that is not a pop from main.  Kept out of line so that the pop needs no stack frame. */
static __attribute__((noinline)) void *alloc_rare(struct sheaves_cache *sc, uint32_t cpu,
						  int32_t node, uint32_t gfp)
{
	struct sheaves_cpu *pc = &sc->cpus[cpu];
	struct alloc_sheaf *s;

	if (node != ALLOC_NODE_ANY && node != pc->node) {
		alloc_count(&sc->head, cpu, ALLOC_C_ALLOC_NODE_MISMATCH);
		return sheaves_alloc_slow(sc, cpu, node, gfp);
	}
	if (!pc->main->size && !refill_main(sc, cpu, gfp))
		return sheaves_alloc_slow(sc, cpu, node, gfp);
	s = pc->main;
	if (node != ALLOC_NODE_ANY &&
	    alloc_obj_slab(sc->head.machine, s->objects[s->size - 1])->node != node) {
		alloc_count(&sc->head, cpu, ALLOC_C_ALLOC_NODE_MISMATCH);
		return sheaves_alloc_slow(sc, cpu, node, gfp);
	}
	return pop_main(sc, cpu, s);
}

void *sheaves_alloc(struct alloc_cache *c, uint32_t cpu, int32_t node, uint32_t gfp)
{
	struct sheaves_cache *sc = sheaves_of(c);
	struct alloc_sheaf *s = sc->cpus[cpu].main;

	if (__builtin_expect(node == ALLOC_NODE_ANY && s->size, 1))
		return pop_main(sc, cpu, s);
	return alloc_rare(sc, cpu, node, gfp);
}

/* main and spare are full and the barn took nothing: @s, an empty sheaf, becomes main. */
static void install_empty(struct sheaves_cache *sc, uint32_t cpu, struct alloc_sheaf *s)
{
	struct sheaves_cpu *pc = &sc->cpus[cpu];

	if (!pc->spare) {
		pc->spare = pc->main;
	} else {
		sheaves_barn_put_full(sc, cpu, pc->main); /* beyond the limit if need be */
		alloc_count(&sc->head, cpu, ALLOC_C_BARN_PUT);
	}
	pc->main = s;
}

/*
 * main is full: make room from what is at hand (spare, barn).  False: only a new sheaf or a flush
 * helps; *ret_refused then says that the barn refused a full sheaf, *ret_crowded that it did so
 * because it has enough of them.
 */
static bool room_at_hand(struct sheaves_cache *sc, uint32_t cpu, bool *ret_refused,
			 bool *ret_crowded)
{
	struct sheaves_cpu *pc = &sc->cpus[cpu];
	struct alloc_sheaf *empty;

	*ret_refused = *ret_crowded = false;
	if (!pc->spare) {
		empty = sheaves_barn_get_empty(sc, cpu);
		if (!empty)
			return false;
		pc->spare = pc->main;
	} else if (pc->spare->size < pc->spare->capacity) {
		swap_main(pc);
		return true;
	} else {
		empty = sheaves_barn_swap_full(sc, cpu, pc->main, ret_crowded);
		if (!empty) {
			*ret_refused = true;
			return false;
		}
		alloc_count(&sc->head, cpu, ALLOC_C_BARN_PUT);
	}
	pc->main = empty;
	return true;
}

/* main is full: after this it is not. */
static void make_room(struct sheaves_cache *sc, uint32_t cpu)
{
	struct sheaves_cpu *pc = &sc->cpus[cpu];
	struct alloc_sheaf *empty;
	bool refused, crowded;

	if (room_at_hand(sc, cpu, &refused, &crowded))
		return;
	if (crowded) {
		alloc_count(&sc->head, cpu, ALLOC_C_BARN_PUT_FAIL);
		empty = pc->spare;
		pc->spare = NULL;
		sheaves_flush(sc, cpu, empty);
	} else {
		empty = sheaves_new(sc, cpu, (uint32_t)sc->capacity);
	}
	if (empty) {
		install_empty(sc, cpu, empty);
		return;
	}
	if (refused)
		alloc_count(&sc->head, cpu, ALLOC_C_BARN_PUT_FAIL);
	sheaves_flush_main(sc, cpu);
}

static void push_main(struct sheaves_cache *sc, uint32_t cpu, struct alloc_sheaf *s, void *obj)
{
	s->objects[s->size++] = obj;
	alloc_count(&sc->head, cpu, ALLOC_C_FREE_FASTPATH);
}

static __attribute__((noinline)) void free_to_full_main(struct sheaves_cache *sc, uint32_t cpu,
							void *obj)
{
	make_room(sc, cpu);
	push_main(sc, cpu, sc->cpus[cpu].main, obj);
}

void sheaves_free(struct alloc_cache *c, uint32_t cpu, void *obj)
{
	struct sheaves_cache *sc = sheaves_of(c);
	struct sheaves_cpu *pc = &sc->cpus[cpu];
	struct alloc_sheaf *s = pc->main;

	if (__builtin_expect(alloc_obj_slab(c->machine, obj)->node != pc->node, 0))
		sheaves_free_slow(sc, cpu, obj);
	else if (__builtin_expect(s->size == s->capacity, 0))
		free_to_full_main(sc, cpu, obj);
	else
		push_main(sc, cpu, s, obj);
}

uint32_t sheaves_alloc_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t gfp, uint32_t nr,
			    void **objs)
{
	struct sheaves_cache *sc = sheaves_of(c);
	struct sheaves_cpu *pc = &sc->cpus[cpu];
	uint32_t done = 0;

	while (done < nr && (pc->main->size || full_to_main(sc, cpu))) {
		struct alloc_sheaf *s = pc->main;
		uint32_t batch = s->size < nr - done ? s->size : nr - done;

		s->size -= batch;
		memcpy(objs + done, s->objects + s->size, batch * sizeof(*objs));
		alloc_count_add(c, cpu, ALLOC_C_ALLOC_FASTPATH, batch);
		done += batch;
	}
	if (done == nr)
		return nr;
	if (sheaves_alloc_bulk_slow(sc, cpu, gfp, nr - done, objs + done))
		return nr;
	sheaves_flush_objects(sc, cpu, objs, done, ALLOC_PATH_FREE);
	return 0;
}

/* @objs to their slabs, as the slow part of a bulk free. */
static void bulk_slow(struct sheaves_cache *sc, uint32_t cpu, uint32_t nr, void **objs)
{
	sheaves_flush_objects(sc, cpu, objs, nr, ALLOC_PATH_FREE);
	alloc_count_add(&sc->head, cpu, ALLOC_C_FREE_SLOWPATH, nr);
}

/* @objs of @cpu's own node: into sheaves as long as no new sheaf and no flush is needed. */
static void bulk_local(struct sheaves_cache *sc, uint32_t cpu, uint32_t nr, void **objs)
{
	struct sheaves_cpu *pc = &sc->cpus[cpu];
	bool refused, crowded;

	while (nr) {
		struct alloc_sheaf *s = pc->main;
		uint32_t room = s->capacity - s->size, batch = nr < room ? nr : room;

		if (!batch) {
			if (room_at_hand(sc, cpu, &refused, &crowded))
				continue;
			if (refused)
				alloc_count(&sc->head, cpu, ALLOC_C_BARN_PUT_FAIL);
			bulk_slow(sc, cpu, nr, objs);
			return;
		}
		memcpy(s->objects + s->size, objs, batch * sizeof(*objs));
		s->size += batch;
		alloc_count_add(&sc->head, cpu, ALLOC_C_FREE_FASTPATH, batch);
		objs += batch;
		nr -= batch;
	}
}

/*
 * Objects of other nodes are taken out of the array (its last entry fills the gap) and freed to
 * their slabs, whenever a batch of them is complete and at the end.  @objs is reordered.
 */
void sheaves_free_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t nr, void **objs)
{
	struct sheaves_cache *sc = sheaves_of(c);
	uint16_t node = sc->cpus[cpu].node;
	void *remote[SHEAVES_BATCH];
	uint32_t nr_remote = 0, i = 0;

	while (i < nr) {
		if (alloc_obj_slab(c->machine, objs[i])->node == node) {
			i++;
			continue;
		}
		remote[nr_remote++] = objs[i];
		objs[i] = objs[--nr];
		if (nr_remote == SHEAVES_BATCH) {
			bulk_slow(sc, cpu, nr_remote, remote);
			nr_remote = 0;
		}
	}
	bulk_local(sc, cpu, nr, objs);
	if (nr_remote)
		bulk_slow(sc, cpu, nr_remote, remote);
}

void sheaves_flush_cpu(struct alloc_cache *c, uint32_t cpu)
{
	struct sheaves_cache *sc = sheaves_of(c);
	struct sheaves_cpu *pc = &sc->cpus[cpu];
	struct alloc_sheaf *spare = pc->spare, *rcu_free = pc->rcu_free;

	pc->spare = pc->rcu_free = NULL;
	if (spare) {
		sheaves_flush(sc, cpu, spare);
		sheaves_drop(sc, cpu, spare);
	}
	sheaves_flush_main(sc, cpu);
	/* After main: its grace period cannot end earlier. */
	if (rcu_free)
		sheaves_rcu_start(sc, cpu, rcu_free, false);
}

static void shrink_node(struct sheaves_cache *sc, struct alloc_node *n)
{
	struct alloc_link buckets[SHEAVES_BATCH], empty;
	struct alloc_slab *aside, *s;

	alloc_link_init(&empty);
	aside = sheaves_lock(sc, 0, n, ALLOC_PATH_SHRINK);
	alloc_partial_sort(&sc->head, n, 0, false, buckets, SHEAVES_BATCH, &empty);
	sheaves_unlock(sc, 0, n, aside);
	while (!alloc_link_empty(&empty)) {
		s = alloc_slab_from_link(empty.next);
		alloc_link_del(&s->link);
		sheaves_discard(sc, 0, s);
	}
}

void sheaves_shrink(struct alloc_cache *c)
{
	struct sheaves_cache *sc = sheaves_of(c);

	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++)
		sheaves_flush_cpu(c, cpu);
	for (uint32_t n = 0; n < c->machine->nodes; n++)
		sheaves_barn_shrink(sc, 0, n);
	for (uint32_t n = 0; n < c->machine->nodes; n++)
		shrink_node(sc, &sc->nodes[n]);
}

static int create(struct alloc_machine *m, const struct alloc_cache_config *cfg,
		  struct alloc_cache **ret_cache)
{
	return sheaves_create(m, cfg, &ALLOC_FN(alloc_variant_slub_7_2), NULL, ret_cache);
}

static const struct alloc_knob slub_7_2_knobs[] = { SHEAVES_KNOBS };

SHEAVES_ENTRIES

ALLOC_VARIANT(slub_7_2) = {
	.name = "slub-7.2",
	.era = "7.2",
	.origin = "Linux v7.2 mm/slub.c",
	.what = "per-CPU sheaves of objects, a barn per node, kfree_rcu batching",
	.counters = slub_7_2_counters,
	.nr_counters = sizeof(slub_7_2_counters),
	.knobs = slub_7_2_knobs,
	.nr_knobs = sizeof(slub_7_2_knobs) / sizeof(slub_7_2_knobs[0]),
	.create = create,
	SHEAVES_OPS,
};
