/* SPDX-License-Identifier: MIT */
/*
 * From the malloc calls of recorded processes to the rows of a tape.
 *
 * The counterpart of ingest.h for user space: several address spaces that fork, exec and exit.
 * Rules (a) and (b) of ingest.h hold per address space (nothing is older than a space that was
 * seen to begin); a correct recording needs none of them outside declared loss
 * (heap_stats.violations counts where they were needed).  An object that came by fork and is freed
 * in the child gives a free row with TAPE_F_INHERITED and the parent's object id: the parent's
 * object lives on.  Objects alive at exec or exit stay live.
 *
 * malloc has no caches: rows carry the kmalloc class that would serve the request, so that a
 * tape of a program can be replayed on the kernel's allocators; larger requests are
 * TAPE_F_BIG without a cache.
 *
 * Memory: 80 bytes a live object, 48 a distinct address freed in processes that fork, a few
 * hundred bytes a program start.
 */
#ifndef SLABTAPE_CAPTURE_HEAP_H
#define SLABTAPE_CAPTURE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct tape;
struct heap;
struct heap_space; /* one address space; lives as long as its heap */

struct heap_event {
	uint64_t ts; /* ns since the tape's start; raised and counted when it goes back */
	uint64_t address, size, ip;
	int32_t tid;
	uint16_t cpu;
	bool zeroed; /* calloc */
};

struct heap_stats {
	uint64_t allocs, frees; /* recorded calls, not inferred ones */
	uint64_t inferred_allocs, inferred_frees, orphan_frees, inherited_frees;
	uint64_t violations; /* inferred or orphan outside declared loss */
	uint64_t lost, lost_unknown; /* events; losses of an unknown number */
	uint64_t forks, execs, exits;
	uint64_t late; /* events whose time was raised */
};

/* @t: a fresh tape, borrowed; the caller defines its cpu rows.  Defines the caches. */
int heap_create(struct tape *t, struct heap **ret_heap, struct tape_err *reterr) TAPE_MUST_CHECK;
void heap_destroy(struct heap *h); /* NULL is accepted */

/* A program begins in @pid: what was in its address space is gone. */
int heap_exec(struct heap *h, uint64_t ts, uint16_t cpu, int32_t pid, struct heap_space **ret_space,
	      struct tape_err *reterr) TAPE_MUST_CHECK;
/*
 * @pid begins as a copy of @parent_pid's address space: as it is now (HEAP_NOW), or as it was when
 * heap_fork_begin() gave the value @as_of.
 */
int heap_fork(struct heap *h, uint64_t ts, uint16_t cpu, int32_t parent_pid, int32_t pid,
	      uint64_t as_of, struct heap_space **ret_space,
	      struct tape_err *reterr) TAPE_MUST_CHECK;
#define HEAP_NOW UINT64_MAX
/* @pid is about to fork: a value for heap_fork(). */
uint64_t heap_fork_begin(struct heap *h, int32_t pid);
int heap_exit(struct heap *h, uint64_t ts, uint16_t cpu, int32_t pid,
	      struct tape_err *reterr) TAPE_MUST_CHECK;
/* The present address space of @pid; one whose start was not seen is made.  NULL: no memory. */
struct heap_space *heap_space_of(struct heap *h, int32_t pid);

int heap_alloc(struct heap *h, struct heap_space *s, const struct heap_event *ev,
	       struct tape_err *reterr) TAPE_MUST_CHECK;
int heap_free(struct heap *h, struct heap_space *s, const struct heap_event *ev,
	      struct tape_err *reterr) TAPE_MUST_CHECK;

/* Start fetching what an event of @address in @s will need. */
void heap_prefetch(const struct heap *h, const struct heap_space *s, uint64_t address);

/*
 * Events are being lost since @ts; the matching heap_loss() comes when their number is known.
 * UINT64_MAX: none are.
 */
void heap_loss_open(struct heap *h, uint64_t ts);
int heap_loss(struct heap *h, int32_t cpu, uint64_t ts_begin, uint64_t ts_end, uint64_t events,
	      const char *reason, struct tape_err *reterr) TAPE_MUST_CHECK;

/* Code of @path is mapped with load bias @base up to @base + @bytes. */
int heap_module(struct heap *h, struct heap_space *s, uint64_t base, uint64_t bytes,
		const char *path, struct tape_err *reterr) TAPE_MUST_CHECK;
int heap_thread(struct heap *h, int32_t tid, int32_t pid, const char *comm,
		struct tape_err *reterr) TAPE_MUST_CHECK;

/* Cache coverage, meta keys; the tape itself is finished by the caller. */
int heap_finish(struct heap *h, struct tape_err *reterr) TAPE_MUST_CHECK;

const struct heap_stats *heap_stats(const struct heap *h); /* borrowed */

#endif
