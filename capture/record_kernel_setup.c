/* SPDX-License-Identifier: MIT */
/* The tracefs instance of one recording: buffers, clock, events and what they are limited to. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/host.h"
#include "capture/record_kernel_internal.h"

#define BUFFER_DEFAULT (256u << 20) /* of all CPUs, bytes */
#define CPU_BUFFER_MIN (64u << 10)
#define CPU_BUFFER_DEFAULT_MIN (1u << 20)

/* The *_node forms are older kernels' (until 6.0). */
static const struct {
	const char *name;
	bool needed;
	bool has_size; /* kmalloc: a cache is known by it */
	bool may_name; /* has a field `name` in newer kernels */
} events[] = {
	{"kmalloc", true, true, false},
	{"kmalloc_node", false, true, false},
	{"kmem_cache_alloc", true, false, true},
	{"kmem_cache_alloc_node", false, false, true},
	{"kfree", true, false, false},
	{"kmem_cache_free", true, false, true},
};
#define EVENTS (sizeof(events) / sizeof(events[0]))

static int add_format(struct tracedat *td, const char *root, const char *event,
		      struct tape_err *reterr)
{
	struct tracedat_text *text = &td->formats[td->formats_nr];
	char file[96], *read;
	int rc;

	snprintf(file, sizeof(file), "events/%s/format", event);
	rc = tracefs_read(root, file, &read, &text->len, reterr);
	if (rc < 0)
		return rc;
	text->data = read;
	td->formats_nr++;
	return 0;
}

/* The root of tracefs names every event; our instance has the same ids and formats. */
static int read_formats(struct kernel_setup *ks, struct tape_err *reterr)
{
	const char *root = ks->in.root;
	char event[64];
	int rc = 0;

	ks->td.formats = calloc(EVENTS + 1, sizeof(*ks->td.formats));
	if (!ks->td.formats)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	for (size_t i = 0; rc >= 0 && i < EVENTS; i++) {
		snprintf(event, sizeof(event), "events/kmem/%s/format", events[i].name);
		if (!events[i].needed && !tracefs_has(root, event))
			continue;
		snprintf(event, sizeof(event), "kmem/%s", events[i].name);
		rc = add_format(&ks->td, root, event, reterr);
	}
	if (rc >= 0 && tracefs_has(root, "events/ftrace/print/format"))
		rc = add_format(&ks->td, root, "ftrace/print", reterr);
	return rc;
}

static int read_symbols(struct kernel_setup *ks, struct tape_err *reterr)
{
	char *text;
	int rc = tracefs_read(NULL, "/proc/kallsyms", &text, &ks->td.kallsyms.len, reterr);

	if (rc >= 0)
		ks->td.kallsyms.data = text;
	return rc;
}

/* Bytes of one read of trace_pipe_raw: a sub-buffer of the ring buffer. */
static uint32_t page_bytes(const struct kernel_setup *ks)
{
	TAPE_CLEANUP(tape_freep) char *text = NULL;
	size_t len;
	unsigned long kb = 0;

	if (tracefs_read(ks->in.dir, "buffer_subbuf_size_kb", &text, &len, NULL) >= 0)
		kb = strtoul(text, NULL, 10);
	return kb && kb < 1024 ? (uint32_t)kb * 1024 : (uint32_t)sysconf(_SC_PAGESIZE);
}

static int set_buffers(struct kernel_setup *ks, uint64_t total, struct tape_err *reterr)
{
	uint64_t each = (total ? total : BUFFER_DEFAULT) / host_cpus();
	uint64_t least = total ? CPU_BUFFER_MIN : CPU_BUFFER_DEFAULT_MIN;
	char text[24];

	snprintf(text, sizeof(text), "%llu",
		 (unsigned long long)((each < least ? least : each) >> 10));
	if (tracefs_write(ks->in.dir, "buffer_size_kb", text, reterr) < 0)
		return tape_err_set(reterr, -TAPE_E_TRACER,
				    "%s/buffer_size_kb: %s KiB for each CPU: the kernel refuses; a "
				    "smaller --buffer may help",
				    ks->in.dir, text);
	/* Oldest first out: only then do pages say where events were lost. */
	return tracefs_write(ks->in.dir, "options/overwrite", "1", reterr);
}

/* `EVENT == "a" || EVENT == "b"` over the names of the cache. */
static void name_filter(const char *names, char *filter, size_t bytes)
{
	size_t at = 0;

	filter[0] = '\0';
	for (const char *n = names; *n && at < bytes; n += strlen(n) + 1)
		at += (size_t)snprintf(filter + at, bytes - at, "%sname == \"%s\"", at ? " || " : "",
				       n);
}

static bool event_has_name(const struct kernel_setup *ks, const char *event)
{
	TAPE_CLEANUP(tape_freep) char *text = NULL;
	char file[96];
	size_t len;

	snprintf(file, sizeof(file), "events/kmem/%s/format", event);
	return tracefs_read(ks->in.root, file, &text, &len, NULL) >= 0 && strstr(text, " name;");
}

/* kmalloc serves caches of these names; every other cache is kmem_cache_alloc's. */
static bool is_kmalloc_name(const char *name)
{
	return !strncmp(name, "kmalloc-", 8) || !strncmp(name, "dma-kmalloc-", 12);
}

/*
 * One event's filter for a wanted cache, "0": the event is of no use.  kfree() says no cache: all
 * of them come and those of other objects are left out by address.
 */
static int cache_filter(struct kernel_setup *ks, size_t event, uint64_t object_bytes, char *filter,
			size_t bytes, struct tape_err *reterr)
{
	bool kmalloc = is_kmalloc_name(ks->cache_names);

	filter[0] = '\0';
	if (events[event].has_size)
		snprintf(filter, bytes, kmalloc ? "bytes_alloc == %llu" : "0",
			 (unsigned long long)object_bytes);
	if (!events[event].may_name)
		return 0;
	if (kmalloc && !strstr(events[event].name, "free"))
		snprintf(filter, bytes, "0");
	else if (event_has_name(ks, events[event].name))
		name_filter(ks->cache_names, filter, bytes);
	else if (!kmalloc)
		return tape_err_set(reterr, -TAPE_E_TRACER,
				    "--cache: %s of this kernel does not name its cache; record "
				    "everything and use slabtape cut --cache",
				    events[event].name);
	return 0;
}

static int enable_event(struct kernel_setup *ks, size_t event, const char *filter,
			struct tape_err *reterr)
{
	char file[96];
	int rc = 0;

	if (!strcmp(filter, "0"))
		return 0;
	if (*filter) {
		snprintf(file, sizeof(file), "events/kmem/%s/filter", events[event].name);
		rc = tracefs_write(ks->in.dir, file, filter, reterr);
	}
	snprintf(file, sizeof(file), "events/kmem/%s/enable", events[event].name);
	return rc < 0 ? rc : tracefs_write(ks->in.dir, file, "1", reterr);
}

/* Our own work must not show; kernels before 5.8 know only filters. */
static int exclude_self(struct kernel_setup *ks, char *filter, size_t bytes,
			struct tape_err *reterr)
{
	char text[16];

	filter[0] = '\0';
	if (tracefs_has(ks->in.dir, "set_event_notrace_pid")) {
		snprintf(text, sizeof(text), "%d", getpid());
		return tracefs_write(ks->in.dir, "set_event_notrace_pid", text, reterr);
	}
	snprintf(filter, bytes, "common_pid != %d", getpid());
	return 0;
}

static int enable_events(struct kernel_setup *ks, const char *cache, struct tape_err *reterr)
{
	char self[40], wanted[4096], filter[4200];
	uint64_t object_bytes = 0;
	int rc = exclude_self(ks, self, sizeof(self), reterr);

	if (rc >= 0 && cache)
		rc = kernel_cache_names(cache, &ks->cache_names, &object_bytes, reterr);
	for (size_t i = 0; rc >= 0 && i < EVENTS; i++) {
		char file[64];

		snprintf(file, sizeof(file), "events/kmem/%s", events[i].name);
		if (!tracefs_has(ks->in.dir, file))
			continue;
		wanted[0] = '\0';
		if (cache)
			rc = cache_filter(ks, i, object_bytes, wanted, sizeof(wanted), reterr);
		if (*wanted && *self && strcmp(wanted, "0"))
			snprintf(filter, sizeof(filter), "(%s) && %s", wanted, self);
		else
			snprintf(filter, sizeof(filter), "%s", *wanted ? wanted : self);
		if (rc >= 0)
			rc = enable_event(ks, i, filter, reterr);
	}
	return rc;
}

int kernel_setup(struct kernel_setup *ks, const struct record_kernel_options *o,
		 struct tape_err *reterr)
{
	const char *root;
	int rc = tracefs_find(&root, reterr);

	if (rc >= 0)
		rc = tracefs_create(root, &ks->in, reterr);
	if (rc < 0)
		return rc;
	ks->td.path = strdup(ks->in.dir);
	ks->td.long_bytes = sizeof(long);
	if (!ks->td.path)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	rc = read_formats(ks, reterr);
	if (rc >= 0)
		rc = read_symbols(ks, reterr);
	if (rc >= 0)
		rc = tracefs_write(ks->in.dir, "trace_clock", "mono", reterr);
	if (rc >= 0)
		rc = set_buffers(ks, o->buffer_bytes, reterr);
	ks->td.page_bytes = page_bytes(ks);
	return rc < 0 ? rc : enable_events(ks, o->cache, reterr);
}

static int add_pid(struct kernel_setup *ks, FILE *f, int32_t pid, struct tape_err *reterr)
{
	if (fprintf(f, "%d ", pid) > 0 && !fflush(f))
		return 0;
	return tape_err_set(reterr, -TAPE_E_TRACER, "%s/set_event_pid: cannot write %d: %s",
			    ks->in.dir, pid, strerror(errno));
}

int kernel_setup_pid(struct kernel_setup *ks, int32_t pid, bool threads, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_fclosep) FILE *f = NULL;
	char path[300];
	struct dirent *entry;
	DIR *dir;
	int rc = tracefs_write(ks->in.dir, "options/event-fork", "1", reterr);

	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "%s/set_event_pid", ks->in.dir);
	f = fopen(path, "we");
	if (!f)
		return tape_err_set(reterr, -TAPE_E_TRACER, "%s: %s", path, strerror(errno));
	if (!threads)
		return add_pid(ks, f, pid, reterr);
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--filter-pid %d: no such process", pid);
	while (rc >= 0 && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			rc = add_pid(ks, f, (int32_t)strtol(entry->d_name, NULL, 10), reterr);
	closedir(dir);
	return rc;
}

int kernel_setup_start(struct kernel_setup *ks, struct tape_err *reterr)
{
	return tracefs_write(ks->in.dir, "tracing_on", "1", reterr);
}

int kernel_setup_stop(struct kernel_setup *ks, struct tape_err *reterr)
{
	return tracefs_write(ks->in.dir, "tracing_on", "0", reterr);
}

void kernel_setup_fini(struct kernel_setup *ks)
{
	tracefs_remove(&ks->in);
	for (size_t i = 0; i < ks->td.formats_nr; i++)
		free((void *)(uintptr_t)ks->td.formats[i].data);
	free(ks->td.formats);
	free((void *)(uintptr_t)ks->td.kallsyms.data);
	free(ks->td.path);
	free(ks->cache_names);
}
