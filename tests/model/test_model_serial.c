/* SPDX-License-Identifier: MIT */
/*
 * Random operations on every variant against a shadow of the live objects, one thread for all
 * CPUs.  Each live object carries its own number; an object handed out twice, or overwritten while
 * it is live, is seen at the latest when it is freed.  The variant's own invariants are checked
 * after every step in debug builds, every 64th in others.
 *
 * usage: test_model_serial [VARIANT [SEED]]   (the seed of a failure is printed)
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/slab.h"
#include "allocator/variant.h"

enum { LIVE_MAX = 1500, BULK_MAX = 60, SHEAVES_MAX = 4 };
#ifdef NDEBUG
enum { CHECK_EVERY = 64, STEPS = 20000 };
#else
enum { CHECK_EVERY = 1, STEPS = 2500 };
#endif

static uint64_t model_seed; /* global for the debugger */

struct shape {
	uint32_t cpus, nodes, size;
	uint64_t node_pages;
	uint32_t high_order_fail_permille;
	const char *knob; /* set at creation where the variant has it */
	int64_t value;
};

static const struct shape shapes[] = {
	{ 1, 1, 256, 0, 0, NULL, 0 },
	{ 4, 2, 8, 0, 0, NULL, 0 },
	{ 4, 2, 2048, 0, 0, "cpu_partial", 0 },
	{ 16, 4, 700, 0, 300, "remote_node_defrag_ratio", 0 },
	{ 4, 2, 4096, 40, 0, "min_partial", 0 },
	{ 2, 1, 192, 0, 0, "slab_thrash_ratio", 50 },
	{ 4, 2, 64, 0, 0, "remote_batch", 3 },
};

struct model {
	const struct alloc_variant *v;
	const struct shape *shape;
	struct alloc_machine *m;
	struct alloc_cache *c;
	uint64_t random, next_tag;
	struct {
		void *obj;
		uint64_t tag;
	} live[LIVE_MAX];
	uint32_t nr_live;
	struct alloc_sheaf *sheaves[SHEAVES_MAX];
	uint32_t sheaf_left[SHEAVES_MAX];
	uint64_t now_ns, failed;
};

static uint32_t draw(struct model *t, uint32_t below)
{
	t->random = t->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(t->random >> 33) % below;
}

static _Noreturn void broken(const struct model *t, uint32_t step, const char *what)
{
	fprintf(stderr, "not ok - %s, cpus %u, size %u, seed %" PRIu64 ", step %u: %s\n", t->v->name,
		t->shape->cpus, t->shape->size, model_seed, step, what);
	exit(1);
}

static void born(struct model *t, void *obj)
{
	uint64_t tag = ++t->next_tag;

	if (!obj) {
		t->failed++;
		return;
	}
	memset(obj, 0x5A, t->shape->size);
	memcpy(obj, &tag, sizeof(tag));
	t->live[t->nr_live].obj = obj;
	t->live[t->nr_live++].tag = tag;
}

/* A random live object leaves the shadow; its content must be what was written. */
static void *leave(struct model *t, uint32_t step)
{
	uint32_t at = draw(t, t->nr_live);
	void *obj = t->live[at].obj;
	uint64_t tag;

	memcpy(&tag, obj, sizeof(tag));
	if (tag != t->live[at].tag)
		broken(t, step, "a live object was overwritten");
	if (t->shape->size > sizeof(tag) && ((unsigned char *)obj)[t->shape->size - 1] != 0x5A)
		broken(t, step, "the end of a live object was overwritten");
	t->live[at] = t->live[--t->nr_live];
	return obj;
}

static uint32_t some_gfp(struct model *t)
{
	return ALLOC_GFP_MAY_SPIN | (draw(t, 2) ? ALLOC_GFP_MAY_BLOCK : 0) |
	       (draw(t, 8) ? 0 : ALLOC_GFP_THISNODE);
}

static void step_bulk(struct model *t, uint32_t cpu, uint32_t step)
{
	uint32_t nr = 1 + draw(t, BULK_MAX), got;
	void *objs[BULK_MAX];

	if (draw(t, 2) && t->nr_live >= nr) {
		for (uint32_t i = 0; i < nr; i++)
			objs[i] = leave(t, step);
		t->v->free_bulk(t->c, cpu, nr, objs);
		return;
	}
	if (t->nr_live + nr > LIVE_MAX)
		return;
	got = t->v->alloc_bulk(t->c, cpu, ALLOC_GFP_MAY_BLOCK, nr, objs);
	if (got && got != nr)
		broken(t, step, "a bulk allocation returned a part");
	for (uint32_t i = 0; i < got; i++)
		born(t, objs[i]);
}

/* Prefilled sheaves, for variants that have them. */
static void step_sheaf(struct model *t, uint32_t cpu, uint32_t step)
{
	uint32_t slot = draw(t, SHEAVES_MAX), nr = 1 + draw(t, 40);
	struct alloc_sheaf **s = &t->sheaves[slot];
	void *obj;

	if (!t->v->prefill)
		return;
	if (!*s) {
		*s = t->v->prefill(t->c, cpu, ALLOC_GFP_MAY_BLOCK, nr);
		t->sheaf_left[slot] = *s ? nr : 0;
	} else if (draw(t, 4) && t->sheaf_left[slot] && t->nr_live < LIVE_MAX) {
		obj = t->v->sheaf_alloc(t->c, cpu, *s);
		if (!obj)
			broken(t, step, "a prefilled sheaf was short");
		born(t, obj);
		t->sheaf_left[slot]--;
	} else if (draw(t, 2)) {
		if (t->v->sheaf_refill(t->c, cpu, ALLOC_GFP_MAY_BLOCK, s, nr) == 0 &&
		    t->sheaf_left[slot] < nr)
			t->sheaf_left[slot] = nr;
	} else {
		t->v->sheaf_return(t->c, cpu, *s);
		*s = NULL;
	}
}

static void step_rare(struct model *t, uint32_t cpu)
{
	switch (draw(t, 6)) {
	case 0:
		t->v->shrink(t->c);
		break;
	case 1:
		alloc_cache_page_limit(t->c, draw(t, 3));
		break;
	case 2:
		if (t->v->rcu_barrier)
			t->v->rcu_barrier(t->c);
		break;
	case 3:
		t->now_ns += 1 + draw(t, 3) * 1000000000ull;
		for (uint32_t i = 0; t->v->tick && i < t->shape->cpus; i++)
			t->v->tick(t->c, i, t->now_ns);
		break;
	default:
		t->v->flush_cpu(t->c, cpu);
	}
}

static void step_once(struct model *t, uint32_t step)
{
	uint32_t cpu = draw(t, t->shape->cpus), what = draw(t, 1000);
	/* Long tides of growing and shrinking visit more states than a steady number of objects. */
	uint32_t alloc_share = step / 500 % 2 ? 400 : 550;
	int32_t node = draw(t, 8) ? ALLOC_NODE_ANY : (int32_t)draw(t, t->shape->nodes);

	if (what < 5) {
		step_rare(t, cpu);
	} else if (what < 40) {
		step_bulk(t, cpu, step);
	} else if (what < 80) {
		step_sheaf(t, cpu, step);
	} else if (t->nr_live < LIVE_MAX && (!t->nr_live || what < alloc_share)) {
		born(t, t->v->alloc(t->c, cpu, node, some_gfp(t)));
	} else if (t->nr_live) {
		if (t->v->free_rcu && !draw(t, 8))
			t->v->free_rcu(t->c, cpu, leave(t, step));
		else
			t->v->free(t->c, cpu, leave(t, step));
	}
}

static void check(const struct model *t, uint32_t step)
{
	struct alloc_cache_state st;
	char why[256];

	if (t->v->check(t->c, why, sizeof(why)) < 0)
		broken(t, step, why);
	t->v->state(t->c, &st);
	if (st.objects > st.total_objects || st.partial > st.slabs ||
	    st.objects_partial > st.objects || st.total_objects < t->nr_live)
		broken(t, step, "state values contradict one another");
}

static bool has_knob(const struct alloc_variant *v, const char *name)
{
	for (uint32_t i = 0; name && i < v->nr_knobs; i++)
		if (!strcmp(v->knobs[i].name, name))
			return true;
	return false;
}

static void open_model(struct model *t)
{
	uint16_t cpu_node[16];
	struct alloc_machine_config mc = { .cpus = t->shape->cpus, .nodes = t->shape->nodes,
		.cpu_node = cpu_node, .seed = model_seed, .node_pages = t->shape->node_pages,
		.high_order_fail_permille = t->shape->high_order_fail_permille };
	struct alloc_knob_value knob = { t->shape->knob, t->shape->value };
	struct alloc_cache_config cc = { .name = "model", .object_size = t->shape->size,
					 .knobs = &knob,
					 .nr_knobs = has_knob(t->v, knob.name) };

	for (uint32_t i = 0; i < t->shape->cpus; i++)
		cpu_node[i] = (uint16_t)(i * t->shape->nodes / t->shape->cpus);
	if (alloc_machine_create(&mc, &t->m) < 0 || t->v->create(t->m, &cc, &t->c) < 0)
		broken(t, 0, "cannot be created");
}

static void run(const struct alloc_variant *v, const struct shape *shape)
{
	struct model *t = calloc(1, sizeof(*t));

	if (!t)
		exit(1);
	t->v = v;
	t->shape = shape;
	t->random = model_seed * 2654435761u + shape->size;
	open_model(t);
	for (uint32_t step = 0; step < STEPS; step++) {
		step_once(t, step);
		if (step % CHECK_EVERY == 0)
			check(t, step);
	}
	check(t, STEPS);
	for (int i = 0; i < SHEAVES_MAX; i++)
		if (t->sheaves[i])
			v->sheaf_return(t->c, 0, t->sheaves[i]);
	/* Half of the objects stay out: destroy gives their slabs back all the same. */
	while (t->nr_live > LIVE_MAX / 4)
		v->free(t->c, draw(t, shape->cpus), leave(t, STEPS));
	v->destroy(t->c);
	if (alloc_machine_pages(t->m))
		broken(t, STEPS, "pages left after destroy");
	alloc_machine_destroy(t->m);
	free(t);
}

int main(int argc, char **argv)
{
	const struct alloc_variant *v;

	model_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	for (uint32_t i = 0; (v = alloc_variant_at(i, ALLOC_SYNC_SERIAL)); i++) {
		if (argc > 1 && strcmp(argv[1], v->name))
			continue;
		for (size_t s = 0; s < sizeof(shapes) / sizeof(*shapes); s++)
			run(v, &shapes[s]);
		printf("ok - %s\n", v->name);
	}
	return 0;
}
