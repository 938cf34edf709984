/* SPDX-License-Identifier: MIT */
/* Variant `slab-2.6.30`: SLAB by the rules of that release; the work is done in slab_*.c. */
#include "allocator/variants/slab_internal.h"

ALLOC_VARIANT_DECLARE(slab_2_6_30);

static const struct slab_rules slab_rules = {
	.link_first = true,
	.destroy_each = true,
	.shape = alloc_slab2630_shape,
};

static int slab_create(struct alloc_machine *m, const struct alloc_cache_config *cfg,
		       struct alloc_cache **ret_cache)
{
	return slab_create_cache(&ALLOC_FN(alloc_variant_slab_2_6_30), &slab_rules, m, cfg, ret_cache);
}

/* Nothing of a CPU is flushed from outside. */
static void slab_flush_cpu(struct alloc_cache *c, uint32_t cpu)
{
	(void)c;
	(void)cpu;
}

ALLOC_ENTRIES(slab)

ALLOC_VARIANT(slab_2_6_30) = {
	.struct_size = sizeof(struct alloc_variant),
	.name = "slab-2.6.30",
	.era = "as in 2.6.30",
	.origin = "Linux 2.6.30 mm/slab.c",
	.what = "object queues, as slab-6.1; an emptied slab above free_limit goes at once",
	.knobs = slab_knobs,
	.nr_knobs = SLAB_NR_KNOBS,
	.create = slab_create,
	.destroy = slab_destroy_cache,
	ALLOC_ENTRY_OPS(slab),
	.flush_cpu = slab_flush_cpu,
	.shrink = slab_shrink,
	.set_knob = slab_set_knob,
	.get_knob = slab_get_knob,
	.state = slab_state,
	.cached = slab_cached,
	.check = slab_check,
	.tick = slab_tick,
	.read_counters = slab_read_counters,
	.dump = slab_dump,
	.each_free = slab_each_free,
};
