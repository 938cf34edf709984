/* SPDX-License-Identifier: MIT */
/*
 * The plan of a replay: what a tape and a configuration say before the first event runs.
 *
 * Machine, caches with their sizes and knobs, which caches cannot be replayed and why, the
 * counting window as event numbers.  Engines read it and never change it; they create a cache when
 * its first event comes, so that the caches a tape merely names cost nothing.
 */
#ifndef SLABTAPE_REPLAY_PLAN_H
#define SLABTAPE_REPLAY_PLAN_H

#include "replay/engine.h"
#include "store/tape.h"

#define REPLAY_KNOBS_MAX 32u
#define REPLAY_SHEAVES_MAX 1048576u   /* sheaf slots of a tape */
#define REPLAY_RCU_DELAY_NS 20000000u /* default of rcu_delay_ns */

/* Why a cache is not replayed. */
enum replay_left_out { REPLAY_IN = 0, REPLAY_OUT_UNNAMED, REPLAY_OUT_NO_SIZE };

struct replay_plan_cache {
	struct tape_cache row;
	enum replay_left_out left_out; /* REPLAY_IN: replayed */
	uint64_t from_seq;	       /* first event of the cache's counting window */
	struct alloc_knob_value knobs[REPLAY_KNOBS_MAX]; /* names: static or the tape's */
	size_t nr_knobs;
};

struct replay_plan {
	struct tape *tape;
	const struct replay_config *cfg;
	const struct alloc_variant *variant;
	enum alloc_sync_kind sync; /* the variant's build */
	struct tape_totals totals;
	bool script;		   /* made from an .ops script */
	bool knobs_chosen;	   /* a script or a generator set the tape's knobs on purpose */
	uint32_t cpus, nodes;
	uint16_t cpu_node[ALLOC_CPU_MAX];
	struct replay_plan_cache *caches;
	size_t nr_caches;
	uint32_t slots;		   /* slots that the tape's objects use */
	uint64_t rcu_delay_ns;	   /* for variants without free_rcu */
	uint64_t from_seq, to_seq; /* counting window, half open */
	uint64_t first_seq;	   /* events before it are not executed (--warm snapshot); else 0 */
};

/*
 * Read everything that has to be known first.  @sync chooses the variant's build.
 * -TAPE_E_USAGE: unknown variant, knob, value or marker; other codes come from the tape.
 * *ret_plan is freed with replay_plan_destroy(); @t and @cfg must outlive it.
 */
int replay_plan_create(struct tape *t, const struct replay_config *cfg, enum alloc_sync_kind sync,
		       struct replay_plan **ret_plan, struct tape_err *reterr) TAPE_MUST_CHECK;
void replay_plan_destroy(struct replay_plan *p); /* NULL is accepted */

/* Knobs of one cache: the tape's, then --set's that name it or every cache (knobs.c). */
int replay_plan_knobs(struct replay_plan *p, struct replay_plan_cache *c, struct tape_err *reterr)
	TAPE_MUST_CHECK;
/* Check --set against the variant and the tape: every name and value must mean something. */
int replay_check_knobs(const struct replay_plan *p, struct tape_err *reterr) TAPE_MUST_CHECK;

/* @text ("123ns" or a marker's first word) as the first event number of a window (window.c). */
int replay_window_seq(struct tape *t, const char *text, uint64_t *ret_seq, struct tape_err *reterr)
	TAPE_MUST_CHECK;
/* The next event number after @seq at which a window begins or ends; UINT64_MAX: none. */
uint64_t replay_next_window(const struct replay_plan *p, uint64_t seq);

#endif
