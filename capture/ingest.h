/* SPDX-License-Identifier: MIT */
/*
 * From raw kernel events to the rows of a tape.
 *
 * Importers hand over what a tracer wrote, in time order; this layer gives objects their ids and
 * slots, completes what the tracer did not see and names caches.  Rules, by address alone:
 *
 *	(a) alloc of a live address      the old object gets an inferred free
 *	(b) free of a freed address      an inferred alloc between the two frees
 *	(c) free of an unknown address   orphan: older than the recording; at most as many per
 *	                                 cache as the start snapshot has objects, and without a
 *	                                 snapshot until the cache shows (b): then inferred alloc
 *	(d) kfree(NULL), failed allocs   counted, no row
 *	(e) windows touching a loss      flag unknown
 *
 * Inferred rows stand late, just before the event that proves them and on its CPU; their window
 * [ts_lo, ts_hi] says when it can have been, so that a replay can place them early instead.
 * `none` leaves them out: (a) the old object stays live, (b) and (c) become orphans.
 *
 * Names: from the event; else the kmalloc class of bytes_alloc; else learned from the object's
 * own free; else guessed (flag unnamed): from other objects of the same call site and size, else on
 * the same page, where all of those agree, else by the only cache of the snapshots with these two
 * sizes; else cache 0, "unknown" (flag unnamed).
 *
 * Memory: live objects, distinct addresses, pages, sites and names.
 */
#ifndef SLABTAPE_CAPTURE_INGEST_H
#define SLABTAPE_CAPTURE_INGEST_H

#include <stddef.h>

#include "capture/import_internal.h"
#include "traces/event.h"

struct ingest;

/* An alloc or a free as the tracer saw it. */
struct capture_raw {
	uint64_t ts;	      /* ns, any origin */
	uint64_t address;     /* 0: kfree(NULL) or a failed alloc */
	uint64_t bytes_req;   /* allocs */
	uint64_t bytes_alloc; /* allocs; 0 unknown */
	const char *cache;    /* name, borrowed; NULL: the event has none */
	uint32_t cache_len;
	uint32_t site; /* from ingest_site_*() */
	int32_t tid;
	uint16_t cpu;
	uint16_t gfp; /* enum tape_gfp */
	int16_t node_req;
	bool is_free;
	bool is_kmalloc; /* kmalloc or kfree; else kmem_cache_alloc or kmem_cache_free */
	bool accounted;	 /* a kmalloc from the kmalloc-cg caches */
	uint8_t ctx;	 /* enum tape_ctx */
};

/* Reads snapshots, zoneinfo and topology of @job and writes what they say. */
int ingest_create(const struct import_job *job, struct ingest **ret_ing, struct tape_err *reterr)
	TAPE_MUST_CHECK;
void ingest_destroy(struct ingest *ing); /* NULL is accepted */
static inline void ingest_destroyp(struct ingest **ing)
{
	ingest_destroy(*ing);
}

/*
 * Keep the events of one cache only; @names (each NUL-terminated, then an empty one) are all its
 * names, borrowed.  A free that names no cache is kept when it frees an object that is kept.
 * Events left out count as stats.other.
 */
void ingest_only(struct ingest *ing, const char *names);

/* A live recording's second snapshot, read from @path before ingest_finish(). */
int ingest_slab_after(struct ingest *ing, const char *path, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/* @cpu exists in the source, with or without events.  -TAPE_E_LIMIT. */
int ingest_cpu(struct ingest *ing, uint32_t cpu, struct tape_err *reterr) TAPE_MUST_CHECK;

/* @ts must not go back between calls; where it does it is raised and counted (meta). */
int ingest_event(struct ingest *ing, const struct capture_raw *raw, struct tape_err *reterr)
	TAPE_MUST_CHECK;
int ingest_marker(struct ingest *ing, uint64_t ts, uint32_t cpu, const char *text,
		  struct tape_err *reterr) TAPE_MUST_CHECK;

/*
 * @events (0: number unknown) of @cpu were lost between two times.  Call it before any event
 * that is not older than @ts_begin.
 */
int ingest_loss(struct ingest *ing, int32_t cpu, uint64_t ts_begin, uint64_t ts_end,
		uint64_t events, const char *reason, struct tape_err *reterr) TAPE_MUST_CHECK;

/* Site of a code address; the symbol functions name new ones.  0 for address 0. */
struct ingest_symbol {
	const char *symbol, *module; /* borrowed; NULL unknown */
	uint32_t symbol_len, module_len;
	uint64_t address, offset;
};
/* *ret_new: call ingest_site_define() next.  -ENOMEM. */
int ingest_site_by_address(struct ingest *ing, uint64_t address, uint32_t *ret_site,
			   bool *ret_new, struct tape_err *reterr) TAPE_MUST_CHECK;
/* The same for sources that write "symbol+0x10" or a number. */
int ingest_site_by_text(struct ingest *ing, const char *text, size_t len, uint32_t *ret_site,
			struct tape_err *reterr) TAPE_MUST_CHECK;
int ingest_site_define(struct ingest *ing, uint32_t site, const struct ingest_symbol *symbol,
		       struct tape_err *reterr) TAPE_MUST_CHECK;

/* A thread's name; the first one given for a tid stays. */
int ingest_thread(struct ingest *ing, int32_t tid, const char *comm, size_t len,
		  struct tape_err *reterr) TAPE_MUST_CHECK;

/* Late names, coverage, cpu rows, counters.  The tape itself is finished by capture_import(). */
int ingest_finish(struct ingest *ing, struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
