/* SPDX-License-Identifier: MIT */
/* SQLite helpers: errors, prepared statements, transactions. */
#include <assert.h>
#include <errno.h>

#include "store/store_internal.h"

static const char *const statement_sql[STORE_STATEMENT_MAX] = {
	[STORE_META_SET] = "INSERT OR REPLACE INTO meta(key, value) VALUES(?, ?)",
	[STORE_META_GET] = "SELECT value FROM \"%w\".meta WHERE key = ?",
	[STORE_CPU_SET] = "INSERT OR REPLACE INTO cpu(cpu, node) VALUES(?, ?)",
	[STORE_CACHE_SET] = "INSERT OR REPLACE INTO cache(cache, name, object_size, align, flags,"
			    " coverage) VALUES(?, ?, ?, ?, ?, ?)",
	[STORE_KNOB_SET] = "INSERT INTO cache_knob(cache, knob, value) VALUES(?1, ?2, ?3)"
			   " ON CONFLICT(cache, knob) DO UPDATE SET value = ?3",
	[STORE_KNOB_GET] = "SELECT value FROM cache_knob WHERE cache = ? AND knob = ?",
	[STORE_SITE_SET] = "INSERT OR REPLACE INTO site(site, address, symbol, module, offset)"
			   " VALUES(?, ?, ?, ?, ?)",
	[STORE_THREAD_SET] = "INSERT OR REPLACE INTO thread(tid, pid, comm) VALUES(?, ?, ?)",
	[STORE_LOSS_ADD] = "INSERT INTO loss(cpu, ts_begin, ts_end, events, reason)"
			   " VALUES(?, ?, ?, ?, ?)",
	[STORE_MARKER_ADD] = "INSERT INTO marker(seq, ts, cpu, name) VALUES(?, ?, ?, ?)",
	[STORE_CHUNK_ADD] = "INSERT INTO chunk(id, cpu, cpu_mask, first_seq, last_seq, ts_min,"
			    " ts_max, events, bytes_raw, bytes, columns, first_object,"
			    " last_object, slots, inferred_allocs, inferred_frees, orphan_frees,"
			    " null_frees, failed_allocs, caches)"
			    " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[STORE_CHUNK_RENEW] = "UPDATE chunk SET bytes_raw = bytes_raw + ?2, bytes = bytes + ?3,"
			      " columns = (columns & ~?4) | ?5, caches = ?6 WHERE id = ?1",
	[STORE_STAT_ADD] = "INSERT INTO chunk_stat(id, chunk, cpu, cache, op, events, bytes)"
			   " VALUES(?, ?, ?, ?, ?, ?, ?)",
	[STORE_STAT_DROP] = "DELETE FROM chunk_stat WHERE id >= ? AND id < ?",
	[STORE_COLUMN_SET] = "INSERT OR REPLACE INTO chunk_column(id, data) VALUES(?, ?)",
	[STORE_COLUMN_DROP] = "DELETE FROM chunk_column WHERE id = ?",
	[STORE_COLUMN_GET] = "SELECT data FROM \"%w\".chunk_column WHERE id = ?",
	[STORE_FAR_ADD] = "INSERT INTO far_free(id, frees, data) VALUES(?1 + (SELECT count(*) FROM"
			  " far_free WHERE id >= ?1 AND id < ?1 + 1048576), ?2, ?3)",
	[STORE_FAR_GET] = "SELECT frees, data FROM \"%w\".far_free WHERE id >= ? AND id < ?"
			  " ORDER BY id",
	[STORE_LATE_ADD] = "INSERT INTO temp.late(chunk, data) VALUES(?, ?)",
	[STORE_RUN_ADD] = "INSERT INTO run(variant, mode, cpus, nodes, seed, started, tool_version,"
			  " args) VALUES(?, ?, ?, ?, ?, ?, '" SLABTAPE_VERSION "', ?)",
	[STORE_RUN_CPU_ADD] = "INSERT INTO run_cpu(run, cpu, node) VALUES(?, ?, ?)",
	[STORE_RUN_KNOB_ADD] = "INSERT INTO run_knob(run, cache, knob, value) VALUES(?, ?, ?, ?)",
	[STORE_COUNTER_ADD] = "INSERT INTO counter(run, cache, cpu, name, value)"
			      " VALUES(?, ?, ?, ?, ?)",
	[STORE_CLASS_ADD] = "INSERT INTO free_class(run, cache, class, count) VALUES(?, ?, ?, ?)",
	[STORE_RUN_CHUNK_ADD] = "INSERT INTO run_chunk(run, kind, rows, first_seq, last_seq, ts_min,"
				" ts_max) VALUES(?, ?, ?, ?, ?, ?, ?)",
	[STORE_RUN_COLUMN_ADD] = "INSERT INTO run_column(id, data) VALUES(?, ?)",
	[STORE_RUN_COLUMN_GET] = "SELECT data FROM \"%w\".run_column WHERE id = ?",
	[STORE_LOCK_ADD] = "INSERT INTO lock VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[STORE_SAMPLE_ADD] = "INSERT INTO sample VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[STORE_STATE_GET] = "SELECT cache, name, value FROM counter WHERE cpu IS NULL AND run ="
			    " (SELECT max(run) FROM run WHERE variant GLOB 'kernel:*' AND mode = ?)"
			    " ORDER BY cache, name",
	[STORE_CHUNK_HOLD] = "SELECT id FROM \"%w\".chunk WHERE id = ?",
	[STORE_RUN_END] = "UPDATE run SET elapsed_ns = ?2, ops = ?3, truncated_seq = ?4"
			  " WHERE run = ?1",
};

static int code_of(int sqlite_code)
{
	switch (sqlite_code & 0xff) {
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_ERROR: /* a statement of ours that does not fit the schema */
	case SQLITE_MISMATCH:
	case SQLITE_CONSTRAINT:
		return -TAPE_E_FORMAT;
	case SQLITE_TOOBIG:
		return -TAPE_E_LIMIT;
	default:
		return -TAPE_E_IO;
	}
}

int store_fail(struct tape *t, const char *what, struct tape_err *reterr)
{
	int code = t->db ? sqlite3_errcode(t->db) : SQLITE_NOMEM;
	const char *text = t->db ? sqlite3_errmsg(t->db) : "out of memory";

	return tape_err_set(reterr, code_of(code), "%s (%s): %s", what, t->path, text);
}

int store_exec(struct tape *t, const char *sql, const char *what, struct tape_err *reterr)
{
	return sqlite3_exec(t->db, sql, NULL, NULL, NULL) == SQLITE_OK ?
		       0 : store_fail(t, what, reterr);
}

int store_prepare(struct tape *t, const char *sql, unsigned int flags, sqlite3_stmt **ret_statement)
{
	char *text = sqlite3_mprintf(sql, t->schema ? t->schema : "main");
	int rc;

	if (!text)
		return SQLITE_NOMEM;
	rc = sqlite3_prepare_v3(t->db, text, -1, flags, ret_statement, NULL);
	sqlite3_free(text);
	return rc;
}

int store_statement(struct tape *t, enum store_statement which, sqlite3_stmt **ret_statement,
		    struct tape_err *reterr)
{
	sqlite3_stmt **s = &t->statements[which];

	assert(which < STORE_STATEMENT_MAX);
	if (!*s &&
	    store_prepare(t, statement_sql[which], SQLITE_PREPARE_PERSISTENT, s) != SQLITE_OK)
		return store_fail(t, "preparing a statement", reterr);
	sqlite3_reset(*s);
	sqlite3_clear_bindings(*s);
	*ret_statement = *s;
	return 0;
}

int store_run(struct tape *t, sqlite3_stmt *statement, const char *what, struct tape_err *reterr)
{
	/* while a tape is written, rows wait for the next commit instead of making their own */
	int rc = t->writer && !t->begun ? store_begin(t, reterr) : 0;

	if (rc < 0)
		return rc;
	if (sqlite3_step(statement) != SQLITE_DONE)
		rc = store_fail(t, what, reterr);
	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement); /* bound memory is borrowed */
	return rc;
}

int store_query_int(struct tape *t, const char *sql, int64_t fallback, int64_t *ret_value,
		    struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc = 0, step;

	if (store_prepare(t, sql, 0, &s) != SQLITE_OK)
		return store_fail(t, "reading", reterr);
	step = sqlite3_step(s);
	if (step == SQLITE_ROW)
		*ret_value = sqlite3_column_type(s, 0) == SQLITE_NULL ? fallback :
									sqlite3_column_int64(s, 0);
	else if (step == SQLITE_DONE)
		*ret_value = fallback;
	else
		rc = store_fail(t, "reading", reterr);
	sqlite3_finalize(s);
	return rc;
}

int store_begin(struct tape *t, struct tape_err *reterr)
{
	int rc = 0;

	if (t->begun == 0)
		rc = store_exec(t, "BEGIN IMMEDIATE", "opening a transaction", reterr);
	if (rc == 0)
		t->begun++;
	return rc;
}

int store_end(struct tape *t, struct tape_err *reterr)
{
	int rc;

	assert(t->begun > 0);
	if (t->begun > 1) {
		t->begun--;
		return 0;
	}
	rc = store_exec(t, "COMMIT", "committing", reterr);
	if (rc < 0)
		store_rollback(t);
	t->begun = 0;
	return rc;
}

void store_rollback(struct tape *t)
{
	if (t->db && !sqlite3_get_autocommit(t->db))
		sqlite3_exec(t->db, "ROLLBACK", NULL, NULL, NULL);
	t->begun = 0;
}

void store_statements_drop(struct tape *t)
{
	for (int i = 0; i < STORE_STATEMENT_MAX; i++) {
		sqlite3_finalize(t->statements[i]);
		t->statements[i] = NULL;
	}
}
