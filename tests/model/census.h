/* SPDX-License-Identifier: MIT */
/*
 * A census of one cache: every object is in exactly one place, out or free, and there are as many
 * as the slabs have.  Used by the model tests; independent of a variant's own check().
 */
#ifndef SLABTAPE_TESTS_CENSUS_H
#define SLABTAPE_TESTS_CENSUS_H

#include "allocator/slab.h"
#include "allocator/variant.h"

struct census {
	const struct alloc_machine *m;
	const struct alloc_cache *c;
	struct census_entry {
		const void *obj;
		uint64_t round;
	} *table; /* open addressing; entries of other rounds are empty */
	uint64_t entries, round;
	uint64_t slabs, objects, free_objs, out_objs; /* of the last census */
	const char *broken; /* what is wrong, NULL: nothing */
};

/* Count slabs and free objects.  Every CPU idle.  What was found wrong is in s->broken. */
void census_begin(struct census *s, const struct alloc_variant *v, const struct alloc_machine *m,
		  const struct alloc_cache *c);
/* One object that is out. */
void census_out(struct census *s, const void *obj);
/*
 * After all that are out: what is wrong, or NULL.  @kept_objs: objects known to be neither out nor
 * free (prefilled sheaves), at least; with @exact no others may be missing.
 */
const char *census_end(struct census *s, uint64_t kept_objs, bool exact);
void census_fini(struct census *s);

#endif
