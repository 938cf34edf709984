/* SPDX-License-Identifier: MIT */
/*
 * Sizes and limits: every row of the kernels' own config.tsv, and the reference table of the
 * kmalloc classes (docs/allocator-model.md).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "allocator/sizing.h"

enum { ROWS = 1715, COLUMNS_MAX = 12 };

/* One row of config.tsv in file order; column 10 and 11 depend on the kernel. */
static void check_row(enum alloc_era era, const long *v)
{
	struct alloc_sizing sz = ALLOC_SIZING_DEFAULT((uint32_t)v[0]);
	struct alloc_geometry g;

	assert_int_equal(alloc_slub_geometry(era, &sz, (uint32_t)v[1], (uint32_t)v[2], 0, &g), 0);
	assert_int_equal(g.size, v[3]);
	assert_int_equal(g.offset, v[4]);
	assert_int_equal(g.order, v[5]);
	assert_int_equal(g.objects, v[6]);
	assert_int_equal(g.min_order, v[7]);
	assert_int_equal(g.min_objects, v[8]);
	assert_int_equal(alloc_min_partial(era, g.size), v[9]);
	if (era == ALLOC_ERA_7_2) {
		assert_int_equal(alloc_sheaf_capacity(g.size, 0), v[10]);
		return;
	}
	assert_int_equal(alloc_cpu_partial(era, g.size), v[10]);
	assert_int_equal(alloc_cpu_partial_slabs((uint32_t)v[10], g.objects), v[11]);
}

static void check_file(const char *path, enum alloc_era era)
{
	char line[256], *at;
	FILE *f = fopen(path, "r");
	int rows = 0;

	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f)); /* column names */
	while (fgets(line, sizeof(line), f)) {
		long v[COLUMNS_MAX] = { 0 };

		at = line;
		for (int i = 0; i < COLUMNS_MAX && *at; i++)
			v[i] = strtol(at, &at, 10);
		check_row(era, v);
		rows++;
	}
	fclose(f);
	assert_int_equal(rows, ROWS);
}

static void config_of_6_1(void **state)
{
	(void)state;
	check_file(TEST_SOURCE_DIR "/golden/6.1/config.tsv", ALLOC_ERA_6_1);
}

static void config_of_7_2(void **state)
{
	(void)state;
	check_file(TEST_SOURCE_DIR "/golden/7.2/config.tsv", ALLOC_ERA_7_2);
}

/* objects and order at 1, 2..7, 8..15, 16..127, 128..255 CPUs; then the limits. */
static const struct reference {
	uint32_t size, objects[5], order[5], min_partial_2_6_30, min_partial, cpu_partial_3_2,
		cpu_partial_6_1, slabs_2, slabs_16, capacity;
} references[] = {
	{ 8, { 512, 512, 512, 512, 512 }, { 0, 0, 0, 0, 0 }, 5, 5, 30, 120, 1, 1, 60 },
	{ 16, { 256, 256, 256, 256, 256 }, { 0, 0, 0, 0, 0 }, 5, 5, 30, 120, 1, 1, 60 },
	{ 32, { 128, 128, 128, 128, 128 }, { 0, 0, 0, 0, 0 }, 5, 5, 30, 120, 2, 2, 60 },
	{ 64, { 64, 64, 64, 64, 64 }, { 0, 0, 0, 0, 0 }, 6, 5, 30, 120, 4, 4, 60 },
	{ 96, { 42, 42, 42, 42, 42 }, { 0, 0, 0, 0, 0 }, 6, 5, 30, 120, 6, 6, 60 },
	{ 128, { 32, 32, 32, 32, 64 }, { 0, 0, 0, 0, 1 }, 7, 5, 30, 120, 8, 8, 60 },
	{ 192, { 21, 21, 21, 42, 42 }, { 0, 0, 0, 1, 1 }, 7, 5, 30, 120, 12, 6, 60 },
	{ 256, { 16, 16, 32, 32, 64 }, { 0, 0, 1, 1, 2 }, 8, 5, 13, 52, 7, 4, 28 },
	{ 512, { 8, 16, 32, 32, 64 }, { 0, 1, 2, 2, 3 }, 9, 5, 13, 52, 7, 4, 28 },
	{ 1024, { 8, 16, 32, 32, 32 }, { 1, 2, 3, 3, 3 }, 10, 5, 6, 24, 3, 2, 12 },
	{ 2048, { 8, 16, 16, 16, 16 }, { 2, 3, 3, 3, 3 }, 10, 5, 6, 24, 3, 3, 12 },
	{ 4096, { 8, 8, 8, 8, 8 }, { 3, 3, 3, 3, 3 }, 10, 6, 2, 6, 2, 2, 4 },
	{ 8192, { 4, 4, 4, 4, 4 }, { 3, 3, 3, 3, 3 }, 10, 6, 2, 6, 3, 3, 4 },
};
static const uint32_t cpu_ranges[5][2] = {
	{ 1, 1 }, { 2, 7 }, { 8, 15 }, { 16, 127 }, { 128, 255 }
};

static uint32_t slabs_at(uint32_t size, uint32_t cpus, uint32_t cpu_partial)
{
	struct alloc_sizing sz = ALLOC_SIZING_DEFAULT(cpus);
	struct alloc_geometry g;

	assert_int_equal(alloc_slub_geometry(ALLOC_ERA_6_1, &sz, size, 0, 0, &g), 0);
	return alloc_cpu_partial_slabs(cpu_partial, g.objects);
}

static void reference_table_of_the_kmalloc_classes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(references) / sizeof(*references); i++) {
		const struct reference *r = &references[i];

		for (int range = 0; range < 5; range++)
			for (int end = 0; end < 2; end++)
				for (int era = 0; era < ALLOC_ERA_MAX; era++) {
					struct alloc_sizing sz =
						ALLOC_SIZING_DEFAULT(cpu_ranges[range][end]);
					struct alloc_geometry g;

					assert_int_equal(alloc_slub_geometry((enum alloc_era)era, &sz,
									     r->size, 0, 0, &g), 0);
					assert_int_equal(g.objects, r->objects[range]);
					assert_int_equal(g.order, r->order[range]);
				}
		assert_int_equal(alloc_min_partial(ALLOC_ERA_2_6_30, r->size), r->min_partial_2_6_30);
		assert_int_equal(alloc_min_partial(ALLOC_ERA_3_2, r->size), r->min_partial);
		assert_int_equal(alloc_cpu_partial(ALLOC_ERA_5_15, r->size), r->cpu_partial_3_2);
		assert_int_equal(alloc_cpu_partial(ALLOC_ERA_6_1, r->size), r->cpu_partial_6_1);
		assert_int_equal(slabs_at(r->size, 2, r->cpu_partial_6_1), r->slabs_2);
		assert_int_equal(slabs_at(r->size, 16, r->cpu_partial_6_1), r->slabs_16);
		assert_int_equal(alloc_sheaf_capacity(r->size, 0), r->capacity);
	}
}

static void old_and_new_order_search_agree_up_to_8192(void **state)
{
	static const uint32_t cpus[] = { 2, 4, 16, 192 };

	(void)state;
	for (size_t i = 0; i < sizeof(cpus) / sizeof(*cpus); i++)
		for (uint32_t size = 8; size <= 8192; size += 8) {
			struct alloc_sizing sz = ALLOC_SIZING_DEFAULT(cpus[i]);
			struct alloc_geometry old, new;

			assert_int_equal(alloc_slub_geometry(ALLOC_ERA_6_1, &sz, size, 0, 0, &old), 0);
			assert_int_equal(alloc_slub_geometry(ALLOC_ERA_7_2, &sz, size, 0, 0, &new), 0);
			assert_int_equal(old.order, new.order);
		}
}

static void free_pointer_leaves_the_object(void **state)
{
	struct alloc_sizing sz = ALLOC_SIZING_DEFAULT(4);
	struct alloc_geometry g;

	(void)state;
	assert_int_equal(alloc_slub_geometry(ALLOC_ERA_6_1, &sz, 100, 0, ALLOC_F_RCU, &g), 0);
	assert_int_equal(g.offset, 104);
	assert_int_equal(g.size, 112);
	assert_int_equal(alloc_slub_geometry(ALLOC_ERA_3_2, &sz, 100, 0, 0, &g), 0);
	assert_int_equal(g.offset, 0);
	assert_int_equal(alloc_slub_geometry(ALLOC_ERA_6_1, &sz, 20, 0, ALLOC_F_HWCACHE_ALIGN, &g), 0);
	assert_int_equal(g.align, 32);
	assert_int_equal(g.size, 32);
	assert_int_equal(alloc_slub_geometry(ALLOC_ERA_6_1, &sz, 0, 0, 0, &g), -22);
	assert_int_equal(alloc_slub_geometry(ALLOC_ERA_6_1, &sz, 8, 24, 0, &g), -22);
	assert_int_equal(alloc_slub_geometry(ALLOC_ERA_6_1, &sz, (4 << 20) + 1, 0, 0, &g), -22);
}

static void kmalloc_classes_names_and_alignment(void **state)
{
	static const struct { uint64_t bytes; uint32_t class; } rows[] = {
		{ 0, 0 }, { 1, 8 }, { 9, 16 }, { 33, 64 }, { 65, 96 }, { 96, 96 }, { 97, 128 },
		{ 129, 192 }, { 192, 192 }, { 193, 256 }, { 257, 512 }, { 4097, 8192 },
		{ 8192, 8192 }, { 8193, 0 },
	};
	char name[32];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(alloc_kmalloc_class(ALLOC_ERA_6_1, rows[i].bytes), rows[i].class);
	alloc_kmalloc_name(ALLOC_ERA_2_6_30, 2048, name, sizeof(name));
	assert_string_equal(name, "kmalloc-2048");
	alloc_kmalloc_name(ALLOC_ERA_6_1, 2048, name, sizeof(name));
	assert_string_equal(name, "kmalloc-2k");
	alloc_kmalloc_name(ALLOC_ERA_7_2, 512, name, sizeof(name));
	assert_string_equal(name, "kmalloc-512");
	assert_int_equal(alloc_kmalloc_align(ALLOC_ERA_3_2, 256), 8);
	assert_int_equal(alloc_kmalloc_align(ALLOC_ERA_6_1, 256), 256);
	assert_int_equal(alloc_kmalloc_align(ALLOC_ERA_6_1, 96), 8);
	assert_int_equal(alloc_kmalloc_align(ALLOC_ERA_7_2, 96), 32);
	assert_int_equal(alloc_kmalloc_align(ALLOC_ERA_7_2, 192), 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(config_of_6_1),
		cmocka_unit_test(config_of_7_2),
		cmocka_unit_test(reference_table_of_the_kmalloc_classes),
		cmocka_unit_test(old_and_new_order_search_agree_up_to_8192),
		cmocka_unit_test(free_pointer_leaves_the_object),
		cmocka_unit_test(kmalloc_classes_names_and_alignment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
