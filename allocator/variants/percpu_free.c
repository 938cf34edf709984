/* SPDX-License-Identifier: MIT */
/*
 * Free: onto the CPU's freelist when the object is of the CPU's slab, else to the slab itself by
 * one compare-exchange.  The first free to a full slab makes the slab the freeing CPU's: it goes
 * on that CPU's partial list whatever its node.
 */
#include "allocator/variants/percpu.h"

/* @s was on the list and has just become empty; list_lock of @n is held and is dropped here. */
static void free_emptied(struct percpu_cache *p, struct alloc_node *n, uint32_t cpu,
			 struct alloc_slab *s)
{
	/* 6.8+: it may be on a CPU's list, or about to be listed; then it is not ours to judge. */
	bool listed = s->flags & ALLOC_SLAB_LISTED;
	bool going = listed && percpu_enough(p, n->nr_partial);

	assert(!listed || s->word.freelist);

	if (going) {
		alloc_partial_del(n, s);
		alloc_count(&p->head, cpu, ALLOC_C_FREE_REMOVE_PARTIAL);
	} else if (listed) {
		alloc_slab_move(&p->head, s, cpu, ALLOC_STATE_EMPTY);
	}
	alloc_lock_release(&n->list_lock, cpu);
	if (going) {
		alloc_count(&p->head, cpu, ALLOC_C_FREE_SLAB);
		percpu_discard(p, cpu, s);
	}
}

/* The whole of a free that may touch a list; @old is the slab's word as just read. */
static __attribute__((noinline)) void free_rare(struct percpu_cache *p, uint32_t cpu,
						struct alloc_slab *s, struct alloc_slab_word old,
						void *head, void *tail, uint32_t cnt)
{
	struct alloc_slab_word new;
	struct alloc_node *n;

	for (;; old = alloc_word_read(cpu, s)) {
		n = NULL;
		new = old;
		alloc_free_link(&p->head, tail, old.freelist);
		new.freelist = head;
		assert(old.inuse >= cnt || p->head.machine->sync != ALLOC_SYNC_SERIAL);
		new.inuse -= cnt;
		if (!old.frozen && !old.freelist) {
			new.frozen = p->policy->freeze_partials;
		} else if (!old.frozen && !new.inuse) {
			n = percpu_node(p, s);
			alloc_lock_acquire(&n->list_lock, cpu, ALLOC_PATH_FREE);
		}
		if (percpu_swap_word(p, cpu, s, old, new))
			break;
		if (n)
			alloc_lock_release(&n->list_lock, cpu);
	}
	percpu_count_class(p, cpu, old.freelist, new.inuse);
	if (n) {
		free_emptied(p, n, cpu, s);
	} else if (old.frozen) {
		alloc_count(&p->head, cpu, ALLOC_C_FREE_FROZEN);
	} else if (!old.freelist) {
		percpu_push(p, cpu, s, cnt, true);
		alloc_count_add(&p->head, cpu, ALLOC_C_CPU_PARTIAL_FREE, !p->policy->count_pushes);
	}
}

/*
 * Mostly one exchange: the slab is frozen, or has free objects and keeps some in use, so that no
 * list is touched.  Kept apart, and counting at the end, because that needs few registers.
 */
static inline __attribute__((always_inline)) void
free_to_slab(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, void *head, void *tail,
	     uint32_t cnt, bool slowpath)
{
	struct alloc_slab_word old = alloc_word_read(cpu, s), new = old;

	if (old.frozen || (old.freelist && old.inuse != cnt)) {
		alloc_free_link(&p->head, tail, old.freelist);
		new.freelist = head;
		new.inuse -= cnt;
		if (percpu_swap_word(p, cpu, s, old, new)) {
			alloc_count_add(&p->head, cpu, ALLOC_C_FREE_SLOWPATH, slowpath);
			percpu_count_class(p, cpu, old.freelist, new.inuse);
			if (old.frozen)
				alloc_count(&p->head, cpu, ALLOC_C_FREE_FROZEN);
			return;
		}
		old = alloc_word_read(cpu, s);
	}
	alloc_count_add(&p->head, cpu, ALLOC_C_FREE_SLOWPATH, slowpath);
	free_rare(p, cpu, s, old, head, tail, cnt);
}

void percpu_free_to_slab(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, void *head,
			 void *tail, uint32_t cnt)
{
	free_to_slab(p, cpu, s, head, tail, cnt, false);
}

void percpu_free_slow(struct percpu_cache *p, uint32_t cpu, struct alloc_slab *s, void *head,
		      void *tail, uint32_t cnt)
{
	free_to_slab(p, cpu, s, head, tail, cnt, true);
}

/* Objects of one slab gathered from the end of an array of objects to free. */
struct gathered {
	struct alloc_slab *slab;
	void *head, *tail; /* first and last gathered; linked in that order */
	uint32_t cnt;
};

/*
 * Gather the objects of the last object's slab, going down from the end of objs[0..nr-1] and
 * giving up at the third object of another slab.  What is gathered changes place with what stays,
 * so that the rest is objs[0..return-1].
 */
static uint32_t gather(struct alloc_cache *c, void **objs, uint32_t nr, struct gathered *g)
{
	uint32_t left = nr - 1, strangers = 0;

	*g = (struct gathered){ .slab = alloc_obj_slab(c->machine, objs[left]),
				.head = objs[left], .tail = objs[left], .cnt = 1 };
	for (uint32_t at = left; at-- && strangers < 3;) {
		void *obj = objs[at];

		if (alloc_obj_slab(c->machine, obj) != g->slab) {
			strangers++;
			continue;
		}
		alloc_free_link(c, g->tail, obj);
		g->tail = obj;
		g->cnt++;
		left--;
		objs[at] = objs[left];
		objs[left] = obj;
	}
	return left;
}

void percpu_free_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t nr, void **objs)
{
	struct percpu_cache *p = percpu_cache(c);
	struct percpu_cpu *pc = &p->cpus[cpu];
	struct gathered g;

	while (nr) {
		nr = gather(c, objs, nr, &g);
		if (g.slab != pc->slab) {
			p->policy->free_slow(p, cpu, g.slab, g.head, g.tail, g.cnt);
			continue;
		}
		alloc_free_link(c, g.tail, pc->freelist);
		pc->freelist = g.head;
		alloc_count_add(c, cpu, ALLOC_C_FREE_FASTPATH, p->policy->count_objs ? g.cnt : 1);
	}
}

void percpu_each_free_bulk(struct alloc_cache *c, uint32_t cpu, uint32_t nr, void **objs)
{
	for (uint32_t i = 0; i < nr; i++)
		percpu_free(c, cpu, objs[i]);
}
