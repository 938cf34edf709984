/* SPDX-License-Identifier: MIT */
/*
 * The public entry of a variant: its own functions, and the observer told what goes out and what
 * comes in.  With nobody listening an entry is one predictable branch and a jump.
 *
 * A family writes ALLOC_ENTRIES(slab) beside its table and ALLOC_ENTRY_OPS(slab) inside it.  Its
 * own code calls the plain functions (slab_alloc), never the table's, so that nothing is told
 * twice.  An object is told free before the allocator has it and allocated when it no longer does:
 * in the order of calls to the observer no object is ever out twice.
 */
#ifndef SLABTAPE_ALLOCATOR_ENTRY_H
#define SLABTAPE_ALLOCATOR_ENTRY_H

#include "allocator/slab.h"

/* @nr objects go to the caller, or come from it.  Callbacks that are NULL are left out. */
void alloc_tell_allocs(const struct alloc_cache *c, uint32_t cpu, uint32_t nr, void *const *objs);
void alloc_tell_frees(const struct alloc_cache *c, uint32_t cpu, uint32_t nr, void *const *objs);

static inline bool alloc_observed(const struct alloc_cache *c)
{
	return __builtin_expect(c->machine->observer != NULL, 0);
}

/* @obj, which may be NULL, is the result of an allocation. */
static inline void *alloc_told(const struct alloc_cache *c, uint32_t cpu, void *obj)
{
	if (obj)
		alloc_tell_allocs(c, cpu, 1, &obj);
	return obj;
}

/* An entry that takes one object from the caller: free, free_rcu.  Observed: out of the way. */
#define ALLOC_ENTRY_FREE(prefix, op)                                                            \
	static __attribute__((noinline, cold)) void prefix##_##op##_told(                       \
		struct alloc_cache *c, uint32_t cpu, void *obj)                                 \
	{                                                                                       \
		alloc_tell_frees(c, cpu, 1, &obj);                                              \
		prefix##_##op(c, cpu, obj);                                                     \
	}                                                                                       \
	static void prefix##_##op##_entry(struct alloc_cache *c, uint32_t cpu, void *obj)       \
	{                                                                                       \
		if (alloc_observed(c))                                                          \
			prefix##_##op##_told(c, cpu, obj);                                      \
		else                                                                            \
			prefix##_##op(c, cpu, obj);                                             \
	}

#define ALLOC_ENTRY_SHEAF_ALLOC(prefix)                                                         \
	static void *prefix##_sheaf_alloc_entry(struct alloc_cache *c, uint32_t cpu,            \
						struct alloc_sheaf *s)                          \
	{                                                                                       \
		if (alloc_observed(c))                                                          \
			return alloc_told(c, cpu, prefix##_sheaf_alloc(c, cpu, s));             \
		return prefix##_sheaf_alloc(c, cpu, s);                                         \
	}

#define ALLOC_ENTRY_PLACED(prefix)                                                              \
	static void *prefix##_alloc_placed_entry(struct alloc_cache *c, uint32_t cpu,           \
						 int32_t node, uint32_t gfp,                    \
						 const struct alloc_place *want)                \
	{                                                                                       \
		return alloc_told(c, cpu, prefix##_alloc_placed(c, cpu, node, gfp, want));      \
	}

#define ALLOC_ENTRIES_SINGLE(prefix)                                                            \
	ALLOC_ENTRY_FREE(prefix, free)                                                          \
	static void *prefix##_alloc_entry(struct alloc_cache *c, uint32_t cpu, int32_t node,    \
					  uint32_t gfp)                                         \
	{                                                                                       \
		if (alloc_observed(c))                                                          \
			return alloc_told(c, cpu, prefix##_alloc(c, cpu, node, gfp));           \
		return prefix##_alloc(c, cpu, node, gfp);                                       \
	}

#define ALLOC_ENTRIES_BULK(prefix)                                                              \
	static uint32_t prefix##_alloc_bulk_entry(struct alloc_cache *c, uint32_t cpu,          \
						  uint32_t gfp, uint32_t nr, void **objs)       \
	{                                                                                       \
		uint32_t got = prefix##_alloc_bulk(c, cpu, gfp, nr, objs);                      \
                                                                                                \
		alloc_tell_allocs(c, cpu, got, objs);                                           \
		return got;                                                                     \
	}                                                                                       \
	static void prefix##_free_bulk_entry(struct alloc_cache *c, uint32_t cpu, uint32_t nr,  \
					     void **objs)                                       \
	{                                                                                       \
		alloc_tell_frees(c, cpu, nr, objs);                                             \
		prefix##_free_bulk(c, cpu, nr, objs);                                           \
	}

#define ALLOC_ENTRIES(prefix)                                                                   \
	ALLOC_ENTRIES_SINGLE(prefix)                                                            \
	ALLOC_ENTRIES_BULK(prefix)

/* Fields of struct alloc_variant. */
#define ALLOC_ENTRY_OPS_SINGLE(prefix)                                                          \
	.alloc = prefix##_alloc_entry,                                                          \
	.free = prefix##_free_entry
#define ALLOC_ENTRY_OPS_BULK(prefix)                                                            \
	.alloc_bulk = prefix##_alloc_bulk_entry,                                                \
	.free_bulk = prefix##_free_bulk_entry
#define ALLOC_ENTRY_OPS(prefix) ALLOC_ENTRY_OPS_SINGLE(prefix), ALLOC_ENTRY_OPS_BULK(prefix)

#endif
