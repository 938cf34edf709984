/* SPDX-License-Identifier: MIT */
/*
 * GROUP BY over columns, the engine of event_agg and object_agg.
 *
 * SQLite sorts every row to group it; here a chunk is grouped column by column:
 *
 *	group_begin(n rows)        every row is in group 0
 *	group_refine(values)       rows of one group with different values part; once per key
 *	group_add/least/most(...)  one measure over all rows, once per measure
 *	group_end()                the chunk's groups are merged into the result
 *
 * A key is up to GROUP_KEYS_MAX numbers.  Groups of the result are in no particular order.
 */
#ifndef SLABTAPE_STORE_VTAB_GROUP_H
#define SLABTAPE_STORE_VTAB_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GROUP_KEYS_MAX 16
#define GROUP_MEASURES_MAX 8
#define GROUP_ROWS_MAX 65536u
#define GROUPS_MAX (1u << 20) /* limit of the result, so that memory stays below 200 MB */

enum group_fold { GROUP_SUM, GROUP_LEAST, GROUP_MOST };

struct group_by;

/* @folds: how measure i of a group is combined.  NULL when out of memory. */
struct group_by *group_create(unsigned int keys, unsigned int measures,
			      const enum group_fold *folds);
void group_destroy(struct group_by *g); /* NULL is accepted */

/* Scratch of GROUP_ROWS_MAX numbers that the caller fills for refine and the measures. */
int64_t *group_values(struct group_by *g);

void group_begin(struct group_by *g, uint32_t rows); /* 1..GROUP_ROWS_MAX */
void group_refine(struct group_by *g, const int64_t *values);
/* Measure @m: count rows, or fold @values. */
void group_count(struct group_by *g, unsigned int m);
void group_fold(struct group_by *g, unsigned int m, const int64_t *values);
/* False: out of memory, or more than GROUPS_MAX groups (*ret_too_many). */
bool group_end(struct group_by *g, bool *ret_too_many);

size_t group_nr(const struct group_by *g);
int64_t group_key(const struct group_by *g, size_t group, unsigned int key);
int64_t group_measure(const struct group_by *g, size_t group, unsigned int m);

#endif
