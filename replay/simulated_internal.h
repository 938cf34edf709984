/* SPDX-License-Identifier: MIT */
/*
 * State of the simulated engine: simulated.c runs it, simulated_state.c makes, warms, reports and
 * frees it.  Caches, counters and result are those of the ordered engine (struct ordered), on the
 * simulated build of the variant.
 */
#ifndef SLABTAPE_REPLAY_SIMULATED_INTERNAL_H
#define SLABTAPE_REPLAY_SIMULATED_INTERNAL_H

#include "replay/ordered_internal.h"
#include "replay/sim_core.h"
#include "replay/sim_costs.h"
#include "replay/sim_hooks.h"
#include "replay/sim_streams.h"

#define SIMULATED_BULK_MAX 4096u /* rows of one bulk call */

struct simulated_rcu_entry {
	struct alloc_cache *cache;
	void *obj;
	uint64_t due_ps;
};
struct simulated_rcu {
	struct simulated_rcu_entry *entries;
	uint64_t head, nr, capacity;
};

/* A prefilled sheaf and whose turn it is. */
struct simulated_sheaf {
	struct alloc_sheaf *sheaf;
	uint32_t turn, waiting;
};

struct simulated {
	struct ordered o;
	struct sim *sim;
	struct replay_costs costs;
	struct sim_streams streams;
	enum replay_pace pace;
	bool serial, attached;
	uint32_t cpus;		      /* streams.cpus x scale */
	void **objects;		      /* [scale][streams.objects] */
	struct simulated_sheaf *sheaves; /* [scale][streams.sheaves] */
	uint32_t *waits_sheaf;	      /* [cpus] index into sheaves + 1 while waiting for its turn */
	uint32_t *waits_for;	      /* [cpus] that turn */
	struct simulated_rcu *rcu;    /* [cpus] */
	void ***bulk;		      /* [cpus][SIMULATED_BULK_MAX] */
	uint64_t *next_tick_ps;	      /* [cpus] */
	uint64_t dependency_ps, think_ps;
	/* serial pace only */
	uint16_t *cpu_of_seq; /* [turns]; UINT16_MAX: no operation */
	bool *waits_turn;     /* [cpus] */
	uint32_t turn_seq, turns;
};

int simulated_init(struct simulated *m, struct replay_plan *p, struct tape_err *reterr)
	TAPE_MUST_CHECK;
void simulated_fini(struct simulated *m);
/* Virtual time, waits and locks into @r->sim. */
int simulated_result(struct simulated *m, struct replay_result *r, struct tape_err *reterr)
	TAPE_MUST_CHECK;

#endif
