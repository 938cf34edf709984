/* SPDX-License-Identifier: MIT */
/*
 * What a run stores beside its counters: slab transitions, refills, samples, locks, and from these
 * the lives of slabs and the objects that pin nearly empty ones (design section 3).
 *
 *	create -> add every cache -> observe while the engine runs, sample when due -> pin what is
 *	live at the end -> finish -> store (any time later, the plan may be gone) -> destroy
 *
 * Rows are kept compressed in memory until the run is stored, and bounded: cfg.record_limit
 * transitions (and as many refills).  When the limit is reached the event is finished and
 * transitions and refills end there: replay_recorder_truncated().  Samples, at most
 * RECORDER_POINTS_MAX moments, and lock counts go on to the end.
 *
 * Callbacks cannot fail: the first error is kept and returned by finish.  One thread at a time: an
 * engine with threads takes a lock of its own around the calls.
 */
#ifndef SLABTAPE_REPLAY_RECORDER_H
#define SLABTAPE_REPLAY_RECORDER_H

#include "allocator/hooks.h"
#include "replay/plan.h"

#define RECORDER_POINTS_MAX 64u
#define RECORDER_NO_OP TAPE_OP_MAX /* replay_moment.op: no event did it */

struct replay_recorder;

/* What is being executed. */
struct replay_moment {
	uint64_t seq, ts, vts; /* event (without one: the next); its time; virtual ns or 0 */
	uint8_t op;	       /* enum tape_op or RECORDER_NO_OP */
};
typedef void (*replay_moment_fn)(void *ctx, struct replay_moment *ret_moment);

/*
 * A recorder of the kinds in @p's cfg->record.  @now(@ctx) tells the moment of a callback.  @p is
 * used until finish.  -ENOMEM.
 */
int replay_recorder_create(const struct replay_plan *p, replay_moment_fn now, void *ctx,
			   struct replay_recorder **ret_recorder) TAPE_MUST_CHECK;
/* Another engine's moments from now on, which calls from fibers. */
void replay_recorder_moments(struct replay_recorder *r, replay_moment_fn now, void *ctx);
void replay_recorder_destroy(struct replay_recorder *r); /* NULL is accepted */

/* @c is cache @id of the tape; at its creation, before any operation on it.  -ENOMEM. */
int replay_recorder_cache(struct replay_recorder *r, const struct alloc_cache *c, uint16_t id)
	TAPE_MUST_CHECK;

/* To be called by the machine's observer (allocator/hooks.h); kinds not asked for do nothing. */
void replay_recorder_transition(struct replay_recorder *r, const struct alloc_cache *c,
				const struct alloc_slab *s, uint32_t cpu, enum alloc_state from,
				enum alloc_state to);
void replay_recorder_refill(struct replay_recorder *r, const struct alloc_cache *c, uint32_t cpu,
			    enum alloc_refill_source source, uint32_t objs);
void replay_recorder_lock(struct replay_recorder *r, const struct alloc_cache *c, uint16_t node,
			  enum alloc_lock_kind kind, enum alloc_lock_path path, int acquired,
			  uint64_t wait_ns);
/* Lock statistics that an engine keeps itself; they replace the recorder's own. */
int replay_recorder_locks(struct replay_recorder *r, const struct replay_lock *locks, size_t nr)
	TAPE_MUST_CHECK;

/*
 * Samples: by the engine when due, between two operations; a simulated run takes them at the first
 * transition or refill after they are due, while the other CPUs stand still.  @interval_ns:
 * first distance of two; it doubles whenever there are RECORDER_POINTS_MAX.
 */
void replay_recorder_sample_every(struct replay_recorder *r, uint64_t interval_ns);
/* Time of the next sample on the axis of the first call; UINT64_MAX: none are wanted. */
uint64_t replay_recorder_sample_due(const struct replay_recorder *r);
void replay_recorder_sample(struct replay_recorder *r, uint64_t ts, uint64_t vts);

/* Whether the engine should tell what is live at the end. */
bool replay_recorder_wants_pins(const struct replay_recorder *r);
/* An object that event @alloc_seq allocated is live in @s; kept when @s is nearly empty. */
void replay_recorder_pin(struct replay_recorder *r, const struct alloc_slab *s, uint64_t alloc_seq);

/* The run is over at @end_ts.  Reads the tape for what pinned objects are. */
int replay_recorder_finish(struct replay_recorder *r, uint64_t end_ts, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/* First event whose transitions and refills were not recorded; -1: all were. */
int64_t replay_recorder_truncated(const struct replay_recorder *r);
/* Everything as rows of run @run of @t, between tape_run_begin() and tape_run_end(). */
int replay_recorder_store(struct replay_recorder *r, struct tape *t, int64_t run,
			  struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
