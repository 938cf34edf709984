/* SPDX-License-Identifier: MIT */
/*
 * SLQB: counters, derived values, dumps and invariants.
 *
 * dump() has no kernel form to follow.  "cpus" and "nodes" carry one object per list: freelist and
 * remote counts, its partial slabs head first, its number of slabs; a CPU also its rlist.  At the
 * end, not at checkpoints, the chains are written out, first out (or first freed) first.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "allocator/dump.h"
#include "allocator/variants/slqb_internal.h"

/* Called for every list: a CPU's with @qcpu, a node's with @qcpu NULL.  Non-zero ends the walk. */
typedef int (*list_fn)(const struct slqb_cache *qc, const struct slqb_list *l,
		       const struct slqb_cpu *qcpu, uint32_t shown_cpu, void *ctx);

static int each_list(const struct slqb_cache *qc, list_fn fn, void *ctx)
{
	int rc = 0;

	for (uint32_t cpu = 0; cpu < qc->head.machine->cpus && !rc; cpu++)
		rc = fn(qc, &qc->cpus[cpu].list, &qc->cpus[cpu], cpu, ctx);
	for (uint32_t node = 0; node < qc->head.machine->nodes && !rc; node++)
		rc = fn(qc, &qc->nodes[node].list, NULL, qc->nodes[node].shown_cpu, ctx);
	return rc;
}

struct reader {
	alloc_counter_fn fn;
	void *ctx;
};

static int read_page_stat(const struct slqb_cache *qc, const struct slqb_list *l,
			  const struct slqb_cpu *qcpu, uint32_t shown_cpu, void *ctx)
{
	const struct reader *r = ctx;

	(void)qc;
	(void)qcpu;
	r->fn(r->ctx, shown_cpu, alloc_counter_name(ALLOC_C_FLUSH_SLAB_PARTIAL),
	      (int64_t)l->page_stat[SLQB_STAT_PARTIAL]);
	r->fn(r->ctx, shown_cpu, alloc_counter_name(ALLOC_C_FLUSH_SLAB_FREE),
	      (int64_t)l->page_stat[SLQB_STAT_FREE]);
	return 0;
}

void slqb_read_counters(const struct alloc_cache *c, alloc_counter_fn fn, void *ctx)
{
	struct reader r = { fn, ctx };

	for (uint32_t i = 0; i < SLQB_NR_COUNTERS; i++)
		for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++)
			fn(ctx, cpu, alloc_counter_name(slqb_counters[i]),
			   (int64_t)c->stat[(size_t)cpu * ALLOC_COUNTER_ROW + slqb_counters[i]]);
	/* Cells of the two are empty above; their values are kept per list. */
	each_list(slqb_cache_of(c), read_page_stat, &r);
}

static const struct alloc_slab *first_slab(const struct alloc_link *head)
{
	return alloc_link_empty(head) ? NULL : alloc_slab_from_link(head->next);
}

static const struct alloc_slab *next_slab(const struct alloc_link *head, const struct alloc_slab *s)
{
	return s->link.next == head ? NULL : alloc_slab_from_link(s->link.next);
}

static int add_state(const struct slqb_cache *qc, const struct slqb_list *l,
		     const struct slqb_cpu *qcpu, uint32_t shown_cpu, void *ctx)
{
	struct alloc_cache_state *st = ctx;

	(void)qcpu;
	(void)shown_cpu;
	st->slabs += l->nr_slabs;
	st->partial += l->nr_partial;
	st->objects += l->nr_slabs * qc->head.geo.objects;
	for (const struct alloc_slab *s = first_slab(&l->partial); s; s = next_slab(&l->partial, s)) {
		st->objects_partial += s->word.inuse;
		st->objects -= s->word.objects - s->word.inuse;
	}
	return 0;
}

static uint64_t list_holds(const struct slqb_list *l)
{
	return l->freelist.nr + l->remote.nr;
}

void slqb_cached(const struct alloc_cache *c, struct alloc_cached *by_node)
{
	const struct slqb_cache *qc = slqb_cache_of(c);

	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++)
		by_node[c->machine->cpu_node[cpu]].objs += list_holds(&qc->cpus[cpu].list) +
							   qc->cpus[cpu].rlist.nr;
	for (uint32_t node = 0; node < c->machine->nodes; node++)
		by_node[node].objs += list_holds(&qc->nodes[node].list);
}

void slqb_state(const struct alloc_cache *c, struct alloc_cache_state *ret_state)
{
	struct alloc_cache_state st = { 0 };

	each_list(slqb_cache_of(c), add_state, &st);
	alloc_cached_sum(c, &st);
	st.total_objects = st.slabs * c->geo.objects;
	*ret_state = st;
}

/* Where a violation is reported. */
struct report {
	char *why;
	size_t bytes;
};

static bool slab_is_sound(const struct slqb_cache *qc, const struct slqb_list *l,
			  const struct alloc_slab *s, bool full)
{
	uint32_t inuse = s->word.inuse, objects = s->word.objects;

	if (s->owner != l || s->cache != &qc->head || inuse == 0 || (inuse == objects) != full)
		return false;
	if (s->state != (full ? ALLOC_STATE_FULL : ALLOC_STATE_PARTIAL))
		return false;
	return inuse + alloc_freelist_length(&qc->head, s->word.freelist, objects) == objects;
}

/* Slabs of one list of slabs, or -1. */
static int64_t count_slabs(const struct slqb_cache *qc, const struct slqb_list *l, bool full,
			   struct report *r)
{
	const struct alloc_link *head = full ? &l->full : &l->partial;
	int64_t slabs = 0;

	for (const struct alloc_slab *s = first_slab(head); s; s = next_slab(head, s)) {
		if (!slab_is_sound(qc, l, s, full)) {
			snprintf(r->why, r->bytes, "slab %u on a %s list: state %u, %u of %u out",
				 s->id, full ? "full" : "partial", s->state, s->word.inuse,
				 s->word.objects);
			return -1;
		}
		if (++slabs > (int64_t)l->nr_slabs)
			break;
	}
	return slabs;
}

/* Length and tail of a chain are true; @owner (NULL: any) owns every slab it touches. */
static int check_chain(const struct slqb_cache *qc, const struct slqb_chain *ch, const char *name,
		       const struct slqb_list *owner, struct report *r)
{
	void *obj = ch->head, *last = NULL;
	uint64_t nr = 0;

	for (; obj && nr <= ch->nr; obj = alloc_free_next(&qc->head, obj), nr++) {
		const struct alloc_slab *s = alloc_obj_slab(qc->head.machine, obj);

		if (s->cache != &qc->head || (owner && s->owner != owner)) {
			snprintf(r->why, r->bytes, "%s holds an object of slab %u", name, s->id);
			return -1;
		}
		last = obj;
	}
	if (nr == ch->nr && (!nr || last == ch->tail))
		return 0;
	snprintf(r->why, r->bytes, "%s: %" PRIu64 " objects linked, %" PRIu64 " counted", name, nr,
		 ch->nr);
	return -1;
}

static int check_one_list(const struct slqb_cache *qc, const struct slqb_list *l,
			  const struct slqb_cpu *qcpu, uint32_t shown_cpu, void *ctx)
{
	struct report *r = ctx;
	int64_t partial = count_slabs(qc, l, false, r), full = 0;

	(void)shown_cpu;
	if (partial < 0 || (full = count_slabs(qc, l, true, r)) < 0)
		return -1;
	if (partial != (int64_t)l->nr_partial || partial + full != (int64_t)l->nr_slabs) {
		snprintf(r->why, r->bytes, "%" PRId64 " partial and %" PRId64
			 " full slabs; counted %" PRIu64 " partial of %" PRIu64, partial, full,
			 l->nr_partial, l->nr_slabs);
		return -1;
	}
	if (check_chain(qc, &l->freelist, "a freelist", qcpu ? NULL : l, r) < 0 ||
	    check_chain(qc, &l->remote, "a remote list", l, r) < 0)
		return -1;
	return qcpu ? check_chain(qc, &qcpu->rlist, "an rlist", qcpu->remote_list, r) : 0;
}

int slqb_check(const struct alloc_cache *c, char *why, size_t why_bytes)
{
	struct report r = { why, why_bytes };
	struct alloc_cache_state st;

	if (each_list(slqb_cache_of(c), check_one_list, &r) < 0)
		return -1;
	slqb_state(c, &st);
	if (st.cached_objs <= st.objects)
		return 0;
	snprintf(why, why_bytes, "%" PRIu64 " objects in lists, only %" PRIu64 " out of the slabs",
		 st.cached_objs, st.objects);
	return -1;
}

void slqb_each_free(const struct alloc_cache *c, alloc_obj_fn fn, void *ctx)
{
	const struct slqb_cache *qc = slqb_cache_of(c);

	alloc_slabs_each_free(c, fn, ctx);
	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++) {
		alloc_list_each(c, qc->cpus[cpu].list.freelist.head, fn, ctx);
		alloc_list_each(c, qc->cpus[cpu].list.remote.head, fn, ctx);
		alloc_list_each(c, qc->cpus[cpu].rlist.head, fn, ctx);
	}
	for (uint32_t node = 0; node < c->machine->nodes; node++) {
		alloc_list_each(c, qc->nodes[node].list.freelist.head, fn, ctx);
		alloc_list_each(c, qc->nodes[node].list.remote.head, fn, ctx);
	}
}

static void dump_chain(const struct slqb_cache *qc, struct alloc_dump *d, const char *key,
		       const struct slqb_chain *ch)
{
	d->array_begin(d->ctx, key);
	for (void *obj = ch->head; obj; obj = alloc_free_next(&qc->head, obj)) {
		const struct alloc_slab *s = alloc_obj_slab(qc->head.machine, obj);

		d->object(d->ctx, NULL, s, alloc_obj_index(&qc->head, s, obj));
		if (obj == ch->tail)
			break;
	}
	d->end(d->ctx);
}

static void dump_list(const struct slqb_cache *qc, struct alloc_dump *d, const struct slqb_list *l,
		      const struct slqb_cpu *qcpu, bool full)
{
	d->number(d->ctx, "nr_slabs", (int64_t)l->nr_slabs);
	d->number(d->ctx, "nr_free", (int64_t)l->freelist.nr);
	d->number(d->ctx, "nr_remote", (int64_t)l->remote.nr);
	if (qcpu)
		d->number(d->ctx, "nr_rlist", (int64_t)qcpu->rlist.nr);
	d->array_begin(d->ctx, "partial");
	for (const struct alloc_slab *s = first_slab(&l->partial); s; s = next_slab(&l->partial, s)) {
		d->object_begin(d->ctx, NULL);
		d->slab(d->ctx, "slab", s);
		d->number(d->ctx, "inuse", s->word.inuse);
		d->number(d->ctx, "objects", s->word.objects);
		d->end(d->ctx);
	}
	d->end(d->ctx);
	if (!full)
		return;
	dump_chain(qc, d, "freelist", &l->freelist);
	dump_chain(qc, d, "remote", &l->remote);
	if (qcpu)
		dump_chain(qc, d, "rlist", &qcpu->rlist);
}

void slqb_dump(const struct alloc_cache *c, struct alloc_dump *d, bool full)
{
	const struct slqb_cache *qc = slqb_cache_of(c);
	char key[16];

	d->object_begin(d->ctx, "cpus");
	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++) {
		snprintf(key, sizeof(key), "%u", cpu);
		d->object_begin(d->ctx, key);
		dump_list(qc, d, &qc->cpus[cpu].list, &qc->cpus[cpu], full);
		d->end(d->ctx);
	}
	d->end(d->ctx);
	d->object_begin(d->ctx, "nodes");
	for (uint32_t node = 0; node < c->machine->nodes; node++) {
		snprintf(key, sizeof(key), "%u", node);
		d->object_begin(d->ctx, key);
		dump_list(qc, d, &qc->nodes[node].list, NULL, full);
		d->end(d->ctx);
	}
	d->end(d->ctx);
	if (full)
		alloc_dump_slabs(c, d);
}
