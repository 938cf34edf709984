/* SPDX-License-Identifier: MIT */
/*
 * Which rows of an event chunk satisfy a filter: column by column, never row by row.
 */
#ifndef SLABTAPE_STORE_VTAB_ROWS_H
#define SLABTAPE_STORE_VTAB_ROWS_H

#include "store/vtab_plan.h"
#include "store/vtab_source.h"

/* Columns of the table `event`, in the order of its declaration. */
enum vtab_event_column {
	EV_SEQ, EV_TS, EV_CPU, EV_NODE, EV_OP, EV_CACHE, EV_OBJECT, EV_SIZE, EV_NODE_REQ,
	EV_MEM_NODE, EV_SITE, EV_TID, EV_GFP, EV_CTX, EV_BULK, EV_ARG, EV_FLAGS, EV_ADDRESS,
	EV_SLOT, EV_TS_LO, EV_TS_HI, EV_MAX
};

/* Column of a chunk behind each of them (EV_SEQ: none). */
extern const int8_t vtab_event_source[EV_MAX];

/* Decoded columns that the statement and the filter need (bit mask of 1u << enum tape_col). */
uint32_t vtab_rows_columns(const struct vtab_filter *f);

/*
 * Make the filter ready for tests on rows: the set of nodes becomes part of the set of CPUs.
 * Returns an SQLite code.
 */
int vtab_rows_prepare(struct vtab_filter *f, const struct vtab_source *s);

/* False when no row of @c can satisfy @f. */
bool vtab_rows_possible(const struct vtab_filter *f, const struct store_chunk *c);

/*
 * The rows of @b that satisfy @f (its columns per vtab_rows_columns() are decoded).  The answer
 * is rows [*ret_first, *ret_first + returned) when *ret_listed is false, else @sel[0..returned)
 * (room for TAPE_CHUNK_EVENTS), ascending.
 */
uint32_t vtab_rows_select(const struct vtab_filter *f, const struct tape_batch *b, uint32_t *sel,
			  uint32_t *ret_first, bool *ret_listed);

#endif
