/* SPDX-License-Identifier: MIT */
/* What the files of the heap share. */
#ifndef SLABTAPE_CAPTURE_HEAP_INTERNAL_H
#define SLABTAPE_CAPTURE_HEAP_INTERNAL_H

#include "capture/heap.h"
#include "capture/heap_sites.h"
#include "traces/objects.h"

struct heap_space {
	uint32_t id;
	int32_t pid;
	const struct heap_space *parent; /* NULL: it began with an exec */
	uint64_t fork_seq;		 /* objects of the parent allocated before are its too */
	uint64_t start_ts;
	bool forked;		  /* has children, so its frees are remembered */
	struct heap_image *image; /* borrowed from heap.images */
	bool start_unseen;
	struct heap_space *next; /* all spaces, newest first */
};

struct heap {
	struct tape *t;
	struct tape_objects *objects;
	struct tape_objects
		*pasts; /* only its memory of frees, of spaces that take part in forks */
	struct heap_sites sites;
	struct heap_image *images;
	struct heap_space *spaces;
	struct map64 by_pid; /* pid -> struct heap_space * */
	uint32_t next_space;
	uint64_t last_ts;
	uint64_t loss_end_ts, loss_open_ts; /* open: UINT64_MAX when none is */
	bool any_loss;
	struct heap_stats stats;
	uint64_t traced, inferred; /* rows, for the coverage */
	uint64_t next_seq;
};

/* The row's time; never goes back. */
uint64_t heap_ts(struct heap *h, uint64_t ts);

#endif
