/* SPDX-License-Identifier: MIT */
/*
 * Chrome's trace event format, which Perfetto and about:tracing open.
 *
 *	process 1  one thread per CPU: events of the tape; refills and drains of a run
 *	process 2  counters: live objects per cache; slabs and objects per cache and node
 *	process 3  slabs of a run from birth to death, as asynchronous slices
 *
 * One record per line.  Refills and drains have no length: a run records when they happened, and
 * for locks only totals, which stand in otherData.
 */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/export_internal.h"
#include "analyze/timeline.h"
#include "base/cleanup.h"
#include "store/tape.h"

enum { PID_CPUS = 1, PID_COUNTERS, PID_SLABS, TIMELINE_PARTS = 1000 };

struct trace {
	FILE *out;
	struct export_names names;
	struct export_sums sums;
};

/* Begin a record: what every record has.  @ts_ns becomes microseconds without rounding. */
static void begin(struct trace *x, const char *ph, const char *cat, int pid, int64_t tid,
		  uint64_t ts_ns)
{
	fprintf(x->out, "%s{\"ph\":\"%s\",\"cat\":\"%s\",\"pid\":%d,\"tid\":%" PRId64 ",\"ts\":%" PRIu64
		".%03u", x->sums.records ? ",\n" : "", ph, cat, pid, tid, ts_ns / 1000,
		(unsigned int)(ts_ns % 1000));
	x->sums.records++;
}

static void name(struct trace *x, const char *first, const char *second)
{
	TAPE_CLEANUP(tape_freep) char *text = NULL;

	if (asprintf(&text, "%s%s%s", first, *second ? " " : "", second) < 0)
		return; /* the record is broken, which the check sees */
	fputs(",\"name\":", x->out);
	export_json_text(x->out, text);
}

static void metadata(struct trace *x, const char *what, int pid, int64_t tid, const char *value)
{
	begin(x, "M", "__metadata", pid, tid, 0);
	fprintf(x->out, ",\"name\":\"%s\",\"args\":{\"name\":", what);
	export_json_text(x->out, value);
	fputs("}}", x->out);
}

static int print_cpus(struct trace *x, struct tape *t, struct tape_err *reterr)
{
	json_t *rows, *row;
	char text[64];
	size_t i;
	int rc = analyze_ask(tape_db(t), "SELECT cpu, node FROM cpu ORDER BY cpu", NULL, &rows, reterr);

	if (rc < 0)
		return rc;
	metadata(x, "process_name", PID_CPUS, 0, "CPUs");
	metadata(x, "process_name", PID_COUNTERS, 0, "counters");
	metadata(x, "process_name", PID_SLABS, 0, "slabs");
	json_array_foreach(rows, i, row) {
		snprintf(text, sizeof(text), "CPU %" PRId64 " (node %" PRId64 ")", analyze_int(row, "cpu"),
			 analyze_int(row, "node"));
		metadata(x, "thread_name", PID_CPUS, analyze_int(row, "cpu"), text);
	}
	json_decref(rows);
	return 0;
}

/* ---- the events ---- */

static int print_event(void *ctx, uint64_t seq, const struct tape_event *ev)
{
	struct trace *x = ctx;

	begin(x, "i", "event", PID_CPUS, ev->cpu, ev->ts);
	name(x, tape_op_name(ev->op), export_cache_name(&x->names, ev->cache));
	fprintf(x->out, ",\"s\":\"t\",\"args\":{\"seq\":%" PRIu64, seq);
	if (ev->object != TAPE_NO_OBJECT)
		fprintf(x->out, ",\"object\":%" PRIu64, ev->object);
	if (ev->size)
		fprintf(x->out, ",\"size\":%" PRIu64, ev->size);
	if (*export_site_name(&x->names, ev->site)) {
		fputs(",\"site\":", x->out);
		export_json_text(x->out, export_site_name(&x->names, ev->site));
	}
	fputs("}}", x->out);
	x->sums.events++;
	return ferror(x->out) ? -TAPE_E_IO : 0;
}

/* Levels that did not change are not repeated; peaks inside a part have a series of their own. */
static void print_series(struct trace *x, const struct timeline *l, const struct timeline_series *s)
{
	const struct timeline_point *last = NULL;

	for (uint32_t i = 0; i < l->parts; i++) {
		const struct timeline_point *p = &s->points[i];

		if (last && last->live_bytes == p->live_bytes && last->peak_bytes == p->peak_bytes)
			continue;
		begin(x, "C", "live", PID_COUNTERS, 0, l->begin_ns + i * l->width_ns);
		name(x, "live bytes", export_cache_name(&x->names, s->cache));
		fprintf(x->out, ",\"args\":{\"at the end\":%" PRIu64 ",\"peak\":%" PRIu64 "}}",
			p->live_bytes, p->peak_bytes);
		last = p;
	}
}

static int print_live(struct trace *x, struct tape *t, const struct export_config *cfg,
		      struct tape_err *reterr)
{
	TAPE_CLEANUP(timeline_destroyp) struct timeline *l = NULL;
	const struct timeline_config parts = { .begin_ns = cfg->begin_ns, .end_ns = cfg->end_ns,
		.parts = TIMELINE_PARTS, .cpu = -1, .cache = cfg->cache, .by_cache = true };
	int rc = timeline_load(t, &parts, &l, reterr);

	if (rc < 0)
		return rc;
	print_series(x, l, &l->total);
	for (size_t i = 0; i < l->nr_caches; i++)
		print_series(x, l, &l->caches[i]);
	return 0;
}

/* ---- a run ---- */

/* Simulated runs have a time of their own; slab's times are of that kind already. */
#define RUN_TIME                                                              \
	"CASE WHEN (SELECT mode FROM run WHERE run = :run) = 'simulated'"     \
	" THEN x.vts ELSE x.ts END"
#define RUN_ROWS                                                              \
	" WHERE x.run = :run AND x.ts >= :begin AND x.ts < :end"              \
	" AND (:cache IS NULL OR x.cache = :cache)"

static const char refill_sql[] =
	"SELECT " RUN_TIME ", x.cpu, coalesce(c.name, ''), x.source, x.objects, x.seq"
	" FROM refill x LEFT JOIN cache c ON c.cache = x.cache" RUN_ROWS;
static const char drain_sql[] =
	"SELECT min(" RUN_TIME "), x.cpu, coalesce(c.name, ''), x.op, count(*), x.seq"
	" FROM transition x LEFT JOIN cache c ON c.cache = x.cache" RUN_ROWS
	" AND x.from_state = 'cpu_partial' AND x.to_state IN ('partial', 'empty', 'none')"
	" GROUP BY x.seq, x.cpu, x.cache ORDER BY x.seq";
static const char sample_sql[] =
	"SELECT " RUN_TIME ", x.node, coalesce(c.name, ''), x.slabs, x.partial, x.cpu_partial_slabs,"
	" x.objects_inuse, x.objects_total, x.cached_objs"
	" FROM sample x LEFT JOIN cache c ON c.cache = x.cache" RUN_ROWS;
static const char slab_sql[] =
	"SELECT x.born_ts, x.died_ts, coalesce(c.name, ''), x.slab, x.node, x.objects"
	" FROM slab x LEFT JOIN cache c ON c.cache = x.cache WHERE x.run = :run AND x.born_ts < :end"
	" AND coalesce(x.died_ts >= :begin, 1) AND (:cache IS NULL OR x.cache = :cache)";

static void print_refill(struct trace *x, sqlite3_stmt *s)
{
	begin(x, "X", "refill", PID_CPUS, sqlite3_column_int64(s, 1), (uint64_t)sqlite3_column_int64(s, 0));
	name(x, "refill", (const char *)sqlite3_column_text(s, 2));
	fputs(",\"dur\":0,\"args\":{\"source\":", x->out);
	export_json_text(x->out, (const char *)sqlite3_column_text(s, 3));
	fprintf(x->out, ",\"objects\":%lld,\"seq\":%lld}}", sqlite3_column_int64(s, 4),
		sqlite3_column_int64(s, 5));
	x->sums.events++;
}

static void print_drain(struct trace *x, sqlite3_stmt *s)
{
	begin(x, "X", "drain", PID_CPUS, sqlite3_column_int64(s, 1), (uint64_t)sqlite3_column_int64(s, 0));
	name(x, "drain", (const char *)sqlite3_column_text(s, 2));
	fprintf(x->out, ",\"dur\":0,\"args\":{\"slabs\":%lld,\"seq\":%lld}}", sqlite3_column_int64(s, 4),
		sqlite3_column_int64(s, 5));
	x->sums.events += (uint64_t)sqlite3_column_int64(s, 4);
}

static void print_sample(struct trace *x, sqlite3_stmt *s)
{
	uint64_t ts = (uint64_t)sqlite3_column_int64(s, 0);
	char node[32];

	snprintf(node, sizeof(node), "node %lld:", sqlite3_column_int64(s, 1));
	begin(x, "C", "slabs", PID_COUNTERS, 0, ts);
	name(x, node, (const char *)sqlite3_column_text(s, 2));
	fprintf(x->out, ",\"id\":\"slabs\",\"args\":{\"slabs\":%lld,\"partial\":%lld,"
		"\"cpu_partial_slabs\":%lld}}", sqlite3_column_int64(s, 3), sqlite3_column_int64(s, 4),
		sqlite3_column_int64(s, 5));
	begin(x, "C", "objects", PID_COUNTERS, 0, ts);
	name(x, node, (const char *)sqlite3_column_text(s, 2));
	fprintf(x->out, ",\"id\":\"objects\",\"args\":{\"objects_inuse\":%lld,\"objects_total\":%lld,"
		"\"cached_objs\":%lld}}", sqlite3_column_int64(s, 6), sqlite3_column_int64(s, 7),
		sqlite3_column_int64(s, 8));
	x->sums.events++;
}

/* A slab that was there at the end has no end. */
static void print_slab(struct trace *x, sqlite3_stmt *s)
{
	long long id = sqlite3_column_int64(s, 3), node = sqlite3_column_int64(s, 4);

	begin(x, "b", "slab", PID_SLABS, node, (uint64_t)sqlite3_column_int64(s, 0));
	name(x, (const char *)sqlite3_column_text(s, 2), "");
	fprintf(x->out, ",\"id\":%lld,\"args\":{\"slab\":%lld,\"node\":%lld,\"objects\":%lld}}", id, id,
		node, sqlite3_column_int64(s, 5));
	x->sums.events++;
	if (sqlite3_column_type(s, 1) == SQLITE_NULL)
		return;
	begin(x, "e", "slab", PID_SLABS, node, (uint64_t)sqlite3_column_int64(s, 1));
	name(x, (const char *)sqlite3_column_text(s, 2), "");
	fprintf(x->out, ",\"id\":%lld}", id);
}

static int print_rows(struct trace *x, struct tape *t, const struct export_config *cfg,
		      const char *sql, void (*print)(struct trace *x, sqlite3_stmt *s),
		      struct tape_err *reterr)
{
	struct analyze_bind binds[EXPORT_BINDS];
	sqlite3_stmt *s;
	int rc, step;

	export_binds(cfg, binds);
	rc = analyze_prepare(tape_db(t), sql, binds, &s, reterr);
	if (rc < 0)
		return rc;
	while ((step = sqlite3_step(s)) == SQLITE_ROW)
		print(x, s);
	sqlite3_finalize(s);
	return step == SQLITE_DONE ? 0 : tape_err_set(reterr, -TAPE_E_FORMAT, "reading the tape: %s",
						      sqlite3_errmsg(tape_db(t)));
}

static int print_run(struct trace *x, struct tape *t, const struct export_config *cfg,
		     struct tape_err *reterr)
{
	int rc = print_rows(x, t, cfg, refill_sql, print_refill, reterr);

	if (rc == 0)
		rc = print_rows(x, t, cfg, drain_sql, print_drain, reterr);
	if (rc == 0)
		rc = print_rows(x, t, cfg, sample_sql, print_sample, reterr);
	return rc < 0 ? rc : print_rows(x, t, cfg, slab_sql, print_slab, reterr);
}

/* ---- the file ---- */

/* What the slices cannot say: the run and its locks' totals. */
static int print_other(FILE *out, struct tape *t, const struct export_config *cfg,
		       struct tape_err *reterr)
{
	struct analyze_bind binds[EXPORT_BINDS];
	json_t *run = NULL, *locks = NULL, *other;
	int rc;

	export_binds(cfg, binds);
	rc = analyze_ask(tape_db(t), "SELECT run, variant, mode, cpus, nodes, seed FROM run"
			 " WHERE run = :run", binds, &run, reterr);
	if (rc == 0 && cfg->run >= 0 && !json_array_size(run))
		rc = tape_err_set(reterr, -TAPE_E_USAGE, "--run %lld: no such run; slabtape info lists "
				  "them", (long long)cfg->run);
	if (rc == 0)
		rc = analyze_ask(tape_db(t), "SELECT c.name AS cache, l.node, l.lock, l.path,"
				 " l.acquisitions, l.contended, l.wait_ns, l.hold_ns FROM lock l"
				 " LEFT JOIN cache c ON c.cache = l.cache WHERE l.run = :run", binds,
				 &locks, reterr);
	if (rc == 0) {
		other = json_pack("{s:s, s:s, s:O, s:O}", "exporter", "slabtape " SLABTAPE_VERSION,
				  "tape", tape_path(t), "runs", run, "locks", locks);
		json_dumpf(other, out, JSON_COMPACT);
		json_decref(other);
	}
	json_decref(run);
	json_decref(locks);
	return rc;
}

static int write_perfetto(struct tape *t, const struct export_config *cfg, FILE *out,
			  struct export_sums *ret_sums, struct tape_err *reterr)
{
	struct trace x = { .out = out };
	int rc;

	fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":", out);
	rc = print_other(out, t, cfg, reterr);
	if (rc == 0)
		rc = export_names_load(t, &x.names, reterr);
	if (rc < 0)
		return rc;
	fputs(",\"traceEvents\":[\n", out);
	rc = print_cpus(&x, t, reterr);
	if (rc == 0 && cfg->run >= 0)
		rc = print_run(&x, t, cfg, reterr);
	else if (rc == 0)
		rc = export_each(t, cfg, print_event, &x, reterr);
	if (rc == 0 && cfg->run < 0)
		rc = print_live(&x, t, cfg, reterr);
	fputs("\n]}\n", out);
	export_names_fini(&x.names);
	*ret_sums = x.sums;
	return rc;
}

/* Is the record one that stands for something of the tape?  Drains stand for several slabs. */
static uint64_t stands_for(const char *line)
{
	static const char *const ones[] = { "{\"ph\":\"i\",\"cat\":\"event\"",
		"{\"ph\":\"X\",\"cat\":\"refill\"", "{\"ph\":\"C\",\"cat\":\"slabs\"",
		"{\"ph\":\"b\",\"cat\":\"slab\"" };
	static const char drain[] = "{\"ph\":\"X\",\"cat\":\"drain\"", slabs[] = "\"args\":{\"slabs\":";
	const char *at;

	for (size_t i = 0; i < sizeof(ones) / sizeof(ones[0]); i++)
		if (!strncmp(line, ones[i], strlen(ones[i])))
			return 1;
	if (strncmp(line, drain, strlen(drain)) != 0)
		return 0;
	at = strstr(line, slabs);
	return at ? strtoull(at + strlen(slabs), NULL, 10) : 0;
}

static int check_perfetto(FILE *in, struct export_sums *ret_sums, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) char *line = NULL;
	bool closed = false;
	size_t room = 0;

	while (getline(&line, &room, in) > 0) {
		size_t n = strcspn(line, "\n");

		closed = !strcmp(line, "]}\n");
		if (strncmp(line, "{\"ph\":", 6) != 0 || n < 8)
			continue;
		if (line[n - 1] != '}' && !(line[n - 1] == ',' && line[n - 2] == '}'))
			break;
		ret_sums->records++;
		ret_sums->events += stands_for(line);
	}
	return closed ? 0 : tape_err_set(reterr, -TAPE_E_IO, "perfetto: read back, the file does not end "
					 "as it should");
}

static int expect_perfetto(struct tape *t, const struct export_config *cfg, uint64_t *ret_events,
			   struct tape_err *reterr)
{
	if (cfg->run < 0)
		return export_expect_events(t, cfg, ret_events, reterr);
	return export_count(t, cfg,
		"SELECT (SELECT coalesce(sum(refills), 0) FROM refill_agg x WHERE x.run = :run"
		" AND x.ts >= :begin AND x.ts < :end AND (:cache IS NULL OR x.cache = :cache))"
		" + (SELECT coalesce(sum(transitions), 0) FROM transition_agg x WHERE x.run = :run"
		" AND x.ts >= :begin AND x.ts < :end AND (:cache IS NULL OR x.cache = :cache)"
		" AND from_state = 'cpu_partial' AND to_state IN ('partial', 'empty', 'none'))"
		" + (SELECT count(*) FROM sample x" RUN_ROWS ")"
		" + (SELECT count(*) FROM slab x WHERE x.run = :run AND x.born_ts < :end"
		" AND coalesce(x.died_ts >= :begin, 1) AND (:cache IS NULL OR x.cache = :cache)) AS n",
		ret_events, reterr);
}

const struct export_format export_perfetto = { .name = "perfetto", .write = write_perfetto,
					       .check = check_perfetto, .expect = expect_perfetto,
					       .runs = true };
