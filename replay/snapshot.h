/* SPDX-License-Identifier: MIT */
/* Counters of one cache at one moment, as an engine reads them. */
#ifndef SLABTAPE_REPLAY_SNAPSHOT_H
#define SLABTAPE_REPLAY_SNAPSHOT_H

#include "replay/engine.h"

struct replay_snapshot {
	struct replay_counter *counters; /* the variant's order */
	size_t nr, capacity;
	uint32_t cpus;
	uint64_t free_class[ALLOC_FREE_CLASSES];
	uint64_t *refill_hist;
	uint32_t refill_entries;
};

/* Read everything @c counts.  @s is initialised here; -ENOMEM leaves it empty. */
int replay_snapshot_take(struct replay_snapshot *s, const struct alloc_cache *c,
			 const struct alloc_variant *v, uint32_t cpus) TAPE_MUST_CHECK;
void replay_snapshot_fini(struct replay_snapshot *s);
/* @s minus @base, which is of the same cache or empty (then nothing is subtracted). */
void replay_snapshot_subtract(struct replay_snapshot *s, const struct replay_snapshot *base);

/*
 * Sums over all CPUs into @sums, in the variant's order.  @names holds the @nr names found by
 * earlier calls and takes new ones, up to @capacity.  Returns how many there are now.
 */
size_t replay_counter_sums(const struct alloc_cache *c, const struct alloc_variant *v,
			   int64_t *sums, char (*names)[40], size_t nr, size_t capacity);
#define REPLAY_COUNTERS_MAX 2048u

#endif
