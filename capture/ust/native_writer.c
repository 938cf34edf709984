/* SPDX-License-Identifier: MIT */
/*
 * The native back-end: events into the ring file of the recorder (native_ring.h).
 *
 * Allocations before emit_ready() are kept in a static buffer and written first.  What finds no
 * room there, or no chunk later, is counted where the recorder can see it.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/ust/early.h"
#include "capture/ust/emit.h"
#include "capture/ust/native_writer_internal.h"

#define WAIT_STEP_NS 200000
#define WAIT_DEAD_STEPS 15000 /* 3 s without a sign of the recorder: it is gone */
#define EXIT_ROUNDS 3	      /* let the other thread-exit destructors go first */

__thread struct writer_thread thread;

static uint32_t not_ready;
struct writer_process writer = {.alive = &not_ready};

static void slot_give_up(void)
{
	if (thread.slot)
		atomic_store_explicit(&thread.slot->state, RING_SLOT_LEFT, memory_order_release);
	thread.slot = NULL;
	thread.left = 0;
}

void writer_thread_exit(void *unused)
{
	(void)unused;
	if (thread.exit_rounds++ < EXIT_ROUNDS)
		pthread_setspecific(writer.exit_key, &thread);
	else
		slot_give_up();
}

static void raise_high(uint32_t high)
{
	_Atomic uint32_t *at = &writer.ring->slots_high;
	uint32_t had = atomic_load_explicit(at, memory_order_relaxed);

	while (had < high && !atomic_compare_exchange_weak_explicit(
				     at, &had, high, memory_order_release, memory_order_relaxed))
		;
}

/* Who this process is: at its start and in a child. */
void writer_identify(void)
{
	struct stat st;

	writer.pid = getpid();
	writer.foreign = !stat("/proc/self/ns/pid", &st) &&
			 (uint64_t)st.st_ino != writer.ring->pid_namespace;
}

/* Claim a free slot in @state.  Acquire pairs with the recorder's release of the slot. */
struct ring_slot *writer_claim(enum ring_slot_state state)
{
	struct ring_slot *slots = ring_slots(writer.ring);
	uint32_t cpu;

	for (uint32_t i = 0; i < RING_SLOTS_MAX; i++) {
		struct ring_slot *s = &slots[i];
		uint32_t expected = RING_SLOT_FREE;

		if (atomic_load_explicit(&s->state, memory_order_relaxed) != RING_SLOT_FREE)
			continue;
		/* FORKING first: the recorder then looks at floor_clock alone. */
		if (!atomic_compare_exchange_strong_explicit(
			    &s->state, &expected, RING_SLOT_FORKING, memory_order_acquire,
			    memory_order_relaxed))
			continue;
		s->pid = writer.pid;
		s->tid = (int32_t)syscall(SYS_gettid);
		s->foreign = writer.foreign;
		s->floor_clock = clock_now(&cpu);
		atomic_store_explicit(&s->pos, 0, memory_order_relaxed);
		raise_high(i + 1);
		if (state != RING_SLOT_FORKING)
			atomic_store_explicit(&s->state, state, memory_order_release);
		return s;
	}
	return NULL;
}

bool writer_attach(void)
{
	/* A vfork child is not the thread whose memory it writes to: it may not claim for it. */
	if (getpid() != writer.pid)
		return false;
	thread.slot = writer_claim(RING_SLOT_LIVE);
	thread.pos = 0;
	thread.left = 0;
	if (!thread.slot)
		return false;
	pthread_setspecific(writer.exit_key, &thread);
	return true;
}

/* A free chunk; waits for one when the recorder asked for that and is alive. */
static uint32_t chunk_take(void)
{
	struct ring_header *h = writer.ring;
	const struct timespec step = {.tv_nsec = WAIT_STEP_NS};
	uint64_t beat = atomic_load_explicit(&h->beat, memory_order_relaxed);
	uint32_t chunk = ring_pop(h);

	for (int still = 0; chunk == UINT32_MAX && h->full == RING_FULL_WAIT; still++) {
		uint64_t now = atomic_load_explicit(&h->beat, memory_order_relaxed);

		if (now != beat)
			still = 0;
		beat = now;
		if (still > WAIT_DEAD_STEPS ||
		    atomic_load_explicit(&h->stopped, memory_order_relaxed))
			break;
		nanosleep(&step, NULL);
		chunk = ring_pop(h);
	}
	return chunk;
}

void writer_count_lost(struct ring_slot *slot)
{
	uint32_t cpu;
	uint64_t now = clock_now(&cpu);

	if (!slot) {
		atomic_fetch_add_explicit(&writer.ring->lost, 1, memory_order_relaxed);
		return;
	}
	/* lost_begin first: the recorder opens its window of loss by it. */
	if (!atomic_load_explicit(&slot->lost_begin, memory_order_relaxed))
		atomic_store_explicit(&slot->lost_begin, now, memory_order_release);
	atomic_store_explicit(&slot->lost_end, now, memory_order_relaxed);
	atomic_fetch_add_explicit(&slot->lost, 1, memory_order_release);
}

/* The first record of a chunk after a gap says how large the gap was. */
static void put_loss(void)
{
	struct ring_slot *s = thread.slot;
	uint64_t lost = atomic_load_explicit(&s->lost, memory_order_relaxed);

	if (!lost)
		return;
	put(lost, atomic_load_explicit(&s->lost_begin, memory_order_relaxed), 0, RING_LOSS, 0);
	atomic_store_explicit(&s->lost, 0, memory_order_relaxed);
	atomic_store_explicit(&s->lost_begin, 0, memory_order_release);
}

static bool chunk_attach(void)
{
	struct ring_header *h = writer.ring;
	uint32_t chunk = chunk_take();
	struct ring_chunk *c;

	if (chunk == UINT32_MAX)
		return false;
	c = &ring_chunks(h)[chunk];
	c->first = thread.pos / 2;
	thread.slot->chunk = chunk + 1;
	/* Release: the recorder that sees the owner sees `first`. */
	atomic_store_explicit(&c->owner, (uint32_t)(thread.slot - ring_slots(h)) + 1,
			      memory_order_release);
	thread.next = ring_events(h, chunk);
	thread.left = ring_chunk_events(h);
	put_loss();
	return true;
}

/* This is a child that came without fork() (a bare clone): its memory is its own since then. */
static void adopt_child(void)
{
	thread.slot = NULL;
	thread.left = 0;
	*writer.alive = 1;
	writer_identify();
	writer_control((uint64_t)writer.pid, (uint64_t)getppid(), RING_FORK, thread.last_clock);
}

/* Make thread.left > 0.  @counts: an event is lost when that fails. */
bool writer_make_room(bool counts)
{
	int saved = errno;
	bool room = false;

	if (!writer.closed && atomic_load_explicit(&writer.ring->stopped, memory_order_relaxed))
		writer.closed = true;
	if (!*writer.alive)
		adopt_child();
	room = thread.left ||
	       (!writer.closed && (thread.slot || writer_attach()) && chunk_attach());
	if (!room && counts && !writer.closed)
		writer_count_lost(thread.slot);
	errno = saved;
	return room;
}

void emit_event(enum ring_kind kind, const void *address, size_t size, const void *ip)
{
	uint32_t cpu;

	if (UNLIKELY(!thread.left || !*writer.alive)) {
		if (!writer.ring) {
			if (writer.alive == &not_ready) {
				uint64_t clock = clock_now(&cpu);

				early_keep(kind, address, size, ip, clock, cpu);
			}
			return;
		}
		if (!writer_make_room(true))
			return;
	}
	put((uintptr_t)address, size, (uintptr_t)ip, kind, 0);
}

void emit_inner(const void *address, const void *ip)
{
	(void)address;
	(void)ip;
}

bool emit_is_own(const void *ip)
{
	(void)ip;
	return false;
}

void writer_close_early(uint32_t *ret_used, uint64_t *ret_clock)
{
	uint32_t cpu;
	const struct ring_event *first;

	*ret_used = early_close();
	first = *ret_used && writer.tsc ? early_at(0) : NULL;
	*ret_clock = first ? first->clock : clock_now(&cpu);
}

void writer_flush_early(uint32_t used, uint64_t clock)
{
	for (uint32_t i = 0; i < used; i++) {
		const struct ring_event *e = early_at(i);

		if (!e)
			writer_count_lost(thread.slot);
		else if (thread.left || writer_make_room(true))
			put(e->address, e->size, e->where & RING_IP_MASK, e->where >> 60,
			    writer.tsc ? e->clock : clock);
	}
	early_release();
}
