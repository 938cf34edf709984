/* SPDX-License-Identifier: MIT */
/* The session daemon of a recording: started, spoken to, stopped whatever happens. */
#include <errno.h>
#include <fcntl.h>
#include <lttng/lttng.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/record_dir.h"
#include "capture/record_lttng_internal.h"

#define HOME_MAX 74 /* socket paths below it may have 107 characters */
#define RUN_DIR "/run/lttng"
#define STEP_NS 2000000
#define START_STEPS 5000 /* 10 s */
#define STOP_STEPS 4000	 /* 8 s */

/* Of liblttng-ctl, in no header: its own messages on standard error. */
extern int lttng_opt_quiet;

static void wait_a_step(void)
{
	const struct timespec step = {.tv_nsec = STEP_NS};

	nanosleep(&step, NULL);
}

/* ---- the folder ---- */

static int make_home(struct lttng_daemon *d, struct tape_err *reterr)
{
	const char *bases[] = {getenv("TMPDIR"), "/tmp", "/var/tmp"};

	return record_dir_make("slabtape-lttng", bases, sizeof(bases) / sizeof(bases[0]), HOME_MAX,
			       "LTTng's raw data ($TMPDIR if short, /tmp, /var/tmp)", &d->home, reterr);
}

static int make_control(struct lttng_daemon *d, struct tape_err *reterr)
{
	void *page = MAP_FAILED;
	int fd;

	if (asprintf(&d->control_path, "%s/control", d->home) < 0) {
		d->control_path = NULL;
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	}
	fd = open(d->control_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0 && !posix_fallocate(fd, 0, LTTNG_CONTROL_BYTES))
		page = mmap(NULL, LTTNG_CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		int error = errno ? errno : ENOSPC;

		if (fd >= 0)
			close(fd);
		return tape_err_set(reterr, -TAPE_E_IO, "%s: %s", d->control_path,
				    strerror(error));
	}
	close(fd);
	d->control = page;
	d->control->magic = LTTNG_CONTROL_MAGIC;
	return 0;
}

/* ---- the daemon ---- */

/* Root: an own /run/lttng.  The files of other mounts stay as they are. */
static int make_namespace(struct lttng_daemon *d, struct tape_err *reterr)
{
	if (unshare(CLONE_NEWNS))
		return tape_err_set(reterr, -TAPE_E_TRACER,
				    "a private session daemon of root needs its own mount "
				    "namespace: %s; run as an ordinary user, or use --native or "
				    "--system-daemon",
				    strerror(errno));
	/*
	 * In a chroot "/" may be no mount point; where what lies around it is shared, the mount
	 * below is then seen outside too, until lttng_daemon_fini() takes it away.
	 */
	if (mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL) && errno != EINVAL)
		return tape_err_set(reterr, -TAPE_E_TRACER, "mount namespace: %s", strerror(errno));
	if ((mkdir(RUN_DIR, 0755) && errno != EEXIST) ||
	    mount("slabtape", RUN_DIR, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755"))
		return tape_err_set(reterr, -TAPE_E_TRACER, "private " RUN_DIR ": %s",
				    strerror(errno));
	d->mounted = true;
	return 0;
}

static void exec_daemon(const struct lttng_daemon *d, pid_t parent)
{
	char log[HOME_MAX + 16];
	int null = open("/dev/null", O_RDWR), out;
	sigset_t none;

	setsid(); /* Ctrl-C of the terminal is not for it */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(125);
	snprintf(log, sizeof(log), "%s/log", d->home);
	out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(null, 0);
	dup2(out, 1);
	dup2(out, 2);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setenv("HOME", d->home, 1);
	unsetenv("LD_PRELOAD");
	execlp("lttng-sessiond", "lttng-sessiond", "--no-kernel", (char *)NULL);
	_exit(errno == ENOENT ? 127 : 126);
}

/* Last line that the daemon wrote, for error texts. */
static void last_words(const struct lttng_daemon *d, char *ret_text, size_t bytes)
{
	TAPE_CLEANUP(tape_fclosep) FILE *f = NULL;
	char path[HOME_MAX + 16], line[256];

	snprintf(ret_text, bytes, "it wrote nothing");
	snprintf(path, sizeof(path), "%s/log", d->home);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (*line)
			snprintf(ret_text, bytes, "%.190s", line);
	}
}

static int daemon_ended(struct lttng_daemon *d, int status, struct tape_err *reterr)
{
	char words[200];

	d->pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return tape_err_set(reterr, -TAPE_E_TRACER,
				    "lttng-sessiond: not found in PATH; install it (Debian: "
				    "apt-get install lttng-tools) or record with --native");
	last_words(d, words, sizeof(words));
	return tape_err_set(reterr, -TAPE_E_TRACER,
			    "lttng-sessiond ended at once (%.160s); record with --native", words);
}

static int wait_ready(struct lttng_daemon *d, struct tape_err *reterr)
{
	int status;

	for (int i = 0; i < START_STEPS; i++) {
		if (waitpid(d->pid, &status, WNOHANG) == d->pid)
			return daemon_ended(d, status, reterr);
		if (lttng_session_daemon_alive() == 1)
			return 0;
		wait_a_step();
	}
	return tape_err_set(reterr, -TAPE_E_TRACER,
			    "lttng-sessiond does not answer within %d s; record with --native",
			    START_STEPS / 500);
}

static int start_private(struct lttng_daemon *d, struct tape_err *reterr)
{
	pid_t self = getpid();
	int rc = getuid() ? 0 : make_namespace(d, reterr);

	if (rc < 0)
		return rc;
	/* For us, the daemon and the program alike. */
	setenv("LTTNG_HOME", d->home, 1);
	d->pid = fork();
	if (!d->pid)
		exec_daemon(d, self);
	if (d->pid < 0) {
		d->pid = 0;
		return tape_err_set(reterr, -errno, "fork: %s", strerror(errno));
	}
	return wait_ready(d, reterr);
}

int lttng_daemon_start(bool system, struct lttng_daemon *ret_daemon, struct tape_err *reterr)
{
	struct lttng_daemon *d = ret_daemon;
	int rc;

	memset(d, 0, sizeof(*d));
	d->system = system;
	lttng_opt_quiet = 1;
	rc = make_home(d, reterr);
	if (rc >= 0)
		rc = make_control(d, reterr);
	if (rc >= 0 && !system)
		rc = start_private(d, reterr);
	if (rc >= 0 && system && lttng_session_daemon_alive() != 1)
		rc = tape_err_set(reterr, -TAPE_E_TRACER,
				  "--system-daemon: no session daemon answers; start one "
				  "(lttng-sessiond --daemonize; users need the group \"tracing\" "
				  "for root's) or leave the option out");
	if (rc < 0)
		lttng_daemon_fini(d);
	return rc;
}

void lttng_daemon_stop(struct lttng_daemon *d)
{
	if (d->pid)
		kill(d->pid, SIGTERM);
}

void lttng_daemon_fini(struct lttng_daemon *d)
{
	lttng_daemon_stop(d);
	for (int i = 0; d->pid && i < STOP_STEPS; i++) {
		if (waitpid(d->pid, NULL, WNOHANG))
			d->pid = 0;
		else
			wait_a_step();
	}
	if (d->pid) { /* its consumer ends when the connection does */
		kill(d->pid, SIGKILL);
		waitpid(d->pid, NULL, 0);
	}
	if (d->mounted)
		umount2(RUN_DIR, MNT_DETACH);
	if (d->control)
		munmap(d->control, LTTNG_CONTROL_BYTES);
	if (d->home)
		record_dir_remove(d->home);
	free(d->home);
	free(d->control_path);
	memset(d, 0, sizeof(*d));
}
