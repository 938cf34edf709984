/* SPDX-License-Identifier: MIT */
#include "capture/record_kernel.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/host.h"
#include "capture/kcore.h"
#include "capture/record_check.h"
#include "capture/record_child.h"
#include "capture/record_kernel_internal.h"
#include "capture/record_tape.h"
#include "capture/source.h"
#include "store/tape.h"

#define POLL_MS 10
#define FLUSH_NS 1000000000u
#define SIZE_CHECK_NS 100000000u
#define FD_PATH_BYTES 32

struct session {
	const struct record_kernel_options *o;
	struct record_kernel_summary *sum;
	struct tape_err *reterr;
	char *program;
	struct tape *t;
	struct kernel_setup setup;
	struct kernel_reader reader;
	struct td_decoder decoder;
	struct ingest *ing;
	struct capture_source source;
	struct capture_options capture;
	struct import_job job;
	int before, after; /* dumps of the slab caches */
	pid_t pid;
	struct record_signals signals;
	bool tracing, ended;
	int status, signals_seen;
	uint64_t started_ns, stopped_ns, next_flush_ns, next_size_ns;
};

/* ---- before ---- */

/* What of all that happens is in the tape: meta.filter. */
static int store_filter(struct session *s)
{
	char text[160];
	int n;

	if (s->o->pid)
		n = snprintf(text, sizeof(text), "process %d", s->o->pid);
	else
		n = snprintf(text, sizeof(text), "%s",
			     s->o->argv && !s->o->all ? "processes of the command" : "");
	if (s->o->cache)
		snprintf(text + n, sizeof(text) - (size_t)n, "%scache %.80s", n ? ", " : "",
			 s->o->cache);
	return *text ? tape_meta_set(s->t, "filter", text, s->reterr) : 0;
}

static int open_tape(struct session *s)
{
	static const char *const none[] = {NULL};
	TAPE_CLEANUP(tape_freep)
	char *command = record_command_line(s->o->argv ? s->o->argv : none);
	int rc = tape_create(s->o->output, s->o->overwrite, &s->t, s->reterr);
	const struct {
		const char *key, *value;
	} rows[] = {
		{"source", "record"},
		{"backend", "tracefs"},
		{"clock", "mono"},
		{"command", command ? command : ""},
	};

	for (size_t i = 0; rc >= 0 && i < sizeof(rows) / sizeof(rows[0]); i++)
		rc = tape_meta_set(s->t, rows[i].key, rows[i].value, s->reterr);
	if (rc >= 0)
		rc = host_define_meta(s->t, s->reterr);
	return rc < 0 ? rc : store_filter(s);
}

static char *dump_path(int fd)
{
	char *path = NULL;

	return asprintf(&path, "/proc/self/fd/%d", fd) < 0 ? NULL : path;
}

/* Nodes of CPUs and, when the address of the direct map is known, of memory. */
static int describe_machine(struct session *s)
{
	struct utsname u;

	s->source.topology = kernel_topology();
	s->source.slab_before = dump_path(s->before);
	s->source.release = uname(&u) ? NULL : strdup(u.release);
	if (!s->source.topology || !s->source.slab_before || !s->source.release)
		return tape_err_set(s->reterr, -ENOMEM, "out of memory");
	s->capture.direct_map_base = kcore_direct_map("/proc/kcore");
	if (s->capture.direct_map_base || host_nodes() == 1) {
		s->source.zoneinfo = strdup("/proc/zoneinfo");
		if (!s->source.zoneinfo)
			return tape_err_set(s->reterr, -ENOMEM, "out of memory");
	}
	return 0;
}

/* Snapshot, then tracing: what is counted later is in the tape. */
static int start_tracing(struct session *s)
{
	int rc = kernel_slab_dump(&s->before, s->reterr);

	if (rc < 0)
		return rc;
	s->started_ns = record_now_ns();
	s->reader.started_ts = s->started_ns;
	s->next_flush_ns = s->started_ns + FLUSH_NS;
	s->tracing = true;
	return kernel_setup_start(&s->setup, s->reterr);
}

/* The program exists and waits. */
static int at_gate(pid_t pid, void *ctx, struct tape_err *reterr)
{
	struct session *s = ctx;
	int rc = s->o->all ? 0 : kernel_setup_pid(&s->setup, pid, false, reterr);

	return rc < 0 ? rc : start_tracing(s);
}

static int start(struct session *s)
{
	const struct record_env env = {0};
	int rc;

	if (s->o->argv) {
		rc = record_spawn(s->program, s->o->argv, &env, &s->signals.old_mask, at_gate, s, &s->pid,
				  s->reterr);
		if (rc < 0 && s->tracing)
			s->sum->exit_status = 126;
		return rc;
	}
	rc = s->o->pid ? kernel_setup_pid(&s->setup, s->o->pid, true, s->reterr) : 0;
	return rc < 0 ? rc : start_tracing(s);
}

static int start_ingest(struct session *s)
{
	int rc = describe_machine(s);

	s->job = (struct import_job){.source = &s->source,
				     .options = &s->capture,
				     .t = s->t,
				     .stats = &s->sum->stats};
	if (rc >= 0)
		rc = ingest_create(&s->job, &s->ing, s->reterr);
	if (rc < 0)
		return rc;
	s->decoder.ing = s->ing;
	s->decoder.stats = &s->sum->stats;
	if (s->setup.cache_names)
		ingest_only(s->ing, s->setup.cache_names);
	for (uint32_t i = 0; rc >= 0 && i < s->reader.cpus_nr; i++)
		rc = ingest_cpu(s->ing, s->reader.cpus[i].s.cpu, s->reterr);
	if (rc >= 0)
		rc = ingest_marker(s->ing, s->started_ns, 0, "slabtape:BEGIN", s->reterr);
	return rc;
}

static int prepare(struct session *s)
{
	const char *root;
	int rc = tracefs_find(&root, s->reterr);

	if (rc >= 0) {
		s->sum->stale = tracefs_remove_stale(root);
		rc = s->o->argv ? record_find_program(s->o->argv[0], &s->program, s->reterr) : 0;
		if (rc < 0)
			s->sum->exit_status = rc == -ENOENT ? 127 : 126;
	}
	if (rc >= 0)
		rc = open_tape(s);
	if (rc >= 0)
		rc = record_signals_block(&s->signals, s->reterr);
	if (rc >= 0)
		rc = kernel_setup(&s->setup, s->o, s->reterr);
	if (rc >= 0)
		rc = td_decoder_init(&s->decoder, &s->setup.td, s->reterr);
	if (rc >= 0)
		rc = kernel_reader_open(&s->reader, &s->setup, &s->decoder, s->reterr);
	return rc < 0 ? rc : start(s);
}

/* ---- while it runs ---- */

static void take_signals(struct session *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals.fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		/* From a terminal the whole group has it already. */
		if (s->pid && !s->ended && info.ssi_code != SI_KERNEL)
			kill(s->pid, (int)info.ssi_signo);
		if (s->signals_seen++)
			s->sum->exit_status = 128 + (int)info.ssi_signo;
	}
	if (s->pid && !s->ended && waitpid(s->pid, &s->status, WNOHANG) == s->pid)
		s->ended = true;
}

/* Tracing ends here; what the buffers hold still comes. */
static int stop_tracing(struct session *s, const char *why)
{
	int rc;

	if (!s->tracing)
		return 0;
	s->tracing = false;
	s->sum->stopped = why;
	rc = kernel_setup_stop(&s->setup, s->reterr);
	s->stopped_ns = record_now_ns();
	s->sum->elapsed_ns = s->stopped_ns - s->started_ns;
	if (rc >= 0)
		rc = kernel_slab_dump(&s->after, s->reterr);
	while (rc >= 0 && (rc = kernel_reader_poll(&s->reader, true, s->reterr)) > 0)
		;
	return rc;
}

static int check_limits(struct session *s, uint64_t now)
{
	if (s->o->duration_ns && now - s->started_ns >= s->o->duration_ns)
		return stop_tracing(s, "duration reached");
	if (s->o->max_bytes && now >= s->next_size_ns) {
		s->next_size_ns = now + SIZE_CHECK_NS;
		if (record_tape_bytes(tape_file(s->t)) >= s->o->max_bytes)
			return stop_tracing(s, "tape size reached");
	}
	if (now < s->next_flush_ns)
		return 0;
	s->next_flush_ns = now + FLUSH_NS;
	if (s->o->progress)
		s->o->progress(s->o->progress_ctx, s->reader.events, s->reader.lost,
			       now - s->started_ns);
	return tape_writer_flush(s->t, s->reterr);
}

/* Over?  With a command when it has ended, else with the recording. */
static bool over(const struct session *s)
{
	if (s->signals_seen > (s->pid ? 1 : 0))
		return true;
	return s->pid ? s->ended : !s->tracing;
}

/* One round.  1: look again at once. */
static int look(struct session *s)
{
	int rc = kernel_reader_poll(&s->reader, false, s->reterr), more = rc > 0;

	if (rc >= 0)
		rc = check_limits(s, record_now_ns());
	return rc < 0 ? rc : more;
}

/* After a failure only the command's end is waited for. */
static void give_up(struct session *s)
{
	if (s->tracing && kernel_setup_stop(&s->setup, NULL) < 0)
		s->sum->stopped = "failed"; /* the instance goes anyhow */
	s->tracing = false;
}

static int run(struct session *s)
{
	struct pollfd fd = {.fd = s->signals.fd, .events = POLLIN};
	int rc = start_ingest(s);

	for (;;) {
		take_signals(s);
		if (over(s))
			break;
		if (rc >= 0 && s->tracing)
			rc = look(s);
		if (rc < 0)
			give_up(s);
		if (rc < 0 && !s->pid)
			break;
		if (!over(s))
			poll(&fd, 1, rc > 0 ? 0 : s->tracing ? POLL_MS : -1);
	}
	if (rc < 0)
		return rc;
	return stop_tracing(s, s->pid && s->ended ? NULL : "interrupted");
}

/* ---- after it ---- */

static int check_silent(struct session *s)
{
	if (!s->pid || s->o->cache || s->reader.events || s->reader.lost)
		return 0;
	return tape_err_set(s->reterr, -TAPE_E_TRACER,
			    "%s: ran and not one event came: the kernel's kmem events do not "
			    "reach this process (a container without them?)",
			    s->program);
}

static int finish_tape(struct session *s)
{
	TAPE_CLEANUP(tape_freep) char *after = dump_path(s->after);
	int rc = check_silent(s);

	if (rc >= 0 && !after)
		rc = tape_err_set(s->reterr, -ENOMEM, "out of memory");
	if (rc >= 0)
		rc = kernel_reader_stats(&s->reader, s->stopped_ns, &s->sum->cpus,
					 &s->sum->cpus_nr, s->reterr);
	if (rc >= 0)
		rc = ingest_marker(s->ing, s->stopped_ns, 0, "slabtape:END", s->reterr);
	if (rc >= 0)
		rc = ingest_slab_after(s->ing, after, s->reterr);
	if (rc >= 0)
		rc = kernel_threads(&s->decoder, s->setup.in.root);
	if (rc >= 0)
		rc = ingest_finish(s->ing, s->reterr);
	if (rc >= 0 && s->sum->stopped)
		rc = tape_meta_set(s->t, "stopped", s->sum->stopped, s->reterr);
	return rc < 0 ? rc : tape_writer_finish(s->t, s->reterr);
}

static int program_exit(const struct session *s)
{
	if (!s->pid)
		return 0;
	if (!s->ended)
		return s->sum->exit_status;
	return WIFSIGNALED(s->status) ? 128 + WTERMSIG(s->status) : WEXITSTATUS(s->status);
}

/* @keep: the tape is whole; else nothing that could be taken for one stays. */
static void clean_up(struct session *s, bool keep)
{
	kernel_reader_close(&s->reader);
	kernel_setup_fini(&s->setup);
	ingest_destroy(s->ing);
	td_decoder_fini(&s->decoder);
	capture_source_fini(&s->source);
	if (keep)
		tape_close(s->t);
	else
		tape_discard(s->t);
	tape_closep(&s->before);
	tape_closep(&s->after);
	record_signals_restore(&s->signals);
	free(s->program);
}

int record_kernel(const struct record_kernel_options *options,
		  struct record_kernel_summary *ret_summary, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) struct session *s = calloc(1, sizeof(*s));
	int rc;

	memset(ret_summary, 0, sizeof(*ret_summary));
	ret_summary->exit_status = 125;
	if (!s)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	s->o = options;
	s->sum = ret_summary;
	s->reterr = reterr;
	s->before = s->after = -1;
	s->signals = RECORD_SIGNALS_NONE;
	rc = prepare(s);
	if (rc >= 0)
		rc = run(s);
	if (rc >= 0)
		rc = finish_tape(s);
	if (s->stopped_ns)
		ret_summary->finish_ns = record_now_ns() - s->stopped_ns;
	if (rc >= 0)
		ret_summary->exit_status = program_exit(s);
	else if (ret_summary->exit_status > 127)
		ret_summary->exit_status = 125;
	clean_up(s, rc >= 0);
	if (rc >= 0)
		ret_summary->tape_bytes = record_tape_bytes(options->output);
	return rc;
}
