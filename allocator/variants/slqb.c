/* SPDX-License-Identifier: MIT */
/*
 * Variant `slqb-2.6.31`: allocation and free (specification 11.1, 11.2), trim and shrink (11.5),
 * caches and knobs.  Chains, slabs and remote frees: slqb_lists.c.
 *
 * Where the text leaves room: a request that names another node makes a new slab there before it
 * walks the other nodes; shrink goes through the CPUs, then the nodes, in ascending order; what
 * happens on a node's list is charged to the CPU that executes it, except FLUSH_SLAB_*.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/variants/slqb_internal.h"

enum { SLQB_HIWATER_MAX = 1 << 20, SLQB_REFILL_SHOWN_MAX = 65536 };

ALLOC_VARIANT_DECLARE(slqb_2_6_31);

const uint8_t slqb_counters[SLQB_NR_COUNTERS] = {
	ALLOC_C_ALLOC,
	ALLOC_C_ALLOC_SLAB_FILL,
	ALLOC_C_ALLOC_SLAB_NEW,
	ALLOC_C_FREE,
	ALLOC_C_FREE_REMOTE,
	ALLOC_C_FLUSH_FREE_LIST,
	ALLOC_C_FLUSH_FREE_LIST_OBJECTS,
	ALLOC_C_FLUSH_FREE_LIST_REMOTE,
	ALLOC_C_FLUSH_SLAB_PARTIAL,
	ALLOC_C_FLUSH_SLAB_FREE,
	ALLOC_C_FLUSH_RFREE_LIST,
	ALLOC_C_FLUSH_RFREE_LIST_OBJECTS,
	ALLOC_C_CLAIM_REMOTE_LIST,
	ALLOC_C_CLAIM_REMOTE_LIST_OBJECTS,
};

static const struct alloc_knob slqb_knobs[] = {
	{ "freebatch", "objects moved at a time, at most hiwater + 1; at creation brings hiwater along",
	  1, SLQB_HIWATER_MAX, "the objects of 4 pages, or of 64 pages but at most 256; at least 1", false },
	{ "hiwater", "objects on a freelist above which a freebatch is flushed", 0, SLQB_HIWATER_MAX,
	  "4 * freebatch", false },
};

/* Steps 2 to 4 of an allocation from @l, whose freelist the caller owns; NULL: nothing there. */
static void *slqb_from_list(struct slqb_cache *qc, struct slqb_list *l, uint32_t cpu,
			    enum alloc_refill_source source)
{
	void *obj = slqb_pop(qc, &l->freelist);
	uint64_t claimed;

	if (obj)
		return obj;
	if (alloc_racy_read(cpu, &l->remote_check)) {
		claimed = slqb_claim(qc, l, cpu, ALLOC_PATH_REFILL);
		if (claimed)
			alloc_note_refill(&qc->head, cpu, ALLOC_REFILL_SPARE, (uint32_t)claimed);
		if (l->freelist.nr > qc->hiwater)
			slqb_flush_batch(qc, l, cpu, ALLOC_PATH_REFILL);
		obj = slqb_pop(qc, &l->freelist);
		if (obj)
			return obj;
	}
	obj = slqb_take_partial(qc, l, cpu);
	if (obj)
		alloc_note_refill(&qc->head, cpu, source, 1);
	return obj;
}

static void *slqb_from_new(struct slqb_cache *qc, uint32_t cpu, uint32_t node, uint32_t gfp)
{
	void *obj = slqb_new_slab(qc, cpu, node, gfp);

	if (obj)
		alloc_note_refill(&qc->head, cpu, ALLOC_REFILL_NEW_SLAB, 1);
	return obj;
}

/* From the list of a node, or a new slab there. */
static void *slqb_from_node(struct slqb_cache *qc, uint32_t cpu, uint32_t node, uint32_t gfp)
{
	struct slqb_node *n = &qc->nodes[node];
	void *obj;

	alloc_lock_acquire(&n->list_lock, cpu, ALLOC_PATH_ALLOC_SLOWPATH);
	obj = slqb_from_list(qc, &n->list, cpu, ALLOC_REFILL_REMOTE_NODE);
	alloc_lock_release(&n->list_lock, cpu);
	return obj ? obj : slqb_from_new(qc, cpu, node, gfp);
}

/* The lists of all nodes but @node, nearest to @node first. */
static void *slqb_from_others(struct slqb_cache *qc, uint32_t cpu, uint32_t node, uint32_t gfp)
{
	struct alloc_machine *m = qc->head.machine;
	void *obj = NULL;

	if (gfp & ALLOC_GFP_THISNODE)
		return NULL;
	for (uint32_t i = 1; i < m->nodes && !obj; i++)
		obj = slqb_from_node(qc, cpu, alloc_node_at(m, node, i), gfp);
	return obj;
}

static void *slqb_alloc(struct alloc_cache *c, uint32_t cpu, int32_t node, uint32_t gfp)
{
	struct slqb_cache *qc = slqb_cache_of(c);
	uint16_t local = c->machine->cpu_node[cpu];
	void *obj;

	if (node != ALLOC_NODE_ANY && node != local) {
		obj = slqb_from_node(qc, cpu, (uint32_t)node, gfp);
	} else {
		node = local;
		obj = slqb_from_list(qc, &qc->cpus[cpu].list, cpu, ALLOC_REFILL_CPU_PARTIAL);
		if (!obj)
			obj = slqb_from_new(qc, cpu, local, gfp);
	}
	if (!obj)
		obj = slqb_from_others(qc, cpu, (uint32_t)node, gfp);
	if (obj)
		alloc_count(c, cpu, ALLOC_C_ALLOC);
	return obj;
}

static void slqb_free(struct alloc_cache *c, uint32_t cpu, void *obj)
{
	struct slqb_cache *qc = slqb_cache_of(c);
	struct alloc_machine *m = c->machine;
	struct slqb_list *l = &qc->cpus[cpu].list;

	alloc_count(c, cpu, ALLOC_C_FREE);
	if (m->nodes > 1 && alloc_obj_slab(m, obj)->node != m->cpu_node[cpu]) {
		slqb_free_remote(qc, cpu, obj, ALLOC_PATH_FREE);
		alloc_count(c, cpu, ALLOC_C_FREE_REMOTE);
		return;
	}
	slqb_push(qc, &l->freelist, obj);
	if (l->freelist.nr > qc->hiwater)
		slqb_flush_batch(qc, l, cpu, ALLOC_PATH_FREE);
}

static void slqb_free_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t nr, void **objs)
{
	for (uint32_t i = 0; i < nr; i++)
		slqb_free(c, cpu, objs[i]);
}

static uint32_t slqb_alloc_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t gfp, uint32_t nr,
				void **objs)
{
	for (uint32_t i = 0; i < nr; i++) {
		objs[i] = slqb_alloc(c, cpu, ALLOC_NODE_ANY, gfp);
		if (!objs[i]) {
			slqb_free_bulk(c, cpu, i, objs);
			return 0;
		}
	}
	return nr;
}

static void slqb_trim_cpu(struct slqb_cache *qc, uint32_t cpu, enum alloc_lock_path path)
{
	struct slqb_list *l = &qc->cpus[cpu].list;

	slqb_claim(qc, l, cpu, path);
	slqb_flush_batch(qc, l, cpu, path);
	slqb_flush_rlist(qc, cpu, path);
}

static void slqb_trim_node(struct slqb_cache *qc, struct slqb_node *n, uint32_t cpu,
			   enum alloc_lock_path path)
{
	alloc_lock_acquire(&n->list_lock, cpu, path);
	slqb_claim(qc, &n->list, cpu, path);
	slqb_flush_batch(qc, &n->list, cpu, path);
	alloc_lock_release(&n->list_lock, cpu);
}

static void slqb_tick(struct alloc_cache *c, uint32_t cpu, uint64_t now_ns)
{
	struct slqb_cache *qc = slqb_cache_of(c);
	struct slqb_cpu *qcpu = &qc->cpus[cpu];
	uint64_t gap_ns = SLQB_TRIM_CATCH_UP * SLQB_TRIM_NS;

	if (now_ns > gap_ns && qcpu->next_trim_ns < now_ns - gap_ns)
		qcpu->next_trim_ns = now_ns - gap_ns;
	for (; qcpu->next_trim_ns <= now_ns; qcpu->next_trim_ns += SLQB_TRIM_NS) {
		slqb_trim_node(qc, &qc->nodes[c->machine->cpu_node[cpu]], cpu, ALLOC_PATH_REAP);
		slqb_trim_cpu(qc, cpu, ALLOC_PATH_REAP);
	}
}

static void slqb_shrink(struct alloc_cache *c)
{
	struct slqb_cache *qc = slqb_cache_of(c);

	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++)
		slqb_trim_cpu(qc, cpu, ALLOC_PATH_SHRINK);
	for (uint32_t node = 0; node < c->machine->nodes; node++)
		slqb_trim_node(qc, &qc->nodes[node], 0, ALLOC_PATH_SHRINK);
}

/* Everything this CPU holds goes where it belongs; what others freed to it stays for a claim. */
static void slqb_flush_cpu(struct alloc_cache *c, uint32_t cpu)
{
	struct slqb_cache *qc = slqb_cache_of(c);

	while (qc->cpus[cpu].list.freelist.nr)
		slqb_flush_batch(qc, &qc->cpus[cpu].list, cpu, ALLOC_PATH_FLUSH);
	slqb_flush_rlist(qc, cpu, ALLOC_PATH_FLUSH);
}

static void slqb_init_list(struct slqb_cache *qc, struct slqb_list *l, uint16_t node)
{
	alloc_lock_init(&l->page_lock, &qc->head, node, ALLOC_LOCK_SLAB, ALLOC_RANK_NODE_LIST);
	alloc_lock_init(&l->remote_lock, &qc->head, node, ALLOC_LOCK_REMOTE, ALLOC_RANK_LEAF);
	alloc_link_init(&l->partial);
	alloc_link_init(&l->full);
}

static int slqb_init_lists(struct slqb_cache *qc)
{
	struct alloc_machine *m = qc->head.machine;

	qc->cpus = aligned_alloc(64, m->cpus * sizeof(*qc->cpus));
	qc->nodes = aligned_alloc(64, m->nodes * sizeof(*qc->nodes));
	if (!qc->cpus || !qc->nodes)
		return -ENOMEM;
	memset(qc->cpus, 0, m->cpus * sizeof(*qc->cpus));
	memset(qc->nodes, 0, m->nodes * sizeof(*qc->nodes));
	for (uint16_t node = 0; node < m->nodes; node++) {
		slqb_init_list(qc, &qc->nodes[node].list, node);
		alloc_lock_init(&qc->nodes[node].list_lock, &qc->head, node, ALLOC_LOCK_LIST,
				ALLOC_RANK_BARN);
	}
	for (uint32_t cpu = m->cpus; cpu--;) {
		slqb_init_list(qc, &qc->cpus[cpu].list, m->cpu_node[cpu]);
		qc->cpus[cpu].next_trim_ns = SLQB_TRIM_FIRST_NS;
		qc->nodes[m->cpu_node[cpu]].shown_cpu = cpu;
	}
	return 0;
}

static void slqb_discard_slabs(struct slqb_cache *qc, struct slqb_list *l)
{
	struct alloc_link *lists[] = { &l->partial, &l->full };

	for (int i = 0; i < 2; i++)
		while (!alloc_link_empty(lists[i])) {
			struct alloc_slab *s = alloc_slab_from_link(lists[i]->next);

			alloc_link_del(&s->link);
			alloc_slab_discard(&qc->head, 0, s);
		}
}

static void slqb_destroy(struct alloc_cache *c)
{
	struct slqb_cache *qc = slqb_cache_of(c);

	if (!c)
		return;
	for (uint32_t cpu = 0; qc->cpus && qc->nodes && cpu < c->machine->cpus; cpu++)
		slqb_discard_slabs(qc, &qc->cpus[cpu].list);
	for (uint32_t node = 0; qc->cpus && qc->nodes && node < c->machine->nodes; node++)
		slqb_discard_slabs(qc, &qc->nodes[node].list);
	free(qc->cpus);
	free(qc->nodes);
	alloc_cache_fini(c);
	free(qc);
}

static bool slqb_pair_valid(uint32_t freebatch, uint32_t hiwater)
{
	return freebatch >= 1 && freebatch - 1 <= hiwater;
}

/* Which knob, its range checked; -ENOENT or -EINVAL. */
static int slqb_knob(const char *name, int64_t value)
{
	for (int i = 0; i < 2; i++)
		if (!strcmp(slqb_knobs[i].name, name))
			return value < slqb_knobs[i].min || value > slqb_knobs[i].max ? -EINVAL : i;
	return -ENOENT;
}

/* Limits by size and by the knobs given at creation. */
static int slqb_read_config(const struct alloc_cache_config *cfg, uint32_t size,
			    uint32_t *ret_freebatch, uint32_t *ret_hiwater)
{
	uint32_t freebatch = alloc_slqb_freebatch(size);
	int64_t hiwater = -1;

	for (size_t i = 0; i < cfg->nr_knobs; i++) {
		int at = slqb_knob(cfg->knobs[i].name, cfg->knobs[i].value);

		if (at < 0)
			return -EINVAL;
		if (at == 0)
			freebatch = (uint32_t)cfg->knobs[i].value;
		else
			hiwater = cfg->knobs[i].value;
	}
	*ret_freebatch = freebatch;
	*ret_hiwater = hiwater < 0 ? 4 * freebatch : (uint32_t)hiwater;
	return slqb_pair_valid(*ret_freebatch, *ret_hiwater) ? 0 : -EINVAL;
}

static int slqb_create(struct alloc_machine *m, const struct alloc_cache_config *cfg,
		       struct alloc_cache **ret_cache)
{
	uint32_t freebatch, hiwater, most;
	struct alloc_slab_shape shape;
	struct slqb_cache *qc;

	if (alloc_slqb_shape(cfg->object_size, cfg->align, cfg->flags, &shape) < 0 ||
	    slqb_read_config(cfg, shape.geo.size, &freebatch, &hiwater) < 0)
		return -EINVAL;
	most = hiwater < SLQB_REFILL_SHOWN_MAX ? hiwater : SLQB_REFILL_SHOWN_MAX;
	qc = calloc(1, sizeof(*qc));
	if (!qc || alloc_cache_init(&qc->head, &ALLOC_FN(alloc_variant_slqb_2_6_31), m, cfg,
				    &shape.geo, most > 1 ? most : 1) < 0) {
		free(qc);
		return -ENOMEM;
	}
	qc->freebatch = freebatch;
	qc->hiwater = hiwater;
	qc->colour_step_bytes = shape.colour_off_bytes;
	qc->left_over_bytes = (ALLOC_PAGE_BYTES << shape.geo.order) -
			      shape.geo.objects * shape.geo.size;
	if (slqb_init_lists(qc) < 0) {
		slqb_destroy(&qc->head);
		return -ENOMEM;
	}
	*ret_cache = &qc->head;
	return 0;
}

static int slqb_set_knob(struct alloc_cache *c, const char *name, int64_t value)
{
	struct slqb_cache *qc = slqb_cache_of(c);
	int at = slqb_knob(name, value);

	if (at < 0)
		return at;
	if (!slqb_pair_valid(at == 0 ? (uint32_t)value : qc->freebatch,
			     at == 1 ? (uint32_t)value : qc->hiwater))
		return -EINVAL;
	if (at == 0)
		qc->freebatch = (uint32_t)value;
	else
		qc->hiwater = (uint32_t)value;
	return 0;
}

static int slqb_get_knob(const struct alloc_cache *c, const char *name, int64_t *ret_value)
{
	const struct slqb_cache *qc = slqb_cache_of(c);
	int at = slqb_knob(name, 1);

	if (at < 0)
		return at;
	*ret_value = at == 0 ? qc->freebatch : qc->hiwater;
	return 0;
}

ALLOC_ENTRIES(slqb)

ALLOC_VARIANT(slqb_2_6_31) = {
	.struct_size = sizeof(struct alloc_variant),
	.name = "slqb-2.6.31",
	.era = "2009, proposed for 2.6.31",
	.origin = "SLQB patches, mm/slqb.c",
	.what = "a LIFO freelist per CPU, slabs owned for life, remote frees handed back in batches",
	.counters = slqb_counters,
	.nr_counters = SLQB_NR_COUNTERS,
	.knobs = slqb_knobs,
	.nr_knobs = sizeof(slqb_knobs) / sizeof(*slqb_knobs),
	.create = slqb_create,
	.destroy = slqb_destroy,
	ALLOC_ENTRY_OPS(slqb),
	.flush_cpu = slqb_flush_cpu,
	.shrink = slqb_shrink,
	.set_knob = slqb_set_knob,
	.get_knob = slqb_get_knob,
	.state = slqb_state,
	.cached = slqb_cached,
	.check = slqb_check,
	.tick = slqb_tick,
	.read_counters = slqb_read_counters,
	.dump = slqb_dump,
	.each_free = slqb_each_free,
};
