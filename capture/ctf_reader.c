/* SPDX-License-Identifier: MIT */
#include "capture/ctf_reader.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "capture/ctf_stream.h"

#define STREAMS_MAX 65536u

/* One buffering domain (a user id and word size): it has a layout, which grows. */
struct domain {
	struct ctf_layout layout;
	struct domain *next;
};

struct ctf_reader {
	struct domain *domains;
	struct ctf_stream **streams; /* in the order in which they came */
	uint32_t nr, capacity;
	struct ctf_stream **order; /* those with a head; a heap by (time, place in streams) */
	uint32_t *rank;		   /* place in streams, beside `order` */
	uint32_t order_nr;
	struct ctf_loss *losses; /* not handed over yet, by ts_begin, latest first */
	size_t losses_nr, losses_capacity;
	uint64_t begin_ts;
};

static int no_memory(struct tape_err *reterr)
{
	return tape_err_set(reterr, -ENOMEM, "out of memory");
}

int ctf_reader_create(struct ctf_reader **ret_reader, struct tape_err *reterr)
{
	*ret_reader = calloc(1, sizeof(**ret_reader));
	return *ret_reader ? 0 : no_memory(reterr);
}

void ctf_reader_destroy(struct ctf_reader *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->nr; i++) {
		ctf_stream_fini(r->streams[i]);
		free(r->streams[i]);
	}
	while (r->domains) {
		struct domain *d = r->domains;

		r->domains = d->next;
		free(d);
	}
	free(r->streams);
	free(r->order);
	free(r->rank);
	free(r->losses);
	free(r);
}

uint64_t ctf_reader_begin(const struct ctf_reader *r)
{
	return r->begin_ts;
}

uint64_t ctf_reader_packets(const struct ctf_reader *r)
{
	uint64_t packets = 0;

	for (uint32_t i = 0; i < r->nr; i++)
		packets += r->streams[i]->packets;
	return packets;
}

/* ---- adding ---- */

static int take_loss(void *ctx, const struct ctf_loss *l, struct tape_err *reterr)
{
	struct ctf_reader *r = ctx;
	size_t at = r->losses_nr;

	if (r->losses_nr == r->losses_capacity) {
		size_t capacity = r->losses_capacity ? r->losses_capacity * 2 : 16;
		struct ctf_loss *grown = realloc(r->losses, capacity * sizeof(*grown));

		if (!grown)
			return no_memory(reterr);
		r->losses = grown;
		r->losses_capacity = capacity;
	}
	for (; at && r->losses[at - 1].ts_begin < l->ts_begin; at--)
		r->losses[at] = r->losses[at - 1];
	r->losses[at] = *l;
	r->losses_nr++;
	return 0;
}

static struct domain *domain_of(struct ctf_reader *r, const struct ctf_layout *layout)
{
	struct domain *d = r->domains;

	while (d && memcmp(d->layout.uuid, layout->uuid, sizeof(layout->uuid)))
		d = d->next;
	if (!d) {
		d = calloc(1, sizeof(*d));
		if (!d)
			return NULL;
		d->next = r->domains;
		r->domains = d;
	}
	d->layout = *layout;
	return d;
}

static int grow(struct ctf_reader *r, struct tape_err *reterr)
{
	uint32_t capacity = r->capacity ? r->capacity * 2 : 16;
	struct ctf_stream **streams = realloc(r->streams, capacity * sizeof(struct ctf_stream *));
	struct ctf_stream **order = realloc(r->order, capacity * sizeof(struct ctf_stream *));
	uint32_t *rank = realloc(r->rank, capacity * sizeof(*rank));

	if (streams)
		r->streams = streams;
	if (order)
		r->order = order;
	if (rank)
		r->rank = rank;
	if (!streams || !order || !rank)
		return no_memory(reterr);
	r->capacity = capacity;
	return 0;
}

static int stream_of(struct ctf_reader *r, const struct domain *d, const char *name,
		     struct ctf_stream **ret_stream, struct tape_err *reterr)
{
	struct ctf_stream *s = NULL;
	int rc = 0;

	for (uint32_t i = 0; i < r->nr; i++) {
		s = r->streams[i];
		if (s->layout == &d->layout && !strcmp(s->name, name)) {
			*ret_stream = s;
			return 0;
		}
	}
	if (r->nr == STREAMS_MAX)
		return tape_err_set(reterr, -TAPE_E_LIMIT, "CTF: more than %u streams", STREAMS_MAX);
	if (r->nr == r->capacity)
		rc = grow(r, reterr);
	s = rc >= 0 ? calloc(1, sizeof(*s)) : NULL;
	if (!s || !(s->name = strdup(name))) {
		free(s);
		return no_memory(reterr);
	}
	s->layout = &d->layout;
	memcpy(s->uuid, d->layout.uuid, sizeof(s->uuid));
	r->streams[r->nr++] = s;
	*ret_stream = s;
	return 0;
}

static int add_file(struct ctf_reader *r, const struct domain *d, const char *folder,
		    const char *name, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) char *path = NULL;
	struct ctf_stream *s = NULL;
	bool first;
	struct stat st;
	int rc;

	if (asprintf(&path, "%s/%s", folder, name) < 0) {
		path = NULL;
		return no_memory(reterr);
	}
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return 0;
	rc = stream_of(r, d, name, &s, reterr);
	if (rc < 0)
		return rc;
	first = !s->packets;
	rc = ctf_stream_add(s, path, take_loss, r, reterr);
	if (rc >= 0 && first && s->packets && (!r->begin_ts || s->start_ts < r->begin_ts))
		r->begin_ts = s->start_ts;
	return rc;
}

/* 1: done.  In order of names, so that equal times come in the same order each time. */
static int add_folder(struct ctf_reader *r, const char *folder, const struct ctf_layout *layout,
		      struct tape_err *reterr)
{
	const struct domain *d = domain_of(r, layout);
	struct dirent **names = NULL;
	int nr = d ? scandir(folder, &names, NULL, alphasort) : -1, rc = 0;

	if (nr < 0)
		return tape_err_set(reterr, d ? -errno : -ENOMEM, "CTF (%s): %s", folder,
				    strerror(errno));
	for (int i = 0; i < nr; i++) {
		if (rc >= 0 && names[i]->d_name[0] != '.' && strcmp(names[i]->d_name, "metadata"))
			rc = add_file(r, d, folder, names[i]->d_name, reterr);
		free(names[i]);
	}
	free(names);
	return rc < 0 ? rc : 1;
}

static int add_folders(struct ctf_reader *r, const struct ctf_folders *folders, char *why,
		       size_t why_bytes, struct tape_err *reterr)
{
	struct ctf_layout *layouts = calloc(folders->nr + 1, sizeof(*layouts));
	int rc = layouts ? 1 : no_memory(reterr);

	for (size_t i = 0; rc > 0 && i < folders->nr; i++)
		rc = ctf_layout_read(folders->paths[i], &layouts[i], why, why_bytes, reterr);
	for (size_t i = 0; rc > 0 && i < folders->nr; i++)
		rc = add_folder(r, folders->paths[i], &layouts[i], reterr);
	free(layouts);
	return rc;
}

int ctf_reader_add(struct ctf_reader *r, const char *path, char *why, size_t why_bytes,
		   struct tape_err *reterr)
{
	struct ctf_folders folders;
	int rc = ctf_folders_find(path, &folders, reterr);

	if (rc < 0)
		return rc;
	rc = add_folders(r, &folders, why, why_bytes, reterr);
	ctf_folders_fini(&folders);
	return rc;
}

/* ---- merging ---- */

static bool before(const struct ctf_reader *r, uint32_t a, uint32_t b)
{
	uint64_t ta = r->order[a]->head.ts, tb = r->order[b]->head.ts;

	return ta < tb || (ta == tb && r->rank[a] < r->rank[b]);
}

static void exchange(struct ctf_reader *r, uint32_t a, uint32_t b)
{
	struct ctf_stream *s = r->order[a];
	uint32_t rank = r->rank[a];

	r->order[a] = r->order[b];
	r->rank[a] = r->rank[b];
	r->order[b] = s;
	r->rank[b] = rank;
}

static void sift_down(struct ctf_reader *r, uint32_t i)
{
	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= r->order_nr)
			return;
		if (child + 1 < r->order_nr && before(r, child + 1, child))
			child++;
		if (!before(r, child, i))
			return;
		exchange(r, i, child);
		i = child;
	}
}

/* All streams that have something to say; the time before which all of it is there. */
static int begin_merge(struct ctf_reader *r, uint64_t *ret_limit, struct tape_err *reterr)
{
	int rc = 0;

	r->order_nr = 0;
	*ret_limit = UINT64_MAX;
	for (uint32_t i = 0; rc >= 0 && i < r->nr; i++) {
		struct ctf_stream *s = r->streams[i];

		if (!s->has_head)
			rc = ctf_stream_next(s, reterr);
		if (s->hold_ts < *ret_limit)
			*ret_limit = s->hold_ts;
		if (rc < 0 || !s->has_head)
			continue;
		r->order[r->order_nr] = s;
		r->rank[r->order_nr++] = i;
	}
	for (uint32_t i = r->order_nr; i-- > 0;)
		sift_down(r, i);
	return rc;
}

/* Losses that begin at or before @ts. */
static int give_losses(struct ctf_reader *r, uint64_t ts, ctf_record_fn fn, void *ctx,
		       struct tape_err *reterr)
{
	int rc = 0;

	while (rc >= 0 && r->losses_nr && r->losses[r->losses_nr - 1].ts_begin <= ts) {
		const struct ctf_loss *l = &r->losses[--r->losses_nr];
		const struct ctf_record lost = {.what = CTF_DISCARDED,
						.ts = l->ts_begin,
						.ts_end = l->ts_end,
						.size = l->events,
						.cpu = l->cpu};

		rc = fn(ctx, &lost, reterr);
	}
	return rc;
}

/* Time up to which the first stream may run on without another look at the others. */
static uint64_t run_limit(const struct ctf_reader *r, uint64_t limit)
{
	for (uint32_t i = 1; i < 3 && i < r->order_nr; i++) {
		uint64_t ts = r->order[i]->head.ts;

		/* At an equal time the lower rank goes first; the heap decides that. */
		if (ts <= limit)
			limit = ts ? ts - 1 : 0;
	}
	if (r->losses_nr && r->losses[r->losses_nr - 1].ts_begin <= limit)
		limit = r->losses[r->losses_nr - 1].ts_begin - 1;
	return limit;
}

/* The head of @s and what follows it up to @limit; the head goes out in any case. */
static int run(struct ctf_stream *s, uint64_t limit, uint64_t *nr, ctf_record_fn fn, void *ctx,
	       struct tape_err *reterr)
{
	int rc;

	do {
		rc = fn(ctx, &s->head, reterr);
		if (rc >= 0)
			rc = ctf_stream_next(s, reterr);
		++*nr;
	} while (rc >= 0 && s->has_head && s->head.ts <= limit);
	return rc;
}

int ctf_reader_merge(struct ctf_reader *r, bool last, uint64_t max, ctf_record_fn fn, void *ctx,
		     struct tape_err *reterr)
{
	uint64_t limit, nr = 0;
	int rc = begin_merge(r, &limit, reterr);

	if (last)
		limit = UINT64_MAX;
	while (rc >= 0 && r->order_nr && r->order[0]->head.ts < limit) {
		struct ctf_stream *s = r->order[0];

		if (nr >= max)
			return 1;
		rc = give_losses(r, s->head.ts, fn, ctx, reterr);
		if (rc >= 0)
			rc = run(s, run_limit(r, limit - 1), &nr, fn, ctx, reterr);
		if (rc >= 0 && !s->has_head) {
			r->order_nr--;
			r->order[0] = r->order[r->order_nr];
			r->rank[0] = r->rank[r->order_nr];
		}
		if (r->order_nr)
			sift_down(r, 0);
	}
	if (rc >= 0 && last)
		rc = give_losses(r, UINT64_MAX, fn, ctx, reterr);
	return rc < 0 ? rc : 0;
}
