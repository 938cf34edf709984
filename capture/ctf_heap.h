/* SPDX-License-Identifier: MIT */
/* From the records of a user-space CTF recording (ctf_record.h) to the rows of a tape (heap.h). */
#ifndef SLABTAPE_CAPTURE_CTF_HEAP_H
#define SLABTAPE_CAPTURE_CTF_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/ctf_record.h"
#include "capture/heap.h"
#include "capture/map64.h"

#define CTF_HEAP_QUEUE 16u

struct ctf_heap {
	struct heap *h;	    /* borrowed */
	uint64_t origin_ns; /* the tracer's clock at the tape's start */
	bool live;	    /* the recorded processes are of this machine, and of now */
	uint64_t records;   /* events so far */
	uint64_t slab_events;
	/* Allocs and frees on their way, so that the heap's memory is fetched ahead. */
	struct ctf_heap_pending {
		struct heap_event event;
		struct heap_space *space;
		bool is_free;
	} queue[CTF_HEAP_QUEUE];
	uint32_t queue_at, queue_nr;
	/* The last event's process and thread. */
	int32_t pid, tid;
	struct heap_space *space;
	struct map64 threads; /* pid << 32 | tid: seen */
	struct map64 forks;   /* parent << 32 | serial -> heap_fork_begin() + 1 */
	struct map64 alive;   /* pid -> enum ctf_alive */
	uint64_t cpu_nodes[4096]; /* CPU -> node + 1, as events say; 0: not seen */
};

/* A zeroed @c with h, origin_ns and live set.  Frees what it holds, not @c. */
void ctf_heap_fini(struct ctf_heap *c);

/* A ctf_record_fn; @ctx: the struct ctf_heap. */
int ctf_heap_take(void *ctx, const struct ctf_record *r, struct tape_err *reterr) TAPE_MUST_CHECK;
/* What is on its way arrives. */
int ctf_heap_flush(struct ctf_heap *c, struct tape_err *reterr) TAPE_MUST_CHECK;

/*
 * Live recordings: notice processes that have ended.  Call it before a rotation is asked for, and
 * ctf_heap_bury() when that rotation's records are taken; @all: the recording ends.
 */
void ctf_heap_look(struct ctf_heap *c);
int ctf_heap_bury(struct ctf_heap *c, bool all, struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
