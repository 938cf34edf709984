/* SPDX-License-Identifier: MIT */
/*
 * Between the interposer (libslabtape-lttng.so) and the library with the tracepoints
 * (libslabtape-lttng-probes.so), which alone is linked with LTTng-UST.
 *
 * Two libraries, so that the interposer loads LTTng itself: with the guard held, so that nothing
 * LTTng allocates is recorded, and with the low file descriptors taken, so that LTTng's own stay
 * out of the program's way.
 */
#ifndef SLABTAPE_CAPTURE_UST_LTTNG_API_H
#define SLABTAPE_CAPTURE_UST_LTTNG_API_H

#include <stdbool.h>
#include <signal.h>
#include <stdint.h>

#define LTTNG_API_SYMBOL "slabtape_lttng_api"
#define LTTNG_PROBES_FILE "libslabtape-lttng-probes.so"

/* Payload of slabtape:alloc and slabtape:free. */
struct lttng_heap_event {
	uint64_t address, size, ip;
	int32_t pid, tid;
	uint16_t cpu;
	uint8_t node; /* of the CPU */
	uint8_t kind; /* enum ring_kind */
};

/* Payload of the events that describe processes; each uses some of the fields. */
struct lttng_process_event {
	int32_t pid, tid, parent;
	uint32_t serial;     /* fork_begin, fork: number of the fork in its parent; 0 unknown */
	uint64_t base, size; /* module: range of addresses; loss: size = events */
	const char *text;    /* exec: program; module: path */
};

struct lttng_api {
	bool (*enabled)(void); /* the tracepoints are switched on */
	/* @fn is called when the process ends, before LTTng puts itself away. */
	void (*at_end)(void (*fn)(void));
	void (*alloc)(const struct lttng_heap_event *e);
	void (*free)(const struct lttng_heap_event *e);
	void (*exec)(const struct lttng_process_event *e);
	void (*fork_begin)(const struct lttng_process_event *e);
	void (*fork)(const struct lttng_process_event *e);
	void (*module)(const struct lttng_process_event *e);
	void (*loss)(const struct lttng_process_event *e);
	/* Around fork(): LTTng's locks are taken, given back, and in the child made its own. */
	void (*before_fork)(sigset_t *ret_mask);
	void (*after_fork_parent)(sigset_t *mask);
	void (*after_fork_child)(sigset_t *mask);
};

#endif
