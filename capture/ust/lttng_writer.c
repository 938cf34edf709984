/* SPDX-License-Identifier: MIT */
/*
 * The LTTng back-end: events as tracepoints of libslabtape-lttng-probes.so (lttng_api.h).
 *
 * Who writes stands in each event, so that a forked child needs no registration of its own.  The
 * recorder switches the tracepoints on before the program starts; LTTng's constructor waits for
 * the daemon (LTTNG_UST_REGISTER_TIMEOUT=-1 in the recorder's environment), so they are on when
 * dlopen() returns, or a moment later.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "capture/ust/alive.h"
#include "capture/ust/early.h"
#include "capture/ust/emit.h"
#include "capture/ust/lttng_api.h"
#include "capture/ust/lttng_control.h"
#include "capture/ust/lttng_writer_internal.h"

#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define SAMPLE_EVENTS 4096u  /* every so many events of a thread one is measured */
#define SAMPLE_MAX_NS 20000u
#define ENABLE_STEP_NS 1000000
#define ENABLE_STEPS 5000 /* 5 s until the tracepoints have to be on */

static uint32_t not_ready, closed_forever;

static struct {
	const struct lttng_api *api; /* NULL: nothing is recorded */
	struct lttng_control *control;
	/*
	 * 1 while this process may write under its pid; a page that the kernel wipes in every
	 * child that gets its own memory, however it was made.
	 */
	uint32_t *alive;
	uint64_t modules_seen; /* the dynamic linker's count of loaded libraries */
	_Atomic uint32_t forks;
	int32_t pid;
} writer = {.alive = &not_ready};

/* Sync: own thread. */
static __thread struct {
	int32_t tid;
	uint32_t events, fork_serial;
	bool forking; /* LTTng's locks are held */
	sigset_t mask;
} thread __attribute__((tls_model("initial-exec")));

static void where(uint16_t *ret_cpu, uint8_t *ret_node)
{
#if defined(__x86_64__)
	unsigned int aux;

	/* Linux keeps node << 12 | CPU there. */
	(void)__rdtscp(&aux);
	*ret_cpu = aux & 0xfff;
	*ret_node = (uint8_t)(aux >> 12);
#else
	unsigned int cpu = 0, node = 0;

	(void)getcpu(&cpu, &node);
	*ret_cpu = (uint16_t)cpu;
	*ret_node = (uint8_t)node;
#endif
}

static int32_t own_tid(void)
{
	if (UNLIKELY(!thread.tid))
		thread.tid = (int32_t)syscall(SYS_gettid);
	return thread.tid;
}

static void emit(enum ring_kind kind, uint64_t address, uint64_t size, uint64_t ip)
{
	struct lttng_heap_event e = {.address = address,
				     .size = size,
				     .ip = ip,
				     .pid = writer.pid,
				     .tid = own_tid(),
				     .kind = (uint8_t)kind};

	where(&e.cpu, &e.node);
	if (kind >= RING_FREE)
		writer.api->free(&e);
	else
		writer.api->alloc(&e);
}

/* The cost of one event in a few thousand; one that was interrupted does not count. */
static __attribute__((noinline)) void emit_measured(enum ring_kind kind, uint64_t address,
						    uint64_t size, uint64_t ip)
{
	uint64_t clock_ns = ring_monotonic_ns(), began = ring_monotonic_ns(), cost;

	clock_ns = began - clock_ns; /* what asking for the time costs */
	emit(kind, address, size, ip);
	cost = ring_monotonic_ns() - began;
	if (cost > SAMPLE_MAX_NS || cost < clock_ns)
		return;
	atomic_fetch_add_explicit(&writer.control->samples, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&writer.control->sampled_ns, cost - clock_ns,
				  memory_order_relaxed);
}

/* A child that came without fork() (a bare clone): its memory is its own since then. */
static void adopt_child(void)
{
	struct lttng_process_event e = {.parent = writer.pid};

	*writer.alive = 1;
	thread.tid = 0;
	writer.pid = e.pid = getpid();
	e.tid = own_tid();
	writer.api->fork(&e);
}

/* Not in the ordinary state: early, closed, or a new child.  True: go on. */
static bool emit_slow(enum ring_kind kind, const void *address, size_t size, const void *ip)
{
	uint16_t cpu;
	uint8_t node;

	if (writer.alive == &not_ready) {
		where(&cpu, &node);
		early_keep(kind, address, size, ip, 1, cpu);
		return false;
	}
	if (!writer.api)
		return false;
	adopt_child();
	return true;
}

void emit_event(enum ring_kind kind, const void *address, size_t size, const void *ip)
{
	int saved = errno;

	if (UNLIKELY(!*writer.alive) && !emit_slow(kind, address, size, ip))
		return;
	if (!writer.api ||
	    UNLIKELY(atomic_load_explicit(&writer.control->stopped, memory_order_relaxed)))
		return;
	if (kind == RING_FREE && foreign_remove(address, ip))
		return;
	if (UNLIKELY(!(++thread.events & (SAMPLE_EVENTS - 1))))
		emit_measured(kind, (uintptr_t)address, size, (uintptr_t)ip);
	else
		emit(kind, (uintptr_t)address, size, (uintptr_t)ip);
	errno = saved;
}

bool emit_is_own(const void *ip)
{
	return guard_is_lttng(ip);
}

void emit_inner(const void *address, const void *ip)
{
	if (writer.api)
		foreign_add(address, ip);
}

/* ---- what describes the process ---- */

struct module_walk {
	const char *program;
	uint64_t adds;
};

static int emit_module(struct dl_phdr_info *info, size_t bytes, void *context)
{
	struct lttng_process_event e = {.pid = writer.pid, .base = info->dlpi_addr};
	struct module_walk *w = context;

	(void)bytes;
	w->adds = info->dlpi_adds;
	if (info->dlpi_adds == writer.modules_seen)
		return 1;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_vaddr + p->p_memsz > e.size)
			e.size = p->p_vaddr + p->p_memsz;
	}
	e.text = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : w->program;
	writer.api->module(&e);
	return 0;
}

/* @begins: and that this program does. */
static void emit_modules(bool begins)
{
	struct lttng_process_event e = {
		.pid = writer.pid, .tid = own_tid(), .parent = getppid()};
	char program[PATH_MAX];
	struct module_walk w = {.program = program};
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

	program[n < 0 ? 0 : n] = '\0';
	e.text = program;
	if (begins)
		writer.api->exec(&e);
	dl_iterate_phdr(emit_module, &w);
	writer.modules_seen = w.adds;
}

/* ---- starting ---- */

/* Map the recorder's page; NULL when there is none or it is not ours. */
static struct lttng_control *map_control(const char *path)
{
	struct lttng_control *c = MAP_FAILED;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && st.st_size >= LTTNG_CONTROL_BYTES)
		c = mmap(NULL, LTTNG_CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (c == MAP_FAILED)
		return NULL;
	if (c->magic != LTTNG_CONTROL_MAGIC) {
		munmap(c, LTTNG_CONTROL_BYTES);
		return NULL;
	}
	return c;
}

/* The probes lie beside this library.  Loading them starts LTTng. */
static const struct lttng_api *load_probes(void)
{
	static const char anchor;
	char path[PATH_MAX];
	const char *slash;
	void *library;
	Dl_info self;

	if (!dladdr(&anchor, &self) || !self.dli_fname)
		return NULL;
	slash = strrchr(self.dli_fname, '/');
	snprintf(path, sizeof(path), "%.*s" LTTNG_PROBES_FILE,
		 slash ? (int)(slash - self.dli_fname + 1) : 0, self.dli_fname);
	guard_reserve_low();
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	guard_release_low();
	return library ? dlsym(library, LTTNG_API_SYMBOL) : NULL;
}

static enum lttng_unready wait_enabled(const struct lttng_api *api, struct lttng_control *control)
{
	const struct timespec step = {.tv_nsec = ENABLE_STEP_NS};

	if (!api)
		return LTTNG_NO_LIBRARY;
	for (int i = 0; i < ENABLE_STEPS; i++) {
		if (api->enabled())
			return LTTNG_READY;
		if (atomic_load_explicit(&control->stopped, memory_order_relaxed))
			break;
		nanosleep(&step, NULL);
	}
	return LTTNG_NOT_ENABLED;
}

static void flush_early(uint32_t came)
{
	struct lttng_process_event loss = {.pid = writer.pid, .tid = own_tid()};

	for (uint32_t i = 0; i < came; i++) {
		const struct ring_event *e = early_at(i);

		if (e)
			emit(e->where >> 60, e->address, e->size, e->where & RING_IP_MASK);
		else
			loss.size++;
	}
	if (loss.size)
		writer.api->loss(&loss);
	early_release();
}

/* Nothing is recorded from here on; emit_event() then keeps nothing. */
static void give_up(struct lttng_control *control, enum lttng_unready reason)
{
	uint32_t came = early_close();

	writer.alive = &closed_forever;
	if (!control)
		return;
	atomic_fetch_add_explicit(&control->lost, came, memory_order_relaxed);
	atomic_store_explicit(&control->reason, reason, memory_order_relaxed);
}

void emit_ready(void)
{
	const char *path = getenv(LTTNG_CONTROL_ENV);
	struct lttng_control *control = path ? map_control(path) : NULL;
	const struct lttng_api *api = NULL;
	enum lttng_unready reason = LTTNG_NO_LIBRARY;
	uint32_t *alive = control ? alive_page() : NULL;
	int saved = errno;

	if (alive && !atomic_load_explicit(&control->stopped, memory_order_relaxed)) {
		atomic_fetch_add_explicit(&control->attached, 1, memory_order_relaxed);
		api = load_probes();
		reason = wait_enabled(api, control);
	}
	if (reason != LTTNG_READY) {
		give_up(control, reason);
		errno = saved;
		return;
	}
	atomic_fetch_add_explicit(&control->ready, 1, memory_order_relaxed);
	writer.control = control;
	writer.pid = getpid();
	foreign_init();
	writer.api = api;
	api->at_end(interposer_end);
	emit_modules(true);
	flush_early(early_close());
	writer.alive = alive;
	errno = saved;
}

static bool is_open(void)
{
	return writer.api && *writer.alive &&
	       !atomic_load_explicit(&writer.control->stopped, memory_order_relaxed);
}

void emit_finish(void)
{
	if (is_open())
		emit_modules(false);
}

/* ---- fork ---- */

void emit_fork_prepare(void)
{
	struct lttng_process_event e = {.pid = writer.pid, .tid = own_tid()};

	if (!writer.api)
		return;
	thread.fork_serial =
		atomic_fetch_add_explicit(&writer.forks, 1, memory_order_relaxed) + 1;
	e.serial = thread.fork_serial;
	if (is_open())
		writer.api->fork_begin(&e);
	thread.forking = true;
	writer.api->before_fork(&thread.mask);
}

void emit_fork_parent(void)
{
	if (thread.forking)
		writer.api->after_fork_parent(&thread.mask);
	thread.forking = false;
}

void emit_fork_child(void)
{
	struct lttng_process_event e = {.parent = writer.pid, .serial = thread.fork_serial};

	if (!thread.forking)
		return;
	thread.forking = false;
	guard_child();
	writer.api->after_fork_child(&thread.mask);
	*writer.alive = 1;
	thread.tid = 0;
	writer.pid = e.pid = getpid();
	e.tid = own_tid();
	if (is_open())
		writer.api->fork(&e);
}
