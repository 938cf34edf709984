/* SPDX-License-Identifier: MIT */
/* The LTTng back-end of record: the session daemon and the recording session in it. */
#ifndef SLABTAPE_CAPTURE_RECORD_LTTNG_INTERNAL_H
#define SLABTAPE_CAPTURE_RECORD_LTTNG_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "capture/ust/lttng_control.h"

/* ---- record_lttng_daemon.c ---- */

/*
 * A private daemon: its home is a fresh folder.  An ordinary user's daemon has all its files
 * there.  The one of root always has them in /run/lttng, so root gets a mount namespace in which
 * that is an empty file system of its own; recorder and program are in it too.
 */
struct lttng_daemon {
	char *home;    /* folder of sockets, control page and raw data; removed at the end */
	char *control_path;
	struct lttng_control *control;
	pid_t pid;     /* 0: the system's, or not running */
	bool mounted;  /* /run/lttng is our own */
	bool system;   /* the one that is there is used, and left alone */
};

/*
 * Make the folder and the control page and start the daemon, ready to be spoken to.  Removes what
 * killed recorders of this user left.  -TAPE_E_TRACER: no daemon, no permission, with the remedy.
 */
int lttng_daemon_start(bool system, struct lttng_daemon *ret_daemon,
		       struct tape_err *reterr) TAPE_MUST_CHECK;
/* Ask it to end; it needs a second or two. */
void lttng_daemon_stop(struct lttng_daemon *d);
/* Wait until it has, kill it when it does not, and remove the folder.  A zeroed @d is accepted. */
void lttng_daemon_fini(struct lttng_daemon *d);

/* ---- record_lttng_session.c ---- */

struct lttng_rotation_handle;

struct lttng_session_options {
	uint64_t buffer_bytes; /* for all CPUs together; 0: 64 MiB a CPU, at most 1 GiB */
	bool lossless;
	bool snapshot; /* keep the last buffer_bytes, write them once at the end */
};

struct lttng_recording {
	char name[64];
	char *output; /* folder of raw data, owned */
	struct lttng_rotation_handle *rotation; /* under way; NULL: none is */
	bool exists, snapshot;
};

/* Create the session under @home and start it. */
int lttng_recording_start(const struct lttng_session_options *options, const char *home,
			  struct lttng_recording *ret_rec, struct tape_err *reterr) TAPE_MUST_CHECK;
int lttng_recording_rotate(struct lttng_recording *rec, struct tape_err *reterr) TAPE_MUST_CHECK;
/* 1: the rotation is complete, *ret_folder (malloc'ed) has what was recorded; 0: not yet. */
int lttng_recording_rotated(struct lttng_recording *rec, char **ret_folder,
			    struct tape_err *reterr) TAPE_MUST_CHECK;
/* Stop, and wait until everything is written below rec->output. */
int lttng_recording_stop(struct lttng_recording *rec, struct tape_err *reterr) TAPE_MUST_CHECK;
/* @destroy: the daemon lives on, so the session has to go. */
void lttng_recording_fini(struct lttng_recording *rec, bool destroy);

#endif
