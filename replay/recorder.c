/* SPDX-License-Identifier: MIT */
#include "replay/recorder_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int replay_recorder_create(const struct replay_plan *p, replay_moment_fn now, void *ctx,
			   struct replay_recorder **ret_recorder)
{
	struct replay_recorder *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->plan = p;
	r->now = now;
	r->ctx = ctx;
	r->kinds = p->cfg->record;
	r->nodes = p->nodes;
	memcpy(r->cpu_node, p->cpu_node, p->cpus * sizeof(*r->cpu_node));
	r->limit = p->cfg->record_limit ? p->cfg->record_limit : UINT64_MAX;
	r->truncated_seq = -1;
	r->due_ns = UINT64_MAX;
	r->by_mask = 63;
	r->by_cache = calloc(r->by_mask + 1, sizeof(*r->by_cache));
	if (!r->by_cache || tape_run_buffer_create(&r->rows) < 0) {
		replay_recorder_destroy(r);
		return -ENOMEM;
	}
	*ret_recorder = r;
	return 0;
}

void replay_recorder_moments(struct replay_recorder *r, replay_moment_fn now, void *ctx)
{
	r->now = now;
	r->ctx = ctx;
	tape_run_buffer_small_stacks(r->rows);
}

void replay_recorder_destroy(struct replay_recorder *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->nr_caches; i++) {
		free(r->caches[i].number);
		free(r->caches[i].locks);
		free(r->caches[i].sampled);
	}
	free(r->caches);
	free(r->by_cache);
	tape_run_buffer_destroy(r->rows);
	free(r->slabs);
	free(r->samples);
	free(r->locks);
	free(r->pins);
	free(r);
}

/* Keep the first error. */
static void fail(struct replay_recorder *r, int rc)
{
	if (!r->rc)
		r->rc = rc;
}

bool recorder_grow(struct replay_recorder *r, void *array, size_t nr, size_t *room, size_t bytes)
{
	size_t want = *room ? 2 * *room : 64;
	void *old, *grown;

	if (nr < *room)
		return true;
	memcpy(&old, array, sizeof(old));
	grown = realloc(old, want * bytes);
	if (!grown) {
		fail(r, -ENOMEM);
		return false;
	}
	memcpy(array, &grown, sizeof(grown));
	*room = want;
	return true;
}

/* ---- caches ---- */

static uint32_t hash_of(const struct alloc_cache *c)
{
	return (uint32_t)(((uintptr_t)c >> 6) * 0x9E3779B97F4A7C15u >> 32);
}

struct recorder_cache *recorder_find(const struct replay_recorder *r, const struct alloc_cache *c)
{
	for (uint32_t at = hash_of(c);; at++) {
		uint32_t index = r->by_cache[at & r->by_mask];

		if (!index)
			return NULL;
		if (r->caches[index - 1].cache == c)
			return &r->caches[index - 1];
	}
}

static void hash_put(struct replay_recorder *r, size_t index)
{
	uint32_t at = hash_of(r->caches[index].cache);

	while (r->by_cache[at & r->by_mask])
		at++;
	r->by_cache[at & r->by_mask] = (uint32_t)index + 1;
}

static int hash_grow(struct replay_recorder *r)
{
	uint32_t mask = 2 * r->by_mask + 1;
	uint32_t *grown = calloc(mask + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	free(r->by_cache);
	r->by_cache = grown;
	r->by_mask = mask;
	for (size_t i = 0; i < r->nr_caches; i++)
		hash_put(r, i);
	return 0;
}

int replay_recorder_cache(struct replay_recorder *r, const struct alloc_cache *c, uint16_t id)
{
	struct recorder_cache entry = { .cache = c, .id = id };

	if (2 * r->nr_caches > r->by_mask && hash_grow(r) < 0)
		return -ENOMEM;
	if (!recorder_grow(r, &r->caches, r->nr_caches, &r->caches_room, sizeof(*r->caches)))
		return -ENOMEM;
	if (r->kinds & REPLAY_RECORD_LOCKS) {
		entry.locks = calloc((size_t)r->nodes * ALLOC_LOCK_MAX * ALLOC_PATH_MAX,
				     sizeof(*entry.locks));
		if (!entry.locks)
			return -ENOMEM;
	}
	entry.sampled = calloc(r->nodes, sizeof(*entry.sampled));
	if (!entry.sampled) {
		free(entry.locks);
		return -ENOMEM;
	}
	r->caches[r->nr_caches] = entry;
	hash_put(r, r->nr_caches++);
	return 0;
}

/* ---- transitions and refills ---- */

/* The moment of a callback; in virtual time samples are taken here. */
static struct replay_moment moment(struct replay_recorder *r)
{
	struct replay_moment m;

	r->now(r->ctx, &m);
	if (m.vts && m.vts >= r->due_ns)
		replay_recorder_sample(r, m.vts, m.vts);
	return m;
}

/* False when nothing more is recorded; the event during which the limit is met is finished. */
static bool goes_on(struct replay_recorder *r, uint64_t rows, const struct replay_moment *m)
{
	if (r->truncated_seq >= 0 || r->rc)
		return false;
	if (rows >= r->limit && m->seq != r->last_seq) {
		r->truncated_seq = (int64_t)m->seq;
		return false;
	}
	r->last_seq = m->seq;
	return true;
}

static bool numbers_grow(struct replay_recorder *r, struct recorder_cache *c, uint32_t id)
{
	uint32_t want = id + 1 > 2 * c->numbers ? id + 64 : 2 * c->numbers;
	uint32_t *grown;

	if (id < c->numbers)
		return true;
	grown = realloc(c->number, want * sizeof(*grown));
	if (!grown) {
		fail(r, -ENOMEM);
		return false;
	}
	memset(grown + c->numbers, 0, (want - c->numbers) * sizeof(*grown));
	c->number = grown;
	c->numbers = want;
	return true;
}

/* The slab's entry: made at its birth, NULL when it was born before (an error that is kept). */
static struct recorder_slab *slab_entry(struct replay_recorder *r, struct recorder_cache *c,
					const struct alloc_slab_info *info,
					const struct replay_moment *m, enum alloc_state from)
{
	struct recorder_slab *s;

	if (from != ALLOC_STATE_NONE) {
		if (info->id < c->numbers && c->number[info->id])
			return &r->slabs[c->number[info->id] - 1];
		fail(r, -TAPE_E_INVARIANT);
		return NULL;
	}
	if (!numbers_grow(r, c, info->id) ||
	    !recorder_grow(r, &r->slabs, r->nr_slabs, &r->slabs_room, sizeof(*r->slabs)))
		return NULL;
	s = &r->slabs[r->nr_slabs++];
	*s = (struct recorder_slab){
		.born_seq = m->seq, .born_ts = m->vts ? m->vts : m->ts, .died_seq = UINT64_MAX,
		.objects = info->objects, .cache = c->id, .node = info->node, .order = info->order,
	};
	c->number[info->id] = (uint32_t)r->nr_slabs;
	return s;
}

void replay_recorder_transition(struct replay_recorder *r, const struct alloc_cache *cache,
				const struct alloc_slab *slab, uint32_t cpu, enum alloc_state from,
				enum alloc_state to)
{
	struct recorder_cache *c;
	struct alloc_slab_info info;
	struct recorder_slab *s;
	struct replay_moment m;
	struct tape_transition tr;

	m = moment(r);
	if (!(r->kinds & REPLAY_RECORD_TRANSITIONS) || !goes_on(r, r->transitions, &m))
		return;
	c = recorder_find(r, cache);
	assert(c);
	alloc_slab_info(slab, &info);
	s = slab_entry(r, c, &info, &m, from);
	if (!s)
		return;
	s->state = (uint8_t)to;
	if (to == ALLOC_STATE_NONE) {
		s->died_seq = m.seq;
		s->died_ts = m.vts ? m.vts : m.ts;
	}
	tr = (struct tape_transition){
		.seq = m.seq, .ts = m.ts, .vts = m.vts, .slab = (uint64_t)(s - r->slabs),
		.inuse = info.inuse, .objects = info.objects, .cpu = (uint16_t)cpu,
		.node = info.node, .cache = c->id, .from = (uint8_t)from, .to = (uint8_t)to, .op = m.op,
	};
	fail(r, tape_run_buffer_transition(r->rows, &tr));
	r->transitions++;
}

void replay_recorder_refill(struct replay_recorder *r, const struct alloc_cache *cache, uint32_t cpu,
			    enum alloc_refill_source source, uint32_t objs)
{
	struct recorder_cache *c;
	struct replay_moment m;

	m = moment(r);
	if (!(r->kinds & REPLAY_RECORD_REFILLS) || !goes_on(r, r->refills, &m))
		return;
	c = recorder_find(r, cache);
	assert(c);
	fail(r, tape_run_buffer_refill(r->rows, &(struct tape_refill){
		.seq = m.seq, .ts = m.ts, .vts = m.vts, .objects = objs, .cpu = (uint16_t)cpu,
		.node = r->cpu_node[cpu], .cache = c->id, .source = (uint8_t)source }));
	r->refills++;
}

/* ---- locks ---- */

void replay_recorder_lock(struct replay_recorder *r, const struct alloc_cache *cache, uint16_t node,
			  enum alloc_lock_kind kind, enum alloc_lock_path path, int acquired,
			  uint64_t wait_ns)
{
	struct recorder_cache *c;
	struct recorder_lock *l;

	if (!(r->kinds & REPLAY_RECORD_LOCKS))
		return;
	c = recorder_find(r, cache);
	if (!c) /* a cache that is just being created: no operation of the tape */
		return;
	l = &c->locks[((size_t)node * ALLOC_LOCK_MAX + (size_t)kind) * ALLOC_PATH_MAX + (size_t)path];
	l->acquisitions += acquired != 0;
	l->try_failed += !acquired;
	l->contended += wait_ns != 0;
	l->wait_ns += wait_ns;
	l->max_wait_ns = wait_ns > l->max_wait_ns ? wait_ns : l->max_wait_ns;
}

int replay_recorder_locks(struct replay_recorder *r, const struct replay_lock *locks, size_t nr)
{
	if (!(r->kinds & REPLAY_RECORD_LOCKS))
		return 0;
	r->locks = calloc(nr ? nr : 1, sizeof(*r->locks));
	if (!r->locks)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const struct replay_lock *l = &locks[i];

		r->locks[r->nr_locks++] = (struct tape_lock){
			.lock = l->lock, .path = l->path, .cache = l->cache, .node = l->node,
			.acquisitions = l->acquisitions, .contended = l->contended,
			.try_failed = l->try_failed, .wait_ns = l->wait_ns, .hold_ns = l->hold_ns,
			.max_wait_ns = l->max_wait_ns, .max_queue = l->max_queue,
			.handover_same_node = l->handover_same_node,
			.handover_remote = l->handover_remote,
		};
	}
	return 0;
}

static int store_cache_locks(const struct replay_recorder *r, const struct recorder_cache *c,
			     struct tape *t, int64_t run, struct tape_err *reterr)
{
	const size_t per_node = ALLOC_LOCK_MAX * ALLOC_PATH_MAX;
	int rc = 0;

	for (size_t i = 0; c->locks && rc >= 0 && i < r->nodes * per_node; i++) {
		const struct recorder_lock *l = &c->locks[i];
		const struct tape_lock row = {
			.lock = alloc_lock_kind_name((enum alloc_lock_kind)(i % per_node /
									     ALLOC_PATH_MAX)),
			.path = alloc_lock_path_name((enum alloc_lock_path)(i % ALLOC_PATH_MAX)),
			.cache = c->id, .node = (uint16_t)(i / per_node),
			.acquisitions = l->acquisitions, .contended = l->contended,
			.try_failed = l->try_failed, .wait_ns = l->wait_ns,
			.max_wait_ns = l->max_wait_ns,
		};

		if (l->acquisitions || l->try_failed)
			rc = tape_run_lock(t, run, &row, reterr);
	}
	return rc;
}

/* ---- the end ---- */

static void slab_rows(struct replay_recorder *r)
{
	for (size_t i = 0; i < r->nr_slabs; i++) {
		const struct recorder_slab *s = &r->slabs[i];
		const bool died = s->died_seq != UINT64_MAX;
		const struct tape_slab row = {
			.slab = i, .born_seq = s->born_seq, .born_ts = s->born_ts,
			.died_seq = died ? (int64_t)s->died_seq : -1,
			.died_ts = died ? (int64_t)s->died_ts : -1, .objects = s->objects,
			.cache = s->cache, .node = s->node, .order = s->order, .state = s->state,
		};

		fail(r, tape_run_buffer_slab(r->rows, &row));
	}
	free(r->slabs);
	r->slabs = NULL;
}

int replay_recorder_finish(struct replay_recorder *r, uint64_t end_ts, struct tape_err *reterr)
{
	int rc = recorder_pins_resolve(r, end_ts, reterr);

	if (rc < 0)
		return rc;
	slab_rows(r);
	r->plan = NULL;
	if (r->rc == -TAPE_E_INVARIANT)
		return tape_err_set(reterr, r->rc, "--record: a slab moved that was never born; this "
				    "is a defect of the variant");
	return r->rc ? tape_err_set(reterr, r->rc, "--record: %s", tape_err_name(r->rc)) : 0;
}

int64_t replay_recorder_truncated(const struct replay_recorder *r)
{
	return r->truncated_seq;
}

int replay_recorder_store(struct replay_recorder *r, struct tape *t, int64_t run,
			  struct tape_err *reterr)
{
	int rc = tape_run_buffer_write(t, run, r->rows, reterr);

	for (size_t i = 0; i < r->nr_samples && rc >= 0; i++)
		rc = tape_run_sample(t, run, &r->samples[i], reterr);
	for (size_t i = 0; i < r->nr_locks && rc >= 0; i++)
		rc = tape_run_lock(t, run, &r->locks[i], reterr);
	for (size_t i = 0; !r->locks && i < r->nr_caches && rc >= 0; i++)
		rc = store_cache_locks(r, &r->caches[i], t, run, reterr);
	return rc < 0 ? rc : 0;
}
