/* SPDX-License-Identifier: MIT */
/*
 * Samples: a look at every slab of the machine, at a bounded number of moments.
 *
 * The moments are interval_ns apart.  When RECORDER_POINTS_MAX of them are full every second one
 * is dropped and the interval doubles, so that an engine need not know how long it will run.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/recorder_internal.h"

void replay_recorder_sample_every(struct replay_recorder *r, uint64_t interval_ns)
{
	if (!(r->kinds & REPLAY_RECORD_SAMPLES))
		return;
	r->interval_ns = interval_ns ? interval_ns : 1;
	r->due_ns = 0;
}

uint64_t replay_recorder_sample_due(const struct replay_recorder *r)
{
	return r->due_ns;
}

/* Drop points 1, 3, 5, ... */
static void thin_out(struct replay_recorder *r)
{
	size_t to = 0;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < r->nr_points; i += 2) {
		size_t first = r->points[i].first;
		size_t end = i + 1 < r->nr_points ? r->points[i + 1].first : r->nr_samples;

		memmove(&r->samples[to], &r->samples[first], (end - first) * sizeof(*r->samples));
		r->points[kept] = r->points[i];
		r->points[kept++].first = to;
		to += end - first;
	}
	r->nr_points = kept;
	r->nr_samples = to;
	r->interval_ns *= 2;
}

/* Rows of the moment being taken: [caches][nodes]. */
struct look {
	struct replay_recorder *r;
	struct tape_sample *rows;
	struct alloc_cached *by_node; /* [nodes]; not on the stack, which may be a fiber's */
};

static void look_at(void *ctx, struct alloc_slab *s)
{
	const struct look *l = ctx;
	struct alloc_slab_info info;
	struct recorder_cache *c = recorder_find(l->r, alloc_slab_cache(s));
	struct tape_sample *row;

	if (!c)
		return;
	alloc_slab_info(s, &info);
	row = &l->rows[(size_t)(c - l->r->caches) * l->r->nodes + info.node];
	row->slabs++;
	row->partial += info.state == ALLOC_STATE_PARTIAL || info.state == ALLOC_STATE_EMPTY;
	row->cpu_partial_slabs += info.state == ALLOC_STATE_CPU_PARTIAL;
	row->objects_inuse += info.inuse;
	row->objects_total += info.objects;
}

static void look_at_caches(const struct look *l)
{
	const struct alloc_variant *v = l->r->plan->variant;
	struct alloc_cached *by_node = l->by_node;

	for (size_t i = 0; v->cached && i < l->r->nr_caches; i++) {
		memset(by_node, 0, l->r->nodes * sizeof(*by_node));
		v->cached(l->r->caches[i].cache, by_node);
		for (uint32_t n = 0; n < l->r->nodes; n++) {
			struct tape_sample *row = &l->rows[i * l->r->nodes + n];

			row->cached_objs = by_node[n].objs;
			row->full_sheaves = by_node[n].full_sheaves;
			row->empty_sheaves = by_node[n].empty_sheaves;
		}
	}
}

static void keep_rows(struct replay_recorder *r, struct tape_sample *rows, uint64_t ts, uint64_t vts)
{
	for (size_t i = 0; i < r->nr_caches * r->nodes; i++) {
		struct tape_sample *row = &rows[i];

		uint8_t *sampled = &r->caches[i / r->nodes].sampled[i % r->nodes];

		*sampled |= row->slabs || row->cached_objs || row->full_sheaves || row->empty_sheaves;
		if (!*sampled)
			continue;
		row->ts = ts;
		row->vts = vts;
		row->cache = r->caches[i / r->nodes].id;
		row->node = (uint16_t)(i % r->nodes);
		if (!recorder_grow(r, &r->samples, r->nr_samples, &r->samples_room,
				   sizeof(*r->samples)))
			return;
		r->samples[r->nr_samples++] = *row;
	}
}

void replay_recorder_sample(struct replay_recorder *r, uint64_t ts, uint64_t vts)
{
	const uint64_t at_ns = vts ? vts : ts;
	struct look l = { .r = r };

	if (!(r->kinds & REPLAY_RECORD_SAMPLES) || r->rc || !r->nr_caches)
		return;
	if (r->nr_points && r->points[r->nr_points - 1].at_ns == at_ns) /* again: the later look */
		r->nr_samples = r->points[--r->nr_points].first;
	if (r->nr_points == RECORDER_POINTS_MAX)
		thin_out(r);
	l.rows = calloc(r->nr_caches * r->nodes, sizeof(*l.rows));
	l.by_node = calloc(r->nodes, sizeof(*l.by_node));
	if (!l.rows || !l.by_node) {
		free(l.rows);
		free(l.by_node);
		r->rc = -ENOMEM;
		return;
	}
	alloc_machine_slabs_each(alloc_cache_machine(r->caches[0].cache), look_at, &l);
	look_at_caches(&l);
	r->points[r->nr_points++] = (struct recorder_point){ r->nr_samples, at_ns };
	keep_rows(r, l.rows, ts, vts);
	free(l.rows);
	free(l.by_node);
	r->due_ns = at_ns - at_ns % r->interval_ns + r->interval_ns;
}
