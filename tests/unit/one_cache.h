/* SPDX-License-Identifier: MIT */
/*
 * One cache on a machine of one node and 16 CPUs, serial build: what tests of single variants
 * need.  Include after cmocka.h.
 */
#ifndef SLABTAPE_TESTS_ONE_CACHE_H
#define SLABTAPE_TESTS_ONE_CACHE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/variant.h"

enum { CPUS = 16 };

struct bench {
	const struct alloc_variant *v;
	struct alloc_machine *m;
	struct alloc_cache *c;
	uint64_t allocs, frees;
};

static inline void open_cache(struct bench *b, const char *variant, uint32_t size,
		       const struct alloc_knob_value *knobs, size_t nr_knobs)
{
	static const uint16_t cpu_node[CPUS];
	struct alloc_machine_config mc = { .cpus = CPUS, .nodes = 1, .cpu_node = cpu_node,
					   .seed = 1 };
	struct alloc_cache_config cc = { .name = "worked", .object_size = size, .knobs = knobs,
					 .nr_knobs = nr_knobs };

	*b = (struct bench){ .v = alloc_variant_find(variant, ALLOC_SYNC_SERIAL) };
	assert_non_null(b->v);
	assert_int_equal(alloc_machine_create(&mc, &b->m), 0);
	assert_int_equal(b->v->create(b->m, &cc, &b->c), 0);
}

static inline void close_cache(struct bench *b)
{
	char why[256];

	if (b->v->check(b->c, why, sizeof(why)) < 0)
		fail_msg("%s: %s", b->v->name, why);
	b->v->destroy(b->c);
	assert_int_equal(alloc_machine_pages(b->m), 0);
	alloc_machine_destroy(b->m);
}

static inline void *take(struct bench *b, uint32_t cpu)
{
	void *obj = b->v->alloc(b->c, cpu, ALLOC_NODE_ANY, ALLOC_GFP_MAY_BLOCK);

	assert_non_null(obj);
	b->allocs++;
	return obj;
}

static inline void give(struct bench *b, uint32_t cpu, void *obj)
{
	b->v->free(b->c, cpu, obj);
	b->frees++;
}

struct wanted {
	const char *name;
	int64_t sum;
	bool found;
};

static inline void add_counter(void *ctx, uint32_t cpu, const char *name, int64_t value)
{
	struct wanted *w = ctx;

	(void)cpu;
	if (strcmp(name, w->name))
		return;
	w->sum += value;
	w->found = true;
}

static inline int64_t counter(const struct bench *b, const char *name)
{
	struct wanted w = { .name = name };

	alloc_read_counters(b->c, add_counter, &w);
	return w.sum;
}

#endif
