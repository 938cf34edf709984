/* SPDX-License-Identifier: MIT */
/* Processes of recorded programs: address spaces, their code, their threads (heap.h). */
#include "capture/heap_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "store/tape.h"

static int no_memory(struct tape_err *reterr)
{
	return tape_err_set(reterr, -ENOMEM, "out of memory");
}

static struct heap_image *image_new(struct heap *h)
{
	struct heap_image *image = calloc(1, sizeof(*image));

	if (image) {
		image->next = h->images;
		h->images = image;
	}
	return image;
}

/* A new address space for @pid.  @parent NULL: with an image of its own. */
static struct heap_space *space_new(struct heap *h, int32_t pid, const struct heap_space *parent)
{
	struct heap_space *s = calloc(1, sizeof(*s));
	uint64_t *at;
	bool is_new;

	if (!s)
		return NULL;
	s->next = h->spaces;
	h->spaces = s;
	s->id = h->next_space++;
	s->pid = pid;
	s->parent = parent;
	s->fork_seq = h->next_seq;
	s->start_ts = h->last_ts;
	s->image = parent ? parent->image : image_new(h);
	at = map64_at(&h->by_pid, (uint64_t)(uint32_t)pid, &is_new);
	if (!at || !s->image)
		return NULL;
	*at = (uintptr_t)s;
	return s;
}

struct heap_space *heap_space_of(struct heap *h, int32_t pid)
{
	uint64_t *at = map64_find(&h->by_pid, (uint64_t)(uint32_t)pid);
	struct heap_space *s;

	if (at && *at)
		return (struct heap_space *)(uintptr_t)*at;
	s = space_new(h, pid, NULL);
	if (s)
		s->start_unseen = true;
	return s;
}

static int append_process(struct heap *h, uint64_t ts, uint16_t cpu, uint8_t op, int32_t tid,
			  int64_t arg, struct tape_err *reterr)
{
	struct tape_event row = tape_event_blank();
	uint64_t seq;
	int rc;

	row.ts = row.ts_lo = row.ts_hi = heap_ts(h, ts);
	row.op = op;
	row.cpu = cpu;
	row.tid = tid;
	row.arg = arg;
	rc = tape_writer_append(h->t, &row, &seq, reterr);
	if (rc >= 0)
		h->next_seq = seq + 1;
	return rc;
}

int heap_exec(struct heap *h, uint64_t ts, uint16_t cpu, int32_t pid, struct heap_space **ret_space,
	      struct tape_err *reterr)
{
	*ret_space = space_new(h, pid, NULL);
	h->stats.execs++;
	return *ret_space ? append_process(h, ts, cpu, TAPE_OP_EXEC, pid, 0, reterr)
			  : no_memory(reterr);
}

uint64_t heap_fork_begin(struct heap *h, int32_t pid)
{
	struct heap_space *parent = heap_space_of(h, pid);

	if (parent)
		parent->forked = true; /* from now on its frees are remembered */
	return h->next_seq;
}

int heap_fork(struct heap *h, uint64_t ts, uint16_t cpu, int32_t parent_pid, int32_t pid,
	      uint64_t as_of, struct heap_space **ret_space, struct tape_err *reterr)
{
	struct heap_space *parent = heap_space_of(h, parent_pid);

	if (parent)
		parent->forked = true;
	*ret_space = parent ? space_new(h, pid, parent) : NULL;
	if (*ret_space && as_of != HEAP_NOW)
		(*ret_space)->fork_seq = as_of;
	h->stats.forks++;
	return *ret_space ? append_process(h, ts, cpu, TAPE_OP_FORK, parent_pid, pid, reterr)
			  : no_memory(reterr);
}

int heap_exit(struct heap *h, uint64_t ts, uint16_t cpu, int32_t pid, struct tape_err *reterr)
{
	uint64_t *at = map64_find(&h->by_pid, (uint64_t)(uint32_t)pid);

	if (!at || !*at)
		return 0;
	*at = 0;
	h->stats.exits++;
	if (ts < h->last_ts) /* noticed later than it happened */
		ts = h->last_ts;
	return append_process(h, ts, cpu, TAPE_OP_EXIT, pid, 0, reterr);
}

int heap_module(struct heap *h, struct heap_space *s, uint64_t base, uint64_t bytes,
		const char *path, struct tape_err *reterr)
{
	return heap_sites_map(&h->sites, s->image, base, bytes, path, reterr);
}

int heap_thread(struct heap *h, int32_t tid, int32_t pid, const char *comm, struct tape_err *reterr)
{
	return tape_define_thread(h->t, tid, pid, comm, reterr);
}
