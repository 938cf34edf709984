/* SPDX-License-Identifier: MIT */
/* Events: object identity and what tracers do not see (capture/ingest.h, rules a to e). */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "capture/ingest_internal.h"
#include "capture/kcore.h"
#include "capture/source.h"

static int no_memory(struct tape_err *reterr)
{
	return tape_err_set(reterr, -ENOMEM, "out of memory");
}

static int read_snapshots(struct ingest *ing, struct tape_err *reterr)
{
	const struct capture_source *s = ing->job->source;
	int rc = 0;

	if (s->slab_before)
		rc = snapshot_read(s->slab_before, &ing->before, reterr);
	if (rc >= 0 && s->slab_after)
		rc = snapshot_read(s->slab_after, &ing->after, reterr);
	return rc;
}

static int read_machine(struct ingest *ing, struct tape_err *reterr)
{
	const struct capture_source *s = ing->job->source;
	uint64_t base = ing->job->options->direct_map_base;
	int rc = 0;

	machine_init(&ing->machine);
	if (!base && s->kcore)
		base = kcore_direct_map(s->kcore);
	if (s->zoneinfo)
		rc = machine_zoneinfo(&ing->machine, s->zoneinfo,
				      base ? base : CAPTURE_DIRECT_MAP_X86_64, reterr);
	if (rc >= 0 && s->topology)
		rc = machine_topology(&ing->machine, s->topology, reterr);
	return rc;
}

int ingest_create(const struct import_job *job, struct ingest **ret_ing, struct tape_err *reterr)
{
	TAPE_CLEANUP(ingest_destroyp) struct ingest *ing = calloc(1, sizeof(*ing));
	int rc;

	if (!ing || capture_slots_init(&ing->slots) < 0)
		return no_memory(reterr);
	ing->job = job;
	ing->t = job->t;
	ing->stats = job->stats;
	ing->infer = job->options->infer;
	ing->next_site = 1;
	ing->ev = tape_event_blank();
	rc = read_machine(ing, reterr);
	if (rc >= 0)
		rc = read_snapshots(ing, reterr);
	if (rc >= 0)
		rc = ingest_define_snapshot_caches(ing, reterr);
	if (rc < 0)
		return rc;
	*ret_ing = tape_steal(&ing);
	return 0;
}

void ingest_destroy(struct ingest *ing)
{
	if (!ing)
		return;
	snapshot_destroy(ing->before);
	snapshot_destroy(ing->after);
	intern_fini(&ing->names);
	free(ing->caches);
	addrmap_fini(&ing->addresses);
	capture_slots_fini(&ing->slots);
	map64_fini(&ing->sites);
	intern_fini(&ing->site_texts);
	map64_fini(&ing->site_caches);
	map64_fini(&ing->size_caches);
	map64_fini(&ing->pages);
	map64_fini(&ing->threads);
	free(ing);
}

int ingest_cpu(struct ingest *ing, uint32_t cpu, struct tape_err *reterr)
{
	if (cpu >= TAPE_CPU_MAX)
		return tape_err_set(reterr, -TAPE_E_LIMIT, "CPU %u: the limit is %d", cpu,
				    TAPE_CPU_MAX);
	machine_saw_cpu(&ing->machine, cpu);
	return 0;
}

void ingest_only(struct ingest *ing, const char *names)
{
	ing->only = names;
}

int ingest_slab_after(struct ingest *ing, const char *path, struct tape_err *reterr)
{
	int rc = snapshot_read(path, &ing->after, reterr);

	return rc < 0 ? rc : ingest_define_snapshot(ing, ing->after, reterr);
}

/* Time of the tape for a time of the source; never goes back. */
static uint64_t tape_ts(struct ingest *ing, uint64_t ts)
{
	uint64_t relative;

	if (!ing->started) {
		ing->started = true;
		ing->origin_ts = ts;
	}
	relative = ts - ing->origin_ts;
	if (ts < ing->origin_ts || relative < ing->last_ts) {
		ing->clamped++;
		return ing->last_ts;
	}
	ing->last_ts = relative;
	return relative;
}

/* Rule (e): may an event that happened in [@lo, now] have been lost? */
static uint16_t loss_flag(const struct ingest *ing, uint64_t lo)
{
	return ing->losses && ing->loss_end_ts >= lo ? TAPE_F_UNKNOWN : 0;
}

static int append(struct ingest *ing, uint64_t *ret_seq, struct tape_err *reterr)
{
	struct tape_event *ev = &ing->ev;

	if (ev->cache != TAPE_NO_CACHE) {
		if (ev->flags & TAPE_F_INFERRED)
			ing->caches[ev->cache].inferred++;
		else
			ing->caches[ev->cache].traced++;
	}
	ing->stats->tape_events++;
	return tape_writer_append(ing->t, ev, ret_seq, reterr);
}

/* A new object for the alloc row in ing->ev; the row is appended. */
static int append_alloc(struct ingest *ing, struct addrmap_entry *e, struct tape_err *reterr)
{
	uint32_t slot;

	if (capture_slots_take(&ing->slots, &slot) < 0)
		return no_memory(reterr);
	e->slot = slot;
	e->object = ing->next_object++;
	e->cache = ing->ev.cache;
	e->last_ts = ing->ev.ts_hi;
	e->flags = ADDRMAP_LIVE | (ing->ev.flags & TAPE_F_UNNAMED ? ADDRMAP_UNNAMED : 0) |
		   (ing->ev.flags & TAPE_F_BIG ? ADDRMAP_BIG : 0);
	ing->ev.object = e->object;
	ing->ev.slot = slot;
	return append(ing, &e->alloc_seq, reterr);
}

/* The free row of the live object at @e; ing->ev holds everything but what @e knows. */
static int append_free(struct ingest *ing, struct addrmap_entry *e, struct tape_err *reterr)
{
	ing->ev.op = TAPE_OP_FREE;
	ing->ev.object = e->object;
	ing->ev.slot = e->slot;
	ing->ev.cache = e->cache;
	if (e->flags & ADDRMAP_UNNAMED)
		ing->ev.flags |= TAPE_F_UNNAMED;
	if (e->flags & ADDRMAP_BIG)
		ing->ev.flags |= TAPE_F_BIG;
	capture_slots_put(&ing->slots, e->slot);
	e->flags &= (uint16_t)~ADDRMAP_LIVE;
	e->last_ts = ing->ev.ts;
	return append(ing, NULL, reterr);
}

/* The object at @e ends without an event that names it: the last chance for a guess. */
static int name_before_end(struct ingest *ing, struct addrmap_entry *e, struct tape_err *reterr)
{
	uint16_t guess;

	if (!(e->flags & ADDRMAP_UNNAMED) || e->cache != TAPE_CACHE_UNKNOWN)
		return 0;
	guess = ingest_guess(ing, e);
	if (guess)
		return ingest_rename(ing, e, guess, true, reterr);
	ing->stats->unnamed++;
	return 0;
}

/* Rule (a): the address is handed out again, so its old object was freed unseen. */
static int infer_free(struct ingest *ing, const struct capture_raw *raw, struct addrmap_entry *e,
		      uint64_t now, struct tape_err *reterr)
{
	int rc = name_before_end(ing, e, reterr);

	if (rc < 0 || ing->infer == CAPTURE_INFER_NONE)
		return rc;
	ing->ev = tape_event_blank();
	ing->ev.ts = ing->ev.ts_hi = now;
	ing->ev.ts_lo = e->last_ts;
	ing->ev.cpu = raw->cpu;
	ing->ev.address = raw->address;
	ing->ev.mem_node = machine_node_of(&ing->machine, raw->address);
	ing->ev.flags = TAPE_F_INFERRED | loss_flag(ing, e->last_ts);
	ing->stats->inferred_frees++;
	return append_free(ing, e, reterr);
}

/* The part of a row that raw event and tape event share. */
static void start_row(struct ingest *ing, const struct capture_raw *raw, uint64_t now)
{
	ing->ev = tape_event_blank();
	ing->ev.ts = ing->ev.ts_lo = ing->ev.ts_hi = now;
	ing->ev.cpu = raw->cpu;
	ing->ev.address = raw->address;
	ing->ev.mem_node = machine_node_of(&ing->machine, raw->address);
	ing->ev.site = raw->site;
	ing->ev.tid = raw->tid;
	ing->ev.ctx = raw->ctx;
}

/* *ret_cache: from the event alone; TAPE_CACHE_UNKNOWN when it does not say. */
static int cache_of_event(struct ingest *ing, const struct capture_raw *raw, uint16_t *ret_cache,
			  struct tape_err *reterr)
{
	if (raw->cache)
		return ingest_cache_id(ing, raw->cache, raw->cache_len, ret_cache, reterr);
	if (raw->is_kmalloc && !raw->is_free)
		return ingest_kmalloc_cache(ing, raw, ret_cache, reterr);
	*ret_cache = TAPE_CACHE_UNKNOWN;
	return 0;
}

static int alloc_event(struct ingest *ing, const struct capture_raw *raw, struct addrmap_entry *e,
		       uint16_t cache, uint64_t now, struct tape_err *reterr)
{
	int rc;

	if (e->flags & ADDRMAP_LIVE) {
		rc = infer_free(ing, raw, e, now, reterr);
		if (rc < 0)
			return rc;
	}
	start_row(ing, raw, now);
	ing->ev.op = TAPE_OP_ALLOC;
	ing->ev.cache = cache;
	ing->ev.size = raw->bytes_req;
	ing->ev.gfp = raw->gfp;
	ing->ev.node_req = raw->node_req;
	if (cache == TAPE_CACHE_UNKNOWN) {
		ing->ev.flags |= TAPE_F_UNNAMED;
		ing->needs_guesses = true;
	} else if (cache == TAPE_NO_CACHE) {
		ing->ev.flags |= TAPE_F_BIG;
	}
	e->site = raw->site;
	e->alloc_bytes = raw->bytes_alloc < UINT32_MAX ? (uint32_t)raw->bytes_alloc : 0;
	e->req_bytes = raw->bytes_req < UINT32_MAX ? (uint32_t)raw->bytes_req : 0;
	if (!raw->is_kmalloc)
		ingest_learn_size(ing, e, cache);
	rc = append_alloc(ing, e, reterr);
	if (rc >= 0 && cache != TAPE_CACHE_UNKNOWN && cache != TAPE_NO_CACHE)
		rc = ingest_learn_page(ing, raw->address, cache, reterr);
	return rc;
}

/* Rules (b) and (c): the alloc of the object that @raw frees was not seen, but happened. */
static int infer_alloc(struct ingest *ing, const struct capture_raw *raw, struct addrmap_entry *e,
		       uint16_t cache, bool named, uint64_t now, struct tape_err *reterr)
{
	uint64_t lo = e->last_ts; /* 0 for an address never seen */

	start_row(ing, raw, now);
	ing->ev.op = TAPE_OP_ALLOC;
	ing->ev.ts_lo = lo;
	ing->ev.site = 0;
	ing->ev.tid = 0;
	ing->ev.ctx = TAPE_CTX_UNKNOWN;
	ing->ev.gfp = TAPE_GFP_KERNEL;
	ing->ev.cache = cache;
	ing->ev.flags = TAPE_F_INFERRED | loss_flag(ing, lo);
	if (cache == TAPE_NO_CACHE)
		ing->ev.flags |= TAPE_F_BIG;
	else if (!named)
		ing->ev.flags |= TAPE_F_UNNAMED;
	ing->stats->inferred_allocs++;
	ing->stats->unnamed += cache == TAPE_CACHE_UNKNOWN;
	e->site = 0;
	e->alloc_bytes = e->req_bytes = 0;
	return append_alloc(ing, e, reterr);
}

/* Rule (c): whether an object of @cache that nobody saw allocated may be older than the tape. */
static bool may_be_orphan(const struct ingest *ing, uint16_t cache)
{
	const struct ingest_cache *c;

	if (ing->infer == CAPTURE_INFER_NONE || cache == TAPE_NO_CACHE)
		return true;
	c = &ing->caches[cache];
	return c->orphans_max != UINT64_MAX ? c->orphans < c->orphans_max : !c->shows_untraced;
}

static int orphan_free(struct ingest *ing, const struct capture_raw *raw, struct addrmap_entry *e,
		       uint16_t cache, bool named, uint64_t now, struct tape_err *reterr)
{
	start_row(ing, raw, now);
	ing->ev.op = TAPE_OP_FREE;
	ing->ev.object = e->object = ing->next_object++;
	ing->ev.cache = e->cache = cache;
	ing->ev.flags = TAPE_F_ORPHAN | loss_flag(ing, 0);
	if (cache == TAPE_NO_CACHE)
		ing->ev.flags |= TAPE_F_BIG;
	else if (!named)
		ing->ev.flags |= TAPE_F_UNNAMED;
	if (cache != TAPE_NO_CACHE)
		ing->caches[cache].orphans++;
	e->last_ts = now;
	e->flags = cache == TAPE_NO_CACHE ? ADDRMAP_BIG : 0;
	ing->stats->orphan_frees++;
	return append(ing, NULL, reterr);
}

/* A free whose alloc is not in the recording. */
static int free_unseen(struct ingest *ing, const struct capture_raw *raw, struct addrmap_entry *e,
		       uint16_t cache, bool is_new, uint64_t now, struct tape_err *reterr)
{
	bool named = cache != TAPE_CACHE_UNKNOWN, infer = ing->infer != CAPTURE_INFER_NONE;
	int rc;

	if (!named)
		cache = is_new ? ingest_guess_page(ing, raw->address) : e->cache;
	if (!is_new && infer && cache != TAPE_NO_CACHE)
		ing->caches[cache].shows_untraced = true;
	if (is_new ? may_be_orphan(ing, cache) : !infer)
		return orphan_free(ing, raw, e, cache, named, now, reterr);
	rc = infer_alloc(ing, raw, e, cache, named, now, reterr);
	if (rc < 0)
		return rc;
	start_row(ing, raw, now);
	return append_free(ing, e, reterr);
}

static int free_event(struct ingest *ing, const struct capture_raw *raw, struct addrmap_entry *e,
		      uint16_t cache, bool is_new, uint64_t now, struct tape_err *reterr)
{
	bool named = cache != TAPE_CACHE_UNKNOWN;
	int rc = 0;

	if (!(e->flags & ADDRMAP_LIVE)) {
		rc = free_unseen(ing, raw, e, cache, is_new, now, reterr);
	} else {
		if (named && e->flags & ADDRMAP_UNNAMED) {
			rc = ingest_learn_site(ing, e, cache, reterr);
			if (rc >= 0)
				rc = ingest_rename(ing, e, cache, false, reterr);
		} else {
			rc = name_before_end(ing, e, reterr);
		}
		start_row(ing, raw, now);
		if (rc >= 0)
			rc = append_free(ing, e, reterr);
	}
	return rc >= 0 && named ? ingest_learn_page(ing, raw->address, cache, reterr) : rc;
}

/* ingest_only(): is this an event of the cache that is kept? */
static bool is_kept(struct ingest *ing, const struct capture_raw *raw, uint16_t cache)
{
	const char *name;

	if (raw->is_free && cache == TAPE_CACHE_UNKNOWN)
		return addrmap_is_live(&ing->addresses, raw->address);
	name = cache == TAPE_NO_CACHE ? "" : ing->caches[cache].row.name;
	for (const char *n = ing->only; *n; n += strlen(n) + 1)
		if (!strcmp(n, name))
			return true;
	return false;
}

static void count_raw(struct capture_stats *s, const struct capture_raw *raw)
{
	if (raw->is_free)
		*(raw->is_kmalloc ? &s->kfree : &s->cache_free) += 1;
	else
		*(raw->is_kmalloc ? &s->kmalloc : &s->cache_alloc) += 1;
}

/* Rule (d).  Whose cache it would have been is not known. */
static void null_event(struct ingest *ing, const struct capture_raw *raw)
{
	if (ing->only) {
		ing->stats->other++;
		return;
	}
	count_raw(ing->stats, raw);
	*(raw->is_free ? &ing->stats->null_frees : &ing->stats->failed_allocs) += 1;
}

int ingest_event(struct ingest *ing, const struct capture_raw *raw, struct tape_err *reterr)
{
	uint64_t now = tape_ts(ing, raw->ts);
	struct addrmap_entry *e;
	uint16_t cache;
	bool is_new;
	int rc;

	machine_saw_cpu(&ing->machine, raw->cpu);
	if (raw->address <= INGEST_NULL_MAX) {
		null_event(ing, raw);
		return 0;
	}
	rc = cache_of_event(ing, raw, &cache, reterr);
	if (rc < 0)
		return rc;
	if (ing->only && !is_kept(ing, raw, cache)) {
		ing->stats->other++;
		return 0;
	}
	count_raw(ing->stats, raw);
	e = addrmap_at(&ing->addresses, raw->address, &is_new);
	if (!e)
		return no_memory(reterr);
	return raw->is_free ? free_event(ing, raw, e, cache, is_new, now, reterr)
			    : alloc_event(ing, raw, e, cache, now, reterr);
}

int ingest_marker(struct ingest *ing, uint64_t ts, uint32_t cpu, const char *text,
		  struct tape_err *reterr)
{
	int rc = ingest_cpu(ing, cpu, reterr);

	if (rc < 0)
		return rc;
	ing->stats->markers++;
	ing->stats->tape_events++;
	return tape_writer_marker(ing->t, tape_ts(ing, ts), (uint16_t)cpu, text, reterr);
}

int ingest_loss(struct ingest *ing, int32_t cpu, uint64_t ts_begin, uint64_t ts_end,
		uint64_t events, const char *reason, struct tape_err *reterr)
{
	uint64_t origin = ing->started ? ing->origin_ts : ts_end;
	uint64_t begin = ts_begin > origin ? ts_begin - origin : 0;
	uint64_t end = ts_end > origin ? ts_end - origin : 0;

	ing->losses++;
	ing->stats->lost += events;
	ing->stats->lost_unknown += !events;
	if (end > ing->loss_end_ts)
		ing->loss_end_ts = end;
	return tape_define_loss(ing->t, cpu, begin, end, events, reason, reterr);
}
