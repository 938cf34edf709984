/* SPDX-License-Identifier: MIT */
/* Threads and chunks of the shared memory: who is there, how far, up to when (native_ring.h). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/native_internal.h"

#define REAP_INTERVAL_NS 50000000u

static int no_memory(struct tape_err *reterr)
{
	return tape_err_set(reterr, -ENOMEM, "out of memory");
}

/*
 * A thread that began again under the same ids (exec): the older one writes no more.  A program
 * that is started and starts another at once has both slots found in one scan, in any order: the
 * time of the claim decides.
 */
static void supersede(struct native *n, struct native_stream *fresh)
{
	const struct ring_slot *slots = ring_slots(n->ring);
	uint32_t high = atomic_load_explicit(&n->ring->slots_high, memory_order_acquire);

	for (uint32_t i = 0; i < high; i++) {
		struct native_stream *s = &n->streams[i];

		if (s == fresh || !s->open || s->pid != fresh->pid || s->tid != fresh->tid)
			continue;
		if (slots[s->slot].floor_clock < slots[fresh->slot].floor_clock)
			s->dead = true;
		else
			fresh->dead = true;
	}
}

static int open_stream(struct native *n, struct heap *h, uint32_t slot, struct tape_err *reterr)
{
	const struct ring_slot *from = &ring_slots(n->ring)[slot];
	struct native_stream *s = &n->streams[slot];
	struct native_chunk *chunks = s->chunks;
	uint32_t capacity = s->chunks_capacity;
	char *text = s->text, path[64], comm[32] = "";
	size_t text_capacity = s->text_capacity;
	int rc = 0;

	memset(s, 0, sizeof(*s));
	s->chunks = chunks;
	s->chunks_capacity = capacity;
	s->text = text;
	s->text_capacity = text_capacity;
	s->open = true;
	s->slot = slot;
	s->pid = from->pid;
	s->tid = from->tid;
	if (!from->foreign)
		supersede(n, s);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", s->pid, s->tid);
	{
		TAPE_CLEANUP(tape_fclosep) FILE *f = fopen(path, "re");

		if (f && fgets(comm, sizeof(comm), f))
			comm[strcspn(comm, "\n")] = '\0';
	}
	if (*comm)
		rc = heap_thread(h, s->tid, s->pid, comm, reterr);
	return rc;
}

static int add_chunk(struct native_stream *s, uint32_t index, uint64_t first,
		     struct tape_err *reterr)
{
	uint32_t at = s->chunks_nr;

	if (s->chunks_nr == s->chunks_capacity) {
		uint32_t capacity = s->chunks_capacity ? s->chunks_capacity * 2 : 4;
		struct native_chunk *grown = realloc(s->chunks, capacity * sizeof(*grown));

		if (!grown)
			return no_memory(reterr);
		s->chunks = grown;
		s->chunks_capacity = capacity;
	}
	for (; at && s->chunks[at - 1].first > first; at--)
		s->chunks[at] = s->chunks[at - 1];
	s->chunks[at] = (struct native_chunk){first, index};
	s->chunks_nr++;
	return 0;
}

/* After the slots: every event counted there lies in a chunk whose owner is visible by then. */
static int scan_chunks(struct native *n, struct tape_err *reterr)
{
	struct ring_chunk *chunks = ring_chunks(n->ring);
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < n->chunks_nr; i++) {
		uint32_t owner;

		if (n->chunk_seen[i])
			continue;
		/* Acquire pairs with chunk_attach() of the writer: `first` is set. */
		owner = atomic_load_explicit(&chunks[i].owner, memory_order_acquire);
		/* A slot that came after the look at the slots waits for the next round. */
		if (!owner || owner > RING_SLOTS_MAX || !n->streams[owner - 1].open)
			continue;
		n->chunk_seen[i] = 1;
		rc = add_chunk(&n->streams[owner - 1], i, chunks[i].first, reterr);
	}
	return rc;
}

/* True while @s is stuck at the same place for too long to wait for it. */
static bool stalled(struct native_stream *s, uint64_t pos, uint64_t now_ns)
{
	if (!s->stall_ns || s->stall_pos != pos) {
		s->stall_pos = pos;
		s->stall_ns = now_ns;
	}
	return now_ns - s->stall_ns > NATIVE_STALL_NS;
}

static void bound(struct native *n, uint64_t clock)
{
	if (clock < n->limit)
		n->limit = clock;
}

static void look_at_loss(struct native *n, struct native_stream *s, struct ring_slot *slot)
{
	/* Acquire pairs with writer_count_lost() and with the clearing in put_loss(). */
	uint64_t begin = atomic_load_explicit(&slot->lost_begin, memory_order_acquire);

	s->in_loss = begin != 0;
	if (begin && begin < n->loss_open)
		n->loss_open = begin;
}

/* How far @slot is and from when on it may still write. */
static void look_at(struct native *n, struct native_stream *s, struct ring_slot *slot,
		    uint64_t now_ns)
{
	uint64_t pos;

	/*
	 * Loss before pos: put_loss() writes its record and then clears lost_begin.  In the other
	 * order both could be missed, the record because it came after pos was read.
	 */
	look_at_loss(n, s, slot);
	/* Acquire pairs with the release in put(): the events below pos are complete. */
	pos = atomic_load_explicit(&slot->pos, memory_order_acquire);
	s->available = pos / 2;
	/* A new slot has nothing before its first event but is about to write it. */
	s->busy = pos & 1 || (!pos && !s->dead && !s->in_loss);
	if (!s->busy)
		s->stall_ns = 0;
	else if (stalled(s, pos, now_ns))
		s->busy = false;
}

/*
 * Records of loss that are available but not handed over yet: other threads' events come before
 * them in the merge and may need that explanation.  A record of loss begins its chunk.
 */
static void look_at_unread_loss(struct native *n, const struct native_stream *s)
{
	for (uint32_t i = 0; i < s->chunks_nr; i++) {
		const struct native_chunk *c = &s->chunks[i];
		const struct ring_event *e = ring_events(n->ring, c->index);

		if (c->first < s->read || c->first >= s->available)
			continue;
		if (e->where >> 60 == RING_LOSS && e->size < n->loss_open)
			n->loss_open = e->size;
	}
}

/* Clock of the last event of @s that may be read. */
static uint64_t last_clock_of(struct native *n, const struct native_stream *s)
{
	const struct native_chunk *c = s->chunks;
	uint64_t floor = ring_slots(n->ring)[s->slot].floor_clock;

	if (s->available == s->read)
		return s->last_clock > floor ? s->last_clock : floor;
	for (uint32_t i = 1; i < s->chunks_nr && s->chunks[i].first < s->available; i++)
		c = &s->chunks[i];
	return ring_events(n->ring, c->index)[s->available - 1 - c->first].clock;
}

/* Threads inside an event: it cannot be older than their last one. */
static void bound_busy(struct native *n, uint32_t high)
{
	for (uint32_t i = 0; i < high; i++)
		if (n->streams[i].open && n->streams[i].busy)
			bound(n, last_clock_of(n, &n->streams[i]));
}

static int look_at_slot(struct native *n, struct heap *h, uint32_t i, uint64_t now_ns,
			struct tape_err *reterr)
{
	struct ring_slot *slot = &ring_slots(n->ring)[i];
	struct native_stream *s = &n->streams[i];
	uint32_t state = atomic_load_explicit(&slot->state, memory_order_acquire);
	int rc = 0;

	if (state == RING_SLOT_FREE)
		return 0;
	if (state == RING_SLOT_FORKING) {
		if (!stalled(s, slot->floor_clock, now_ns)) {
			bound(n, slot->floor_clock);
		} else if (atomic_compare_exchange_strong_explicit(
				   &slot->state, &state, RING_SLOT_FREE, memory_order_release,
				   memory_order_relaxed)) {
			s->stall_ns = 0; /* the fork failed, or its child is gone */
		}
		return 0;
	}
	if (!s->open)
		rc = open_stream(n, h, i, reterr);
	if (state == RING_SLOT_LEFT)
		s->dead = true;
	look_at(n, s, slot, now_ns);
	return rc;
}

int native_scan(struct native *n, struct heap *h, struct tape_err *reterr)
{
	uint64_t now_ns = ring_monotonic_ns();
	uint64_t lag;
	uint32_t high;
	int rc = 0;

	/* Before the slots are looked at: what they write later is later than this. */
	n->limit = native_clock_now(n->ring);
	n->loss_open = UINT64_MAX;
	high = atomic_load_explicit(&n->ring->slots_high, memory_order_acquire);
	for (uint32_t i = 0; rc >= 0 && i < high; i++)
		rc = look_at_slot(n, h, i, now_ns, reterr);
	if (rc >= 0)
		rc = scan_chunks(n, reterr);
	for (uint32_t i = 0; rc >= 0 && i < high; i++)
		if (n->streams[i].open)
			look_at_unread_loss(n, &n->streams[i]);
	if (rc >= 0)
		bound_busy(n, high);
	lag = (uint64_t)(((native_u128)RING_LAG_NS << 32) / n->clock.mult);
	n->limit = n->last ? UINT64_MAX : n->limit > lag ? n->limit - lag : 0;
	heap_loss_open(h, n->loss_open == UINT64_MAX ? UINT64_MAX
						     : native_ns(&n->clock, n->loss_open));
	return rc;
}

/* ---- giving back ---- */

static void chunk_free(struct native *n, uint32_t index)
{
	n->chunk_seen[index] = 0;
	atomic_store_explicit(&ring_chunks(n->ring)[index].owner, 0, memory_order_relaxed);
	ring_push(n->ring, index);
}

void native_chunk_done(struct native *n, struct native_stream *s)
{
	uint32_t index = s->chunks[0].index;

	s->chunks_nr--;
	memmove(s->chunks, s->chunks + 1, s->chunks_nr * sizeof(*s->chunks));
	chunk_free(n, index);
	native_grow(n);
}

static bool thread_gone(const struct native_stream *s, const struct ring_slot *slot)
{
	return !slot->foreign && syscall(SYS_tgkill, s->pid, s->tid, 0) && errno == ESRCH;
}

static bool last_of_process(const struct native *n, const struct native_stream *s)
{
	uint32_t high = atomic_load_explicit(&n->ring->slots_high, memory_order_relaxed);

	for (uint32_t i = 0; i < high; i++)
		if (&n->streams[i] != s && n->streams[i].open && n->streams[i].pid == s->pid)
			return false;
	return true;
}

/* Everything of @s is read: its loss, its chunk and its slot. */
static int close_stream(struct native *n, struct heap *h, struct native_stream *s,
			struct tape_err *reterr)
{
	struct ring_slot *slot = &ring_slots(n->ring)[s->slot];
	uint64_t lost = atomic_load_explicit(&slot->lost, memory_order_acquire);
	uint64_t begin = atomic_load_explicit(&slot->lost_begin, memory_order_relaxed);
	uint64_t end = atomic_load_explicit(&slot->lost_end, memory_order_relaxed);
	bool process_ended = last_of_process(n, s);
	int rc = 0;

	if (lost)
		rc = heap_loss(h, s->cpu, native_ns(&n->clock, begin), native_ns(&n->clock, end),
			       lost, "buffers full", reterr);
	while (s->chunks_nr)
		native_chunk_done(n, s);
	if (rc >= 0 && process_ended && s->space && (n->last || kill(s->pid, 0)))
		rc = heap_exit(h, native_ns(&n->clock, s->last_clock), s->cpu, s->pid, reterr);
	s->open = false;
	atomic_store_explicit(&slot->lost, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->lost_begin, 0, memory_order_relaxed);
	/* Release: the next owner finds the loss words cleared. */
	atomic_store_explicit(&slot->state, RING_SLOT_FREE, memory_order_release);
	return rc;
}

int native_reap(struct native *n, struct heap *h, struct tape_err *reterr)
{
	uint32_t high = atomic_load_explicit(&n->ring->slots_high, memory_order_acquire);
	uint64_t now_ns = ring_monotonic_ns();
	bool look = n->last || now_ns >= n->next_reap_ns;
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < high; i++) {
		struct native_stream *s = &n->streams[i];
		struct ring_slot *slot = &ring_slots(n->ring)[i];
		uint64_t pos;

		if (!s->open)
			continue;
		if (look && !s->dead)
			s->dead = n->last || thread_gone(s, slot);
		/* Read after the thread was found gone: nothing can come behind it. */
		pos = atomic_load_explicit(&slot->pos, memory_order_acquire);
		if (s->dead && (n->last || pos / 2 == s->read))
			rc = close_stream(n, h, s, reterr);
	}
	if (look)
		n->next_reap_ns = now_ns + REAP_INTERVAL_NS;
	if (rc >= 0 && n->last) {
		uint64_t lost = atomic_load_explicit(&n->ring->lost, memory_order_relaxed);

		if (lost)
			rc = heap_loss(h, -1, 0, native_ns(&n->clock, native_clock_now(n->ring)),
				       lost, "more threads than slots", reterr);
	}
	return rc;
}
