/* SPDX-License-Identifier: MIT */
/*
 * An independent count of malloc calls: preloaded behind the interposer under test, it counts what
 * reaches the C library, in a file that all processes share (COUNT_FILE: 4 uint64: allocs, frees,
 * allocs of the realloc kind, unused).  It shares no code with the interposer.
 *
 * A tracer allocates in the program too.  The interposer says how deep it is in its own work
 * (slabtape_guard_depth(): 1 while it passes a call of the program on); what is allocated deeper
 * is the tracer's, and so is its free, wherever that comes from.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct counts {
	_Atomic uint64_t allocs, frees, reallocs, pad;
};

static struct counts before_start;
static struct counts *counts = &before_start;

/* glibc's own names: no search needed, so nothing allocates before it can be counted. */
extern void *__libc_malloc(size_t);
extern void __libc_free(void *);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void *__libc_valloc(size_t);
extern void *__libc_pvalloc(size_t);

/* NULL in runs without an interposer. */
extern int slabtape_guard_depth(void) __attribute__((weak));

static bool is_tracer(void)
{
	return slabtape_guard_depth && slabtape_guard_depth() > 1;
}

/* Addresses the tracer holds: open addressing; 1 is a place that was given up. */
#define OWN_MAX (1u << 16)
static _Atomic uintptr_t own[OWN_MAX];

static void own_add(const void *p)
{
	for (uint32_t i = (uintptr_t)p >> 4;; i++) {
		_Atomic uintptr_t *at = &own[i % OWN_MAX];
		uintptr_t had = atomic_load(at);

		if (had <= 1 && atomic_compare_exchange_strong(at, &had, (uintptr_t)p))
			return;
	}
}

static bool own_remove(const void *p)
{
	for (uint32_t i = (uintptr_t)p >> 4;; i++) {
		uintptr_t had = atomic_load(&own[i % OWN_MAX]);

		if (!had)
			return false;
		if (had == (uintptr_t)p) {
			atomic_store(&own[i % OWN_MAX], 1);
			return true;
		}
	}
}

static void *count_alloc(void *p)
{
	if (p && is_tracer())
		own_add(p);
	else if (p)
		atomic_fetch_add(&counts->allocs, 1);
	return p;
}

static void count_free(const void *p)
{
	if (p && !own_remove(p) && !is_tracer())
		atomic_fetch_add(&counts->frees, 1);
}

void *malloc(size_t n)
{
	return count_alloc(__libc_malloc(n));
}

void *calloc(size_t a, size_t b)
{
	return count_alloc(__libc_calloc(a, b));
}

void free(void *p)
{
	count_free(p);
	__libc_free(p);
}

/* A realloc of something is a free and, when it gives memory or fails, an alloc. */
void *realloc(void *p, size_t n)
{
	void *to;

	count_free(p);
	to = __libc_realloc(p, n);
	if (to || (p && n))
		count_alloc(to ? to : p);
	atomic_fetch_add(&counts->reallocs, 1);
	return to;
}

void *memalign(size_t align, size_t n)
{
	return count_alloc(__libc_memalign(align, n));
}

void *aligned_alloc(size_t align, size_t n)
{
	return count_alloc(__libc_memalign(align, n));
}

int posix_memalign(void **ret, size_t align, size_t n)
{
	void *p;

	if (align % sizeof(void *) || align & (align - 1) || !align)
		return EINVAL;
	p = count_alloc(__libc_memalign(align, n));
	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}

void *valloc(size_t n)
{
	return count_alloc(__libc_valloc(n));
}

void *pvalloc(size_t n)
{
	return count_alloc(__libc_pvalloc(n));
}

/* First of all constructors; the recorder itself counts into its own memory. */
__attribute__((constructor(101))) static void start(void)
{
	const char *path = getenv("COUNT_FILE");
	char self[512] = "";
	struct counts *shared;
	int fd;

	if (!path || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 ||
	    !strcmp(strrchr(self, '/'), "/slabtape"))
		return;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		abort();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (shared == MAP_FAILED)
		abort();
	atomic_fetch_add(&shared->allocs, atomic_load(&before_start.allocs));
	atomic_fetch_add(&shared->frees, atomic_load(&before_start.frees));
	atomic_fetch_add(&shared->reallocs, atomic_load(&before_start.reallocs));
	counts = shared;
}
