/* SPDX-License-Identifier: MIT */
/* SLQB: hand-derived answers, all fourteen counters, and the mapping of its lists to states. */
#include "allocator_fixture.h"

#include <errno.h>
#include <stdlib.h>

static struct fix f; /* large: kept off the stack */
static void *objs[1024];

#define SECOND 1000000000ull

enum { COUNTERS = 14 };
static const char *const names[COUNTERS] = {
	"alloc", "alloc_slab_fill", "alloc_slab_new", "free", "free_remote", "flush_free_list",
	"flush_free_list_objects", "flush_free_list_remote", "flush_slab_partial",
	"flush_slab_free", "flush_rfree_list", "flush_rfree_list_objects", "claim_remote_list",
	"claim_remote_list_objects",
};

/* 256 bytes: 16 objects a slab.  Small batches make the edges come soon. */
static void open_small(uint32_t cpus, uint32_t nodes)
{
	const struct alloc_knob_value knobs[] = { { "freebatch", 2 }, { "hiwater", 4 } };

	fix_open(&f, &(struct fix_config){ "slqb-2.6.31", .cpus = cpus, .nodes = nodes, .size = 256,
					   .knobs = knobs, .nr_knobs = 2 });
}

static void expect(const int64_t want[COUNTERS])
{
	for (int i = 0; i < COUNTERS; i++)
		if (fix_counter(&f, names[i]) != want[i])
			fail_msg("%s is %lld, not %lld", names[i],
				 (long long)fix_counter(&f, names[i]), (long long)want[i]);
	fix_check(&f);
}

/* New slab, one object at a time from the first partial slab; frees stack up, last in first out. */
static void one_cpu(void **state)
{
	(void)state;
	fix_open(&f, &(struct fix_config){ "slqb-2.6.31", .cpus = 1, .nodes = 1, .size = 256 });
	fix_alloc_many(&f, 0, objs, 17);
	fix_expect_object(&f, objs[0], 0, 0);
	fix_expect_object(&f, objs[15], 0, 15);
	fix_expect_object(&f, objs[16], 1, 0);
	fix_free_many(&f, 0, objs, 17);
	assert_ptr_equal(fix_alloc(&f, 0), objs[16]);
	assert_ptr_equal(fix_alloc(&f, 0), objs[15]);
	expect((int64_t[COUNTERS]){ 19, 17, 2, 17 });
	fix_close(&f);
}

/* Above hiwater the two hottest objects go; the slab was full, then it is partial. */
static void flush_takes_the_hot_end(void **state)
{
	(void)state;
	open_small(1, 1);
	fix_alloc_many(&f, 0, objs, 16);
	fix_free_many(&f, 0, objs, 4);
	expect((int64_t[COUNTERS]){ 16, 16, 1, 4 });
	f.v->free(f.c, 0, objs[4]);
	expect((int64_t[COUNTERS]){ 16, 16, 1, 5, 0, 1, 2, 0, 1, 0 });
	assert_ptr_equal(fix_alloc(&f, 0), objs[2]); /* 4 and 3 are gone */
	assert_int_equal(alloc_free_class(f.c, 1), 1);
	assert_int_equal(alloc_free_class(f.c, 0), 1);
	/* Returned in the order 4, 3: the slab hands out 3 first. */
	fix_alloc(&f, 0);
	fix_alloc(&f, 0);
	assert_ptr_equal(fix_alloc(&f, 0), objs[3]);
	fix_close(&f);
}

/* No empty slab is ever kept. */
static void empty_slabs_go_at_once(void **state)
{
	(void)state;
	open_small(1, 1);
	fix_alloc_many(&f, 0, objs, 33);
	fix_free_many(&f, 0, objs, 33);
	f.v->flush_cpu(f.c, 0);
	assert_int_equal(alloc_machine_pages(f.m), 0);
	assert_int_equal(fix_counter(&f, "flush_slab_free"), 3);
	assert_int_equal(fix_counter(&f, "flush_slab_partial"), 2); /* the third was partial */
	fix_close(&f);
}

/*
 * CPU 2 on the other node frees objects of CPU 0's slab: in twos to CPU 0's remote list, which is
 * claimed once it is flagged, first freed first out.
 */
static void remote_frees_are_claimed(void **state)
{
	const struct fix_refill want = { ALLOC_REFILL_SPARE, 2 };

	(void)state;
	open_small(4, 2);
	fix_alloc_many(&f, 0, objs, 16);
	f.v->free(f.c, 2, objs[5]);
	expect((int64_t[COUNTERS]){ 16, 16, 1, 1, 1 });
	f.v->free(f.c, 2, objs[9]);
	expect((int64_t[COUNTERS]){ 16, 16, 1, 2, 2, 0, 0, 0, 0, 0, 1, 2 });
	f.nr_refills = 0;
	assert_ptr_equal(fix_alloc(&f, 0), objs[5]);
	assert_ptr_equal(fix_alloc(&f, 0), objs[9]);
	fix_expect_refills(&f, &want, 1);
	expect((int64_t[COUNTERS]){ 18, 16, 1, 2, 2, 0, 0, 0, 0, 0, 1, 2, 1, 2 });
	assert_int_equal(fix_counter_of(&f, "claim_remote_list", 0), 1);
	assert_int_equal(fix_counter_of(&f, "free_remote", 2), 2);
	fix_close(&f);
}

/* More than hiwater / 2 = 2 waiting: the third pair goes to the slab at once, on CPU 0's account. */
static void a_full_remote_list_is_bypassed(void **state)
{
	(void)state;
	open_small(4, 2);
	fix_alloc_many(&f, 0, objs, 16);
	fix_free_many(&f, 3, objs, 4);
	expect((int64_t[COUNTERS]){ 16, 16, 1, 4, 4, 0, 0, 0, 0, 0, 2, 4 });
	fix_free_many(&f, 3, objs + 4, 2);
	expect((int64_t[COUNTERS]){ 16, 16, 1, 6, 6, 0, 0, 0, 1, 0, 3, 6 });
	assert_int_equal(fix_counter_of(&f, "flush_slab_partial", 0), 1);
	assert_int_equal(fix_counter_of(&f, "flush_slab_partial", 3), 0);
	fix_close(&f);
}

/* On the same node another CPU's objects join the freelist; the flush sends them home. */
static void flush_sends_others_objects_home(void **state)
{
	(void)state;
	open_small(2, 1);
	fix_alloc_many(&f, 0, objs, 16);
	fix_free_many(&f, 1, objs, 5);
	expect((int64_t[COUNTERS]){ 16, 16, 1, 5, 0, 1, 2, 2, 0, 0, 1, 2 });
	/* CPU 0 gets them in the order of the flush: 4, then 3. */
	assert_ptr_equal(fix_alloc(&f, 0), objs[4]);
	assert_ptr_equal(fix_alloc(&f, 0), objs[3]);
	fix_close(&f);
}

/* An rlist holds objects of one list: another owner makes it leave early. */
static void rlist_serves_one_owner(void **state)
{
	(void)state;
	open_small(4, 2);
	objs[0] = fix_alloc(&f, 0);
	objs[1] = fix_alloc(&f, 1);
	f.v->free(f.c, 2, objs[0]);
	f.v->free(f.c, 2, objs[1]);
	expect((int64_t[COUNTERS]){ 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 1, 1 });
	/* One is below freebatch: no flag, so CPU 0 does not look. */
	fix_expect_object(&f, fix_alloc(&f, 0), 0, 1);
	assert_int_equal(fix_counter(&f, "claim_remote_list"), 0);
	fix_close(&f);
}

/* A slab made for a request that names another node belongs to that node's list. */
static void node_lists_own_off_node_slabs(void **state)
{
	const struct fix_refill want[] = { { ALLOC_REFILL_NEW_SLAB, 1 },
					   { ALLOC_REFILL_REMOTE_NODE, 1 },
					   { ALLOC_REFILL_NEW_SLAB, 1 } };

	(void)state;
	open_small(4, 2);
	objs[0] = fix_alloc_node(&f, 0, 1);
	objs[1] = fix_alloc_node(&f, 0, 1);
	fix_expect_object(&f, objs[1], 0, 1);
	fix_expect_object(&f, fix_alloc(&f, 2), 1, 0); /* CPU 2 is there, yet it has its own list */
	fix_expect_refills(&f, want, 3);
	f.v->free(f.c, 2, objs[0]); /* local to CPU 2: its freelist */
	assert_ptr_equal(fix_alloc(&f, 2), objs[0]);
	expect((int64_t[COUNTERS]){ 4, 3, 2, 1 });
	fix_close(&f);
}

static void exhausted_node_falls_back(void **state)
{
	struct alloc_slab_info info;
	uint32_t at;

	(void)state;
	fix_open(&f, &(struct fix_config){ "slqb-2.6.31", .cpus = 2, .nodes = 2, .size = 2048,
					   .node_pages = 1 });
	fix_alloc_many(&f, 0, objs, 2);
	assert_null(f.v->alloc(f.c, 0, ALLOC_NODE_ANY, FIX_GFP | ALLOC_GFP_THISNODE));
	fix_alloc_many(&f, 0, objs + 2, 2);
	alloc_slab_info(alloc_slab_of(f.m, objs[3], &at), &info);
	assert_int_equal(info.node, 1);
	assert_null(f.v->alloc(f.c, 0, ALLOC_NODE_ANY, FIX_GFP));
	assert_int_equal(f.v->alloc_bulk(f.c, 0, FIX_GFP, 3, objs + 4), 0);
	expect((int64_t[COUNTERS]){ 4, 4, 2 });
	fix_close(&f);
}

/* First after 1 s, then every 3 s: claim whatever is there, flush one batch, flush the rlist. */
static void trim_returns_a_batch(void **state)
{
	(void)state;
	open_small(4, 2);
	fix_alloc_many(&f, 0, objs, 16);
	f.v->free(f.c, 2, objs[0]); /* waits on CPU 2's rlist */
	fix_free_many(&f, 0, objs + 1, 3);
	f.v->tick(f.c, 2, SECOND - 1);
	assert_int_equal(fix_counter(&f, "flush_rfree_list"), 0);
	f.v->tick(f.c, 2, SECOND);
	assert_int_equal(fix_counter(&f, "flush_rfree_list"), 1);
	f.v->tick(f.c, 0, SECOND); /* claims it without the flag: 4 on the freelist, 2 go */
	expect((int64_t[COUNTERS]){ 16, 16, 1, 4, 1, 1, 2, 0, 1, 0, 1, 1, 1, 1 });
	f.v->tick(f.c, 0, 4 * SECOND - 1);
	assert_int_equal(fix_counter(&f, "flush_free_list"), 1);
	f.v->tick(f.c, 0, 10 * SECOND); /* two periods, one batch each: there is only one */
	assert_int_equal(fix_counter(&f, "flush_free_list"), 2);
	f.v->shrink(f.c);
	assert_int_equal(fix_counter(&f, "flush_free_list"), 2);
	fix_close(&f);
}

/* The table of docs/allocator-model.md: SLQB's lists as states. */
static void lists_map_to_states(void **state)
{
	const struct fix_move want[] = {
		{ 0, 0, ALLOC_STATE_NONE, ALLOC_STATE_PARTIAL },
		{ 0, 0, ALLOC_STATE_PARTIAL, ALLOC_STATE_FULL },
		{ 0, 0, ALLOC_STATE_FULL, ALLOC_STATE_PARTIAL },
		{ 0, 0, ALLOC_STATE_PARTIAL, ALLOC_STATE_NONE },
	};
	const struct fix_move one[] = { { 0, 0, ALLOC_STATE_NONE, ALLOC_STATE_FULL },
					{ 0, 0, ALLOC_STATE_FULL, ALLOC_STATE_NONE } };

	(void)state;
	open_small(1, 1);
	fix_alloc_many(&f, 0, objs, 16);
	fix_free_many(&f, 0, objs, 16);
	f.v->flush_cpu(f.c, 0);
	fix_expect_moves(&f, want, 4);
	assert_int_equal(alloc_free_class(f.c, 2), 1);
	fix_close(&f);
	fix_open(&f, &(struct fix_config){ "slqb-2.6.31", .cpus = 1, .nodes = 1, .size = 4096 });
	f.v->free(f.c, 0, fix_alloc(&f, 0));
	f.v->flush_cpu(f.c, 0);
	fix_expect_moves(&f, one, 2);
	assert_int_equal(alloc_free_class(f.c, 3), 1);
	fix_close(&f);
}

static void knobs_are_checked_and_applied(void **state)
{
	const struct alloc_knob_value alone = { "freebatch", 7 };
	int64_t value = 0;

	(void)state;
	fix_open(&f, &(struct fix_config){ "slqb-2.6.31", .cpus = 1, .nodes = 1, .size = 2048 });
	assert_int_equal(f.v->get_knob(f.c, "freebatch", &value), 0);
	assert_int_equal(value, 128);
	assert_int_equal(f.v->get_knob(f.c, "hiwater", &value), 0);
	assert_int_equal(value, 512);
	assert_int_equal(f.v->set_knob(f.c, "limit", 1), -ENOENT);
	assert_int_equal(f.v->get_knob(f.c, "limit", &value), -ENOENT);
	assert_int_equal(f.v->set_knob(f.c, "freebatch", 0), -EINVAL);
	assert_int_equal(f.v->set_knob(f.c, "freebatch", 514), -EINVAL);
	assert_int_equal(f.v->set_knob(f.c, "hiwater", 126), -EINVAL);
	assert_int_equal(f.v->set_knob(f.c, "freebatch", 1), 0);
	assert_int_equal(f.v->set_knob(f.c, "hiwater", 0), 0);
	f.v->free(f.c, 0, fix_alloc(&f, 0)); /* nothing may stay on the freelist */
	assert_int_equal(alloc_machine_pages(f.m), 0);
	fix_close(&f);
	fix_open(&f, &(struct fix_config){ "slqb-2.6.31", .cpus = 1, .nodes = 1, .size = 2048,
					   .knobs = &alone, .nr_knobs = 1 });
	assert_int_equal(f.v->get_knob(f.c, "hiwater", &value), 0);
	assert_int_equal(value, 28);
	fix_close(&f);
}

/* Every object that left a slab came back to one or is out: the counters add up. */
static void counters_balance(void **state)
{
	uint32_t x = 1, live = 0;
	struct alloc_cache_state st;

	(void)state;
	open_small(4, 2);
	for (int i = 0; i < 20000; i++) {
		x = x * 1103515245u + 12345u;
		if (live < 300 || (x >> 8) % 100 < 50) {
			if (live == 900)
				continue;
			objs[live++] = fix_alloc_node(&f, (x >> 16) % 4,
						      x >> 28 ? ALLOC_NODE_ANY : (int32_t)((x >> 20) % 2));
		} else {
			uint32_t at = (x >> 9) % live;
			void *obj = objs[at];

			objs[at] = objs[--live];
			f.v->free(f.c, (x >> 16) % 4, obj);
		}
	}
	f.v->state(f.c, &st);
	assert_int_equal(fix_counter(&f, "alloc") - fix_counter(&f, "free"), live);
	assert_int_equal(st.objects, live + st.cached_objs);
	assert_int_equal(fix_counter(&f, "alloc_slab_new") - fix_counter(&f, "flush_slab_free"),
			 st.slabs);
	assert_true(fix_counter(&f, "flush_rfree_list_objects") >=
		    fix_counter(&f, "claim_remote_list_objects"));
	for (int i = 0; i < COUNTERS; i++)
		assert_true(fix_counter(&f, names[i]) > 0);
	fix_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_cpu),
		cmocka_unit_test(flush_takes_the_hot_end),
		cmocka_unit_test(empty_slabs_go_at_once),
		cmocka_unit_test(remote_frees_are_claimed),
		cmocka_unit_test(a_full_remote_list_is_bypassed),
		cmocka_unit_test(flush_sends_others_objects_home),
		cmocka_unit_test(rlist_serves_one_owner),
		cmocka_unit_test(node_lists_own_off_node_slabs),
		cmocka_unit_test(exhausted_node_falls_back),
		cmocka_unit_test(trim_returns_a_batch),
		cmocka_unit_test(lists_map_to_states),
		cmocka_unit_test(knobs_are_checked_and_applied),
		cmocka_unit_test(counters_balance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
