/* SPDX-License-Identifier: MIT */
/*
 * SLQB: chains, slabs, flushing and remote frees (specification 11.3, 11.4).
 *
 *	new ---> partial ---> full ---return---> partial(HEAD) ---> gone, as soon as it is empty
 */
#include "allocator/variants/slqb_internal.h"

static void set_nr(struct slqb_chain *ch, uint64_t nr)
{
	alloc_shared_write(&ch->nr, nr);
}

void slqb_push(const struct slqb_cache *qc, struct slqb_chain *ch, void *obj)
{
	alloc_free_link(&qc->head, obj, ch->head);
	if (!ch->head)
		ch->tail = obj;
	ch->head = obj;
	set_nr(ch, ch->nr + 1);
}

void slqb_append(const struct slqb_cache *qc, struct slqb_chain *to, struct slqb_chain *from)
{
	if (!from->head)
		return;
	if (to->head)
		alloc_free_link(&qc->head, to->tail, from->head);
	else
		to->head = from->head;
	to->tail = from->tail;
	set_nr(to, to->nr + from->nr);
	from->head = from->tail = NULL;
	set_nr(from, 0);
}

void *slqb_pop(const struct slqb_cache *qc, struct slqb_chain *ch)
{
	void *obj = ch->head;

	if (!obj)
		return NULL;
	ch->head = alloc_free_next(&qc->head, obj);
	set_nr(ch, ch->nr - 1);
	return obj;
}

/* One object out of @s, which is on no list; then it goes to the HEAD of partial, or to full. */
static void *take_and_link(struct slqb_cache *qc, struct slqb_list *l, uint32_t cpu,
			   struct alloc_slab *s)
{
	void *obj = s->word.freelist;
	bool full;

	assert(obj && s->word.inuse < s->word.objects);
	s->word.freelist = alloc_free_next(&qc->head, obj);
	s->word.inuse = (s->word.inuse + 1u) & 0x7fffffffu;
	full = !s->word.freelist;
	alloc_link_add(full ? &l->full : &l->partial, &s->link, ALLOC_LIST_HEAD);
	if (!full)
		alloc_shared_write(&l->nr_partial, l->nr_partial + 1);
	alloc_slab_move(&qc->head, s, cpu, full ? ALLOC_STATE_FULL : ALLOC_STATE_PARTIAL);
	alloc_count(&qc->head, cpu, ALLOC_C_ALLOC_SLAB_FILL);
	return obj;
}

void *slqb_take_partial(struct slqb_cache *qc, struct slqb_list *l, uint32_t cpu)
{
	struct alloc_slab *s;
	void *obj = NULL;

	if (!alloc_racy_read(cpu, &l->nr_partial))
		return NULL;
	alloc_lock_acquire(&l->page_lock, cpu, ALLOC_PATH_REFILL);
	if (!alloc_link_empty(&l->partial)) {
		s = alloc_slab_from_link(l->partial.next);
		alloc_link_del(&s->link);
		alloc_shared_write(&l->nr_partial, l->nr_partial - 1);
		obj = take_and_link(qc, l, cpu, s);
	}
	alloc_lock_release(&l->page_lock, cpu);
	return obj;
}

/* Colour the slab and chain its objects in address order. */
static void build_slab(struct slqb_cache *qc, struct slqb_cpu *qcpu, struct alloc_slab *s)
{
	char *obj;

	s->mem += qcpu->colour_bytes;
	qcpu->colour_bytes += qc->colour_step_bytes;
	if (qcpu->colour_bytes >= qc->left_over_bytes)
		qcpu->colour_bytes = 0;
	obj = s->mem;
	for (uint32_t i = 1; i < s->word.objects; i++, obj += qc->head.geo.size)
		alloc_free_link(&qc->head, obj, obj + qc->head.geo.size);
	alloc_free_link(&qc->head, obj, NULL);
	s->word.freelist = s->mem;
}

void *slqb_new_slab(struct slqb_cache *qc, uint32_t cpu, uint32_t node, uint32_t gfp)
{
	struct alloc_slab *s = alloc_slab_create(&qc->head, cpu, (int32_t)node, gfp, true);
	struct slqb_cpu *qcpu = &qc->cpus[cpu];
	struct slqb_list *l = &qcpu->list;
	struct slqb_node *n = NULL;
	void *obj;

	if (!s)
		return NULL;
	build_slab(qc, qcpu, s);
	if (s->node != qc->head.machine->cpu_node[cpu]) {
		n = &qc->nodes[s->node];
		l = &n->list;
		alloc_lock_acquire(&n->list_lock, cpu, ALLOC_PATH_ALLOC_SLOWPATH);
	}
	s->owner = l;
	alloc_count(&qc->head, cpu, ALLOC_C_ALLOC_SLAB_NEW);
	alloc_lock_acquire(&l->page_lock, cpu, ALLOC_PATH_ALLOC_SLOWPATH);
	l->nr_slabs++;
	obj = take_and_link(qc, l, cpu, s);
	alloc_lock_release(&l->page_lock, cpu);
	if (n)
		alloc_lock_release(&n->list_lock, cpu);
	return obj;
}

/* An object returns to its slab; the page lock of @l, the slab's owner, is held. */
static void return_to_slab(struct slqb_cache *qc, struct slqb_list *l, uint32_t cpu, void *obj)
{
	struct alloc_slab *s = alloc_obj_slab(qc->head.machine, obj);
	bool was_full = !s->word.freelist;

	assert(s->owner == l && s->word.inuse > 0);
	alloc_free_link(&qc->head, obj, s->word.freelist);
	s->word.freelist = obj;
	s->word.inuse = (s->word.inuse - 1u) & 0x7fffffffu;
	alloc_note_free_class(&qc->head, cpu, was_full, s->word.inuse == 0);
	if (s->word.inuse && !was_full)
		return;
	alloc_link_del(&s->link);
	if (!s->word.inuse) {
		if (!was_full)
			alloc_shared_write(&l->nr_partial, l->nr_partial - 1);
		l->nr_slabs--;
		l->page_stat[SLQB_STAT_FREE]++;
		alloc_slab_discard(&qc->head, cpu, s);
		return;
	}
	alloc_link_add(&l->partial, &s->link, ALLOC_LIST_HEAD);
	alloc_shared_write(&l->nr_partial, l->nr_partial + 1);
	l->page_stat[SLQB_STAT_PARTIAL]++;
	alloc_slab_move(&qc->head, s, cpu, ALLOC_STATE_PARTIAL);
}

uint64_t slqb_claim(struct slqb_cache *qc, struct slqb_list *l, uint32_t cpu,
		    enum alloc_lock_path path)
{
	struct slqb_chain got;
	uint64_t nr;

	if (!alloc_racy_read(cpu, &l->remote.nr))
		return 0;
	alloc_lock_acquire(&l->remote_lock, cpu, path);
	got = l->remote;
	l->remote.head = l->remote.tail = NULL;
	set_nr(&l->remote, 0);
	alloc_shared_write(&l->remote_check, 0);
	alloc_lock_release(&l->remote_lock, cpu);
	nr = got.nr;
	if (!nr)
		return 0;
	alloc_count(&qc->head, cpu, ALLOC_C_CLAIM_REMOTE_LIST);
	alloc_count_add(&qc->head, cpu, ALLOC_C_CLAIM_REMOTE_LIST_OBJECTS, nr);
	slqb_append(qc, &l->freelist, &got);
	return nr;
}

void slqb_flush_batch(struct slqb_cache *qc, struct slqb_list *l, uint32_t cpu,
		      enum alloc_lock_path path)
{
	uint64_t nr = l->freelist.nr < qc->freebatch ? l->freelist.nr : qc->freebatch;
	bool locked = false;

	if (!nr)
		return;
	alloc_count(&qc->head, cpu, ALLOC_C_FLUSH_FREE_LIST);
	alloc_count_add(&qc->head, cpu, ALLOC_C_FLUSH_FREE_LIST_OBJECTS, nr);
	for (; nr; nr--) {
		void *obj = slqb_pop(qc, &l->freelist);
		bool own = alloc_obj_slab(qc->head.machine, obj)->owner == l;

		if (own && !locked)
			alloc_lock_acquire(&l->page_lock, cpu, path);
		if (!own && locked)
			alloc_lock_release(&l->page_lock, cpu);
		locked = own;
		if (own) {
			return_to_slab(qc, l, cpu, obj);
		} else {
			slqb_free_remote(qc, cpu, obj, path);
			alloc_count(&qc->head, cpu, ALLOC_C_FLUSH_FREE_LIST_REMOTE);
		}
	}
	if (locked)
		alloc_lock_release(&l->page_lock, cpu);
}

/* The owner has too many already: its slabs take the objects at once. */
static void return_chain(struct slqb_cache *qc, struct slqb_list *owner, uint32_t cpu,
			 struct slqb_chain *ch, enum alloc_lock_path path)
{
	void *obj;

	alloc_lock_acquire(&owner->page_lock, cpu, path);
	while ((obj = slqb_pop(qc, ch)))
		return_to_slab(qc, owner, cpu, obj);
	alloc_lock_release(&owner->page_lock, cpu);
}

void slqb_flush_rlist(struct slqb_cache *qc, uint32_t cpu, enum alloc_lock_path path)
{
	struct slqb_cpu *qcpu = &qc->cpus[cpu];
	struct slqb_list *owner = qcpu->remote_list;
	uint64_t before;

	if (!qcpu->rlist.nr)
		return;
	alloc_count(&qc->head, cpu, ALLOC_C_FLUSH_RFREE_LIST);
	alloc_count_add(&qc->head, cpu, ALLOC_C_FLUSH_RFREE_LIST_OBJECTS, qcpu->rlist.nr);
	if (alloc_racy_read(cpu, &owner->remote.nr) > qc->hiwater / 2) {
		return_chain(qc, owner, cpu, &qcpu->rlist, path);
		return;
	}
	alloc_lock_acquire(&owner->remote_lock, cpu, path);
	before = owner->remote.nr;
	slqb_append(qc, &owner->remote, &qcpu->rlist);
	if (before < qc->freebatch && owner->remote.nr >= qc->freebatch)
		alloc_shared_write(&owner->remote_check, 1);
	alloc_lock_release(&owner->remote_lock, cpu);
}

void slqb_free_remote(struct slqb_cache *qc, uint32_t cpu, void *obj, enum alloc_lock_path path)
{
	struct slqb_cpu *qcpu = &qc->cpus[cpu];
	struct slqb_list *owner = alloc_obj_slab(qc->head.machine, obj)->owner;
	struct slqb_chain one = { obj, obj, 1 };

	if (owner != qcpu->remote_list) {
		slqb_flush_rlist(qc, cpu, path);
		qcpu->remote_list = owner;
	}
	alloc_free_link(&qc->head, obj, NULL);
	slqb_append(qc, &qcpu->rlist, &one);
	if (qcpu->rlist.nr >= qc->freebatch)
		slqb_flush_rlist(qc, cpu, path);
}
