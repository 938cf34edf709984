/* SPDX-License-Identifier: MIT */
/*
 * Replay engines: drive a variant with a tape.
 *
 *	ordered    one thread executes every event in seq order, each as its recorded CPU
 *	parallel   streams on real threads
 *	simulated  virtual CPUs in virtual time
 *
 * replay_run() picks the engine by cfg->mode, opens the machine and the caches, warms, runs and
 * returns a result that owns everything it points to.  A replay never stops silently: an event
 * that cannot be executed is skipped and counted, or ends the run with -TAPE_E_DIVERGED (strict).
 */
#ifndef SLABTAPE_REPLAY_ENGINE_H
#define SLABTAPE_REPLAY_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "allocator/variant.h"
#include "base/error.h"

struct tape;
struct json_t;

enum replay_mode { REPLAY_ORDERED = 0, REPLAY_PARALLEL, REPLAY_SIMULATED, REPLAY_MODE_MAX };
enum replay_warm { REPLAY_WARM_ORPHANS = 0, REPLAY_WARM_ADDRESS, REPLAY_WARM_SNAPSHOT,
	REPLAY_WARM_NONE, REPLAY_WARM_MAX };
/* Where inferred events are placed inside their window. */
enum replay_infer { REPLAY_INFER_LATE = 0, REPLAY_INFER_EARLY, REPLAY_INFER_NONE, REPLAY_INFER_MAX };
/* When a virtual CPU of the simulated engine begins its next operation. */
enum replay_pace { REPLAY_PACE_TRACE = 0, /* after the recorded gap */
	REPLAY_PACE_ASAP,		  /* when the one before has ended */
	REPLAY_PACE_SERIAL,		  /* one operation at a time, in recorded order */
	REPLAY_PACE_MAX };
/* What a run stores beside its counters (design section 3); bit mask. */
enum replay_record { REPLAY_RECORD_TRANSITIONS = 1, REPLAY_RECORD_REFILLS = 2,
	REPLAY_RECORD_SAMPLES = 4, REPLAY_RECORD_LOCKS = 8, REPLAY_RECORD_ALL = 15 };

struct replay_knob {
	const char *cache; /* NULL: every cache */
	const char *knob;  /* sysfs name */
	int64_t value;
};

struct replay_from {
	uint16_t cache;
	uint64_t seq; /* first event of the cache's window */
};

struct replay_config {
	const char *variant;
	enum replay_mode mode;
	uint32_t cpus, nodes;	  /* 0: the tape's own */
	const uint16_t *cpu_node; /* NULL: the tape's own; else @cpus entries */
	uint64_t seed;
	const struct replay_knob *knobs;
	size_t nr_knobs;
	enum replay_warm warm;
	enum replay_infer infer;
	bool follow;		  /* placement by the recording to the end */
	bool strict;
	bool want_state;	  /* final and checkpoints in the result (--state) */
	const char *count_from;	  /* "123456ns" or a marker's first word; NULL: from the start */
	const char *count_to;
	/*
	 * Windows of single caches that begin before count_from, as compare --against recorded
	 * needs them (the kernel's counters were read a moment before its marker).
	 */
	const struct replay_from *from;
	size_t nr_from;
	bool agreement;		  /* count how often the slab chosen is the recorded one */
	uint32_t laps;		  /* 0 and 1: once */
	uint64_t jitter_ns;	  /* shuffle events of different CPUs closer than this */
	uint32_t record;	  /* enum replay_record */
	uint64_t record_limit;	  /* transitions (and as many refills) that are kept; 0: no limit */
	enum replay_pace pace;	  /* simulated only */
	uint32_t scale;		  /* simulated only: copies of the recording; 0 and 1: one */
	const char *costs;	  /* simulated only: file with a cost table; NULL: the built-in one */
	FILE *paths;		  /* --paths: per-operation file in the golden form; NULL: none */
	/* Called now and then with events done and in all; NULL: silent. */
	void (*progress)(void *ctx, uint64_t done, uint64_t total);
	void *progress_ctx;
};
#define REPLAY_RECORD_LIMIT 2000000u /* default of --record-limit */
#define REPLAY_CONFIG_DEFAULT ((struct replay_config){ .variant = "slub", .seed = 1 })

struct replay_counter {
	char name[40];	    /* sysfs spelling */
	int64_t sum;
	int64_t *per_cpu;   /* result->cpus entries */
};

struct replay_cache {
	uint16_t cache;	    /* id in the tape */
	char name[64];
	double coverage;
	struct alloc_geometry geo;
	struct alloc_cache_state state; /* at the end */
	struct replay_counter *counters;
	size_t nr_counters;
	uint64_t free_class[ALLOC_FREE_CLASSES];
	uint64_t *refill_hist; /* [refill_entries] */
	uint32_t refill_entries;
	int64_t min_partial, cpu_partial, cpu_partial_slabs, sheaf_capacity; /* -1: not there */
	struct json_t *initial_counters, *final, *checkpoints; /* only with want_state */
	int64_t *laps;	    /* [nr_laps][nr_counters]: what each lap counted; NULL: one lap */
	uint32_t nr_laps;
	uint64_t slabs_seen; /* slabs of which an object was handed out; only with want_state */
	uint64_t placed_same, placed_total; /* by-address agreement, where it was asked for */
	struct replay_knob_set {
		char knob[40];
		int64_t value;
	} *knobs;			    /* effective values, the variant's order */
	size_t nr_knobs;
};

/* One lock on one path, as a simulated run saw it. */
struct replay_lock {
	uint16_t cache;	       /* id in the tape; TAPE_NO_CACHE: the page allocator's */
	char cache_name[64];
	uint16_t node;
	const char *lock, *path; /* static memory: SQL spelling */
	uint64_t acquisitions, contended, try_failed;
	uint64_t wait_ns, hold_ns, max_wait_ns;
	uint64_t handover_same_node, handover_remote;
	uint32_t max_queue;    /* of the lock, over all paths */
	double share;	       /* time waited, of all CPUs' virtual time */
};

/* What only a simulated run knows. */
struct replay_sim {
	uint64_t virtual_ns;	     /* until the last CPU ended */
	uint64_t dependency_wait_ns; /* all CPUs, waiting for objects */
	uint64_t think_ns;	     /* all CPUs, recorded gaps */
	double ops_per_s;	     /* in virtual time */
	struct replay_lock *locks;
	size_t nr_locks;
	struct json_t *costs;	     /* the table used */
	enum replay_pace pace;
	uint32_t scale;
};

struct replay_result {
	const struct alloc_variant *variant;
	enum replay_mode mode;
	uint32_t cpus, nodes;
	uint16_t cpu_node[ALLOC_CPU_MAX];
	uint64_t seed;
	uint64_t ops;	     /* operations executed */
	uint64_t skipped;    /* events that could not be executed */
	uint64_t warmed;     /* objects allocated before the first event */
	uint64_t left_out;   /* events of no cache that could be replayed: unnamed, pages, no size */
	uint64_t failed;     /* allocations that returned NULL here (a later free of them is no-op) */
	bool script;	     /* the tape is an .ops script: its idle CPUs are shown */
	uint64_t elapsed_ns; /* operations only, without decoding the tape where the engine can tell */
	char started[32];    /* ISO 8601 UTC */
	struct replay_cache *caches;
	size_t nr_caches;
	struct replay_sim *sim; /* simulated runs; else NULL */
	struct replay_recorder *recorder; /* rows for the run; NULL: nothing was recorded */
};

/* Run once.  *ret_result is the caller's, freed with replay_result_destroy(). */
int replay_run(struct tape *t, const struct replay_config *cfg, struct replay_result **ret_result,
	       struct tape_err *reterr) TAPE_MUST_CHECK;
void replay_result_destroy(struct replay_result *r); /* NULL is accepted */

/* "ordered", "parallel", "simulated". */
const char *replay_mode_name(enum replay_mode mode);
/* "trace", "asap", "serial". */
const char *replay_pace_name(enum replay_pace pace);

/* The JSON object of design section 8, a new reference.  @timing false: --no-timing. */
struct json_t *replay_result_json(const struct replay_result *r, struct tape *t, bool timing);

/* Store the result as a run of @t (opened for writing); *ret_run its id. */
int replay_result_store(struct tape *t, const struct replay_result *r, const char *args,
			int64_t *ret_run, struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
