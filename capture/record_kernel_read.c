/* SPDX-License-Identifier: MIT */
/*
 * The CPUs' ring buffers, read page by page and merged while the kernel writes them.
 *
 * An event may be handed over when no CPU can still come with an older one.  A CPU whose page
 * holds events is known by its next one.  A CPU that had nothing to read at time T can only come
 * with events that begin after T, less the moment between taking its time and being visible:
 * MARGIN_NS.  Should an event be later than that, it is moved forward and counted
 * (meta.clock_steps_back).
 *
 * Meanwhile the ring buffers go on: each poll first takes their pages into memory, a bounded
 * number of them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/record_kernel_internal.h"
#include "capture/record_tape.h"

#define MARGIN_NS 20000000u
#define POLL_EVENTS 200000u /* hand over at most about that many in one poll */
#define PAGES_TOTAL (256u << 20) /* limit of all kernel_pages together, bytes */
#define PAGES_FIRST (64u << 10)

static int open_cpu(struct kernel_reader *r, uint32_t cpu, struct tape_err *reterr)
{
	struct kernel_cpu *k = &r->cpus[r->cpus_nr];
	const struct tracedat_cpu none = {.cpu = cpu};
	char path[320];
	int rc = td_stream_init(&k->s, &r->ks->td, &none, reterr);

	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "%s/per_cpu/cpu%u/trace_pipe_raw", r->ks->in.dir, cpu);
	k->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	r->cpus_nr++;
	if (k->fd < 0)
		return tape_err_set(reterr, -TAPE_E_TRACER, "%s: %s", path, strerror(errno));
	r->idle[r->idle_nr++] = k;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Numbers of the CPUs that have a ring buffer, ascending; malloc'ed. */
static uint32_t *list_cpus(const char *instance, uint32_t *ret_nr)
{
	uint32_t *cpus = calloc(TAPE_CPU_MAX, sizeof(*cpus)), nr = 0;
	char path[300];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/per_cpu", instance);
	dir = opendir(path);
	while (cpus && dir && nr < TAPE_CPU_MAX && (entry = readdir(dir)))
		if (!strncmp(entry->d_name, "cpu", 3))
			cpus[nr++] = (uint32_t)strtoul(entry->d_name + 3, NULL, 10);
	if (dir)
		closedir(dir);
	if (cpus)
		qsort(cpus, nr, sizeof(*cpus), by_number);
	*ret_nr = nr;
	return cpus;
}

int kernel_reader_open(struct kernel_reader *r, struct kernel_setup *ks, struct td_decoder *d,
		       struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) uint32_t *cpus = NULL;
	uint32_t nr;
	int rc = 0;

	memset(r, 0, sizeof(*r));
	r->ks = ks;
	r->d = d;
	cpus = list_cpus(ks->in.dir, &nr);
	r->cpus = calloc(nr + 1, sizeof(*r->cpus));
	r->idle = calloc(nr + 1, sizeof(struct kernel_cpu *));
	r->heap.at = calloc(nr + 1, sizeof(struct td_stream *));
	if (!cpus || !r->cpus || !r->idle || !r->heap.at)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	r->pages_max = PAGES_TOTAL / 2 / (nr + 1);
	for (uint32_t i = 0; rc >= 0 && i < nr; i++)
		rc = open_cpu(r, cpus[i], reterr);
	return rc;
}

/* Room for one more page.  1; 0: the limit is reached. */
static int grow(struct kernel_reader *r, struct kernel_pages *p, struct tape_err *reterr)
{
	size_t page = r->ks->td.page_bytes, capacity = p->capacity ? p->capacity * 2 : PAGES_FIRST;
	uint8_t *grown;

	if (p->capacity - p->len >= page)
		return 1;
	if (capacity < page)
		capacity = page;
	if (p->len && capacity > r->pages_max)
		return 0;
	grown = realloc(p->data, capacity);
	if (!grown)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	p->data = grown;
	p->capacity = capacity;
	return 1;
}

/* One page of @k behind those that wait.  1; 0: it has none now, or there is no room. */
static int take_page(struct kernel_reader *r, struct kernel_cpu *k, struct tape_err *reterr)
{
	struct kernel_pages *p = &k->waiting;
	size_t page = r->ks->td.page_bytes;
	int rc = grow(r, p, reterr);
	ssize_t n;

	if (rc <= 0)
		return rc;
	do {
		n = read(k->fd, p->data + p->len, page);
	} while (n < 0 && errno == EINTR);
	if (n > 0) {
		memset(p->data + p->len + n, 0, page - (size_t)n);
		p->len += page;
		return 1;
	}
	if (!n || errno == EAGAIN)
		return 0;
	return tape_err_set(reterr, -TAPE_E_TRACER, "%s/per_cpu/cpu%u/trace_pipe_raw: %s",
			    r->ks->in.dir, k->s.cpu, strerror(errno));
}

/* The stream has read its pages: give it those that wait.  1; 0: there are none. */
static int next_pages(struct kernel_reader *r, struct kernel_cpu *k, struct tape_err *reterr)
{
	struct kernel_pages done = k->decoding;
	uint64_t asked = record_now_ns();
	int rc = k->waiting.len ? 1 : take_page(r, k, reterr);

	if (rc > 0) {
		k->decoding = k->waiting;
		k->waiting = done;
		k->waiting.len = 0;
		td_stream_feed(&k->s, k->decoding.data, k->decoding.len);
	} else if (!rc && asked - MARGIN_NS > k->quiet_ts) {
		k->quiet_ts = asked - MARGIN_NS;
	}
	return rc;
}

/* Empty the ring buffers as far as there is room. */
static int take_all(struct kernel_reader *r, struct tape_err *reterr)
{
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < r->cpus_nr; i++)
		while ((rc = take_page(r, &r->cpus[i], reterr)) > 0)
			;
	return rc;
}

/* Events were lost in front of @k's new one; @before: its last one. */
static int declare_loss(struct kernel_reader *r, struct kernel_cpu *k, uint64_t before,
			struct tape_err *reterr)
{
	uint64_t begin = before > k->quiet_ts ? before : k->quiet_ts;

	k->s.missed = false;
	if (begin < r->started_ts)
		begin = r->started_ts;
	k->told += k->s.missed_events;
	r->lost += k->s.missed_events;
	if (!k->s.missed_events) {
		k->vague_begin = k->vague ? k->vague_begin : begin;
		k->vague_end = k->s.ts;
		k->vague = true;
	}
	return ingest_loss(r->d->ing, (int32_t)k->s.cpu, begin, k->s.ts, k->s.missed_events,
			   "ring buffer overrun", reterr);
}

/* Step to @k's next event.  1; 0: it has none now, and k->quiet_ts says since when. */
static int step(struct kernel_reader *r, struct kernel_cpu *k, struct tape_err *reterr)
{
	uint64_t before = k->s.event ? k->s.ts : 0;
	int rc;

	while (!(rc = td_stream_next(&k->s, reterr))) {
		rc = next_pages(r, k, reterr);
		if (rc <= 0)
			return rc;
	}
	k->events += rc > 0;
	if (rc > 0 && k->s.missed)
		rc = declare_loss(r, k, before, reterr);
	return rc < 0 ? rc : 1;
}

/* Ask the idle CPUs.  *ret_limit: events up to it are in order. */
static int wake_idle(struct kernel_reader *r, bool last, uint64_t *ret_limit,
		     struct tape_err *reterr)
{
	uint32_t idle = 0;
	int rc = 0;

	*ret_limit = UINT64_MAX;
	for (uint32_t i = 0; rc >= 0 && i < r->idle_nr; i++) {
		struct kernel_cpu *k = r->idle[i];

		rc = step(r, k, reterr);
		if (rc > 0) {
			td_heap_push(&r->heap, &k->s);
			continue;
		}
		r->idle[idle++] = k;
		if (!last && k->quiet_ts < *ret_limit)
			*ret_limit = k->quiet_ts;
	}
	r->idle_nr = idle;
	return rc < 0 ? rc : 0;
}

/* The oldest stream's event has been handed over: go on to its next one. */
static int next_event(struct kernel_reader *r, bool last, uint64_t *limit, struct tape_err *reterr)
{
	/* The stream is the first member of its CPU. */
	struct kernel_cpu *k = (struct kernel_cpu *)r->heap.at[0];
	int rc = step(r, k, reterr);

	if (rc > 0) {
		td_heap_down(&r->heap, 0);
	} else if (!rc) {
		td_heap_pop(&r->heap);
		r->idle[r->idle_nr++] = k;
		if (!last && k->quiet_ts < *limit)
			*limit = k->quiet_ts;
	}
	return rc;
}

int kernel_reader_poll(struct kernel_reader *r, bool last, struct tape_err *reterr)
{
	uint64_t limit = 0, stop = r->events + POLL_EVENTS;
	int rc = take_all(r, reterr);

	if (rc >= 0)
		rc = wake_idle(r, last, &limit, reterr);
	while (rc >= 0 && r->heap.nr && r->heap.at[0]->ts <= limit) {
		if (r->events >= stop)
			return 1;
		rc = td_decode_event(r->d, r->heap.at[0]);
		r->events++;
		if (rc >= 0)
			rc = next_event(r, last, &limit, reterr);
	}
	return rc < 0 ? rc : 0;
}

static uint64_t stat_of(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, len) && line[len] == ':')
			return strtoull(line + len + 1, NULL, 10);
	}
	return 0;
}

/* Losses that were counted but whose number no page had room for. */
static int declare_rest(struct kernel_reader *r, struct kernel_cpu *k,
			const struct record_kernel_cpu *c, uint64_t end_ts, struct tape_err *reterr)
{
	uint64_t counted = c->overrun + c->commit_overrun + c->dropped;
	uint64_t rest = counted > k->told ? counted - k->told : 0;

	if (!rest)
		return 0;
	r->lost += rest;
	if (k->vague)
		return ingest_loss(r->d->ing, (int32_t)c->cpu, k->vague_begin, k->vague_end, rest,
				   "ring buffer overrun, pages without room for the number", reterr);
	return ingest_loss(r->d->ing, (int32_t)c->cpu, r->started_ts, end_ts, rest,
			   "counted by the ring buffer, time unknown", reterr);
}

int kernel_reader_stats(struct kernel_reader *r, uint64_t end_ts,
			struct record_kernel_cpu **ret_cpus, uint32_t *ret_nr,
			struct tape_err *reterr)
{
	struct record_kernel_cpu *all = calloc(r->cpus_nr + 1, sizeof(*all));
	int rc = all ? 0 : tape_err_set(reterr, -ENOMEM, "out of memory");

	*ret_cpus = all;
	*ret_nr = all ? r->cpus_nr : 0;
	for (uint32_t i = 0; rc >= 0 && i < r->cpus_nr; i++) {
		TAPE_CLEANUP(tape_freep) char *text = NULL;
		struct record_kernel_cpu *c = &all[i];
		char file[48];
		size_t len;

		c->cpu = r->cpus[i].s.cpu;
		c->events = r->cpus[i].events;
		snprintf(file, sizeof(file), "per_cpu/cpu%u/stats", c->cpu);
		rc = tracefs_read(r->ks->in.dir, file, &text, &len, reterr);
		if (rc < 0)
			break;
		c->entries = stat_of(text, "entries");
		c->overrun = stat_of(text, "overrun");
		c->commit_overrun = stat_of(text, "commit overrun");
		c->dropped = stat_of(text, "dropped events");
		c->read = stat_of(text, "read events");
		rc = declare_rest(r, &r->cpus[i], c, end_ts, reterr);
	}
	return rc;
}

void kernel_reader_close(struct kernel_reader *r)
{
	for (uint32_t i = 0; i < r->cpus_nr; i++) {
		if (r->cpus[i].fd >= 0)
			close(r->cpus[i].fd);
		free(r->cpus[i].decoding.data);
		free(r->cpus[i].waiting.data);
		td_stream_fini(&r->cpus[i].s);
	}
	free(r->cpus);
	free(r->idle);
	free(r->heap.at);
	memset(r, 0, sizeof(*r));
}
