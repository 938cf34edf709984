/* SPDX-License-Identifier: MIT */
#include "store/vtab_objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traces/far.h"

#define COL(name) (1u << TAPE_COL_##name)
#define BIT(column) (UINT64_C(1) << (column))

/* Events' columns behind each column of `object`, besides object and op. */
static const uint32_t needs[OB_MAX] = {
	[OB_CACHE] = COL(CACHE),
	[OB_SIZE] = COL(SIZE),
	[OB_ALLOC_TS] = COL(TS),
	[OB_FREE_TS] = COL(TS),
	[OB_LIFETIME_NS] = COL(TS),
	[OB_LIFETIME_LOG2] = COL(TS),
	[OB_ALLOC_CPU] = COL(CPU),
	[OB_FREE_CPU] = COL(CPU),
	[OB_ALLOC_NODE] = COL(CPU),
	[OB_FREE_NODE] = COL(CPU),
	[OB_REMOTE] = COL(CPU),
	[OB_CROSS_NODE] = COL(CPU) | COL(MEM_NODE),
	[OB_MEM_NODE] = COL(MEM_NODE),
	[OB_ALLOC_SITE] = COL(SITE),
	[OB_FREE_SITE] = COL(SITE),
	[OB_INFERRED] = COL(FLAGS),
};

uint32_t vtab_objects_columns(uint64_t used)
{
	uint32_t columns = COL(OBJECT) | COL(OP);

	for (int i = 0; i < OB_MAX; i++)
		if (used & BIT(i))
			columns |= needs[i];
	return columns;
}

uint64_t vtab_objects_total(const struct vtab_source *s)
{
	uint64_t total = 0;

	for (size_t i = 0; i < s->chunks_nr; i++)
		if (s->chunks[i].first_object <= s->chunks[i].last_object &&
		    s->chunks[i].last_object >= total)
			total = s->chunks[i].last_object + 1;
	return total;
}

/* ---- loading a block ---- */

static void take_alloc(struct vtab_object *r, const struct tape_batch *b, uint32_t i)
{
	r->alloc_seq = (int64_t)(b->first_seq + i);
	if (b->valid & COL(TS))
		r->alloc_ts = (int64_t)b->ts[i];
	if (b->valid & COL(CPU))
		r->alloc_cpu = b->cpu[i];
	if (b->valid & COL(SITE))
		r->alloc_site = b->site[i];
	if (b->valid & COL(SIZE))
		r->size = (int64_t)b->size[i];
	if (b->valid & COL(CACHE) && b->cache[i] != TAPE_NO_CACHE)
		r->cache = b->cache[i];
	if (b->valid & COL(MEM_NODE))
		r->mem_node = b->mem_node[i];
	if (b->valid & COL(FLAGS))
		r->inferred |= b->flags[i] & TAPE_F_INFERRED;
}

/* The first free counts; the same event may be met twice (chunk and far_free). */
static bool first_free(struct vtab_object *r, int64_t seq)
{
	if (r->free_seq < 0 || r->free_seq == seq)
		return true;
	r->again = true;
	return seq < r->free_seq;
}

static void take_free(struct vtab_object *r, const struct tape_batch *b, uint32_t i)
{
	int64_t seq = (int64_t)(b->first_seq + i);

	if (!first_free(r, seq))
		return;
	r->free_seq = seq;
	if (b->valid & COL(TS))
		r->free_ts = (int64_t)b->ts[i];
	if (b->valid & COL(CPU))
		r->free_cpu = b->cpu[i];
	if (b->valid & COL(SITE))
		r->free_site = b->site[i];
	if (b->valid & COL(CACHE) && r->cache < 0 && b->cache[i] != TAPE_NO_CACHE)
		r->cache = b->cache[i];
	if (b->valid & COL(MEM_NODE) && r->mem_node < 0)
		r->mem_node = b->mem_node[i];
	if (b->valid & COL(FLAGS))
		r->inferred |= b->flags[i] & TAPE_F_INFERRED;
}

static void take_batch(struct vtab_objects *o, const struct tape_batch *b)
{
	uint64_t first = o->block << STORE_OBJECTS_SHIFT;

	for (uint32_t i = 0; i < b->events; i++) {
		uint64_t at = b->object[i] - first;

		if (at >= o->nr)
			continue;
		if (tape_op_allocates(b->op[i]))
			take_alloc(&o->rows[at], b, i);
		else if (tape_op_frees(b->op[i]))
			take_free(&o->rows[at], b, i);
	}
}

static void take_far(struct vtab_objects *o, const struct tape_far_free *frees, uint32_t nr)
{
	uint64_t first = o->block << STORE_OBJECTS_SHIFT;

	for (uint32_t i = 0; i < nr; i++) {
		uint64_t at = frees[i].object - first;
		struct vtab_object *r;

		if (at >= o->nr)
			continue;
		r = &o->rows[at];
		if (!first_free(r, (int64_t)frees[i].seq))
			continue;
		r->free_seq = (int64_t)frees[i].seq;
		r->free_ts = (int64_t)frees[i].ts;
		r->free_cpu = frees[i].cpu;
		r->free_site = frees[i].site;
		r->inferred |= frees[i].flags & TAPE_F_INFERRED;
	}
}

/* One blob of far frees.  0 or a negative code of store/. */
static int far_blob(struct vtab_source *s, sqlite3_stmt *row, struct tape_far_free *frees,
		    struct vtab_objects *o, struct tape_err *reterr)
{
	int64_t nr = sqlite3_column_int64(row, 0);
	int rc;

	if (nr < 1 || nr > (int64_t)TAPE_CHUNK_EVENTS)
		return tape_err_set(reterr, -TAPE_E_FORMAT, "%s: far_free of objects from %llu: %lld rows",
				    s->tape.path,
				    (unsigned long long)(o->block << STORE_OBJECTS_SHIFT),
				    (long long)nr);
	rc = tape_far_decode(s->codec, sqlite3_column_blob(row, 1),
			     (size_t)sqlite3_column_bytes(row, 1), (uint32_t)nr, frees, reterr);
	if (rc == 0)
		take_far(o, frees, (uint32_t)nr);
	return rc;
}

static int load_far(struct vtab_source *s, struct vtab_objects *o, char **ret_message)
{
	struct tape_far_free *frees = malloc(TAPE_CHUNK_EVENTS * sizeof(*frees));
	int64_t id = (int64_t)o->block * STORE_FAR_PER_OBJECTS;
	struct tape_err err = { 0 };
	sqlite3_stmt *row;
	int rc = frees ? store_statement(&s->tape, STORE_FAR_GET, &row, &err) : -ENOMEM, step;

	if (rc == 0) {
		sqlite3_bind_int64(row, 1, id);
		sqlite3_bind_int64(row, 2, id + STORE_FAR_PER_OBJECTS);
		while (rc == 0 && (step = sqlite3_step(row)) == SQLITE_ROW)
			rc = far_blob(s, row, frees, o, &err);
		if (rc == 0 && step != SQLITE_DONE)
			rc = store_fail(&s->tape, "reading far frees", &err);
		sqlite3_reset(row);
	}
	free(frees);
	return rc < 0 ? vtab_source_failed(rc, &err, ret_message) : SQLITE_OK;
}

static bool begins_in(const struct store_chunk *c, uint64_t first, uint64_t last)
{
	return c->first_object <= c->last_object && c->first_object <= last &&
	       c->last_object >= first;
}

/* Chunks that hold an alloc or a near free of the block. */
static int load_chunks(struct vtab_source *s, uint32_t columns, struct vtab_objects *o,
		       char **ret_message)
{
	uint64_t first = o->block << STORE_OBJECTS_SHIFT, last = first + o->nr - 1;
	size_t until = 0;

	for (size_t i = 0; i < s->chunks_nr; i++) {
		struct vtab_page *page;
		int rc;

		if (begins_in(&s->chunks[i], first, last))
			until = i + 1 + STORE_NEAR_CHUNKS;
		if (i >= until)
			continue;
		rc = vtab_source_page(s, i, columns, &page, ret_message);
		if (rc != SQLITE_OK)
			return rc;
		take_batch(o, page->batch);
		vtab_page_put(page);
	}
	return SQLITE_OK;
}

static void blank_rows(struct vtab_objects *o)
{
	static const struct vtab_object blank = { -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, false,
						  false };

	for (uint32_t i = 0; i < o->nr; i++)
		o->rows[i] = blank;
}

int vtab_objects_load(struct vtab_source *s, uint64_t block, uint32_t columns,
		      struct vtab_objects **o, char **ret_message)
{
	uint64_t first = block << STORE_OBJECTS_SHIFT, total = vtab_objects_total(s);
	int rc;

	if (!*o) {
		*o = malloc(sizeof(**o));
		if (!*o)
			return SQLITE_NOMEM;
		(*o)->block = UINT64_MAX;
	}
	if ((*o)->block == block && (*o)->state == s->state && !(columns & ~(*o)->columns))
		return SQLITE_OK;
	(*o)->block = block;
	(*o)->columns = columns;
	(*o)->state = s->state;
	(*o)->nr = first >= total ? 0 :
		   total - first < VTAB_OBJECTS ? (uint32_t)(total - first) : VTAB_OBJECTS;
	blank_rows(*o);
	rc = (*o)->nr ? load_chunks(s, columns, *o, ret_message) : SQLITE_OK;
	if (rc == SQLITE_OK && (*o)->nr)
		rc = load_far(s, *o, ret_message);
	if (rc != SQLITE_OK)
		(*o)->block = UINT64_MAX;
	return rc;
}

/* ---- values ---- */

static int64_t node_of(const struct vtab_source *s, int32_t cpu)
{
	return cpu < 0 ? -1 : s->cpu_node[cpu];
}

/* The freeing CPU's node is not that of the memory, or where that is unknown, of the alloc. */
static int64_t cross_node(const struct vtab_source *s, const struct vtab_object *r)
{
	int64_t home = r->mem_node >= 0 ? r->mem_node : node_of(s, r->alloc_cpu);
	int64_t there = node_of(s, r->free_cpu);

	return home < 0 || there < 0 ? -1 : home != there;
}

static int64_t lifetime(const struct vtab_object *r)
{
	return r->alloc_ts < 0 || r->free_ts < 0 ? -1 : r->free_ts - r->alloc_ts;
}

static int64_t log2_of(int64_t v)
{
	return v < 0 ? -1 : v < 2 ? 0 : 63 - __builtin_clzll((unsigned long long)v);
}

#define VALUES(column, expression)                                  \
	case column:                                                \
		for (uint32_t i = 0; i < n; i++) {                  \
			const struct vtab_object *r = &o->rows[sel[i]]; \
			ret_values[i] = (expression);               \
		}                                                   \
		break

void vtab_objects_values(const struct vtab_source *s, const struct vtab_objects *o, int column,
			 const uint32_t *sel, uint32_t n, int64_t *ret_values)
{
	int64_t first = (int64_t)(o->block << STORE_OBJECTS_SHIFT);

	switch (column) {
		VALUES(OB_OBJECT, first + (r - o->rows));
		VALUES(OB_CACHE, r->cache);
		VALUES(OB_SIZE, r->size);
		VALUES(OB_ALLOC_SEQ, r->alloc_seq);
		VALUES(OB_ALLOC_TS, r->alloc_ts);
		VALUES(OB_ALLOC_CPU, r->alloc_cpu);
		VALUES(OB_ALLOC_SITE, r->alloc_site);
		VALUES(OB_FREE_SEQ, r->free_seq);
		VALUES(OB_FREE_TS, r->free_ts);
		VALUES(OB_FREE_CPU, r->free_cpu);
		VALUES(OB_FREE_SITE, r->free_site);
		VALUES(OB_LIFETIME_NS, lifetime(r));
		VALUES(OB_LIFETIME_LOG2, log2_of(lifetime(r)));
		VALUES(OB_REMOTE, r->alloc_cpu < 0 || r->free_cpu < 0 ? -1 :
					  r->alloc_cpu != r->free_cpu);
		VALUES(OB_CROSS_NODE, cross_node(s, r));
		VALUES(OB_INFERRED, r->inferred);
		VALUES(OB_ALLOC_NODE, node_of(s, r->alloc_cpu));
		VALUES(OB_FREE_NODE, node_of(s, r->free_cpu));
		VALUES(OB_MEM_NODE, r->mem_node);
		VALUES(OB_FREED, r->free_seq >= 0);
	default:
		break;
	}
}

/* ---- selecting ---- */

void vtab_objects_prepare(struct vtab_filter *f, const struct vtab_source *s)
{
	const struct vtab_interval *seq = &f->range[OB_ALLOC_SEQ], *ts = &f->range[OB_ALLOC_TS];
	struct vtab_interval *id = &f->range[OB_OBJECT];
	int64_t lo = INT64_MAX, hi = -1;

	if (id->lo < 0)
		id->lo = 0;
	if (!(f->ranged & (BIT(OB_ALLOC_SEQ) | BIT(OB_ALLOC_TS))))
		return;
	for (size_t i = 0; i < s->chunks_nr; i++) {
		const struct store_chunk *c = &s->chunks[i];
		int64_t last = (int64_t)(c->first_seq + c->events - 1);

		if (c->first_object > c->last_object || last < seq->lo ||
		    (int64_t)c->first_seq > seq->hi || (int64_t)c->ts_max < ts->lo ||
		    (int64_t)c->ts_min > ts->hi)
			continue;
		lo = (int64_t)c->first_object < lo ? (int64_t)c->first_object : lo;
		hi = (int64_t)c->last_object > hi ? (int64_t)c->last_object : hi;
	}
	id->lo = lo > id->lo ? lo : id->lo;
	id->hi = hi < id->hi ? hi : id->hi;
}

static uint32_t keep(const struct vtab_filter *f, int column, const int64_t *values, uint32_t *sel,
		     uint32_t n)
{
	const uint8_t *set = f->picked & BIT(column) ? f->set[column] : NULL;
	int64_t lo = f->range[column].lo, hi = f->range[column].hi;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		int64_t v = values[i];
		bool pass = v >= 0 && (set ? v < VTAB_SET_VALUES && set[v] : v >= lo && v <= hi);

		sel[kept] = sel[i];
		kept += pass;
	}
	return kept;
}

uint32_t vtab_objects_select(const struct vtab_filter *f, const struct vtab_source *s,
			     const struct vtab_objects *o, uint32_t *sel, int64_t *values)
{
	int64_t first = (int64_t)(o->block << STORE_OBJECTS_SHIFT);
	const struct vtab_interval *id = &f->range[OB_OBJECT];
	uint32_t n = 0;

	for (uint32_t i = 0; i < o->nr; i++) {
		sel[n] = i;
		n += vtab_object_exists(o, i) && first + i >= id->lo && first + i <= id->hi;
	}
	for (int column = OB_CACHE; column < OB_MAX; column++) {
		if (!((f->ranged | f->picked) & BIT(column)))
			continue;
		vtab_objects_values(s, o, column, sel, n, values);
		n = keep(f, column, values, sel, n);
	}
	return n;
}

int vtab_object_events(struct vtab_source *s, uint64_t id, struct vtab_objects **o,
		       uint64_t ret_seqs[2], unsigned int *ret_nr, bool *ret_known,
		       char **ret_message)
{
	uint32_t at = (uint32_t)(id & (VTAB_OBJECTS - 1));
	const struct vtab_object *r;
	int rc;

	*ret_nr = 0;
	*ret_known = true;
	if (id >= vtab_objects_total(s))
		return SQLITE_OK;
	rc = vtab_objects_load(s, id >> STORE_OBJECTS_SHIFT, COL(OBJECT) | COL(OP), o, ret_message);
	if (rc != SQLITE_OK)
		return rc;
	r = &(*o)->rows[at];
	/* An unfinished tape may lack far frees: its chunks have to be searched. */
	*ret_known = !r->again && (r->free_seq >= 0 || s->complete);
	if (r->alloc_seq >= 0)
		ret_seqs[(*ret_nr)++] = (uint64_t)r->alloc_seq;
	if (r->free_seq >= 0)
		ret_seqs[(*ret_nr)++] = (uint64_t)r->free_seq;
	return SQLITE_OK;
}
