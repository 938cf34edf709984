/* SPDX-License-Identifier: MIT */
/*
 * Random operations on every variant against a shadow of the objects that are out, one thread for
 * all CPUs.  Each of them carries its own number; an object handed out twice, or overwritten while
 * it is out, is seen at the latest when it is freed.  The variant's own invariants, the census of
 * all objects and the sysfs values are checked after every step in debug builds, every 64th in
 * others.  Machine, cache, knobs and load are drawn anew for each run.
 *
 * usage: test_model_serial [OPERATIONS [VARIANT [SEED]]]   (operations per variant; what fails
 *        prints the seed of its run: 1 VARIANT SEED repeats it)
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "tests/model/census.h"

enum { LIVE_MAX = 1200, BULK_MAX = 60, SHEAVES_MAX = 4, CPUS_MAX = 192, KNOBS_MAX = 3 };
#ifdef NDEBUG
enum { CHECK_EVERY = 64, OPERATIONS = 100000 };
#else
enum { CHECK_EVERY = 1, OPERATIONS = 12000 };
#endif

/* What one run is about; all drawn from its seed. */
struct shape {
	struct alloc_machine_config machine;
	struct alloc_cache_config cache;
	uint16_t cpu_node[CPUS_MAX];
	struct alloc_knob_value knobs[KNOBS_MAX];
	uint32_t live_max, steps;
	bool may_fragment; /* even the fallback order may be refused */
};

struct model {
	const struct alloc_variant *v;
	struct shape shape;
	struct alloc_machine *m;
	struct alloc_cache *c;
	struct census census;
	uint64_t seed, random, next_tag;
	struct {
		void *obj;
		uint64_t tag;
	} live[LIVE_MAX];
	uint32_t nr_live, step, page_limit;
	struct alloc_sheaf *sheaves[SHEAVES_MAX];
	uint32_t sheaf_left[SHEAVES_MAX];
	uint64_t now_ns, checks;
};

static uint32_t draw(struct model *t, uint32_t below)
{
	t->random = t->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(t->random >> 33) % below;
}

static _Noreturn void broken(const struct model *t, const char *what)
{
	const struct shape *s = &t->shape;

	fprintf(stderr,
		"not ok - %s, seed %" PRIu64 ", step %u: %s\n  %u cpus, %u nodes of %" PRIu64
		" pages, size %u, align %u, flags %u, %u objects at most\n",
		t->v->name, t->seed, t->step, what, s->machine.cpus, s->machine.nodes,
		s->machine.node_pages, s->cache.object_size, s->cache.align, s->cache.flags,
		s->live_max);
	for (size_t i = 0; i < s->cache.nr_knobs; i++)
		fprintf(stderr, "  %s = %" PRId64 "\n", s->knobs[i].name, s->knobs[i].value);
	exit(1);
}

/* ---- objects ---- */

/* Objects shorter than a tag carry its low bytes. */
static size_t tag_bytes(const struct model *t)
{
	uint32_t size = t->shape.cache.object_size;

	return size < sizeof(uint64_t) ? size : sizeof(uint64_t);
}

/* Nothing limits the pages of this run now, so no allocation has an excuse. */
static bool memory_is_plenty(const struct model *t)
{
	return !t->page_limit && !t->shape.machine.node_pages && !t->shape.may_fragment;
}

static void born(struct model *t, void *obj)
{
	uint64_t tag = ++t->next_tag;

	if (!obj) {
		if (memory_is_plenty(t))
			broken(t, "an allocation failed with memory left");
		return;
	}
	if (t->shape.cache.align && (uintptr_t)obj % t->shape.cache.align)
		broken(t, "an object is not aligned as asked");
	memset(obj, 0x5A, t->shape.cache.object_size);
	memcpy(obj, &tag, tag_bytes(t));
	t->live[t->nr_live].obj = obj;
	t->live[t->nr_live++].tag = tag;
}

/* A random object leaves the shadow; its content must be what was written. */
static void *leave(struct model *t)
{
	uint32_t at = draw(t, t->nr_live), size = t->shape.cache.object_size;
	void *obj = t->live[at].obj;

	if (memcmp(obj, &t->live[at].tag, tag_bytes(t)))
		broken(t, "an object was overwritten while it was out");
	if (size > sizeof(uint64_t) && ((unsigned char *)obj)[size - 1] != 0x5A)
		broken(t, "the end of an object was overwritten while it was out");
	t->live[at] = t->live[--t->nr_live];
	return obj;
}

/* ---- steps ---- */

static uint32_t some_gfp(struct model *t)
{
	return ALLOC_GFP_MAY_SPIN | (draw(t, 2) ? ALLOC_GFP_MAY_BLOCK : 0) |
	       (draw(t, 8) ? 0 : ALLOC_GFP_THISNODE);
}

static void step_bulk(struct model *t, uint32_t cpu)
{
	uint32_t nr = 1 + draw(t, BULK_MAX), got;
	void *objs[BULK_MAX];

	if (draw(t, 2) && t->nr_live >= nr) {
		for (uint32_t i = 0; i < nr; i++)
			objs[i] = leave(t);
		t->v->free_bulk(t->c, cpu, nr, objs);
		return;
	}
	if (t->nr_live + nr > t->shape.live_max)
		return;
	got = t->v->alloc_bulk(t->c, cpu, ALLOC_GFP_MAY_BLOCK, nr, objs);
	if (got && got != nr)
		broken(t, "a bulk allocation returned a part");
	if (!got && memory_is_plenty(t))
		broken(t, "a bulk allocation failed with memory left");
	for (uint32_t i = 0; i < got; i++)
		born(t, objs[i]);
}

/* Prefilled sheaves, for variants that have them. */
static void step_sheaf(struct model *t, uint32_t cpu)
{
	uint32_t slot = draw(t, SHEAVES_MAX), nr = 1 + draw(t, 40);
	struct alloc_sheaf **s = &t->sheaves[slot];
	void *obj;

	if (!t->v->prefill)
		return;
	if (!*s) {
		*s = t->v->prefill(t->c, cpu, ALLOC_GFP_MAY_BLOCK, nr);
		t->sheaf_left[slot] = *s ? nr : 0;
	} else if (draw(t, 4) && t->sheaf_left[slot] && t->nr_live < t->shape.live_max) {
		obj = t->v->sheaf_alloc(t->c, cpu, *s);
		if (!obj)
			broken(t, "a prefilled sheaf was short");
		born(t, obj);
		t->sheaf_left[slot]--;
	} else if (draw(t, 2)) {
		if (t->v->sheaf_refill(t->c, cpu, ALLOC_GFP_MAY_BLOCK, s, nr) == 0 &&
		    t->sheaf_left[slot] < nr)
			t->sheaf_left[slot] = nr;
	} else {
		t->v->sheaf_return(t->c, cpu, *s);
		*s = NULL;
		t->sheaf_left[slot] = 0;
	}
}

/* A value inside the knob's range, mostly a small one. */
static int64_t some_value(struct model *t, const struct alloc_knob *knob)
{
	uint64_t span = (uint64_t)knob->max - (uint64_t)knob->min;
	uint32_t small = draw(t, 4) ? 12 : 200;

	return knob->min + (int64_t)draw(t, span < small ? (uint32_t)span + 1 : small);
}

static void step_knob(struct model *t)
{
	const struct alloc_knob *knob;
	int64_t value;
	int rc;

	if (!t->v->nr_knobs)
		return;
	knob = &t->v->knobs[draw(t, t->v->nr_knobs)];
	rc = t->v->set_knob(t->c, knob->name, some_value(t, knob));
	/* Rules between knobs, and those of the cache's making, refuse. */
	if (rc && rc != -EINVAL)
		broken(t, "a knob of the table cannot be set");
	if (t->v->get_knob(t->c, knob->name, &value) < 0 && !knob->at_create)
		broken(t, "a knob of the table cannot be read");
}

static void step_rare(struct model *t, uint32_t cpu)
{
	switch (draw(t, 8)) {
	case 0:
		t->v->shrink(t->c);
		break;
	case 1:
	case 2:
		t->page_limit = draw(t, 4) % 3;
		alloc_cache_page_limit(t->c, t->page_limit);
		break;
	case 3:
		if (t->v->rcu_barrier)
			t->v->rcu_barrier(t->c);
		break;
	case 4:
		t->now_ns += 1 + draw(t, 3) * 1000000000ull;
		for (uint32_t i = 0; t->v->tick && i < t->shape.machine.cpus; i++)
			t->v->tick(t->c, i, t->now_ns);
		break;
	case 5:
		step_knob(t);
		break;
	default:
		t->v->flush_cpu(t->c, cpu);
	}
}

static void step_once(struct model *t)
{
	uint32_t cpu = draw(t, t->shape.machine.cpus), what = draw(t, 1000);
	/* Long tides of growing and shrinking visit more states than a steady number of objects. */
	uint32_t alloc_share = t->step / 500 % 2 ? 400 : 550;
	int32_t node = draw(t, 8) ? ALLOC_NODE_ANY : (int32_t)draw(t, t->shape.machine.nodes);

	if (what < 6) {
		step_rare(t, cpu);
	} else if (what < 40) {
		step_bulk(t, cpu);
	} else if (what < 80) {
		step_sheaf(t, cpu);
	} else if (t->nr_live < t->shape.live_max && (!t->nr_live || what < alloc_share)) {
		born(t, t->v->alloc(t->c, cpu, node, some_gfp(t)));
	} else if (t->nr_live) {
		if (t->v->free_rcu && !draw(t, 8))
			t->v->free_rcu(t->c, cpu, leave(t));
		else
			t->v->free(t->c, cpu, leave(t));
	}
}

/* ---- checks ---- */

static void check_census(struct model *t)
{
	uint64_t kept = 0;
	bool sheaves = false;
	const char *what;

	census_begin(&t->census, t->v, t->m, t->c);
	for (uint32_t i = 0; i < t->nr_live; i++)
		census_out(&t->census, t->live[i].obj);
	for (int i = 0; i < SHEAVES_MAX; i++) {
		kept += t->sheaf_left[i];
		sheaves |= t->sheaves[i] != NULL;
	}
	if ((what = census_end(&t->census, kept, !sheaves)))
		broken(t, what);
}

static void check(struct model *t)
{
	struct alloc_cache_state st;
	char why[256];

	t->checks++;
	if (t->v->check(t->c, why, sizeof(why)) < 0)
		broken(t, why);
	check_census(t);
	t->v->state(t->c, &st);
	if (st.slabs != t->census.slabs || st.total_objects != t->census.objects)
		broken(t, "the slabs or objects of sysfs are not those that live");
	if (st.objects > st.total_objects || st.partial > st.slabs ||
	    st.objects_partial > st.objects || st.objects < t->nr_live)
		broken(t, "sysfs values contradict one another");
}

/* ---- runs ---- */

static void draw_cache(struct model *t)
{
	static const uint32_t sizes[] = { 1, 8, 24, 64, 192, 256, 700, 1024, 2048, 4096, 5000, 8192,
					  20000, 60000 };
	struct shape *s = &t->shape;

	s->cache = (struct alloc_cache_config){
		.name = "model", .object_size = sizes[draw(t, sizeof(sizes) / sizeof(*sizes))],
		.align = draw(t, 4) ? 0 : 1u << draw(t, 10), .flags = draw(t, 8), .knobs = s->knobs };
	for (uint32_t i = draw(t, KNOBS_MAX + 1); i && t->v->nr_knobs; i--) {
		const struct alloc_knob *knob = &t->v->knobs[draw(t, t->v->nr_knobs)];

		s->knobs[s->cache.nr_knobs++] =
			(struct alloc_knob_value){ knob->name, some_value(t, knob) };
	}
}

static void draw_machine(struct model *t)
{
	static const uint32_t cpus[] = { 1, 2, 4, 4, 16, CPUS_MAX }, nodes[] = { 1, 2, 2, 4, 8 };
	static const uint32_t live[] = { 12, 60, 60, 300, LIVE_MAX };
	struct alloc_machine_config *mc = &t->shape.machine;

	*mc = (struct alloc_machine_config){
		.cpus = cpus[draw(t, 6)], .nodes = nodes[draw(t, 5)],
		.cpu_node = t->shape.cpu_node, .seed = t->seed,
		.node_pages = draw(t, 4) ? 0 : 1 + draw(t, 60),
		.high_order_fail_permille = draw(t, 4) ? 0 : draw(t, 1000) };
	/* A node may have no CPU, and the nodes' CPUs need not be neighbours. */
	for (uint32_t i = 0, mixed = draw(t, 2); i < mc->cpus; i++)
		t->shape.cpu_node[i] =
			(uint16_t)(mixed ? draw(t, mc->nodes) : i * mc->nodes / mc->cpus);
	t->shape.live_max = live[draw(t, 5)];
}

/* False: this variant refuses the drawn cache, which is allowed for odd sizes and knobs. */
static bool open_model(struct model *t)
{
	struct alloc_geometry geo;

	draw_machine(t);
	draw_cache(t);
	if (alloc_machine_create(&t->shape.machine, &t->m) < 0)
		broken(t, "no machine");
	if (t->v->create(t->m, &t->shape.cache, &t->c) < 0) {
		if (!t->shape.cache.nr_knobs && t->shape.cache.object_size <= 8192)
			broken(t, "cannot be created");
		alloc_machine_destroy(t->m);
		return false;
	}
	alloc_cache_geometry(t->c, &geo);
	t->shape.may_fragment = t->shape.machine.high_order_fail_permille && geo.min_order;
	/* Checks look at every object: fewer steps for caches with many. */
	t->shape.steps = geo.objects > 64 || t->shape.live_max > 300 ||
			 t->shape.machine.cpus > 16 ? 1500 : 6000;
	return true;
}

static void close_model(struct model *t)
{
	struct alloc_cache_state st;

	for (int i = 0; i < SHEAVES_MAX; i++) {
		if (t->sheaves[i])
			t->v->sheaf_return(t->c, 0, t->sheaves[i]);
		t->sheaves[i] = NULL;
		t->sheaf_left[i] = 0;
	}
	check(t);
	/* Every other run leaves half of the objects out: destroy gives their slabs back too. */
	for (uint32_t keep = t->seed % 2 ? t->nr_live / 2 : 0; t->nr_live > keep;)
		t->v->free(t->c, draw(t, t->shape.machine.cpus), leave(t));
	if (t->v->rcu_barrier)
		t->v->rcu_barrier(t->c);
	t->v->shrink(t->c);
	check(t);
	t->v->state(t->c, &st);
	if (!t->nr_live && !strncmp(t->v->name, "slub-", 5) && st.slabs)
		broken(t, "slabs are left after shrink, and nothing is out");
	t->v->destroy(t->c);
	if (alloc_machine_pages(t->m))
		broken(t, "pages left after destroy");
	alloc_machine_destroy(t->m);
	census_fini(&t->census);
}

/* How many operations it made. */
static uint64_t run(const struct alloc_variant *v, uint64_t seed, uint64_t *checks)
{
	struct model *t = calloc(1, sizeof(*t));
	uint64_t steps = 0;

	if (!t)
		exit(1);
	t->v = v;
	t->seed = t->random = seed;
	for (int i = 0; i < 8; i++)
		draw(t, 1); /* neighbouring seeds part */
	if (open_model(t)) {
		for (; t->step < t->shape.steps; t->step++) {
			step_once(t);
			if (t->step % CHECK_EVERY == 0)
				check(t);
		}
		close_model(t);
		steps = t->step;
		*checks += t->checks;
	}
	free(t);
	return steps;
}

int main(int argc, char **argv)
{
	uint64_t operations = argc > 1 ? strtoull(argv[1], NULL, 10) : OPERATIONS;
	uint64_t first = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
	const struct alloc_variant *v;

	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* many short-lived machines, small each */
	for (uint32_t i = 0; (v = alloc_variant_at(i, ALLOC_SYNC_SERIAL)); i++) {
		uint64_t done = 0, checks = 0, seed = first;

		if (argc > 2 && strcmp(argv[2], v->name))
			continue;
		for (; done < operations; seed++)
			done += run(v, seed, &checks);
		printf("ok - %s: %" PRIu64 " operations in %" PRIu64 " runs, %" PRIu64 " checks\n",
		       v->name, done, seed - first, checks);
		fflush(stdout);
	}
	return 0;
}
