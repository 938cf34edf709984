/* SPDX-License-Identifier: MIT */
/* What single variants promise beside the worked examples: own counters, knobs, geometry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/one_cache.h"

/* Four listed slabs with one free object each; a CPU without objects allocates. */
static void minfree_passes_nearly_full_slabs(void **state)
{
	struct alloc_knob_value new_slab = { "minfree_new_slab", 1 };
	void *objs[160];
	struct bench b;

	(void)state;
	for (; new_slab.value >= 0; new_slab.value--) {
		open_cache(&b, "slub-6.1-minfree", 256, &new_slab, 1);
		for (int i = 0; i < 160; i++)
			objs[i] = take(&b, 0);
		for (int i = 0; i < 128; i += 32)
			give(&b, 1, objs[i]);
		b.v->flush_cpu(b.c, 1);
		take(&b, 0);
		assert_int_equal(counter(&b, "minfree_skip"), 4);
		assert_int_equal(counter(&b, "minfree_new"), new_slab.value);
		assert_int_equal(counter(&b, "minfree_best"), !new_slab.value);
		assert_int_equal(counter(&b, "alloc_slab"), 5 + new_slab.value);
		close_cache(&b);
	}
}

static void remote_frees_go_home_in_batches(void **state)
{
	const struct alloc_knob_value knobs[] = { { "remote_batch", 16 }, { "remote_high", 32 } };
	struct alloc_cache_state st;
	void *objs[1000];
	struct bench b;
	int oldest = 0;

	(void)state;
	open_cache(&b, "slub-6.1-remotequeue", 256, knobs, 2);
	for (int i = 0; i < 1000; i++) {
		objs[i] = take(&b, 0);
		if (i + 1 - oldest > 64)
			give(&b, 1, objs[oldest++]);
	}
	while (oldest < 1000)
		give(&b, 1, objs[oldest++]);
	assert_int_equal(counter(&b, "remote_queue"), 1000);
	assert_int_equal(counter(&b, "remote_flush_objects"), 1000 / 16 * 16);
	assert_true(counter(&b, "remote_claim_objects") > 800);
	assert_int_equal(counter(&b, "free_slowpath"), 1000);
	b.v->flush_cpu(b.c, 0);
	b.v->flush_cpu(b.c, 1);
	b.v->state(b.c, &st);
	assert_int_equal(st.cached_objs, 0);
	assert_int_equal(st.objects_partial, 0);
	close_cache(&b);
}

static int64_t knob(const struct bench *b, const char *name)
{
	int64_t value = -1;

	assert_int_equal(b->v->get_knob(b->c, name, &value), 0);
	return value;
}

static void knobs_keep_the_kernels_rules(void **state)
{
	struct bench b;

	(void)state;
	open_cache(&b, "slub-5.15", 256, NULL, 0);
	assert_int_equal(b.v->set_knob(b.c, "min_partial", 100), 0);
	assert_int_equal(knob(&b, "min_partial"), 10); /* clamped */
	close_cache(&b);
	open_cache(&b, "slub-6.1", 256, NULL, 0);
	assert_int_equal(b.v->set_knob(b.c, "min_partial", 100), 0);
	assert_int_equal(knob(&b, "min_partial"), 100);
	assert_int_equal(b.v->set_knob(b.c, "min_partial", -1), -22);
	assert_int_equal(b.v->set_knob(b.c, "remote_node_defrag_ratio", 101), -22);
	assert_int_equal(b.v->set_knob(b.c, "remote_node_defrag_ratio", 50), 0);
	assert_int_equal(knob(&b, "remote_node_defrag_ratio"), 50);
	assert_int_equal(knob(&b, "defrag"), 500);
	assert_int_equal(b.v->set_knob(b.c, "slub_max_order", 1), -22); /* only at creation */
	assert_int_equal(b.v->set_knob(b.c, "sheaf_capacity", 1), -2);
	take(&b, 0);
	assert_int_equal(b.v->set_knob(b.c, "cpu_partial", 0), 0);
	assert_int_equal(counter(&b, "cpuslab_flush"), 1); /* writing flushes */
	assert_int_equal(knob(&b, "cpu_partial_slabs"), 0);
	close_cache(&b);
}

static void geometry_follows_the_order_knobs(void **state)
{
	const struct alloc_knob_value max_order = { "slub_max_order", 0 };
	struct alloc_geometry geo;
	struct bench b;

	(void)state;
	open_cache(&b, "slub-6.1", 512, &max_order, 1);
	alloc_cache_geometry(b.c, &geo);
	assert_int_equal(geo.order, 0);
	assert_int_equal(geo.objects, 8);
	close_cache(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(minfree_passes_nearly_full_slabs),
		cmocka_unit_test(remote_frees_go_home_in_batches),
		cmocka_unit_test(knobs_keep_the_kernels_rules),
		cmocka_unit_test(geometry_follows_the_order_knobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
