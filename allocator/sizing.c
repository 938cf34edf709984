/* SPDX-License-Identifier: MIT */
/* Formulas of sizes, orders and limits by era; see sizing.h for what each one means. */
#include "allocator/sizing.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#define PAGE_BYTES 4096u
#define ORDER_MAX 10u
#define CACHE_LINE_BYTES 64u
#define POINTER_BYTES 8u
#define SIZE_MAX_BYTES (PAGE_BYTES << ORDER_MAX)
#define KMALLOC_MAX_BYTES 8192u

static uint32_t align_up(uint32_t value, uint32_t to)
{
	return (value + to - 1) & ~(to - 1);
}

/* Position of the highest bit, counted from 1; 0 for 0. */
static uint32_t highest_bit(uint32_t value)
{
	return value ? 32u - (uint32_t)__builtin_clz(value) : 0;
}

/* Smallest order that holds @bytes. */
static uint32_t order_for(uint64_t bytes)
{
	uint32_t order = 0;

	while (((uint64_t)PAGE_BYTES << order) < bytes)
		order++;
	return order;
}

static uint32_t objects_in(uint32_t order, uint32_t size)
{
	return (PAGE_BYTES << order) / size;
}

/* The count field of a slab: 16 bits in 2.6.30, 15 later (one bit became "frozen"). */
static uint32_t objects_limit(enum alloc_era era)
{
	return era == ALLOC_ERA_2_6_30 ? 65535 : 32767;
}

static uint32_t wanted_objects(enum alloc_era era, const struct alloc_sizing *sz, uint32_t size)
{
	uint32_t want = sz->min_objects, most = objects_in(sz->max_order, size);

	if (!want)
		want = 4 * (highest_bit(sz->cpus) + 1);
	if (era >= ALLOC_ERA_6_12 && !most)
		most = 1;
	return want < most ? want : most;
}

/* Smallest order in [@from, @to] that wastes at most 1/@fraction of the slab; @to + 1 if none. */
static uint32_t first_fitting(uint32_t from, uint32_t to, uint32_t size, uint32_t fraction)
{
	uint32_t order;

	for (order = from; order <= to; order++) {
		uint32_t bytes = PAGE_BYTES << order;

		if (bytes % size <= bytes / fraction)
			break;
	}
	return order;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Order that holds as many objects as the count field can say. */
static uint32_t order_at_limit(enum alloc_era era, uint32_t size)
{
	return order_for((uint64_t)size * objects_limit(era)) - 1;
}

/* Up to 6.7: give up objects one by one until some waste limit is met. */
static uint32_t order_decreasing(enum alloc_era era, const struct alloc_sizing *sz, uint32_t size)
{
	uint32_t order;

	if (objects_in(sz->min_order, size) > objects_limit(era))
		return order_at_limit(era, size);
	for (uint32_t want = wanted_objects(era, sz, size); want > 1; want--) {
		uint32_t from = larger(sz->min_order, order_for((uint64_t)want * size));

		for (uint32_t fraction = 16; fraction >= 4; fraction /= 2) {
			order = first_fitting(from, sz->max_order, size, fraction);
			if (order <= sz->max_order)
				return order;
		}
	}
	order = first_fitting(larger(sz->min_order, order_for(size)), sz->max_order, size, 1);
	if (order <= sz->max_order)
		return order;
	return first_fitting(larger(sz->min_order, order_for(size)), ORDER_MAX, size, 1);
}

/* Since 6.8: the number of objects is kept, the waste limit grows up to half. */
static uint32_t order_by_fraction(enum alloc_era era, const struct alloc_sizing *sz, uint32_t size)
{
	uint32_t want = wanted_objects(era, sz, size), order;
	uint32_t from = larger(sz->min_order, order_for((uint64_t)want * size));

	if (objects_in(sz->min_order, size) > objects_limit(era))
		return order_at_limit(era, size);
	for (uint32_t fraction = 16; fraction > 1; fraction /= 2) {
		order = first_fitting(from, sz->max_order, size, fraction);
		if (order <= sz->max_order)
			return order;
	}
	return order_for(size);
}

static uint32_t effective_align(uint32_t object_size, uint32_t align, uint32_t flags)
{
	uint32_t line = CACHE_LINE_BYTES;

	if (flags & ALLOC_F_HWCACHE_ALIGN) {
		while (object_size <= line / 2)
			line /= 2;
		align = larger(align, line);
	}
	return align_up(larger(align, 8), POINTER_BYTES);
}

int alloc_slub_geometry(enum alloc_era era, const struct alloc_sizing *sz, uint32_t object_size,
			uint32_t align, uint32_t flags, struct alloc_geometry *ret_geo)
{
	struct alloc_geometry g = { .object_size = object_size };
	uint32_t base, limit = objects_limit(era);

	assert(era < ALLOC_ERA_MAX && sz->cpus);
	if (!object_size || object_size > SIZE_MAX_BYTES || align > SIZE_MAX_BYTES ||
	    (align & (align - 1)) || sz->max_order > ORDER_MAX || sz->min_order > sz->max_order)
		return -EINVAL;
	base = align_up(object_size, POINTER_BYTES);
	if (flags & (ALLOC_F_RCU | ALLOC_F_CTOR)) {
		g.offset = base; /* the object's own bytes stay valid while it is free */
		base += POINTER_BYTES;
	} else if (era >= ALLOC_ERA_5_15) {
		g.offset = object_size / 2 & ~(POINTER_BYTES - 1);
	}
	g.align = effective_align(object_size, align, flags);
	g.size = align_up(base, g.align);
	if (g.size > SIZE_MAX_BYTES)
		return -EINVAL;
	g.order = era >= ALLOC_ERA_6_12 ? order_by_fraction(era, sz, g.size)
					: order_decreasing(era, sz, g.size);
	g.min_order = order_for(g.size);
	if (g.order > ORDER_MAX || !objects_in(g.order, g.size))
		return -EINVAL;
	g.objects = objects_in(g.order, g.size) < limit ? objects_in(g.order, g.size) : limit;
	g.min_objects = objects_in(g.min_order, g.size);
	if (g.min_objects > limit)
		g.min_objects = limit;
	*ret_geo = g;
	return 0;
}

uint32_t alloc_min_partial(enum alloc_era era, uint32_t size)
{
	uint32_t bits = highest_bit(size) - 1;

	assert(size);
	if (era > ALLOC_ERA_2_6_30)
		bits /= 2;
	return bits < 5 ? 5 : bits > 10 ? 10 : bits;
}

uint32_t alloc_cpu_partial(enum alloc_era era, uint32_t size)
{
	static const uint8_t early[4] = { 2, 6, 13, 30 }, late[4] = { 6, 24, 52, 120 };
	uint32_t class = size >= PAGE_BYTES ? 0 : size >= 1024 ? 1 : size >= 256 ? 2 : 3;

	if (era < ALLOC_ERA_3_2 || era >= ALLOC_ERA_7_2)
		return 0;
	return era <= ALLOC_ERA_5_15 ? early[class] : late[class];
}

uint32_t alloc_cpu_partial_slabs(uint32_t cpu_partial, uint32_t objects)
{
	assert(objects);
	return (uint32_t)((2ull * cpu_partial + objects - 1) / objects);
}

uint32_t alloc_kmalloc_class(enum alloc_era era, uint64_t bytes)
{
	(void)era; /* the same classes in every SLUB */
	if (!bytes || bytes > KMALLOC_MAX_BYTES)
		return 0;
	if (bytes > 64 && bytes <= 96)
		return 96;
	if (bytes > 128 && bytes <= 192)
		return 192;
	return bytes <= 8 ? 8 : 1u << highest_bit((uint32_t)bytes - 1);
}

void alloc_kmalloc_name(enum alloc_era era, uint32_t class_bytes, char *ret_name, uint32_t bytes)
{
	if (era >= ALLOC_ERA_5_15 && class_bytes >= 1024)
		snprintf(ret_name, bytes, "kmalloc-%uk", class_bytes / 1024);
	else
		snprintf(ret_name, bytes, "kmalloc-%u", class_bytes);
}

uint32_t alloc_kmalloc_align(enum alloc_era era, uint32_t class_bytes)
{
	bool power_of_two = !(class_bytes & (class_bytes - 1));

	if (era < ALLOC_ERA_5_15 || (era < ALLOC_ERA_6_12 && !power_of_two))
		return 8;
	return larger(8, class_bytes & -class_bytes);
}

uint32_t alloc_sheaf_capacity(uint32_t size, uint32_t asked)
{
	enum { SHEAF_HEADER_BYTES = 32 };
	uint32_t capacity = size >= PAGE_BYTES ? 4 : size >= 1024 ? 12 : size >= 256 ? 26 : 60;
	uint32_t bytes = SHEAF_HEADER_BYTES + POINTER_BYTES * capacity;

	capacity = (alloc_kmalloc_class(ALLOC_ERA_7_2, bytes) - SHEAF_HEADER_BYTES) / POINTER_BYTES;
	return larger(capacity, asked);
}
