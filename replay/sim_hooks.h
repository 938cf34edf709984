/* SPDX-License-Identifier: MIT */
/*
 * Between the simulated build of the variants (allocator/sync_sim.h) and the simulation core:
 * every access of a variant becomes an access in virtual time, every lock a FIFO queue with
 * statistics by path.  One engine at a time in a process.
 */
#ifndef SLABTAPE_REPLAY_SIM_HOOKS_H
#define SLABTAPE_REPLAY_SIM_HOOKS_H

#include "allocator/hooks.h"
#include "replay/sim_core.h"
#include "replay/sim_costs.h"

/* Statistics of one lock on one path; times in ps. */
struct sim_path_stats {
	uint64_t acquisitions, contended, try_failed, wait_ps, hold_ps, max_wait_ps;
	uint64_t handover_same_node, handover_remote;
};

/* One lock the variants used.  cache NULL: the page allocator's zone lock. */
struct sim_lock_record {
	struct sim_lock_record *next;
	struct sim_lock *lock;
	const struct alloc_cache *cache;
	enum alloc_lock_kind kind;
	uint16_t node;
	uint32_t last_holder;	   /* UINT32_MAX: nobody yet */
	enum alloc_lock_path path; /* of the present holder */
	uint64_t since_ps;
	struct sim_path_stats paths[ALLOC_PATH_MAX];
};

/*
 * From now on the variants' hooks act on @s with @costs (both borrowed).  @cpu_node and @nodes
 * describe the machine.  -ENOMEM.  detach frees the records.
 */
int sim_hooks_attach(struct sim *s, const struct replay_costs *costs, uint32_t cpus,
		     const uint16_t *cpu_node, uint32_t nodes) TAPE_MUST_CHECK;
void sim_hooks_detach(void);
/* While not live (the state after attach) accesses cost nothing and may come from any thread's own
 * stack: creating caches, warming, destroying. */
void sim_hooks_live(bool live);
/* Statistics of every lock start from zero.  No lock may be held. */
void sim_hooks_clear(void);
/* The lock records, in order of first use; borrowed. */
const struct sim_lock_record *sim_hooks_locks(void);

/* To be the machine's observer: a refill costs work per object it moves. */
extern const struct alloc_observer sim_hooks_observer;

#endif
