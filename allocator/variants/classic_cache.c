/* SPDX-License-Identifier: MIT */
/* Creation, knobs, shrink, state, check and dump of the 2.6.30 caches. */
#include "allocator/variants/classic.h"
#include "allocator/variants/slub_common.h"

static uint32_t *number_of(struct classic_cache *k, const char *name)
{
	const struct {
		const char *name;
		uint32_t *number;
	} numbers[] = {
		{ "defrag", &k->defrag_ratio },		{ "slab_thrash_ratio", &k->thrash_ratio },
		{ "thrash_limit", &k->thrash_limit },	{ "thrash_select", &k->thrash_select },
		{ "thrash_sort", &k->thrash_sort },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!strcmp(name, numbers[i].name))
			return numbers[i].number;
	return NULL;
}

int classic_set_knob(struct alloc_cache *c, const char *name, int64_t value)
{
	struct classic_cache *k = classic_cache(c);
	const struct alloc_knob *knob = slub_find_knob(c->variant, name);
	uint32_t *number;

	if (!knob)
		return -ENOENT;
	if (knob->at_create || value < knob->min || value > knob->max)
		return -EINVAL;
	if (!strcmp(name, "min_partial"))
		k->min_partial = slub_clamp_min_partial((uint64_t)value);
	else if (!strcmp(name, "remote_node_defrag_ratio"))
		k->defrag_ratio = (uint32_t)value * 10;
	else if ((number = number_of(k, name)))
		*number = (uint32_t)value;
	else
		return -ENOENT;
	return 0;
}

int classic_get_knob(const struct alloc_cache *c, const char *name, int64_t *ret_value)
{
	struct classic_cache *k = classic_cache(c);
	uint32_t *number;

	if (!strcmp(name, "min_partial"))
		*ret_value = (int64_t)k->min_partial;
	else if (!strcmp(name, "remote_node_defrag_ratio"))
		*ret_value = k->defrag_ratio / 10;
	else if (slub_find_knob(c->variant, name) && (number = number_of(k, name)))
		*ret_value = *number;
	else
		return -ENOENT;
	return 0;
}

int classic_create(const struct alloc_variant *v, struct alloc_machine *m,
		   const struct alloc_cache_config *cfg, struct alloc_cache **ret_cache)
{
	struct alloc_sizing sz = ALLOC_SIZING_DEFAULT(m->cpus);
	struct classic_cache *k;
	struct alloc_geometry geo;
	int rc = slub_read_sizing(v, cfg, &sz);

	if (!rc)
		rc = alloc_slub_geometry(ALLOC_ERA_2_6_30, &sz, cfg->object_size, cfg->align,
					 cfg->flags, &geo);
	if (rc < 0)
		return rc;
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	rc = alloc_cache_init(&k->head, v, m, cfg, &geo, geo.objects);
	if (!rc) {
		k->nodes = alloc_nodes_create(&k->head);
		k->cpus = aligned_alloc(64, m->cpus * sizeof(*k->cpus));
		rc = k->nodes && k->cpus ? 0 : -ENOMEM;
	}
	if (!rc) {
		memset(k->cpus, 0, m->cpus * sizeof(*k->cpus));
		k->min_partial = alloc_min_partial(ALLOC_ERA_2_6_30, geo.size);
		k->defrag_ratio = 1000;
		k->thrash_limit = 3;
		k->thrash_select = k->thrash_sort = 1;
		rc = slub_apply_knobs(&k->head, cfg);
	}
	if (rc < 0) {
		classic_destroy(&k->head);
		return rc;
	}
	*ret_cache = &k->head;
	return 0;
}

static void discard_slab(void *ctx, struct alloc_slab *s)
{
	classic_discard(ctx, 0, s);
}

void classic_destroy(struct alloc_cache *c)
{
	struct classic_cache *k = classic_cache(c);

	if (!c)
		return;
	if (k->nodes)
		alloc_slabs_each(c, discard_slab, k);
	alloc_cache_fini(c);
	free(k->nodes);
	free(k->cpus);
	free(k);
}

void classic_shrink(struct alloc_cache *c)
{
	struct classic_cache *k = classic_cache(c);
	uint32_t nr = c->geo.objects + 1;
	struct alloc_link *buckets = malloc(nr * sizeof(*buckets));

	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++)
		classic_flush_cpu(c, cpu);
	for (uint32_t i = 0; buckets && i < c->machine->nodes; i++) {
		struct alloc_node *n = &k->nodes[i];
		struct alloc_link empty;

		if (!n->nr_partial)
			continue;
		alloc_link_init(&empty);
		alloc_lock_acquire(&n->list_lock, 0, ALLOC_PATH_SHRINK);
		alloc_partial_sort(c, n, 0, true, buckets, nr, &empty);
		alloc_lock_release(&n->list_lock, 0);
		while (!alloc_link_empty(&empty)) {
			struct alloc_slab *s = alloc_slab_from_link(empty.next);

			alloc_link_del(&s->link);
			classic_discard(k, 0, s);
		}
	}
	free(buckets);
}

void classic_cached(const struct alloc_cache *c, struct alloc_cached *by_node)
{
	const struct classic_cache *k = classic_cache(c);

	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++)
		if (k->cpus[cpu].slab)
			by_node[c->machine->cpu_node[cpu]].objs +=
				alloc_freelist_length(c, k->cpus[cpu].freelist,
						      k->cpus[cpu].slab->word.objects);
}

void classic_state(const struct alloc_cache *c, struct alloc_cache_state *ret_state)
{
	struct classic_cache *k = classic_cache(c);
	struct alloc_cache_state st = { 0 };

	alloc_nodes_state(c, k->nodes, &st);
	alloc_cached_sum(c, &st);
	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++)
		st.cpu_slabs += k->cpus[cpu].slab != NULL;
	*ret_state = st;
}

int classic_check(const struct alloc_cache *c, char *why, size_t why_bytes)
{
	struct classic_cache *k = classic_cache(c);
	uint64_t cpu_slabs = 0;

	for (uint32_t i = 0; i < c->machine->nodes; i++)
		if (alloc_node_check(c, &k->nodes[i], why, why_bytes) < 0)
			return -1;
	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++) {
		const struct classic_cpu *kc = &k->cpus[cpu];

		if (slub_check_cpu_slab(c, cpu, kc->slab, kc->freelist, why, why_bytes) < 0)
			return -1;
		cpu_slabs += kc->slab != NULL;
	}
	return slub_check_census(c, k->nodes, cpu_slabs, 0, why, why_bytes);
}

void classic_each_free(const struct alloc_cache *c, alloc_obj_fn fn, void *ctx)
{
	alloc_slabs_each_free(c, fn, ctx);
	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++)
		alloc_list_each(c, classic_cache(c)->cpus[cpu].freelist, fn, ctx);
}

void classic_dump(const struct alloc_cache *c, struct alloc_dump *d, bool full)
{
	struct classic_cache *k = classic_cache(c);
	char key[16];

	d->object_begin(d->ctx, "cpus");
	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++) {
		if (!k->cpus[cpu].slab)
			continue;
		snprintf(key, sizeof(key), "%u", cpu);
		d->object_begin(d->ctx, key);
		slub_dump_cpu_slab(c, d, k->cpus[cpu].slab, k->cpus[cpu].freelist, full);
		d->end(d->ctx);
	}
	d->end(d->ctx);
	slub_dump_nodes(c, d, k->nodes, full);
}
