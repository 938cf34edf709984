/* SPDX-License-Identifier: MIT */
/*
 * libslab: the slab allocators of Linux, from 2.6.30 to 7.2, as a library.
 *
 *	const uint16_t cpu_node[2] = { 0, 0 };
 *	struct alloc_machine_config machine = { .cpus = 2, .nodes = 1, .cpu_node = cpu_node,
 *						.sync = ALLOC_SYNC_NATIVE };
 *	const struct alloc_variant *v = alloc_variant_find("slub-6.1", ALLOC_SYNC_NATIVE);
 *	alloc_machine_create(&machine, &m);
 *	v->create(m, &(struct alloc_cache_config){ .name = "node", .object_size = 256 }, &c);
 *	void *obj = v->alloc(c, cpu, ALLOC_NODE_ANY, ALLOC_GFP_MAY_BLOCK);
 *
 * The CPU is an argument, never the calling thread's: a caller owns a CPU number while it is
 * inside an operation.  Contracts stand with each declaration in allocator/variant.h; what an
 * observer is told in allocator/hooks.h; counter names in allocator/counters.h.
 *
 * Link with -lslab (pkg-config slab).
 */
#ifndef SLABTAPE_SLAB_H
#define SLABTAPE_SLAB_H

#include "allocator/counters.h"
#include "allocator/hooks.h"
#include "allocator/variant.h"

#endif
