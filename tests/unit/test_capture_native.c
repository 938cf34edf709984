/* SPDX-License-Identifier: MIT */
/* The recorder's side of the shared memory of `record --native`, with slots written here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/heap.h"
#include "capture/native.h"
#include "capture/ust/native_ring.h"
#include "store/tape.h"

struct recorder {
	struct tape *t;
	struct heap *h;
	struct native *n;
	struct ring_header *ring; /* as a recorded program maps it */
	size_t bytes;
};

static struct recorder begin(void)
{
	const struct native_options options = { 0 };
	struct recorder r = { 0 };
	struct stat st;
	int fd;

	assert_int_equal(tape_create(NULL, false, &r.t, NULL), 0);
	assert_int_equal(heap_create(r.t, &r.h, NULL), 0);
	assert_int_equal(native_create(&options, &r.n, NULL), 0);
	fd = open(native_path(r.n), O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && !fstat(fd, &st));
	r.bytes = (size_t)st.st_size;
	r.ring = mmap(NULL, r.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(r.ring, MAP_FAILED);
	close(fd);
	return r;
}

static void end(struct recorder *r)
{
	munmap(r->ring, r->bytes);
	native_destroy(r->n);
	heap_destroy(r->h);
	tape_close(r->t);
}

/* A slot of this thread, claimed at @floor_clock; its one event is an allocation. */
static void put_slot(struct recorder *r, uint32_t i, uint64_t floor_clock)
{
	struct ring_slot *slot = &ring_slots(r->ring)[i];
	uint32_t chunk = ring_pop(r->ring);

	assert_int_not_equal(chunk, UINT32_MAX);
	slot->pid = getpid();
	slot->tid = (int32_t)syscall(SYS_gettid);
	slot->floor_clock = floor_clock;
	*ring_events(r->ring, chunk) = (struct ring_event){
		.clock = floor_clock, .address = 0x1000u * (i + 1), .size = 16,
		.where = ring_where(1, 0, RING_MALLOC) };
	ring_chunks(r->ring)[chunk].first = 0;
	atomic_store(&ring_chunks(r->ring)[chunk].owner, i + 1);
	atomic_store(&slot->pos, 2);
	atomic_store(&slot->state, RING_SLOT_LIVE);
	if (atomic_load(&r->ring->slots_high) < i + 1)
		atomic_store(&r->ring->slots_high, i + 1);
}

static uint32_t state_of(struct recorder *r, uint32_t i)
{
	return atomic_load(&ring_slots(r->ring)[i].state);
}

/*
 * A program that is started and executes another within one look of the recorder: two slots of
 * the same thread, the later one at a lower or a higher place.  Only the older one is taken back;
 * the other still has its writer, and whoever else got it would write into the same memory.
 */
static void only_the_older_program_is_dead(uint32_t older, uint32_t newer)
{
	struct recorder r = begin();

	put_slot(&r, older, 100);
	put_slot(&r, newer, 200);
	assert_int_equal(native_poll(r.n, r.h, false, NULL, NULL), 0);
	assert_int_equal(state_of(&r, older), RING_SLOT_FREE);
	assert_int_equal(state_of(&r, newer), RING_SLOT_LIVE);
	end(&r);
}

static void newer_behind(void **state)
{
	(void)state;
	only_the_older_program_is_dead(0, 1);
}

static void newer_before(void **state)
{
	(void)state;
	only_the_older_program_is_dead(1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newer_behind),
		cmocka_unit_test(newer_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
