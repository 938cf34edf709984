/* SPDX-License-Identifier: MIT */
/*
 * The native build with one thread per CPU: local allocation and frees, and objects that change
 * hands through mailboxes so that most frees are remote.  Each object carries its owner's number
 * while it is live.  Meant for the tsan preset too.
 *
 * usage: test_model_threads [VARIANT [ROUNDS]]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/variant.h"

enum { CPUS = 4, NODES = 2, OWN_MAX = 200, BOXES = 64, ROUNDS = 30000, BULK = 12 };

struct shared {
	const struct alloc_variant *v;
	struct alloc_cache *c;
	void *boxes[BOXES]; /* Sync: atomic exchange */
	uint32_t rounds;
	int failures; /* Sync: atomic */
};

struct worker {
	struct shared *shared;
	uint32_t cpu, nr;
	uint64_t random, now_ns;
	void *own[OWN_MAX];
};

static uint32_t draw(struct worker *w, uint32_t below)
{
	w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(w->random >> 33) % below;
}

static void complain(struct shared *s)
{
	__atomic_fetch_add(&s->failures, 1, __ATOMIC_RELAXED); /* read after the join */
}

static void mark(struct worker *w, void *obj)
{
	uint64_t tag = (uint64_t)(uintptr_t)obj;

	if (!obj) {
		complain(w->shared);
		return;
	}
	memcpy(obj, &tag, sizeof(tag));
	w->own[w->nr++] = obj;
}

/* An object that is still what its holder made it is freed here, wherever it came from. */
static void give_back(struct worker *w, void *obj)
{
	struct shared *s = w->shared;
	uint64_t tag;

	memcpy(&tag, obj, sizeof(tag));
	if (tag != (uint64_t)(uintptr_t)obj)
		complain(s);
	if (s->v->free_rcu && !draw(w, 16))
		s->v->free_rcu(s->c, w->cpu, obj);
	else
		s->v->free(s->c, w->cpu, obj);
}

static void bulk(struct worker *w)
{
	struct shared *s = w->shared;
	void *objs[BULK];
	uint32_t got;

	if (w->nr >= BULK && draw(w, 2)) {
		w->nr -= BULK;
		memcpy(objs, w->own + w->nr, sizeof(objs));
		s->v->free_bulk(s->c, w->cpu, BULK, objs);
	} else if (w->nr + BULK <= OWN_MAX) {
		got = s->v->alloc_bulk(s->c, w->cpu, ALLOC_GFP_MAY_BLOCK, BULK, objs);
		for (uint32_t i = 0; i < got; i++)
			mark(w, objs[i]);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct shared *s = w->shared;

	for (uint32_t i = 0; i < s->rounds; i++) {
		uint32_t what = draw(w, 100);
		int32_t node = draw(w, 16) ? ALLOC_NODE_ANY : (int32_t)draw(w, NODES);

		if (what < 2) {
			bulk(w);
		} else if (what < 3 && !draw(w, 8)) {
			s->v->flush_cpu(s->c, w->cpu);
		} else if (what < 3 && s->v->tick && !draw(w, 8)) {
			w->now_ns += 500000000u;
			s->v->tick(s->c, w->cpu, w->now_ns);
		} else if (w->nr < OWN_MAX && (!w->nr || what < 50)) {
			mark(w, s->v->alloc(s->c, w->cpu, node, ALLOC_GFP_MAY_BLOCK));
		} else if (what < 85) {
			/* Acquire and release: the tag in the object travels with the pointer. */
			void *obj = __atomic_exchange_n(&s->boxes[draw(w, BOXES)], w->own[--w->nr],
							__ATOMIC_ACQ_REL);

			if (obj)
				give_back(w, obj);
		} else {
			give_back(w, w->own[--w->nr]);
		}
	}
	return NULL;
}

static void run_threads(struct shared *s, struct worker *workers)
{
	pthread_t threads[CPUS];

	for (uint32_t i = 0; i < CPUS; i++) {
		workers[i] = (struct worker){ .shared = s, .cpu = i, .random = i + 1 };
		if (pthread_create(&threads[i], NULL, work, &workers[i]))
			exit(1);
	}
	for (uint32_t i = 0; i < CPUS; i++)
		pthread_join(threads[i], NULL);
}

static void free_rest(struct shared *s, struct worker *workers)
{
	for (uint32_t i = 0; i < CPUS; i++)
		while (workers[i].nr)
			give_back(&workers[i], workers[i].own[--workers[i].nr]);
	for (int i = 0; i < BOXES; i++)
		if (s->boxes[i])
			give_back(&workers[0], s->boxes[i]);
	if (s->v->rcu_barrier)
		s->v->rcu_barrier(s->c);
}

static int check(const struct shared *s, const char *when)
{
	char why[256];

	if (s->v->check(s->c, why, sizeof(why)) == 0)
		return 0;
	fprintf(stderr, "not ok - %s %s: %s\n", s->v->name, when, why);
	return 1;
}

static int run(const struct alloc_variant *v, uint32_t size, uint32_t rounds)
{
	static const uint16_t cpu_node[CPUS] = { 0, 0, 1, 1 };
	static struct worker workers[CPUS];
	struct alloc_machine_config mc = { .cpus = CPUS, .nodes = NODES, .cpu_node = cpu_node,
					   .seed = 1, .sync = ALLOC_SYNC_NATIVE };
	struct alloc_cache_config cc = { .name = "threads", .object_size = size };
	struct shared s = { .v = v, .rounds = rounds };
	struct alloc_cache_state st;
	struct alloc_machine *m;
	int bad;

	if (alloc_machine_create(&mc, &m) < 0 || v->create(m, &cc, &s.c) < 0)
		return 1;
	run_threads(&s, workers);
	bad = check(&s, "after the threads");
	free_rest(&s, workers);
	v->shrink(s.c);
	bad += check(&s, "after shrink") + s.failures;
	v->state(s.c, &st);
	if (!strncmp(v->name, "slub-", 5) && st.slabs) {
		fprintf(stderr, "not ok - %s: %llu slabs left without objects\n", v->name,
			(unsigned long long)st.slabs);
		bad++;
	}
	v->destroy(s.c);
	bad += alloc_machine_pages(m) != 0;
	alloc_machine_destroy(m);
	return bad;
}

int main(int argc, char **argv)
{
	const struct alloc_variant *v;
	uint32_t rounds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : ROUNDS;
	int bad = 0;

	for (uint32_t i = 0; (v = alloc_variant_at(i, ALLOC_SYNC_NATIVE)); i++) {
		int failures;

		if (argc > 1 && strcmp(argv[1], v->name))
			continue;
		failures = run(v, 64, rounds) + run(v, 2048, rounds);
		printf("%s - %s\n", failures ? "not ok" : "ok", v->name);
		bad += failures;
	}
	return bad ? 1 : 0;
}
