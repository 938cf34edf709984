/* SPDX-License-Identifier: MIT */
#include "capture/native.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "base/cleanup.h"
#include "capture/native_internal.h"
#include "capture/record_dir.h"

#define BUFFER_BYTES_DEFAULT (UINT64_C(256) << 20)
#define BUFFER_BYTES_MIN (2 * NATIVE_CHUNK_BYTES)
#define BUFFER_BYTES_MAX (UINT64_C(64) << 30)
#define CALIBRATE_NS 10000000

uint64_t native_clock_now(const struct ring_header *ring)
{
#if defined(__x86_64__)
	unsigned int aux;

	if (ring->clock == RING_CLOCK_TSC)
		return __rdtscp(&aux);
#else
	(void)ring;
#endif
	return ring_monotonic_ns();
}

/* The kernel keeps time with the TSC: then it runs evenly and alike on all CPUs. */
static bool tsc_is_good(void)
{
#if defined(__x86_64__)
	TAPE_CLEANUP(tape_fclosep)
	FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
	char name[16] = "";

	return f && fgets(name, sizeof(name), f) && !strcmp(name, "tsc\n");
#else
	return false;
#endif
}

static void calibrate(struct native *n)
{
	const struct timespec wait = {.tv_nsec = CALIBRATE_NS};
	uint64_t raw, ns;

	n->clock.origin = native_clock_now(n->ring);
	n->clock.mult = UINT64_C(1) << 32;
	if (n->ring->clock != RING_CLOCK_TSC)
		return;
	ns = ring_monotonic_ns();
	raw = native_clock_now(n->ring);
	nanosleep(&wait, NULL);
	ns = ring_monotonic_ns() - ns;
	raw = native_clock_now(n->ring) - raw;
	n->clock.mult = (uint64_t)(((native_u128)ns << 32) / raw);
}

/* ---- the folder ---- */

static int make_dir(struct native *n, struct tape_err *reterr)
{
	const char *bases[] = {"/dev/shm", getenv("TMPDIR"), "/tmp"};

	return record_dir_make("slabtape", bases, sizeof(bases) / sizeof(bases[0]), PATH_MAX,
			       "the shared buffers (/dev/shm, $TMPDIR, /tmp)", &n->dir, reterr);
}

/* ---- the file ---- */

static uint32_t page_up(uint64_t bytes)
{
	return (uint32_t)((bytes + 65535) & ~UINT64_C(65535));
}

static void fill_header(struct ring_header *h, const struct native_options *options,
			uint32_t chunks, uint64_t file_bytes)
{
	struct stat st;

	h->file_bytes = file_bytes;
	h->chunk_bytes = NATIVE_CHUNK_BYTES;
	h->chunks_max = chunks;
	h->clock = tsc_is_good() ? RING_CLOCK_TSC : RING_CLOCK_MONOTONIC;
	h->full = options->lossless ? RING_FULL_WAIT : RING_FULL_DROP;
	h->pid_namespace = stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
	h->slots_offset = 4096;
	h->chunks_offset = h->slots_offset + RING_SLOTS_MAX * (uint32_t)sizeof(struct ring_slot);
	h->data_offset = page_up(h->chunks_offset + (uint64_t)chunks * sizeof(struct ring_chunk));
	h->magic = RING_MAGIC;
}

/*
 * Back more chunks with memory.  posix_fallocate, so that a full file system is an error here
 * and not a SIGBUS in the recorded program.  Returns how many were added.
 */
static uint32_t add_chunks(struct native *n, uint32_t wanted)
{
	struct ring_header *h = n->ring;

	if (wanted > h->chunks_max - n->chunks_nr)
		wanted = h->chunks_max - n->chunks_nr;
	/* A small /dev/shm may still have room for less. */
	while (wanted &&
	       posix_fallocate(n->fd,
			       (off_t)(h->data_offset + (uint64_t)n->chunks_nr * h->chunk_bytes),
			       (off_t)((uint64_t)wanted * h->chunk_bytes)))
		wanted /= 2;
	n->grows = wanted != 0;
	/* Lowest first on top of the stack. */
	for (uint32_t i = wanted; i-- > 0;)
		ring_push(h, n->chunks_nr + i);
	n->chunks_nr += wanted;
	return wanted;
}

void native_grow(struct native *n)
{
	/* Relaxed: a hint; the next look corrects it. */
	while (n->grows && !n->last &&
	       atomic_load_explicit(&n->ring->free_nr, memory_order_relaxed) < NATIVE_SPARE_CHUNKS)
		add_chunks(n, NATIVE_GROW_CHUNKS);
}

static int map_file(struct native *n, const struct native_options *options, struct tape_err *reterr)
{
	uint64_t bytes = options->buffer_bytes ? options->buffer_bytes : BUFFER_BYTES_DEFAULT;
	uint32_t chunks = (uint32_t)(bytes / NATIVE_CHUNK_BYTES);
	uint64_t tables = 4096 + RING_SLOTS_MAX * sizeof(struct ring_slot) +
			  (uint64_t)chunks * sizeof(struct ring_chunk);
	uint64_t file_bytes = page_up(tables) + (uint64_t)chunks * NATIVE_CHUNK_BYTES;

	n->fd = open(n->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (n->fd < 0 || ftruncate(n->fd, (off_t)file_bytes) ||
	    posix_fallocate(n->fd, 0, page_up(tables)))
		return tape_err_set(reterr, -TAPE_E_IO, "shared buffers (%s): %s", n->path,
				    strerror(errno ? errno : ENOSPC));
	n->ring = mmap(NULL, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, n->fd, 0);
	if (n->ring == MAP_FAILED) {
		n->ring = NULL;
		return tape_err_set(reterr, -errno, "shared buffers (%s): %s", n->path,
				    strerror(errno));
	}
	fill_header(n->ring, options, chunks, file_bytes);
	n->grows = true;
	return 0;
}

static int check_options(const struct native_options *options, struct tape_err *reterr)
{
	uint64_t b = options->buffer_bytes;

	if (b && (b < BUFFER_BYTES_MIN || b > BUFFER_BYTES_MAX))
		return tape_err_set(reterr, -TAPE_E_USAGE,
				    "buffer of %llu bytes: between %u KiB and 64 GiB",
				    (unsigned long long)b, BUFFER_BYTES_MIN >> 10);
	return 0;
}

int native_create(const struct native_options *options, struct native **ret_native,
		  struct tape_err *reterr)
{
	struct native *n = calloc(1, sizeof(*n));
	int rc = check_options(options, reterr);

	if (!n)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	n->fd = -1;
	if (rc >= 0)
		rc = make_dir(n, reterr);
	if (rc >= 0 && asprintf(&n->path, "%s/ring", n->dir) < 0)
		rc = tape_err_set(reterr, -ENOMEM, "out of memory");
	if (rc >= 0)
		rc = map_file(n, options, reterr);
	if (rc >= 0) {
		n->streams = calloc(RING_SLOTS_MAX, sizeof(*n->streams));
		n->order = calloc(RING_SLOTS_MAX, sizeof(struct native_stream *));
		n->chunk_seen = calloc(n->ring->chunks_max, 1);
		if (!n->streams || !n->order || !n->chunk_seen)
			rc = tape_err_set(reterr, -ENOMEM, "out of memory");
	}
	if (rc >= 0 && !add_chunks(n, NATIVE_SPARE_CHUNKS))
		rc = tape_err_set(reterr, -TAPE_E_IO,
				  "shared buffers (%s): no space left; "
				  "free some, or set TMPDIR to a folder with space",
				  n->path);
	if (rc < 0) {
		native_destroy(n);
		return rc;
	}
	calibrate(n);
	*ret_native = n;
	return 0;
}

void native_destroy(struct native *n)
{
	if (!n)
		return;
	if (n->ring) {
		for (uint32_t i = 0; n->streams && i < RING_SLOTS_MAX; i++) {
			free(n->streams[i].chunks);
			free(n->streams[i].text);
		}
		atomic_store_explicit(&n->ring->stopped, 1, memory_order_release);
		munmap(n->ring, n->ring->file_bytes);
	}
	if (n->fd >= 0)
		close(n->fd);
	if (n->dir)
		record_dir_remove(n->dir);
	free(n->streams);
	free(n->order);
	free(n->chunk_seen);
	free(n->path);
	free(n->dir);
	free(n);
}

const char *native_path(const struct native *n)
{
	return n->path;
}

uint32_t native_attached(const struct native *n)
{
	return atomic_load_explicit(&n->ring->attached, memory_order_relaxed);
}

int native_poll(struct native *n, struct heap *h, bool last, uint64_t *ret_events,
		struct tape_err *reterr)
{
	const struct timespec settle = {.tv_nsec = 2 * RING_LAG_NS};
	int rc;

	atomic_fetch_add_explicit(&n->ring->beat, 1, memory_order_relaxed);
	if (last) {
		atomic_store_explicit(&n->ring->stopped, 1, memory_order_release);
		nanosleep(&settle, NULL);
	}
	n->last = last;
	n->events = 0;
	native_grow(n);
	rc = native_scan(n, h, reterr);
	if (rc >= 0)
		rc = native_merge(n, h, reterr);
	if (rc >= 0)
		rc = native_reap(n, h, reterr);
	if (ret_events)
		*ret_events += n->events;
	return rc;
}
