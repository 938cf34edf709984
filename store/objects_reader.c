/* SPDX-License-Identifier: MIT */
/*
 * Objects from events: the chunks in which a group of ids begins give the allocs, these and the
 * next STORE_NEAR_CHUNKS the near frees, the group's far_free rows the others.  A few decoded
 * chunks are kept, so that a scan decodes each chunk about once.
 */
#include "store/objects_reader.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_internal.h"
#include "traces/far.h"

#define CACHED 6u

#define OBJECT_FIELDS(X)                                                                  \
	X(alloc_seq) X(free_seq) X(alloc_ts) X(free_ts) X(size) X(address) X(alloc_site)  \
	X(free_site) X(alloc_cpu) X(free_cpu) X(cache) X(alloc_flags) X(free_flags) X(mem_node)

struct tape_objects_reader {
	struct tape *tape;
	uint64_t next, end;	    /* ids still to give */
	uint32_t columns;	    /* of events, closed */
	struct store_chunk *chunks; /* all of the tape */
	size_t chunks_nr;
	struct tape_codec *codec;
	struct tape_batch *cached[CACHED];
	size_t cached_chunk[CACHED]; /* SIZE_MAX: none */
	uint32_t turn;		     /* cached[turn] is replaced next */
	struct tape_object_batch batch;
	struct tape_far_free *far; /* TAPE_CHUNK_EVENTS */
};

static int batch_init(struct tape_object_batch *b)
{
	size_t bytes = 0;
	char *at;

#define ADD(field) bytes += sizeof(*b->field) * TAPE_OBJECT_BATCH;
	OBJECT_FIELDS(ADD)
#undef ADD
	at = b->memory = malloc(bytes);
	if (!at)
		return -ENOMEM;
#define PLACE(field)             \
	b->field = (void *)at;   \
	at += sizeof(*b->field) * TAPE_OBJECT_BATCH;
	OBJECT_FIELDS(PLACE)
#undef PLACE
	return 0;
}

static void batch_clear(struct tape_object_batch *b, uint64_t first, uint64_t end)
{
	assert(end > first && end - first <= TAPE_OBJECT_BATCH);
	b->first_object = first;
	b->objects = (uint32_t)(end - first);
#define CLEAR(field) memset(b->field, 0, sizeof(*b->field) * b->objects);
	OBJECT_FIELDS(CLEAR)
#undef CLEAR
	memset(b->alloc_seq, 0xff, sizeof(*b->alloc_seq) * b->objects);
	memset(b->free_seq, 0xff, sizeof(*b->free_seq) * b->objects);
	memset(b->cache, 0xff, sizeof(*b->cache) * b->objects);
}

int tape_objects_count(struct tape *t, uint64_t *ret_objects, struct tape_err *reterr)
{
	int64_t objects;
	int rc = store_query_int(t, "SELECT max(last_object) + 1 FROM chunk", 0, &objects, reterr);

	if (rc == 0)
		*ret_objects = (uint64_t)objects;
	return rc;
}

/* Memory and the chunk index. */
static int reader_init(struct tape_objects_reader *r, struct tape_err *reterr)
{
	bool good;

	r->codec = tape_codec_create();
	r->far = malloc(sizeof(*r->far) * TAPE_CHUNK_EVENTS);
	good = r->codec && r->far && batch_init(&r->batch) == 0;
	for (uint32_t i = 0; i < CACHED; i++) {
		r->cached[i] = tape_batch_create(TAPE_CHUNK_EVENTS);
		r->cached_chunk[i] = SIZE_MAX;
		good &= r->cached[i] != NULL;
	}
	if (!good)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	return store_chunks_load(r->tape, &r->chunks, &r->chunks_nr, reterr);
}

int tape_objects_open(struct tape *t, uint64_t first, uint64_t end, uint32_t columns,
		      struct tape_objects_reader **ret_reader, struct tape_err *reterr)
{
	struct tape_objects_reader *r = calloc(1, sizeof(*r));
	uint64_t objects = 0;
	int rc;

	if (!r)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	r->tape = t;
	r->columns = tape_columns_close(columns | 1u << TAPE_COL_OP | 1u << TAPE_COL_OBJECT |
					1u << TAPE_COL_FLAGS);
	rc = reader_init(r, reterr);
	if (rc == 0)
		rc = tape_objects_count(t, &objects, reterr);
	if (rc < 0) {
		tape_objects_close(r);
		return rc;
	}
	r->next = first;
	r->end = end < objects ? end : objects;
	*ret_reader = r;
	return 0;
}

void tape_objects_close(struct tape_objects_reader *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < CACHED; i++)
		tape_batch_destroy(r->cached[i]);
	tape_codec_destroy(r->codec);
	free(r->batch.memory);
	free(r->chunks);
	free(r->far);
	free(r);
}

/* The decoded chunk @index, from the cache or fresh. */
static int chunk_get(struct tape_objects_reader *r, size_t index, const struct tape_batch **ret_b,
		     struct tape_err *reterr)
{
	struct tape_batch *b;
	int rc;

	for (uint32_t i = 0; i < CACHED; i++) {
		if (r->cached_chunk[i] == index) {
			*ret_b = r->cached[i];
			return 0;
		}
	}
	b = r->cached[r->turn];
	r->cached_chunk[r->turn] = SIZE_MAX;
	b->valid = 0;
	rc = store_chunk_decode(r->tape, r->codec, &r->chunks[index], r->columns, b, reterr);
	if (rc < 0)
		return rc;
	r->cached_chunk[r->turn] = index;
	r->turn = (r->turn + 1) % CACHED;
	*ret_b = b;
	return 0;
}

static void alloc_take(struct tape_object_batch *o, uint32_t at, const struct tape_batch *b,
		       uint32_t row)
{
	o->alloc_seq[at] = b->first_seq + row;
	o->alloc_flags[at] = b->flags[row];
	if (b->valid & 1u << TAPE_COL_TS)
		o->alloc_ts[at] = b->ts[row];
	if (b->valid & 1u << TAPE_COL_CPU)
		o->alloc_cpu[at] = b->cpu[row];
	if (b->valid & 1u << TAPE_COL_SITE)
		o->alloc_site[at] = b->site[row];
	if (b->valid & 1u << TAPE_COL_SIZE)
		o->size[at] = b->size[row];
	if (b->valid & 1u << TAPE_COL_CACHE)
		o->cache[at] = b->cache[row];
	if (b->valid & 1u << TAPE_COL_ADDRESS)
		o->address[at] = b->address[row];
	if (b->valid & 1u << TAPE_COL_MEM_NODE)
		o->mem_node[at] = b->mem_node[row];
}

static void free_take(struct tape_object_batch *o, uint32_t at, const struct tape_batch *b,
		      uint32_t row)
{
	o->free_seq[at] = b->first_seq + row;
	o->free_flags[at] = b->flags[row];
	if (b->valid & 1u << TAPE_COL_TS)
		o->free_ts[at] = b->ts[row];
	if (b->valid & 1u << TAPE_COL_CPU)
		o->free_cpu[at] = b->cpu[row];
	if (b->valid & 1u << TAPE_COL_SITE)
		o->free_site[at] = b->site[row];
	if (!(b->flags[row] & TAPE_F_ORPHAN))
		return;
	if (b->valid & 1u << TAPE_COL_CACHE)
		o->cache[at] = b->cache[row];
	if (b->valid & 1u << TAPE_COL_ADDRESS)
		o->address[at] = b->address[row];
	if (b->valid & 1u << TAPE_COL_MEM_NODE)
		o->mem_node[at] = b->mem_node[row];
}

static void rows_take(struct tape_object_batch *o, const struct tape_batch *b)
{
	for (uint32_t row = 0; row < b->events; row++) {
		uint64_t at = b->object[row] - o->first_object;

		if (at >= o->objects)
			continue;
		if (tape_op_allocates(b->op[row]))
			alloc_take(o, (uint32_t)at, b, row);
		else if (tape_op_frees(b->op[row]) && !(b->flags[row] & TAPE_F_INHERITED))
			free_take(o, (uint32_t)at, b, row);
	}
}

/* One far_free row. */
static int far_take(struct tape_objects_reader *r, sqlite3_stmt *s, struct tape_err *reterr)
{
	struct tape_object_batch *o = &r->batch;
	int64_t frees = sqlite3_column_int64(s, 0);
	struct tape_err why = { 0 };
	int rc = -TAPE_E_FORMAT;

	if (frees >= 1 && frees <= TAPE_CHUNK_EVENTS)
		rc = tape_far_decode(r->codec, sqlite3_column_blob(s, 1),
				     (size_t)sqlite3_column_bytes(s, 1), (uint32_t)frees, r->far, &why);
	if (rc < 0)
		return tape_err_set(reterr, rc, "%s: far frees of object %" PRIu64 ": %s",
				    r->tape->path, o->first_object, why.text);
	for (int64_t i = 0; i < frees; i++) {
		const struct tape_far_free *f = &r->far[i];
		uint64_t at = f->object - o->first_object;

		if (at >= o->objects)
			continue;
		o->free_seq[at] = f->seq;
		o->free_flags[at] = f->flags;
		o->free_ts[at] = r->columns & 1u << TAPE_COL_TS ? f->ts : 0;
		o->free_cpu[at] = r->columns & 1u << TAPE_COL_CPU ? f->cpu : 0;
		o->free_site[at] = r->columns & 1u << TAPE_COL_SITE ? f->site : 0;
	}
	return 0;
}

static int fars_take(struct tape_objects_reader *r, struct tape_err *reterr)
{
	int64_t group = (int64_t)(r->batch.first_object >> STORE_OBJECTS_SHIFT);
	sqlite3_stmt *s;
	int rc = store_statement(r->tape, STORE_FAR_GET, &s, reterr), step = SQLITE_ROW;

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(s, 1, group * STORE_FAR_PER_OBJECTS);
	sqlite3_bind_int64(s, 2, (group + 1) * STORE_FAR_PER_OBJECTS);
	while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW)
		rc = far_take(r, s, reterr);
	if (rc == 0 && step != SQLITE_DONE)
		rc = store_fail(r->tape, "reading far frees", reterr);
	sqlite3_reset(s);
	return rc;
}

int tape_objects_next(struct tape_objects_reader *r, const struct tape_object_batch **ret_batch,
		      struct tape_err *reterr)
{
	uint64_t group_end = ((r->next >> STORE_OBJECTS_SHIFT) + 1) << STORE_OBJECTS_SHIFT;
	uint64_t end = group_end < r->end ? group_end : r->end;
	size_t near = 0; /* chunks after the last in which an id begins */
	int rc = 0;

	if (r->next >= r->end)
		return 0;
	batch_clear(&r->batch, r->next, end);
	for (size_t i = 0; rc == 0 && i < r->chunks_nr; i++) {
		const struct store_chunk *c = &r->chunks[i];
		const struct tape_batch *b;

		if (c->first_object < end && c->last_object >= r->next && c->first_object <= c->last_object)
			near = STORE_NEAR_CHUNKS + 1;
		if (!near)
			continue;
		near--;
		rc = chunk_get(r, i, &b, reterr);
		if (rc == 0)
			rows_take(&r->batch, b);
	}
	if (rc == 0)
		rc = fars_take(r, reterr);
	if (rc < 0)
		return rc;
	r->next = end;
	*ret_batch = &r->batch;
	return 1;
}
