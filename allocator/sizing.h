/* SPDX-License-Identifier: MIT */
/*
 * Sizes, orders and limits: the formulas by era (specification 1.1 - 1.7), pure functions.
 * tests/golden: every row of 6.1/config.tsv and 7.2/config.tsv.
 */
#ifndef SLABTAPE_ALLOCATOR_SIZING_H
#define SLABTAPE_ALLOCATOR_SIZING_H

#include <stdint.h>

#include "allocator/variant.h"

/* Which release a formula follows. */
enum alloc_era { ALLOC_ERA_2_6_30 = 0, ALLOC_ERA_3_2, ALLOC_ERA_5_15, ALLOC_ERA_6_1, ALLOC_ERA_6_12,
	ALLOC_ERA_7_2, ALLOC_ERA_MAX };

struct alloc_sizing {
	uint32_t cpus;			     /* present CPUs (possible ids up to 3.2) */
	uint32_t min_order, max_order;	     /* slub_min_order 0, slub_max_order 3 */
	uint32_t min_objects;		     /* slub_min_objects, 0 = automatic */
};
#define ALLOC_SIZING_DEFAULT(nr_cpus) ((struct alloc_sizing){ (nr_cpus), 0, 3, 0 })

/*
 * Geometry of a SLUB cache.  0, or -EINVAL when no order holds the object.
 * Source: calculate_sizes()/calculate_order() of the era's mm/slub.c, as rules 1.2 and 1.3.
 */
int alloc_slub_geometry(enum alloc_era era, const struct alloc_sizing *sz, uint32_t object_size,
			uint32_t align, uint32_t flags, struct alloc_geometry *ret_geo);
uint32_t alloc_min_partial(enum alloc_era era, uint32_t size);	 /* 1.5 */
uint32_t alloc_cpu_partial(enum alloc_era era, uint32_t size);	 /* 1.6, objects; 0 where unknown */
uint32_t alloc_cpu_partial_slabs(uint32_t cpu_partial, uint32_t objects); /* 1.6 */
uint32_t alloc_sheaf_capacity(uint32_t size, uint32_t asked);	 /* 1.7 */
/* Size of the kmalloc class for a request (0: none, above the largest) and its name. */
uint32_t alloc_kmalloc_class(enum alloc_era era, uint64_t bytes);
void alloc_kmalloc_name(enum alloc_era era, uint32_t class_bytes, char *ret_name, uint32_t bytes);
/* Alignment of a kmalloc cache by era (1.1). */
uint32_t alloc_kmalloc_align(enum alloc_era era, uint32_t class_bytes);

#endif
