/* SPDX-License-Identifier: MIT */
/*
 * --warm snapshot: the replay begins at --count-from (else at the first event) with the slabs that
 * the kernel's "before" snapshot counted per cache and node.
 *
 * Known: how many slabs and objects there were, how many slabs were partial and what they held,
 * and, from the recording, which objects alive at that moment are named by an event.  Unknown, and so
 * chosen by rule: which slab an object is in (named objects are spread evenly over all), how full
 * each partial slab is (fullest first, none empty while there are objects), the order of the list
 * (the variant's shrink sorts it), and what the CPUs hold: they begin without a cpu slab.
 *
 * It works through the variant's own operations: fill every slab, free what is too much, flush,
 * shrink.  A variant with another number of objects per slab gets as many slabs as the same
 * objects and the same free share need.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "replay/ordered_internal.h"

/* What the snapshot says of one cache on one node, in the recorded kernel's slabs. */
struct count {
	uint64_t slabs, objects, total_objects, partial, objects_partial;
};

/* An object that an event names: by its slot, or by its number among the orphans. */
struct item {
	uint64_t number;
	uint16_t cache, node;
	bool orphan;
};

struct warming {
	struct ordered *o;
	struct count (*counts)[ALLOC_NODE_MAX]; /* [nr_caches + 1] by place[] */
	uint16_t *place;	  /* [65536]: 1 + index into counts; 0: the snapshot has no such cache */
	uint32_t nr_counts;
	bool *seen;		  /* [65536]: the cache has events to replay */
	struct item *items;
	uint64_t nr_items, capacity;
	bool failed;
};

#define SNAPSHOT_COLUMNS (1u << TAPE_COL_OP | 1u << TAPE_COL_FLAGS | 1u << TAPE_COL_CPU |    \
			  1u << TAPE_COL_CACHE | 1u << TAPE_COL_SLOT | 1u << TAPE_COL_MEM_NODE)

static uint64_t *field_of(struct count *c, const char *name, size_t len)
{
	static const struct {
		const char *name;
		size_t offset;
	} fields[] = { { "slabs", offsetof(struct count, slabs) },
		       { "objects", offsetof(struct count, objects) },
		       { "total_objects", offsetof(struct count, total_objects) },
		       { "partial", offsetof(struct count, partial) },
		       { "objects_partial", offsetof(struct count, objects_partial) } };

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strlen(fields[i].name) == len && !memcmp(fields[i].name, name, len))
			return (uint64_t *)((char *)c + fields[i].offset);
	return NULL;
}

/* One row of the snapshot: "slabs.N1", or "slabs" where the source knows no nodes (slabinfo). */
static void take_state(void *ctx, uint16_t cache, const char *name, int64_t value)
{
	struct warming *w = ctx;
	const uint32_t nodes = w->o->plan->nodes;
	const char *dot = strstr(name, ".N");
	size_t len = dot ? (size_t)(dot - name) : strlen(name);
	struct count probe, *of;
	uint32_t node = dot ? (uint32_t)strtoul(dot + 2, NULL, 10) % nodes : ALLOC_NODE_MAX - 1;

	if (w->failed || value < 0 || !field_of(&probe, name, len))
		return;
	if (!w->place[cache]) {
		void *grown = realloc(w->counts, (w->nr_counts + 1) * sizeof(*w->counts));

		if (!grown) {
			w->failed = true;
			return;
		}
		w->counts = grown;
		memset(w->counts[w->nr_counts], 0, sizeof(*w->counts));
		w->place[cache] = (uint16_t)++w->nr_counts;
	}
	of = w->counts[w->place[cache] - 1];
	*field_of(&of[node], name, len) += (uint64_t)value;
}

static uint64_t share_of(uint64_t sum, uint32_t node, uint32_t nodes)
{
	return sum * (node + 1) / nodes - sum * node / nodes;
}

/*
 * Sums stand at the last index; without parts per node (slabinfo, kernels without NUMA) they are
 * shared out evenly.
 */
static void share_out(const struct warming *w, struct count *of)
{
	const uint32_t nodes = w->o->plan->nodes;
	const struct count sum = of[ALLOC_NODE_MAX - 1];
	uint64_t slabs = 0;

	of[ALLOC_NODE_MAX - 1] = (struct count){ 0 };
	for (uint32_t n = 0; n < nodes; n++)
		slabs += of[n].slabs;
	for (uint32_t n = 0; n < nodes && !slabs; n++)
		of[n] = (struct count){
			.slabs = share_of(sum.slabs, n, nodes),
			.objects = share_of(sum.objects, n, nodes),
			.total_objects = share_of(sum.total_objects, n, nodes),
			.partial = share_of(sum.partial, n, nodes),
			.objects_partial = share_of(sum.objects_partial, n, nodes),
		};
}

static uint16_t node_of(const struct ordered *o, const struct tape_batch *b, uint32_t i)
{
	const struct replay_plan *p = o->plan;

	return (uint16_t)(b->mem_node[i] >= 0 ? (uint32_t)b->mem_node[i] % p->nodes :
						p->cpu_node[b->cpu[i] % p->cpus]);
}

static int item_add(struct warming *w, const struct item *item)
{
	if (w->nr_items == w->capacity) {
		uint64_t want = w->capacity ? w->capacity * 2 : 1024;
		struct item *grown = realloc(w->items, want * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		w->items = grown;
		w->capacity = want;
	}
	w->items[w->nr_items++] = *item;
	return 0;
}

/* Who lives at first_seq: by slot, the object that was allocated there and not freed. */
static int take_before(struct warming *w, const struct tape_batch *b, uint32_t i,
		       struct item **live, uint64_t *slots)
{
	const uint32_t slot = b->slot[i];

	if (slot == TAPE_NO_SLOT || b->flags[i] & (TAPE_F_FAILED | TAPE_F_BIG | TAPE_F_ORPHAN) ||
	    (!tape_op_allocates(b->op[i]) && !tape_op_frees(b->op[i])))
		return 0;
	if (slot >= *slots) {
		uint64_t want = slot + 1ull > *slots * 2 ? slot + 1ull : *slots * 2;
		struct item *grown = realloc(*live, want * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		for (uint64_t k = *slots; k < want; k++)
			grown[k].cache = TAPE_NO_CACHE;
		*live = grown;
		*slots = want;
	}
	(*live)[slot] = (struct item){ .number = slot, .cache = TAPE_NO_CACHE };
	if (tape_op_allocates(b->op[i])) {
		(*live)[slot].cache = b->cache[i];
		(*live)[slot].node = node_of(w->o, b, i);
	}
	return 0;
}

static int take_after(struct warming *w, const struct tape_batch *b, uint32_t i)
{
	struct ordered *o = w->o;
	const struct item item = { .number = o->nr_orphans, .cache = b->cache[i],
				   .node = node_of(o, b, i), .orphan = true };
	int rc;

	w->seen[b->cache[i]] = true;
	if (!(b->flags[i] & TAPE_F_ORPHAN) || !tape_op_frees(b->op[i]))
		return 0;
	rc = ordered_orphan_add(o, NULL);
	return rc < 0 || b->flags[i] & TAPE_F_BIG ? rc : item_add(w, &item);
}

static int find_items(struct warming *w)
{
	const uint64_t first = w->o->plan->first_seq;
	const struct tape_range all = TAPE_RANGE_ALL;
	TAPE_CLEANUP(tape_freep) struct item *live = NULL;
	const struct tape_batch *b;
	struct tape_reader *r;
	uint64_t slots = 0;
	int rc = tape_reader_open(w->o->plan->tape, &all, SNAPSHOT_COLUMNS, &r, w->o->reterr);

	if (rc < 0)
		return rc;
	while ((rc = tape_reader_next(r, &b, w->o->reterr)) > 0)
		for (uint32_t i = 0; i < b->events && rc > 0; i++) {
			rc = b->first_seq + i < first ? take_before(w, b, i, &live, &slots) :
							take_after(w, b, i);
			rc = rc < 0 ? tape_err_set(w->o->reterr, rc, "warm: out of memory") : 1;
		}
	tape_reader_close(r);
	for (uint64_t k = 0; k < slots && rc >= 0; k++)
		if (live[k].cache != TAPE_NO_CACHE)
			rc = item_add(w, &live[k]);
	return rc < 0 ? rc : 0;
}

static int by_cache_and_node(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->cache != y->cache)
		return x->cache < y->cache ? -1 : 1;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->orphan != y->orphan)
		return x->orphan ? 1 : -1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* ---- one cache on one node ---- */

struct shape {
	uint64_t full, partial;	  /* slabs of the variant's own size */
	uint64_t objects_partial; /* on the partial ones */
	uint32_t per_slab;
};

/* Slabs for @c, with room for at least @named objects. */
static struct shape shape_of(const struct count *c, uint64_t named, uint32_t per_slab)
{
	const uint64_t objects = c->objects > named ? c->objects : named;
	const uint64_t unused = c->total_objects > c->objects ? c->total_objects - c->objects : 0;
	uint64_t room = c->partial && c->slabs ? c->partial * c->total_objects / c->slabs :
						 unused ? unused + 1 : 0;
	struct shape s = { .per_slab = per_slab, .objects_partial = c->objects_partial };
	uint64_t rest;

	if (!c->partial && room) { /* not said: as few slabs as hold what is free */
		room = (room + per_slab - 2) / (per_slab > 1 ? per_slab - 1 : 1) * per_slab;
		s.objects_partial = room > unused ? room - unused : 0;
	}
	if (s.objects_partial > objects)
		s.objects_partial = objects;
	rest = objects - s.objects_partial;
	s.full = rest / per_slab;
	s.partial = (room + per_slab - 1) / per_slab + (rest % per_slab != 0);
	s.objects_partial += rest % per_slab;
	if (per_slab == 1 || s.objects_partial > s.partial * (per_slab - 1)) {
		s.full = (objects + per_slab - 1) / per_slab;
		s.partial = s.objects_partial = 0;
	}
	return s;
}

/* How many objects slab @i of the shape keeps: full ones first, then fullest first. */
static uint64_t keep_of(const struct shape *s, uint64_t i, uint64_t *rest)
{
	uint64_t others, keep;

	if (i < s->full)
		return s->per_slab;
	if (i >= s->full + s->partial)
		return 0;
	others = s->full + s->partial - 1 - i;
	keep = *rest > others ? *rest - others : *rest != 0;
	if (keep > s->per_slab - 1)
		keep = s->per_slab - 1;
	*rest -= keep;
	return keep;
}

struct placed {
	void *obj;
	uint32_t slab; /* id */
};

static int by_slab(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return x->slab != y->slab ? (x->slab < y->slab ? -1 : 1) :
				    (x->obj < y->obj ? -1 : x->obj > y->obj);
}

static uint32_t first_cpu_of(const struct replay_plan *p, uint32_t node)
{
	for (uint32_t cpu = 0; cpu < p->cpus; cpu++)
		if (p->cpu_node[cpu] == node)
			return cpu;
	return 0;
}

/* Fill @nr objects; returns how many came. */
static uint64_t fill(struct ordered *o, struct ordered_cache *run, uint32_t cpu, uint32_t node,
		     struct placed *at, uint64_t nr)
{
	struct alloc_slab_info info = { 0 };
	uint64_t n = 0;

	for (; n < nr; n++) {
		struct alloc_slab *s;
		uint32_t index;

		at[n].obj = o->v->alloc(run->cache, cpu, (int32_t)node, TAPE_GFP_KERNEL);
		if (!at[n].obj)
			break;
		s = alloc_slab_of(o->machine, at[n].obj, &index);
		if (s)
			alloc_slab_info(s, &info);
		at[n].slab = s ? info.id : (uint32_t)(n / run->per_slab);
	}
	qsort(at, n, sizeof(*at), by_slab);
	return n;
}

static uint64_t same_slab(const struct placed *at, uint64_t first, uint64_t nr)
{
	uint64_t i = first;

	while (i < nr && at[i].slab == at[first].slab)
		i++;
	return i - first;
}

/*
 * Objects that the shape would keep in places that this variant did not hand out (a refill may
 * spread a batch over more slabs than needed): they stay wherever there are more.
 */
static uint64_t missing(const struct shape *s, const struct placed *at, uint64_t nr)
{
	uint64_t rest = s->objects_partial, slab = 0, kept = 0;

	for (uint64_t i = 0, size; i < nr; i += size) {
		uint64_t keep = keep_of(s, slab++, &rest);

		size = same_slab(at, i, nr);
		kept += keep < size ? keep : size;
	}
	return s->full * s->per_slab + s->objects_partial - kept;
}

/* Keep what the shape keeps (moved to the front), free the rest; returns how many stay. */
static uint64_t thin_out(struct ordered *o, struct ordered_cache *run, uint32_t cpu,
			 const struct shape *s, struct placed *at, uint64_t nr)
{
	uint64_t stay = 0, slab = 0, rest = s->objects_partial, more = missing(s, at, nr);

	for (uint64_t i = 0, size; i < nr; i += size) {
		uint64_t keep = keep_of(s, slab++, &rest), extra;

		size = same_slab(at, i, nr);
		keep = keep < size ? keep : size;
		extra = more < size - keep ? more : size - keep;
		more -= extra;
		for (uint64_t k = 0; k < size; k++)
			if (k < keep + extra)
				at[stay++] = at[i + k];
			else
				o->v->free(run->cache, cpu, at[i + k].obj);
	}
	return stay;
}

static int warm_node(struct warming *w, struct ordered_cache *run, const struct count *c,
		     uint32_t node, const struct item *items, uint64_t nr_items)
{
	struct ordered *o = w->o;
	const struct shape s = shape_of(c, nr_items, run->per_slab);
	const uint32_t cpu = first_cpu_of(o->plan, node);
	const uint64_t nr = (s.full + s.partial) * s.per_slab;
	TAPE_CLEANUP(tape_freep) struct placed *at = calloc(nr ? nr : 1, sizeof(*at));
	uint64_t stay, item = 0;

	if (!at)
		return tape_err_set(o->reterr, -ENOMEM, "warm: out of memory");
	stay = thin_out(o, run, cpu, &s, at, fill(o, run, cpu, node, at, nr));
	for (uint64_t i = 0; i < stay; i++) {
		if ((i + 1) * nr_items / stay <= item || item == nr_items)
			continue; /* named objects lie evenly among all */
		if (items[item].orphan) {
			o->orphan[items[item].number] = at[i].obj;
		} else {
			o->slot[items[item].number] = at[i].obj;
			o->slot_cache[items[item].number] = items[item].cache;
		}
		item++;
	}
	o->warmed += stay;
	o->v->flush_cpu(run->cache, cpu);
	return 0;
}

static int warm_cache(struct warming *w, uint16_t id, const struct item *items, uint64_t nr_items)
{
	static const struct count none;
	const struct count *of = w->place[id] ? w->counts[w->place[id] - 1] : NULL;
	struct ordered_cache *run;
	uint64_t first = 0;
	int rc = ordered_cache_get(w->o, id, &run);

	for (uint32_t node = 0; rc >= 0 && run && node < w->o->plan->nodes; node++) {
		uint64_t past = first;

		while (past < nr_items && items[past].node == node)
			past++;
		rc = warm_node(w, run, of ? &of[node] : &none, node, items + first, past - first);
		first = past;
	}
	if (rc >= 0 && run)
		w->o->v->shrink(run->cache);
	return rc;
}

static int warm_all(struct warming *w)
{
	uint64_t first = 0;
	int rc = 0;

	for (uint32_t id = 0; id < TAPE_NO_CACHE && rc >= 0; id++) {
		uint64_t past;

		while (first < w->nr_items && w->items[first].cache < id)
			first++;
		for (past = first; past < w->nr_items && w->items[past].cache == id; past++)
			;
		if (past > first || (w->seen[id] && w->place[id]))
			rc = warm_cache(w, (uint16_t)id, w->items + first, past - first);
		first = past;
	}
	return rc;
}

static int load(struct warming *w)
{
	struct ordered *o = w->o;
	uint64_t rows;
	int rc = tape_state_read(o->plan->tape, "before", take_state, w, &rows, o->reterr);

	if (rc < 0)
		return rc;
	if (w->failed)
		return tape_err_set(o->reterr, -ENOMEM, "warm: out of memory");
	if (!rows)
		return tape_err_set(o->reterr, -TAPE_E_USAGE, "--warm snapshot: the tape holds no "
				    "snapshot of a kernel; import with --slab-before");
	for (uint32_t i = 0; i < w->nr_counts; i++)
		share_out(w, w->counts[i]);
	rc = find_items(w);
	if (rc >= 0)
		qsort(w->items, w->nr_items, sizeof(*w->items), by_cache_and_node);
	return rc;
}

int ordered_warm_snapshot(struct ordered *o)
{
	struct warming w = { .o = o };
	int rc = -ENOMEM;

	w.place = calloc(UINT16_MAX + 1u, sizeof(*w.place));
	w.seen = calloc(UINT16_MAX + 1u, sizeof(*w.seen));
	if (w.place && w.seen)
		rc = load(&w);
	else
		tape_err_set(o->reterr, rc, "warm: out of memory");
	if (rc >= 0)
		rc = warm_all(&w);
	free(w.place);
	free(w.seen);
	free(w.counts);
	free(w.items);
	return rc < 0 ? rc : 0;
}
