/* SPDX-License-Identifier: MIT */
#include "replay/reorder.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct row {
	uint64_t key, seq;
	struct tape_event ev;
};

struct rows { /* a heap, or a plain list */
	struct row *row;
	size_t nr, capacity;
};

struct freed_slot {
	uint32_t slot;
	uint64_t key; /* of the free */
};

struct replay_reorder {
	const struct replay_config *cfg;
	uint64_t random;
	uint64_t last_key[TAPE_CPU_MAX];
	struct rows heap, foreseen, call; /* call: rows of the bulk call that is coming in */
	size_t next_foreseen;
	uint32_t *alias;	 /* recorded slot -> new slot of the object that has it */
	uint32_t nr_alias;
	uint64_t *alloc_key;	 /* [new slot] */
	uint32_t nr_slots, slots_capacity;
	struct freed_slot *freed; /* ring of new slots, in the order of their frees */
	size_t freed_head, freed_nr, freed_capacity;
	uint64_t orphans;
	uint64_t horizon; /* keys below this are settled */
};

struct replay_reorder *replay_reorder_create(const struct replay_plan *p)
{
	struct replay_reorder *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->cfg = p->cfg;
	r->random = p->cfg->seed ^ 0x9e3779b97f4a7c15u;
	return r;
}

void replay_reorder_destroy(struct replay_reorder *r)
{
	if (!r)
		return;
	free(r->heap.row);
	free(r->foreseen.row);
	free(r->call.row);
	free(r->alias);
	free(r->alloc_key);
	free(r->freed);
	free(r);
}

/* splitmix64 */
static uint64_t draw(struct replay_reorder *r)
{
	uint64_t z = r->random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static int rows_add(struct rows *l, const struct row *row)
{
	if (l->nr == l->capacity) {
		size_t capacity = l->capacity ? l->capacity * 2 : 256;
		struct row *grown = realloc(l->row, capacity * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		l->row = grown;
		l->capacity = capacity;
	}
	l->row[l->nr++] = *row;
	return 0;
}

static int row_order(const struct row *a, const struct row *b)
{
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return (a->seq > b->seq) - (a->seq < b->seq);
}

static int heap_push(struct rows *h, const struct row *row)
{
	int rc = rows_add(h, row);
	size_t at = h->nr - 1;

	if (rc < 0)
		return rc;
	while (at && row_order(row, &h->row[(at - 1) / 2]) < 0) {
		h->row[at] = h->row[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	h->row[at] = *row;
	return 0;
}

static void heap_pop(struct rows *h)
{
	struct row last = h->row[--h->nr];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < h->nr) {
		if (child + 1 < h->nr && row_order(&h->row[child + 1], &h->row[child]) < 0)
			child++;
		if (row_order(&last, &h->row[child]) <= 0)
			break;
		h->row[at] = h->row[child];
		at = child;
	}
	h->row[at] = last;
}

/* ---- slots ---- */

static int alias_set(struct replay_reorder *r, uint32_t old, uint32_t new)
{
	if (old == TAPE_NO_SLOT)
		return 0;
	if (old >= r->nr_alias) {
		uint32_t nr = r->nr_alias ? r->nr_alias : 1024;
		uint32_t *grown;

		while (nr <= old)
			nr = nr > UINT32_MAX / 2 ? UINT32_MAX : nr * 2;
		grown = realloc(r->alias, nr * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		memset(grown + r->nr_alias, 0xff, (nr - r->nr_alias) * sizeof(*grown));
		r->alias = grown;
		r->nr_alias = nr;
	}
	r->alias[old] = new;
	return 0;
}

static uint32_t alias_of(const struct replay_reorder *r, uint32_t old)
{
	return old < r->nr_alias ? r->alias[old] : TAPE_NO_SLOT;
}

static int slot_take(struct replay_reorder *r, uint64_t key, uint32_t *ret_slot)
{
	if (r->freed_nr && r->freed[r->freed_head].key < key) {
		*ret_slot = r->freed[r->freed_head].slot;
		r->freed_head = (r->freed_head + 1) % r->freed_capacity;
		r->freed_nr--;
	} else {
		if (r->nr_slots == r->slots_capacity) {
			uint32_t capacity = r->slots_capacity ? r->slots_capacity * 2 : 1024;
			uint64_t *grown = realloc(r->alloc_key, capacity * sizeof(*grown));

			if (!grown)
				return -ENOMEM;
			r->alloc_key = grown;
			r->slots_capacity = capacity;
		}
		*ret_slot = r->nr_slots++;
	}
	r->alloc_key[*ret_slot] = key;
	return 0;
}

static int slot_put(struct replay_reorder *r, uint32_t slot, uint64_t key)
{
	if (r->freed_nr == r->freed_capacity) {
		size_t capacity = r->freed_capacity ? r->freed_capacity * 2 : 1024;
		struct freed_slot *grown = malloc(capacity * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		for (size_t i = 0; i < r->freed_nr; i++)
			grown[i] = r->freed[(r->freed_head + i) % r->freed_capacity];
		free(r->freed);
		r->freed = grown;
		r->freed_head = 0;
		r->freed_capacity = capacity;
	}
	r->freed[(r->freed_head + r->freed_nr++) % r->freed_capacity] =
		(struct freed_slot){ slot, key };
	return 0;
}

/* ---- keys ---- */

/* A free may not come before its alloc. */
static uint64_t after_alloc(const struct replay_reorder *r, const struct tape_event *ev,
			    uint64_t key)
{
	uint32_t slot = tape_op_frees(ev->op) && !(ev->flags & TAPE_F_ORPHAN) ?
			alias_of(r, ev->slot) : TAPE_NO_SLOT;

	return slot != TAPE_NO_SLOT && key < r->alloc_key[slot] ? r->alloc_key[slot] : key;
}

static uint64_t key_of(struct replay_reorder *r, const struct tape_event *ev)
{
	uint64_t key = ev->ts;

	if (ev->flags & TAPE_F_INFERRED)
		return after_alloc(r, ev, ev->ts);
	if (r->cfg->jitter_ns && ev->op < TAPE_OP_CHECKPOINT)
		key += draw(r) % (r->cfg->jitter_ns + 1);
	if (key < r->last_key[ev->cpu])
		key = r->last_key[ev->cpu];
	return after_alloc(r, ev, key);
}

/* Give @row its new slot and put it into the heap; its key is final. */
static int settle(struct replay_reorder *r, struct row *row)
{
	struct tape_event *ev = &row->ev;
	const uint32_t old = ev->slot;
	int rc = 0;

	if (!(ev->flags & TAPE_F_INFERRED))
		r->last_key[ev->cpu] = row->key;
	if (tape_op_allocates(ev->op) && old != TAPE_NO_SLOT) {
		rc = slot_take(r, row->key, &ev->slot);
		if (rc >= 0)
			rc = alias_set(r, old, ev->slot);
	} else if (tape_op_frees(ev->op) && ev->flags & TAPE_F_ORPHAN) {
		ev->slot = (uint32_t)r->orphans++;
	} else if (tape_op_frees(ev->op)) {
		ev->slot = alias_of(r, old);
		if (ev->slot != TAPE_NO_SLOT) {
			rc = slot_put(r, ev->slot, row->key);
			r->alias[old] = TAPE_NO_SLOT;
		}
	}
	ev->ts = row->key;
	return rc < 0 ? rc : heap_push(&r->heap, row);
}

static int call_settle(struct replay_reorder *r)
{
	uint64_t key = 0;
	int rc = 0;

	for (size_t i = 0; i < r->call.nr; i++)
		key = r->call.row[i].key > key ? r->call.row[i].key : key;
	for (size_t i = 0; i < r->call.nr && rc >= 0; i++) {
		r->call.row[i].key = key;
		rc = settle(r, &r->call.row[i]);
	}
	r->call.nr = 0;
	return rc;
}

/* ---- inferred events that come early ---- */

int replay_reorder_foresee(struct replay_reorder *r, uint64_t seq, const struct tape_event *ev)
{
	return rows_add(&r->foreseen, &(struct row){ ev->ts_lo, seq, *ev });
}

static int compare_rows(const void *a, const void *b)
{
	return row_order(a, b);
}

void replay_reorder_foreseen(struct replay_reorder *r)
{
	if (r->foreseen.nr)
		qsort(r->foreseen.row, r->foreseen.nr, sizeof(struct row), compare_rows);
}

/*
 * Bring in the foreseen rows that belong before (@ts, @seq).  An inferred free knows its object's slot: the
 * object is live now.  An inferred alloc has no recorded slot yet (its row would take it later):
 * the new slot is kept in the foreseen row until then.
 */
static int bring_foreseen(struct replay_reorder *r, uint64_t ts, uint64_t seq)
{
	const struct row bound = { .key = ts, .seq = seq };
	int rc = 0;

	while (r->next_foreseen < r->foreseen.nr && rc >= 0 &&
	       row_order(&r->foreseen.row[r->next_foreseen], &bound) < 0) {
		struct row *f = &r->foreseen.row[r->next_foreseen++], row = *f;

		if (tape_op_allocates(f->ev.op)) {
			rc = slot_take(r, row.key, &row.ev.slot);
			f->ev.slot = row.ev.slot;
			row.ev.ts = row.key;
			if (rc >= 0)
				rc = heap_push(&r->heap, &row);
		} else {
			row.key = after_alloc(r, &row.ev, row.key);
			rc = settle(r, &row);
		}
	}
	return rc;
}

/* The recorded place of an inferred event that came early: its slot changes hands here. */
static int pass_foreseen(struct replay_reorder *r, uint64_t seq, const struct tape_event *ev)
{
	struct row want = { ev->ts_lo, seq, *ev };
	struct row *f = bsearch(&want, r->foreseen.row, r->foreseen.nr, sizeof(want), compare_rows);

	assert(f);
	return tape_op_allocates(ev->op) ? alias_set(r, ev->slot, f->ev.slot) : 0;
}

int replay_reorder_push(struct replay_reorder *r, uint64_t seq, const struct tape_event *ev)
{
	struct row row = { 0, seq, *ev };
	int rc = 0;

	if (r->call.nr && (r->call.row[0].ev.bulk != ev->bulk || r->call.row[0].ev.op != ev->op))
		rc = call_settle(r);
	if (rc >= 0)
		rc = bring_foreseen(r, ev->ts, seq);
	if (rc < 0)
		return rc;
	r->horizon = ev->ts;
	if (ev->flags & TAPE_F_INFERRED && r->cfg->infer == REPLAY_INFER_NONE)
		return 0;
	if (ev->flags & TAPE_F_INFERRED && r->cfg->infer == REPLAY_INFER_EARLY) {
		rc = bring_foreseen(r, ev->ts, seq + 1); /* itself, when its window is empty */
		return rc < 0 ? rc : pass_foreseen(r, seq, ev);
	}
	row.key = key_of(r, ev);
	if (ev->bulk)
		return rows_add(&r->call, &row);
	return settle(r, &row);
}

bool replay_reorder_pop(struct replay_reorder *r, bool all, bool last, struct tape_event *ret_ev,
			uint64_t *ret_seq)
{
	if (all && r->call.nr && call_settle(r) < 0)
		return false;
	if (last && bring_foreseen(r, UINT64_MAX, UINT64_MAX) < 0)
		return false;
	if (!r->heap.nr || (!all && r->heap.row[0].key >= r->horizon) || (r->call.nr && !all))
		return false;
	*ret_ev = r->heap.row[0].ev;
	*ret_seq = r->heap.row[0].seq;
	heap_pop(&r->heap);
	return true;
}
