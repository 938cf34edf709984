/* SPDX-License-Identifier: MIT */
/*
 * State dumps as JSON, in the form of a golden's "final" and "checkpoints".
 *
 * The variant names slabs by pointer; this receiver writes the number of first hand-out, null (in
 * lists) or "?" (in object names) for a slab none of whose objects was handed out yet.  When the
 * dump ends without "live_slabs" (alloc_dump_slabs() writes it), the receiver adds:
 *
 *	"full"        at the end: numbers of living slabs that the dump did not mention with slab()
 *	              or slab_number(), ascending; left out when there are none
 *	"live_slabs"  at the end, and at checkpoints of variants whose dump has "extra" lines
 */
#ifndef SLABTAPE_REPLAY_STATE_JSON_H
#define SLABTAPE_REPLAY_STATE_JSON_H

#include "replay/engine.h"
#include "replay/numbering.h"

struct replay_snapshot;

/*
 * The state of @c as a new JSON object; @full: at the end.  NULL: out of memory.  A variant
 * without dump() yields the receiver's own keys only.
 */
struct json_t *replay_state_json(const struct alloc_variant *v, const struct alloc_cache *c,
				 struct replay_numbering *n, bool full);

/* {"0": {non-zero counters}, ...}; CPUs with none: {} when @idle, else left out. */
struct json_t *replay_per_cpu_json(const struct replay_counter *counters, size_t nr, uint32_t cpus,
				   bool idle);
/* {"name": sum, ...}; @nonzero: without zeros. */
struct json_t *replay_sums_json(const struct replay_counter *counters, size_t nr, bool nonzero);

#endif
