/* SPDX-License-Identifier: MIT */
/*
 * Page provider of a machine, for allocator/slab.c and tests of failures.  In the native build the caller holds the
 * page lock around get, put and the slab struct pool; in the other builds it is a no-op.
 */
#ifndef SLABTAPE_ALLOCATOR_MACHINE_H
#define SLABTAPE_ALLOCATOR_MACHINE_H

#include "allocator/slab.h"

/* Rank ALLOC_RANK_LEAF, in every build. */
void alloc_page_lock(struct alloc_machine *m, uint32_t cpu);
void alloc_page_unlock(struct alloc_machine *m, uint32_t cpu);

/*
 * 2^@order pages: from @node or, ALLOC_NODE_ANY, the CPU's node; then the other nodes by distance
 * unless @gfp has ALLOC_GFP_THISNODE.  NULL: none, or the fragmentation model refused.
 */
void *alloc_pages_get(struct alloc_machine *m, uint32_t cpu, int32_t node, uint32_t order,
		      uint32_t gfp, uint16_t *ret_node);
void alloc_pages_put(struct alloc_machine *m, void *block, uint16_t node, uint32_t order);

/*
 * For tests: of the requests for pages from now on, number @first (from 1) and the @nr - 1 after
 * it fail; @nr 0: none.  A slab asks once for its preferred shape and, when that fails, once for
 * the fallback shape.  requests: how many there were since the machine was made.
 */
void alloc_pages_fail(struct alloc_machine *m, uint64_t first, uint64_t nr);
uint64_t alloc_pages_requests(const struct alloc_machine *m);

/* A zeroed slab struct, or NULL when out of memory. */
struct alloc_slab *alloc_slab_struct_get(struct alloc_machine *m);
void alloc_slab_struct_put(struct alloc_machine *m, struct alloc_slab *s);

#endif
