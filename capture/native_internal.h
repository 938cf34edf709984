/* SPDX-License-Identifier: MIT */
/* What the files of native recording share. */
#ifndef SLABTAPE_CAPTURE_NATIVE_INTERNAL_H
#define SLABTAPE_CAPTURE_NATIVE_INTERNAL_H

#include "capture/heap.h"
#include "capture/native.h"
#include "capture/ust/native_ring.h"

#define NATIVE_CHUNK_BYTES 65536u
#define NATIVE_SPARE_CHUNKS 1024u /* 64 MiB: 2 million events until the recorder looks again */
#define NATIVE_GROW_CHUNKS 256u
#define NATIVE_STALL_NS 1000000000u /* a thread that holds up the order longer is passed over */

/* Raw clock values -> ns since the recorder started. */
struct native_clock {
	uint64_t origin;
	uint64_t mult; /* ns per tick, 32.32 fixed point */
};

__extension__ typedef unsigned __int128 native_u128;

static inline uint64_t native_ns(const struct native_clock *c, uint64_t raw)
{
	if (raw <= c->origin)
		return 0;
	return (uint64_t)((native_u128)(raw - c->origin) * c->mult >> 32);
}

/* One slot as the reader sees it. */
struct native_stream {
	bool open;
	bool dead; /* its thread is gone: what is there is all there will be */
	bool in_loss;
	bool busy; /* inside an event when last looked at */
	uint32_t slot;
	int32_t pid, tid;
	uint16_t cpu;		  /* of its last event */
	uint64_t read, available; /* events */
	uint64_t last_clock;
	uint64_t key; /* clock of event `read` while in the merge */
	uint64_t stall_pos, stall_ns;
	struct heap_space *space;
	struct native_chunk *chunks; /* unread, ascending first; [0] holds event `read` */
	uint32_t chunks_nr, chunks_capacity;
	/* A record that text belongs to. */
	struct ring_event head;
	char *text;
	size_t text_len, text_capacity;
};

struct native_chunk {
	uint64_t first;
	uint32_t index;
};

struct native {
	char *dir, *path;
	int fd;
	struct ring_header *ring;
	uint32_t chunks_nr; /* backed by memory so far */
	bool grows;
	struct native_clock clock;
	struct native_stream *streams; /* one per slot */
	uint8_t *chunk_seen;	       /* one per chunk */
	struct native_stream **order;  /* merge: a heap by key */
	uint32_t order_nr;
	uint64_t next_reap_ns, loss_open;
	uint64_t limit; /* merge up to this clock value */
	bool last;
	uint64_t events;
};

/* Raw clock now, as the recorded threads read it. */
uint64_t native_clock_now(const struct ring_header *ring);

/* Have NATIVE_SPARE_CHUNKS free, as far as the limit and the file system allow. */
void native_grow(struct native *n);

/* ---- native_slots.c: threads and chunks ---- */

/* Look at all slots and chunks; sets n->limit and every stream's `available`. */
int native_scan(struct native *n, struct heap *h, struct tape_err *reterr) TAPE_MUST_CHECK;
/* Take slots back whose threads are gone and whose events are read; tells @h of exits. */
int native_reap(struct native *n, struct heap *h, struct tape_err *reterr) TAPE_MUST_CHECK;
/* The first chunk of @s is read to its end. */
void native_chunk_done(struct native *n, struct native_stream *s);

/* ---- native_merge.c ---- */

/* Hand over the events of all streams up to n->limit. */
int native_merge(struct native *n, struct heap *h, struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
