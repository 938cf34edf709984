/* SPDX-License-Identifier: MIT */
/* Writing one event chunk: its columns, the counts of chunk_stat, its row. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_internal.h"

#define INDEX_SLOTS (2u * TAPE_CHUNK_EVENTS) /* power of two */

int store_summary_init(struct store_summary *s)
{
	memset(s, 0, sizeof(*s));
	s->stats = malloc(sizeof(*s->stats) * TAPE_CHUNK_EVENTS);
	s->index = calloc(INDEX_SLOTS, sizeof(*s->index));
	return s->stats && s->index ? 0 : -ENOMEM;
}

void store_summary_fini(struct store_summary *s)
{
	free(s->stats);
	free(s->index);
	memset(s, 0, sizeof(*s));
}

static uint32_t stat_slot(uint64_t key)
{
	return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 40) & (INDEX_SLOTS - 1);
}

static struct store_stat *stat_find(struct store_summary *s, uint64_t key)
{
	uint32_t slot = stat_slot(key);

	for (; s->index[slot]; slot = (slot + 1) & (INDEX_SLOTS - 1))
		if (s->stats[s->index[slot] - 1].key == key)
			return &s->stats[s->index[slot] - 1];
	assert(s->stats_nr < TAPE_CHUNK_EVENTS);
	s->stats[s->stats_nr] = (struct store_stat){ .key = key };
	s->index[slot] = ++s->stats_nr;
	return &s->stats[s->stats_nr - 1];
}

static int stat_compare(const void *a, const void *b)
{
	const struct store_stat *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

/* Empty the hash table: each stat lies in the run of full slots that begins at its home. */
static void index_clear(struct store_summary *s)
{
	for (uint32_t i = 0; i < s->stats_nr; i++) {
		uint32_t slot = stat_slot(s->stats[i].key);

		for (; s->index[slot]; slot = (slot + 1) & (INDEX_SLOTS - 1))
			s->index[slot] = 0;
	}
}

static void stats_take(struct store_summary *s, const struct tape_batch *b)
{
	struct store_stat *stat = NULL;

	s->stats_nr = 0;
	for (uint32_t i = 0; i < b->events; i++) {
		uint64_t key = (uint64_t)b->cpu[i] << 32 | (uint64_t)b->cache[i] << 8 | b->op[i];

		if (!stat || stat->key != key)
			stat = stat_find(s, key);
		stat->events++;
		stat->bytes += tape_op_allocates(b->op[i]) ? b->size[i] : 0;
	}
	index_clear(s);
	qsort(s->stats, s->stats_nr, sizeof(*s->stats), stat_compare);
}

static void presence_take(struct store_summary *s)
{
	s->cpu_mask = 0;
	s->cpu = s->stats_nr ? (int32_t)(s->stats[0].key >> 32) : -1;
	memset(s->caches, 0, sizeof(s->caches));
	s->caches_bytes = 0;
	for (uint32_t i = 0; i < s->stats_nr; i++) {
		uint32_t cpu = (uint32_t)(s->stats[i].key >> 32);
		uint32_t cache = (uint32_t)(s->stats[i].key >> 8) & 0xffff;

		s->cpu_mask |= store_cpu_bit(cpu);
		if ((int32_t)cpu != s->cpu)
			s->cpu = -1;
		if (cache == TAPE_NO_CACHE)
			continue;
		s->caches[cache >> 3] |= (uint8_t)(1u << (cache & 7));
		if (s->caches_bytes <= cache >> 3)
			s->caches_bytes = (cache >> 3) + 1;
	}
}

static void objects_take(struct store_summary *s, const struct tape_batch *b)
{
	s->first_object = UINT64_MAX;
	s->last_object = s->slots = 0;
	s->inferred_allocs = s->inferred_frees = s->orphan_frees = 0;
	s->null_frees = s->failed_allocs = 0;
	for (uint32_t i = 0; i < b->events; i++) {
		bool alloc = tape_op_allocates(b->op[i]), frees = tape_op_frees(b->op[i]);
		bool named = b->object[i] != TAPE_NO_OBJECT;
		uint16_t flags = b->flags[i];

		if (named && (alloc || (frees && (flags & TAPE_F_ORPHAN)))) {
			s->first_object = b->object[i] < s->first_object ? b->object[i] : s->first_object;
			s->last_object = b->object[i] > s->last_object ? b->object[i] : s->last_object;
		}
		if (b->slot[i] != TAPE_NO_SLOT && b->slot[i] >= s->slots)
			s->slots = (uint64_t)b->slot[i] + 1;
		s->inferred_allocs += alloc && (flags & TAPE_F_INFERRED);
		s->inferred_frees += frees && (flags & TAPE_F_INFERRED);
		s->orphan_frees += frees && (flags & TAPE_F_ORPHAN);
		s->null_frees += frees && !named && !(flags & TAPE_F_ORPHAN);
		s->failed_allocs += alloc && (!named || (flags & TAPE_F_FAILED));
	}
}

void store_summary_take(struct store_summary *s, const struct tape_batch *b)
{
	assert((b->valid & TAPE_COLS_SUMMARY) == TAPE_COLS_SUMMARY);
	stats_take(s, b);
	presence_take(s);
	objects_take(s, b);
}

int store_stats_write(struct tape *t, int64_t id, const struct store_summary *s,
		      struct tape_err *reterr)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < s->stats_nr; i++) {
		uint32_t cache = (uint32_t)(s->stats[i].key >> 8) & 0xffff;
		sqlite3_stmt *row;

		rc = store_statement(t, STORE_STAT_ADD, &row, reterr);
		if (rc < 0)
			break;
		sqlite3_bind_int64(row, 1, id * STORE_STATS_PER_CHUNK + i);
		sqlite3_bind_int64(row, 2, id);
		sqlite3_bind_int64(row, 3, (sqlite3_int64)(s->stats[i].key >> 32));
		if (cache != TAPE_NO_CACHE)
			sqlite3_bind_int(row, 4, (int)cache);
		sqlite3_bind_text(row, 5, tape_op_name(s->stats[i].key & 0xff), -1, SQLITE_STATIC);
		store_bind_u64(row, 6, s->stats[i].events);
		store_bind_u64(row, 7, s->stats[i].bytes);
		rc = store_run(t, row, "writing chunk_stat", reterr);
	}
	return rc;
}

/* An absent column (0 bytes) leaves no row. */
static int column_insert(struct tape *t, int64_t id, enum tape_col col, const void *data,
			 size_t bytes, struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc = store_statement(t, bytes ? STORE_COLUMN_SET : STORE_COLUMN_DROP, &s, reterr);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(s, 1, id * STORE_COLUMNS_PER_CHUNK + col);
	if (bytes)
		sqlite3_bind_blob64(s, 2, data, bytes, SQLITE_STATIC);
	return store_run(t, s, "writing a column", reterr);
}

/* Encode column @col and put it in the place of the old one. */
static int column_write(struct tape *t, struct tape_codec *c, int64_t id, enum tape_col col,
			const struct tape_batch *b, size_t *ret_bytes, size_t *ret_raw_bytes,
			struct tape_err *reterr)
{
	const void *data;
	int rc = tape_column_encode(c, col, b, &data, ret_bytes, ret_raw_bytes);

	if (rc < 0)
		return tape_err_set(reterr, rc, "encoding column %s: %s", tape_column_name(col),
				    tape_err_name(rc));
	return column_insert(t, id, col, data, *ret_bytes, reterr);
}

static void bind_objects(sqlite3_stmt *row, const struct store_summary *s)
{
	if (s->first_object <= s->last_object) {
		store_bind_u64(row, 12, s->first_object);
		store_bind_u64(row, 13, s->last_object);
	}
	store_bind_u64(row, 14, s->slots);
	store_bind_u64(row, 15, s->inferred_allocs);
	store_bind_u64(row, 16, s->inferred_frees);
	store_bind_u64(row, 17, s->orphan_frees);
	store_bind_u64(row, 18, s->null_frees);
	store_bind_u64(row, 19, s->failed_allocs);
	sqlite3_bind_blob(row, 20, s->caches, (int)s->caches_bytes, SQLITE_STATIC);
}

static int row_write(struct tape *t, int64_t id, const struct tape_batch *b,
		     const struct store_summary *s, const uint64_t totals[3],
		     struct tape_err *reterr)
{
	sqlite3_stmt *row;
	int rc = store_statement(t, STORE_CHUNK_ADD, &row, reterr);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(row, 1, id);
	if (s->cpu >= 0)
		sqlite3_bind_int(row, 2, s->cpu);
	store_bind_u64(row, 3, s->cpu_mask);
	store_bind_u64(row, 4, b->first_seq);
	store_bind_u64(row, 5, b->first_seq + b->events - 1);
	store_bind_u64(row, 6, b->ts[0]);
	store_bind_u64(row, 7, b->ts[b->events - 1]);
	store_bind_u64(row, 8, b->events);
	for (int i = 0; i < 3; i++)
		store_bind_u64(row, 9 + i, totals[i]);
	bind_objects(row, s);
	return store_run(t, row, "writing a chunk", reterr);
}

int store_chunk_insert(struct tape *t, const struct store_encoded *e, struct tape_err *reterr)
{
	uint64_t totals[3] = { 0 }; /* raw bytes, bytes, columns */
	int rc = 0;

	assert(e->batch->events > 0 && e->batch->valid == TAPE_COLS_ALL);
	if (e->rc < 0)
		return tape_err_set(reterr, e->rc, "encoding chunk %lld: %s", (long long)e->id,
				    tape_err_name(e->rc));
	for (int col = 0; rc == 0 && col < TAPE_COL_MAX; col++) {
		const struct store_column *column = &e->columns[col];

		if (!column->bytes)
			continue;
		rc = column_insert(t, e->id, col, column->data, column->bytes, reterr);
		totals[0] += column->raw_bytes;
		totals[1] += column->bytes;
		totals[2] |= UINT64_C(1) << col;
	}
	if (rc == 0)
		rc = store_stats_write(t, e->id, &e->summary, reterr);
	return rc < 0 ? rc : row_write(t, e->id, e->batch, &e->summary, totals, reterr);
}

static const enum tape_col patched[] = { TAPE_COL_CACHE, TAPE_COL_FLAGS };
#define PATCHED_NR (sizeof(patched) / sizeof(patched[0]))

int store_patched_bytes(struct tape_codec *c, const struct tape_batch *b,
			struct store_bytes *ret_bytes, struct tape_err *reterr)
{
	*ret_bytes = (struct store_bytes){ 0 };
	for (size_t i = 0; i < PATCHED_NR; i++) {
		const void *data;
		size_t bytes, raw_bytes;
		int rc = tape_column_encode(c, patched[i], b, &data, &bytes, &raw_bytes);

		if (rc < 0)
			return tape_err_set(reterr, rc, "encoding column %s: %s",
					    tape_column_name(patched[i]), tape_err_name(rc));
		ret_bytes->raw += raw_bytes;
		ret_bytes->packed += bytes;
	}
	return 0;
}

static int row_renew(struct tape *t, int64_t id, const struct store_bytes *change,
		     uint32_t columns, const struct store_summary *s, struct tape_err *reterr)
{
	sqlite3_stmt *row;
	int rc = store_statement(t, STORE_CHUNK_RENEW, &row, reterr);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(row, 1, id);
	store_bind_u64(row, 2, change->raw);
	store_bind_u64(row, 3, change->packed);
	sqlite3_bind_int64(row, 4, 1u << TAPE_COL_CACHE | 1u << TAPE_COL_FLAGS);
	sqlite3_bind_int64(row, 5, columns);
	sqlite3_bind_blob(row, 6, s->caches, (int)s->caches_bytes, SQLITE_STATIC);
	return store_run(t, row, "naming caches", reterr);
}

static int stats_drop(struct tape *t, int64_t id, struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc = store_statement(t, STORE_STAT_DROP, &s, reterr);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(s, 1, id * STORE_STATS_PER_CHUNK);
	sqlite3_bind_int64(s, 2, (id + 1) * STORE_STATS_PER_CHUNK);
	return store_run(t, s, "naming caches", reterr);
}

int store_chunk_rewrite(struct tape *t, struct tape_codec *c, const struct store_chunk *chunk,
			const struct tape_batch *b, const struct store_bytes *old_bytes,
			struct store_summary *s, struct tape_err *reterr)
{
	struct store_bytes change = { 0 - old_bytes->raw, 0 - old_bytes->packed };
	uint32_t columns = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < PATCHED_NR; i++) {
		size_t bytes = 0, raw_bytes = 0;

		rc = column_write(t, c, chunk->id, patched[i], b, &bytes, &raw_bytes, reterr);
		change.raw += raw_bytes;
		change.packed += bytes;
		columns |= bytes ? 1u << patched[i] : 0;
	}
	if (rc < 0)
		return rc;
	store_summary_take(s, b);
	rc = stats_drop(t, chunk->id, reterr);
	if (rc == 0)
		rc = store_stats_write(t, chunk->id, s, reterr);
	return rc < 0 ? rc : row_renew(t, chunk->id, &change, columns, s, reterr);
}
