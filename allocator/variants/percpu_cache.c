/* SPDX-License-Identifier: MIT */
/* Creation, destruction and knobs of the caches with a cpu slab. */
#include "allocator/variants/percpu.h"
#include "allocator/variants/slub_common.h"

/* The limits that follow from cpu_partial and the objects per slab of the preferred shape. */
static void set_limits(struct percpu_cache *p)
{
	const struct percpu_policy *policy = p->policy;
	uint32_t limit;

	p->cpu_partial_slabs = alloc_cpu_partial_slabs(p->cpu_partial, p->head.geo.objects);
	limit = policy->limit_in_objs ? p->cpu_partial : p->cpu_partial_slabs;
	p->fetch_limit = limit / 2;
	p->drain_limit = policy->drain_above && limit < UINT32_MAX ? limit + 1 : limit;
}

static int write_cpu_partial(struct percpu_cache *p, uint32_t objs)
{
	p->cpu_partial = objs;
	set_limits(p);
	for (uint32_t cpu = 0; cpu < p->head.machine->cpus; cpu++)
		p->head.variant->flush_cpu(&p->head, cpu);
	return 0;
}

/* The plain numbers among the knobs. */
static uint32_t *number_of(struct percpu_cache *p, const char *name)
{
	const struct {
		const char *name;
		uint32_t *number;
	} numbers[] = {
		{ "defrag", &p->defrag_ratio },
		{ "minfree_pct", &p->minfree_pct },
		{ "minfree_scan_limit", &p->minfree_scan },
		{ "minfree_new_slab", &p->minfree_new },
		{ "remote_batch", &p->queue_batch },
		{ "remote_high", &p->queue_high },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!strcmp(name, numbers[i].name))
			return numbers[i].number;
	return NULL;
}

int percpu_set_knob(struct alloc_cache *c, const char *name, int64_t value)
{
	struct percpu_cache *p = percpu_cache(c);
	const struct alloc_knob *knob = slub_find_knob(c->variant, name);
	uint32_t *number;

	if (!knob)
		return -ENOENT;
	if (knob->at_create || value < knob->min || value > knob->max)
		return -EINVAL;
	if (!strcmp(name, "min_partial"))
		p->min_partial = p->policy->clamp_min_partial
					 ? slub_clamp_min_partial((uint64_t)value)
					 : (uint64_t)value;
	else if (!strcmp(name, "cpu_partial"))
		return write_cpu_partial(p, (uint32_t)value);
	else if (!strcmp(name, "remote_node_defrag_ratio"))
		p->defrag_ratio = (uint32_t)value * 10;
	else if ((number = number_of(p, name)))
		*number = (uint32_t)value;
	else
		return -ENOENT;
	return 0;
}

int percpu_get_knob(const struct alloc_cache *c, const char *name, int64_t *ret_value)
{
	struct percpu_cache *p = percpu_cache(c);
	uint32_t *number;

	if (!strcmp(name, "min_partial"))
		*ret_value = (int64_t)p->min_partial;
	else if (!strcmp(name, "cpu_partial"))
		*ret_value = p->cpu_partial;
	else if (!strcmp(name, "cpu_partial_slabs") &&
		 (!p->policy->limit_in_objs || p->policy->era >= ALLOC_ERA_6_1)) /* kept, unused */
		*ret_value = p->cpu_partial_slabs;
	else if (!strcmp(name, "remote_node_defrag_ratio"))
		*ret_value = p->defrag_ratio / 10;
	else if (slub_find_knob(c->variant, name) && (number = number_of(p, name)))
		*ret_value = *number;
	else
		return -ENOENT;
	return 0;
}

static int set_defaults(struct percpu_cache *p, const struct alloc_cache_config *cfg)
{
	uint32_t size = p->head.geo.size, pages4 = 4 * ALLOC_PAGE_BYTES / size;
	uint32_t pages64 = 64 * ALLOC_PAGE_BYTES / size;

	p->min_partial = alloc_min_partial(p->policy->era, size);
	p->cpu_partial = alloc_cpu_partial(p->policy->era, size);
	p->defrag_ratio = p->policy->defrag_default;
	p->minfree_pct = 25;
	/* SLQB's numbers: four pages' worth, at least 256 objects or 64 pages' worth. */
	p->queue_batch = pages64 < 256 ? pages64 : 256;
	p->queue_batch = pages4 > p->queue_batch ? pages4 : p->queue_batch;
	p->queue_batch = p->queue_batch ? p->queue_batch : 1;
	p->queue_high = 2 * p->queue_batch;
	set_limits(p);
	return slub_apply_knobs(&p->head, cfg);
}

int percpu_create(const struct percpu_policy *policy, const struct alloc_variant *v,
		  struct alloc_machine *m, const struct alloc_cache_config *cfg,
		  struct alloc_cache **ret_cache)
{
	struct alloc_sizing sz = ALLOC_SIZING_DEFAULT(m->cpus);
	struct percpu_cache *p;
	struct alloc_geometry geo;
	int rc = slub_read_sizing(v, cfg, &sz);

	if (!rc)
		rc = alloc_slub_geometry(policy->era, &sz, cfg->object_size, cfg->align, cfg->flags,
					 &geo);
	if (rc < 0)
		return rc;
	p = aligned_alloc(64, (sizeof(*p) + 63) / 64 * 64);
	if (!p)
		return -ENOMEM;
	memset(p, 0, sizeof(*p));
	p->policy = policy;
	rc = alloc_cache_init(&p->head, v, m, cfg, &geo, geo.objects);
	if (!rc) {
		p->nodes = alloc_nodes_create(&p->head);
		p->cpus = aligned_alloc(64, m->cpus * sizeof(*p->cpus));
		rc = p->nodes && p->cpus ? 0 : -ENOMEM;
	}
	if (!rc) {
		memset(p->cpus, 0, m->cpus * sizeof(*p->cpus));
		rc = set_defaults(p, cfg);
		if (!rc && policy->queues)
			rc = percpu_remote_create(p);
	}
	if (rc < 0) {
		percpu_destroy(&p->head);
		return rc;
	}
	*ret_cache = &p->head;
	return 0;
}

static void discard_slab(void *ctx, struct alloc_slab *s)
{
	percpu_discard(ctx, 0, s);
}

void percpu_destroy(struct alloc_cache *c)
{
	struct percpu_cache *p = percpu_cache(c);

	if (!c)
		return;
	if (c->machine && p->nodes)
		alloc_slabs_each(c, discard_slab, p);
	alloc_cache_fini(c);
	free(p->nodes);
	free(p->cpus);
	free(p->queues);
	free(p);
}
