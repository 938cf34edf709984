/* SPDX-License-Identifier: MIT */
/*
 * The LTTng back-end of record: a session (record_lttng_session.c) in a private daemon
 * (record_lttng_daemon.c), whose data is taken in pieces: once a second the session is rotated,
 * what that gives is mapped, deleted, and merged into the tape (ctf_reader.h, ctf_heap.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "capture/ctf_heap.h"
#include "capture/ctf_reader.h"
#include "capture/record.h"
#include "capture/record_backend.h"
#include "capture/record_dir.h"
#include "capture/record_lttng_internal.h"
#include "capture/record_tape.h"

#define LIBRARY "libslabtape-lttng.so"
#define ROTATE_NS 700000000u	  /* from the end of one rotation to the next */
#define MERGE_RECORDS 300000u	  /* in one round, so that signals are seen in time */
#define SETTLE_NS 2000000	  /* what threads are in the middle of */
#define ROTATION_STEP_NS 5000000
#define ROTATION_STEPS 12000	  /* 1 minute */

struct lttng {
	struct lttng_daemon daemon;
	struct lttng_recording recording;
	struct ctf_reader *reader;
	struct ctf_heap heap;
	uint64_t next_rotation_ns;
	bool more; /* the reader has more to hand over now */
	bool snapshot;
};

static void destroy(void *self)
{
	struct lttng *l = self;

	if (!l)
		return;
	if (l->daemon.control)
		atomic_store_explicit(&l->daemon.control->stopped, 1, memory_order_relaxed);
	lttng_recording_fini(&l->recording, l->daemon.system);
	lttng_daemon_fini(&l->daemon);
	ctf_reader_destroy(l->reader);
	ctf_heap_fini(&l->heap);
	free(l);
}

static int set_environment(const struct lttng *l, const struct record_options *options,
			   const char *library, struct record_env *env, struct tape_err *reterr)
{
	int rc = record_env_preload(env, library, reterr);

	if (rc >= 0)
		rc = record_env_set(env, LTTNG_CONTROL_ENV, l->daemon.control_path, reterr);
	if (rc >= 0)
		rc = record_env_set(env, "LTTNG_UST_REGISTER_TIMEOUT", "-1", reterr);
	if (rc >= 0 && options->lossless)
		rc = record_env_set(env, "LTTNG_UST_ALLOW_BLOCKING", "1", reterr);
	return rc;
}

static int start(const struct record_options *options, struct record_env *env, void **ret_self,
		 struct tape_err *reterr)
{
	const struct lttng_session_options session = {
		.buffer_bytes = options->buffer_bytes,
		.lossless = options->lossless,
		.snapshot = options->snapshot,
	};
	struct lttng *l = calloc(1, sizeof(*l));
	TAPE_CLEANUP(tape_freep) char *library = NULL;
	int rc;

	if (!l)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	l->snapshot = options->snapshot;
	/* Before the daemon's mount namespace: behind it, in a chroot, our own path is another. */
	rc = record_find_library(LIBRARY, &library, reterr);
	if (rc >= 0)
		rc = ctf_reader_create(&l->reader, reterr);
	if (rc >= 0)
		rc = lttng_daemon_start(options->system_daemon, &l->daemon, reterr);
	if (rc >= 0)
		rc = lttng_recording_start(&session, l->daemon.home, &l->recording, reterr);
	if (rc >= 0)
		rc = set_environment(l, options, library, env, reterr);
	if (rc < 0) {
		destroy(l);
		return rc;
	}
	l->heap.origin_ns = record_now_ns();
	l->heap.live = true;
	l->next_rotation_ns = l->heap.origin_ns + ROTATE_NS;
	*ret_self = l;
	return 0;
}

/* ---- taking what is there ---- */

static int add_folder(struct lttng *l, const char *folder, struct tape_err *reterr)
{
	char why[80];
	int rc = ctf_reader_add(l->reader, folder, why, sizeof(why), reterr);

	record_dir_remove(folder);
	if (!rc)
		rc = tape_err_set(reterr, -TAPE_E_VERSION,
				  "this LTTng-UST writes a layout that is not known (%s); record "
				  "with --native",
				  why);
	return rc;
}

static int merge(struct lttng *l, bool last, struct tape_err *reterr)
{
	int rc = ctf_reader_merge(l->reader, last, last ? UINT64_MAX : MERGE_RECORDS,
				  ctf_heap_take, &l->heap, reterr);

	l->more = rc > 0;
	return rc < 0 || l->more ? rc : ctf_heap_bury(&l->heap, false, reterr);
}

static int rotation_step(struct lttng *l, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) char *folder = NULL;
	int rc = lttng_recording_rotated(&l->recording, &folder, reterr);

	if (rc <= 0)
		return rc;
	rc = add_folder(l, folder, reterr);
	l->next_rotation_ns = record_now_ns() + ROTATE_NS;
	return rc < 0 ? rc : merge(l, false, reterr);
}

static int poll_running(struct lttng *l, struct tape_err *reterr)
{
	if (l->more)
		return merge(l, false, reterr);
	if (l->recording.rotation)
		return rotation_step(l, reterr);
	if (l->snapshot || record_now_ns() < l->next_rotation_ns)
		return 0;
	ctf_heap_look(&l->heap);
	return lttng_recording_rotate(&l->recording, reterr);
}

static int finish_rotation(struct lttng *l, struct tape_err *reterr)
{
	const struct timespec step = {.tv_nsec = ROTATION_STEP_NS};

	for (int i = 0; l->recording.rotation; i++) {
		int rc = rotation_step(l, reterr);

		if (rc < 0)
			return rc;
		if (i == ROTATION_STEPS)
			return tape_err_set(reterr, -TAPE_E_IO, "LTTng does not end a rotation");
		if (l->recording.rotation)
			nanosleep(&step, NULL);
	}
	return 0;
}

/* Programs that came but could not record. */
static int unready(struct lttng *l, struct tape_err *reterr)
{
	const struct lttng_control *c = l->daemon.control;
	uint32_t attached = atomic_load_explicit(&c->attached, memory_order_relaxed);
	uint32_t ready = atomic_load_explicit(&c->ready, memory_order_relaxed);
	const char *why = atomic_load_explicit(&c->reason, memory_order_relaxed) == LTTNG_NO_LIBRARY
				  ? "liblttng-ust could not be loaded into it"
				  : "LTTng did not switch its tracepoints on within 5 s";

	if (attached == ready)
		return 0;
	if (!ready)
		return tape_err_set(reterr, -TAPE_E_TRACER,
				    "the program ran and recorded nothing: %s; record with "
				    "--native",
				    why);
	return heap_loss(l->heap.h, -1, 0, record_now_ns() - l->heap.origin_ns,
			 atomic_load_explicit(&c->lost, memory_order_relaxed),
			 "programs that LTTng did not reach", reterr);
}

static int poll_last(struct lttng *l, struct tape_err *reterr)
{
	const struct timespec settle = {.tv_nsec = SETTLE_NS};
	int rc;

	atomic_store_explicit(&l->daemon.control->stopped, 1, memory_order_relaxed);
	nanosleep(&settle, NULL);
	rc = finish_rotation(l, reterr);
	if (rc >= 0)
		rc = lttng_recording_stop(&l->recording, reterr);
	if (rc >= 0)
		rc = add_folder(l, l->recording.output, reterr);
	if (!l->daemon.system)
		lttng_daemon_stop(&l->daemon); /* it ends while the rest is read */
	if (rc >= 0)
		rc = unready(l, reterr);
	if (rc >= 0)
		rc = merge(l, true, reterr);
	ctf_heap_look(&l->heap);
	return rc < 0 ? rc : ctf_heap_bury(&l->heap, true, reterr);
}

static int poll_lttng(void *self, struct heap *h, bool last, uint64_t *ret_events,
		      struct tape_err *reterr)
{
	struct lttng *l = self;
	uint64_t before = l->heap.records;
	int rc;

	l->heap.h = h;
	rc = last ? poll_last(l, reterr) : poll_running(l, reterr);
	*ret_events += l->heap.records - before;
	return rc < 0 ? rc : 0;
}

static uint32_t attached(const void *self)
{
	const struct lttng *l = self;

	return atomic_load_explicit(&l->daemon.control->attached, memory_order_relaxed);
}

/* As the recorded threads measured it. */
static double overhead_ns(const void *self)
{
	const struct lttng_control *c = ((const struct lttng *)self)->daemon.control;
	uint64_t nr = atomic_load_explicit(&c->samples, memory_order_relaxed);

	return nr ? (double)atomic_load_explicit(&c->sampled_ns, memory_order_relaxed) / (double)nr
		  : 0;
}

static const struct record_backend record_lttng = {
	.name = "lttng",
	.start = start,
	.poll = poll_lttng,
	.attached = attached,
	.overhead_ns = overhead_ns,
	.destroy = destroy,
	.poll_ms = 10,
	.clock = "monotonic ns since start",
};

const struct record_backend *record_lttng_backend(void)
{
	return &record_lttng;
}
