/* SPDX-License-Identifier: MIT */
/*
 * Where slabs without a CPU wait: per-cpu partial lists and node partial lists, and the ways
 * between them - fetch, push, unfreeze (drain), deactivate, flush, shrink.
 */
#include "allocator/variants/percpu.h"

void percpu_discard(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s)
{
	alloc_node_gone(percpu_node(p, s), cpu, s);
	alloc_slab_discard(&p->head, cpu, s);
}

static uint32_t weight_of(const struct percpu_cache *p, uint32_t objects, uint32_t free_objs)
{
	switch (p->policy->weight) {
	case PERCPU_WEIGHT_SLAB:
		return 1;
	case PERCPU_WEIGHT_HALF:
		return objects / 2;
	case PERCPU_WEIGHT_FREE:
		return free_objs;
	}
	return 0;
}

void percpu_push(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, uint32_t free_objs,
		 bool drain)
{
	struct percpu_cpu *pc = &p->cpus[cpu];
	struct alloc_slab *old = pc->partial, *list = NULL;

	assert(s != pc->slab && !(s->flags & ALLOC_SLAB_LISTED));
	assert(!old || old->state == ALLOC_STATE_CPU_PARTIAL);

	if (drain && old && old->pobjects >= p->drain_limit) {
		list = old;
		old = NULL;
	}
	s->pobjects = (old ? old->pobjects : 0) + weight_of(p, alloc_slab_objects(s), free_objs);
	s->slabs = (old ? old->slabs : 0) + 1;
	percpu_set_next(s, old);
	pc->partial = s;
	alloc_count_add(&p->head, cpu, ALLOC_C_CPU_PARTIAL_FREE, p->policy->count_pushes);
	alloc_slab_move(&p->head, s, cpu, ALLOC_STATE_CPU_PARTIAL);
	if (list) {
		p->policy->unfreeze(p, cpu, list, ALLOC_PATH_DRAIN);
		alloc_count(&p->head, cpu, ALLOC_C_CPU_PARTIAL_DRAIN);
	}
}

/* The first slab of the list with enough free objects, or by minfree_new the one with the most or
 * none (2011 patches).  list_lock held. */
static struct alloc_slab *choose_by_free(struct percpu_cache *p, struct alloc_node *n, uint32_t cpu)
{
	struct alloc_slab *best = NULL;
	uint32_t seen = 0, most = 0;

	for (struct alloc_slab *s = alloc_partial_first(n); s; s = alloc_partial_next(n, s)) {
		struct alloc_slab_word w = alloc_word_read(cpu, s);
		uint32_t enough = (uint32_t)((uint64_t)w.objects * p->minfree_pct / 100);
		uint32_t free_objs = w.objects - w.inuse;

		if (free_objs >= (enough ? enough : 1))
			return s;
		if (free_objs > most) {
			most = free_objs;
			best = s;
		}
		alloc_count(&p->head, cpu, ALLOC_C_MINFREE_SKIP);
		if (++seen == p->minfree_scan)
			break;
	}
	if (p->minfree_new)
		best = NULL;
	alloc_count_add(&p->head, cpu, ALLOC_C_MINFREE_BEST, best != NULL);
	alloc_count_add(&p->head, cpu, ALLOC_C_MINFREE_NEW, seen && !best);
	return best;
}

/* Where a fetch starts.  list_lock held. */
static struct alloc_slab *first_choice(struct percpu_cache *p, struct alloc_node *n, uint32_t cpu)
{
	return p->policy->minfree ? choose_by_free(p, n, cpu) : alloc_partial_first(n);
}

void percpu_note_fetch(struct percpu_cache *p, const struct alloc_node *n, uint32_t cpu,
		       uint32_t objs)
{
	bool local = n->list_lock.node == p->head.machine->cpu_node[cpu];

	alloc_count(&p->head, cpu, ALLOC_C_ALLOC_FROM_PARTIAL);
	alloc_note_refill(&p->head, cpu,
			  local ? ALLOC_REFILL_NODE_PARTIAL : ALLOC_REFILL_REMOTE_NODE, objs);
}

/* Freeze a listed slab and, @whole, take its objects; false: it changed meanwhile.  list_lock. */
static bool acquire(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, bool whole,
		    struct alloc_slab_word *ret_old)
{
	struct alloc_slab_word old = alloc_word_read(cpu, s), new = old;

	assert(!old.frozen && s->flags & ALLOC_SLAB_LISTED);
	new.frozen = 1;
	if (whole) {
		new.freelist = NULL;
		new.inuse = old.objects;
	}
	*ret_old = old;
	return percpu_swap_word(p, cpu, s, old, new);
}

struct alloc_slab *percpu_fetch(struct percpu_cache *p, struct alloc_node *n, uint32_t cpu,
				void **ret_list)
{
	const struct percpu_policy *policy = p->policy;
	struct alloc_slab *first = NULL, *next;
	struct alloc_slab_word old;
	uint32_t taken = 0;

	if (!alloc_racy_read(cpu, &n->nr_partial))
		return NULL;
	alloc_lock_acquire(&n->list_lock, cpu, ALLOC_PATH_REFILL);
	for (struct alloc_slab *s = first_choice(p, n, cpu); s; s = next) {
		next = alloc_partial_next(n, s);
		if (!acquire(p, cpu, s, !first, &old))
			break;
		alloc_partial_del(n, s);
		if (!first) {
			first = s;
			*ret_list = old.freelist;
			alloc_slab_move(&p->head, s, cpu, ALLOC_STATE_CPU);
			percpu_note_fetch(p, n, cpu, old.objects - old.inuse);
			taken += policy->count_first ? old.objects - old.inuse : 0;
		} else {
			percpu_push(p, cpu, s, old.objects - old.inuse, false);
			alloc_count(&p->head, cpu, ALLOC_C_CPU_PARTIAL_NODE);
			taken += weight_of(p, old.objects, old.objects - old.inuse);
		}
		if (taken > p->fetch_limit)
			break;
	}
	alloc_lock_release(&n->list_lock, cpu);
	return first;
}

struct alloc_slab *percpu_fetch_6_12(struct percpu_cache *p, struct alloc_node *n, uint32_t cpu,
				     void **ret_list)
{
	struct alloc_slab *first = NULL, *next;
	uint32_t taken = 0, objs = 0;

	if (!alloc_racy_read(cpu, &n->nr_partial))
		return NULL;
	alloc_lock_acquire(&n->list_lock, cpu, ALLOC_PATH_REFILL);
	for (struct alloc_slab *s = first_choice(p, n, cpu); s; s = next) {
		next = alloc_partial_next(n, s);
		alloc_partial_del(n, s);
		if (!first) {
			first = s;
			alloc_slab_move(&p->head, s, cpu, ALLOC_STATE_CPU);
			if (!p->cpu_partial_slabs)
				break;
		} else {
			percpu_push(p, cpu, s, 0, false);
			alloc_count(&p->head, cpu, ALLOC_C_CPU_PARTIAL_NODE);
			if (++taken > p->fetch_limit)
				break;
		}
	}
	alloc_lock_release(&n->list_lock, cpu);
	if (first) {
		/* Off the list and not full: nobody else takes it, others only free to it. */
		*ret_list = percpu_take_freelist(p, cpu, first, &objs);
		percpu_note_fetch(p, n, cpu, objs);
	}
	return first;
}

/* The slab leaves the CPU's hands; its count of objects in use at that moment. */
static uint32_t thaw(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s)
{
	struct alloc_slab_word old, new;

	do {
		old = new = alloc_word_read(cpu, s);
		assert(old.frozen == p->policy->freeze_partials);
		new.frozen = 0;
	} while (p->policy->freeze_partials && !percpu_swap_word(p, cpu, s, old, new));
	return new.inuse;
}

void percpu_unfreeze(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *list,
		     enum alloc_lock_path path)
{
	struct alloc_slab *going = NULL, *next;
	struct alloc_node *n = NULL;
	uint32_t inuse;

	for (struct alloc_slab *s = list; s; s = next) {
		next = percpu_next(s);
		if (n != percpu_node(p, s)) {
			if (n)
				alloc_lock_release(&n->list_lock, cpu);
			n = percpu_node(p, s);
			alloc_lock_acquire(&n->list_lock, cpu, path);
		}
		inuse = thaw(p, cpu, s);
		if (!inuse && percpu_enough(p, n->nr_partial)) {
			percpu_set_next(s, going);
			going = s;
		} else {
			alloc_partial_add(&p->head, n, cpu, s, ALLOC_LIST_TAIL, inuse);
			alloc_count(&p->head, cpu, ALLOC_C_FREE_ADD_PARTIAL);
		}
	}
	if (n)
		alloc_lock_release(&n->list_lock, cpu);
	for (; going; going = next) {
		next = percpu_next(going);
		percpu_drop_empty(p, cpu, going);
	}
}

/* Length of @list and its last object. */
static uint32_t list_end(struct percpu_cache *p, void *list, void **ret_tail)
{
	uint32_t cnt = 0;

	for (*ret_tail = NULL; list; list = alloc_free_next(&p->head, list)) {
		*ret_tail = list;
		cnt++;
	}
	return cnt;
}

/* The word after @list (to @tail, @cnt objects) was put in front of the slab's list, unfrozen. */
static struct alloc_slab_word given_back(struct percpu_cache *p, struct alloc_slab_word old,
					 void *list, void *tail, uint32_t cnt)
{
	struct alloc_slab_word new = old;

	assert(old.frozen && cnt <= old.inuse);
	assert(!cnt == !list);
	new.frozen = 0;
	if (cnt) {
		alloc_free_link(&p->head, tail, old.freelist);
		new.freelist = list;
		new.inuse -= cnt;
	}
	return new;
}

/* Remote frees on the slab at the start decide the end of the list, not what comes later. */
enum alloc_list_end percpu_end_for(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s)
{
	if (!alloc_word_read(cpu, s).freelist)
		return ALLOC_LIST_HEAD;
	alloc_count(&p->head, cpu, ALLOC_C_DEACTIVATE_REMOTE_FREES);
	return ALLOC_LIST_TAIL;
}

void percpu_count_listed(struct percpu_cache *p, uint32_t cpu, enum alloc_list_end end)
{
	alloc_count(&p->head, cpu, end == ALLOC_LIST_HEAD ? ALLOC_C_DEACTIVATE_TO_HEAD
							  : ALLOC_C_DEACTIVATE_TO_TAIL);
}

void percpu_drop_empty(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s)
{
	alloc_count(&p->head, cpu, ALLOC_C_DEACTIVATE_EMPTY);
	percpu_discard(p, cpu, s);
	alloc_count(&p->head, cpu, ALLOC_C_FREE_SLAB);
}

void percpu_deactivate(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, void *list)
{
	struct alloc_node *n = percpu_node(p, s);
	enum alloc_list_end end = percpu_end_for(p, cpu, s);
	struct alloc_slab_word old, new;
	void *tail;
	uint32_t cnt = list_end(p, list, &tail);
	bool empty, listed, done;

	assert(s->state == ALLOC_STATE_CPU && p->cpus[cpu].slab != s);

	do {
		old = alloc_word_read(cpu, s);
		new = given_back(p, old, list, tail, cnt);
		empty = !new.inuse && percpu_enough(p, alloc_racy_read(cpu, &n->nr_partial));
		listed = !empty && new.freelist;
		if (listed)
			alloc_lock_acquire(&n->list_lock, cpu, ALLOC_PATH_DEACTIVATE);
		else if (!empty)
			alloc_slab_move(&p->head, s, cpu, ALLOC_STATE_FULL);
		done = percpu_swap_word(p, cpu, s, old, new);
		if (listed && done)
			alloc_partial_add(&p->head, n, cpu, s, end, new.inuse);
		if (listed)
			alloc_lock_release(&n->list_lock, cpu);
		else if (!empty && !done)
			alloc_slab_move(&p->head, s, cpu, ALLOC_STATE_CPU);
	} while (!done);
	if (listed)
		percpu_count_listed(p, cpu, end);
	else if (empty)
		percpu_drop_empty(p, cpu, s);
	else
		alloc_count(&p->head, cpu, ALLOC_C_DEACTIVATE_FULL);
}

void percpu_deactivate_6_12(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, void *list)
{
	struct alloc_node *n = percpu_node(p, s);
	enum alloc_list_end end = percpu_end_for(p, cpu, s);
	struct alloc_slab_word old, new;
	void *tail;
	uint32_t cnt = list_end(p, list, &tail);

	for (;;) {
		old = alloc_word_read(cpu, s);
		new = given_back(p, old, list, tail, cnt);
		if (!new.freelist)
			alloc_slab_move(&p->head, s, cpu, ALLOC_STATE_FULL);
		if (percpu_swap_word(p, cpu, s, old, new))
			break;
		if (!new.freelist)
			alloc_slab_move(&p->head, s, cpu, ALLOC_STATE_CPU);
	}
	/* Unfrozen, on no list and with free objects: others free to it but leave it alone. */
	if (!new.inuse && percpu_enough(p, alloc_racy_read(cpu, &n->nr_partial))) {
		percpu_drop_empty(p, cpu, s);
	} else if (new.freelist) {
		alloc_lock_acquire(&n->list_lock, cpu, ALLOC_PATH_DEACTIVATE);
		alloc_partial_add(&p->head, n, cpu, s, end, alloc_word_read(cpu, s).inuse);
		alloc_lock_release(&n->list_lock, cpu);
		percpu_count_listed(p, cpu, end);
	} else {
		alloc_count(&p->head, cpu, ALLOC_C_DEACTIVATE_FULL);
	}
}

void percpu_flush_slab(struct percpu_cache *p, uint32_t cpu)
{
	struct percpu_cpu *pc = &p->cpus[cpu];
	struct alloc_slab *s = pc->slab;
	void *list = pc->freelist;

	if (!s)
		return;
	pc->slab = NULL;
	pc->freelist = NULL;
	p->policy->deactivate(p, cpu, s, list);
}

void percpu_flush_cpu(struct alloc_cache *c, uint32_t cpu)
{
	struct percpu_cache *p = percpu_cache(c);
	struct percpu_cpu *pc = &p->cpus[cpu];
	struct alloc_slab *list;

	if (pc->slab) {
		percpu_flush_slab(p, cpu);
		alloc_count(c, cpu, ALLOC_C_CPUSLAB_FLUSH);
	}
	list = pc->partial;
	pc->partial = NULL;
	if (list)
		p->policy->unfreeze(p, cpu, list, ALLOC_PATH_FLUSH);
}

void percpu_shrink(struct alloc_cache *c)
{
	enum { SORTED = 32 }; /* slabs with more free objects than this stay behind, unsorted */
	struct percpu_cache *p = percpu_cache(c);
	uint32_t nr = p->policy->sort_by_inuse ? c->geo.objects + 1 : SORTED;
	struct alloc_link *buckets = malloc(nr * sizeof(*buckets));

	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++)
		c->variant->flush_cpu(c, cpu);
	for (uint32_t i = 0; buckets && i < c->machine->nodes; i++) {
		struct alloc_node *n = &p->nodes[i];
		struct alloc_link empty;

		alloc_link_init(&empty);
		if (p->policy->skip_empty_nodes && !n->nr_partial)
			continue;
		alloc_lock_acquire(&n->list_lock, 0, ALLOC_PATH_SHRINK);
		alloc_partial_sort(c, n, 0, p->policy->sort_by_inuse, buckets, nr, &empty);
		alloc_lock_release(&n->list_lock, 0);
		while (!alloc_link_empty(&empty)) {
			struct alloc_slab *s = alloc_slab_from_link(empty.next);

			alloc_link_del(&s->link);
			percpu_discard(p, 0, s);
		}
	}
	free(buckets);
}
