/* SPDX-License-Identifier: MIT */
#include "capture/ctf_heap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "capture/ust/native_ring.h"

enum ctf_alive { CTF_GONE = 0, CTF_ALIVE, CTF_ENDED, CTF_ENDED_BEFORE };

static int no_memory(struct tape_err *reterr)
{
	return tape_err_set(reterr, -ENOMEM, "out of memory");
}

void ctf_heap_fini(struct ctf_heap *c)
{
	map64_fini(&c->threads);
	map64_fini(&c->forks);
	map64_fini(&c->alive);
}

static uint64_t relative(const struct ctf_heap *c, uint64_t ts)
{
	return ts > c->origin_ns ? ts - c->origin_ns : 0;
}

static uint64_t pair(int32_t pid, uint32_t other)
{
	return (uint64_t)(uint32_t)pid << 32 | other;
}

/* ---- processes and threads ---- */

static int set(struct map64 *m, uint64_t key, uint64_t value, struct tape_err *reterr)
{
	bool is_new;
	uint64_t *at = map64_at(m, key, &is_new);

	if (!at)
		return no_memory(reterr);
	*at = value;
	return 0;
}

/* The name of a thread that is still there. */
static int name_thread(struct ctf_heap *c, int32_t pid, int32_t tid, struct tape_err *reterr)
{
	char path[64], comm[32] = "";

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	{
		TAPE_CLEANUP(tape_fclosep) FILE *f = c->live ? fopen(path, "re") : NULL;

		if (f && fgets(comm, sizeof(comm), f))
			comm[strcspn(comm, "\n")] = '\0';
	}
	return *comm ? heap_thread(c->h, tid, pid, comm, reterr) : 0;
}

/* Make c->pid, c->tid and c->space those of @r. */
static int change_thread(struct ctf_heap *c, const struct ctf_record *r, struct tape_err *reterr)
{
	bool is_new = false;
	int rc = 0;

	if (r->tid && !map64_at(&c->threads, pair(r->pid, (uint32_t)r->tid), &is_new))
		return no_memory(reterr);
	if (is_new)
		rc = name_thread(c, r->pid, r->tid, reterr);
	if (rc < 0)
		return rc;
	c->pid = r->pid;
	c->tid = r->tid;
	c->space = heap_space_of(c->h, r->pid);
	return c->space ? 0 : no_memory(reterr);
}

static int begin_process(struct ctf_heap *c, const struct ctf_record *r, struct tape_err *reterr)
{
	uint64_t ts = relative(c, r->ts), key = pair(r->parent, r->serial), *mark;
	struct heap_space *space;
	const char *name;
	int rc;

	if (r->what == CTF_FORK) {
		mark = r->serial ? map64_find(&c->forks, key) : NULL;
		rc = heap_fork(c->h, ts, r->cpu, r->parent, r->pid,
			       mark && *mark ? *mark - 1 : HEAP_NOW, &space, reterr);
		if (mark)
			*mark = 0;
	} else {
		name = strrchr(r->text, '/');
		rc = heap_exec(c->h, ts, r->cpu, r->pid, &space, reterr);
		if (rc >= 0)
			rc = heap_thread(c->h, r->tid, r->pid, name ? name + 1 : r->text, reterr);
	}
	c->pid = 0; /* its space is another one now */
	return rc < 0 ? rc : set(&c->alive, (uint64_t)(uint32_t)r->pid, CTF_ALIVE, reterr);
}

/* ---- allocs and frees ---- */

static int take_pending(struct ctf_heap *c, struct tape_err *reterr)
{
	const struct ctf_heap_pending *p = &c->queue[c->queue_at];

	c->queue_at = (c->queue_at + 1) % CTF_HEAP_QUEUE;
	c->queue_nr--;
	return p->is_free ? heap_free(c->h, p->space, &p->event, reterr)
			  : heap_alloc(c->h, p->space, &p->event, reterr);
}

int ctf_heap_flush(struct ctf_heap *c, struct tape_err *reterr)
{
	int rc = 0;

	while (rc >= 0 && c->queue_nr)
		rc = take_pending(c, reterr);
	return rc;
}

static int take_object(struct ctf_heap *c, const struct ctf_record *r, struct tape_err *reterr)
{
	struct ctf_heap_pending *p;
	int rc = 0;

	if (r->pid != c->pid || r->tid != c->tid)
		rc = change_thread(c, r, reterr);
	if (rc >= 0 && c->queue_nr == CTF_HEAP_QUEUE)
		rc = take_pending(c, reterr);
	if (rc < 0)
		return rc;
	p = &c->queue[(c->queue_at + c->queue_nr++) % CTF_HEAP_QUEUE];
	p->space = c->space;
	p->is_free = r->what == CTF_FREE;
	p->event = (struct heap_event){.ts = relative(c, r->ts),
				       .address = r->address,
				       .size = r->size,
				       .ip = r->ip & RING_IP_MASK,
				       .tid = r->tid,
				       .cpu = r->cpu,
				       .zeroed = r->kind == RING_CALLOC};
	c->cpu_nodes[r->cpu & 4095] = (uint64_t)r->node + 1;
	heap_prefetch(c->h, c->space, r->address);
	return 0;
}

static int take_rare(struct ctf_heap *c, const struct ctf_record *r, struct tape_err *reterr)
{
	uint64_t ts = relative(c, r->ts);
	struct heap_space *space;

	switch (r->what) {
	case CTF_EXEC:
	case CTF_FORK:
		return begin_process(c, r, reterr);
	case CTF_FORK_BEGIN:
		return set(&c->forks, pair(r->pid, r->serial), heap_fork_begin(c->h, r->pid) + 1,
			   reterr);
	case CTF_MODULE:
		space = heap_space_of(c->h, r->pid);
		return space ? heap_module(c->h, space, r->address, r->size, r->text, reterr)
			     : no_memory(reterr);
	case CTF_LOST:
		return heap_loss(c->h, -1, 0, ts, r->size, "before the tracer was ready", reterr);
	case CTF_DISCARDED:
		return heap_loss(c->h, r->cpu, ts, relative(c, r->ts_end), r->size,
				 r->size ? "buffers full" : "packets missing", reterr);
	default:
		c->slab_events++;
		return 0;
	}
}

int ctf_heap_take(void *ctx, const struct ctf_record *r, struct tape_err *reterr)
{
	struct ctf_heap *c = ctx;
	int rc;

	if (r->what != CTF_DISCARDED)
		c->records++;
	if (r->what <= CTF_FREE)
		return take_object(c, r, reterr);
	rc = ctf_heap_flush(c, reterr);
	return rc < 0 ? rc : take_rare(c, r, reterr);
}

/* ---- ends ---- */

/* State letter of a process in /proc; '\0' when it is gone. */
static char process_state(int32_t pid)
{
	char path[32], line[512], *paren;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	{
		TAPE_CLEANUP(tape_fclosep) FILE *f = fopen(path, "re");

		if (!f || !fgets(line, sizeof(line), f))
			return '\0';
	}
	paren = strrchr(line, ')'); /* names may hold any character */
	return paren && paren[1] == ' ' ? paren[2] : '\0';
}

/*
 * Its last events may be in a packet that is held back at the next rotation, so two rotations pass
 * before a process that ended is reported.
 */
void ctf_heap_look(struct ctf_heap *c)
{
	for (size_t i = 0; c->alive.entries && i <= c->alive.mask; i++) {
		struct map64_entry *e = &c->alive.entries[i];
		char state = e->value == CTF_ALIVE ? process_state((int32_t)e->key) : 'R';

		if (e->value == CTF_ENDED)
			e->value = CTF_ENDED_BEFORE;
		else if (!state || state == 'Z' || state == 'X')
			e->value = CTF_ENDED;
	}
}

int ctf_heap_bury(struct ctf_heap *c, bool all, struct tape_err *reterr)
{
	int rc = ctf_heap_flush(c, reterr);

	for (size_t i = 0; rc >= 0 && c->alive.entries && i <= c->alive.mask; i++) {
		struct map64_entry *e = &c->alive.entries[i];
		bool gone = e->value == CTF_ENDED_BEFORE || (all && e->value == CTF_ENDED);

		if (!e->key || !gone)
			continue;
		e->value = CTF_GONE;
		c->pid = 0;
		rc = heap_exit(c->h, 0, 0, (int32_t)e->key, reterr);
	}
	return rc;
}
