/* SPDX-License-Identifier: MIT */
/* One recording session, through liblttng-ctl. */
#include <errno.h>
#include <lttng/lttng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture/host.h"
#include "capture/record_lttng_internal.h"

#define PER_CPU_BYTES (UINT64_C(64) << 20)
#define TOTAL_BYTES (UINT64_C(1) << 30)
#define SUBBUFS 16u
#define SUBBUF_MIN 4096u
#define PROCESS_SUBBUF_BYTES (UINT64_C(256) << 10)
#define PROCESS_SUBBUFS 4u
#define PENDING_STEP_NS 1000000
#define PENDING_STEPS 60000 /* 1 minute until all data is written */

/*
 * What happens to processes has buffers of its own: such events are few, and objects cannot be
 * told apart where one is lost.
 */
static const char *const event_names[] = {"slabtape:alloc", "slabtape:free", "slabtape:slab_*"};
static const char *const process_names[] = {"slabtape:exec", "slabtape:fork_begin", "slabtape:fork",
					    "slabtape:module", "slabtape:loss"};
#define NR(array) (sizeof(array) / sizeof((array)[0]))

static int fail(int code, const char *what, struct tape_err *reterr)
{
	return tape_err_set(reterr, -TAPE_E_TRACER, "LTTng, %s: %s; record with --native", what,
			    lttng_strerror(code));
}

static struct lttng_domain ust_domain(void)
{
	struct lttng_domain domain;

	memset(&domain, 0, sizeof(domain));
	domain.type = LTTNG_DOMAIN_UST;
	domain.buf_type = LTTNG_BUFFER_PER_UID;
	return domain;
}

/* Largest power of two up to @bytes. */
static uint64_t power_of_two(uint64_t bytes)
{
	return UINT64_C(1) << (63 - __builtin_clzll(bytes));
}

static int check_buffer(const struct lttng_session_options *o, struct tape_err *reterr)
{
	uint64_t least = (uint64_t)SUBBUF_MIN * 4 * host_cpus();

	if (o->buffer_bytes && o->buffer_bytes < least)
		return tape_err_set(reterr, -TAPE_E_USAGE,
				    "buffer of %llu bytes: at least %llu with %u CPUs",
				    (unsigned long long)o->buffer_bytes, (unsigned long long)least,
				    host_cpus());
	return 0;
}

/* Sizes of one CPU's buffer. */
static void shape(const struct lttng_session_options *o, uint64_t *ret_subbuf_bytes,
		  uint64_t *ret_subbufs)
{
	uint64_t bytes = o->buffer_bytes ? o->buffer_bytes / host_cpus() : PER_CPU_BYTES;

	if (!o->buffer_bytes && bytes * host_cpus() > TOTAL_BYTES)
		bytes = TOTAL_BYTES / host_cpus();
	*ret_subbufs = bytes / SUBBUFS >= SUBBUF_MIN ? SUBBUFS : 4;
	*ret_subbuf_bytes = power_of_two(bytes / *ret_subbufs);
	if (*ret_subbuf_bytes < SUBBUF_MIN)
		*ret_subbuf_bytes = SUBBUF_MIN;
}

static int add_channel(const struct lttng_recording *rec, struct lttng_handle *handle,
		       const char *name, uint64_t subbuf_bytes, uint64_t subbufs, bool blocking,
		       struct tape_err *reterr)
{
	struct lttng_domain domain = ust_domain();
	struct lttng_channel *channel = lttng_channel_create(&domain);
	int rc;

	if (!channel)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	snprintf(channel->name, sizeof(channel->name), "%s", name);
	channel->attr.subbuf_size = subbuf_bytes;
	channel->attr.num_subbuf = subbufs;
	channel->attr.overwrite = rec->snapshot;
	channel->attr.output = LTTNG_EVENT_MMAP;
	channel->attr.switch_timer_interval = 0;
	channel->attr.read_timer_interval = 0;
	lttng_channel_set_monitor_timer_interval(channel, 0);
	if (blocking)
		lttng_channel_set_blocking_timeout(channel, -1);
	rc = lttng_enable_channel(handle, channel);
	lttng_channel_destroy(channel);
	return rc < 0 ? fail(rc, "buffers", reterr) : 0;
}

static int add_event(struct lttng_handle *handle, const char *channel, const char *name,
		     struct tape_err *reterr)
{
	struct lttng_event *event = lttng_event_create();
	int rc;

	if (!event)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	event->type = LTTNG_EVENT_TRACEPOINT;
	event->loglevel_type = LTTNG_EVENT_LOGLEVEL_ALL;
	event->loglevel = -1;
	snprintf(event->name, sizeof(event->name), "%s", name);
	rc = lttng_enable_event_with_exclusions(handle, event, channel, NULL, 0, NULL);
	lttng_event_destroy(event);
	return rc < 0 ? fail(rc, name, reterr) : 0;
}

static int set_up(const struct lttng_session_options *o, struct lttng_recording *rec,
		  struct tape_err *reterr)
{
	struct lttng_domain domain = ust_domain();
	struct lttng_handle *handle = lttng_create_handle(rec->name, &domain);
	uint64_t subbuf_bytes, subbufs;
	int rc;

	if (!handle)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	shape(o, &subbuf_bytes, &subbufs);
	rc = add_channel(rec, handle, "events", subbuf_bytes, subbufs, o->lossless, reterr);
	if (rc >= 0)
		rc = add_channel(rec, handle, "process", PROCESS_SUBBUF_BYTES, PROCESS_SUBBUFS,
				 o->lossless, reterr);
	for (size_t i = 0; rc >= 0 && i < NR(event_names); i++)
		rc = add_event(handle, "events", event_names[i], reterr);
	for (size_t i = 0; rc >= 0 && i < NR(process_names); i++)
		rc = add_event(handle, "process", process_names[i], reterr);
	lttng_destroy_handle(handle);
	return rc;
}

static int create(struct lttng_recording *rec, struct tape_err *reterr)
{
	struct lttng_session_descriptor *d =
		rec->snapshot ? lttng_session_descriptor_snapshot_local_create(rec->name,
									      rec->output)
			      : lttng_session_descriptor_local_create(rec->name, rec->output);
	enum lttng_error_code code;

	if (!d)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	code = lttng_create_session_ext(d);
	lttng_session_descriptor_destroy(d);
	rec->exists = code == LTTNG_OK;
	return rec->exists ? 0 : fail(-(int)code, "session", reterr);
}

int lttng_recording_start(const struct lttng_session_options *options, const char *home,
			  struct lttng_recording *ret_rec, struct tape_err *reterr)
{
	struct lttng_recording *rec = ret_rec;
	int rc = check_buffer(options, reterr);

	memset(rec, 0, sizeof(*rec));
	if (rc < 0)
		return rc;
	rec->snapshot = options->snapshot;
	snprintf(rec->name, sizeof(rec->name), "slabtape-%d", (int)getpid());
	if (asprintf(&rec->output, "%s/raw", home) < 0) {
		rec->output = NULL;
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	}
	rc = create(rec, reterr);
	if (rc >= 0)
		rc = set_up(options, rec, reterr);
	if (rc >= 0) {
		int code = lttng_start_tracing(rec->name);

		rc = code < 0 ? fail(code, "start", reterr) : 0;
	}
	return rc;
}

int lttng_recording_rotate(struct lttng_recording *rec, struct tape_err *reterr)
{
	int code = lttng_rotate_session(rec->name, NULL, &rec->rotation);

	return code < 0 ? fail(code, "rotation", reterr) : 0;
}

int lttng_recording_rotated(struct lttng_recording *rec, char **ret_folder,
			    struct tape_err *reterr)
{
	const struct lttng_trace_archive_location *location;
	enum lttng_rotation_state state;
	const char *path;

	if (lttng_rotation_handle_get_state(rec->rotation, &state) != LTTNG_ROTATION_STATUS_OK)
		return fail(-LTTNG_ERR_UNK, "rotation", reterr);
	if (state == LTTNG_ROTATION_STATE_ONGOING)
		return 0;
	if (state != LTTNG_ROTATION_STATE_COMPLETED ||
	    lttng_rotation_handle_get_archive_location(rec->rotation, &location) !=
		    LTTNG_ROTATION_STATUS_OK ||
	    lttng_trace_archive_location_local_get_absolute_path(location, &path) !=
		    LTTNG_TRACE_ARCHIVE_LOCATION_STATUS_OK)
		return tape_err_set(reterr, -TAPE_E_IO,
				    "LTTng, rotation: not completed; is there space below %s?",
				    rec->output);
	*ret_folder = strdup(path);
	lttng_rotation_handle_destroy(rec->rotation);
	rec->rotation = NULL;
	return *ret_folder ? 1 : tape_err_set(reterr, -ENOMEM, "out of memory");
}

static int write_snapshot(struct lttng_recording *rec, struct tape_err *reterr)
{
	int code = lttng_snapshot_record(rec->name, NULL, 0);

	return code < 0 ? fail(code, "snapshot", reterr) : 0;
}

int lttng_recording_stop(struct lttng_recording *rec, struct tape_err *reterr)
{
	const struct timespec step = {.tv_nsec = PENDING_STEP_NS};
	int code = lttng_stop_tracing_no_wait(rec->name);

	if (code < 0)
		return fail(code, "stop", reterr);
	for (int i = 0; i < PENDING_STEPS; i++) {
		code = lttng_data_pending(rec->name);
		if (code < 0)
			return fail(code, "end of data", reterr);
		if (!code)
			return rec->snapshot ? write_snapshot(rec, reterr) : 0;
		nanosleep(&step, NULL);
	}
	return tape_err_set(reterr, -TAPE_E_IO, "LTTng does not write out its buffers below %s",
			    rec->output);
}

void lttng_recording_fini(struct lttng_recording *rec, bool destroy)
{
	struct lttng_destruction_handle *handle = NULL;

	if (rec->rotation)
		lttng_rotation_handle_destroy(rec->rotation);
	if (rec->exists && destroy &&
	    lttng_destroy_session_ext(rec->name, &handle) == LTTNG_OK) {
		lttng_destruction_handle_wait_for_completion(handle, -1);
		lttng_destruction_handle_destroy(handle);
	}
	free(rec->output);
	memset(rec, 0, sizeof(*rec));
}
