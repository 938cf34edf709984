/* SPDX-License-Identifier: MIT */
/*
 * Variant slub-7.2-parking: slub-7.2 that never waits for list_lock when a free makes a full slab
 * non-full.  If the lock is busy the slab is parked on a lock-free list of its node:
 *
 *	free, full -> x ---trylock failed---> parked (newest first)
 *	                                         |  whoever holds list_lock next: refill, single
 *	                                         v  allocation, shrink, delayed work
 *	                                      partial list, tail   (empty and enough there: discarded)
 *
 * A parked slab is non-full and not listed, so other frees into it change its word only; the CPU
 * that parked it is the only one that may push it.  Its list link is the link of the parked list.
 *
 * Source: the cover letter of the 2026 slab parking RFC; all details are inferred (specification
 * 9.3).  With one thread no trylock fails: park_every makes every k-th such free of a CPU park.
 */
#include "allocator/variants/slub_sheaves.h"

ALLOC_VARIANT_DECLARE(slub_7_2_parking);

static const uint8_t slub_7_2_parking_counters[] = {
	ALLOC_C_ALLOC_FASTPATH, ALLOC_C_ALLOC_SLOWPATH, ALLOC_C_FREE_RCU_SHEAF,
	ALLOC_C_FREE_RCU_SHEAF_FAIL, ALLOC_C_FREE_FASTPATH, ALLOC_C_FREE_SLOWPATH,
	ALLOC_C_FREE_ADD_PARTIAL, ALLOC_C_FREE_REMOVE_PARTIAL, ALLOC_C_ALLOC_SLAB,
	ALLOC_C_ALLOC_NODE_MISMATCH, ALLOC_C_FREE_SLAB, ALLOC_C_ORDER_FALLBACK,
	ALLOC_C_CMPXCHG_DOUBLE_FAIL, ALLOC_C_SHEAF_FLUSH, ALLOC_C_SHEAF_REFILL,
	ALLOC_C_SHEAF_ALLOC, ALLOC_C_SHEAF_FREE, ALLOC_C_BARN_GET, ALLOC_C_BARN_GET_FAIL,
	ALLOC_C_BARN_PUT, ALLOC_C_BARN_PUT_FAIL, ALLOC_C_SHEAF_PREFILL_FAST,
	ALLOC_C_SHEAF_PREFILL_SLOW, ALLOC_C_SHEAF_PREFILL_OVERSIZE, ALLOC_C_SHEAF_RETURN_FAST,
	ALLOC_C_SHEAF_RETURN_SLOW, ALLOC_C_PARK_SLAB, ALLOC_C_UNPARK_SLAB, ALLOC_C_UNPARK_EVENT,
};

static struct sheaves_parked *parked_of(struct sheaves_cache *sc, const struct alloc_node *n)
{
	return &sc->parked[n->list_lock.node];
}

static bool parking_try_lock(struct sheaves_cache *sc, uint32_t cpu, struct alloc_node *n,
			     enum alloc_lock_path path)
{
	struct sheaves_cpu *pc = &sc->cpus[cpu];

	if (sc->park_every && ++pc->park_turn >= sc->park_every) {
		pc->park_turn = 0;
		return false;
	}
	return alloc_lock_try(&n->list_lock, cpu, path);
}

/* The delayed work of @n becomes this CPU's, unless somebody has it already. */
static void schedule_work(struct sheaves_cache *sc, uint32_t cpu, struct sheaves_parked *p)
{
	struct sheaves_cpu *pc = &sc->cpus[cpu];

	if (alloc_ptr_read(cpu, &p->work) || !alloc_ptr_cmpxchg(cpu, &p->work, NULL, pc))
		return;
	p->due_ns = pc->now_ns + (uint64_t)sc->unpark_delay_ns;
	pc->unpark_works++;
}

static void parking_park(struct sheaves_cache *sc, uint32_t cpu, struct alloc_node *n,
			 struct alloc_slab *s)
{
	struct sheaves_parked *p = parked_of(sc, n);
	struct alloc_slab *first;

	alloc_slab_move(&sc->head, s, cpu, ALLOC_STATE_PARKED);
	do {
		first = alloc_ptr_read(cpu, &p->slabs);
		s->link.next = first ? &first->link : NULL;
	} while (!alloc_ptr_cmpxchg(cpu, &p->slabs, first, s));
	alloc_count(&sc->head, cpu, ALLOC_C_PARK_SLAB);
	if (!sc->park_late)
		alloc_count(&sc->head, cpu, ALLOC_C_FREE_ADD_PARTIAL);
	if (!first)
		schedule_work(sc, cpu, p);
}

/* The chain at @s the other way round. */
static struct alloc_slab *reverse(struct alloc_slab *s)
{
	struct alloc_link *done = NULL, *next;

	for (struct alloc_link *l = s ? &s->link : NULL; l; l = next) {
		next = l->next;
		l->next = done;
		done = l;
	}
	return done ? alloc_slab_from_link(done) : NULL;
}

static struct alloc_slab *parking_unpark(struct sheaves_cache *sc, uint32_t cpu,
					 struct alloc_node *n)
{
	struct sheaves_parked *p = parked_of(sc, n);
	struct alloc_cache *c = &sc->head;
	struct alloc_slab *s = NULL, *aside = NULL, *next;

	if (alloc_ptr_read(cpu, &p->slabs))
		s = reverse(alloc_ptr_xchg(cpu, &p->slabs, NULL));
	if (s)
		alloc_count(c, cpu, ALLOC_C_UNPARK_EVENT);
	for (; s; s = next) {
		uint32_t inuse = alloc_word_read(cpu, s).inuse;

		next = s->link.next ? alloc_slab_from_link(s->link.next) : NULL;
		alloc_count(c, cpu, ALLOC_C_UNPARK_SLAB);
		if (!inuse && n->nr_partial >= (uint64_t)sc->min_partial) {
			s->link.next = aside ? &aside->link : NULL;
			aside = s;
			continue;
		}
		alloc_partial_add(c, n, cpu, s, ALLOC_LIST_TAIL, inuse);
		if (sc->park_late)
			alloc_count(c, cpu, ALLOC_C_FREE_ADD_PARTIAL);
	}
	return reverse(aside);
}

static bool parking_waits(struct sheaves_cache *sc, uint32_t cpu, const struct alloc_node *n)
{
	return alloc_ptr_read(cpu, &parked_of(sc, n)->slabs);
}

/* Delayed works of @cpu that are due; a park during one starts the next. */
static void parking_tick(struct sheaves_cache *sc, uint32_t cpu, uint64_t now_ns)
{
	struct sheaves_cpu *pc = &sc->cpus[cpu];
	uint32_t left = pc->unpark_works;

	for (uint32_t i = 0; left && i < sc->head.machine->nodes; i++) {
		struct sheaves_parked *p = &sc->parked[i];

		if (alloc_ptr_read(cpu, &p->work) != pc)
			continue;
		left--;
		if (p->due_ns > now_ns)
			continue;
		pc->unpark_works--;
		alloc_ptr_xchg(cpu, &p->work, NULL);
		sheaves_unlock(sc, cpu, &sc->nodes[i],
			       sheaves_lock(sc, cpu, &sc->nodes[i], ALLOC_PATH_UNPARK));
	}
}

static int parking_check(const struct sheaves_cache *sc, char *why, size_t why_bytes)
{
	uint64_t parked = 0, in = 0, out = 0;

	for (uint32_t n = 0; n < sc->head.machine->nodes; n++)
		for (struct alloc_slab *s = sc->parked[n].slabs; s; parked++) {
			if (s->state != ALLOC_STATE_PARKED || s->node != n) {
				snprintf(why, why_bytes, "slab %u does not belong on the parked list",
					 s->id);
				return -1;
			}
			s = s->link.next ? alloc_slab_from_link(s->link.next) : NULL;
		}
	for (uint32_t cpu = 0; cpu < sc->head.machine->cpus; cpu++) {
		in += sc->head.stat[(size_t)cpu * ALLOC_COUNTER_ROW + ALLOC_C_PARK_SLAB];
		out += sc->head.stat[(size_t)cpu * ALLOC_COUNTER_ROW + ALLOC_C_UNPARK_SLAB];
	}
	if (in - out == parked)
		return 0;
	snprintf(why, why_bytes, "%llu slabs parked, counters say %llu", (unsigned long long)parked,
		 (unsigned long long)(in - out));
	return -1;
}

static const struct sheaves_policy parking_policy = {
	.try_lock = parking_try_lock,
	.park = parking_park,
	.unpark = parking_unpark,
	.waits = parking_waits,
	.tick = parking_tick,
	.check = parking_check,
};

static int create(struct alloc_machine *m, const struct alloc_cache_config *cfg,
		  struct alloc_cache **ret_cache)
{
	return sheaves_create(m, cfg, &ALLOC_FN(alloc_variant_slub_7_2_parking), &parking_policy,
			      ret_cache);
}

static const struct alloc_knob slub_7_2_parking_knobs[] = {
	SHEAVES_KNOBS,
	{ "unpark_delay_ns", "delay of the work that lists parked slabs, ns of tape time", 0,
	  INT64_MAX / 2, "4000000", false },
	{ "park_every", "every k-th free of a full slab on a CPU finds list_lock busy, 0: never", 0,
	  INT32_MAX, "0", false },
	{ "park_late", "1: count free_add_partial when a slab is listed, not when parked", 0, 1, "0",
	  false },
};

SHEAVES_ENTRIES

ALLOC_VARIANT(slub_7_2_parking) = {
	.name = "slub-7.2-parking",
	.era = "RFC on 7.2",
	.origin = "slab parking RFC, linux-mm 2026 (cover letter)",
	.what = "slub-7.2 with slabs parked instead of waiting for list_lock",
	.counters = slub_7_2_parking_counters,
	.nr_counters = sizeof(slub_7_2_parking_counters),
	.knobs = slub_7_2_parking_knobs,
	.nr_knobs = sizeof(slub_7_2_parking_knobs) / sizeof(slub_7_2_parking_knobs[0]),
	.create = create,
	SHEAVES_OPS,
};
