/* SPDX-License-Identifier: MIT */
/*
 * The native build with one thread per CPU: local allocation and frees, and objects that change
 * hands through mailboxes so that most frees are remote.  Each object carries its own address
 * while it is out.  Afterwards every object must be in exactly one place.  Meant for the tsan
 * preset too.
 *
 * usage: test_model_threads [VARIANT [ROUNDS]]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "tests/model/census.h"

enum { CPUS_MAX = 8, OWN_MAX = 200, BOXES = 64, ROUNDS = 8000, BULK = 12 };

/* One load; the knob is set at creation where the variant has it. */
struct shape {
	uint32_t cpus, nodes, size;
	const char *knob;
	int64_t value;
	uint64_t node_pages; /* 0: plenty */
};

static const struct shape shapes[] = {
	{ 4, 2, 64, NULL, 0, 0 },
	{ 4, 2, 2048, "min_partial", 0, 0 },
	{ 8, 4, 512, "cpu_partial", 0, 0 },
	{ 4, 1, 1024, "remote_batch", 3, 0 },
	{ 4, 2, 4096, "slab_thrash_ratio", 40, 60 },
};

struct shared {
	const struct alloc_variant *v;
	struct alloc_cache *c;
	const struct shape *shape;
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
		if (!w->shared->shape->node_pages)
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

/* A sheaf is prefilled, half used, and given back. */
static void sheaf(struct worker *w)
{
	struct shared *s = w->shared;
	struct alloc_sheaf *sheaf;

	if (!s->v->prefill || w->nr + BULK > OWN_MAX)
		return;
	sheaf = s->v->prefill(s->c, w->cpu, ALLOC_GFP_MAY_BLOCK, BULK);
	for (int i = 0; sheaf && i < BULK / 2; i++)
		mark(w, s->v->sheaf_alloc(s->c, w->cpu, sheaf));
	if (sheaf)
		s->v->sheaf_return(s->c, w->cpu, sheaf);
}

/* What happens now and then. */
static void rare(struct worker *w)
{
	struct shared *s = w->shared;

	switch (draw(w, 6)) {
	case 0:
	case 1:
		bulk(w);
		break;
	case 2:
		sheaf(w);
		break;
	case 3:
		if (s->v->tick) {
			w->now_ns += 500000000u;
			s->v->tick(s->c, w->cpu, w->now_ns);
		}
		break;
	default:
		s->v->flush_cpu(s->c, w->cpu);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct shared *s = w->shared;

	for (uint32_t i = 0; i < s->rounds; i++) {
		uint32_t what = draw(w, 100);
		int32_t node = draw(w, 16) ? ALLOC_NODE_ANY : (int32_t)draw(w, s->shape->nodes);

		if (what < 3) {
			rare(w);
		} else if (w->nr < OWN_MAX && (!w->nr || what < 50)) {
			mark(w, s->v->alloc(s->c, w->cpu, node, ALLOC_GFP_MAY_BLOCK));
		} else if (what < 85 && w->nr) {
			/* Acquire and release: the tag in the object travels with the pointer. */
			void *obj = __atomic_exchange_n(&s->boxes[draw(w, BOXES)], w->own[--w->nr],
							__ATOMIC_ACQ_REL);

			if (obj)
				give_back(w, obj);
		} else if (w->nr) {
			give_back(w, w->own[--w->nr]);
		}
	}
	return NULL;
}

static void run_threads(struct shared *s, struct worker *workers)
{
	pthread_t threads[CPUS_MAX];

	for (uint32_t i = 0; i < s->shape->cpus; i++) {
		workers[i] = (struct worker){ .shared = s, .cpu = i, .random = i + 1 };
		if (pthread_create(&threads[i], NULL, work, &workers[i]))
			exit(1);
	}
	for (uint32_t i = 0; i < s->shape->cpus; i++)
		pthread_join(threads[i], NULL);
}

static void free_rest(struct shared *s, struct worker *workers)
{
	for (uint32_t i = 0; i < s->shape->cpus; i++)
		while (workers[i].nr)
			give_back(&workers[i], workers[i].own[--workers[i].nr]);
	for (int i = 0; i < BOXES; i++)
		if (s->boxes[i])
			give_back(&workers[0], s->boxes[i]);
	memset(s->boxes, 0, sizeof(s->boxes));
	if (s->v->rcu_barrier)
		s->v->rcu_barrier(s->c);
}

static int complain_of(const struct shared *s, const char *when, const char *what)
{
	fprintf(stderr, "not ok - %s, %u cpus, size %u, %s: %s\n", s->v->name, s->shape->cpus,
		s->shape->size, when, what);
	return 1;
}

/* The variant's own invariants, and where every object is.  All threads have ended. */
static int check(const struct shared *s, const struct alloc_machine *m,
		 const struct worker *workers, const char *when)
{
	struct census census = { 0 };
	const char *what;
	char why[256];

	if (s->v->check(s->c, why, sizeof(why)) < 0)
		return complain_of(s, when, why);
	census_begin(&census, s->v, m, s->c);
	for (uint32_t i = 0; i < s->shape->cpus; i++)
		for (uint32_t k = 0; k < workers[i].nr; k++)
			census_out(&census, workers[i].own[k]);
	for (int i = 0; i < BOXES; i++)
		if (s->boxes[i])
			census_out(&census, s->boxes[i]);
	what = census_end(&census, 0, true);
	census_fini(&census);
	return what ? complain_of(s, when, what) : 0;
}

static bool has_knob(const struct alloc_variant *v, const char *name)
{
	for (uint32_t i = 0; name && i < v->nr_knobs; i++)
		if (!strcmp(v->knobs[i].name, name))
			return true;
	return false;
}

static int run(const struct alloc_variant *v, const struct shape *shape, uint32_t rounds)
{
	static struct worker workers[CPUS_MAX];
	uint16_t cpu_node[CPUS_MAX];
	struct alloc_machine_config mc = { .cpus = shape->cpus, .nodes = shape->nodes,
		.cpu_node = cpu_node, .seed = 1, .node_pages = shape->node_pages,
		.sync = ALLOC_SYNC_NATIVE };
	struct alloc_knob_value knob = { shape->knob, shape->value };
	struct alloc_cache_config cc = { .name = "threads", .object_size = shape->size,
					 .knobs = &knob, .nr_knobs = has_knob(v, knob.name) };
	struct shared s = { .v = v, .shape = shape, .rounds = rounds };
	struct alloc_cache_state st;
	struct alloc_machine *m;
	int bad;

	for (uint32_t i = 0; i < shape->cpus; i++)
		cpu_node[i] = (uint16_t)(i * shape->nodes / shape->cpus);
	if (alloc_machine_create(&mc, &m) < 0 || v->create(m, &cc, &s.c) < 0)
		return 1;
	run_threads(&s, workers);
	bad = check(&s, m, workers, "after the threads");
	free_rest(&s, workers);
	v->shrink(s.c);
	bad += check(&s, m, workers, "after shrink") + s.failures;
	v->state(s.c, &st);
	if (!strncmp(v->name, "slub-", 5) && st.slabs)
		bad += complain_of(&s, "after shrink", "slabs are left without objects");
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

	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* many short-lived machines, small each */
	for (uint32_t i = 0; (v = alloc_variant_at(i, ALLOC_SYNC_NATIVE)); i++) {
		int failures = 0;

		if (argc > 1 && strcmp(argv[1], v->name))
			continue;
		for (size_t k = 0; k < sizeof(shapes) / sizeof(*shapes); k++)
			failures += run(v, &shapes[k], rounds);
		printf("%s - %s\n", failures ? "not ok" : "ok", v->name);
		bad += failures;
	}
	return bad ? 1 : 0;
}
