/* SPDX-License-Identifier: MIT */
/*
 * The preloaded library: malloc and its family, reported to a back-end (emit.h).
 *
 * An alloc is reported after the real function returned, a free before the real one is called,
 * so that the reports of one address never cross.  realloc() is a free before and an alloc after;
 * when it fails, the old object is reported alive again.  The guard keeps what an allocator or a
 * back-end allocates for itself out of the recording.
 *
 * While dlsym() looks for the real functions it may allocate: such memory comes from a small
 * static block and is never given back.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capture/ust/emit.h"

#define PUBLIC __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define BOOT_BYTES 65536
#define BOOT_ALIGN 16

static struct {
	void *(*malloc)(size_t);
	void (*free)(void *);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void *(*memalign)(size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
	bool resolved;
} real;

static bool ending; /* written when the process exits */

/* Sync: own thread.  initial-exec: reading it must not allocate. */
static __thread int guard __attribute__((tls_model("initial-exec")));
static __thread int resolving __attribute__((tls_model("initial-exec")));

static _Alignas(4096) char boot[BOOT_BYTES];
static _Atomic size_t boot_used;

static bool is_boot(const void *p)
{
	return (const char *)p >= boot && (const char *)p < boot + BOOT_BYTES;
}

/* Zeroed memory with its size in the word before it. */
static void *boot_alloc(size_t bytes, size_t align)
{
	size_t at, start;

	if (align < BOOT_ALIGN)
		align = BOOT_ALIGN;
	at = atomic_load_explicit(&boot_used, memory_order_relaxed);
	do {
		start = (at + BOOT_ALIGN + align - 1) & ~(align - 1);
		if (bytes > BOOT_BYTES || start + bytes > BOOT_BYTES) {
			errno = ENOMEM;
			return NULL;
		}
	} while (!atomic_compare_exchange_weak_explicit(
		&boot_used, &at, start + bytes, memory_order_relaxed, memory_order_relaxed));
	memcpy(boot + start - sizeof(size_t), &bytes, sizeof(bytes));
	return boot + start;
}

static size_t boot_bytes(const void *p)
{
	size_t bytes;

	memcpy(&bytes, (const char *)p - sizeof(size_t), sizeof(bytes));
	return bytes;
}

#define RESOLVE(name) (*(void **)(void *)&real.name = dlsym(RTLD_NEXT, #name))

static void resolve(void)
{
	if (real.resolved)
		return;
	resolving++;
	RESOLVE(malloc);
	RESOLVE(free);
	RESOLVE(calloc);
	RESOLVE(realloc);
	RESOLVE(memalign);
	RESOLVE(aligned_alloc);
	RESOLVE(posix_memalign);
	RESOLVE(valloc);
	RESOLVE(pvalloc);
	resolving--;
	real.resolved = true;
}

/* Who calls: the program; the tracer within its own work; the tracer putting itself away. */
enum caller { CALLER_PROGRAM = 0, CALLER_INNER, CALLER_ENDING };

/* Only a call of the program's is reported. */
static enum caller enter(const void *ip)
{
	if (UNLIKELY(!real.resolved))
		resolve();
	if (UNLIKELY(ending) && !guard && emit_is_own(ip)) {
		guard += 2;
		return CALLER_ENDING;
	}
	return guard++ ? CALLER_INNER : CALLER_PROGRAM;
}

static void leave(enum caller caller)
{
	guard -= caller == CALLER_ENDING ? 2 : 1;
}

/*
 * For the test that counts what reaches the C library: 1 in calls that are recorded, more in the
 * tracer's own.
 */
PUBLIC int slabtape_guard_depth(void);
PUBLIC int slabtape_guard_depth(void)
{
	return guard;
}

bool interposer_guarded(void)
{
	return guard != 0;
}

void interposer_hold(void)
{
	guard++;
}

void interposer_release(void)
{
	guard--;
}

void interposer_end(void)
{
	ending = true;
}

static void *report(enum caller caller, enum ring_kind kind, void *p, size_t size, const void *ip)
{
	if (p && caller == CALLER_PROGRAM)
		emit_event(kind, p, size, ip);
	else if (p)
		emit_inner(p, ip);
	leave(caller);
	return p;
}

PUBLIC void *malloc(size_t size)
{
	enum caller caller;

	if (UNLIKELY(resolving))
		return boot_alloc(size, BOOT_ALIGN);
	caller = enter(CALLER);
	return report(caller, RING_MALLOC, real.malloc(size), size, CALLER);
}

PUBLIC void free(void *p)
{
	enum caller caller;

	if (!p || UNLIKELY(is_boot(p)))
		return;
	caller = enter(CALLER);
	if (caller == CALLER_PROGRAM)
		emit_event(RING_FREE, p, 0, CALLER);
	real.free(p);
	leave(caller);
}

PUBLIC void *calloc(size_t nmemb, size_t size)
{
	size_t bytes;
	enum caller caller;

	if (UNLIKELY(__builtin_mul_overflow(nmemb, size, &bytes))) {
		errno = ENOMEM;
		return NULL;
	}
	if (UNLIKELY(resolving))
		return boot_alloc(bytes, BOOT_ALIGN);
	caller = enter(CALLER);
	return report(caller, RING_CALLOC, real.calloc(nmemb, size), bytes, CALLER);
}

/* Memory of the static block moves into the real heap, or grows inside the block. */
static void *realloc_boot(void *p, size_t size)
{
	void *to = resolving ? boot_alloc(size, BOOT_ALIGN) : malloc(size);

	if (to && p) {
		size_t had = boot_bytes(p);

		memcpy(to, p, had < size ? had : size);
	}
	return to;
}

static void *realloc_from(void *p, size_t size, const void *ip)
{
	enum caller caller;
	void *to;

	if (UNLIKELY(resolving || (p && is_boot(p))))
		return realloc_boot(p, size);
	caller = enter(ip);
	if (caller != CALLER_PROGRAM) {
		to = real.realloc(p, size);
		leave(caller);
		return to;
	}
	if (p)
		emit_event(RING_FREE_REALLOC, p, 0, ip);
	to = real.realloc(p, size);
	if (to)
		emit_event(RING_REALLOC, to, size, ip);
	else if (p && size)
		emit_event(RING_RESTORE, p, 0, ip);
	leave(caller);
	return to;
}

PUBLIC void *realloc(void *p, size_t size)
{
	return realloc_from(p, size, CALLER);
}

PUBLIC void *reallocarray(void *p, size_t nmemb, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(nmemb, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc_from(p, bytes, CALLER);
}

PUBLIC void *memalign(size_t align, size_t size)
{
	enum caller caller;

	if (UNLIKELY(resolving))
		return boot_alloc(size, align);
	caller = enter(CALLER);
	return report(caller, RING_MEMALIGN, real.memalign(align, size), size, CALLER);
}

PUBLIC void *aligned_alloc(size_t align, size_t size)
{
	enum caller caller;

	if (UNLIKELY(resolving))
		return boot_alloc(size, align);
	caller = enter(CALLER);
	return report(caller, RING_MEMALIGN, real.aligned_alloc(align, size), size, CALLER);
}

PUBLIC int posix_memalign(void **ret, size_t align, size_t size)
{
	enum caller caller = enter(CALLER);
	int rc = real.posix_memalign(ret, align, size);

	report(caller, RING_MEMALIGN, rc ? NULL : *ret, size, CALLER);
	return rc;
}

PUBLIC void *valloc(size_t size)
{
	enum caller caller = enter(CALLER);

	return report(caller, RING_MEMALIGN, real.valloc(size), size, CALLER);
}

PUBLIC void *pvalloc(size_t size)
{
	enum caller caller = enter(CALLER);

	return report(caller, RING_MEMALIGN, real.pvalloc(size), size, CALLER);
}

static void fork_prepare(void)
{
	guard++;
	emit_fork_prepare();
	guard--;
}

static void fork_parent(void)
{
	guard++;
	emit_fork_parent();
	guard--;
}

static void fork_child(void)
{
	guard++;
	emit_fork_child();
	guard--;
}

__attribute__((constructor(101))) static void start(void)
{
	guard++;
	resolve();
	emit_ready();
	pthread_atfork(fork_prepare, fork_parent, fork_child);
	guard--;
}

__attribute__((destructor(101))) static void finish(void)
{
	guard++;
	emit_finish();
	guard--;
}
