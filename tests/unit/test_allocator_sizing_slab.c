/* SPDX-License-Identifier: MIT */
/*
 * SLAB and SLQB sizing: every row of the 6.1 kernel's own config.tsv, and the tables of
 * specification 10.1 and 11.  That kernel ran with one CPU on its node whatever nr_cpus says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "allocator/sizing_slab.h"
#include "allocator/variant.h"

enum { ROWS = 1715, COLUMNS = 13 };

static void check_row(const long *v)
{
	struct alloc_slab_shape s;
	struct alloc_slab_tunables t;

	assert_int_equal(alloc_slab61_shape(1, (uint32_t)v[1], (uint32_t)v[2], 0, &s), 0);
	assert_int_equal(s.geo.size, v[3]);
	assert_int_equal(s.geo.objects, v[4]);
	assert_int_equal(s.geo.order, v[5]);
	t = alloc_slab_tunables(s.geo.size, (uint32_t)v[0]);
	assert_int_equal(t.limit, v[6]);
	assert_int_equal(t.batchcount, v[7]);
	assert_int_equal(t.shared, v[8]);
	assert_int_equal(alloc_slab_free_limit(1, t.batchcount, s.geo.objects), v[9]);
	assert_int_equal(s.colour, v[10]);
	assert_int_equal(s.colour_off_bytes, v[11]);
	assert_int_equal(s.index_bytes, v[12]);
}

static void config_of_6_1_slab(void **state)
{
	FILE *f = fopen(TEST_SOURCE_DIR "/golden/6.1-slab/config.tsv", "r");
	char line[256], *at;
	int rows = 0;

	(void)state;
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f)); /* column names */
	while (fgets(line, sizeof(line), f)) {
		long v[COLUMNS] = { 0 };

		at = line;
		for (int i = 0; i < COLUMNS && *at; i++)
			v[i] = strtol(at, &at, 10);
		check_row(v);
		rows++;
	}
	fclose(f);
	assert_int_equal(rows, ROWS);
}

/* A constructor forbids the index inside an object: then off the slab, or behind the objects. */
static void constructor_moves_the_index(void **state)
{
	struct alloc_slab_shape s;

	(void)state;
	assert_int_equal(alloc_slab61_shape(1, 64, 0, ALLOC_F_CTOR, &s), 0);
	assert_int_equal(s.layout, ALLOC_SLAB_INDEX_ON_SLAB);
	assert_int_equal(s.geo.objects, 63); /* 4096 / 65 */
	assert_int_equal(alloc_slab61_shape(1, 256, 0, ALLOC_F_RCU, &s), 0);
	assert_int_equal(s.layout, ALLOC_SLAB_INDEX_OFF_SLAB);
	assert_int_equal(s.geo.objects, 16);
	assert_int_equal(alloc_slab61_shape(1, 64, 3, 0, &s), -EINVAL);
	assert_int_equal(alloc_slab61_shape(1, 0, 0, 0, &s), -EINVAL);
	assert_int_equal(alloc_slab61_shape(1, (4u << 20) + 1, 0, 0, &s), -EINVAL);
}

static void objects_per_slab_of_2_6_30(void **state)
{
	static const uint32_t table[][3] = { /* size, objects, order */
		{ 32, 112, 0 }, { 64, 59, 0 },  { 96, 40, 0 },  { 128, 30, 0 }, { 192, 20, 0 },
		{ 256, 15, 0 }, { 512, 8, 0 },  { 1024, 4, 0 }, { 2048, 2, 0 }, { 4096, 1, 0 },
		{ 8192, 1, 1 }, { 16384, 1, 2 },
	};
	struct alloc_slab_shape s;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(alloc_slab2630_shape(1, table[i][0], 0, 0, &s), 0);
		assert_int_equal(s.geo.objects, table[i][1]);
		assert_int_equal(s.geo.order, table[i][2]);
	}
	/* 11 objects of 704 bytes leave room for their own descriptor: 48 + 11 * 4 -> 96 bytes. */
	assert_int_equal(alloc_slab2630_shape(1, 704, 0, 0, &s), 0);
	assert_int_equal(s.layout, ALLOC_SLAB_INDEX_ON_SLAB);
	assert_int_equal(s.geo.objects, 11);
	assert_int_equal(s.colour, (8192 - 11 * 704 - 96) / 64);
}

static void slqb_batches_and_shapes(void **state)
{
	static const uint32_t table[][2] = { /* size, freebatch */
		{ 8, 2048 }, { 16, 1024 }, { 32, 512 }, { 64, 256 },   { 1024, 256 }, { 2048, 128 },
		{ 4096, 64 }, { 8192, 32 }, { 16384, 16 }, { 65536, 4 }, { 1u << 20, 1 },
	};
	struct alloc_slab_shape s;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(alloc_slqb_freebatch(table[i][0]), table[i][1]);
	assert_int_equal(alloc_slqb_shape(256, 0, ALLOC_F_HWCACHE_ALIGN, &s), 0);
	assert_int_equal(s.geo.objects, 16);
	assert_int_equal(s.geo.offset, 0);
	/* Order 0 wastes 1216 of 4096 (more than a quarter), order 1 only 992 of 8192. */
	assert_int_equal(alloc_slqb_shape(1436, 0, 0, &s), 0);
	assert_int_equal(s.geo.order, 1);
	assert_int_equal(s.geo.objects, 5);
	/* Order 1 cannot hold it: the smallest that can, whatever it wastes. */
	assert_int_equal(alloc_slqb_shape(8200, 0, 0, &s), 0);
	assert_int_equal(s.geo.order, 2);
	assert_int_equal(s.geo.objects, 1);
	assert_int_equal(alloc_slqb_shape(40, 0, ALLOC_F_CTOR, &s), 0);
	assert_int_equal(s.geo.offset, 40);
	assert_int_equal(s.geo.size, 48);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(config_of_6_1_slab),
		cmocka_unit_test(constructor_moves_the_index),
		cmocka_unit_test(objects_per_slab_of_2_6_30),
		cmocka_unit_test(slqb_batches_and_shapes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
