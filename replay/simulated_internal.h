/* SPDX-License-Identifier: MIT */
/*
 * State of the simulated engine, shared by its files:
 *
 *	simulated.c		one virtual CPU, laps and windows, the run
 *	simulated_ops.c		one operation: objects, sheaves, grace periods
 *	simulated_state.c	machine, warming, result
 *	simulated_record.c	what the recorder is told (--record)
 *
 * Caches, counters and result are those of the ordered engine (struct ordered), on the simulated
 * build of the variant.
 */
#ifndef SLABTAPE_REPLAY_SIMULATED_INTERNAL_H
#define SLABTAPE_REPLAY_SIMULATED_INTERNAL_H

#include "replay/ordered_internal.h"
#include "replay/sim_core.h"
#include "replay/sim_costs.h"
#include "replay/sim_hooks.h"
#include "replay/sim_streams.h"

#define SIMULATED_BULK_MAX 4096u /* rows of one bulk call */

/*
 * An object: NULL not allocated yet, a pointer, or one of the marks.  A CPU that waits for it has
 * its mark there.
 *
 * The allocating CPU may run ahead of the others in host order, since a new object is nobody
 * else's business: @since then says from when on the others see it.  At that time it asked for the
 * object's cache line, and it hands the object over when the line is there.
 */
#define OBJECT_FAILED ((void *)(uintptr_t)2) /* the allocation returned NULL */
#define OBJECT_GONE ((void *)(uintptr_t)4)
struct simulated_object {
	void *obj;
	uint64_t since; /* time in ps << 2 | enum simulated_distance; 0: seen at once */
};
enum simulated_distance { SIMULATED_LOCAL = 0, SIMULATED_SAME_NODE, SIMULATED_OTHER_NODE };

struct simulated_rcu_entry {
	struct alloc_cache *cache;
	void *obj;
	uint64_t due_ps;
};
struct simulated_rcu {
	uint64_t head, nr;
	struct simulated_rcu_entry *entries;
	uint64_t capacity;
};

/* A prefilled sheaf and whose turn it is. */
struct simulated_sheaf {
	struct alloc_sheaf *sheaf;
	uint32_t turn, waiting;
};

/* One virtual CPU.  Sync: its own fiber, but for what others look at while it waits. */
struct simulated_cpu {
	/* What every operation looks at: one cache line of the host. */
	const struct sim_op *ops; /* stream of the recorded CPU it stands for */
	uint64_t nr, next;	  /* operations there; the one to come */
	struct simulated_object *objects; /* of its copy of the recording */
	uint64_t next_tick_ps;
	struct simulated_rcu rcu;
	/* The rest. */
	void **left;			  /* of its copy: objects that outlived the last lap */
	struct simulated_sheaf *sheaves;  /* of its copy */
	void **bulk;			  /* [SIMULATED_BULK_MAX] */
	uint64_t random;		  /* state of the jitter's generator */
	struct simulated_sheaf *waits_sheaf; /* whose turn it waits for; NULL: none */
	uint32_t waits_for;		  /* that turn */
	bool waits_turn;		  /* serial pace */
} __attribute__((aligned(64)));

/* How far a CPU's gaps are summed up for the recorder. */
struct simulated_seen {
	uint64_t at, ts; /* operations before @at; tape time of the last of them, ns */
	bool timer;	 /* the CPU does timer work, no operation */
};

struct simulated {
	struct ordered o;
	struct sim *sim;
	struct replay_costs costs;
	struct sim_streams streams;
	enum replay_pace pace;
	bool serial, attached;
	bool run_ahead;		   /* nobody watches the order in which objects are handed out */
	uint32_t cpus;		   /* streams.cpus x scale */
	struct simulated_cpu *vcpus;
	struct simulated_object *objects; /* [scale][streams.objects] */
	size_t objects_bytes;
	void **left;		   /* [scale][streams.objects], with several laps only */
	struct simulated_sheaf *sheaves; /* [scale][streams.sheaves] */
	uint8_t *own_line;	   /* [65536] by cache: an object's first line is no other's */
	uint64_t jitter_ps;
	uint64_t dependency_ps, think_ps;
	/* Laps and windows: CPUs stop at operations of this number and beyond, and meet there. */
	uint64_t stop_seq;
	bool last_stop;
	uint64_t counted_from_ps, counted_ops; /* virtual time and operations before the window */
	/* Only with a recorder. */
	struct simulated_seen *seen; /* [cpus] */
	bool running;		     /* virtual CPUs run */
	uint64_t at_rest_seq, at_rest_ps;
	/* Serial pace only. */
	uint16_t *cpu_of_seq; /* [turns]; UINT16_MAX: no operation */
	uint32_t turn_seq, turns;
};

/* ---- simulated_ops.c ---- */
/* Execute @op on @cpu, which is running. */
void simulated_execute(struct simulated *m, uint32_t cpu, const struct sim_op *op);
/* Free what waits for grace periods of @cpu and is due at @now_ps (SIM_NEVER: all). */
void simulated_rcu_run(struct simulated *m, uint32_t cpu, uint64_t now_ps);
/* Memory that the operation after the next ones will need comes nearer. */
void simulated_look_ahead(const struct simulated *m, const struct simulated_cpu *v,
			  const struct sim_op *next);

/* ---- simulated_record.c ---- */
/* -ENOMEM.  Nothing to do without a recorder. */
int simulated_record_init(struct simulated *m) TAPE_MUST_CHECK;
/* The virtual CPUs stand still; the next event is @seq. */
void simulated_at_rest(struct simulated *m, uint64_t seq);
int simulated_record_finish(struct simulated *m, struct tape_err *reterr) TAPE_MUST_CHECK;

/* ---- simulated_state.c ---- */
int simulated_init(struct simulated *m, struct replay_plan *p, struct tape_err *reterr)
	TAPE_MUST_CHECK;
void simulated_fini(struct simulated *m);
/* Allocate the objects that are older than the recording.  Not while the CPUs run. */
void simulated_warm(struct simulated *m);
/* What has been counted so far is no part of the result: the caches' counters at the first lap. */
int simulated_begin_counting(struct simulated *m, struct tape_err *reterr) TAPE_MUST_CHECK;
/* Streams from the start again; objects that are still there are freed when their turn comes. */
void simulated_rewind(struct simulated *m);
/* Serial pace: the first operation's turn. */
void simulated_first_turn(struct simulated *m);
/* Virtual time, waits and locks into @r->sim. */
int simulated_result(struct simulated *m, struct replay_result *r, struct tape_err *reterr)
	TAPE_MUST_CHECK;

#endif
