/* SPDX-License-Identifier: MIT */
/*
 * Rates, mixes and shares of a tape by cache, CPU, node, call site or time.
 *
 * Tables are JSON rows (analyze/ask.h).  The columns of every table but the one by time:
 *
 *	name		cache, call site (symbol or address), or the number of the CPU or node
 *	hit, hit_per_s	allocations; per second of the window
 *	free		frees (by site: of objects that the site allocated)
 *	bytes		requested, all allocations
 *	slot_bytes	taken by them: slots of the cache's size; null where no cache has one
 *	frag		share of slot_bytes that nobody asked for, 0..1
 *	pingpong	objects freed on another CPU than they were allocated on
 *	remote		their share of the frees of objects whose allocation is in the tape, 0..1
 *	cross_node	share freed on another node than that of their memory, 0..1 (of the frees
 *			whose memory's node is known, else that of the allocating CPU)
 *	life_ns		mean lifetime of freed objects
 *	life_max_ns	longest
 *	live, live_bytes  alive at the end of the window; requested bytes
 *	coverage	by cache: traced / (traced + inferred) events
 *
 * By CPU and by node, allocations count where they were made and frees where they were made.
 */
#ifndef SLABTAPE_ANALYZE_STAT_H
#define SLABTAPE_ANALYZE_STAT_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"

struct tape;

enum stat_by { STAT_BY_CACHE, STAT_BY_CPU, STAT_BY_NODE, STAT_BY_SITE, STAT_BY_TIME, STAT_BY_MAX };

struct stat_config {
	enum stat_by by;
	const char *sort;	   /* stat_sort_find(); NULL: by hits; by CPU and node by number */
	uint64_t begin_ns, end_ns; /* half open; 0, UINT64_MAX: everything */
	int32_t cpu, cache;	   /* -1: all */
	int64_t limit;		   /* rows; -1: all; by time: number of parts */
};
#define STAT_CONFIG_ALL ((struct stat_config){ .end_ns = UINT64_MAX, .cpu = -1, .cache = -1, .limit = -1 })

/* "cache", "cpu", "node", "site", "time"; -1 when @name is none. */
int stat_by_find(const char *name);
/* The ORDER BY term of a sort key of perf kmem or one of ours; NULL when @name is none. */
const char *stat_sort_find(const char *name);
extern const char stat_sort_names[]; /* for messages and help */

/*
 * *ret_rows: the table.  By time: begin_s, hit, free, bytes, live, live_bytes, peak, peak_bytes,
 * from analyze/timeline.h.
 */
int stat_table(struct tape *t, const struct stat_config *cfg, json_t **ret_rows,
	       struct tape_err *reterr) TAPE_MUST_CHECK;

/*
 * *ret_summary: one object: events, seconds, cpus, nodes, hit, free, bytes, slot_bytes, frag,
 * remote, cross_node of the window, and of the whole tape lost, inferred, orphan_frees.
 */
int stat_summary(struct tape *t, const struct stat_config *cfg, json_t **ret_summary,
		 struct tape_err *reterr) TAPE_MUST_CHECK;

/* ---- one run, as the kernel's own tools show it ---- */

enum stat_view { STAT_ACTIVITY, STAT_LOSS, STAT_REPORT, STAT_COUNTERS, STAT_VIEW_MAX };

/*
 * *ret_rows: a table about run @run, busiest cache first (STAT_LOSS: most lost bytes first).
 *	STAT_ACTIVITY	slabinfo -AD: name, objects, alloc, free, fast_alloc, fast_free (percent),
 *			fallback, order, cmpxchg_fail
 *	STAT_LOSS	slabinfo -L: name, objects, object_size, loss_bytes, slabs, partial, cpu_slabs,
 *			objs_per_slab, order, partial_percent, used_percent, node_mismatch
 *	STAT_REPORT	slabinfo -r: every counter with its share of its kind: name, counter, value,
 *			percent
 *	STAT_COUNTERS	/sys/kernel/slab: name, counter, value, per_cpu (" C0=1 C3=2")
 * @cache -1: all.  -TAPE_E_USAGE: no such run.
 */
int stat_run_table(struct tape *t, int64_t run, enum stat_view view, int32_t cache, int64_t limit,
		   json_t **ret_rows, struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
