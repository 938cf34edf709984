/* SPDX-License-Identifier: MIT */
/* Sheaves and barns: where whole sheaves live and change hands.  Contracts: slub_sheaves.h. */
#include "allocator/variants/slub_sheaves.h"

#include <stdlib.h>

struct alloc_sheaf *sheaves_new(struct sheaves_cache *sc, uint32_t cpu, uint32_t capacity)
{
	struct alloc_sheaf *s = malloc(sizeof(*s) + (size_t)capacity * sizeof(s->objects[0]));

	if (!s)
		return NULL;
	*s = (struct alloc_sheaf){ .capacity = capacity };
	alloc_count(&sc->head, cpu, ALLOC_C_SHEAF_ALLOC);
	return s;
}

void sheaves_drop(struct sheaves_cache *sc, uint32_t cpu, struct alloc_sheaf *s)
{
	assert(!s->size);
	alloc_count(&sc->head, cpu, ALLOC_C_SHEAF_FREE);
	free(s);
}

static struct sheaves_barn *barn_of(struct sheaves_cache *sc, uint32_t cpu)
{
	return &sc->barns[sc->cpus[cpu].node];
}

/* Barn lock held for both. */
static void push(struct alloc_sheaf **list, uint64_t *nr, struct alloc_sheaf *s)
{
	s->next = *list;
	*list = s;
	alloc_shared_write(nr, *nr + 1);
}

static struct alloc_sheaf *pop(struct alloc_sheaf **list, uint64_t *nr)
{
	struct alloc_sheaf *s = *list;

	if (s) {
		assert(*nr > 0);
		*list = s->next;
		alloc_shared_write(nr, *nr - 1);
	}
	return s;
}

struct alloc_sheaf *sheaves_barn_swap_empty(struct sheaves_cache *sc, uint32_t cpu,
					    struct alloc_sheaf *s)
{
	struct sheaves_barn *b = barn_of(sc, cpu);
	struct alloc_sheaf *full;

	assert(!s->size && s->capacity == sc->capacity);
	if (!alloc_racy_read(cpu, &b->nr_full))
		return NULL;
	alloc_lock_acquire(&b->lock, cpu, ALLOC_PATH_REFILL);
	full = pop(&b->full, &b->nr_full);
	if (full)
		push(&b->empty, &b->nr_empty, s);
	alloc_lock_release(&b->lock, cpu);
	return full;
}

struct alloc_sheaf *sheaves_barn_swap_full(struct sheaves_cache *sc, uint32_t cpu,
					   struct alloc_sheaf *s, bool *ret_crowded)
{
	struct sheaves_barn *b = barn_of(sc, cpu);
	struct alloc_sheaf *empty;

	assert(s->size == s->capacity);
	*ret_crowded = sheaves_barn_crowded(sc, cpu);
	if (*ret_crowded || !alloc_racy_read(cpu, &b->nr_empty))
		return NULL;
	alloc_lock_acquire(&b->lock, cpu, ALLOC_PATH_FREE);
	empty = pop(&b->empty, &b->nr_empty);
	if (empty)
		push(&b->full, &b->nr_full, s);
	alloc_lock_release(&b->lock, cpu);
	return empty;
}

struct alloc_sheaf *sheaves_barn_get_empty(struct sheaves_cache *sc, uint32_t cpu)
{
	struct sheaves_barn *b = barn_of(sc, cpu);
	struct alloc_sheaf *s;

	if (!alloc_racy_read(cpu, &b->nr_empty))
		return NULL;
	alloc_lock_acquire(&b->lock, cpu, ALLOC_PATH_REFILL);
	s = pop(&b->empty, &b->nr_empty);
	alloc_lock_release(&b->lock, cpu);
	return s;
}

struct alloc_sheaf *sheaves_barn_get_any(struct sheaves_cache *sc, uint32_t cpu)
{
	struct sheaves_barn *b = barn_of(sc, cpu);
	struct alloc_sheaf *s;

	if (!alloc_racy_read(cpu, &b->nr_full) && !alloc_racy_read(cpu, &b->nr_empty))
		return NULL;
	alloc_lock_acquire(&b->lock, cpu, ALLOC_PATH_REFILL);
	s = pop(&b->full, &b->nr_full);
	if (!s)
		s = pop(&b->empty, &b->nr_empty);
	alloc_lock_release(&b->lock, cpu);
	return s;
}

void sheaves_barn_put_full(struct sheaves_cache *sc, uint32_t cpu, struct alloc_sheaf *s)
{
	struct sheaves_barn *b = barn_of(sc, cpu);

	assert(s->size == s->capacity);
	alloc_lock_acquire(&b->lock, cpu, ALLOC_PATH_FREE);
	push(&b->full, &b->nr_full, s);
	alloc_lock_release(&b->lock, cpu);
}

void sheaves_barn_put_empty(struct sheaves_cache *sc, uint32_t cpu, struct alloc_sheaf *s)
{
	struct sheaves_barn *b = barn_of(sc, cpu);

	assert(!s->size);
	alloc_lock_acquire(&b->lock, cpu, ALLOC_PATH_FREE);
	push(&b->empty, &b->nr_empty, s);
	alloc_lock_release(&b->lock, cpu);
}

void sheaves_barn_shrink(struct sheaves_cache *sc, uint32_t cpu, uint32_t node)
{
	struct sheaves_barn *b = &sc->barns[node];
	struct alloc_sheaf *lists[2], *s;

	alloc_lock_acquire(&b->lock, cpu, ALLOC_PATH_SHRINK);
	lists[0] = b->full;
	lists[1] = b->empty;
	b->full = b->empty = NULL;
	alloc_shared_write(&b->nr_full, 0);
	alloc_shared_write(&b->nr_empty, 0);
	alloc_lock_release(&b->lock, cpu);
	for (int i = 0; i < 2; i++)
		while ((s = lists[i])) {
			lists[i] = s->next;
			sheaves_flush(sc, cpu, s);
			sheaves_drop(sc, cpu, s);
		}
}
