/* SPDX-License-Identifier: MIT */
/*
 * An independent count of malloc calls: preloaded behind the interposer under test, it counts what
 * reaches the C library, in a file that all processes share (COUNT_FILE: 4 uint64: allocs, frees,
 * allocs of the realloc kind, unused).  It shares no code with the interposer.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
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

static void *count_alloc(void *p)
{
	if (p)
		atomic_fetch_add(&counts->allocs, 1);
	return p;
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
	if (p)
		atomic_fetch_add(&counts->frees, 1);
	__libc_free(p);
}

/* A realloc of something is a free and, when it gives memory or fails, an alloc. */
void *realloc(void *p, size_t n)
{
	void *to;

	if (p)
		atomic_fetch_add(&counts->frees, 1);
	to = __libc_realloc(p, n);
	if (to || (p && n))
		atomic_fetch_add(&counts->allocs, 1);
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
