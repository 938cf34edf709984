/* SPDX-License-Identifier: MIT */
/* The recorder's state, shared by recorder.c, recorder_samples.c and recorder_pins.c. */
#ifndef SLABTAPE_REPLAY_RECORDER_INTERNAL_H
#define SLABTAPE_REPLAY_RECORDER_INTERNAL_H

#include "replay/recorder.h"
#include "store/run_buffer.h"

struct recorder_lock {
	uint64_t acquisitions, contended, try_failed, wait_ns, max_wait_ns;
};

struct recorder_cache {
	const struct alloc_cache *cache;
	uint16_t id;
	uint32_t *number; /* [numbers] birth number in the run + 1 by the slab's own id; 0: none */
	uint32_t numbers;
	uint8_t *sampled; /* [nodes] 1: had something at a sample, so that going to 0 is seen */
	struct recorder_lock *locks; /* [nodes][ALLOC_LOCK_MAX][ALLOC_PATH_MAX] */
};

/* A slab's life; index = birth number. */
struct recorder_slab {
	uint64_t born_seq, born_ts, died_seq, died_ts; /* died_seq UINT64_MAX: alive */
	uint32_t objects;
	uint16_t cache, node;
	uint8_t order, state;
};

struct recorder_pin {
	uint64_t alloc_seq;
	uint32_t slab, inuse, objects;
	uint16_t cache, node;
};

/* Samples of one moment: rows [first, next point's first). */
struct recorder_point {
	size_t first;
	uint64_t at_ns; /* vts of simulated runs, else ts */
};

struct replay_recorder {
	const struct replay_plan *plan;
	replay_moment_fn now;
	void *ctx;
	uint32_t kinds, nodes;
	uint16_t cpu_node[ALLOC_CPU_MAX];
	uint64_t limit;
	int rc; /* first error of a callback */

	struct recorder_cache *caches; /* in order of creation */
	size_t nr_caches, caches_room;
	uint32_t *by_cache; /* open addressing by the cache's address: index + 1 */
	uint32_t by_mask;

	struct tape_run_buffer *rows;
	uint64_t transitions, refills, last_seq;
	int64_t truncated_seq;
	struct recorder_slab *slabs;
	size_t nr_slabs, slabs_room;

	struct tape_sample *samples;
	size_t nr_samples, samples_room;
	struct recorder_point points[RECORDER_POINTS_MAX];
	uint32_t nr_points;
	uint64_t interval_ns, due_ns;

	struct tape_lock *locks; /* the engine's own; NULL: those of the caches */
	size_t nr_locks;

	struct recorder_pin *pins;
	size_t nr_pins, pins_room;
};

/* The recorder's entry of @c, NULL when it was never added. */
struct recorder_cache *recorder_find(const struct replay_recorder *r, const struct alloc_cache *c);
/* Room for one more of @bytes in @array; false: no memory (the error is kept). */
bool recorder_grow(struct replay_recorder *r, void *array, size_t nr, size_t *room, size_t bytes);
/* What became of the pins: rows of `pinned`. */
int recorder_pins_resolve(struct replay_recorder *r, uint64_t end_ts, struct tape_err *reterr)
	TAPE_MUST_CHECK;

#endif
