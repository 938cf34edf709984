/* SPDX-License-Identifier: MIT */
/*
 * Node partial lists of the SLUB variants: one struct alloc_node per cache and node.
 *
 *	struct alloc_node
 *	  list_lock ---- protects ----> partial: [head] S1 <-> S2 <-> S3 [tail], nr_partial
 *	  nr_slabs, total_objects       all slabs of the node, listed or not
 *
 * Scans start at the head.  nr_partial counts list members, empty ones included.
 *
 * Invariants (alloc_node_check()):
 *	nr_partial == length(partial)
 *	s on a list  <=>  s->flags & ALLOC_SLAB_LISTED
 *	s on the list of node n  =>  s->node == n, 0 < length(s's freelist) == objects - inuse
 *
 * Which functions need list_lock is said at each one; link, nr_partial and the LISTED flag are
 * written under it only.  Everything is static inline: variants are built once per ALLOC_SYNC.
 */
#ifndef SLABTAPE_ALLOCATOR_PARTIAL_H
#define SLABTAPE_ALLOCATOR_PARTIAL_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/sync.h"

/* alloc_slab.flags: the slab is on a node partial list.  Sync: list_lock of its node. */
#define ALLOC_SLAB_LISTED (1u << 0)

struct alloc_node {
	struct alloc_lock list_lock; /* rank ALLOC_RANK_NODE_LIST */
	uint64_t nr_partial;	     /* Sync: written under list_lock, read racily */
	struct alloc_link partial;   /* Sync: list_lock */
	uint64_t nr_slabs;	     /* Sync: atomic */
	uint64_t total_objects;	     /* Sync: atomic */
} __attribute__((aligned(64)));

enum alloc_list_end { ALLOC_LIST_HEAD = 0, ALLOC_LIST_TAIL = 1 };

/* Circular doubly linked lists with a head element. */
static inline void alloc_link_init(struct alloc_link *head)
{
	head->next = head->prev = head;
}

static inline bool alloc_link_empty(const struct alloc_link *head)
{
	return head->next == head;
}

static inline void alloc_link_insert(struct alloc_link *l, struct alloc_link *prev,
				     struct alloc_link *next)
{
	l->prev = prev;
	l->next = next;
	prev->next = next->prev = l;
}

static inline void alloc_link_add(struct alloc_link *head, struct alloc_link *l,
				  enum alloc_list_end end)
{
	if (end == ALLOC_LIST_HEAD)
		alloc_link_insert(l, head, head->next);
	else
		alloc_link_insert(l, head->prev, head);
}

static inline void alloc_link_del(struct alloc_link *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	l->next = l->prev = NULL;
}

/* Before an element is added to or deleted from a list that several CPUs change: its neighbours'
 * lines come here.  The list's lock is held. */
static inline void alloc_link_touch_add(const struct alloc_link *head, enum alloc_list_end end)
{
	alloc_list_touch(end == ALLOC_LIST_HEAD ? head->next : head->prev);
}

static inline void alloc_link_touch_del(const struct alloc_link *l)
{
	alloc_list_touch(l);
	alloc_list_touch(l->prev);
	alloc_list_touch(l->next);
}

/* All of @from, in its order, to the front of @head; @from ends empty. */
static inline void alloc_link_splice(struct alloc_link *head, struct alloc_link *from)
{
	if (alloc_link_empty(from))
		return;
	from->prev->next = head->next;
	head->next->prev = from->prev;
	head->next = from->next;
	from->next->prev = head;
	alloc_link_init(from);
}

/* Array of @c's nodes, zeroed and ready; NULL: no memory.  The caller frees it with free(). */
static inline struct alloc_node *alloc_nodes_create(struct alloc_cache *c)
{
	uint32_t nodes = c->machine->nodes;
	struct alloc_node *array = aligned_alloc(64, nodes * sizeof(*array));

	if (!array)
		return NULL;
	memset(array, 0, nodes * sizeof(*array));
	for (uint32_t n = 0; n < nodes; n++) {
		alloc_lock_init(&array[n].list_lock, c, (uint16_t)n, ALLOC_LOCK_LIST,
				ALLOC_RANK_NODE_LIST);
		alloc_link_init(&array[n].partial);
	}
	return array;
}

/* A slab was born on or left node @n; no lock needed. */
static inline void alloc_node_born(struct alloc_node *n, uint32_t cpu, const struct alloc_slab *s)
{
	alloc_shared_add(cpu, &n->nr_slabs, 1);
	alloc_shared_add(cpu, &n->total_objects, s->word.objects);
}

static inline void alloc_node_gone(struct alloc_node *n, uint32_t cpu, const struct alloc_slab *s)
{
	alloc_shared_add(cpu, &n->nr_slabs, -1);
	alloc_shared_add(cpu, &n->total_objects, -(int64_t)s->word.objects);
}

/*
 * Put @s on the list of its node; @inuse is its present count and decides the state told to the
 * observer (partial or empty).  list_lock held.
 */
static inline void alloc_partial_add(struct alloc_cache *c, struct alloc_node *n, uint32_t cpu,
				     struct alloc_slab *s, enum alloc_list_end end, uint32_t inuse)
{
	assert(!(s->flags & ALLOC_SLAB_LISTED));
	assert(s->node == n->list_lock.node);
	alloc_link_touch_add(&n->partial, end);
	alloc_link_add(&n->partial, &s->link, end);
	s->flags |= ALLOC_SLAB_LISTED;
	alloc_shared_write(&n->nr_partial, n->nr_partial + 1);
	alloc_slab_move(c, s, cpu, inuse ? ALLOC_STATE_PARTIAL : ALLOC_STATE_EMPTY);
}

/* Take @s off the list; its state is the caller's to change.  list_lock held. */
static inline void alloc_partial_del(struct alloc_node *n, struct alloc_slab *s)
{
	assert(s->flags & ALLOC_SLAB_LISTED);
	assert(n->nr_partial > 0);
	alloc_link_touch_del(&s->link);
	alloc_link_del(&s->link);
	s->flags &= ~ALLOC_SLAB_LISTED;
	alloc_shared_write(&n->nr_partial, n->nr_partial - 1);
}

/* First slab of the list, or NULL.  list_lock held. */
static inline struct alloc_slab *alloc_partial_first(const struct alloc_node *n)
{
	return alloc_link_empty(&n->partial) ? NULL : alloc_slab_from_link(n->partial.next);
}

/* The slab after @s, or NULL at the end.  list_lock held. */
static inline struct alloc_slab *alloc_partial_next(const struct alloc_node *n,
						    const struct alloc_slab *s)
{
	return s->link.next == &n->partial ? NULL : alloc_slab_from_link(s->link.next);
}

/*
 * Sorting by shrink (specification 1.13).  Empty slabs leave the list for @empty (tail, in scan
 * order).  The others go to the front of bucket[key] in scan order and the buckets are put to the
 * head of the list, the smallest key first; a slab with a key of @nr_buckets or more keeps its
 * place behind them.
 *   @by_inuse false (5.15 and later): key = free objects - 1; pass 32 buckets.
 *   @by_inuse true (2.6.30, 3.2): key = objects of the cache - inuse; pass objects + 1 buckets.
 * list_lock held.  The caller gives the slabs of @empty back after unlocking.
 */
static inline void alloc_partial_sort(struct alloc_cache *c, struct alloc_node *n, uint32_t cpu,
				      bool by_inuse, struct alloc_link *buckets,
				      uint32_t nr_buckets, struct alloc_link *empty)
{
	struct alloc_slab *next;

	for (uint32_t i = 0; i < nr_buckets; i++)
		alloc_link_init(&buckets[i]);
	for (struct alloc_slab *s = alloc_partial_first(n); s; s = next) {
		struct alloc_slab_word w = alloc_word_read(cpu, s);
		uint32_t key = by_inuse ? c->geo.objects - w.inuse : w.objects - w.inuse - 1;

		next = alloc_partial_next(n, s);
		if (!w.inuse) {
			alloc_partial_del(n, s);
			alloc_link_add(empty, &s->link, ALLOC_LIST_TAIL);
		} else if (key < nr_buckets) {
			alloc_link_del(&s->link);
			alloc_link_add(&buckets[key], &s->link, ALLOC_LIST_HEAD);
		}
	}
	for (uint32_t i = nr_buckets; i--;)
		alloc_link_splice(&n->partial, &buckets[i]);
}

/* What sysfs says about the nodes: slabs, total_objects, objects, partial, objects_partial. */
static inline void alloc_nodes_state(const struct alloc_cache *c, const struct alloc_node *nodes,
				     struct alloc_cache_state *st)
{
	uint64_t free_objs = 0;

	for (uint32_t i = 0; i < c->machine->nodes; i++) {
		const struct alloc_node *n = &nodes[i];

		st->slabs += n->nr_slabs;
		st->total_objects += n->total_objects;
		st->partial += n->nr_partial;
		for (const struct alloc_slab *s = alloc_partial_first(n); s;
		     s = alloc_partial_next(n, s)) {
			st->objects_partial += s->word.inuse;
			free_objs += s->word.objects - s->word.inuse;
		}
	}
	st->objects = st->total_objects - free_objs;
}

/* Length of a freelist that starts at @obj, at most @limit + 1 (a loop or a wild list). */
static inline uint32_t alloc_freelist_length(const struct alloc_cache *c, const void *obj,
					     uint32_t limit)
{
	uint32_t n = 0;

	for (; obj && n <= limit; obj = alloc_free_next(c, obj))
		n++;
	return n;
}

/* inuse + length(freelist) == objects; else -1 with @why. */
static inline int alloc_slab_check(const struct alloc_cache *c, const struct alloc_slab *s,
				   char *why, size_t why_bytes)
{
	uint32_t len = alloc_freelist_length(c, s->word.freelist, s->word.objects);

	if (s->word.inuse + len == s->word.objects)
		return 0;
	snprintf(why, why_bytes, "slab %u: inuse %u + free %u != objects %u", s->id, s->word.inuse,
		 len, s->word.objects);
	return -1;
}

/* The invariants of this file's head, for one node; 0, or -1 with @why. */
static inline int alloc_node_check(const struct alloc_cache *c, const struct alloc_node *n,
				   char *why, size_t why_bytes)
{
	uint32_t node = n->list_lock.node;
	uint64_t length = 0;

	for (const struct alloc_slab *s = alloc_partial_first(n); s; s = alloc_partial_next(n, s)) {
		if (++length > n->nr_partial)
			break;
		if (s->node != node || !(s->flags & ALLOC_SLAB_LISTED) || !s->word.freelist ||
		    s->cache != c) {
			snprintf(why, why_bytes, "node %u: slab %u does not belong on the list", node,
				 s->id);
			return -1;
		}
		if (alloc_slab_check(c, s, why, why_bytes) < 0)
			return -1;
	}
	if (length != n->nr_partial || n->nr_partial > n->nr_slabs) {
		snprintf(why, why_bytes, "node %u: %llu slabs listed, nr_partial %llu, nr_slabs %llu",
			 node, (unsigned long long)length, (unsigned long long)n->nr_partial,
			 (unsigned long long)n->nr_slabs);
		return -1;
	}
	return 0;
}

#endif
