/* SPDX-License-Identifier: MIT */
/*
 * Simulation core: virtual CPUs in virtual time, exact FIFO locks, cache lines with a place.
 *
 * Each virtual CPU runs ordinary code on a fiber and has a clock of its own.  Local work only
 * moves that clock.  Before every access to something shared the code calls sim_yield(): it
 * returns when no other runnable CPU has a smaller (time, cpu).  So accesses happen in order of
 * virtual time, ties by CPU number, and one run is the same on every machine.
 *
 *	lock held by A          B asks at t=90        A releases at t=130
 *	|------ A ------|       |...... waits ......|-- hand-over --|------ B ------|
 *
 * Times are integers in picoseconds, so that no rounding depends on the compiler.
 * One struct sim runs on one host thread.
 */
#ifndef SLABTAPE_REPLAY_SIM_CORE_H
#define SLABTAPE_REPLAY_SIM_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "replay/sim_lines.h"

#define SIM_PS_PER_NS 1000ull
#define SIM_NEVER UINT64_MAX

/* What moving a cache line or a lock between CPUs costs, by distance. */
struct sim_costs {
	uint64_t line_local_ps;	     /* the line is already this CPU's */
	uint64_t line_same_node_ps;  /* another CPU of the node wrote it last */
	uint64_t line_other_node_ps; /* a CPU of another node wrote it last */
	uint64_t atomic_ps;	     /* a locked instruction on a line that is here */
	uint64_t handover_same_node_ps;	 /* a waiting CPU gets the lock from its holder */
	uint64_t handover_other_node_ps;
};


struct sim;
struct sim_lock;
struct fiber;

/* Statistics of one lock; times in ps. */
struct sim_lock_stats {
	uint64_t acquisitions, contended, try_failed;
	uint64_t wait_ps, hold_ps, max_wait_ps;
	uint32_t max_queue;
	uint64_t handover_same_node, handover_other_node;
};

/* @cpu_node: @cpus entries, borrowed while the sim lives.  NULL when out of memory. */
struct sim *sim_create(uint32_t cpus, const uint16_t *cpu_node, const struct sim_costs *costs);
void sim_destroy(struct sim *s); /* locks too; NULL is accepted */

/* Virtual CPU @cpu runs @fn(@arg, @cpu) from time @start_ps on.  0 or -ENOMEM. */
int sim_spawn(struct sim *s, uint32_t cpu, uint64_t start_ps, void (*fn)(void *arg, uint32_t cpu),
	      void *arg) TAPE_MUST_CHECK;

/*
 * Run until every virtual CPU has returned or paused.  -TAPE_E_INVARIANT when the rest wait for one
 * another (a deadlock; @reterr names the first CPU).
 */
int sim_run(struct sim *s, struct tape_err *reterr) TAPE_MUST_CHECK;

/* Time of the last CPU to finish. */
uint64_t sim_end_ps(const struct sim *s);

/* Between two sim_run(): the moment when the last CPU paused or finished. */
uint64_t sim_meet_ps(const struct sim *s);
/* All that paused go on from that moment, at the next sim_run(). */
void sim_resume(struct sim *s);

/*
 * What the inline functions below read; nobody else does.
 *
 * A CPU's place in the order is one number, its key: (time - epoch) << 12 | CPU.  Keys of times
 * that are further from the epoch than 75 minutes all lie at the end of the range; the scheduler
 * moves the epoch before it compares two of them.
 */
struct sim_vcpu {
	uint64_t now_ps;
	struct fiber *fiber;
	struct sim *sim;
	void (*fn)(void *arg, uint32_t cpu);
	void *arg;
	uint32_t cpu, state;
	uint32_t next_waiter; /* in a lock's queue; UINT32_MAX at its end */
	uint64_t accesses;    /* the variant's, of anything shared: tells whether it left the fast path */
} __attribute__((aligned(64)));

struct sim {
	uint64_t *keys; /* winner tree, see sim_core.c; keys[1]: best CPU that could run instead */
	uint64_t epoch_ps;
	struct sim_vcpu *vcpus;
	uint32_t running, cpus, leaves, unfinished, paused;
	struct sim_costs costs;
	const uint16_t *cpu_node;
	struct sim_lines lines;
	struct sim_lock *locks;
	struct fiber *host;
	uint64_t end_ps;
};

#define SIM_KEY_CPU_BITS 12u
#define SIM_KEY_TIME_MAX ((1ull << (64 - SIM_KEY_CPU_BITS)) - 2)

static inline uint64_t sim_key(const struct sim *s, uint32_t cpu)
{
	uint64_t since_ps = s->vcpus[cpu].now_ps - s->epoch_ps;

	return (since_ps < SIM_KEY_TIME_MAX ? since_ps : SIM_KEY_TIME_MAX) << SIM_KEY_CPU_BITS | cpu;
}

/* Stop @cpu, which has the key @key, until it is the first again. */
void sim_let_others(struct sim *s, uint32_t cpu, uint64_t key);

/* The virtual CPU that runs now. */
static inline uint32_t sim_running(const struct sim *s)
{
	return s->running;
}

/* ---- called on the fiber of virtual CPU @cpu ---- */

static inline uint64_t sim_now_ps(const struct sim *s, uint32_t cpu)
{
	return s->vcpus[cpu].now_ps;
}

/* Local work: moves this CPU's clock, lets nobody in. */
static inline void sim_work(struct sim *s, uint32_t cpu, uint64_t ps)
{
	s->vcpus[cpu].now_ps += ps;
}

/* Sleep until @until_ps (no effect when that is past). */
static inline void sim_sleep_until(struct sim *s, uint32_t cpu, uint64_t until_ps)
{
	if (s->vcpus[cpu].now_ps < until_ps)
		s->vcpus[cpu].now_ps = until_ps;
}

/* Let every CPU with a smaller (time, cpu) go first. */
static inline void sim_yield(struct sim *s, uint32_t cpu)
{
	uint64_t key = sim_key(s, cpu);

	if (__builtin_expect(key > s->keys[1], 0))
		sim_let_others(s, cpu, key);
}

/*
 * Access a cache line that no other CPU can touch at this moment (a new object's): charges the
 * cost of having it here.  A write makes the line this CPU's.
 */
static inline void sim_line_private(struct sim *s, uint32_t cpu, const void *address, bool write)
{
	uint16_t *owner = sim_lines_owner(&s->lines, address);

	if (*owner == SIM_NOBODY || *owner == cpu + 1)
		s->vcpus[cpu].now_ps += s->costs.line_local_ps;
	else if (s->cpu_node[*owner - 1] == s->cpu_node[cpu])
		s->vcpus[cpu].now_ps += s->costs.line_same_node_ps;
	else
		s->vcpus[cpu].now_ps += s->costs.line_other_node_ps;
	if (write)
		*owner = (uint16_t)(cpu + 1);
}

/* Access any cache line: yields first. */
static inline void sim_line(struct sim *s, uint32_t cpu, const void *address, bool write)
{
	sim_yield(s, cpu);
	sim_line_private(s, cpu, address, write);
}

/* Stop until another CPU calls sim_wake(); returns the time waited. */
uint64_t sim_block(struct sim *s, uint32_t cpu);
/* Stop until sim_resume(). */
void sim_pause(struct sim *s, uint32_t cpu);
/* @sleeper, which is in sim_block(), continues at max(its time, @at_ps). */
void sim_wake(struct sim *s, uint32_t sleeper, uint64_t at_ps);

/* ---- locks; any number, created when first needed ---- */

/*
 * Owned by the sim; NULL: out of memory.  @address: where it stands, so that taking it brings the
 * fields beside it here too; NULL: in a line of its own.
 */
struct sim_lock *sim_lock_create(struct sim *s, const void *address);
/* Returns the time waited. */
uint64_t sim_lock_acquire(struct sim *s, uint32_t cpu, struct sim_lock *l);
bool sim_lock_try(struct sim *s, uint32_t cpu, struct sim_lock *l);
void sim_lock_release(struct sim *s, uint32_t cpu, struct sim_lock *l);
void sim_lock_clear(struct sim_lock *l); /* its statistics; nobody holds it */
const struct sim_lock_stats *sim_lock_stats(const struct sim_lock *l);

#endif
