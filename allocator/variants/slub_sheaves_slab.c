/* SPDX-License-Identifier: MIT */
/*
 * Slabs under the sheaves: refill, flush, and the slow paths of single objects.
 *
 * A slab is on its node's partial list, or full and on no list, or taken off the list by a refill
 * that is under way (detached).  Objects leave and enter a slab by compare-exchange of its word;
 * list_lock orders what happens to the list.  Who may list a slab:
 *
 *	the CPU whose free made a full slab non-full (it holds list_lock over the exchange)
 *	the refiller that detached it, as long as it stays full
 */
#include "allocator/variants/slub_sheaves.h"

#include <errno.h>

void sheaves_discard(struct sheaves_cache *sc, uint32_t cpu, struct alloc_slab *s)
{
	assert(!(s->flags & ALLOC_SLAB_LISTED));
	alloc_node_gone(&sc->nodes[s->node], cpu, s);
	alloc_slab_discard(&sc->head, cpu, s);
}

/* Objects of one slab, linked inside: head .. tail. */
struct group {
	struct alloc_slab *slab;
	void *head, *tail;
	uint32_t nr;
};

/* The listing half of a free: @s was left by its word exchange; list_lock held, dropped here. */
static void free_listed(struct sheaves_cache *sc, uint32_t cpu, struct alloc_node *n,
			struct alloc_slab *s, bool was_full, uint32_t inuse)
{
	struct alloc_cache *c = &sc->head;
	bool listed = s->flags & ALLOC_SLAB_LISTED;
	bool gone = false;

	if (!was_full && !listed) {
		/* A refiller or the parked list owns it. */
	} else if (!inuse && n->nr_partial >= (uint64_t)sc->min_partial) {
		if (!was_full) {
			alloc_partial_del(n, s);
			alloc_count(c, cpu, ALLOC_C_FREE_REMOVE_PARTIAL);
		}
		gone = true;
	} else if (was_full) {
		alloc_partial_add(c, n, cpu, s, ALLOC_LIST_TAIL, inuse);
		alloc_count(c, cpu, ALLOC_C_FREE_ADD_PARTIAL);
	} else {
		alloc_slab_move(c, s, cpu, ALLOC_STATE_EMPTY);
	}
	alloc_lock_release(&n->list_lock, cpu);
	if (gone) {
		alloc_count(c, cpu, ALLOC_C_FREE_SLAB);
		sheaves_discard(sc, cpu, s);
	}
}

static bool lock_for_free(struct sheaves_cache *sc, uint32_t cpu, struct alloc_node *n,
			  bool was_full, enum alloc_lock_path path)
{
	if (was_full && sc->policy)
		return sc->policy->try_lock(sc, cpu, n, path);
	alloc_lock_acquire(&n->list_lock, cpu, path);
	return true;
}

/* Give the objects of @g back to their slab (specification 8.5).  No lock held. */
static void free_group(struct sheaves_cache *sc, uint32_t cpu, const struct group *g,
		       enum alloc_lock_path path)
{
	struct alloc_cache *c = &sc->head;
	struct alloc_slab *s = g->slab;
	struct alloc_node *n = &sc->nodes[s->node];
	struct alloc_slab_word old, new;
	bool was_full, held;

	for (;;) {
		old = new = alloc_word_read(cpu, s);
		was_full = !old.freelist;
		alloc_free_link(c, g->tail, old.freelist);
		new.freelist = g->head;
		new.inuse = (old.inuse - g->nr) & 0x7fffffffu;
		/* Before the exchange: nobody else may find the slab non-full and unlisted. */
		held = (was_full || !new.inuse) && lock_for_free(sc, cpu, n, was_full, path);
		if (alloc_word_cmpxchg(cpu, s, old, new))
			break;
		alloc_count(c, cpu, ALLOC_C_CMPXCHG_DOUBLE_FAIL);
		if (held)
			alloc_lock_release(&n->list_lock, cpu);
	}
	assert(old.inuse >= g->nr);
	alloc_note_free_class(c, cpu, was_full, !new.inuse);
	if (held)
		free_listed(sc, cpu, n, s, was_full, new.inuse);
	else if (was_full)
		sc->policy->park(sc, cpu, n, s);
}

/*
 * Form a group from the end of @objs: the last object and those of the same slab before it, until
 * SHEAVES_MISSES others were met.  Returns how many entries remain; the gathered ones are behind
 * them.  The one gathered last becomes the head.
 */
static uint32_t gather(struct sheaves_cache *sc, void **objs, uint32_t nr, struct group *ret_g)
{
	struct alloc_cache *c = &sc->head;
	uint32_t rest = nr - 1, misses = 0;
	void *obj = objs[rest];

	*ret_g = (struct group){ alloc_obj_slab(c->machine, obj), obj, obj, 1 };
	for (uint32_t i = rest; i-- && misses < SHEAVES_MISSES;) {
		obj = objs[i];
		if (alloc_obj_slab(c->machine, obj) != ret_g->slab) {
			misses++;
			continue;
		}
		alloc_free_link(c, obj, ret_g->head);
		ret_g->head = obj;
		ret_g->nr++;
		rest--;
		objs[i] = objs[rest];
		objs[rest] = obj;
	}
	return rest;
}

void sheaves_flush_objects(struct sheaves_cache *sc, uint32_t cpu, void **objs, uint32_t nr,
			   enum alloc_lock_path path)
{
	struct group g;

	while (nr) {
		nr = gather(sc, objs, nr, &g);
		free_group(sc, cpu, &g, path);
	}
}

void sheaves_flush(struct sheaves_cache *sc, uint32_t cpu, struct alloc_sheaf *s)
{
	alloc_count_add(&sc->head, cpu, ALLOC_C_SHEAF_FLUSH, s->size);
	sheaves_flush_objects(sc, cpu, s->objects, s->size, ALLOC_PATH_FLUSH);
	s->size = 0;
}

void sheaves_flush_main(struct sheaves_cache *sc, uint32_t cpu)
{
	struct alloc_sheaf *s = sc->cpus[cpu].main;

	while (s->size) {
		uint32_t batch = s->size < SHEAVES_BATCH ? s->size : SHEAVES_BATCH;

		s->size -= batch;
		sheaves_flush_objects(sc, cpu, s->objects + s->size, batch, ALLOC_PATH_FLUSH);
		alloc_count_add(&sc->head, cpu, ALLOC_C_SHEAF_FLUSH, batch);
	}
}

void sheaves_free_slow(struct sheaves_cache *sc, uint32_t cpu, void *obj)
{
	struct group g = { alloc_obj_slab(sc->head.machine, obj), obj, obj, 1 };

	free_group(sc, cpu, &g, ALLOC_PATH_FREE);
	alloc_count(&sc->head, cpu, ALLOC_C_FREE_SLOWPATH);
}

/* Nothing to find on @n, as far as can be seen without the lock. */
static bool looks_empty(struct sheaves_cache *sc, uint32_t cpu, struct alloc_node *n)
{
	return !alloc_racy_read(cpu, &n->nr_partial) &&
	       !(sc->policy && sc->policy->waits(sc, cpu, n));
}

/*
 * Take slabs off the head of @n until they hold @want objects or more; list_lock held.  What a
 * slab holds may grow until its list is detached, never shrink.  Chained through link.next.
 */
static struct alloc_slab *detach_slabs(struct sheaves_cache *sc, uint32_t cpu, struct alloc_node *n,
				       uint32_t want)
{
	struct alloc_slab *first = NULL, *last = NULL, *s;

	for (uint64_t have = 0; have < want && (s = alloc_partial_first(n));) {
		struct alloc_slab_word w = alloc_word_read(cpu, s);

		alloc_partial_del(n, s);
		alloc_slab_move(&sc->head, s, cpu, ALLOC_STATE_DETACHED);
		have += w.objects - w.inuse;
		if (last)
			last->link.next = &s->link;
		else
			first = s;
		last = s;
	}
	return first;
}

/* The whole freelist of a detached slab; its objects count as in use from now on. */
static void *take_freelist(struct sheaves_cache *sc, uint32_t cpu, struct alloc_slab *s)
{
	struct alloc_slab_word old, new;

	for (;;) {
		old = new = alloc_word_read(cpu, s);
		new.freelist = NULL;
		new.inuse = old.objects & 0x7fffffffu;
		if (alloc_word_cmpxchg(cpu, s, old, new))
			return old.freelist;
		alloc_count(&sc->head, cpu, ALLOC_C_CMPXCHG_DOUBLE_FAIL);
	}
}

/* The last free object of @s, unlisted, was taken: full, unless a free has moved it on meanwhile. */
static void tell_full(struct sheaves_cache *sc, uint32_t cpu, struct alloc_slab *s, uint8_t from)
{
	const struct alloc_observer *o = sc->head.machine->observer;
	uint8_t was = from;

	/* Relaxed, as in alloc_slab_move(): only the chain of states matters. */
	if (__atomic_compare_exchange_n(&s->state, &was, ALLOC_STATE_FULL, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED) &&
	    o && o->transition)
		o->transition(o->ctx, &sc->head, s, cpu, from, ALLOC_STATE_FULL);
}

/* Objects of @s that a refill did not need, from @head on: back to the slab, to the list's end. */
static void put_back(struct sheaves_cache *sc, uint32_t cpu, struct alloc_slab *s, void *head)
{
	struct alloc_node *n = &sc->nodes[s->node];
	struct alloc_slab_word old = alloc_word_read(cpu, s), new = old;
	struct group g = { s, head, head, 1 };
	bool done = false;

	for (void *obj; (obj = alloc_free_next(&sc->head, g.tail)); g.nr++)
		g.tail = obj;
	if (!old.freelist) {
		new.freelist = head;
		new.inuse = (old.inuse - g.nr) & 0x7fffffffu;
		alloc_lock_acquire(&n->list_lock, cpu, ALLOC_PATH_REFILL);
		done = alloc_word_cmpxchg(cpu, s, old, new);
		if (done)
			alloc_partial_add(&sc->head, n, cpu, s, ALLOC_LIST_TAIL, new.inuse);
		else
			alloc_count(&sc->head, cpu, ALLOC_C_CMPXCHG_DOUBLE_FAIL);
		alloc_lock_release(&n->list_lock, cpu);
	}
	if (!done)
		free_group(sc, cpu, &g, ALLOC_PATH_REFILL);
}

/* Slabs a refill took but did not need: back to the end of the list, in their order. */
static void put_back_slabs(struct sheaves_cache *sc, uint32_t cpu, struct alloc_node *n,
			   struct alloc_slab *s)
{
	struct alloc_link *next;

	alloc_lock_acquire(&n->list_lock, cpu, ALLOC_PATH_REFILL);
	for (; s; s = next ? alloc_slab_from_link(next) : NULL) {
		next = s->link.next;
		alloc_partial_add(&sc->head, n, cpu, s, ALLOC_LIST_TAIL,
				  alloc_word_read(cpu, s).inuse);
	}
	alloc_lock_release(&n->list_lock, cpu);
}

/* Append objects of detached @s to @objs, at most @room; the rest goes back. */
static uint32_t empty_slab(struct sheaves_cache *sc, uint32_t cpu, struct alloc_slab *s,
			   void **objs, uint32_t room)
{
	void *obj = take_freelist(sc, cpu, s);
	uint32_t got = 0;

	for (; obj && got < room; obj = alloc_free_next(&sc->head, obj))
		objs[got++] = obj;
	if (obj)
		put_back(sc, cpu, s, obj);
	else
		tell_full(sc, cpu, s, ALLOC_STATE_DETACHED);
	return got;
}

/* Up to @want objects from the partial slabs of @n; @remote: only if list_lock is free. */
static uint32_t refill_from_node(struct sheaves_cache *sc, uint32_t cpu, struct alloc_node *n,
				 void **objs, uint32_t want, bool remote)
{
	struct alloc_slab *run, *aside, *next;
	uint32_t got = 0;

	if (looks_empty(sc, cpu, n))
		return 0;
	if (!remote) {
		aside = sheaves_lock(sc, cpu, n, ALLOC_PATH_REFILL);
	} else {
		if (!alloc_lock_try(&n->list_lock, cpu, ALLOC_PATH_REFILL))
			return 0;
		aside = sc->policy ? sc->policy->unpark(sc, cpu, n) : NULL;
	}
	run = detach_slabs(sc, cpu, n, want);
	sheaves_unlock(sc, cpu, n, aside);
	for (; run && got < want; run = next) {
		next = run->link.next ? alloc_slab_from_link(run->link.next) : NULL;
		got += empty_slab(sc, cpu, run, objs + got, want - got);
	}
	if (run)
		put_back_slabs(sc, cpu, n, run);
	if (got)
		alloc_note_refill(&sc->head, cpu,
				  remote ? ALLOC_REFILL_REMOTE_NODE : ALLOC_REFILL_NODE_PARTIAL,
				  got);
	return got;
}

/* The remote-node gate (specification 1.9). */
static bool gate_open(struct sheaves_cache *sc, uint32_t cpu)
{
	if (!sc->defrag)
		return false;
	return sc->defrag >= SHEAVES_RATIO_ALWAYS ||
	       (int64_t)alloc_gate_draw(sc->head.machine, cpu) <= sc->defrag;
}

/* @i-th node of a remote search, or NULL when it has too few partial slabs. */
static struct alloc_node *remote_node(struct sheaves_cache *sc, uint32_t cpu, uint32_t i)
{
	struct alloc_node *n = &sc->nodes[alloc_node_at(sc->head.machine, sc->cpus[cpu].node, i)];

	return alloc_racy_read(cpu, &n->nr_partial) > (uint64_t)sc->min_partial ? n : NULL;
}

static uint32_t refill_from_others(struct sheaves_cache *sc, uint32_t cpu, void **objs,
				   uint32_t want)
{
	uint32_t got = 0;

	if (!gate_open(sc, cpu))
		return 0;
	for (uint32_t i = 0; i < sc->head.machine->nodes && got < want; i++) {
		struct alloc_node *n = remote_node(sc, cpu, i);

		if (n)
			got += refill_from_node(sc, cpu, n, objs + got, want - got, true);
	}
	return got;
}

/*
 * A new slab.  Its first objects, *@take of them or all it has (*@take is set to that), belong to
 * the caller; the rest goes to the head of its node's list.  Returns the first, NULL: no memory.
 */
static char *new_slab(struct sheaves_cache *sc, uint32_t cpu, int32_t node, uint32_t gfp,
		      uint32_t *take)
{
	struct alloc_cache *c = &sc->head;
	struct alloc_slab *s = alloc_slab_create(c, cpu, node, gfp, true);
	struct alloc_node *n;
	char *obj;

	if (!s)
		return NULL;
	n = &sc->nodes[s->node];
	alloc_count(c, cpu, ALLOC_C_ALLOC_SLAB);
	alloc_node_born(n, cpu, s);
	if (*take > s->word.objects)
		*take = s->word.objects;
	s->word.inuse = *take & 0x7fffffffu;
	if (*take == s->word.objects) {
		alloc_slab_move(c, s, cpu, ALLOC_STATE_FULL);
		return s->mem;
	}
	s->word.freelist = obj = s->mem + (size_t)*take * c->geo.size;
	for (uint32_t i = *take + 1; i < s->word.objects; i++, obj += c->geo.size)
		alloc_free_link(c, obj, obj + c->geo.size);
	alloc_free_link(c, obj, NULL);
	alloc_lock_acquire(&n->list_lock, cpu, ALLOC_PATH_REFILL);
	alloc_partial_add(c, n, cpu, s, ALLOC_LIST_HEAD, *take);
	alloc_lock_release(&n->list_lock, cpu);
	return s->mem;
}

uint32_t sheaves_refill_objects(struct sheaves_cache *sc, uint32_t cpu, uint32_t gfp, void **objs,
				uint32_t want)
{
	struct alloc_node *local = &sc->nodes[sc->cpus[cpu].node];
	uint32_t got = refill_from_node(sc, cpu, local, objs, want, false);

	if (got < want)
		got += refill_from_others(sc, cpu, objs + got, want - got);
	while (got < want) {
		uint32_t take = want - got;
		char *first = new_slab(sc, cpu, ALLOC_NODE_ANY, gfp, &take);

		if (!first)
			break;
		for (uint32_t i = 0; i < take; i++)
			objs[got++] = first + (size_t)i * sc->head.geo.size;
		alloc_note_refill(&sc->head, cpu, ALLOC_REFILL_NEW_SLAB, take);
	}
	return got;
}

int sheaves_refill(struct sheaves_cache *sc, uint32_t cpu, uint32_t gfp, struct alloc_sheaf *s)
{
	uint32_t want = s->capacity - s->size;
	uint32_t got = sheaves_refill_objects(sc, cpu, gfp, s->objects + s->size, want);

	s->size += got;
	alloc_count_add(&sc->head, cpu, ALLOC_C_SHEAF_REFILL, got);
	return got == want ? 0 : -ENOMEM;
}

/*
 * One object of @s, the first of @n's list, which keeps its place unless that was the last one;
 * NULL: a free came between.  list_lock held.  A slab leaves the list before it becomes full: a
 * full one may be parked at any moment, without the lock.
 */
static void *take_one(struct sheaves_cache *sc, uint32_t cpu, struct alloc_node *n,
		      struct alloc_slab *s)
{
	struct alloc_slab_word old = alloc_word_read(cpu, s), new = old;
	uint8_t state = __atomic_load_n(&s->state, __ATOMIC_RELAXED); /* ours, under the lock */

	new.freelist = alloc_free_next(&sc->head, old.freelist);
	new.inuse = (old.inuse + 1) & 0x7fffffffu;
	if (!new.freelist)
		alloc_partial_del(n, s);
	if (!alloc_word_cmpxchg(cpu, s, old, new)) {
		alloc_count(&sc->head, cpu, ALLOC_C_CMPXCHG_DOUBLE_FAIL);
		if (!new.freelist)
			alloc_partial_add(&sc->head, n, cpu, s, ALLOC_LIST_HEAD, old.inuse);
		return NULL;
	}
	if (!new.freelist)
		tell_full(sc, cpu, s, state);
	else
		alloc_slab_move(&sc->head, s, cpu, ALLOC_STATE_PARTIAL);
	return old.freelist;
}

static void *one_from_node(struct sheaves_cache *sc, uint32_t cpu, struct alloc_node *n, bool remote)
{
	struct alloc_slab *s, *aside;
	void *obj = NULL;

	if (looks_empty(sc, cpu, n))
		return NULL;
	aside = sheaves_lock(sc, cpu, n, ALLOC_PATH_ALLOC_SLOWPATH);
	s = alloc_partial_first(n);
	while (s && !(obj = take_one(sc, cpu, n, s)))
		;
	sheaves_unlock(sc, cpu, n, aside);
	if (obj)
		alloc_note_refill(&sc->head, cpu,
				  remote ? ALLOC_REFILL_REMOTE_NODE : ALLOC_REFILL_NODE_PARTIAL, 1);
	return obj;
}

/* One round over the sources of a single object; ALLOC_GFP_THISNODE binds it to @node. */
static void *slow_pass(struct sheaves_cache *sc, uint32_t cpu, int32_t node, uint32_t gfp)
{
	uint32_t first = node == ALLOC_NODE_ANY ? sc->cpus[cpu].node : (uint32_t)node;
	bool only = node != ALLOC_NODE_ANY && (gfp & ALLOC_GFP_THISNODE);
	void *obj = one_from_node(sc, cpu, &sc->nodes[first], false);
	uint32_t take = 1;

	if (!obj && !only && gate_open(sc, cpu))
		for (uint32_t i = 0; !obj && i < sc->head.machine->nodes; i++) {
			struct alloc_node *n = remote_node(sc, cpu, i);

			if (n)
				obj = one_from_node(sc, cpu, n, true);
		}
	if (!obj && (obj = new_slab(sc, cpu, node, gfp, &take)))
		alloc_note_refill(&sc->head, cpu, ALLOC_REFILL_NEW_SLAB, 1);
	return obj;
}

void *sheaves_alloc_slow(struct sheaves_cache *sc, uint32_t cpu, int32_t node, uint32_t gfp)
{
	void *obj = NULL;

	alloc_count(&sc->head, cpu, ALLOC_C_ALLOC_SLOWPATH);
	if (node != ALLOC_NODE_ANY && !(gfp & ALLOC_GFP_THISNODE))
		obj = slow_pass(sc, cpu, node,
				(gfp & ~(uint32_t)ALLOC_GFP_MAY_BLOCK) | ALLOC_GFP_THISNODE);
	return obj ? obj : slow_pass(sc, cpu, node, gfp);
}

uint32_t sheaves_alloc_bulk_slow(struct sheaves_cache *sc, uint32_t cpu, uint32_t gfp, uint32_t nr,
				 void **objs)
{
	uint32_t got = sheaves_refill_objects(sc, cpu, gfp, objs, nr);

	if (got < nr) {
		sheaves_flush_objects(sc, cpu, objs, got, ALLOC_PATH_FREE);
		return 0;
	}
	alloc_count_add(&sc->head, cpu, ALLOC_C_ALLOC_SLOWPATH, nr);
	return nr;
}
