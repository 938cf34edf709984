/* SPDX-License-Identifier: MIT */
/*
 * Runs: what replays and kernels counted.  A run is one transaction from begin to end, so that a
 * tape never holds half a run; on a tape being written it joins the writer's transaction.
 */
#include "store/store_internal.h"

static void bind_text(sqlite3_stmt *s, int at, const char *text)
{
	if (text)
		sqlite3_bind_text(s, at, text, -1, SQLITE_STATIC);
}

static int run_row(struct tape *t, struct tape_run *run, struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc = store_statement(t, STORE_RUN_ADD, &s, reterr);

	if (rc < 0)
		return rc;
	bind_text(s, 1, run->variant);
	bind_text(s, 2, run->mode);
	sqlite3_bind_int64(s, 3, run->cpus);
	sqlite3_bind_int64(s, 4, run->nodes);
	store_bind_u64(s, 5, run->seed);
	bind_text(s, 6, run->started);
	bind_text(s, 7, run->args);
	rc = store_run(t, s, "writing a run", reterr);
	run->id = sqlite3_last_insert_rowid(t->db);
	return rc;
}

static int run_cpus(struct tape *t, const struct tape_run *run, struct tape_err *reterr)
{
	int rc = 0;

	for (uint32_t cpu = 0; rc == 0 && run->cpu_node && cpu < run->cpus; cpu++) {
		sqlite3_stmt *s;

		rc = store_statement(t, STORE_RUN_CPU_ADD, &s, reterr);
		if (rc < 0)
			break;
		sqlite3_bind_int64(s, 1, run->id);
		sqlite3_bind_int64(s, 2, cpu);
		sqlite3_bind_int(s, 3, run->cpu_node[cpu]);
		rc = store_run(t, s, "writing a run", reterr);
	}
	return rc;
}

int tape_run_begin(struct tape *t, struct tape_run *run, struct tape_err *reterr)
{
	/* Spilled pages would lock readers out long before the commit. */
	int rc = t->writer ? 0 : store_exec(t, "PRAGMA cache_spill = OFF", "writing a run", reterr);

	if (rc == 0 && !t->writer)
		rc = store_begin(t, reterr);
	if (rc == 0)
		rc = run_row(t, run, reterr);
	if (rc == 0)
		rc = run_cpus(t, run, reterr);
	if (rc < 0 && !t->writer)
		store_rollback(t);
	return rc;
}

int tape_run_knob(struct tape *t, int64_t run, const char *cache, const char *knob,
		  const char *value, struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc = store_statement(t, STORE_RUN_KNOB_ADD, &s, reterr);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(s, 1, run);
	bind_text(s, 2, cache);
	bind_text(s, 3, knob);
	bind_text(s, 4, value);
	return store_run(t, s, "writing a run's knob", reterr);
}

int tape_run_counter(struct tape *t, int64_t run, uint16_t cache, int32_t cpu, const char *name,
		     int64_t value, struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc = store_statement(t, STORE_COUNTER_ADD, &s, reterr);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(s, 1, run);
	sqlite3_bind_int(s, 2, cache);
	if (cpu >= 0)
		sqlite3_bind_int(s, 3, cpu);
	bind_text(s, 4, name);
	sqlite3_bind_int64(s, 5, value);
	return store_run(t, s, "writing a counter", reterr);
}

int tape_run_free_class(struct tape *t, int64_t run, uint16_t cache, const char *class_name,
			uint64_t count, struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc = store_statement(t, STORE_CLASS_ADD, &s, reterr);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(s, 1, run);
	sqlite3_bind_int(s, 2, cache);
	bind_text(s, 3, class_name);
	store_bind_u64(s, 4, count);
	return store_run(t, s, "writing a free class", reterr);
}

static void bind_numbers(sqlite3_stmt *s, int at, const uint64_t *numbers, int nr)
{
	for (int i = 0; i < nr; i++)
		store_bind_u64(s, at + i, numbers[i]);
}

int tape_run_lock(struct tape *t, int64_t run, const struct tape_lock *l, struct tape_err *reterr)
{
	const uint64_t numbers[] = { l->acquisitions, l->contended, l->try_failed, l->wait_ns, l->hold_ns,
		l->max_wait_ns, l->max_queue, l->handover_same_node, l->handover_remote };
	sqlite3_stmt *s;
	int rc = store_statement(t, STORE_LOCK_ADD, &s, reterr);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(s, 1, run);
	sqlite3_bind_int(s, 2, l->cache == TAPE_NO_CACHE ? -1 : l->cache);
	sqlite3_bind_int(s, 3, l->node);
	bind_text(s, 4, l->lock);
	bind_text(s, 5, l->path);
	bind_numbers(s, 6, numbers, 9);
	return store_run(t, s, "writing a lock", reterr);
}

int tape_run_sample(struct tape *t, int64_t run, const struct tape_sample *sample,
		    struct tape_err *reterr)
{
	const uint64_t numbers[] = { (uint64_t)run, sample->ts, sample->vts, sample->cache, sample->node,
		sample->slabs, sample->partial, sample->cpu_partial_slabs, sample->objects_inuse,
		sample->objects_total, sample->cached_objs, sample->full_sheaves,
		sample->empty_sheaves };
	sqlite3_stmt *s;
	int rc = store_statement(t, STORE_SAMPLE_ADD, &s, reterr);

	if (rc < 0)
		return rc;
	bind_numbers(s, 1, numbers, 13);
	return store_run(t, s, "writing a sample", reterr);
}

static int run_finish(struct tape *t, int64_t run, uint64_t elapsed_ns, uint64_t ops,
		      int64_t truncated_seq, struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc = store_statement(t, STORE_RUN_END, &s, reterr);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(s, 1, run);
	store_bind_u64(s, 2, elapsed_ns);
	store_bind_u64(s, 3, ops);
	if (truncated_seq >= 0)
		sqlite3_bind_int64(s, 4, truncated_seq);
	return store_run(t, s, "writing a run", reterr);
}

int tape_run_end(struct tape *t, int64_t run, uint64_t elapsed_ns, uint64_t ops,
		 int64_t truncated_seq, struct tape_err *reterr)
{
	int rc = run_finish(t, run, elapsed_ns, ops, truncated_seq, reterr);

	if (t->writer)
		return rc;
	if (rc < 0) {
		store_rollback(t);
		return rc;
	}
	return store_end(t, reterr);
}

int tape_state_read(struct tape *t, const char *mode, tape_state_fn fn, void *ctx,
		    uint64_t *ret_rows, struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc = store_statement(t, STORE_STATE_GET, &s, reterr), step;

	*ret_rows = 0;
	if (rc < 0)
		return rc;
	bind_text(s, 1, mode);
	while ((step = sqlite3_step(s)) == SQLITE_ROW) {
		fn(ctx, (uint16_t)sqlite3_column_int(s, 0),
		   (const char *)sqlite3_column_text(s, 1), sqlite3_column_int64(s, 2));
		++*ret_rows;
	}
	if (step != SQLITE_DONE)
		rc = store_fail(t, "reading a kernel's snapshot", reterr);
	sqlite3_reset(s);
	return rc;
}
