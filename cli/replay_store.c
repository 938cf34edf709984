/* SPDX-License-Identifier: MIT */
#include "cli/replay_store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "replay/recorder.h"
#include "store/tape.h"

char *cli_join_args(int argc, const char **argv)
{
	size_t bytes;
	char *text = NULL;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return NULL;
	for (int i = 0; i < argc; i++)
		fprintf(out, "%s%s", i ? " " : "", argv[i]);
	if (fclose(out))
		return NULL;
	return text;
}

static int define_cache(struct tape *t, const struct replay_cache *c, const struct tape_cache *rows,
			size_t nr, struct tape_err *reterr)
{
	struct tape_cache row = { .id = c->cache, .object_size = c->geo.object_size,
				  .align = c->geo.align, .coverage = c->coverage };

	for (size_t i = 0; i < nr; i++) {
		if (rows[i].id != c->cache)
			continue;
		if (!strcmp(rows[i].name, c->name))
			return 0;
		return tape_err_set(reterr, -TAPE_E_USAGE, "--results %s: its cache %u is %s, not "
				    "%s; results of another recording need a file of their own",
				    tape_path(t), c->cache, rows[i].name, c->name);
	}
	memcpy(row.name, c->name, sizeof(row.name));
	return tape_define_cache(t, &row, reterr);
}

static int define_caches(struct tape *t, const struct replay_result *r, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) struct tape_cache *rows = NULL;
	size_t nr = 0;
	int rc = tape_caches_get(t, &rows, &nr, reterr);

	for (size_t i = 0; i < r->nr_caches && rc >= 0; i++)
		rc = define_cache(t, &r->caches[i], rows, nr, reterr);
	return rc < 0 ? rc : 0;
}

/* The tape for results: opened, or made without events. */
static int results_open(const char *path, const struct replay_result *r, struct tape **ret_tape,
			struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_closep_tape) struct tape *t = NULL;
	int rc;

	if (!access(path, F_OK)) {
		rc = tape_open(path, TAPE_READ_WRITE, &t, reterr);
		if (rc >= 0)
			rc = define_caches(t, r, reterr);
	} else {
		rc = tape_create(path, false, &t, reterr);
		for (uint32_t cpu = 0; rc >= 0 && cpu < r->cpus; cpu++)
			rc = tape_define_cpu(t, (uint16_t)cpu, (int16_t)r->cpu_node[cpu], reterr);
		if (rc >= 0)
			rc = define_caches(t, r, reterr);
		if (rc >= 0)
			rc = tape_meta_set(t, "source", "results", reterr);
		if (rc >= 0)
			rc = tape_writer_finish(t, reterr);
	}
	if (rc < 0)
		return rc;
	*ret_tape = tape_steal(&t);
	return 0;
}

bool cli_stores_result(const char *tape_path, const char *results)
{
	return results || (strcmp(tape_path, "-") && tape_is_tape(tape_path));
}

/* What the bound of --record cut is said, whatever the form of the output. */
static void tell_truncated(const char *verb, const struct replay_result *r)
{
	int64_t seq = r->recorder ? replay_recorder_truncated(r->recorder) : -1;

	if (seq >= 0)
		fprintf(stderr, "slabtape: %s: transitions and refills were kept up to event %" PRId64
			" (run.truncated_seq): --record-limit was reached; 0 keeps all\n", verb, seq);
}

int cli_store_result(const char *verb, const char *tape_path, const char *results,
		     const struct replay_result *r, const char *args, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_closep_tape) struct tape *t = NULL;
	struct tape_err err = { 0 };
	int64_t run;
	int rc;

	tell_truncated(verb, r);
	if (results) {
		rc = results_open(results, r, &t, reterr);
		return rc < 0 ? rc : replay_result_store(t, r, args, &run, reterr);
	}
	if (!cli_stores_result(tape_path, NULL))
		return 0;
	rc = access(tape_path, W_OK) ? tape_err_set(&err, -errno, "%s", strerror(errno)) :
				       tape_open(tape_path, TAPE_READ_WRITE, &t, &err);
	if (rc >= 0)
		rc = replay_result_store(t, r, args, &run, &err);
	if (rc == -EACCES || rc == -EPERM || rc == -EROFS) { /* not ours to write: no failure */
		fprintf(stderr, "slabtape: %s: the run was not stored in %s: %s; --results FILE "
			"stores it elsewhere\n", verb, tape_path, err.text);
		return 0;
	}
	return rc < 0 ? tape_err_set(reterr, rc, "the run was not stored in %s: %s; --results FILE "
				     "stores it elsewhere", tape_path, err.text) : 0;
}
