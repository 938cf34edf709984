/* SPDX-License-Identifier: MIT */
/*
 * Pages of the recording and slabs of the variant.
 *
 * A recorded address says which slab an object came from: page = address >> (12 + order).  The map
 * page -> slab serves two purposes: forcing the recorded placement (--warm address, --follow) and
 * counting how often the variant chose the recorded slab by itself (placement agreement).
 */
#ifndef SLABTAPE_REPLAY_PLACE_H
#define SLABTAPE_REPLAY_PLACE_H

#include <stdint.h>

#include "base/error.h"

struct ordered;
struct ordered_cache;
struct replay_place;
struct tape_batch;

/* Set o->place when the configuration asks for it.  -TAPE_E_USAGE: the variant cannot. */
int replay_place_create(struct ordered *o) TAPE_MUST_CHECK;
void replay_place_destroy(struct replay_place *p); /* NULL is accepted */
/* Columns that are read beside TAPE_COLS_REPLAY. */
uint32_t replay_place_columns(const struct ordered *o);
/* The allocation of row @i, placed or only compared; NULL: failed. */
void *replay_place_alloc(struct ordered *o, struct ordered_cache *run, const struct tape_batch *b,
			 uint32_t i);
/* An object from before the recording at @address on @cpu. */
void *replay_place_warm(struct ordered *o, struct ordered_cache *run, uint32_t cpu,
			uint64_t address);
/* Slab @slab_id of @run went back to the page allocator. */
void replay_place_died(struct ordered *o, const struct ordered_cache *run, uint32_t slab_id);

#endif
