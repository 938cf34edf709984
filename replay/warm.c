/* SPDX-License-Identifier: MIT */
/*
 * Objects that are older than the recording: each free of one (flag orphan) shows that it existed.
 *
 * --warm orphans allocates them before the first event, in the order of their frees, on the CPU
 * that frees them; where the recording knows the node of the memory and it is another one, on a
 * CPU of that node (CPUs of a node take turns).  --warm address puts each into the slab that its
 * address names.  --warm snapshot fills slabs as the kernel counted them (warm_snapshot.c).  What
 * this counts is not part of any counting window (later laps count their own warming).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "replay/ordered_internal.h"
#include "replay/place.h"

#define WARM_COLUMNS (1u << TAPE_COL_OP | 1u << TAPE_COL_FLAGS | 1u << TAPE_COL_CPU | \
		      1u << TAPE_COL_CACHE | 1u << TAPE_COL_MEM_NODE)

static uint32_t warm_cpu(struct ordered *o, uint32_t cpu, int node)
{
	const struct replay_plan *p = o->plan;
	uint32_t turn = (uint32_t)o->warmed, on_node = 0;

	if (node < 0 || (uint32_t)node >= p->nodes || p->cpu_node[cpu] == node)
		return cpu;
	for (uint32_t c = 0; c < p->cpus; c++)
		on_node += p->cpu_node[c] == node;
	if (!on_node)
		return cpu;
	turn %= on_node;
	for (uint32_t c = 0; c < p->cpus; c++)
		if (p->cpu_node[c] == node && !turn--)
			return c;
	return cpu;
}

static int warm_one(struct ordered *o, const struct tape_batch *b, uint32_t i)
{
	struct ordered_cache *run = NULL;
	void *obj = NULL;
	int rc = 0;

	if (!(b->flags[i] & TAPE_F_BIG) && b->cpu[i] < o->plan->cpus)
		rc = ordered_cache_get(o, b->cache[i], &run);
	if (rc < 0)
		return rc;
	if (run) {
		uint32_t cpu = warm_cpu(o, b->cpu[i], b->mem_node[i]);

		obj = o->place ? replay_place_warm(o, run, cpu, b->address[i]) :
				 o->v->alloc(run->cache, cpu, ALLOC_NODE_ANY, TAPE_GFP_KERNEL);
		o->warmed += obj != NULL;
	}
	return ordered_orphan_add(o, obj);
}

static bool is_orphan(const struct tape_batch *b, uint32_t i)
{
	return b->flags[i] & TAPE_F_ORPHAN && tape_op_frees(b->op[i]);
}

int ordered_orphan_add(struct ordered *o, void *obj)
{
	if (o->nr_orphans == o->orphan_capacity) {
		uint64_t want = o->orphan_capacity ? o->orphan_capacity * 2 : 1024;
		void **grown = realloc(o->orphan, want * sizeof(*grown));

		if (!grown)
			return tape_err_set(o->reterr, -ENOMEM, "warm: out of memory");
		o->orphan = grown;
		o->orphan_capacity = want;
	}
	o->orphan[o->nr_orphans++] = obj;
	return 0;
}

static int warm_batch(struct ordered *o, const struct tape_batch *b)
{
	int rc = 0;

	for (uint32_t i = 0; i < b->events && rc >= 0; i++)
		if (is_orphan(b, i))
			rc = warm_one(o, b, i);
	return rc;
}

/* The orphans among the events of @range. */
static int warm_range(struct ordered *o, const struct tape_range *range)
{
	const struct tape_batch *b;
	struct tape_reader *r;
	int rc = tape_reader_open(o->plan->tape, range, WARM_COLUMNS |
				  (o->place ? 1u << TAPE_COL_ADDRESS : 0), &r, o->reterr);

	if (rc < 0)
		return rc;
	while ((rc = tape_reader_next(r, &b, o->reterr)) > 0) {
		rc = warm_batch(o, b);
		if (rc < 0)
			break;
	}
	tape_reader_close(r);
	return rc;
}

/* What warming counted lies before every window. */
static int warm_base(struct ordered *o)
{
	int rc = 0;

	for (size_t n = 0; n < o->nr_caches && rc >= 0; n++) {
		struct ordered_cache *run = o->caches[n];

		rc = replay_snapshot_take(&run->begin, run->cache, o->v, o->plan->cpus);
		run->begun = !run->plan->from_seq;
		if (!run->begun)
			replay_snapshot_fini(&run->begin);
	}
	return rc < 0 ? tape_err_set(o->reterr, rc, "counters: out of memory") : 0;
}

int ordered_warm(struct ordered *o, bool first)
{
	TAPE_CLEANUP(tape_freep) struct tape_range *ranges = NULL;
	size_t nr = 0;
	int rc;

	o->nr_orphans = o->next_orphan = 0;
	if (o->plan->cfg->warm == REPLAY_WARM_SNAPSHOT && first) {
		rc = ordered_warm_snapshot(o);
		return rc < 0 ? rc : warm_base(o);
	}
	if (o->plan->cfg->warm == REPLAY_WARM_NONE || !o->plan->totals.orphan_frees)
		return 0;
	rc = tape_orphan_ranges_get(o->plan->tape, &ranges, &nr, o->reterr);
	for (size_t i = 0; i < nr && rc >= 0; i++)
		rc = warm_range(o, &ranges[i]);
	return rc < 0 || !first ? rc : warm_base(o);
}
