/* SPDX-License-Identifier: MIT */
/*
 * The rules every recording keeps, checked over its events in order:
 *
 *	- an id begins once: by an alloc, or by the orphan free of an older object
 *	- an object is freed once, after its alloc, and with the slot of its alloc
 *	- no two live objects share a slot
 *	- ids are dense: at the end every id below the highest has begun
 *
 * Rows without an object or slot, frees of inherited objects (after a fork the same object is
 * freed in both processes) and failed allocs are not looked at.
 */
#ifndef SLABTAPE_TRACES_LIFETIME_H
#define SLABTAPE_TRACES_LIFETIME_H

#include "traces/batch.h"

#define TAPE_COLS_LIFETIME \
	(1u << TAPE_COL_OP | 1u << TAPE_COL_OBJECT | 1u << TAPE_COL_SLOT | 1u << TAPE_COL_FLAGS)

struct tape_lifetime;

struct tape_lifetime *tape_lifetime_create(void); /* NULL when out of memory */
void tape_lifetime_destroy(struct tape_lifetime *l);

/*
 * Check the next rows (TAPE_COLS_LIFETIME valid).  -TAPE_E_FORMAT names seq and object of the
 * first row that breaks a rule.
 */
int tape_lifetime_take(struct tape_lifetime *l, const struct tape_batch *b,
		       struct tape_err *reterr) TAPE_MUST_CHECK;

/* After the last row: ids are dense.  *ret_objects: how many there are. */
int tape_lifetime_finish(const struct tape_lifetime *l, uint64_t *ret_objects,
			 struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
