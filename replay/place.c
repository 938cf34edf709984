/* SPDX-License-Identifier: MIT */
#include "replay/place.h"

#include "replay/ordered_internal.h"

int replay_place_create(struct ordered *o)
{
	(void)o;
	return 0;
}

void replay_place_destroy(struct replay_place *p)
{
	(void)p;
}

uint32_t replay_place_columns(const struct ordered *o)
{
	(void)o;
	return 0;
}

void *replay_place_alloc(struct ordered *o, struct ordered_cache *run, const struct tape_batch *b,
			 uint32_t i)
{
	return o->v->alloc(run->cache, b->cpu[i], b->node_req[i], b->gfp[i]);
}

void *replay_place_warm(struct ordered *o, struct ordered_cache *run, uint32_t cpu,
			uint64_t address)
{
	(void)address;
	return o->v->alloc(run->cache, cpu, ALLOC_NODE_ANY, TAPE_GFP_KERNEL);
}
