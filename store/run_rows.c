/* SPDX-License-Identifier: MIT */
#include "store/run_rows.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "traces/records.h"

#define BIT(column) (1u << (column))

const struct run_kind_spec run_kinds[RUN_KINDS] = {
	[RUN_TRANSITION] = { "transition", TR_MAX, TR_SEQ, TR_TS,
			     BIT(TR_SEQ) | BIT(TR_TS) | BIT(TR_VTS), 0 },
	[RUN_REFILL] = { "refill", RE_MAX, RE_SEQ, RE_TS, BIT(RE_SEQ) | BIT(RE_TS) | BIT(RE_VTS), 0 },
	[RUN_SLAB] = { "slab", SL_MAX, SL_BORN_SEQ, SL_BORN_TS,
		       BIT(SL_SLAB) | BIT(SL_BORN_SEQ) | BIT(SL_BORN_TS) | BIT(SL_DIED_SEQ) |
		       BIT(SL_DIED_TS), BIT(SL_DIED_SEQ) | BIT(SL_DIED_TS) },
	[RUN_PINNED] = { "pinned", PI_MAX, PI_ALLOC_SEQ, PI_ALLOC_TS,
			 BIT(PI_OBJECT) | BIT(PI_AGE) | BIT(PI_ALLOC_SEQ) | BIT(PI_ALLOC_TS), 0 },
};

/* One compressed chunk; its columns follow one another in @data. */
struct block {
	struct block *next;
	enum run_kind kind;
	uint32_t nr;
	int64_t first_seq, last_seq, ts_min, ts_max;
	size_t bytes[RUN_COLUMNS_MAX];
	char data[];
};

/* Rows that wait to become a chunk. */
struct open_chunk {
	uint32_t nr;
	int64_t *columns[RUN_COLUMNS_MAX]; /* TAPE_CHUNK_EVENTS numbers each; NULL until used */
};

struct tape_run_buffer {
	struct open_chunk open[RUN_KINDS];
	struct block *first, **last;
	uint64_t bytes;
	bool small_stacks;
	struct tape_codec *codec;
	char *scratch;
	size_t scratch_bytes;
};

int tape_run_buffer_create(struct tape_run_buffer **ret_buffer)
{
	struct tape_run_buffer *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->last = &b->first;
	b->codec = tape_codec_create();
	if (!b->codec) {
		free(b);
		return -ENOMEM;
	}
	*ret_buffer = b;
	return 0;
}

void tape_run_buffer_destroy(struct tape_run_buffer *b)
{
	if (!b)
		return;
	for (struct block *k = b->first, *next; k; k = next) {
		next = k->next;
		free(k);
	}
	for (int kind = 0; kind < RUN_KINDS; kind++)
		for (int i = 0; i < RUN_COLUMNS_MAX; i++)
			free(b->open[kind].columns[i]);
	tape_codec_destroy(b->codec);
	free(b->scratch);
	free(b);
}

uint64_t tape_run_buffer_bytes(const struct tape_run_buffer *b)
{
	return b->bytes;
}

void tape_run_buffer_small_stacks(struct tape_run_buffer *b)
{
	b->small_stacks = true;
}

/* ---- rows to chunks ---- */

static void range_of(const int64_t *values, uint32_t nr, int64_t *ret_least, int64_t *ret_most)
{
	*ret_least = *ret_most = values[0];
	for (uint32_t i = 1; i < nr; i++) {
		*ret_least = values[i] < *ret_least ? values[i] : *ret_least;
		*ret_most = values[i] > *ret_most ? values[i] : *ret_most;
	}
}

/* Encode every column behind one another into b->scratch. */
static int encode(struct tape_run_buffer *b, enum run_kind kind, struct block *head,
		  size_t *ret_bytes)
{
	const struct run_kind_spec *k = &run_kinds[kind];
	const struct open_chunk *c = &b->open[kind];
	size_t used = 0;

	for (int i = 0; i < k->columns; i++) {
		const void *data;
		size_t bytes;
		int rc = tape_records_encode(b->codec, c->columns[i], c->nr, k->steps >> i & 1, &data,
					     &bytes);

		if (rc < 0)
			return rc;
		if (used + bytes > b->scratch_bytes) {
			char *grown = realloc(b->scratch, 2 * (used + bytes));

			if (!grown)
				return -ENOMEM;
			b->scratch = grown;
			b->scratch_bytes = 2 * (used + bytes);
		}
		memcpy(b->scratch + used, data, bytes);
		head->bytes[i] = bytes;
		used += bytes;
	}
	*ret_bytes = used;
	return 0;
}

/* Turn the open rows of @kind into a block. */
static int close_chunk(struct tape_run_buffer *b, enum run_kind kind)
{
	const struct run_kind_spec *k = &run_kinds[kind];
	struct open_chunk *c = &b->open[kind];
	struct block head = { .kind = kind, .nr = c->nr }, *block;
	size_t bytes = 0;
	int rc;

	if (!c->nr)
		return 0;
	rc = encode(b, kind, &head, &bytes);
	if (rc < 0)
		return rc;
	range_of(c->columns[k->seq], c->nr, &head.first_seq, &head.last_seq);
	range_of(c->columns[k->ts], c->nr, &head.ts_min, &head.ts_max);
	block = malloc(sizeof(*block) + bytes);
	if (!block)
		return -ENOMEM;
	*block = head;
	memcpy(block->data, b->scratch, bytes);
	*b->last = block;
	b->last = &block->next;
	b->bytes += bytes;
	c->nr = 0;
	return 0;
}

struct closing {
	struct tape_run_buffer *buffer;
	enum run_kind kind;
	int rc;
};

static void *closing_thread(void *arg)
{
	struct closing *c = arg;

	c->rc = close_chunk(c->buffer, c->kind);
	return NULL;
}

/* close_chunk() on a stack that has room for it. */
static int close_elsewhere(struct tape_run_buffer *b, enum run_kind kind)
{
	struct closing c = { .buffer = b, .kind = kind };
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, closing_thread, &c);

	if (rc)
		return -rc;
	pthread_join(thread, NULL);
	return c.rc;
}

static int add(struct tape_run_buffer *b, enum run_kind kind, const int64_t *values)
{
	struct open_chunk *c = &b->open[kind];
	const int columns = run_kinds[kind].columns;

	if (c->nr == TAPE_CHUNK_EVENTS) {
		int rc = b->small_stacks ? close_elsewhere(b, kind) : close_chunk(b, kind);

		if (rc < 0)
			return rc;
	}
	for (int i = 0; !c->nr && i < columns; i++)
		if (!c->columns[i] && !(c->columns[i] = malloc(TAPE_CHUNK_EVENTS * sizeof(int64_t))))
			return -ENOMEM;
	for (int i = 0; i < columns; i++)
		c->columns[i][c->nr] = values[i];
	c->nr++;
	return 0;
}

int tape_run_buffer_transition(struct tape_run_buffer *b, const struct tape_transition *tr)
{
	const int64_t values[TR_MAX] = {
		[TR_SEQ] = (int64_t)tr->seq,   [TR_TS] = (int64_t)tr->ts,   [TR_VTS] = (int64_t)tr->vts,
		[TR_CPU] = tr->cpu,	       [TR_NODE] = tr->node,	    [TR_CACHE] = tr->cache,
		[TR_SLAB] = (int64_t)tr->slab, [TR_FROM] = tr->from,	    [TR_TO] = tr->to,
		[TR_INUSE] = tr->inuse,	       [TR_OBJECTS] = tr->objects, [TR_OP] = tr->op,
	};

	return add(b, RUN_TRANSITION, values);
}

int tape_run_buffer_refill(struct tape_run_buffer *b, const struct tape_refill *re)
{
	const int64_t values[RE_MAX] = {
		[RE_SEQ] = (int64_t)re->seq, [RE_TS] = (int64_t)re->ts, [RE_VTS] = (int64_t)re->vts,
		[RE_CPU] = re->cpu,	     [RE_CACHE] = re->cache,	[RE_SOURCE] = re->source,
		[RE_OBJECTS] = re->objects,  [RE_NODE] = re->node,
	};

	return add(b, RUN_REFILL, values);
}

int tape_run_buffer_slab(struct tape_run_buffer *b, const struct tape_slab *s)
{
	const int64_t values[SL_MAX] = {
		[SL_SLAB] = (int64_t)s->slab, [SL_CACHE] = s->cache, [SL_NODE] = s->node,
		[SL_ORDER] = s->order, [SL_OBJECTS] = s->objects,
		[SL_BORN_SEQ] = (int64_t)s->born_seq, [SL_DIED_SEQ] = s->died_seq,
		[SL_BORN_TS] = (int64_t)s->born_ts, [SL_DIED_TS] = s->died_ts, [SL_STATE] = s->state,
	};

	return add(b, RUN_SLAB, values);
}

int tape_run_buffer_pinned(struct tape_run_buffer *b, const struct tape_pinned *p)
{
	const int64_t values[PI_MAX] = {
		[PI_SLAB] = (int64_t)p->slab, [PI_OBJECT] = (int64_t)p->object,
		[PI_ALLOC_SITE] = p->alloc_site, [PI_AGE] = (int64_t)p->age_ns,
		[PI_CACHE] = p->cache, [PI_NODE] = p->node, [PI_INUSE] = p->inuse,
		[PI_OBJECTS] = p->objects, [PI_ALLOC_SEQ] = (int64_t)p->alloc_seq,
		[PI_ALLOC_TS] = (int64_t)p->alloc_ts,
	};

	return add(b, RUN_PINNED, values);
}

/* ---- chunks to a tape ---- */

static int write_head(struct tape *t, int64_t run, const struct block *k, int64_t *ret_id,
		      struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc = store_statement(t, STORE_RUN_CHUNK_ADD, &s, reterr);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(s, 1, run);
	sqlite3_bind_text(s, 2, run_kinds[k->kind].name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 3, k->nr);
	sqlite3_bind_int64(s, 4, k->first_seq);
	sqlite3_bind_int64(s, 5, k->last_seq);
	sqlite3_bind_int64(s, 6, k->ts_min);
	sqlite3_bind_int64(s, 7, k->ts_max);
	rc = store_run(t, s, "writing a chunk of a run", reterr);
	*ret_id = sqlite3_last_insert_rowid(t->db);
	return rc;
}

static int write_block(struct tape *t, int64_t run, const struct block *k, struct tape_err *reterr)
{
	const char *at = k->data;
	int64_t id = 0;
	int rc = write_head(t, run, k, &id, reterr);

	for (int i = 0; rc == 0 && i < run_kinds[k->kind].columns; i++) {
		sqlite3_stmt *s;

		rc = store_statement(t, STORE_RUN_COLUMN_ADD, &s, reterr);
		if (rc < 0)
			break;
		sqlite3_bind_int64(s, 1, id * STORE_COLUMNS_PER_CHUNK + i);
		sqlite3_bind_blob64(s, 2, at, k->bytes[i], SQLITE_STATIC);
		rc = store_run(t, s, "writing a chunk of a run", reterr);
		at += k->bytes[i];
	}
	return rc;
}

int tape_run_buffer_write(struct tape *t, int64_t run, struct tape_run_buffer *b,
			  struct tape_err *reterr)
{
	int rc = 0;

	for (int kind = 0; rc == 0 && kind < RUN_KINDS; kind++)
		rc = close_chunk(b, (enum run_kind)kind);
	if (rc < 0)
		return tape_err_set(reterr, rc, "rows of a run: %s", tape_err_name(rc));
	for (const struct block *k = b->first; rc == 0 && k; k = k->next)
		rc = write_block(t, run, k, reterr);
	return rc;
}

/* ---- names ---- */

static const char *const state_names[] = { "none", "cpu", "cpu_partial", "partial", "full", "empty",
					   "parked", "detached" };
static const char *const source_names[] = { "cpu_partial", "node_partial", "remote_node",
					    "new_slab", "spare", "barn" };

const char *tape_slab_state_name(int64_t state)
{
	return state >= 0 && state < (int64_t)(sizeof(state_names) / sizeof(*state_names)) ?
		       state_names[state] : NULL;
}

const char *tape_refill_source_name(int64_t source)
{
	return source >= 0 && source < (int64_t)(sizeof(source_names) / sizeof(*source_names)) ?
		       source_names[source] : NULL;
}
