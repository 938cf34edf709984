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
	int rc = t->writer ? 0 : store_begin(t, reterr);

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

int tape_run_end(struct tape *t, int64_t run, uint64_t elapsed_ns, uint64_t ops,
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
	rc = store_run(t, s, "writing a run", reterr);
	if (t->writer)
		return rc;
	if (rc < 0) {
		store_rollback(t);
		return rc;
	}
	return store_end(t, reterr);
}
