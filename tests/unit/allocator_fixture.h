/* SPDX-License-Identifier: MIT */
/* For tests of one variant: a machine with one cache, its counters by name, and what it told. */
#ifndef SLABTAPE_TESTS_UNIT_ALLOCATOR_FIXTURE_H
#define SLABTAPE_TESTS_UNIT_ALLOCATOR_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "allocator/hooks.h"
#include "allocator/variant.h"

enum { FIX_GFP = ALLOC_GFP_MAY_BLOCK | ALLOC_GFP_MAY_SPIN, FIX_LOG_MAX = 4096 };

struct fix_move {
	uint32_t slab, cpu;
	enum alloc_state from, to;
};

struct fix_refill {
	enum alloc_refill_source source;
	uint32_t objs;
};

struct fix {
	const struct alloc_variant *v;
	struct alloc_machine *m;
	struct alloc_cache *c;
	struct alloc_observer observer;
	struct fix_move moves[FIX_LOG_MAX];
	struct fix_refill refills[FIX_LOG_MAX];
	uint32_t nr_moves, nr_refills;
};

/* How to open one; @knobs are applied at creation. */
struct fix_config {
	const char *variant;
	uint32_t cpus, nodes, size;
	uint64_t node_pages;
	const struct alloc_knob_value *knobs;
	size_t nr_knobs;
};

static inline void fix_moved(void *ctx, const struct alloc_cache *c, const struct alloc_slab *s,
			     uint32_t cpu, enum alloc_state from, enum alloc_state to)
{
	struct alloc_slab_info info;
	struct fix *f = ctx;

	(void)c;
	alloc_slab_info(s, &info);
	assert_in_range(f->nr_moves, 0, FIX_LOG_MAX - 1);
	f->moves[f->nr_moves++] = (struct fix_move){ info.id, cpu, from, to };
}

static inline void fix_refilled(void *ctx, const struct alloc_cache *c, uint32_t cpu,
				enum alloc_refill_source source, uint32_t objs)
{
	struct fix *f = ctx;

	(void)c;
	(void)cpu;
	assert_in_range(f->nr_refills, 0, FIX_LOG_MAX - 1);
	f->refills[f->nr_refills++] = (struct fix_refill){ source, objs };
}

/* CPUs are spread over the nodes in order: 4 on 2 are 0,0,1,1. */
static inline void fix_open(struct fix *f, const struct fix_config *cfg)
{
	uint16_t cpu_node[64];
	struct alloc_machine_config mc = { .cpus = cfg->cpus, .nodes = cfg->nodes,
		.cpu_node = cpu_node, .seed = 1, .node_pages = cfg->node_pages,
		.observer = &f->observer };
	struct alloc_cache_config cc = { .name = "fixture", .object_size = cfg->size,
					 .knobs = cfg->knobs, .nr_knobs = cfg->nr_knobs };

	memset(f, 0, sizeof(*f));
	f->observer = (struct alloc_observer){ .ctx = f, .transition = fix_moved,
					       .refill = fix_refilled };
	for (uint32_t i = 0; i < cfg->cpus; i++)
		cpu_node[i] = (uint16_t)(i * cfg->nodes / cfg->cpus);
	f->v = alloc_variant_find(cfg->variant, ALLOC_SYNC_SERIAL);
	assert_non_null(f->v);
	assert_int_equal(alloc_machine_create(&mc, &f->m), 0);
	assert_int_equal(f->v->create(f->m, &cc, &f->c), 0);
}

static inline void fix_check(struct fix *f)
{
	char why[256];

	if (f->v->check(f->c, why, sizeof(why)) < 0)
		fail_msg("%s: %s", f->v->name, why);
}

static inline void fix_close(struct fix *f)
{
	fix_check(f);
	f->v->destroy(f->c);
	assert_int_equal(alloc_machine_pages(f->m), 0);
	alloc_machine_destroy(f->m);
}

struct fix_sum {
	const char *name;
	int64_t cpu; /* -1: all */
	int64_t value;
	bool found;
};

static inline void fix_add(void *ctx, uint32_t cpu, const char *name, int64_t value)
{
	struct fix_sum *s = ctx;

	if (strcmp(name, s->name))
		return;
	s->found = true;
	if (s->cpu < 0 || (uint32_t)s->cpu == cpu)
		s->value += value;
}

/* A counter of one CPU, or of all with @cpu -1; it must exist. */
static inline int64_t fix_counter_of(struct fix *f, const char *name, int64_t cpu)
{
	struct fix_sum s = { .name = name, .cpu = cpu };

	alloc_read_counters(f->c, fix_add, &s);
	if (!s.found)
		fail_msg("no counter %s", name);
	return s.value;
}

static inline int64_t fix_counter(struct fix *f, const char *name)
{
	return fix_counter_of(f, name, -1);
}

static inline void *fix_alloc_node(struct fix *f, uint32_t cpu, int32_t node)
{
	void *obj = f->v->alloc(f->c, cpu, node, FIX_GFP);

	assert_non_null(obj);
	return obj;
}

static inline void *fix_alloc(struct fix *f, uint32_t cpu)
{
	return fix_alloc_node(f, cpu, ALLOC_NODE_ANY);
}

static inline void fix_alloc_many(struct fix *f, uint32_t cpu, void **objs, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		objs[i] = fix_alloc(f, cpu);
}

static inline void fix_free_many(struct fix *f, uint32_t cpu, void **objs, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		f->v->free(f->c, cpu, objs[i]);
}

static inline void fix_expect_object(struct fix *f, const void *obj, uint32_t slab, uint32_t index)
{
	struct alloc_slab_info info;
	uint32_t at;

	alloc_slab_info(alloc_slab_of(f->m, obj, &at), &info);
	assert_int_equal(info.id, slab);
	assert_int_equal(at, index);
}

/* The log holds exactly these moves, in this order; it is emptied. */
static inline void fix_expect_moves(struct fix *f, const struct fix_move *want, uint32_t nr)
{
	assert_int_equal(f->nr_moves, nr);
	for (uint32_t i = 0; i < nr; i++) {
		assert_int_equal(f->moves[i].slab, want[i].slab);
		assert_int_equal(f->moves[i].cpu, want[i].cpu);
		assert_string_equal(alloc_state_name(f->moves[i].from),
				    alloc_state_name(want[i].from));
		assert_string_equal(alloc_state_name(f->moves[i].to),
				    alloc_state_name(want[i].to));
	}
	f->nr_moves = 0;
}

static inline void fix_expect_refills(struct fix *f, const struct fix_refill *want, uint32_t nr)
{
	assert_int_equal(f->nr_refills, nr);
	for (uint32_t i = 0; i < nr; i++) {
		assert_string_equal(alloc_refill_source_name(f->refills[i].source),
				    alloc_refill_source_name(want[i].source));
		assert_int_equal(f->refills[i].objs, want[i].objs);
	}
	f->nr_refills = 0;
}

#endif
