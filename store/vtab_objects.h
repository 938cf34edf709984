/* SPDX-License-Identifier: MIT */
/*
 * Objects, 64 Ki ids at a time, put together from the event chunks.
 *
 * The row of an object is its alloc and its free.  Both are found in the chunks in which the
 * block's ids begin and in the STORE_NEAR_CHUNKS after each; frees further away stand in far_free.
 */
#ifndef SLABTAPE_STORE_VTAB_OBJECTS_H
#define SLABTAPE_STORE_VTAB_OBJECTS_H

#include "store/vtab_plan.h"
#include "store/vtab_source.h"

#define VTAB_OBJECTS (1u << STORE_OBJECTS_SHIFT)

/* Columns of the table `object`, in the order of its declaration. */
enum vtab_object_column {
	OB_OBJECT, OB_CACHE, OB_SIZE, OB_ALLOC_SEQ, OB_ALLOC_TS, OB_ALLOC_CPU, OB_ALLOC_SITE,
	OB_FREE_SEQ, OB_FREE_TS, OB_FREE_CPU, OB_FREE_SITE, OB_LIFETIME_NS, OB_REMOTE,
	OB_CROSS_NODE, OB_INFERRED, OB_ALLOC_NODE, OB_FREE_NODE, OB_MEM_NODE, OB_FREED,
	OB_LIFETIME_LOG2, OB_MAX
};

/* One object.  Numbers that the recording does not have are -1 (SQL: NULL). */
struct vtab_object {
	int64_t alloc_seq, alloc_ts, free_seq, free_ts;
	int64_t size;
	int64_t alloc_site, free_site;
	int32_t alloc_cpu, free_cpu, cache;
	int16_t mem_node;
	bool inferred;
	bool again; /* more than one event freed it (processes that share it by fork) */
};

struct vtab_objects {
	uint64_t block;	 /* ids from block << STORE_OBJECTS_SHIFT; UINT64_MAX: nothing loaded */
	uint32_t nr;	 /* ids in it */
	uint32_t columns; /* of the events that were read */
	uint64_t state;	  /* of the source when it was read */
	struct vtab_object rows[VTAB_OBJECTS];
};

/* Number of ids of the tape. */
uint64_t vtab_objects_total(const struct vtab_source *s);

/* Columns of events that the used columns of `object` need (bits of enum tape_col). */
uint32_t vtab_objects_columns(uint64_t used);

/*
 * Make *@o (NULL at first, malloc'ed; the caller frees it) hold block @block with at least
 * @columns; nothing is done when it does.  Returns an SQLite code.
 */
int vtab_objects_load(struct vtab_source *s, uint64_t block, uint32_t columns,
		      struct vtab_objects **o, char **ret_message);

/* True when the tape has object number @i of the block. */
static inline bool vtab_object_exists(const struct vtab_objects *o, uint32_t i)
{
	return o->rows[i].alloc_seq >= 0 || o->rows[i].free_seq >= 0;
}

/* Column @column of rows @sel[0..n), -1 for NULL. */
void vtab_objects_values(const struct vtab_source *s, const struct vtab_objects *o, int column,
			 const uint32_t *sel, uint32_t n, int64_t *ret_values);

/* Make the filter ready: what it says about alloc_seq and alloc_ts bounds the ids. */
void vtab_objects_prepare(struct vtab_filter *f, const struct vtab_source *s);
/* The rows of the block that exist and satisfy @f, ascending.  @values: room for VTAB_OBJECTS. */
uint32_t vtab_objects_select(const struct vtab_filter *f, const struct vtab_source *s,
			     const struct vtab_objects *o, uint32_t *sel, int64_t *values);

/*
 * The events of object @id: *ret_seqs[0..*ret_nr), ascending.  *ret_known false when more than
 * two name it, or its free may be missing, so that the chunks have to be searched.
 */
int vtab_object_events(struct vtab_source *s, uint64_t id, struct vtab_objects **o,
		       uint64_t ret_seqs[2], unsigned int *ret_nr, bool *ret_known,
		       char **ret_message);

#endif
