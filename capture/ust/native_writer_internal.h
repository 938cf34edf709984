/* SPDX-License-Identifier: MIT */
/* What the files of the native back-end share: the state of a thread and of the process. */
#ifndef SLABTAPE_CAPTURE_UST_NATIVE_WRITER_INTERNAL_H
#define SLABTAPE_CAPTURE_UST_NATIVE_WRITER_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#else
#include <sched.h>
#endif

#include "capture/ust/native_ring.h"

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Sync: own thread. */
struct writer_thread {
	struct ring_event *next;
	struct ring_slot *slot;
	struct ring_slot *fork_slot;
	uint64_t pos; /* as slot->pos, always even */
	uint64_t last_clock;
	uint32_t left; /* free places in the chunk */
	int exit_rounds;
};
extern __thread struct writer_thread thread __attribute__((tls_model("initial-exec")));

struct writer_process {
	struct ring_header *ring; /* NULL: nothing is recorded */
	/*
	 * 1 while this process may write; a page that the kernel wipes in every child that gets
	 * its own memory, so that no child writes into its parent's slot, however it was made.
	 */
	uint32_t *alive;
	uint64_t modules_seen; /* the dynamic linker's count of loaded libraries */
	pthread_key_t exit_key;
	int32_t pid;
	bool foreign; /* in another pid namespace than the recorder */
	bool closed;  /* stopped, or given up */
	bool tsc;
};
extern struct writer_process writer;

static inline uint64_t clock_now(uint32_t *ret_cpu)
{
#if defined(__x86_64__)
	unsigned int aux;
	uint64_t tsc = __rdtscp(&aux);

	*ret_cpu = aux & 0xfff;
	if (UNLIKELY(!writer.tsc && writer.ring))
		return ring_monotonic_ns();
	return tsc;
#else
	int cpu = sched_getcpu();

	*ret_cpu = cpu < 0 ? 0 : (uint32_t)cpu;
	return ring_monotonic_ns();
#endif
}

/* Publish one record; thread.left is not 0.  Release pairs with the recorder's load of pos. */
static inline void put(uint64_t address, uint64_t size, uint64_t ip, enum ring_kind kind,
		       uint64_t forced_clock)
{
	struct ring_event *e = thread.next++;
	struct ring_slot *slot = thread.slot;
	uint32_t cpu;

	atomic_store_explicit(&slot->pos, thread.pos | 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	e->clock = clock_now(&cpu);
	if (forced_clock)
		e->clock = forced_clock;
	e->address = address;
	e->size = size;
	e->where = ring_where(ip, cpu, kind);
	thread.last_clock = e->clock;
	thread.pos += 2;
	thread.left--;
	atomic_store_explicit(&slot->pos, thread.pos, memory_order_release);
}

/* Make thread.left > 0.  @counts: an event is lost when that fails. */
bool writer_make_room(bool counts);
bool writer_attach(void);
void writer_thread_exit(void *unused);
struct ring_slot *writer_claim(enum ring_slot_state state);
void writer_count_lost(struct ring_slot *slot);
/* Who this process is: at its start and in a child. */
void writer_identify(void);
/* Write what was kept before @clock, when the recording began; nothing is kept any more. */
void writer_close_early(uint32_t *ret_used, uint64_t *ret_clock);
void writer_flush_early(uint32_t used, uint64_t clock);

/* ---- native_process.c ---- */

void writer_control(uint64_t address, uint64_t size, enum ring_kind kind, uint64_t clock);

#endif
