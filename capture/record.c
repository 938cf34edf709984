/* SPDX-License-Identifier: MIT */
#include "capture/record.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/host.h"
#include "capture/record_backend.h"
#include "capture/record_check.h"
#include "capture/record_tape.h"
#include "store/tape.h"

#define FLUSH_NS 1000000000u
#define SIZE_CHECK_NS 100000000u
#define BUSY_EVENTS 50000u /* that many in one round: look again at once */

struct session {
	const struct record_options *o;
	struct record_summary *sum;
	struct tape_err *reterr;
	char *program;
	struct tape *t;
	struct heap *heap;
	void *backend;
	struct record_env env;
	pid_t pid;
	struct record_signals signals;
	bool ended;	/* the program did; status holds how */
	bool recording; /* events are still taken */
	int status, signals_seen;
	uint64_t started_ns, next_flush_ns, next_size_ns;
	uint64_t seen;
	int rc; /* first failure while the program ran */
};

/* ---- before the program ---- */

static int open_tape(struct session *s)
{
	TAPE_CLEANUP(tape_freep) char *command = record_command_line(s->o->argv);
	int rc = tape_create(s->o->output, s->o->overwrite, &s->t, s->reterr);
	const struct {
		const char *key, *value;
	} rows[] = {
		{"source", "record"},
		{"backend", s->o->backend->name},
		{"clock", s->o->backend->clock},
		{"command", command ? command : ""},
	};

	for (size_t i = 0; rc >= 0 && i < sizeof(rows) / sizeof(rows[0]); i++)
		rc = tape_meta_set(s->t, rows[i].key, rows[i].value, s->reterr);
	if (rc >= 0)
		rc = host_define_meta(s->t, s->reterr);
	if (rc >= 0)
		rc = host_define_cpus(s->t, s->reterr);
	return rc < 0 ? rc : heap_create(s->t, &s->heap, s->reterr);
}

static int prepare(struct session *s)
{
	int rc = record_find_program(s->o->argv[0], &s->program, s->reterr);

	if (rc < 0)
		s->sum->exit_status = rc == -ENOENT ? 127 : 126;
	if (rc >= 0)
		rc = record_check_program(s->program, s->reterr);
	if (rc >= 0)
		rc = open_tape(s);
	if (rc >= 0)
		rc = s->o->backend->start(s->o, &s->env, &s->backend, s->reterr);
	if (rc >= 0)
		rc = record_signals_block(&s->signals, s->reterr);
	if (rc < 0)
		return rc;
	rc = record_spawn(s->program, s->o->argv, &s->env, &s->signals.old_mask, NULL, NULL, &s->pid,
			  s->reterr);
	if (rc < 0)
		s->sum->exit_status = 126;
	return rc;
}

/* ---- while it runs ---- */

static void take_signals(struct session *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals.fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		/* From a terminal the whole group has it already. */
		if (info.ssi_code != SI_KERNEL)
			kill(s->pid, (int)info.ssi_signo);
		if (s->signals_seen++)
			s->sum->exit_status = 128 + (int)info.ssi_signo;
	}
	/* WNOWAIT keeps nothing: the status is taken once. */
	if (!s->ended && waitpid(s->pid, &s->status, WNOHANG) == s->pid)
		s->ended = true;
}

static void fail(struct session *s, int rc)
{
	if (!s->rc)
		s->rc = rc;
	s->recording = false;
}

/* The last look: everything that is there comes. */
static void stop_recording(struct session *s, const char *why)
{
	struct tape_err err = {0};
	int rc;

	if (!s->recording)
		return;
	s->recording = false;
	s->sum->stopped = why;
	s->sum->elapsed_ns = record_now_ns() - s->started_ns;
	rc = s->o->backend->poll(s->backend, s->heap, true, &s->seen, &err);
	if (rc < 0) {
		if (!s->rc && s->reterr)
			*s->reterr = err;
		fail(s, rc);
	}
}

static void check_limits(struct session *s, uint64_t now)
{
	if (s->o->duration_ns && now - s->started_ns >= s->o->duration_ns) {
		stop_recording(s, "duration reached");
	} else if (s->o->max_bytes && now >= s->next_size_ns) {
		s->next_size_ns = now + SIZE_CHECK_NS;
		if (record_tape_bytes(tape_file(s->t)) >= s->o->max_bytes)
			stop_recording(s, "tape size reached");
	}
	if (s->recording && now >= s->next_flush_ns) {
		int rc = tape_writer_flush(s->t, s->reterr);

		s->next_flush_ns = now + FLUSH_NS;
		if (rc < 0)
			fail(s, rc);
	}
}

static void poll_backend(struct session *s, int *ret_timeout_ms)
{
	uint64_t before = s->seen;
	int rc;

	*ret_timeout_ms = s->recording ? (int)s->o->backend->poll_ms : -1;
	if (!s->recording)
		return;
	rc = s->o->backend->poll(s->backend, s->heap, false, &s->seen, s->reterr);
	if (rc < 0)
		fail(s, rc);
	if (s->seen - before > BUSY_EVENTS)
		*ret_timeout_ms = 0;
}

static void run(struct session *s)
{
	struct pollfd fd = {.fd = s->signals.fd, .events = POLLIN};
	int timeout_ms;

	s->recording = true;
	s->started_ns = record_now_ns();
	s->next_flush_ns = s->started_ns + FLUSH_NS;
	for (;;) {
		take_signals(s);
		if (s->ended || s->signals_seen > 1)
			break;
		poll_backend(s, &timeout_ms);
		check_limits(s, record_now_ns());
		poll(&fd, 1, timeout_ms);
	}
	stop_recording(s, s->ended ? NULL : "interrupted");
}

/* ---- after it ---- */

static int silent(struct session *s)
{
	bool loaded = s->o->backend->attached(s->backend);

	return tape_err_set(s->reterr, -TAPE_E_TRACER,
			    "%s: ran and recorded nothing (the library was "
			    "%s): %s",
			    s->program, loaded ? "loaded" : "never loaded",
			    record_why_silent(s->program));
}

static int finish_tape(struct session *s)
{
	const struct heap_stats *stats = heap_stats(s->heap);
	int rc = s->rc;

	s->sum->stats = *stats;
	s->sum->events = stats->allocs + stats->frees;
	if (rc >= 0 && !s->sum->events && !stats->lost)
		rc = silent(s);
	if (rc >= 0)
		rc = heap_finish(s->heap, s->reterr);
	if (rc >= 0 && s->sum->stopped)
		rc = tape_meta_set(s->t, "stopped", s->sum->stopped, s->reterr);
	if (rc >= 0)
		rc = tape_writer_finish(s->t, s->reterr);
	return rc;
}

static int program_exit(const struct session *s)
{
	if (!s->ended)
		return s->sum->exit_status;
	return WIFSIGNALED(s->status) ? 128 + WTERMSIG(s->status) : WEXITSTATUS(s->status);
}

/* @keep: the tape is whole; else nothing that could be taken for one stays. */
static void clean_up(struct session *s, bool keep)
{
	if (s->backend)
		s->o->backend->destroy(s->backend);
	heap_destroy(s->heap);
	if (keep)
		tape_close(s->t);
	else
		tape_discard(s->t);
	record_env_fini(&s->env);
	record_signals_restore(&s->signals);
	free(s->program);
}

int record_run(const struct record_options *options, struct record_summary *ret_summary,
	       struct tape_err *reterr)
{
	struct session s = {.o = options, .sum = ret_summary, .reterr = reterr, .signals = RECORD_SIGNALS_NONE};
	uint64_t ended_ns;
	int rc;

	memset(ret_summary, 0, sizeof(*ret_summary));
	ret_summary->exit_status = 125;
	rc = prepare(&s);
	if (rc >= 0) {
		run(&s);
		ended_ns = record_now_ns();
		rc = finish_tape(&s);
		ret_summary->finish_ns = record_now_ns() - ended_ns;
		ret_summary->overhead_ns = options->backend->overhead_ns(s.backend);
		ret_summary->exit_status = rc < 0 ? 125 : program_exit(&s);
	}
	clean_up(&s, rc >= 0);
	if (rc >= 0)
		ret_summary->tape_bytes = record_tape_bytes(options->output);
	return rc;
}
