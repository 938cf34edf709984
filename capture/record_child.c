/* SPDX-License-Identifier: MIT */
#include "capture/record_child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/record_backend.h"

#ifndef SLABTAPE_LIBDIR
#define SLABTAPE_LIBDIR "lib"
#endif

int record_env_set(struct record_env *env, const char *name, const char *value,
		   struct tape_err *reterr)
{
	char *copy = strdup(value);

	if (!copy || env->nr == RECORD_ENV_MAX) {
		free(copy);
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	}
	env->vars[env->nr].name = name;
	env->vars[env->nr++].value = copy;
	return 0;
}

int record_env_preload(struct record_env *env, const char *libraries, struct tape_err *reterr)
{
	const char *had = getenv("LD_PRELOAD");
	char *all;
	int rc;

	if (asprintf(&all, "%s%s%s", libraries, had && *had ? ":" : "", had ? had : "") < 0)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	rc = record_env_set(env, "LD_PRELOAD", all, reterr);
	free(all);
	return rc;
}

void record_env_fini(struct record_env *env)
{
	for (unsigned int i = 0; i < env->nr; i++)
		free(env->vars[i].value);
	env->nr = 0;
}

int record_find_library(const char *name, char **ret_path, struct tape_err *reterr)
{
	const char *given = getenv("SLABTAPE_LIBDIR");
	char self[4096], *slash;
	const char *tries[3] = {given, self, NULL};
	char installed[4200];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n < 0 ? 0 : n] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	snprintf(installed, sizeof(installed), "%s/../" SLABTAPE_LIBDIR "/slabtape", self);
	tries[2] = installed;
	for (int i = 0; i < 3; i++) {
		char *path;

		if (!tries[i] || asprintf(&path, "%s/%s", tries[i], name) < 0)
			continue;
		if (!access(path, R_OK)) {
			if (strpbrk(path, " :")) {
				tape_err_set(reterr, -TAPE_E_TRACER,
					     "%s: a path with a space or colon "
					     "cannot be preloaded; set SLABTAPE_LIBDIR",
					     path);
				free(path);
				return -TAPE_E_TRACER;
			}
			*ret_path = path;
			return 0;
		}
		free(path);
	}
	return tape_err_set(reterr, -TAPE_E_TRACER,
			    "%s: not found beside slabtape nor in %s; set "
			    "SLABTAPE_LIBDIR to the folder that has it",
			    name, installed);
}

/* In the child: replace the process; on failure tell errno through @report_fd. */
static void exec_program(const char *path, const char *const *argv, const struct record_env *env,
			 const sigset_t *mask, int report_fd)
{
	char *const *args = (char *const *)(uintptr_t)argv;
	int error;

	for (unsigned int i = 0; i < env->nr; i++)
		setenv(env->vars[i].name, env->vars[i].value, 1);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execv(path, args);
	error = errno;
	if (error == ENOEXEC) { /* a script without #!, as execvp() runs it */
		size_t n = 0;
		const char **shell;

		while (argv[n])
			n++;
		shell = calloc(n + 2, sizeof(*shell));
		if (shell) {
			shell[0] = "sh";
			shell[1] = path;
			for (size_t i = 1; i < n; i++)
				shell[i + 1] = argv[i];
			execv("/bin/sh", (char *const *)(uintptr_t)shell);
			error = errno;
		}
	}
	if (write(report_fd, &error, sizeof(error)) < 0)
		_exit(125);
	_exit(126);
}

/* Wait until the parent opens the gate; without it the child ends. */
static void wait_at_gate(int gate_fd)
{
	char opened = 'n';

	while (read(gate_fd, &opened, 1) < 0)
		if (errno != EINTR)
			_exit(125);
	if (opened != 'g')
		_exit(125);
}

/* Let the child go, or not; then learn how its exec went. */
static int open_gate(pid_t pid, int gate_fd, record_gate gate, void *ctx, struct tape_err *reterr)
{
	int rc = gate ? gate(pid, ctx, reterr) : 0;

	if (write(gate_fd, rc < 0 ? "n" : "g", 1) < 0 && rc >= 0)
		rc = tape_err_set(reterr, -errno, "pipe: %s", strerror(errno));
	return rc;
}

static int exec_error(int report_fd)
{
	int error = 0;
	ssize_t n;

	do {
		n = read(report_fd, &error, sizeof(error));
	} while (n < 0 && errno == EINTR);
	return error;
}

int record_spawn(const char *path, const char *const *argv, const struct record_env *env,
		 const sigset_t *mask, record_gate gate, void *gate_ctx, pid_t *ret_pid,
		 struct tape_err *reterr)
{
	int report[2], go[2], error, rc;
	pid_t pid;

	if (pipe2(report, O_CLOEXEC))
		return tape_err_set(reterr, -errno, "pipe: %s", strerror(errno));
	if (pipe2(go, O_CLOEXEC)) {
		error = errno;
		close(report[0]);
		close(report[1]);
		return tape_err_set(reterr, -error, "pipe: %s", strerror(error));
	}
	pid = fork();
	if (!pid) {
		close(go[1]);
		wait_at_gate(go[0]);
		exec_program(path, argv, env, mask, report[1]);
	}
	error = pid < 0 ? errno : 0;
	close(report[1]);
	rc = error ? 0 : open_gate(pid, go[1], gate, gate_ctx, reterr);
	close(go[0]); /* open until here: a child that was killed raises no SIGPIPE */
	close(go[1]);
	if (!error && rc >= 0)
		error = exec_error(report[0]);
	close(report[0]);
	if (!error && rc >= 0) {
		*ret_pid = pid;
		return 0;
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return rc < 0 ? rc : tape_err_set(reterr, -error, "%s: %s", path, strerror(error));
}

int record_signals_block(struct record_signals *s, struct tape_err *reterr)
{
	static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(&set, numbers[i]);
	if (sigprocmask(SIG_BLOCK, &set, &s->old_mask))
		return tape_err_set(reterr, -errno, "signals: %s", strerror(errno));
	s->masked = true;
	s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->fd < 0 ? tape_err_set(reterr, -errno, "signalfd: %s", strerror(errno)) : 0;
}

void record_signals_restore(struct record_signals *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->masked)
		sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
	*s = RECORD_SIGNALS_NONE;
}
