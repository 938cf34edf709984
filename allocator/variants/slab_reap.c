/* SPDX-License-Identifier: MIT */
/*
 * SLAB: the reaper, every 2 s on each CPU and every 4 s for its node, and shrink (specification
 * 10.5).  The kernel's first runs are staggered; here they are 2 s and 4 s after the start.  The
 * kernel skips a pass while the global mutex is busy; here it never is.
 */
#include "allocator/variants/slab_internal.h"

/* The alien array of one other node goes home, the next pass looks at the next node. */
static void slab_reap_alien(struct slab_cache *sc, struct slab_node *n, uint32_t cpu)
{
	struct slab_reaper *r = &sc->reaper[cpu];
	struct slab_alien *alien = n->alien ? &n->alien[r->node] : NULL;
	struct slab_node *home = &sc->nodes[r->node];
	struct alloc_link doomed;

	r->node = (r->node + 1) % sc->head.machine->nodes;
	if (!alien || !alien->array || !alloc_racy_read(cpu, &alien->array->avail))
		return;
	if (!alloc_lock_try(&alien->lock, cpu, ALLOC_PATH_REAP))
		return;
	alloc_link_init(&doomed);
	slab_drain_alien(sc, cpu, alien->array, home, ALLOC_PATH_REAP, &doomed);
	alloc_lock_release(&alien->lock, cpu);
	slab_destroy_list(sc, cpu, &doomed);
}

/* A part of an array that was not used lately goes back to the slabs, oldest objects first. */
static void slab_reap_array(struct slab_cache *sc, struct slab_node *n, uint32_t cpu,
			    struct slab_array *a)
{
	struct alloc_link doomed;
	uint64_t nr;

	if (!a || !alloc_racy_read(cpu, &a->avail))
		return;
	if (alloc_racy_read(cpu, &a->touched)) {
		alloc_shared_write(&a->touched, 0);
		return;
	}
	alloc_link_init(&doomed);
	alloc_lock_acquire(&n->lock, cpu, ALLOC_PATH_REAP);
	nr = (a->limit + 4) / 5;
	if (nr > a->avail)
		nr = (a->avail + 1) / 2;
	slab_give_back(sc, n, cpu, a->entry, nr, &doomed);
	slab_drop_oldest(a, nr);
	alloc_lock_release(&n->lock, cpu);
	slab_destroy_list(sc, cpu, &doomed);
}

/* Destroy up to @max slabs from the tail of the free list; the lock is taken for each one. */
static void slab_destroy_free(struct slab_cache *sc, struct slab_node *n, uint32_t cpu,
			      uint64_t max, enum alloc_lock_path path)
{
	for (; max; max--) {
		struct alloc_slab *s;

		alloc_lock_acquire(&n->lock, cpu, path);
		s = slab_last(&n->free);
		if (s) {
			alloc_link_del(&s->link);
			n->free_slabs--;
			n->total_slabs--;
			alloc_shared_write(&n->free_objects, n->free_objects - s->word.objects);
		}
		alloc_lock_release(&n->lock, cpu);
		if (!s)
			return;
		slab_destroy_one(sc, cpu, s);
	}
}

static void slab_reap_node(struct slab_cache *sc, struct slab_node *n, uint32_t cpu, uint64_t now_ns)
{
	uint64_t part = 5ull * sc->head.geo.objects;

	if (alloc_racy_read(cpu, &n->next_reap_ns) > now_ns)
		return;
	alloc_shared_write(&n->next_reap_ns, now_ns + SLAB_REAP_NODE_NS);
	slab_reap_array(sc, n, cpu, n->shared);
	if (alloc_racy_read(cpu, &n->free_touched))
		alloc_shared_write(&n->free_touched, 0);
	else
		slab_destroy_free(sc, n, cpu, (n->free_limit + part - 1) / part, ALLOC_PATH_REAP);
}

void slab_tick(struct alloc_cache *c, uint32_t cpu, uint64_t now_ns)
{
	struct slab_cache *sc = slab_cache_of(c);
	struct slab_node *n = slab_cpu_node(sc, cpu);
	struct slab_reaper *r = &sc->reaper[cpu];
	uint64_t gap_ns = SLAB_REAP_CATCH_UP * SLAB_REAP_CPU_NS;

	if (now_ns > gap_ns && r->next_ns < now_ns - gap_ns)
		r->next_ns = now_ns - gap_ns;
	for (; r->next_ns <= now_ns; r->next_ns += SLAB_REAP_CPU_NS) {
		slab_reap_alien(sc, n, cpu);
		slab_reap_array(sc, n, cpu, sc->cpu_array[cpu]);
		slab_reap_node(sc, n, cpu, r->next_ns);
	}
}

void slab_empty_array(struct slab_cache *sc, struct slab_node *n, uint32_t cpu,
			     struct slab_array *a)
{
	struct alloc_link doomed;

	if (!a)
		return;
	alloc_link_init(&doomed);
	alloc_lock_acquire(&n->lock, cpu, ALLOC_PATH_SHRINK);
	slab_give_back(sc, n, cpu, a->entry, a->avail, &doomed);
	slab_set_avail(a, 0);
	alloc_lock_release(&n->lock, cpu);
	slab_destroy_list(sc, cpu, &doomed);
}

static void slab_empty_aliens(struct slab_cache *sc, struct slab_node *n, uint32_t cpu)
{
	struct alloc_link doomed;

	alloc_link_init(&doomed);
	for (uint32_t home = 0; n->alien && home < sc->head.machine->nodes; home++) {
		struct slab_alien *alien = &n->alien[home];

		if (!alien->array)
			continue;
		alloc_lock_acquire(&alien->lock, cpu, ALLOC_PATH_SHRINK);
		slab_drain_alien(sc, cpu, alien->array, &sc->nodes[home], ALLOC_PATH_SHRINK,
				 &doomed);
		alloc_lock_release(&alien->lock, cpu);
		slab_destroy_list(sc, cpu, &doomed);
	}
}

void slab_shrink(struct alloc_cache *c)
{
	struct slab_cache *sc = slab_cache_of(c);
	uint32_t nodes = c->machine->nodes;

	for (uint32_t cpu = 0; cpu < c->machine->cpus; cpu++)
		slab_empty_array(sc, slab_cpu_node(sc, cpu), cpu, sc->cpu_array[cpu]);
	for (uint32_t i = 0; i < nodes; i++)
		slab_empty_aliens(sc, &sc->nodes[i], 0);
	for (uint32_t i = 0; i < nodes; i++)
		slab_empty_array(sc, &sc->nodes[i], 0, sc->nodes[i].shared);
	for (uint32_t i = 0; i < nodes; i++)
		slab_destroy_free(sc, &sc->nodes[i], 0, UINT64_MAX, ALLOC_PATH_SHRINK);
}
