/* SPDX-License-Identifier: MIT */
/* Starting the recorded program. */
#ifndef SLABTAPE_CAPTURE_RECORD_CHILD_H
#define SLABTAPE_CAPTURE_RECORD_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

#define RECORD_ENV_MAX 16

/* Environment of the program beyond our own; names are static, values owned. */
struct record_env {
	struct {
		const char *name;
		char *value;
	} vars[RECORD_ENV_MAX];
	unsigned int nr;
};

int record_env_set(struct record_env *env, const char *name, const char *value,
		   struct tape_err *reterr) TAPE_MUST_CHECK;
/* @library goes before what LD_PRELOAD has: the first one gets the calls. */
int record_env_preload(struct record_env *env, const char *libraries,
		       struct tape_err *reterr) TAPE_MUST_CHECK;
void record_env_fini(struct record_env *env);

/*
 * Called with the new process's id before it starts @path; negative: it never does, and
 * record_spawn() returns that.
 */
typedef int (*record_gate)(pid_t pid, void *ctx, struct tape_err *reterr);

/*
 * Start @path with @argv, @env and signal mask @mask.  -errno of a failed exec (-ENOENT,
 * -EACCES, ...).  The caller waits for *ret_pid.  @gate may be NULL.
 */
int record_spawn(const char *path, const char *const *argv, const struct record_env *env,
		 const sigset_t *mask, record_gate gate, void *gate_ctx, pid_t *ret_pid,
		 struct tape_err *reterr) TAPE_MUST_CHECK;

/* Signals that a recorder reads instead of dying of them. */
struct record_signals {
	int fd; /* signalfd, not blocking; -1: none */
	bool masked;
	sigset_t old_mask; /* of the recorder before: the program's */
};
#define RECORD_SIGNALS_NONE ((struct record_signals){.fd = -1})

/* Block SIGCHLD, SIGINT, SIGTERM and SIGHUP and have them come through s->fd. */
int record_signals_block(struct record_signals *s, struct tape_err *reterr) TAPE_MUST_CHECK;
/* As before; what was never blocked is left alone. */
void record_signals_restore(struct record_signals *s);

#endif
