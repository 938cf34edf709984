/* SPDX-License-Identifier: MIT */
/*
 * What the files of store/ share: the handle, SQLite helpers, the chunk index.
 *
 * SQLite discipline: every statement is prepared once per handle and found by its address
 * (struct store_sql); a write belongs to the transaction that store_begin() opened, or commits
 * by itself.  Unsigned 64-bit numbers are stored as the signed number with the same bits.
 */
#ifndef SLABTAPE_STORE_STORE_INTERNAL_H
#define SLABTAPE_STORE_STORE_INTERNAL_H

#include <stdbool.h>

#include "store/sqlite_api.h"
#include "store/tape.h"
#include "traces/chunk.h"

#define STORE_COLUMNS_PER_CHUNK 64	 /* chunk_column.id = chunk * this + column */
#define STORE_STATS_PER_CHUNK (1 << 24)	 /* chunk_stat.id = chunk * this + number */
#define STORE_FAR_PER_OBJECTS (1 << 20)	 /* far_free.id = (object >> 16) * this + part */
#define STORE_OBJECTS_SHIFT 16		 /* objects are read 64 Ki ids at a time */
#define STORE_NEAR_CHUNKS 2 /* a free further than this after its alloc's chunk is far */
#define STORE_CHUNKS_PER_COMMIT 4
#define STORE_BUSY_MS 20000 /* how long a lock of another process is waited for */

/* Statements that are kept prepared. */
enum store_statement {
	STORE_META_SET,
	STORE_META_GET,
	STORE_CPU_SET,
	STORE_CACHE_SET,
	STORE_KNOB_SET,
	STORE_KNOB_GET,
	STORE_SITE_SET,
	STORE_THREAD_SET,
	STORE_LOSS_ADD,
	STORE_MARKER_ADD,
	STORE_CHUNK_ADD,
	STORE_CHUNK_RENEW,
	STORE_STAT_ADD,
	STORE_STAT_DROP,
	STORE_COLUMN_SET,
	STORE_COLUMN_DROP,
	STORE_COLUMN_GET,
	STORE_FAR_ADD,
	STORE_FAR_GET,
	STORE_LATE_ADD,
	STORE_RUN_ADD,
	STORE_RUN_CPU_ADD,
	STORE_RUN_KNOB_ADD,
	STORE_COUNTER_ADD,
	STORE_CLASS_ADD,
	STORE_RUN_END,
	STORE_STATE_GET,
	STORE_CHUNK_HOLD,
	STORE_RUN_CHUNK_ADD,
	STORE_RUN_COLUMN_ADD,
	STORE_RUN_COLUMN_GET,
	STORE_LOCK_ADD,
	STORE_SAMPLE_ADD,
	STORE_STATEMENT_MAX
};

struct store_writer;

struct tape {
	sqlite3 *db;
	char *schema; /* what the tape is attached as; NULL: main */
	char *path;		     /* "" for a temporary tape */
	char *beside;		     /* the file written, while an old tape has the name; else NULL */
	struct store_writer *writer; /* from tape_create until finish; NULL otherwise */
	uint32_t begun;		     /* store_begin() without store_end() */
	sqlite3_stmt *statements[STORE_STATEMENT_MAX];
};

extern const char store_schema_sql[];

/* ---- sqlite.c ---- */

/*
 * Fill @reterr from the last failed SQLite call on @t and return the code it stands for:
 * -TAPE_E_FORMAT, -TAPE_E_IO, -TAPE_E_LIMIT or -ENOMEM.  @what: "writing chunk 7".
 */
int store_fail(struct tape *t, const char *what, struct tape_err *reterr);
int store_exec(struct tape *t, const char *sql, const char *what, struct tape_err *reterr)
	TAPE_MUST_CHECK;
/*
 * Prepare @sql, in which "%w" (quotes included) stands for the tape's schema; SQL that only ever
 * runs on our own connections needs no %w.  @flags: SQLITE_PREPARE_*.  An SQLite result code.
 */
int store_prepare(struct tape *t, const char *sql, unsigned int flags,
		  sqlite3_stmt **ret_statement);
/* *ret_statement: prepared, reset, without bindings; borrowed. */
int store_statement(struct tape *t, enum store_statement which, sqlite3_stmt **ret_statement,
		    struct tape_err *reterr) TAPE_MUST_CHECK;
/* Run a bound statement that gives no rows, and reset it. */
int store_run(struct tape *t, sqlite3_stmt *statement, const char *what, struct tape_err *reterr)
	TAPE_MUST_CHECK;
/* The first column of the only row of @sql; @fallback without row or when it is NULL. */
int store_query_int(struct tape *t, const char *sql, int64_t fallback, int64_t *ret_value,
		    struct tape_err *reterr) TAPE_MUST_CHECK;
/* Open a transaction unless one is open; nests. */
int store_begin(struct tape *t, struct tape_err *reterr) TAPE_MUST_CHECK;
/* The outermost end commits. */
int store_end(struct tape *t, struct tape_err *reterr) TAPE_MUST_CHECK;
/* Throw the whole open transaction away. */
void store_rollback(struct tape *t);
void store_statements_drop(struct tape *t);

static inline int store_bind_u64(sqlite3_stmt *s, int at, uint64_t value)
{
	return sqlite3_bind_int64(s, at, (sqlite3_int64)value);
}

/* ---- schema.c ---- */

/* Create every table, virtual table, and the pragmas that mark a tape. */
int store_schema_create(struct tape *t, struct tape_err *reterr) TAPE_MUST_CHECK;
/* Application id, version and schema text of an open database. */
int store_schema_check(struct tape *t, struct tape_err *reterr) TAPE_MUST_CHECK;

/*
 * Virtual tables a tape carries in its schema.  Their modules must be registered on every
 * connection before the schema is created; store_modules_register() does that.
 */
struct store_virtual {
	const char *name;
	const char *sql; /* CREATE VIRTUAL TABLE ... */
};
extern const struct store_virtual store_virtuals[]; /* ends with a NULL name */
int store_modules_register(struct sqlite3 *db);	    /* an SQLite result code */

/* ---- chunks.c: the index of event chunks and their columns ---- */

/* The bit of a CPU in cpu_mask: higher CPUs share one. */
static inline uint64_t store_cpu_bit(uint32_t cpu)
{
	return UINT64_C(1) << (cpu < 62 ? cpu : 62);
}

struct store_chunk {
	int64_t id;
	uint64_t first_seq, ts_min, ts_max;
	uint64_t first_object, last_object; /* ids that begin in it; first > last: none */
	uint32_t events;
	uint32_t columns; /* stored ones */
	uint64_t cpu_mask;
};

/* All chunks in seq order, checked for gaps.  *ret_chunks: malloc'ed, the caller frees it. */
int store_chunks_load(struct tape *t, struct store_chunk **ret_chunks, size_t *ret_nr,
		      struct tape_err *reterr) TAPE_MUST_CHECK;

/*
 * Decode @columns (and what they need) of @chunk into @b.  Columns already valid in @b stay:
 * the caller clears b->valid for another chunk.
 */
int store_chunk_decode(struct tape *t, struct tape_codec *c, const struct store_chunk *chunk,
		       uint32_t columns, struct tape_batch *b, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/* ---- chunk_write.c ---- */

/* What a chunk's rows say together; computed from its batch. */
struct store_stat {
	uint64_t key; /* cpu << 32 | cache << 8 | op */
	uint64_t events, bytes;
};
struct store_summary {
	struct store_stat *stats; /* sorted by key; owned */
	uint32_t stats_nr;
	uint64_t cpu_mask;
	int32_t cpu; /* -1: mixed */
	uint64_t first_object, last_object;
	uint64_t slots;
	uint64_t inferred_allocs, inferred_frees, orphan_frees, null_frees, failed_allocs;
	uint8_t caches[8192]; /* bit map of cache ids */
	uint32_t caches_bytes;
	uint32_t *index; /* hash table of stats; owned */
};

int store_summary_init(struct store_summary *s) TAPE_MUST_CHECK; /* -ENOMEM */
void store_summary_fini(struct store_summary *s);
/* Needs every column that TAPE_COLS_SUMMARY names. */
void store_summary_take(struct store_summary *s, const struct tape_batch *b);
#define TAPE_COLS_SUMMARY                                                                    \
	(1u << TAPE_COL_CPU | 1u << TAPE_COL_CACHE | 1u << TAPE_COL_OP | 1u << TAPE_COL_SIZE | \
	 1u << TAPE_COL_OBJECT | 1u << TAPE_COL_SLOT | 1u << TAPE_COL_FLAGS)

/* A batch that was encoded: what store_chunk_insert() writes. */
struct store_column {
	void *data; /* owned */
	size_t bytes, room, raw_bytes;
};
struct store_encoded {
	struct tape_batch *batch;
	int64_t id; /* of the chunk */
	struct store_column columns[TAPE_COL_MAX];
	struct store_summary summary;
	int rc; /* of the encoding */
};

/* Insert a chunk: its columns, its stats, its row. */
int store_chunk_insert(struct tape *t, const struct store_encoded *e, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/*
 * Replace columns cache and flags of @chunk, its stats and its caches; @b holds
 * TAPE_COLS_SUMMARY with the new values.  @old_bytes: from store_patched_bytes() before.
 */
struct store_bytes {
	uint64_t raw, packed;
};
int store_patched_bytes(struct tape_codec *c, const struct tape_batch *b,
			struct store_bytes *ret_bytes, struct tape_err *reterr) TAPE_MUST_CHECK;
int store_chunk_rewrite(struct tape *t, struct tape_codec *c, const struct store_chunk *chunk,
			const struct tape_batch *b, const struct store_bytes *old_bytes,
			struct store_summary *s, struct tape_err *reterr) TAPE_MUST_CHECK;
int store_stats_write(struct tape *t, int64_t id, const struct store_summary *s,
		      struct tape_err *reterr) TAPE_MUST_CHECK;

/* ---- writer.c, writer_late.c ---- */

/* A finished tape takes the name of the one it replaces (tape.c); the connection is made anew. */
int store_replace(struct tape *t, struct tape_err *reterr) TAPE_MUST_CHECK;
int store_writer_create(struct tape *t, struct tape_err *reterr) TAPE_MUST_CHECK;
void store_writer_destroy(struct store_writer *w); /* NULL is accepted; writes nothing */

#endif
