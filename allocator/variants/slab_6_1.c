/* SPDX-License-Identifier: MIT */
/* Variant `slab-6.1`: SLAB by the rules of that release; the work is done in slab_*.c. */
#include "allocator/variants/slab_internal.h"

ALLOC_VARIANT_DECLARE(slab_6_1);

static const struct slab_rules slab_rules = {
	.look_before_lock = true,
	.touch_shared = true,
	.shape = alloc_slab61_shape,
};

static int slab_create(struct alloc_machine *m, const struct alloc_cache_config *cfg,
		       struct alloc_cache **ret_cache)
{
	return slab_create_cache(&ALLOC_FN(alloc_variant_slab_6_1), &slab_rules, m, cfg, ret_cache);
}

/* Nothing of a CPU is flushed from outside. */
static void slab_flush_cpu(struct alloc_cache *c, uint32_t cpu)
{
	(void)c;
	(void)cpu;
}

ALLOC_ENTRIES(slab)

ALLOC_VARIANT(slab_6_1) = {
	.struct_size = sizeof(struct alloc_variant),
	.name = "slab-6.1",
	.era = "2.2 .. 6.4, as in 6.1",
	.origin = "Linux 6.1 mm/slab.c",
	.what = "object queues: CPU arrays, shared and alien arrays, reaper",
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
