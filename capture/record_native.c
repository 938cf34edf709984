/* SPDX-License-Identifier: MIT */
/* The native back-end of record: shared memory (native.h) and libslabtape-native.so. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "capture/native_internal.h"
#include "capture/record.h"
#include "capture/record_backend.h"

#define COST_EVENTS 200000u

static int start(const struct record_options *options, struct record_env *env, void **ret_self,
		 struct tape_err *reterr)
{
	const struct native_options native = {.buffer_bytes = options->buffer_bytes,
					      .lossless = options->lossless};
	TAPE_CLEANUP(tape_freep) char *library = NULL;
	struct native *n = NULL;
	int rc = record_find_library("libslabtape-native.so", &library, reterr);

	if (rc >= 0)
		rc = native_create(&native, &n, reterr);
	if (rc >= 0)
		rc = record_env_preload(env, library, reterr);
	if (rc >= 0)
		rc = record_env_set(env, RING_ENV, native_path(n), reterr);
	if (rc < 0) {
		native_destroy(n);
		return rc;
	}
	*ret_self = n;
	return 0;
}

static int poll_native(void *self, struct heap *h, bool last, uint64_t *ret_events,
		       struct tape_err *reterr)
{
	return native_poll(self, h, last, ret_events, reterr);
}

static uint32_t attached(const void *self)
{
	return native_attached(self);
}

/*
 * What the writer does for one event (put() in ust/native_writer.c), done here in a row.  The
 * call into the library and the look-up of the real function add about 3 ns.
 */
static double overhead_ns(const void *self)
{
	const struct native *n = self;
	struct ring_event *events = calloc(2048, sizeof(*events));
	_Atomic uint64_t pos = 0;
	uint64_t began = ring_monotonic_ns();

	if (!events)
		return 0;
	for (uint64_t i = 0; i < COST_EVENTS; i++) {
		struct ring_event *e = &events[i % 2048];

		atomic_store_explicit(&pos, 2 * i + 1, memory_order_relaxed);
		e->clock = native_clock_now(n->ring);
		e->address = i;
		e->size = i;
		e->where = ring_where(i, 0, RING_MALLOC);
		atomic_store_explicit(&pos, 2 * i + 2, memory_order_release);
	}
	began = ring_monotonic_ns() - began;
	free(events);
	return (double)began / COST_EVENTS + 3;
}

static void destroy(void *self)
{
	native_destroy(self);
}

const struct record_backend record_native = {
	.name = "native",
	.start = start,
	.poll = poll_native,
	.attached = attached,
	.overhead_ns = overhead_ns,
	.destroy = destroy,
	.poll_ms = 3,
	.clock = "monotonic ns since start",
};
