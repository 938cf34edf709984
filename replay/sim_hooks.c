/* SPDX-License-Identifier: MIT */
#include "replay/sim_hooks.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "allocator/locks.h"

static struct {
	struct sim *sim;
	const struct replay_costs *costs;
	const uint16_t *cpu_node;
	struct sim_lock_record *first, **last;
	bool live;		  /* virtual CPUs run; before and after, accesses are free */
	struct zone {
		struct alloc_lock lock;
	} __attribute__((aligned(64))) *zones; /* [nodes] */
	uint64_t *page_requests;  /* [cpus] */
} hooks;

static struct sim_lock_record *record_of(struct alloc_lock *l)
{
	struct sim_lock_record *r = l->sim;

	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (!r || !(r->lock = sim_lock_create(hooks.sim, &l->held)))
		abort(); /* out of memory inside an operation: nothing to return an error to */
	r->cache = l->cache;
	r->kind = l->kind;
	r->node = l->node;
	r->last_holder = UINT32_MAX;
	*hooks.last = r;
	hooks.last = &r->next;
	l->sim = r;
	return r;
}

static void note_taken(struct sim_lock_record *r, uint32_t cpu, enum alloc_lock_path path,
		       uint64_t waited_ps)
{
	struct sim_path_stats *p = &r->paths[path];

	p->acquisitions++;
	if (waited_ps) {
		p->contended++;
		p->wait_ps += waited_ps;
		if (waited_ps > p->max_wait_ps)
			p->max_wait_ps = waited_ps;
		if (hooks.cpu_node[r->last_holder] == hooks.cpu_node[cpu])
			p->handover_same_node++;
		else
			p->handover_remote++;
	}
	r->path = path;
	r->since_ps = sim_now_ps(hooks.sim, cpu);
}

/* The virtual CPU that pays: the running one, also where it works on another CPU's lists. */
static uint32_t payer(void)
{
	uint32_t cpu = sim_running(hooks.sim);

	hooks.sim->vcpus[cpu].accesses++;
	return cpu;
}

static void hook_lock(uint32_t cpu, struct alloc_lock *l, enum alloc_lock_path path)
{
	if (hooks.live) {
		struct sim_lock_record *r = record_of(l);
		uint32_t pays = payer();

		note_taken(r, pays, path, sim_lock_acquire(hooks.sim, pays, r->lock));
	}
	l->held = cpu + 1;
}

static bool hook_trylock(uint32_t cpu, struct alloc_lock *l, enum alloc_lock_path path)
{
	struct sim_lock_record *r;
	uint32_t pays;

	if (!hooks.live) {
		l->held = cpu + 1;
		return true;
	}
	r = record_of(l);
	pays = payer();
	if (!sim_lock_try(hooks.sim, pays, r->lock)) {
		r->paths[path].try_failed++;
		return false;
	}
	note_taken(r, pays, path, 0);
	l->held = cpu + 1;
	return true;
}

static void hook_unlock(uint32_t cpu, struct alloc_lock *l)
{
	struct sim_lock_record *r = l->sim;
	uint32_t pays;

	assert(l->held == cpu + 1);
	(void)cpu;
	if (!hooks.live) {
		l->held = 0;
		return;
	}
	pays = payer();
	/* The release lets earlier CPUs ask first; nobody else touches the record meanwhile. */
	sim_yield(hooks.sim, pays);
	r->paths[r->path].hold_ps += sim_now_ps(hooks.sim, pays) - r->since_ps;
	r->last_holder = pays;
	l->held = 0;
	sim_lock_release(hooks.sim, pays, r->lock);
}

static void hook_shared(uint32_t cpu, const void *address, enum alloc_sim_access access)
{
	if (!hooks.live)
		return;
	cpu = payer();
	sim_line(hooks.sim, cpu, address, access != ALLOC_SIM_READ);
	if (access == ALLOC_SIM_CMPXCHG || access == ALLOC_SIM_WRITE)
		sim_work(hooks.sim, cpu, hooks.costs->atomic_ps);
}

static void hook_page_work(uint32_t cpu, uint16_t node, uint32_t order, bool get)
{
	(void)get;
	if (!hooks.live)
		return;
	cpu = payer();
	sim_yield(hooks.sim, cpu);
	sim_work(hooks.sim, cpu, hooks.costs->page_get_ps + order * hooks.costs->page_order_ps);
	if (++hooks.page_requests[cpu] % hooks.costs->page_batch)
		return;
	hook_lock(cpu, &hooks.zones[node].lock, ALLOC_PATH_PAGE);
	sim_work(hooks.sim, cpu, hooks.costs->zone_hold_ps);
	hook_unlock(cpu, &hooks.zones[node].lock);
}

static const struct alloc_sim_hooks table = {
	.shared = hook_shared,
	.lock = hook_lock,
	.trylock = hook_trylock,
	.unlock = hook_unlock,
	.page_work = hook_page_work,
};

static void on_refill(void *ctx, const struct alloc_cache *c, uint32_t cpu,
		      enum alloc_refill_source source, uint32_t objs)
{
	(void)ctx;
	(void)c;
	(void)cpu;
	/* A sheaf taken whole moves as one pointer. */
	if (hooks.live && source != ALLOC_REFILL_SPARE && source != ALLOC_REFILL_BARN)
		sim_work(hooks.sim, payer(), objs * hooks.costs->refill_object_ps);
}

const struct alloc_observer sim_hooks_observer = { .refill = on_refill };

int sim_hooks_attach(struct sim *s, const struct replay_costs *costs, uint32_t cpus,
		     const uint16_t *cpu_node, uint32_t nodes)
{
	assert(!hooks.sim);
	hooks.zones = aligned_alloc(64, nodes * sizeof(*hooks.zones));
	hooks.page_requests = calloc(cpus, sizeof(*hooks.page_requests));
	if (!hooks.zones || !hooks.page_requests) {
		sim_hooks_detach();
		return -ENOMEM;
	}
	for (uint32_t n = 0; n < nodes; n++)
		alloc_lock_init(&hooks.zones[n].lock, NULL, (uint16_t)n, ALLOC_LOCK_ZONE,
				ALLOC_RANK_LEAF);
	hooks.sim = s;
	hooks.costs = costs;
	hooks.cpu_node = cpu_node;
	hooks.first = NULL;
	hooks.last = &hooks.first;
	alloc_sim_set_hooks(&table);
	return 0;
}

void sim_hooks_live(bool live)
{
	hooks.live = live;
}

void sim_hooks_clear(void)
{
	for (struct sim_lock_record *r = hooks.first; r; r = r->next) {
		__builtin_memset(r->paths, 0, sizeof(r->paths));
		sim_lock_clear(r->lock);
	}
}

void sim_hooks_detach(void)
{
	for (struct sim_lock_record *r = hooks.first, *next; r; r = next) {
		next = r->next;
		free(r);
	}
	free(hooks.zones);
	free(hooks.page_requests);
	__builtin_memset(&hooks, 0, sizeof(hooks));
	alloc_sim_set_hooks(NULL);
}

const struct sim_lock_record *sim_hooks_locks(void)
{
	return hooks.first;
}
