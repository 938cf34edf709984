/* SPDX-License-Identifier: MIT */
#include "capture/ust/early.h"

#include <stddef.h>
#include <sys/mman.h>

#define EARLY_MAX 8192u
#define EARLY_CLOSED 0x80000000u

static struct {
	_Alignas(4096) struct ring_event events[EARLY_MAX];
	_Atomic uint32_t used; /* EARLY_CLOSED: no more */
} early;

/* An unfilled entry has clock 0. */
void early_keep(enum ring_kind kind, const void *address, size_t size, const void *ip,
		uint64_t clock, uint32_t cpu)
{
	uint32_t at = atomic_fetch_add_explicit(&early.used, 1, memory_order_relaxed);

	if (at >= EARLY_MAX) /* closed or full; early_close() tells how many came */
		return;
	early.events[at].address = (uintptr_t)address;
	early.events[at].size = size;
	early.events[at].clock = clock;
	early.events[at].where = ring_where((uintptr_t)ip, cpu, kind);
}

uint32_t early_close(void)
{
	return atomic_exchange_explicit(&early.used, EARLY_CLOSED, memory_order_relaxed);
}

const struct ring_event *early_at(uint32_t i)
{
	return i < EARLY_MAX && early.events[i].clock ? &early.events[i] : NULL;
}

void early_release(void)
{
	madvise(early.events, sizeof(early.events), MADV_DONTNEED);
}
