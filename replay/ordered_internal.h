/* SPDX-License-Identifier: MIT */
/*
 * The ordered engine's state, shared by its files:
 *
 *	ordered.c       the loop over batches, the fast operations
 *	ordered_ops.c   every other operation on objects: bulk, sheaves, rcu
 *	ordered_whole.c flush, shrink, barriers, checkpoints
 *	ordered_state.c machine, caches, snapshots, the result
 *	warm.c          objects from before the recording
 *	warm_snapshot.c slabs as a kernel's snapshot counted them
 *	place.c         pages of the recording <-> slabs of the variant
 *	paths.c         the per-operation file
 *	ordered_record.c  what the recorder is told (--record)
 *
 * One thread.  Slots hold the live objects; NULL: nobody, REPLAY_FAILED: the allocation returned
 * NULL here, so that its free is a no-op.
 */
#ifndef SLABTAPE_REPLAY_ORDERED_INTERNAL_H
#define SLABTAPE_REPLAY_ORDERED_INTERNAL_H

#include "allocator/hooks.h"
#include "replay/snapshot.h"
#include "replay/numbering.h"
#include "replay/plan.h"
#include "replay/recorder.h"

#define REPLAY_FAILED ((void *)(uintptr_t)1)
#define REPLAY_TICK_NS 4000000u	    /* timer work is looked at this often (HZ = 250) */

struct json_t;
struct replay_paths;
struct replay_place;

/* Objects that wait for a grace period; freed as one bulk call on the CPU that queued them. */
struct ordered_rcu {
	void **objs;
	uint32_t nr, capacity;
	uint64_t due_ts; /* of the oldest object */
};

struct ordered_cache {
	const struct replay_plan_cache *plan;
	struct alloc_cache *cache;
	size_t index;			 /* in ordered.caches */
	uint32_t order, size;		 /* of its slabs and objects */
	uint32_t per_slab;		 /* objects of a slab of the preferred order */
	struct replay_snapshot initial, begin, end;
	struct replay_snapshot *laps; /* [nr_laps], counters since the creation */
	uint32_t nr_laps;
	bool begun, ended;
	struct replay_numbering numbers; /* only when slabs are numbered */
	struct ordered_rcu *rcu;	 /* [cpus], NULL until used */
	struct json_t *checkpoints;
	uint64_t placed_same, placed_total;
};

/* One bulk call whose rows are being gathered; rows may straddle batches. */
struct ordered_bulk {
	struct replay_moment at; /* the call's first row; only with a recorder */
	uint32_t id, nr, capacity;
	uint16_t cpu, cache, gfp;
	uint8_t op;
	uint32_t *slots;
	void **objs;
};

struct ordered {
	const struct replay_plan *plan;
	const struct alloc_variant *v;
	struct alloc_machine *machine;
	struct alloc_observer observer;	       /* only when slabs are numbered or rows recorded */
	struct alloc_cache **cache_of;	       /* [65536] by tape id; NULL: not created */
	struct ordered_cache **run_of;	       /* [65536] */
	struct ordered_cache **caches;	       /* in order of creation */
	size_t nr_caches, caches_capacity;
	void **slot;			       /* [nr_slots] */
	uint16_t *slot_cache;		       /* [nr_slots] tape id of the object's cache */
	uint64_t *slot_seq;		       /* [nr_slots] event that filled it; only with a recorder */
	uint32_t nr_slots;
	struct alloc_sheaf **sheaf;	       /* [nr_sheaves] */
	uint32_t nr_sheaves;
	struct ordered_bulk bulk;
	void **orphan;			       /* warmed objects in the order of their frees */
	uint64_t nr_orphans, next_orphan, orphan_capacity;
	uint64_t next_tick_ts, next_rcu_ts, next_sample_ts; /* UINT64_MAX: none */
	bool hooked;			       /* paths, placement or numbering: the slow loop */
	bool numbered;			       /* slabs get numbers */
	bool reordered;			       /* slots of orphan frees are their numbers */
	bool stop_changed;		       /* an operation set an earlier next_rcu_ts */
	struct replay_paths *paths;
	struct replay_place *place;
	uint64_t place_until_seq;	       /* forced placement before this event */
	uint64_t ops, skipped, warmed, left_out, failed, elapsed_ns;
	uint64_t line;			       /* operations so far, checkpoints included */
	uint64_t window_seq;		       /* where ordered_window() was last */
	uint32_t laps;
	uint64_t last_ts, ts_offset;	       /* tape time of the last event; of the laps before */
	struct replay_recorder *recorder;      /* NULL: --record none */
	const struct tape_batch *at_batch;     /* what is executed: row at_row of it; NULL: `at` */
	const uint64_t *at_seqs;	       /* event numbers of its rows; NULL: consecutive */
	uint32_t at_row;
	struct replay_moment at;
	struct tape_err *reterr;
};

/* ---- ordered_state.c ---- */
int ordered_init(struct ordered *o, const struct replay_plan *p, struct tape_err *reterr)
	TAPE_MUST_CHECK;
void ordered_fini(struct ordered *o);
/* The cache of tape id @id, created when this is its first event; *ret_run NULL: left out. */
int ordered_cache_get(struct ordered *o, uint16_t id, struct ordered_cache **ret_run) TAPE_MUST_CHECK;
/* Room for slot @slot. */
int ordered_slots_grow(struct ordered *o, uint32_t slot) TAPE_MUST_CHECK;
/* Begin and end the counting windows that begin or end at event @seq. */
int ordered_window(struct ordered *o, uint64_t seq) TAPE_MUST_CHECK;
/* Keep the counters of every cache as they are at the end of a lap. */
int ordered_lap_end(struct ordered *o) TAPE_MUST_CHECK;
int ordered_result(struct ordered *o, struct replay_result **ret_result) TAPE_MUST_CHECK;

/* ---- ordered_ops.c ---- */
/* The node that row @i asks for; one that this machine does not have: no wish. */
static inline int32_t ordered_node(const struct ordered *o, const struct tape_batch *b, uint32_t i)
{
	const int32_t node = b->node_req[i];

	return node >= 0 && (uint32_t)node < o->plan->nodes ? node : ALLOC_NODE_ANY;
}
/* Execute row @i in full generality; *ret_next: the next row.  0 or an error. */
int ordered_step(struct ordered *o, const struct tape_batch *b, uint32_t i, uint32_t *ret_next)
	TAPE_MUST_CHECK;
/* A bulk call whose rows may go on in the next batch: run it now. */
int ordered_bulk_run(struct ordered *o) TAPE_MUST_CHECK;
/* Free what waits for grace periods and is due at @now_ns (UINT64_MAX: all), CPUs ascending. */
void ordered_rcu_run(struct ordered *o, uint64_t now_ns);
/* Timer work at @now_ns of every CPU and cache. */
void ordered_tick(struct ordered *o, uint64_t now_ns);

/* ---- ordered_record.c ---- */
int ordered_record_init(struct ordered *o) TAPE_MUST_CHECK;
/* What is being executed, all 0 without a recorder. */
struct replay_moment ordered_at(const struct ordered *o);
/* From now on no event is: the next one is @seq, tape time @ts. */
void ordered_at_none(struct ordered *o, uint64_t seq, uint64_t ts);
void ordered_sample(struct ordered *o, uint64_t ts);
/* The run is over; the recorder is complete afterwards. */
int ordered_record_finish(struct ordered *o) TAPE_MUST_CHECK;

/* ---- ordered_whole.c ---- */
struct replay_line;
/* An operation was executed: count it, and tell the per-operation file. */
void ordered_count_line(struct ordered *o, struct ordered_cache *run, const struct replay_line *l);
/* Row @i, an operation on a whole cache; without a cache it means every cache there is. */
int ordered_step_whole(struct ordered *o, const struct tape_batch *b, uint32_t i) TAPE_MUST_CHECK;

/* ---- warm.c ---- */
/* Before a lap; @first: the counting windows that begin at the start begin behind it. */
int ordered_warm(struct ordered *o, bool first) TAPE_MUST_CHECK;
/* Remember the next orphan's object (NULL: none). */
int ordered_orphan_add(struct ordered *o, void *obj) TAPE_MUST_CHECK;

/* ---- warm_snapshot.c ---- */
/* The state at event plan->first_seq, from the snapshot and from what is known to live then. */
int ordered_warm_snapshot(struct ordered *o) TAPE_MUST_CHECK;

#endif
