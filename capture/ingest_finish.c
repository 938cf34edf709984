/* SPDX-License-Identifier: MIT */
/* What stands around the events: caches of the snapshots, late names, coverage, counters. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "capture/ingest_internal.h"
#include "capture/source.h"

/* Files of a cache that describe it: cache_knob rows, as recorded. */
static const char *const knob_files[] = {
	"min_partial", "cpu_partial",	 "remote_node_defrag_ratio", "order",
	"slab_size",   "objs_per_slab", "sheaf_capacity",
};

static int define_unknown(struct ingest *ing, struct tape_err *reterr)
{
	ing->caches = calloc(64, sizeof(*ing->caches));
	if (!ing->caches)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	ing->caches_capacity = 64;
	ing->caches_nr = 1;
	ing->caches[0].row.coverage = 1;
	ing->caches[0].orphans_max = UINT64_MAX;
	memcpy(ing->caches[0].row.name, "unknown", sizeof("unknown"));
	return 0;
}

static int define_knobs(struct ingest *ing, const struct snapshot *s, const char *name,
			uint16_t cache, struct tape_err *reterr)
{
	for (size_t i = 0; i < sizeof(knob_files) / sizeof(knob_files[0]); i++) {
		int64_t value = snapshot_number(s, name, knob_files[i], INT64_MIN);
		char text[24];
		int rc;

		if (value == INT64_MIN)
			continue;
		snprintf(text, sizeof(text), "%lld", (long long)value);
		rc = tape_define_knob(ing->t, cache, knob_files[i], text, reterr);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int define_from(struct ingest *ing, const struct snapshot *s, uint32_t number,
		       struct tape_err *reterr)
{
	const struct intern_text *name = &s->caches.texts[number];
	struct ingest_cache *c;
	uint16_t id;
	int rc = ingest_cache_id(ing, name->text, name->len, &id, reterr);

	if (rc < 0)
		return rc;
	c = &ing->caches[id];
	if (c->row.object_size)
		return 0; /* the other snapshot had it */
	c->row.object_size = (uint64_t)snapshot_number(s, name->text, "object_size", 0);
	c->row.align = (uint64_t)snapshot_number(s, name->text, "align", 0);
	if (snapshot_number(s, name->text, "hwcache_align", 0))
		c->row.flags |= TAPE_CACHE_HWALIGN;
	if (snapshot_number(s, name->text, "destroy_by_rcu", 0))
		c->row.flags |= TAPE_CACHE_RCU;
	if (snapshot_has(s, name->text, "ctor"))
		c->row.flags |= TAPE_CACHE_CTOR;
	/* kmalloc caches serve kmalloc alone, and that is named by its size already. */
	if (!(c->row.flags & TAPE_CACHE_KMALLOC))
		rc = ingest_learn_sizes(ing, id, c->row.object_size,
					(uint64_t)snapshot_number(s, name->text, "slab_size", 0),
					reterr);
	if (rc >= 0)
		rc = tape_define_cache(ing->t, &c->row, reterr);
	return rc < 0 ? rc : define_knobs(ing, s, name->text, id, reterr);
}

int ingest_define_snapshot(struct ingest *ing, const struct snapshot *s, struct tape_err *reterr)
{
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < s->caches.nr; i++)
		rc = define_from(ing, s, i, reterr);
	return rc;
}

int ingest_define_snapshot_caches(struct ingest *ing, struct tape_err *reterr)
{
	int rc = define_unknown(ing, reterr);

	if (rc >= 0 && ing->before)
		rc = ingest_define_snapshot(ing, ing->before, reterr);
	if (rc >= 0 && ing->after)
		rc = ingest_define_snapshot(ing, ing->after, reterr);
	for (uint32_t i = 1; rc >= 0 && ing->before && i < ing->caches_nr; i++)
		ing->caches[i].orphans_max = (uint64_t)snapshot_number(
			ing->before, ing->caches[i].row.name, "objects", 0);
	return rc;
}

/* Objects that are live at the end and were never named. */
static int name_the_rest(struct ingest *ing, struct tape_err *reterr)
{
	struct addrmap *m = &ing->addresses;

	for (size_t i = 0; m->entries && i <= m->mask; i++) {
		struct addrmap_entry *e = &m->entries[i];
		uint16_t guess;
		int rc;

		if (!(e->flags & ADDRMAP_LIVE) || !(e->flags & ADDRMAP_UNNAMED))
			continue;
		guess = ingest_guess(ing, e);
		if (!guess) {
			ing->stats->unnamed++;
			continue;
		}
		rc = ingest_rename(ing, e, guess, true, reterr);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int store_caches(struct ingest *ing, struct tape_err *reterr)
{
	for (uint32_t i = 0; i < ing->caches_nr; i++) {
		struct ingest_cache *c = &ing->caches[i];
		uint64_t all = c->traced + c->inferred;
		int rc;

		if (!i && !all)
			continue;
		c->row.coverage = all ? (double)c->traced / (double)all : 1;
		rc = tape_define_cache(ing->t, &c->row, reterr);
		if (rc >= 0 && c->alloc_bytes && !ing->before && !ing->after) {
			char text[24];

			snprintf(text, sizeof(text), "%llu", (unsigned long long)c->alloc_bytes);
			rc = tape_define_knob(ing->t, c->row.id, "slab_size", text, reterr);
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int store_meta(struct ingest *ing, struct tape_err *reterr)
{
	static const char *const infer[] = { [CAPTURE_INFER_LATE] = "late",
					     [CAPTURE_INFER_EARLY] = "early",
					     [CAPTURE_INFER_NONE] = "none" };
	const struct {
		const char *key;
		uint64_t value;
	} numbers[] = {
		{ "null_frees", ing->stats->null_frees },
		{ "failed_allocs", ing->stats->failed_allocs },
		{ "unnamed_allocs", ing->stats->unnamed },
		{ "guessed_allocs", ing->stats->guessed },
		{ "clock_steps_back", ing->clamped },
		{ "clock_origin_ns", ing->origin_ts },
	};
	int rc = tape_meta_set(ing->t, "infer", infer[ing->infer], reterr);

	if (rc >= 0 && ing->job->source->release)
		rc = tape_meta_set(ing->t, "kernel", ing->job->source->release, reterr);
	for (size_t i = 0; rc >= 0 && i < sizeof(numbers) / sizeof(numbers[0]); i++)
		rc = tape_meta_set_int(ing->t, numbers[i].key, (int64_t)numbers[i].value, reterr);
	return rc;
}

int ingest_finish(struct ingest *ing, struct tape_err *reterr)
{
	int rc = name_the_rest(ing, reterr);

	if (rc >= 0)
		rc = machine_store(&ing->machine, ing->t, reterr);
	if (rc >= 0)
		rc = store_caches(ing, reterr);
	if (rc >= 0)
		rc = store_meta(ing, reterr);
	if (rc >= 0)
		rc = ingest_store_counters(ing, reterr);
	return rc;
}
