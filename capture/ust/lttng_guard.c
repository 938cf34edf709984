/* SPDX-License-Identifier: MIT */
/*
 * Keeping LTTng and the recorded program out of each other's way: file descriptors that programs
 * close wholesale, LTTng's threads, and both in forked children, which have the first but not the
 * second.
 *
 * LTTng writes to some of its descriptors when a buffer is full: were they closed and used again
 * by the program, it would write into the program's files.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "capture/ust/emit.h"
#include "capture/ust/lttng_writer_internal.h"

#define PUBLIC __attribute__((visibility("default")))
#define LOW_FDS 64	  /* descriptors below are the program's */
#define HELD_FDS 4096	  /* descriptors above are not protected */
#define APP_SOCKET "lttng-ust-sock"

/* Sync: written by a constructor, single threaded; then atomically. */
static struct {
	_Atomic uint64_t held[HELD_FDS / 64]; /* bit set: LTTng's */
	uint64_t reserved; /* bit set: below LOW_FDS, taken by us */
	bool child;
} fds;

static bool is_held(int fd)
{
	return fd >= LOW_FDS && fd < HELD_FDS &&
	       atomic_load_explicit(&fds.held[fd / 64], memory_order_relaxed) >> fd % 64 & 1;
}

/* ---- the low ones ---- */

void guard_reserve_low(void)
{
	struct rlimit limit;
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < 4 * LOW_FDS) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while (fd >= 0 && fd < LOW_FDS) {
		fds.reserved |= UINT64_C(1) << fd;
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	}
	if (fd >= 0)
		close(fd);
}

/* Every descriptor from LOW_FDS on that is open now. */
static void hold_open_ones(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (fd >= LOW_FDS && fd < HELD_FDS && fd != dirfd(d))
			atomic_fetch_or_explicit(&fds.held[fd / 64], UINT64_C(1) << fd % 64,
						 memory_order_relaxed);
	}
	if (d)
		closedir(d);
}

void guard_release_low(void)
{
	if (fds.reserved)
		hold_open_ones();
	for (int fd = 0; fd < LOW_FDS; fd++)
		if (fds.reserved >> fd & 1)
			close(fd);
	fds.reserved = 0;
}

/* ---- what programs close ---- */

bool guard_is_lttng(const void *address)
{
	Dl_info info;

	return dladdr(address, &info) && info.dli_fname && strstr(info.dli_fname, "liblttng-ust");
}

PUBLIC int close(int fd)
{
	static int (*real)(int);

	if (!real)
		*(void **)(void *)&real = dlsym(RTLD_NEXT, "close");
	if (is_held(fd)) {
		if (!interposer_guarded() && !guard_is_lttng(__builtin_return_address(0))) {
			errno = EBADF;
			return -1;
		}
		atomic_fetch_and_explicit(&fds.held[fd / 64], ~(UINT64_C(1) << fd % 64),
					  memory_order_relaxed);
	}
	return real(fd);
}

static int real_close_range(unsigned int first, unsigned int last, int flags)
{
	static int (*real)(unsigned int, unsigned int, int);

	if (!real)
		*(void **)(void *)&real = dlsym(RTLD_NEXT, "close_range");
	return real(first, last, flags);
}

/* In pieces, between those that are held.  LTTng's are closed by exec anyway. */
PUBLIC int close_range(unsigned int first, unsigned int last, int flags)
{
	unsigned int from = first;
	int rc = 0;

	if (flags & (int)CLOSE_RANGE_CLOEXEC || interposer_guarded() || first > last)
		return real_close_range(first, last, flags);
	for (unsigned int fd = first < LOW_FDS ? LOW_FDS : first; fd < HELD_FDS && fd <= last;
	     fd++) {
		if (!is_held((int)fd))
			continue;
		if (fd > from)
			rc |= real_close_range(from, fd - 1, flags);
		from = fd + 1;
	}
	return from <= last ? rc | real_close_range(from, last, flags) : rc;
}

PUBLIC void closefrom(int lowest)
{
	int saved = errno;

	close_range(lowest < 0 ? 0 : (unsigned int)lowest, ~0U, 0);
	errno = saved;
}

/* ---- threads ---- */

struct own_thread {
	void *(*run)(void *);
	void *argument;
};

static void *run_own_thread(void *context)
{
	struct own_thread own = *(struct own_thread *)context;

	interposer_hold();
	free(context);
	return own.run(own.argument);
}

/* A thread that LTTng starts stays unrecorded. */
PUBLIC int pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
			  void *(*run)(void *), void *argument)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	struct own_thread *own;
	int rc;

	if (!real)
		*(void **)(void *)&real = dlsym(RTLD_NEXT, "pthread_create");
	if (!interposer_guarded())
		return real(ret_thread, attributes, run, argument);
	own = malloc(sizeof(*own));
	if (!own)
		return EAGAIN;
	*own = (struct own_thread){run, argument};
	rc = real(ret_thread, attributes, run_own_thread, own);
	if (rc)
		free(own);
	return rc;
}

/* At its end LTTng cancels its threads, also in a child that never had them. */
PUBLIC int pthread_cancel(pthread_t thread)
{
	static int (*real)(pthread_t);
	bool own = guard_is_lttng(__builtin_return_address(0));
	int rc;

	if (fds.child && own)
		return 0;
	if (!real)
		*(void **)(void *)&real = dlsym(RTLD_NEXT, "pthread_cancel");
	if (own)
		interposer_hold(); /* the first one loads a library */
	rc = real(thread);
	if (own)
		interposer_release();
	return rc;
}

/* ---- children ---- */

static bool is_app_socket(int fd)
{
	struct sockaddr_un peer = {.sun_family = AF_UNSPEC};
	socklen_t bytes = sizeof(peer) - 1;

	return !getpeername(fd, (struct sockaddr *)(void *)&peer, &bytes) &&
	       peer.sun_family == AF_UNIX && strstr(peer.sun_path, APP_SOCKET);
}

void guard_child(void)
{
	int null = -1;

	fds.child = true;
	for (int fd = LOW_FDS; fd < HELD_FDS; fd++) {
		if (fd % 64 == 0 &&
		    !atomic_load_explicit(&fds.held[fd / 64], memory_order_relaxed)) {
			fd += 63;
			continue;
		}
		if (!is_held(fd) || !is_app_socket(fd))
			continue;
		/* Another file in its place: the number stays taken. */
		if (null < 0)
			null = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (null >= 0)
			dup3(null, fd, O_CLOEXEC);
	}
	if (null >= 0)
		close(null);
}
