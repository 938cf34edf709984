/* SPDX-License-Identifier: MIT */
/* What the files of the ingest layer share. */
#ifndef SLABTAPE_CAPTURE_INGEST_INTERNAL_H
#define SLABTAPE_CAPTURE_INGEST_INTERNAL_H

#include "capture/addrmap.h"
#include "capture/ingest.h"
#include "capture/intern.h"
#include "capture/topology.h"
#include "capture/map64.h"
#include "capture/slots.h"
#include "capture/sysfs_snapshot.h"
#include "store/tape.h"

#define INGEST_NULL_MAX 16	 /* NULL and ZERO_SIZE_PTR: no object */
#define INGEST_KMALLOC_MAX 8192u /* largest kmalloc class of SLUB with 4 KiB pages, bytes */
#define INGEST_PAGE_SHIFT 12
#define INGEST_GUESS_MIXED UINT64_MAX /* several caches claim it */

/* One cache, index = id in the tape. */
struct ingest_cache {
	struct tape_cache row;
	uint64_t traced, inferred; /* rows, for the coverage */
	uint64_t orphans, orphans_max; /* rule (c); UINT64_MAX: no snapshot */
	uint64_t alloc_bytes;	   /* 0 unknown */
	bool shows_untraced;	   /* rule (b) was seen */
};

struct ingest {
	const struct import_job *job;
	struct tape *t;
	struct capture_stats *stats;
	enum capture_infer infer;
	struct machine machine;
	struct snapshot *before, *after; /* NULL: none */
	struct intern names;		 /* number + 1 = cache id */
	struct ingest_cache *caches;
	uint32_t caches_nr, caches_capacity;
	uint16_t class_cache[4][16]; /* [normal, rcl, cg, dma][class]: id, 0 not looked up yet */
	struct addrmap addresses;
	struct capture_slots slots;
	struct map64 sites;	  /* address -> site */
	struct intern site_texts; /* number + 1 = site; sources use one of the two */
	uint32_t next_site;
	struct map64 site_caches; /* site << 32 | alloc_bytes -> cache id, or MIXED */
	struct map64 size_caches; /* object_size << 32 | slab_size -> cache of the snapshots, or MIXED */
	struct map64 pages;	  /* page -> last cache named there, see ingest_names.c */
	struct map64 threads;	  /* tid + 1 -> 1 */
	const char *only; /* names of the one cache that is kept; NULL: all */
	bool needs_guesses; /* an alloc without a name was seen */
	bool started;
	uint64_t origin_ts, last_ts, next_object;
	uint64_t loss_end_ts; /* latest end of a loss; meaningful when losses */
	uint64_t losses, clamped;
	struct tape_event ev; /* the row being built */
};

/* ---- ingest_names.c ---- */

/* Cache id of a name, defined in the tape when new. */
int ingest_cache_id(struct ingest *ing, const char *name, size_t len, uint16_t *ret_cache,
		    struct tape_err *reterr) TAPE_MUST_CHECK;
/* Cache id of a kmalloc: TAPE_NO_CACHE when it is larger than every class. */
int ingest_kmalloc_cache(struct ingest *ing, const struct capture_raw *raw, uint16_t *ret_cache,
			 struct tape_err *reterr) TAPE_MUST_CHECK;
/* An event named @cache for the object at @e: remember it for guesses. */
int ingest_learn_page(struct ingest *ing, uint64_t address, uint16_t cache,
		      struct tape_err *reterr) TAPE_MUST_CHECK;
int ingest_learn_site(struct ingest *ing, const struct addrmap_entry *e, uint16_t cache,
		      struct tape_err *reterr) TAPE_MUST_CHECK;
/* @e is an object of @cache: its sizes are the cache's. */
void ingest_learn_size(struct ingest *ing, const struct addrmap_entry *e, uint16_t cache);
/* A snapshot says that objects of @cache have these sizes. */
int ingest_learn_sizes(struct ingest *ing, uint16_t cache, uint64_t object_bytes,
		       uint64_t slab_bytes, struct tape_err *reterr) TAPE_MUST_CHECK;
/* Best guess for a live object nobody named, 0 when there is none. */
uint16_t ingest_guess(const struct ingest *ing, const struct addrmap_entry *e);
/* Guess for an object at @address that only its free shows. */
uint16_t ingest_guess_page(const struct ingest *ing, uint64_t address);
/* Give the unnamed live object at @e its name: rewrites its alloc row and moves the counts. */
int ingest_rename(struct ingest *ing, struct addrmap_entry *e, uint16_t cache, bool guessed,
		  struct tape_err *reterr) TAPE_MUST_CHECK;

/* ---- ingest_finish.c ---- */

/* Cache 0 and every cache the snapshots name. */
int ingest_define_snapshot_caches(struct ingest *ing, struct tape_err *reterr) TAPE_MUST_CHECK;
/* The caches of one snapshot. */
int ingest_define_snapshot(struct ingest *ing, const struct snapshot *s, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/* ---- ingest_counters.c ---- */

int ingest_store_counters(struct ingest *ing, struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
