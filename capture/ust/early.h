/* SPDX-License-Identifier: MIT */
/*
 * Events before a back-end is ready, kept in a static buffer: it writes them first.  Shared by the
 * back-ends; a library has one such buffer.
 */
#ifndef SLABTAPE_CAPTURE_UST_EARLY_H
#define SLABTAPE_CAPTURE_UST_EARLY_H

#include <stddef.h>

#include "capture/ust/native_ring.h"

/* Keep one event.  Any thread.  Does nothing after early_close(). */
void early_keep(enum ring_kind kind, const void *address, size_t size, const void *ip,
		uint64_t clock, uint32_t cpu);

/* No more are kept; returns how many came, kept or not. */
uint32_t early_close(void);

/* The @i-th that came; NULL when it found no room or is not filled in. */
const struct ring_event *early_at(uint32_t i);

/* Its memory goes back; nothing may read it again. */
void early_release(void);

#endif
