/* SPDX-License-Identifier: MIT */
#include "traces/batch.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_BYTES ((size_t)2 << 20)

/* Batches are filled along 19 arrays at once: on 4 KiB pages that is 19 TLB entries. */
static void *arrays_alloc(size_t bytes)
{
	void *memory = NULL;

	if (bytes < HUGE_BYTES)
		return malloc(bytes);
	if (posix_memalign(&memory, HUGE_BYTES, bytes))
		return NULL;
	madvise(memory, bytes, MADV_HUGEPAGE); /* a wish */
	return memory;
}

struct tape_batch *tape_batch_create(uint32_t capacity)
{
	struct tape_batch *b = calloc(1, sizeof(*b));
	size_t row_bytes = 0;
	char *at;

	assert(capacity > 0 && capacity <= TAPE_CHUNK_EVENTS);
	if (!b)
		return NULL;
	b->capacity = (capacity + 7) & ~7u; /* keeps every array 8-byte aligned */
#define ADD_BYTES(col, field) row_bytes += sizeof(*b->field);
	TAPE_BATCH_FIELDS(ADD_BYTES)
#undef ADD_BYTES
	at = b->memory = arrays_alloc(row_bytes * b->capacity);
	if (!at) {
		free(b);
		return NULL;
	}
#define PLACE(col, field)                                     \
	b->field = (void *)at;                                \
	at += sizeof(*b->field) * b->capacity;
	TAPE_BATCH_FIELDS(PLACE)
#undef PLACE
	b->capacity = capacity;
	return b;
}

void tape_batch_destroy(struct tape_batch *b)
{
	if (!b)
		return;
	free(b->memory);
	free(b);
}

void tape_batch_push(struct tape_batch *b, const struct tape_event *ev)
{
	uint32_t i = b->events;

	assert(i < b->capacity);
#define STORE(col, field) b->field[i] = ev->field;
	TAPE_BATCH_FIELDS(STORE)
#undef STORE
	b->events = i + 1;
	b->valid = TAPE_COLS_ALL;
}

void tape_batch_get(const struct tape_batch *b, uint32_t i, struct tape_event *ret_ev)
{
	assert(i < b->events);
	*ret_ev = tape_event_blank();
#define LOAD(col, field)                            \
	if (b->valid & 1u << TAPE_COL_##col)        \
		ret_ev->field = b->field[i];
	TAPE_BATCH_FIELDS(LOAD)
#undef LOAD
	if (!(b->valid & 1u << TAPE_COL_TS_LO))
		ret_ev->ts_lo = ret_ev->ts;
	if (!(b->valid & 1u << TAPE_COL_TS_HI))
		ret_ev->ts_hi = ret_ev->ts;
}
