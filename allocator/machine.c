/* SPDX-License-Identifier: MIT */
/*
 * The machine: CPUs, nodes and the page provider.
 *
 * Pages come in blocks of 2^order, aligned to their length.  A block given back waits on a list of
 * its node and order and is handed out again first (last in, first out); otherwise the arena's
 * bump pointer advances.  Blocks are not merged: deterministic, and peak memory is bounded by the
 * sum of the peaks per order.
 */
#include "allocator/slab.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "allocator/locks.h"
#include "allocator/machine.h"
#include "allocator/ranks.h"

#define ARENA_PAGES_DEFAULT (1ull << 22) /* 16 GiB of addresses per node */

struct arena {
	uint64_t used;			   /* pages behind the bump pointer */
	uint64_t live;			   /* pages handed out now */
	void *waiting[ALLOC_ORDER_MAX + 1]; /* blocks given back; link in their first word */
};

/* Sync: everything here under `lock`, except gate[], which is owner CPU only. */
struct alloc_machine_private {
	pthread_mutex_t lock;
	struct arena arenas[ALLOC_NODE_MAX];
	struct alloc_slab *spare_slabs; /* slab structs for reuse, linked through owner */
	void *slab_blocks;		/* memory behind slab structs, linked through the first word */
	uint64_t limit_pages;
	uint64_t fail_seed;
	uint32_t fail_permille;
	uint64_t requests, fail_from, fail_to; /* alloc_pages_fail() */
	uint64_t gate[ALLOC_CPU_MAX];
	uint8_t *order_table;
};

const struct alloc_sim_hooks *alloc_sim_hooks;

void alloc_sim_set_hooks(const struct alloc_sim_hooks *hooks)
{
	alloc_sim_hooks = hooks;
}

/* SplitMix64: one step of a seeded stream. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9E3779B97F4A7C15ull);

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
	return z ^ (z >> 31);
}

uint32_t alloc_gate_draw(struct alloc_machine *m, uint32_t cpu)
{
	return (uint32_t)(next_random(&m->private->gate[cpu]) & 1023);
}

/* Row of the search order from @from: nearest first, equal distances in the order from, from+1, ... */
static void build_order_row(uint8_t *row, uint32_t from, uint32_t nodes, const uint8_t *distance)
{
	for (uint32_t i = 0; i < nodes; i++) {
		uint8_t node = (uint8_t)((from + i) % nodes);
		uint32_t at = i;

		while (distance && at > 1 &&
		       distance[from * nodes + row[at - 1]] > distance[from * nodes + node]) {
			row[at] = row[at - 1];
			at--;
		}
		row[at] = node;
	}
}

static int check_config(const struct alloc_machine_config *cfg)
{
	if (!cfg->cpus || cfg->cpus > ALLOC_CPU_MAX || !cfg->nodes || cfg->nodes > ALLOC_NODE_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < cfg->cpus; i++)
		if (cfg->cpu_node[i] >= cfg->nodes)
			return -EINVAL;
	return 0;
}

static int map_arenas(struct alloc_machine *m)
{
	uint64_t pages = m->node_pages * m->nodes;
	int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	uint64_t align = (uint64_t)ALLOC_PAGE_BYTES << ALLOC_ORDER_MAX;
	char *raw = mmap(NULL, (pages << ALLOC_PAGE_SHIFT) + align, prot, flags, -1, 0);
	void *table;

	if (raw == MAP_FAILED)
		return -ENOMEM;
	/* The arena start is aligned to the largest block; what is cut off stays unmapped memory. */
	m->base = (char *)(((uintptr_t)raw + align - 1) & ~(uintptr_t)(align - 1));
	if (m->base > raw)
		munmap(raw, (size_t)(m->base - raw));
	if (raw + align > m->base)
		munmap(m->base + (pages << ALLOC_PAGE_SHIFT), (size_t)(raw + align - m->base));
	table = mmap(NULL, pages * sizeof(*m->page_slab), prot, flags, -1, 0);
	if (table == MAP_FAILED) {
		munmap(m->base, pages << ALLOC_PAGE_SHIFT);
		m->base = NULL;
		return -ENOMEM;
	}
	m->page_slab = table;
	/* Blocks come from a bump pointer, so huge pages fill up; where there are none, no harm. */
	madvise(m->base, pages << ALLOC_PAGE_SHIFT, MADV_HUGEPAGE);
	madvise(table, pages * sizeof(*m->page_slab), MADV_HUGEPAGE);
	return 0;
}

int alloc_machine_create(const struct alloc_machine_config *cfg, struct alloc_machine **ret_m)
{
	struct alloc_machine *m;
	struct alloc_machine_private *p;
	int rc = check_config(cfg);

	if (rc < 0)
		return rc;
	m = calloc(1, sizeof(*m));
	if (!m || !(p = m->private = calloc(1, sizeof(*p))))
		goto no_memory;
	pthread_mutex_init(&p->lock, NULL);
	m->cpus = cfg->cpus;
	m->nodes = cfg->nodes;
	m->sync = cfg->sync;
	m->observer = cfg->observer;
	memcpy(m->cpu_node, cfg->cpu_node, cfg->cpus * sizeof(*m->cpu_node));
	m->node_pages = ARENA_PAGES_DEFAULT;
	p->limit_pages = cfg->node_pages && cfg->node_pages < m->node_pages ? cfg->node_pages
									    : m->node_pages;
	p->fail_permille = cfg->high_order_fail_permille;
	p->fail_seed = cfg->seed ^ 0xF4A6ull;
	p->order_table = malloc((size_t)m->nodes * m->nodes);
	m->held = aligned_alloc(64, m->cpus * sizeof(*m->held));
	if (!p->order_table || !m->held || map_arenas(m) < 0)
		goto no_memory;
	for (uint32_t n = 0; n < m->nodes; n++)
		build_order_row(p->order_table + (size_t)n * m->nodes, n, m->nodes, cfg->distance);
	m->node_order = p->order_table;
	memset(m->held, 0, m->cpus * sizeof(*m->held));
	for (uint32_t i = 0; i < m->cpus; i++)
		p->gate[i] = cfg->seed * 0x9E3779B97F4A7C15ull + i;
	*ret_m = m;
	return 0;
no_memory:
	alloc_machine_destroy(m);
	return -ENOMEM;
}

void alloc_machine_destroy(struct alloc_machine *m)
{
	if (!m)
		return;
	if (m->private) {
		for (void *block = m->private->slab_blocks, *next; block; block = next) {
			memcpy(&next, block, sizeof(next));
			free(block);
		}
		free(m->private->order_table);
		pthread_mutex_destroy(&m->private->lock);
	}
	if (m->base) {
		uint64_t pages = m->node_pages * m->nodes;

		munmap(m->base, pages << ALLOC_PAGE_SHIFT);
		munmap(m->page_slab, pages * sizeof(*m->page_slab));
	}
	free(m->held);
	free(m->private);
	free(m);
}

uint64_t alloc_machine_pages(const struct alloc_machine *m)
{
	uint64_t pages = 0;

	for (uint32_t n = 0; n < m->nodes; n++)
		pages += m->private->arenas[n].live;
	return pages;
}

void alloc_page_lock(struct alloc_machine *m, uint32_t cpu)
{
	alloc_rank_check(m, cpu, ALLOC_RANK_LEAF);
	if (m->sync == ALLOC_SYNC_NATIVE)
		pthread_mutex_lock(&m->private->lock);
	alloc_rank_taken(m, cpu, ALLOC_RANK_LEAF);
}

void alloc_page_unlock(struct alloc_machine *m, uint32_t cpu)
{
	alloc_rank_released(m, cpu, ALLOC_RANK_LEAF);
	if (m->sync == ALLOC_SYNC_NATIVE)
		pthread_mutex_unlock(&m->private->lock);
}

/* One block of @node, or NULL.  Page lock held. */
static void *take_block(struct alloc_machine *m, uint16_t node, uint32_t order)
{
	struct arena *a = &m->private->arenas[node];
	uint64_t start, pages = 1ull << order;
	void *block = a->waiting[order];

	if (a->live + pages > m->private->limit_pages)
		return NULL;
	if (block) {
		memcpy(&a->waiting[order], block, sizeof(void *));
	} else {
		start = (a->used + pages - 1) & ~(pages - 1);
		if (start + pages > m->node_pages)
			return NULL;
		a->used = start + pages;
		block = m->base + ((node * m->node_pages + start) << ALLOC_PAGE_SHIFT);
	}
	a->live += pages;
	return block;
}

void *alloc_pages_get(struct alloc_machine *m, uint32_t cpu, int32_t node, uint32_t order,
		      uint32_t gfp, uint16_t *ret_node)
{
	struct alloc_machine_private *p = m->private;
	uint32_t from = node == ALLOC_NODE_ANY ? m->cpu_node[cpu] : (uint32_t)node;
	uint32_t nodes = gfp & ALLOC_GFP_THISNODE ? 1 : m->nodes;
	void *block = NULL;

	if (++p->requests >= p->fail_from && p->requests < p->fail_to)
		return NULL;
	if (order && p->fail_permille && next_random(&p->fail_seed) % 1000 < p->fail_permille)
		return NULL;
	for (uint32_t i = 0; i < nodes && !block; i++) {
		*ret_node = alloc_node_at(m, from, i);
		block = take_block(m, *ret_node, order);
	}
	return block;
}

void alloc_pages_fail(struct alloc_machine *m, uint64_t first, uint64_t nr)
{
	m->private->fail_from = m->private->requests + first;
	m->private->fail_to = m->private->fail_from + nr;
}

uint64_t alloc_pages_requests(const struct alloc_machine *m)
{
	return m->private->requests;
}

void alloc_pages_put(struct alloc_machine *m, void *block, uint16_t node, uint32_t order)
{
	struct arena *a = &m->private->arenas[node];

	assert(a->live >= 1ull << order);
	memcpy(block, &a->waiting[order], sizeof(void *));
	a->waiting[order] = block;
	a->live -= 1ull << order;
}

/* Living slabs of @c (NULL: of every cache). */
static void walk(const struct alloc_machine *m, const struct alloc_cache *c, alloc_slab_fn fn,
		 void *ctx)
{
	for (uint32_t n = 0; n < m->nodes; n++) {
		struct alloc_slab **pages = m->page_slab + n * m->node_pages;
		uint64_t used = m->private->arenas[n].used;

		for (uint64_t page = 0; page < used; page++) {
			struct alloc_slab *s = pages[page];

			if (!s)
				continue;
			page += (1ull << s->order) - 1;
			if (!c || s->cache == c)
				fn(ctx, s);
		}
	}
}

void alloc_slabs_each(const struct alloc_cache *c, alloc_slab_fn fn, void *ctx)
{
	walk(c->machine, c, fn, ctx);
}

void alloc_machine_slabs_each(const struct alloc_machine *m, alloc_slab_fn fn, void *ctx)
{
	walk(m, NULL, fn, ctx);
}

struct alloc_slab *alloc_slab_struct_get(struct alloc_machine *m)
{
	enum { PER_BLOCK = 512 };
	struct alloc_machine_private *p = m->private;
	struct alloc_slab *s = p->spare_slabs, *array;
	void *block, *queue;

	if (!s) {
		/* Slab structs follow one line that links the blocks. */
		block = aligned_alloc(64, 64 + PER_BLOCK * sizeof(*s));
		if (!block)
			return NULL;
		memcpy(block, &p->slab_blocks, sizeof(void *));
		p->slab_blocks = block;
		array = (struct alloc_slab *)((char *)block + 64);
		memset(array, 0, PER_BLOCK * sizeof(*s));
		for (int i = PER_BLOCK - 1; i >= 0; i--) {
			array[i].owner = p->spare_slabs;
			p->spare_slabs = &array[i];
		}
		s = p->spare_slabs;
	}
	p->spare_slabs = s->owner;
	queue = s->lock.sim; /* belongs to the engine and outlives the slab */
	memset(s, 0, sizeof(*s));
	s->lock.sim = queue;
	return s;
}

void alloc_slab_struct_put(struct alloc_machine *m, struct alloc_slab *s)
{
	s->owner = m->private->spare_slabs;
	m->private->spare_slabs = s;
}
