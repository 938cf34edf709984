/* SPDX-License-Identifier: MIT */
/*
 * SLAB: hand-derived answers for the rules no golden case decides (knobs, reaper, memory
 * exhaustion, 2.6.30) and for the mapping of its lists to states, refills and free classes.
 * What goldens decide is judged by tests/golden.
 */
#include "allocator_fixture.h"

#include <errno.h>
#include <stdbool.h>

static struct fix f; /* large: kept off the stack */
static void *objs[1024];

#define SECOND 1000000000ull
#define KNOBS(...)                                                    \
	.knobs = (const struct alloc_knob_value[]){ __VA_ARGS__ },    \
	.nr_knobs = sizeof((const struct alloc_knob_value[]){ __VA_ARGS__ }) / \
		    sizeof(struct alloc_knob_value)

/* 124 objects of 32 bytes: 16 for an array not used yet, then the whole batch of 60. */
static void refill_of_an_untouched_array_is_small(void **state)
{
	const struct fix_refill want[] = { { ALLOC_REFILL_NEW_SLAB, 16 },
					   { ALLOC_REFILL_NODE_PARTIAL, 60 } };

	(void)state;
	fix_open(&f, &(struct fix_config){ "slab-6.1", .cpus = 1, .nodes = 1, .size = 32 });
	objs[0] = fix_alloc(&f, 0);
	fix_expect_object(&f, objs[0], 0, 15); /* appended in order, popped from the end */
	assert_int_equal(fix_counter(&f, "ac_avail"), 15);
	assert_int_equal(fix_counter(&f, "free_objects_n0"), 124 - 16);
	fix_alloc_many(&f, 0, objs + 1, 16);
	fix_expect_object(&f, objs[16], 0, 16 + 59);
	assert_int_equal(fix_counter(&f, "free_objects_n0"), 124 - 16 - 60);
	fix_expect_refills(&f, want, 2);
	fix_close(&f);
}

/* Limit 8, batch 5, shared 3 * 5 = 15.  An alien drain leaves room for 3 in the shared array. */
static void shared_array_takes_what_fits(void **state)
{
	(void)state;
	fix_open(&f, &(struct fix_config){ "slab-6.1", .cpus = 4, .nodes = 2, .size = 256,
		KNOBS({ "limit", 8 }, { "batchcount", 5 }, { "shared", 3 }) });
	fix_alloc_many(&f, 0, objs, 32);
	fix_free_many(&f, 2, objs, 12); /* CPU 2 is on node 1 */
	assert_int_equal(fix_counter(&f, "alien_n1"), 12);
	assert_int_equal(fix_counter(&f, "shared_n0"), 0);
	f.v->free(f.c, 2, objs[12]); /* full: the twelve go home, all fit the shared array */
	assert_int_equal(fix_counter(&f, "alien_n1"), 1);
	assert_int_equal(fix_counter(&f, "shared_n0"), 12);
	/* 5 + 5 + 5 + 1 objects a slab, two slabs: nothing left in the array. */
	assert_int_equal(fix_counter_of(&f, "ac_avail", 0), 0);
	fix_free_many(&f, 0, objs + 13, 8);
	assert_int_equal(fix_counter(&f, "shared_n0"), 12);
	f.v->free(f.c, 0, objs[21]);
	assert_int_equal(fix_counter(&f, "shared_n0"), 15);
	assert_int_equal(fix_counter_of(&f, "ac_avail", 0), 8 - 3 + 1);
	fix_free_many(&f, 0, objs + 22, 3); /* the third does not fit: five go to the slabs */
	assert_int_equal(fix_counter_of(&f, "ac_avail", 0), 8 - 5 + 1);
	assert_int_equal(fix_counter(&f, "free_objects_n0"), 5);
	fix_close(&f);
}

/* The youngest of the shared array come first; 6.1 marks it as used, 2.6.30 does not. */
static void refill_from_the_shared_array(void **state)
{
	static const char *const names[] = { "slab-6.1", "slab-2.6.30" };
	const struct fix_refill want = { ALLOC_REFILL_SPARE, 2 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		fix_open(&f, &(struct fix_config){ names[i], .cpus = 2, .nodes = 1, .size = 512,
			KNOBS({ "limit", 4 }, { "batchcount", 2 }, { "shared", 2 }) });
		fix_alloc_many(&f, 0, objs, 8);
		fix_free_many(&f, 0, objs, 7); /* 0..3 to the shared array, 4..6 here */
		assert_int_equal(fix_counter(&f, "shared_n0"), 4);
		f.nr_refills = 0;
		assert_ptr_equal(fix_alloc(&f, 1), objs[3]);
		assert_ptr_equal(fix_alloc(&f, 1), objs[2]);
		fix_expect_refills(&f, &want, 1);
		/* Untouched in 2.6.30, so that the first node pass already takes from it. */
		f.v->tick(f.c, 1, 4 * SECOND);
		assert_int_equal(fix_counter(&f, "shared_n0"), i == 0 ? 2 : 1);
		fix_close(&f);
	}
}

/*
 * Page-sized objects, one CPU: limit 24, batch 12, free_limit 2 * 12 + 1 = 25.  Of the 36 slabs
 * emptied by three flushes 6.1 drops the eleven that wait longest, 2.6.30 the eleven latest.
 */
static void free_limit_drops_slabs(void **state)
{
	static const struct {
		const char *name;
		uint32_t first;
	} cases[] = { { "slab-6.1", 0 }, { "slab-2.6.30", 25 } };

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint32_t next = cases[i].first;

		fix_open(&f, &(struct fix_config){ cases[i].name, .cpus = 1, .nodes = 1,
						   .size = 4096 });
		fix_alloc_many(&f, 0, objs, 60);
		f.nr_moves = 0;
		fix_free_many(&f, 0, objs, 60);
		assert_int_equal(fix_counter(&f, "ac_avail"), 24);
		assert_int_equal(fix_counter(&f, "free_objects_n0"), 25);
		assert_int_equal(fix_counter(&f, "free_slabs_n0"), 25);
		assert_int_equal(fix_counter(&f, "total_slabs_n0"), 49);
		assert_int_equal(alloc_machine_pages(f.m), 49);
		for (uint32_t j = 0; j < f.nr_moves; j++)
			if (f.moves[j].to == ALLOC_STATE_NONE)
				assert_int_equal(f.moves[j].slab, next++);
		assert_int_equal(next, cases[i].first + 11);
		assert_int_equal(alloc_free_class(f.c, 3), 36); /* one-object slabs: full->empty */
		fix_close(&f);
	}
}

/* A request that names another node takes one object there, past all arrays. */
static void node_requests_bypass_the_arrays(void **state)
{
	const struct fix_refill want[] = { { ALLOC_REFILL_NEW_SLAB, 1 },
		{ ALLOC_REFILL_REMOTE_NODE, 1 }, { ALLOC_REFILL_NODE_PARTIAL, 14 } };

	(void)state;
	fix_open(&f, &(struct fix_config){ "slab-6.1", .cpus = 4, .nodes = 2, .size = 256 });
	fix_expect_object(&f, fix_alloc_node(&f, 0, 1), 0, 0);
	fix_expect_object(&f, fix_alloc_node(&f, 0, 1), 0, 1);
	assert_int_equal(fix_counter(&f, "ac_avail"), 0);
	assert_int_equal(fix_counter(&f, "free_objects_n1"), 14);
	assert_int_equal(fix_counter(&f, "total_slabs_n0"), 0);
	fix_expect_object(&f, fix_alloc_node(&f, 2, 1), 0, 15); /* CPU 2 is there: its array */
	assert_int_equal(fix_counter_of(&f, "ac_avail", 2), 13);
	fix_expect_refills(&f, want, 3);
	fix_close(&f);
}

/* Two pages a node: when the own node is out, free objects elsewhere, then pages elsewhere. */
static void exhausted_node_falls_back(void **state)
{
	static const char *const names[] = { "slab-6.1", "slab-2.6.30" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct alloc_slab_info info;
		uint32_t at;

		fix_open(&f, &(struct fix_config){ names[i], .cpus = 2, .nodes = 2, .size = 2048,
						   .node_pages = 2 });
		fix_alloc_many(&f, 0, objs, 4);
		assert_int_equal(fix_counter(&f, "total_slabs_n0"), 2);
		assert_null(f.v->alloc(f.c, 0, ALLOC_NODE_ANY, FIX_GFP | ALLOC_GFP_THISNODE));
		fix_alloc_many(&f, 0, objs + 4, 4);
		for (int j = 4; j < 8; j++) {
			alloc_slab_info(alloc_slab_of(f.m, objs[j], &at), &info);
			assert_int_equal(info.node, 1);
		}
		assert_int_equal(fix_counter(&f, "total_slabs_n1"), 2);
		assert_null(f.v->alloc(f.c, 0, ALLOC_NODE_ANY, FIX_GFP));
		assert_int_equal(f.v->alloc_bulk(f.c, 0, FIX_GFP, 2, objs + 8), 0);
		fix_close(&f);
	}
}

static void without_alien_arrays_straight_home(void **state)
{
	(void)state;
	fix_open(&f, &(struct fix_config){ "slab-6.1", .cpus = 2, .nodes = 2, .size = 256,
		KNOBS({ "use_alien_caches", 0 }) });
	fix_alloc_many(&f, 0, objs, 2);
	f.v->free(f.c, 1, objs[0]);
	assert_int_equal(fix_counter(&f, "alien_n1"), 0);
	assert_int_equal(fix_counter(&f, "free_objects_n0"), 1);
	assert_int_equal(alloc_free_class(f.c, 1), 1); /* full->partial */
	fix_close(&f);
}

/*
 * Sixteen objects of one slab in the array.  2 s: touched, left alone.  Then a half each time
 * (24 = (120 + 4) / 5 are not there): 8, 4, 2, 1, 1.  At 12 s the slab is empty and the node's pass,
 * due every 4 s, destroys it.
 */
static void reaper_empties_an_idle_cache(void **state)
{
	static const int left[] = { 16, 8, 4, 2, 1, 0 };

	(void)state;
	fix_open(&f, &(struct fix_config){ "slab-6.1", .cpus = 1, .nodes = 1, .size = 256 });
	fix_alloc_many(&f, 0, objs, 16);
	fix_free_many(&f, 0, objs, 16);
	f.v->tick(f.c, 0, 2 * SECOND - 1);
	assert_int_equal(fix_counter(&f, "ac_avail"), 16);
	for (int i = 0; i < 6; i++) {
		f.v->tick(f.c, 0, (uint64_t)(2 * i + 2) * SECOND);
		assert_int_equal(fix_counter(&f, "ac_avail"), left[i]);
		fix_check(&f);
	}
	assert_int_equal(alloc_machine_pages(f.m), 0);
	fix_close(&f);
	/* One late call makes up for all of them. */
	fix_open(&f, &(struct fix_config){ "slab-6.1", .cpus = 1, .nodes = 1, .size = 256 });
	fix_alloc_many(&f, 0, objs, 16);
	fix_free_many(&f, 0, objs, 16);
	f.v->tick(f.c, 0, 12 * SECOND);
	assert_int_equal(alloc_machine_pages(f.m), 0);
	fix_close(&f);
}

/* A CPU's pass drains the alien array of one other node, another one each time. */
static void reaper_drains_one_alien_array_a_pass(void **state)
{
	(void)state;
	fix_open(&f, &(struct fix_config){ "slab-6.1", .cpus = 3, .nodes = 3, .size = 256 });
	objs[0] = fix_alloc(&f, 1);
	objs[1] = fix_alloc(&f, 2);
	fix_free_many(&f, 0, objs, 2);
	assert_int_equal(fix_counter(&f, "alien_n0"), 2);
	f.v->tick(f.c, 0, 2 * SECOND); /* node 1 first */
	assert_int_equal(fix_counter(&f, "shared_n1"), 1);
	assert_int_equal(fix_counter(&f, "shared_n2"), 0);
	f.v->tick(f.c, 0, 4 * SECOND);
	assert_int_equal(fix_counter(&f, "shared_n2"), 1);
	assert_int_equal(fix_counter(&f, "alien_n0"), 0);
	fix_close(&f);
}

/* After a refill reached for the free list the node's pass leaves it alone once. */
static void reaper_spares_a_free_list_in_use(void **state)
{
	(void)state;
	fix_open(&f, &(struct fix_config){ "slab-6.1", .cpus = 1, .nodes = 1, .size = 4096 });
	fix_alloc_many(&f, 0, objs, 60);
	fix_free_many(&f, 0, objs, 60);	    /* 24 in the array, 25 free slabs */
	fix_alloc_many(&f, 0, objs, 24 + 1); /* the refill takes twelve slabs off the free list */
	assert_int_equal(fix_counter(&f, "free_slabs_n0"), 13);
	f.v->tick(f.c, 0, 2 * SECOND); /* array touched */
	f.v->tick(f.c, 0, 4 * SECOND); /* five objects back; node: free_touched is cleared */
	assert_int_equal(fix_counter(&f, "free_slabs_n0"), 13 + 5);
	f.v->tick(f.c, 0, 6 * SECOND); /* five of six */
	f.v->tick(f.c, 0, 8 * SECOND); /* the last one; then (25 + 5 - 1) / 5 = 5 slabs go */
	assert_int_equal(fix_counter(&f, "free_slabs_n0"), 13 + 5 + 5 + 1 - 5);
	fix_close(&f);
}

static void shrink_leaves_nothing_idle(void **state)
{
	static const char *const names[] = { "slab-6.1", "slab-2.6.30" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		fix_open(&f, &(struct fix_config){ names[i], .cpus = 4, .nodes = 2, .size = 700 });
		for (uint32_t j = 0; j < 800; j++)
			objs[j] = fix_alloc(&f, j % 4);
		for (uint32_t j = 0; j < 800; j++)
			f.v->free(f.c, (j + 2) % 4, objs[j]);
		f.v->flush_cpu(f.c, 0); /* means nothing here */
		fix_check(&f);
		f.v->shrink(f.c);
		assert_int_equal(alloc_machine_pages(f.m), 0);
		fix_close(&f);
	}
}

/* The table of docs/allocator-model.md: lists of SLAB as states. */
static void lists_map_to_states(void **state)
{
	const struct fix_move grown[] = { { 0, 0, ALLOC_STATE_NONE, ALLOC_STATE_PARTIAL } };
	const struct fix_move filled[] = { { 0, 0, ALLOC_STATE_PARTIAL, ALLOC_STATE_FULL } };
	const struct fix_move back[] = { { 0, 0, ALLOC_STATE_FULL, ALLOC_STATE_PARTIAL },
					 { 0, 0, ALLOC_STATE_PARTIAL, ALLOC_STATE_EMPTY },
					 { 0, 0, ALLOC_STATE_EMPTY, ALLOC_STATE_NONE } };
	const struct fix_move old_grown[] = { { 0, 0, ALLOC_STATE_NONE, ALLOC_STATE_EMPTY },
					      { 0, 0, ALLOC_STATE_EMPTY, ALLOC_STATE_PARTIAL } };

	(void)state;
	fix_open(&f, &(struct fix_config){ "slab-6.1", .cpus = 1, .nodes = 1, .size = 200,
		KNOBS({ "limit", 20 }, { "batchcount", 10 }) });
	fix_alloc_many(&f, 0, objs, 1); /* 10 of 20 objects in the array: out of the slab */
	fix_expect_moves(&f, grown, 1);
	fix_alloc_many(&f, 0, objs + 1, 10);
	fix_expect_moves(&f, filled, 1);
	fix_free_many(&f, 0, objs, 11); /* 9 + 11 = 20: all in the array, still full */
	fix_expect_moves(&f, NULL, 0);
	f.v->shrink(f.c);
	fix_expect_moves(&f, back, 3);
	assert_int_equal(alloc_free_class(f.c, 0), 18); /* partial->partial: only counted */
	assert_int_equal(alloc_free_class(f.c, 1), 1);
	assert_int_equal(alloc_free_class(f.c, 2), 1);
	assert_int_equal(alloc_free_class(f.c, 3), 0);
	fix_close(&f);

	fix_open(&f, &(struct fix_config){ "slab-2.6.30", .cpus = 1, .nodes = 1, .size = 32 });
	fix_alloc(&f, 0); /* 16 of 112; a new slab is public before it is used */
	fix_expect_moves(&f, old_grown, 2);
	fix_close(&f);
}

static int64_t knob(const char *name)
{
	int64_t value = -1;

	assert_int_equal(f.v->get_knob(f.c, name, &value), 0);
	return value;
}

static void tunables_are_checked_and_applied(void **state)
{
	int64_t value;

	(void)state;
	fix_open(&f, &(struct fix_config){ "slab-6.1", .cpus = 2, .nodes = 1, .size = 256 });
	assert_int_equal(f.v->set_knob(f.c, "min_partial", 5), -ENOENT);
	assert_int_equal(f.v->get_knob(f.c, "min_partial", &value), -ENOENT);
	assert_int_equal(f.v->set_knob(f.c, "limit", 0), -EINVAL);
	assert_int_equal(f.v->set_knob(f.c, "limit", 59), -EINVAL); /* below batchcount */
	assert_int_equal(f.v->set_knob(f.c, "batchcount", 121), -EINVAL);
	assert_int_equal(f.v->set_knob(f.c, "shared", -1), -EINVAL);
	assert_int_equal(f.v->set_knob(f.c, "slab_max_order", 0), -EINVAL); /* at creation only */
	assert_int_equal(knob("limit"), 120);
	fix_alloc_many(&f, 0, objs, 200);
	fix_free_many(&f, 0, objs, 200);
	assert_int_equal(fix_counter(&f, "shared_n0"), 120);
	assert_int_equal(f.v->set_knob(f.c, "batchcount", 10), 0);
	/* All arrays were emptied; free_limit is now 3 * 10 + 16 = 46. */
	assert_int_equal(fix_counter(&f, "ac_avail"), 0);
	assert_int_equal(fix_counter(&f, "shared_n0"), 0);
	assert_true(fix_counter(&f, "free_objects_n0") <= 46);
	assert_int_equal(f.v->set_knob(f.c, "limit", 10), 0);
	assert_int_equal(knob("limit"), 10);
	assert_int_equal(knob("batchcount"), 10);
	assert_int_equal(knob("shared"), 8);
	assert_int_equal(f.v->set_knob(f.c, "shared", 0), 0);
	fix_alloc_many(&f, 0, objs, 50);
	fix_free_many(&f, 0, objs, 50);
	assert_int_equal(fix_counter(&f, "shared_n0"), 0);
	assert_in_range(fix_counter(&f, "ac_avail"), 1, 10);
	fix_close(&f);
}

static void creation_refuses_bad_knobs(void **state)
{
	static const struct alloc_knob_value bad[] = {
		{ "cpu_partial", 1 }, { "limit", 0 }, { "shared", 4096 }, { "slab_max_order", 11 },
		{ "use_alien_caches", 2 }, { "batchcount", 121 },
	};
	static const uint16_t cpu_node[1];
	struct alloc_machine_config mc = { .cpus = 1, .nodes = 1, .cpu_node = cpu_node };
	const struct alloc_variant *v = alloc_variant_find("slab-6.1", ALLOC_SYNC_SERIAL);
	struct alloc_cache *c = NULL;
	struct alloc_machine *m;

	(void)state;
	assert_int_equal(alloc_machine_create(&mc, &m), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct alloc_cache_config cc = { .name = "bad", .object_size = 256,
						 .knobs = &bad[i], .nr_knobs = 1 };

		assert_int_equal(v->create(m, &cc, &c), -EINVAL);
		assert_null(c);
	}
	alloc_machine_destroy(m);
}

/* State values: four nodes at least, more where there are more; node values under CPU 0. */
static void state_values_have_a_fixed_place(void **state)
{
	(void)state;
	fix_open(&f, &(struct fix_config){ "slab-6.1", .cpus = 12, .nodes = 12, .size = 256 });
	objs[0] = fix_alloc(&f, 11);
	assert_int_equal(fix_counter_of(&f, "ac_avail", 11), 15);
	assert_int_equal(fix_counter_of(&f, "total_slabs_n11", 0), 1);
	fix_close(&f);
	fix_open(&f, &(struct fix_config){ "slab-6.1", .cpus = 1, .nodes = 1, .size = 256 });
	assert_int_equal(fix_counter(&f, "free_slabs_n3"), 0);
	fix_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refill_of_an_untouched_array_is_small),
		cmocka_unit_test(shared_array_takes_what_fits),
		cmocka_unit_test(refill_from_the_shared_array),
		cmocka_unit_test(free_limit_drops_slabs),
		cmocka_unit_test(node_requests_bypass_the_arrays),
		cmocka_unit_test(exhausted_node_falls_back),
		cmocka_unit_test(without_alien_arrays_straight_home),
		cmocka_unit_test(reaper_empties_an_idle_cache),
		cmocka_unit_test(reaper_drains_one_alien_array_a_pass),
		cmocka_unit_test(reaper_spares_a_free_list_in_use),
		cmocka_unit_test(shrink_leaves_nothing_idle),
		cmocka_unit_test(lists_map_to_states),
		cmocka_unit_test(tunables_are_checked_and_applied),
		cmocka_unit_test(creation_refuses_bad_knobs),
		cmocka_unit_test(state_values_have_a_fixed_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
