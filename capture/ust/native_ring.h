/* SPDX-License-Identifier: MIT */
/*
 * The memory that a recorded program and its recorder share (`record --native`).
 *
 * One file, mapped by the recorder and by every recorded process:
 *
 *	header | slots[slots_max] | chunk table[chunks_max] | chunks, chunk_bytes each
 *
 * A thread owns one slot and writes events into one chunk at a time.  It takes chunks from a
 * lock-free stack of free ones; only the recorder puts them back and adds more.  The events of
 * a slot are numbered 0, 1, 2, ...; `pos` holds twice their number, plus one while the thread is
 * between taking a time stamp and publishing the event.  A chunk's entry says which numbers it
 * holds.  So the recorder finds everything a thread wrote, whatever became of the thread.
 *
 * Order over threads: let T be a time at which the recorder has seen all slots.  A slot that is
 * not inside an event then (pos even) can only write events after T; one that is inside (pos odd)
 * none before its last published one.  The smallest such bound, less RING_LAG_NS for stores still
 * in a core's store buffer, is safe to write out.
 *
 * Time stamps are raw clock values (ring_clock); the recorder turns them into ns.  On x86-64 one
 * rdtscp gives time and CPU at once: it waits for earlier loads and is before later stores, so an
 * alloc stamped after malloc() returned is before every free of that object that another thread
 * stamps, and a free stamped before free() is before the next alloc of that address.
 *
 * This header is used on both sides and includes nothing of the project.
 */
#ifndef SLABTAPE_CAPTURE_UST_NATIVE_RING_H
#define SLABTAPE_CAPTURE_UST_NATIVE_RING_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#define RING_ENV "SLABTAPE_RING" /* path of the file */
#define RING_MAGIC UINT64_C(0x31474e4952534c53)
#define RING_SLOTS_MAX 4096u
#define RING_LAG_NS 1000000u

enum ring_clock { RING_CLOCK_MONOTONIC = 0, RING_CLOCK_TSC };
enum ring_full { RING_FULL_DROP = 0, RING_FULL_WAIT };

/* Kinds of one record, 4 bits. */
enum ring_kind {
	RING_MALLOC = 0, /* address, size */
	RING_CALLOC,
	RING_REALLOC, /* the alloc half */
	RING_MEMALIGN,
	RING_RESTORE, /* a realloc failed: its old object lives on; size 0 */
	RING_FREE,    /* address */
	RING_FREE_REALLOC,
	RING_LOSS,   /* address: events lost, size: clock value when that began */
	RING_EXEC,   /* a program begins in process `address` (parent: size); text: its path */
	RING_FORK,   /* process `address` begins as a copy of process `size` */
	RING_MODULE, /* code is mapped at [address, address + size); text: path */
	RING_TEXT,   /* 16 bytes of text in address and size belonging to the record before */
	RING_KIND_MAX
};

/*
 * 32 bytes.  where: code address (bits 0..47), CPU (48..59), kind (60..63).  RING_TEXT: bits 0..7
 * are the number of text bytes, bit 8 is set when more text follows.
 */
struct ring_event {
	uint64_t clock;
	uint64_t address;
	uint64_t size;
	uint64_t where;
};
#define RING_IP_MASK ((UINT64_C(1) << 48) - 1)
#define RING_TEXT_BYTES 16u
#define RING_TEXT_MORE 0x100u

static inline uint64_t ring_where(uint64_t ip, uint32_t cpu, enum ring_kind kind)
{
	return (ip & RING_IP_MASK) | (uint64_t)(cpu & 0xfff) << 48 | (uint64_t)kind << 60;
}

enum ring_slot_state {
	RING_SLOT_FREE = 0,
	RING_SLOT_FORKING, /* held by a forking parent for its child; floor_clock bounds it */
	RING_SLOT_LIVE,
	RING_SLOT_LEFT, /* its thread writes no more */
};

/*
 * One thread.  128 bytes, so that neighbours share no cache line.
 * Sync: `state` atomic (free -> taken by compare-exchange; back to free only by the recorder);
 * the rest is written by the owning thread alone, `pos` and the loss words atomically.
 */
struct ring_slot {
	_Atomic uint64_t pos;
	_Atomic uint32_t state;
	int32_t pid, tid;
	uint32_t chunk;		     /* index + 1 of the chunk being filled; 0 none */
	uint64_t floor_clock;	     /* nothing in this slot is older */
	_Atomic uint64_t lost;	     /* events dropped since the last RING_LOSS */
	_Atomic uint64_t lost_begin; /* clock of the first of them; 0: none */
	_Atomic uint64_t lost_end;
	uint32_t foreign; /* 1: in another pid namespace; pid and tid mean nothing outside */
	uint32_t pad0;
	uint64_t pad[8];
};
_Static_assert(sizeof(struct ring_slot) == 128, "two cache lines");

/* One chunk.  Sync: written by the thread that took it, then `owner` is released. */
struct ring_chunk {
	uint64_t first;		/* number of its first event in the slot */
	_Atomic uint32_t owner; /* slot + 1; 0: free */
	_Atomic uint32_t next;	/* free stack: index + 1 of the next free chunk */
};

struct ring_header {
	uint64_t magic;
	uint64_t file_bytes;
	uint32_t chunk_bytes, chunks_max;
	uint32_t clock, full;	/* enum ring_clock, enum ring_full */
	uint64_t pid_namespace; /* inode of the recorder's */
	uint32_t slots_offset, chunks_offset, data_offset;
	uint8_t pad0[64 - 52];
	/* Sync: atomics, shared by all processes. */
	_Atomic uint64_t free_head;  /* tag << 32 | index + 1 */
	_Atomic uint32_t stopped;    /* recording has ended: write no more */
	_Atomic uint32_t attached;   /* programs that came so far */
	_Atomic uint64_t beat;	     /* grows while the recorder lives */
	_Atomic uint64_t lost;	     /* events without any slot */
	_Atomic uint64_t free_nr;    /* chunks on the stack, a hint */
	_Atomic uint32_t slots_high; /* slots from here on were never used */
};

static inline struct ring_slot *ring_slots(struct ring_header *h)
{
	return (struct ring_slot *)(void *)((char *)h + h->slots_offset);
}

static inline struct ring_chunk *ring_chunks(struct ring_header *h)
{
	return (struct ring_chunk *)(void *)((char *)h + h->chunks_offset);
}

static inline struct ring_event *ring_events(struct ring_header *h, uint32_t chunk)
{
	return (struct ring_event *)(void *)((char *)h + h->data_offset +
					     (uint64_t)chunk * h->chunk_bytes);
}

static inline uint32_t ring_chunk_events(const struct ring_header *h)
{
	return h->chunk_bytes / (uint32_t)sizeof(struct ring_event);
}

/* Take a free chunk: index, or UINT32_MAX.  Lock-free; the tag in free_head defeats ABA. */
static inline uint32_t ring_pop(struct ring_header *h)
{
	uint64_t head = atomic_load_explicit(&h->free_head, memory_order_acquire);

	for (;;) {
		uint32_t top = (uint32_t)head;
		uint64_t next;

		if (!top)
			return UINT32_MAX;
		/* Relaxed: if the chunk is taken meanwhile, the tag makes the exchange fail. */
		next = atomic_load_explicit(&ring_chunks(h)[top - 1].next, memory_order_relaxed);
		next |= ((head >> 32) + 1) << 32;
		/* Acquire pairs with ring_push(): the recorder has read what the chunk held. */
		if (atomic_compare_exchange_weak_explicit(&h->free_head, &head, next,
							  memory_order_acquire,
							  memory_order_acquire)) {
			atomic_fetch_sub_explicit(&h->free_nr, 1, memory_order_relaxed);
			return top - 1;
		}
	}
}

/* Give a chunk back.  Recorder only. */
static inline void ring_push(struct ring_header *h, uint32_t chunk)
{
	uint64_t head = atomic_load_explicit(&h->free_head, memory_order_relaxed);
	uint64_t top;

	atomic_fetch_add_explicit(&h->free_nr, 1, memory_order_relaxed);
	do {
		atomic_store_explicit(&ring_chunks(h)[chunk].next, (uint32_t)head,
				      memory_order_relaxed);
		top = ((head >> 32) + 1) << 32 | (chunk + 1);
	} while (!atomic_compare_exchange_weak_explicit(
		&h->free_head, &head, top, memory_order_release, memory_order_relaxed));
}

static inline uint64_t ring_monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#endif
