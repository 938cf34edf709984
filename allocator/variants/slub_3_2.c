/* SPDX-License-Identifier: MIT */
/*
 * Where 3.2 differs from 5.15 by more than a number: four steps of the percpu family.  A failed
 * compare-exchange is retried where later releases give up or start over, leftovers go back one
 * by one, and the estimate of a fetch is the CPU list's own.
 */
#include "allocator/variants/percpu.h"

/* Freeze a listed slab and, @whole, take its objects.  list_lock held. */
static struct alloc_slab_word freeze(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s,
				     bool whole)
{
	struct alloc_slab_word old, new;

	do {
		old = new = alloc_word_read(cpu, s);
		assert(!old.frozen);
		new.frozen = 1;
		if (whole) {
			new.freelist = NULL;
			new.inuse = old.objects;
		}
	} while (!percpu_swap_word(p, cpu, s, old, new));
	return old;
}

struct alloc_slab *percpu_fetch_3_2(struct percpu_cache *p, struct alloc_node *n, uint32_t cpu,
				    void **ret_list)
{
	struct alloc_slab *first = NULL, *next;
	struct alloc_slab_word old;
	uint32_t available = 0;

	if (!alloc_racy_read(cpu, &n->nr_partial))
		return NULL;
	alloc_lock_acquire(&n->list_lock, cpu, ALLOC_PATH_REFILL);
	for (struct alloc_slab *s = alloc_partial_first(n); s; s = next) {
		next = alloc_partial_next(n, s);
		old = freeze(p, cpu, s, !first);
		alloc_partial_del(n, s);
		if (!first) {
			/* Its objects are all in use by now: it adds nothing to `available`. */
			first = s;
			*ret_list = old.freelist;
			alloc_slab_move(&p->head, s, cpu, ALLOC_STATE_CPU);
			percpu_note_fetch(p, n, cpu, old.objects - old.inuse);
		} else {
			percpu_push(p, cpu, s, old.objects - old.inuse, false);
			available = s->pobjects;
		}
		if (available > p->fetch_limit)
			break;
	}
	alloc_lock_release(&n->list_lock, cpu);
	return first;
}

/* All but the last object of @list back on the slab's list, each by itself; the last one left. */
static void *return_all_but_last(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s,
				 void *list)
{
	struct alloc_slab_word old, new;
	void *next;

	while (list && (next = alloc_free_next(&p->head, list))) {
		do {
			old = new = alloc_word_read(cpu, s);
			assert(old.frozen);
			alloc_free_link(&p->head, list, old.freelist);
			new.freelist = list;
			new.inuse--;
		} while (!percpu_swap_word(p, cpu, s, old, new));
		list = next;
	}
	return list;
}

/* One attempt to unfreeze @s together with @last; what it would become is in the flags. */
struct attempt {
	struct alloc_slab_word old, new;
	bool empty, listed;
};

static struct attempt plan_unfreeze(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s,
				    void *last)
{
	struct alloc_node *n = percpu_node(p, s);
	struct attempt a;

	a.old = a.new = alloc_word_read(cpu, s);
	a.new.frozen = 0;
	if (last) {
		alloc_free_link(&p->head, last, a.old.freelist);
		a.new.freelist = last;
		a.new.inuse--;
	}
	a.empty = !a.new.inuse && percpu_enough(p, alloc_racy_read(cpu, &n->nr_partial));
	a.listed = !a.empty && a.new.freelist;
	return a;
}

void percpu_deactivate_3_2(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, void *list)
{
	struct alloc_node *n = percpu_node(p, s);
	enum alloc_list_end end = percpu_end_for(p, cpu, s);
	void *last = return_all_but_last(p, cpu, s, list);
	struct attempt a;
	bool done;

	do {
		a = plan_unfreeze(p, cpu, s, last);
		/* Counted when planned, so once more when the attempt fails. */
		if (a.listed) {
			alloc_lock_acquire(&n->list_lock, cpu, ALLOC_PATH_DEACTIVATE);
			percpu_count_listed(p, cpu, end);
		} else if (!a.empty) {
			alloc_count(&p->head, cpu, ALLOC_C_DEACTIVATE_FULL);
			alloc_slab_move(&p->head, s, cpu, ALLOC_STATE_FULL);
		}
		done = percpu_swap_word(p, cpu, s, a.old, a.new);
		if (done && a.listed)
			alloc_partial_add(&p->head, n, cpu, s, end, a.new.inuse);
		if (a.listed)
			alloc_lock_release(&n->list_lock, cpu);
		else if (!done && !a.empty)
			alloc_slab_move(&p->head, s, cpu, ALLOC_STATE_CPU);
	} while (!done);
	if (a.empty)
		percpu_drop_empty(p, cpu, s);
}

/* Thaw one slab of a list being given up.  *held is the node whose lock is held, NULL: none.
 * True: the slab is empty and to be given back; else it was listed. */
static bool thaw_and_list(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s,
			  enum alloc_lock_path path, struct alloc_node **held)
{
	struct alloc_node *n = percpu_node(p, s);
	struct alloc_slab_word old, new;
	bool going;

	do {
		old = new = alloc_word_read(cpu, s);
		new.frozen = 0;
		/* The node asked is the one locked for the slab before, whichever it is. */
		going = !new.inuse && (!*held || percpu_enough(p, (*held)->nr_partial));
		if (!going && *held != n) {
			if (*held)
				alloc_lock_release(&(*held)->list_lock, cpu);
			*held = n;
			alloc_lock_acquire(&n->list_lock, cpu, path);
		}
	} while (!percpu_swap_word(p, cpu, s, old, new));
	if (!going)
		alloc_partial_add(&p->head, n, cpu, s, ALLOC_LIST_TAIL, new.inuse);
	return going;
}

void percpu_unfreeze_3_2(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *list,
			 enum alloc_lock_path path)
{
	struct alloc_slab *going = NULL, *next;
	struct alloc_node *held = NULL;

	for (struct alloc_slab *s = list; s; s = next) {
		next = percpu_next(s);
		if (thaw_and_list(p, cpu, s, path, &held)) {
			percpu_set_next(s, going);
			going = s;
		}
	}
	if (held)
		alloc_lock_release(&held->list_lock, cpu);
	for (; going; going = next) {
		next = percpu_next(going);
		percpu_drop_empty(p, cpu, going);
	}
}

/* The end of a free that took list_lock of @n, which is dropped here. */
static void free_locked(struct percpu_cache *p, struct alloc_node *n, uint32_t cpu,
			struct alloc_slab *s, struct alloc_slab_word old,
			struct alloc_slab_word new)
{
	bool going = !old.frozen && !new.inuse && percpu_enough(p, n->nr_partial);

	if (old.frozen) {
		alloc_count(&p->head, cpu, ALLOC_C_FREE_FROZEN);
	} else if (going && old.freelist) {
		alloc_partial_del(n, s);
		alloc_count(&p->head, cpu, ALLOC_C_FREE_REMOVE_PARTIAL);
	} else if (!going && !old.freelist) {
		alloc_partial_add(&p->head, n, cpu, s, ALLOC_LIST_TAIL, new.inuse);
		alloc_count(&p->head, cpu, ALLOC_C_FREE_ADD_PARTIAL);
	} else if (!going && !new.inuse) {
		alloc_slab_move(&p->head, s, cpu, ALLOC_STATE_EMPTY);
	}
	alloc_lock_release(&n->list_lock, cpu);
	if (going) {
		alloc_count(&p->head, cpu, ALLOC_C_FREE_SLAB);
		percpu_discard(p, cpu, s);
	}
}

void percpu_free_slow_3_2(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, void *head,
			  void *tail, uint32_t cnt)
{
	struct alloc_slab_word old, new;
	struct alloc_node *n = NULL;

	alloc_count(&p->head, cpu, ALLOC_C_FREE_SLOWPATH);
	do {
		old = new = alloc_word_read(cpu, s);
		alloc_free_link(&p->head, tail, old.freelist);
		new.freelist = head;
		new.inuse -= cnt;
		if (!old.frozen && !n && !old.freelist) {
			new.frozen = 1;
		} else if (!old.frozen && !n && !new.inuse) {
			/* Once taken, the lock is kept through the retries. */
			n = percpu_node(p, s);
			alloc_lock_acquire(&n->list_lock, cpu, ALLOC_PATH_FREE);
		}
	} while (!percpu_swap_word(p, cpu, s, old, new));
	percpu_count_class(p, cpu, old.freelist, new.inuse);
	if (n)
		free_locked(p, n, cpu, s, old, new);
	else if (old.frozen)
		alloc_count(&p->head, cpu, ALLOC_C_FREE_FROZEN);
	else if (!old.freelist)
		percpu_push(p, cpu, s, cnt, true);
}
