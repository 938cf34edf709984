/* SPDX-License-Identifier: MIT */
/*
 * What is alive over time: a recording cut into equal parts, one row of counts for each.
 *
 * One pass over the events; an array as large as the most objects ever live, no object table.
 * Objects from before the recording are not known and never count.
 */
#ifndef SLABTAPE_ANALYZE_TIMELINE_H
#define SLABTAPE_ANALYZE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct tape;

struct timeline_config {
	uint64_t begin_ns, end_ns; /* what the parts cover, half open; 0, UINT64_MAX: everything */
	uint32_t parts;		   /* 1..TIMELINE_PARTS_MAX */
	int32_t cpu;		   /* only objects that this CPU allocated; -1: all */
	int32_t cache;		   /* only this cache; -1: all */
	bool by_cache;		   /* also one series per cache */
};
#define TIMELINE_PARTS_MAX 100000u

/* Levels stand at the end of the part; peaks are the highest moment inside it. */
struct timeline_point {
	uint64_t allocs, frees, alloc_bytes; /* events of the part; requested bytes */
	uint64_t live_objs, live_bytes;	     /* requested bytes */
	uint64_t peak_objs, peak_bytes;
};

struct timeline_series {
	uint16_t cache; /* id; of the total: TAPE_NO_CACHE */
	uint64_t live_objs, live_bytes; /* while the events are read */
	struct timeline_point *points;	/* [parts] */
};

struct timeline {
	uint64_t begin_ns, width_ns; /* part i begins at begin_ns + i * width_ns */
	uint32_t parts;
	struct timeline_series total;
	struct timeline_series *caches; /* ascending id, those with events */
	size_t nr_caches;
};

/* *ret_timeline: freed with timeline_destroy(). */
int timeline_load(struct tape *t, const struct timeline_config *cfg,
		  struct timeline **ret_timeline, struct tape_err *reterr) TAPE_MUST_CHECK;
void timeline_destroy(struct timeline *l); /* NULL is accepted */
static inline void timeline_destroyp(struct timeline **l)
{
	timeline_destroy(*l);
}

#endif
