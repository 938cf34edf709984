/* SPDX-License-Identifier: MIT */
/*
 * Placement by a recording: a reference allocator plays the kernel, a second one replays its
 * operations with the reference's slabs and positions as what was recorded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "allocator/variant.h"

enum { CPUS = 4, NODES = 2, STEPS = 6000, SLABS_MAX = 4096, LIVE_MAX = 700 };

struct side {
	struct alloc_machine *m;
	struct alloc_cache *c;
};

struct pair {
	const struct alloc_variant *v;
	struct side kernel, replay;
	struct alloc_place map[SLABS_MAX]; /* by the kernel's slab id */
	struct {
		void *kernel, *replay; /* replay NULL: allocated before the recording */
	} live[LIVE_MAX];
	uint32_t nr_live;
	uint64_t state, placed, same_slab, same_index;
};

static uint32_t next_random(struct pair *p, uint32_t below)
{
	p->state = p->state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(p->state >> 33) % below;
}

static void open_side(const struct alloc_variant *v, struct side *s, uint64_t seed)
{
	static const uint16_t cpu_node[CPUS] = { 0, 0, 1, 1 };
	struct alloc_machine_config mc = { .cpus = CPUS, .nodes = NODES, .cpu_node = cpu_node,
					   .seed = seed };
	struct alloc_cache_config cc = { .name = "placed", .object_size = 256 };

	assert_int_equal(alloc_machine_create(&mc, &s->m), 0);
	assert_int_equal(v->create(s->m, &cc, &s->c), 0);
}

static void close_side(const struct alloc_variant *v, struct side *s)
{
	v->destroy(s->c);
	assert_int_equal(alloc_machine_pages(s->m), 0);
	alloc_machine_destroy(s->m);
}

/* One allocation on both sides; @lie: the recording names a slab at random. */
static void step_alloc(struct pair *p, uint32_t cpu, int32_t node, bool recorded, bool lie)
{
	void *kernel = p->v->alloc(p->kernel.c, cpu, node, ALLOC_GFP_MAY_BLOCK), *replay = NULL;
	struct alloc_slab_info info;
	struct alloc_place want;
	struct alloc_slab *got;
	uint32_t index, got_index;

	assert_non_null(kernel);
	alloc_slab_info(alloc_slab_of(p->kernel.m, kernel, &index), &info);
	assert_true(info.id < SLABS_MAX);
	want = p->map[lie ? next_random(p, info.id + 1) : info.id];
	want.index = index;
	if (recorded) {
		replay = p->v->alloc_placed(p->replay.c, cpu, node, ALLOC_GFP_MAY_BLOCK, &want);
		assert_non_null(replay);
		got = alloc_slab_of(p->replay.m, replay, &got_index);
		p->placed++;
		p->same_slab += !want.slab || got == want.slab;
		p->same_index += got_index == index;
		p->map[info.id].slab = got;
		alloc_slab_info(got, &info);
		want.slab_id = info.id;
		alloc_slab_info(alloc_slab_of(p->kernel.m, kernel, &index), &info);
		p->map[info.id].slab_id = want.slab_id;
	}
	p->live[p->nr_live].kernel = kernel;
	p->live[p->nr_live++].replay = replay;
}

static void step_free(struct pair *p, uint32_t cpu)
{
	uint32_t at = next_random(p, p->nr_live);

	p->v->free(p->kernel.c, cpu, p->live[at].kernel);
	if (p->live[at].replay)
		p->v->free(p->replay.c, cpu, p->live[at].replay);
	p->live[at] = p->live[--p->nr_live];
}

static void run(struct pair *p, uint32_t steps, bool recorded, bool lie)
{
	char why[256];

	for (uint32_t i = 0; i < steps; i++) {
		uint32_t cpu = next_random(p, CPUS);
		int32_t node = next_random(p, 16) ? ALLOC_NODE_ANY : (int32_t)next_random(p, NODES);

		if (!p->nr_live || (next_random(p, 100) < 50 && p->nr_live < LIVE_MAX))
			step_alloc(p, cpu, node, recorded, lie);
		else
			step_free(p, cpu);
		if (p->v->check(p->replay.c, why, sizeof(why)) < 0)
			fail_msg("%s, step %u: %s", p->v->name, i, why);
	}
}

static struct pair *open_pair(const char *variant, uint64_t replay_seed)
{
	struct pair *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->v = alloc_variant_find(variant, ALLOC_SYNC_SERIAL);
	assert_non_null(p->v);
	assert_non_null(p->v->alloc_placed);
	p->state = 1;
	open_side(p->v, &p->kernel, 1);
	open_side(p->v, &p->replay, replay_seed);
	return p;
}

static void close_pair(struct pair *p)
{
	close_side(p->v, &p->kernel);
	close_side(p->v, &p->replay);
	free(p);
}

struct sum {
	const char *name;
	int64_t value;
};

static void add(void *ctx, uint32_t cpu, const char *name, int64_t value)
{
	struct sum *s = ctx;

	(void)cpu;
	if (!strcmp(name, s->name))
		s->value += value;
}

static int64_t counter(const struct side *s, const char *name)
{
	struct sum sum = { .name = name };

	alloc_read_counters(s->c, add, &sum);
	return sum.value;
}

static const char *const variants[] = { "slub-3.2", "slub-5.15", "slub-6.1", "slub-6.1-halffull",
					"slub-6.1-numalocal", "slub-6.1-minfree", "slub-6.12" };
enum { NR_VARIANTS = sizeof(variants) / sizeof(*variants) };

static void from_the_start_everything_is_equal(void **state)
{
	(void)state;
	for (int i = 0; i < NR_VARIANTS; i++) {
		struct pair *p = open_pair(variants[i], 1);

		run(p, STEPS, true, false);
		assert_int_equal(p->same_slab, p->placed);
		assert_int_equal(p->same_index, p->placed);
		for (uint32_t n = 0; n < p->v->nr_counters; n++) {
			const char *name =
				alloc_counter_name((enum alloc_counter)p->v->counters[n]);

			assert_int_equal(counter(&p->kernel, name), counter(&p->replay, name));
		}
		close_pair(p);
	}
}

/* Another seed of the remote gate: lists differ now and then, the placement does not. */
static void other_decisions_keep_the_placement(void **state)
{
	struct pair *p = open_pair("slub-6.1", 99);
	int64_t kernel, replay;

	(void)state;
	run(p, STEPS, true, false);
	assert_true(p->same_slab * 100 >= p->placed * 98);
	kernel = counter(&p->kernel, "alloc_slowpath");
	replay = counter(&p->replay, "alloc_slowpath");
	assert_true(llabs(kernel - replay) * 50 <= kernel);
	close_pair(p);
}

/* The recording begins in the middle: slabs and objects from before are unknown. */
static void cold_start_finds_its_slabs(void **state)
{
	for (int i = 0; i < NR_VARIANTS; i++) {
		struct pair *p = open_pair(variants[i], 1);

		(void)state;
		run(p, STEPS / 2, false, false);
		run(p, STEPS / 2, true, false);
		assert_true(p->same_slab * 100 >= p->placed * 90);
		close_pair(p);
	}
}

static void wrong_recordings_break_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < NR_VARIANTS; i++) {
		struct pair *p = open_pair(variants[i], 1);

		run(p, STEPS, true, true);
		close_pair(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_the_start_everything_is_equal),
		cmocka_unit_test(other_decisions_keep_the_placement),
		cmocka_unit_test(cold_start_finds_its_slabs),
		cmocka_unit_test(wrong_recordings_break_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
