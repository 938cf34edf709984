/* SPDX-License-Identifier: MIT */
/* The native back-end: start, end and fork of a process, and the code mapped into it. */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/ust/alive.h"
#include "capture/ust/emit.h"
#include "capture/ust/native_writer_internal.h"

/* ---- what describes the process ---- */

void writer_control(uint64_t address, uint64_t size, enum ring_kind kind, uint64_t clock)
{
	if (thread.left || writer_make_room(false))
		put(address, size, 0, kind, clock);
}

static void put_text(const char *text, uint64_t clock)
{
	size_t left = strlen(text);

	do {
		uint64_t words[2] = {0, 0};
		size_t n = left < RING_TEXT_BYTES ? left : RING_TEXT_BYTES;

		memcpy(words, text, n);
		left -= n;
		text += n;
		if (thread.left || writer_make_room(false))
			put(words[0], words[1], n | (left ? RING_TEXT_MORE : 0), RING_TEXT, clock);
	} while (left);
}

struct module_walk {
	const char *program;
	uint64_t clock, adds;
};

static int put_module(struct dl_phdr_info *info, size_t bytes, void *context)
{
	struct module_walk *w = context;
	uint64_t end = 0;

	(void)bytes;
	w->adds = info->dlpi_adds;
	if (info->dlpi_adds == writer.modules_seen)
		return 1;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_vaddr + p->p_memsz > end)
			end = p->p_vaddr + p->p_memsz;
	}
	writer_control(info->dlpi_addr, end, RING_MODULE, w->clock);
	put_text(info->dlpi_name && *info->dlpi_name ? info->dlpi_name : w->program, w->clock);
	return 0;
}

/* @clock: stamp for the records, 0 for now. */
static void put_modules(uint64_t clock)
{
	struct module_walk w = {.clock = clock};
	char program[4096];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

	program[n < 0 ? 0 : n] = '\0';
	w.program = program;
	if (clock) {
		writer_control((uint64_t)getpid(), (uint64_t)getppid(), RING_EXEC, clock);
		put_text(program, clock);
	}
	dl_iterate_phdr(put_module, &w);
	writer.modules_seen = w.adds;
}

/* ---- starting ---- */

/* Map the recorder's file; NULL when there is none or it is not ours. */
static struct ring_header *map_ring(const char *path)
{
	struct ring_header *h = MAP_FAILED;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && st.st_size >= (off_t)sizeof(*h))
		h = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (h == MAP_FAILED)
		return NULL;
	if (h->magic != RING_MAGIC || h->file_bytes != (uint64_t)st.st_size) {
		munmap(h, (size_t)st.st_size);
		return NULL;
	}
	return h;
}

void emit_ready(void)
{
	const char *path = getenv(RING_ENV);
	struct ring_header *h = path ? map_ring(path) : NULL;
	uint32_t *alive = h ? alive_page() : NULL;
	static uint32_t closed_forever;
	int saved = errno;
	uint32_t used;
	uint64_t clock;

	if (!alive || pthread_key_create(&writer.exit_key, writer_thread_exit)) {
		writer.closed = true;
		writer.alive = &closed_forever; /* emit_event() then keeps nothing */
		errno = saved;
		return;
	}
	writer.tsc = h->clock == RING_CLOCK_TSC;
	writer.ring = h;
	writer_identify();
	writer_close_early(&used, &clock);
	writer.alive = alive;
	atomic_fetch_add_explicit(&h->attached, 1, memory_order_relaxed);
	if (writer_attach())
		put_modules(clock);
	writer_flush_early(used, clock);
	errno = saved;
}

void emit_finish(void)
{
	if (writer.ring && *writer.alive && !writer.closed)
		put_modules(0);
}

/* ---- fork ---- */

void emit_fork_prepare(void)
{
	if (writer.ring && !writer.closed)
		thread.fork_slot = writer_claim(RING_SLOT_FORKING);
}

void emit_fork_parent(void)
{
	thread.fork_slot = NULL;
}

/*
 * The child's first record.  Its clock is that of the last thing this thread did before the
 * fork, so that everything the parent does afterwards comes later.
 */
void emit_fork_child(void)
{
	struct ring_slot *s = thread.fork_slot;
	uint32_t expected = RING_SLOT_FORKING;
	uint64_t clock;

	if (!writer.ring || writer.closed)
		return;
	thread.fork_slot = NULL;
	thread.slot = NULL;
	thread.left = 0;
	thread.exit_rounds = 0;
	*writer.alive = 1;
	writer_identify();
	clock = s ? s->floor_clock : 0;
	if (s) {
		int32_t parent = s->pid;

		s->pid = writer.pid;
		s->tid = writer.pid;
		s->foreign = writer.foreign;
		thread.pos = 0;
		if (thread.last_clock > clock)
			clock = thread.last_clock;
		/* The recorder gives up waiting after a while and takes the slot back. */
		if (atomic_compare_exchange_strong_explicit(&s->state, &expected, RING_SLOT_LIVE,
							    memory_order_acq_rel,
							    memory_order_relaxed))
			thread.slot = s;
		writer_control((uint64_t)getpid(), (uint64_t)parent, RING_FORK, clock);
	} else {
		writer_control((uint64_t)getpid(), (uint64_t)getppid(), RING_FORK, clock);
	}
}
