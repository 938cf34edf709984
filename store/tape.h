/* SPDX-License-Identifier: MIT */
/*
 * The tape: one recording in one SQLite file (docs/tape-format.md).
 *
 * Writing:  tape_create -> tape_define_* / tape_writer_append ... -> tape_writer_finish.
 *           What is on disk at any moment is a valid tape whose events are a prefix of the whole
 *           and whose meta.complete is 0 until finish.
 * Reading:  tape_open -> tape_reader_open -> tape_reader_next until 0.
 * Runs:     tape_run_begin -> tape_run_counter ... -> tape_run_end, on an open tape: one transaction,
 *           its pages stay in memory until the end, so that readers wait for the commit only.
 *
 * One struct tape may be used by one thread at a time; several may be open on one file.
 */
#ifndef SLABTAPE_STORE_TAPE_H
#define SLABTAPE_STORE_TAPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "traces/batch.h"

#define TAPE_APPLICATION_ID 0x534C5450 /* "SLTP" */
#define TAPE_SCHEMA_VERSION 1

struct tape;
struct tape_reader;
struct sqlite3;

enum tape_open_mode { TAPE_READ, TAPE_READ_WRITE };

/*
 * Create @path (must not exist unless @overwrite; NULL: a private temporary tape that vanishes
 * with its last handle).  Writes the schema.  Ownership of *ret_tape passes to the caller.
 * An old tape is replaced when the new one is finished; until then the new one is "PATH.PID-new".
 */
int tape_create(const char *path, bool overwrite, struct tape **ret_tape,
		struct tape_err *reterr) TAPE_MUST_CHECK;

/*
 * Open an existing tape.  Checks application id, version and the schema text of the contract
 * names: -TAPE_E_FORMAT, -TAPE_E_VERSION, -TAPE_E_TRUNCATED with the file's name.
 */
int tape_open(const char *path, enum tape_open_mode mode, struct tape **ret_tape,
	      struct tape_err *reterr) TAPE_MUST_CHECK;

/* True when @path starts like a tape (SQLite file with our application id). */
bool tape_is_tape(const char *path);

/* Close and free; an unfinished writer leaves a valid prefix.  NULL is accepted. */
void tape_close(struct tape *t);
/* Close a tape that is being made and delete its file; a tape it was to replace stays. */
void tape_discard(struct tape *t);
static inline void tape_closep_tape(struct tape **t)
{
	tape_close(*t);
}

const char *tape_path(const struct tape *t); /* borrowed; "" for a temporary tape */
/* The file that is being written: tape_path(), or the one beside it while an old tape stands there. */
const char *tape_file(const struct tape *t);
struct sqlite3 *tape_db(struct tape *t);     /* borrowed; for SQL front ends in store/ and cli/ */

/* ---- small tables; on a tape being written and on one open for writing ---- */

/* Set or replace one meta row.  Keys: docs/tape-format.md. */
int tape_meta_set(struct tape *t, const char *key, const char *value, struct tape_err *reterr)
	TAPE_MUST_CHECK;
int tape_meta_set_int(struct tape *t, const char *key, int64_t value, struct tape_err *reterr)
	TAPE_MUST_CHECK;
/* *ret_value: malloc'ed text, NULL when the key is absent (still success). */
int tape_meta_get(struct tape *t, const char *key, char **ret_value, struct tape_err *reterr)
	TAPE_MUST_CHECK;
int64_t tape_meta_get_int(struct tape *t, const char *key, int64_t fallback);

struct tape_cache {
	uint16_t id; /* from 0; 0 is reserved for "unknown" in imported recordings */
	char name[64];
	uint64_t object_size; /* bytes; 0 unknown */
	uint64_t align;	      /* bytes; 0 default */
	uint64_t flags;	      /* enum tape_cache_flag */
	double coverage;      /* traced / (traced + inferred); 1 when nothing was inferred */
};
enum tape_cache_flag { TAPE_CACHE_HWALIGN = 1, TAPE_CACHE_RCU = 2, TAPE_CACHE_CTOR = 4,
	TAPE_CACHE_KMALLOC = 8 };

int tape_define_cpu(struct tape *t, uint16_t cpu, int16_t node, struct tape_err *reterr)
	TAPE_MUST_CHECK;
/* Insert or replace by id. */
int tape_define_cache(struct tape *t, const struct tape_cache *c, struct tape_err *reterr)
	TAPE_MUST_CHECK;
int tape_define_knob(struct tape *t, uint16_t cache, const char *knob, const char *value,
		     struct tape_err *reterr) TAPE_MUST_CHECK;
int tape_define_site(struct tape *t, uint32_t site, uint64_t address, const char *symbol,
		     const char *module, uint64_t offset, struct tape_err *reterr) TAPE_MUST_CHECK;
int tape_define_thread(struct tape *t, int32_t tid, int32_t pid, const char *comm,
		       struct tape_err *reterr) TAPE_MUST_CHECK;
/* @cpu -1: not tied to a CPU.  @events 0: number unknown. */
int tape_define_loss(struct tape *t, int32_t cpu, uint64_t ts_begin, uint64_t ts_end,
		     uint64_t events, const char *reason, struct tape_err *reterr) TAPE_MUST_CHECK;

struct tape_machine {
	uint32_t cpus;	/* highest CPU id + 1 */
	uint32_t nodes; /* highest node id + 1 */
	uint16_t cpu_node[TAPE_CPU_MAX];
};
int tape_machine_get(struct tape *t, struct tape_machine *ret_machine, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/* All caches, ascending id.  *ret_caches: malloc'ed array, the caller frees it. */
int tape_caches_get(struct tape *t, struct tape_cache **ret_caches, size_t *ret_nr,
		    struct tape_err *reterr) TAPE_MUST_CHECK;
/* Value of a knob as recorded; NULL text when not recorded.  malloc'ed. */
int tape_knob_get(struct tape *t, uint16_t cache, const char *knob, char **ret_value,
		  struct tape_err *reterr) TAPE_MUST_CHECK;

struct tape_marker {
	uint64_t seq, ts;
	uint16_t cpu;
	char *name; /* full text */
};
/* All markers in seq order; one malloc'ed block, freed with free(). */
int tape_markers_get(struct tape *t, struct tape_marker **ret_markers, size_t *ret_nr,
		     struct tape_err *reterr) TAPE_MUST_CHECK;

/* ---- writing events (a tape from tape_create) ---- */

/*
 * Append one event.  @ev->ts must not be smaller than the previous event's (-TAPE_E_FORMAT).
 * The object, slot and cache are the importer's; on a free the writer completes nothing.
 * Batches of 64 Ki become chunks; a few pending batches stay in memory so that late cache names
 * reach them cheaply.  *ret_seq (may be NULL): the event's number.
 */
int tape_writer_append(struct tape *t, const struct tape_event *ev, uint64_t *ret_seq,
		       struct tape_err *reterr) TAPE_MUST_CHECK;

/* A marker event and its row; @text is kept whole. */
int tape_writer_marker(struct tape *t, uint64_t ts, uint16_t cpu, const char *text,
		       struct tape_err *reterr) TAPE_MUST_CHECK;

/*
 * The cache of an object that was allocated with TAPE_CACHE_UNKNOWN is now known: event
 * @alloc_seq (and object @object's row) get cache @cache.  Cheap while the event is pending;
 * otherwise remembered and applied to the written chunks in bulk.  @unnamed: keep
 * TAPE_F_UNNAMED set (a guess), else clear it.
 */
int tape_writer_resolve(struct tape *t, uint64_t alloc_seq, uint64_t object, uint16_t cache,
			bool unnamed, struct tape_err *reterr) TAPE_MUST_CHECK;

/* Write what is pending as a short chunk (live sources: at least once a second) and commit. */
int tape_writer_flush(struct tape *t, struct tape_err *reterr) TAPE_MUST_CHECK;

/*
 * Flush, apply what tape_writer_resolve remembered, write object chunks, chunk_stat and meta
 * (events, objects, peak_live, ...), set meta.complete = 1, sync.
 */
int tape_writer_finish(struct tape *t, struct tape_err *reterr) TAPE_MUST_CHECK;

/* ---- reading events ---- */

struct tape_range {
	uint64_t seq_begin, seq_end; /* half open; 0, UINT64_MAX for all */
	uint64_t ts_begin, ts_end;   /* half open; 0, UINT64_MAX for all */
};
#define TAPE_RANGE_ALL ((struct tape_range){ 0, UINT64_MAX, 0, UINT64_MAX })

/*
 * Read the events of @range, columns @columns (bit mask of 1u << TAPE_COL_*), in seq order.
 * Whole chunks are skipped by their seq and ts ranges; rows outside @range inside a chunk are
 * cut off by seq; ts is then a prefix/suffix too, since ts never decreases.
 */
int tape_reader_open(struct tape *t, const struct tape_range *range, uint32_t columns,
		     struct tape_reader **ret_reader, struct tape_err *reterr) TAPE_MUST_CHECK;
/* 1: *ret_batch is the next batch, borrowed until the next call; 0: end; negative: error. */
int tape_reader_next(struct tape_reader *r, const struct tape_batch **ret_batch,
		     struct tape_err *reterr) TAPE_MUST_CHECK;
void tape_reader_close(struct tape_reader *r); /* NULL is accepted */

/* Seq ranges of the chunks with orphan frees, ascending.  *ret_ranges: malloc'ed array. */
int tape_orphan_ranges_get(struct tape *t, struct tape_range **ret_ranges, size_t *ret_nr,
			   struct tape_err *reterr) TAPE_MUST_CHECK;

/* Counts of a tape as `info` prints them. */
struct tape_totals {
	uint64_t events, objects, lost, chunks, bytes, bytes_raw;
	uint64_t lost_unknown; /* losses of which nobody knows how many events they took */
	uint64_t ops[TAPE_OP_MAX];
	uint64_t inferred_allocs, inferred_frees, orphan_frees, null_frees, failed_allocs;
	uint64_t peak_live;
	uint64_t ts_min, ts_max;
	bool complete;
};
int tape_totals_get(struct tape *t, struct tape_totals *ret_totals, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/*
 * Check the whole tape: schema, chunk sequence without gaps, every column decodes, times and
 * lifetimes (an object is freed once, after its alloc; slots never shared), object rows equal to
 * the events, chunk_stat equal to the events, meta counts.  0 when all holds; on a tape with
 * complete = 0 it says in *ret_note (malloc'ed, may be NULL) what is missing and still returns 0.
 */
int tape_verify(struct tape *t, char **ret_note, struct tape_err *reterr) TAPE_MUST_CHECK;

/* ---- a part of a tape ---- */

struct tape_cut {
	struct tape_range range;
	int32_t cpu;   /* only this CPU's events; -1 all */
	int32_t cache; /* only this cache's events, and those that name none; -1 all */
};
#define TAPE_CUT_ALL ((struct tape_cut){ .range = { 0, UINT64_MAX, 0, UINT64_MAX }, .cpu = -1, .cache = -1 })

/*
 * Copy the events of @from that @cut names into the new tape @path (as tape_create), finished.
 * Times stay; objects and slots are numbered anew; the free of an object whose alloc is not in
 * the cut becomes an orphan (TAPE_F_ORPHAN).  Markers of the range are kept whatever the CPU and
 * cache; so are losses that touch it and the small tables.  meta says source and range.
 */
int tape_cut(struct tape *from, const struct tape_cut *cut, const char *path, bool overwrite,
	     struct tape_err *reterr) TAPE_MUST_CHECK;

/* ---- runs (results of replays, and a kernel's own counters) ---- */

struct tape_run {
	int64_t id; /* filled by tape_run_begin */
	const char *variant, *mode, *args;
	uint32_t cpus, nodes;
	const uint16_t *cpu_node; /* @cpus entries */
	uint64_t seed;
	const char *started; /* ISO 8601 UTC */
};
int tape_run_begin(struct tape *t, struct tape_run *run, struct tape_err *reterr) TAPE_MUST_CHECK;
int tape_run_knob(struct tape *t, int64_t run, const char *cache, const char *knob,
		  const char *value, struct tape_err *reterr) TAPE_MUST_CHECK;
/* @cpu -1: the sum.  @name: sysfs spelling. */
int tape_run_counter(struct tape *t, int64_t run, uint16_t cache, int32_t cpu, const char *name,
		     int64_t value, struct tape_err *reterr) TAPE_MUST_CHECK;
/* @class: "partial->partial", "full->partial", "partial->empty", "full->empty". */
int tape_run_free_class(struct tape *t, int64_t run, uint16_t cache, const char *class_name,
			uint64_t count, struct tape_err *reterr) TAPE_MUST_CHECK;
/* Rows of a run (transitions, refills, slabs): store/run_buffer.h. */
/* SQL spelling; NULL when @state or @source is out of range. */
const char *tape_slab_state_name(int64_t state);
const char *tape_refill_source_name(int64_t source);

struct tape_lock {
	const char *lock, *path; /* SQL spelling */
	uint16_t cache, node;	 /* cache TAPE_NO_CACHE (SQL: -1): the page allocator's */
	uint64_t acquisitions, contended, try_failed, wait_ns, hold_ns, max_wait_ns, max_queue;
	uint64_t handover_same_node, handover_remote;
};
int tape_run_lock(struct tape *t, int64_t run, const struct tape_lock *l, struct tape_err *reterr)
	TAPE_MUST_CHECK;

struct tape_sample {
	uint64_t ts, vts;
	uint16_t cache, node;
	uint64_t slabs, partial, cpu_partial_slabs, objects_inuse, objects_total, cached_objs;
	uint64_t full_sheaves, empty_sheaves;
};
int tape_run_sample(struct tape *t, int64_t run, const struct tape_sample *s,
		    struct tape_err *reterr) TAPE_MUST_CHECK;

int tape_run_end(struct tape *t, int64_t run, uint64_t elapsed_ns, uint64_t ops,
		 int64_t truncated_seq, struct tape_err *reterr) TAPE_MUST_CHECK;

/*
 * The snapshot of a kernel's slab state (run 'kernel:...', mode @mode: "before" or "after"): fn(ctx,
 * cache, name, value) for each sum, caches ascending; parts of node K are named "FILE.NK".  Numbers
 * that were 0 are not kept.  *ret_rows: how many came; 0: the tape has no such snapshot.
 */
typedef void (*tape_state_fn)(void *ctx, uint16_t cache, const char *name, int64_t value);
int tape_state_read(struct tape *t, const char *mode, tape_state_fn fn, void *ctx,
		    uint64_t *ret_rows, struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
