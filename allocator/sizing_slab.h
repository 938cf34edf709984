/* SPDX-License-Identifier: MIT */
/*
 * Sizes and limits of the object-queue allocators: SLAB (specification 10.1) and SLQB (11).
 * Pure functions.  tests/golden/6.1-slab/config.tsv judges every SLAB 6.1 row.
 */
#ifndef SLABTAPE_ALLOCATOR_SIZING_SLAB_H
#define SLABTAPE_ALLOCATOR_SIZING_SLAB_H

#include <stdint.h>

#include "allocator/variant.h"

/* Where a SLAB slab keeps the numbers of its free objects. */
enum alloc_slab_layout {
	ALLOC_SLAB_INDEX_IN_OBJECT = 0, /* 6.1: inside the object that is handed out last */
	ALLOC_SLAB_INDEX_OFF_SLAB,	/* in a kmalloc object of its own */
	ALLOC_SLAB_INDEX_ON_SLAB,	/* behind the objects (2.6.30: before them) */
};

struct alloc_slab_shape {
	struct alloc_geometry geo;    /* min_order and min_objects repeat the only shape */
	uint32_t colour;	      /* different offsets of the first object; 0 and 1: none */
	uint32_t colour_off_bytes;    /* step between two offsets */
	uint32_t index_bytes;	      /* the index array (2.6.30: the whole descriptor) */
	enum alloc_slab_layout layout;
};

/*
 * Geometry of a SLAB cache of 6.1.  @max_order is slab_max_order: 1, on machines of at most
 * 32 MiB 0.  0, or -EINVAL when no order up to 10 holds an object or @align is no power of two.
 */
int alloc_slab61_shape(uint32_t max_order, uint32_t object_size, uint32_t align, uint32_t flags,
		       struct alloc_slab_shape *ret_shape);
/*
 * The same for 2.6.30: a 48-byte descriptor and 4 bytes per object, off the slab from 512 bytes
 * on unless the left-over holds it.  Objects per slab of the kmalloc classes equal what
 * /proc/slabinfo of that time shows (112, 59, 30, 20, 15, 8, 4, 2, 1).
 */
int alloc_slab2630_shape(uint32_t max_order, uint32_t object_size, uint32_t align, uint32_t flags,
			 struct alloc_slab_shape *ret_shape);

/* The three tunables of a SLAB cache, both releases. */
struct alloc_slab_tunables {
	uint32_t limit;	     /* objects a CPU array holds */
	uint32_t batchcount; /* objects moved at a time */
	uint32_t shared;     /* capacity of a node's shared array in batches, 0: no such array */
};
/* @cpus: possible CPUs. */
struct alloc_slab_tunables alloc_slab_tunables(uint32_t size, uint32_t cpus);
/* Free objects a node keeps; @node_cpus: CPUs of that node, @objects: per slab. */
uint32_t alloc_slab_free_limit(uint32_t node_cpus, uint32_t batchcount, uint32_t objects);

/* Geometry of an SLQB cache; free pointer at 0, behind the object with ALLOC_F_CTOR or _RCU. */
int alloc_slqb_shape(uint32_t object_size, uint32_t align, uint32_t flags,
		     struct alloc_slab_shape *ret_shape);
/* Objects an SLQB list moves at a time; its high-water mark is four times that. */
uint32_t alloc_slqb_freebatch(uint32_t size);

#endif
