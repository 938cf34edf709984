/* SPDX-License-Identifier: MIT */
/*
 * slub-7.2 and slub-7.2-parking with real threads, one per CPU: objects are allocated on one CPU
 * and freed on another, one at a time, in bulk and by free_rcu.  Afterwards every invariant holds
 * and no object was lost or handed out twice.  Meant for the tsan and asan presets, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "allocator/variant.h"

#define GFP (ALLOC_GFP_MAY_BLOCK | ALLOC_GFP_MAY_SPIN)

enum { CPUS = 4, NODES = 2, MAILBOXES = 64, OPS = 60000, HELD = 96, BULK = 20 };

struct stress {
	const struct alloc_variant *v;
	struct alloc_cache *c;
	void *mailbox[MAILBOXES]; /* objects on their way to another CPU; atomic */
};

struct worker {
	struct stress *st;
	pthread_t thread;
	uint32_t cpu;
	uint64_t x;
	void *held[HELD];
	uint32_t nr_held;
	uint64_t allocs, frees; /* objects */
	uint64_t wrong;		/* objects whose mark was not theirs */
};

static uint32_t draw(struct worker *w, uint32_t below)
{
	w->x = w->x * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(w->x >> 33) % below;
}

/* A live object carries its own address: handed out twice, somebody overwrites it. */
static void mark(struct worker *w, void *obj)
{
	uintptr_t value = (uintptr_t)obj;

	memcpy(obj, &value, sizeof(value));
	w->allocs++;
}

static void unmark(struct worker *w, void *obj)
{
	uintptr_t value;

	memcpy(&value, obj, sizeof(value));
	w->wrong += value != (uintptr_t)obj;
	memset(obj, 0, sizeof(value));
	w->frees++;
}

static void free_one(struct worker *w, void *obj)
{
	struct stress *st = w->st;

	unmark(w, obj);
	if (draw(w, 8))
		st->v->free(st->c, w->cpu, obj);
	else
		st->v->free_rcu(st->c, w->cpu, obj);
}

static void alloc_some(struct worker *w)
{
	struct stress *st = w->st;
	void *objs[BULK];
	uint32_t nr = draw(w, 8) ? 1 : BULK;

	if (w->nr_held + nr > HELD)
		return;
	if (nr == 1)
		objs[0] = st->v->alloc(st->c, w->cpu,
				       draw(w, 16) ? ALLOC_NODE_ANY : (int32_t)draw(w, NODES), GFP);
	else
		nr = st->v->alloc_bulk(st->c, w->cpu, GFP, nr, objs);
	for (uint32_t i = 0; i < nr; i++) {
		mark(w, objs[i]);
		w->held[w->nr_held++] = objs[i];
	}
}

static void free_some(struct worker *w)
{
	struct stress *st = w->st;
	void *objs[BULK];
	uint32_t nr = draw(w, 8) ? 1 : BULK;

	if (w->nr_held < nr)
		return;
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t at = draw(w, w->nr_held);

		objs[i] = w->held[at];
		w->held[at] = w->held[--w->nr_held];
	}
	if (nr == 1) {
		free_one(w, objs[0]);
		return;
	}
	for (uint32_t i = 0; i < nr; i++)
		unmark(w, objs[i]);
	st->v->free_bulk(st->c, w->cpu, nr, objs);
}

/* Swap one held object, or nothing, against what is in a mailbox; free what was there. */
static void hand_over(struct worker *w)
{
	void *mine = w->nr_held ? w->held[--w->nr_held] : NULL;
	void *theirs = __atomic_exchange_n(&w->st->mailbox[draw(w, MAILBOXES)], mine,
					   __ATOMIC_ACQ_REL);

	if (theirs)
		free_one(w, theirs);
}

static void use_sheaf(struct worker *w)
{
	struct stress *st = w->st;
	uint32_t objs = 1 + draw(w, 40);
	struct alloc_sheaf *s = st->v->prefill(st->c, w->cpu, GFP, objs);

	for (uint32_t n = draw(w, objs); n && w->nr_held < HELD; n--) {
		void *obj = st->v->sheaf_alloc(st->c, w->cpu, s);

		mark(w, obj);
		w->held[w->nr_held++] = obj;
	}
	st->v->sheaf_return(st->c, w->cpu, s);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct stress *st = w->st;

	for (uint32_t i = 0; i < OPS; i++) {
		uint32_t what = draw(w, 64);

		if (what < 26)
			alloc_some(w);
		else if (what < 46)
			free_some(w);
		else if (what < 62)
			hand_over(w);
		else if (what == 62)
			use_sheaf(w);
		else if (!draw(w, 16))
			st->v->flush_cpu(st->c, w->cpu);
		if (i % 32 == 0)
			st->v->tick(st->c, w->cpu, i * 10000ull);
	}
	while (w->nr_held)
		free_one(w, w->held[--w->nr_held]);
	return NULL;
}

static void add_counter(void *ctx, uint32_t cpu, const char *name, int64_t value)
{
	(void)cpu;
	if (value && (strstr(name, "park") || strstr(name, "cmpxchg")))
		*(int64_t *)ctx += value;
}

static void finish(struct stress *st, struct worker *workers)
{
	struct alloc_cache_state state;
	uint64_t allocs = 0, frees = 0;
	int64_t races = 0;
	char why[256] = "";

	for (uint32_t i = 0; i < MAILBOXES; i++)
		if (st->mailbox[i])
			free_one(&workers[0], st->mailbox[i]);
	for (uint32_t i = 0; i < CPUS; i++) {
		assert_int_equal(workers[i].wrong, 0);
		allocs += workers[i].allocs;
		frees += workers[i].frees;
	}
	assert_int_equal(allocs, frees);
	if (st->v->check(st->c, why, sizeof(why)) < 0)
		fail_msg("%s: %s", st->v->name, why);
	alloc_read_counters(st->c, add_counter, &races);
	print_message("%s: %llu objects, %lld exchanges lost or slabs parked\n", st->v->name,
		      (unsigned long long)allocs, (long long)races);
	st->v->rcu_barrier(st->c);
	st->v->shrink(st->c);
	st->v->state(st->c, &state);
	assert_int_equal(state.slabs, 0);
}

static void run(const char *variant)
{
	static const uint16_t cpu_node[CPUS] = { 0, 0, 1, 1 };
	struct alloc_machine_config mc = { .cpus = CPUS, .nodes = NODES, .cpu_node = cpu_node,
					   .seed = 7, .sync = ALLOC_SYNC_NATIVE };
	struct alloc_cache_config cfg = { .name = "stress", .object_size = 1024 };
	struct worker workers[CPUS] = { { .cpu = 0 } };
	struct stress st = { .v = alloc_variant_find(variant, ALLOC_SYNC_NATIVE) };
	struct alloc_machine *m;

	assert_int_equal(alloc_machine_create(&mc, &m), 0);
	assert_int_equal(st.v->create(m, &cfg, &st.c), 0);
	for (uint32_t i = 0; i < CPUS; i++) {
		workers[i].st = &st;
		workers[i].cpu = i;
		workers[i].x = i + 1;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (uint32_t i = 0; i < CPUS; i++)
		pthread_join(workers[i].thread, NULL);
	finish(&st, workers);
	st.v->destroy(st.c);
	assert_int_equal(alloc_machine_pages(m), 0);
	alloc_machine_destroy(m);
}

static void test_threads(void **state)
{
	(void)state;
	run("slub-7.2");
	run("slub-7.2-parking");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_threads) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
