/* SPDX-License-Identifier: MIT */
#include "analyze/stat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/ask.h"
#include "analyze/timeline.h"
#include "base/cleanup.h"
#include "store/tape.h"

#define ALLOC_OPS "('alloc', 'alloc_bulk', 'sheaf_alloc')"
#define FREE_OPS "('free', 'free_rcu', 'free_bulk')"

/*
 * Slots as the recorded kernel made them, else the object size in whole words.  Sizes that the
 * tracer did not see (inferred) and whole pages count neither as asked for nor as taken.
 */
#define SLOT_CTE                                                                                \
	"slot(cache, room) AS (SELECT c.cache, nullif(coalesce((SELECT CAST(k.value AS INTEGER)" \
	" FROM cache_knob k WHERE k.cache = c.cache AND k.knob = 'slab_size'),"                  \
	" (c.object_size + 7) / 8 * 8), 0) FROM cache c)"
#define SLOT_SUMS                                                                               \
	" sum(CASE WHEN e.flags & 65 THEN NULL ELSE e.events * s.room END),"                     \
	" sum(CASE WHEN e.flags & 65 OR s.room IS NULL THEN NULL ELSE e.bytes END)"
#define EVENT_WINDOW                                                                            \
	" AND e.ts >= :begin AND e.ts < :end AND (:cpu IS NULL OR e.cpu = :cpu)"                 \
	" AND (:cache IS NULL OR e.cache = :cache)"
#define CACHE_ONLY " AND (:cache IS NULL OR cache = :cache)"

/* What one kind of row groups by, in each of the four passes. */
static const struct stat_key {
	const char *name;
	const char *alloc, *free, *freed, *live; /* columns of event_agg, object_agg */
	const char *label;			 /* of the key k.key */
	const char *coverage, *order;
} keys[] = {
	[STAT_BY_CACHE] = { "cache", "e.cache", "e.cache", "cache", "cache",
			    "(SELECT name FROM cache WHERE cache = k.key)",
			    "(SELECT round(coverage, 4) FROM cache WHERE cache = k.key)", "hit DESC" },
	[STAT_BY_CPU] = { "cpu", "e.cpu", "e.cpu", "free_cpu", "alloc_cpu", "k.key", "NULL",
			  "k.key" },
	[STAT_BY_NODE] = { "node", "e.node", "e.node", "free_node", "alloc_node", "k.key", "NULL",
			   "k.key" },
	[STAT_BY_SITE] = { "site", "e.site", NULL, "alloc_site", "alloc_site",
			   "(SELECT coalesce(symbol || printf('+0x%x', offset), nullif(printf('%s+0x%x',"
			   " module, offset), '+0x0'), printf('0x%x', address)) FROM site"
			   " WHERE site = k.key)", "NULL", "hit DESC" },
};

int stat_by_find(const char *name)
{
	for (int i = 0; i < STAT_BY_TIME; i++)
		if (!strcmp(keys[i].name, name))
			return i;
	return !strcmp(name, "time") ? STAT_BY_TIME : -1;
}

static const struct {
	const char *name, *order;
} sorts[] = {
	{ "hit", "hit DESC" },		 { "bytes", "bytes DESC" },
	{ "frag", "frag DESC" },	 { "pingpong", "pingpong DESC" },
	{ "callsite", "name" },		 { "name", "name" },
	{ "free", "free DESC" },	 { "remote", "remote DESC" },
	{ "cross_node", "cross_node DESC" }, { "life", "life_ns DESC" },
	{ "live", "live DESC" },	 { "live_bytes", "live_bytes DESC" },
};
const char stat_sort_names[] = "hit, bytes, frag, pingpong, callsite, name, free, remote, "
			       "cross_node, life, live, live_bytes";

const char *stat_sort_find(const char *name)
{
	for (size_t i = 0; i < sizeof(sorts) / sizeof(sorts[0]); i++)
		if (!strcmp(sorts[i].name, name))
			return sorts[i].order;
	return NULL;
}

static void fill_binds(const struct stat_config *cfg, double seconds, struct analyze_bind binds[8])
{
	int64_t end = cfg->end_ns > INT64_MAX ? INT64_MAX : (int64_t)cfg->end_ns;
	const struct analyze_bind all[] = {
		{ "begin", ANALYZE_INT, (int64_t)cfg->begin_ns, NULL, 0 },
		{ "end", ANALYZE_INT, end, NULL, 0 },
		{ "cpu", cfg->cpu < 0 ? ANALYZE_NULL : ANALYZE_INT, cfg->cpu, NULL, 0 },
		{ "cache", cfg->cache < 0 ? ANALYZE_NULL : ANALYZE_INT, cfg->cache, NULL, 0 },
		{ "limit", ANALYZE_INT, cfg->limit, NULL, 0 },
		{ "ns", ANALYZE_INT, (int64_t)(seconds * 1e9), NULL, 0 },
		{ .name = NULL },
	};

	memcpy(binds, all, sizeof(all));
}

/* Length of the window in seconds, cut to what the tape covers. */
static int window_seconds(struct tape *t, const struct stat_config *cfg, double *ret_seconds,
			  struct tape_err *reterr)
{
	struct tape_totals n;
	uint64_t begin, end;
	int rc = tape_totals_get(t, &n, reterr);

	if (rc < 0)
		return rc;
	begin = cfg->begin_ns > n.ts_min ? cfg->begin_ns : n.ts_min;
	end = cfg->end_ns < n.ts_max ? cfg->end_ns : n.ts_max;
	*ret_seconds = end > begin ? (double)(end - begin) / 1e9 : 0;
	return 0;
}

/* The passes over the events and the objects that a table is put together from. */
static void write_passes(FILE *out, const struct stat_key *k)
{
	fprintf(out, "WITH " SLOT_CTE ",\n"
		"a(key, hit, bytes, room, asked) AS (SELECT %s, sum(e.events), sum(e.bytes),"
		SLOT_SUMS " FROM event_agg e LEFT JOIN slot s ON s.cache = e.cache"
		" WHERE e.op IN " ALLOC_OPS " AND e.flags & 16 = 0" EVENT_WINDOW " GROUP BY 1),\n",
		k->alloc);
	fprintf(out, "o(key, objects, known, remote, placed, crossed, life, life_max) AS (SELECT %s,"
		" sum(objects), total((alloc_cpu IS NOT NULL) * objects), total(remote * objects),"
		" total((cross_node IS NOT NULL) * objects), total(cross_node * objects),"
		" total(lifetime_ns), max(lifetime_max) FROM object_agg"
		" WHERE freed = 1 AND free_ts >= :begin AND free_ts < :end"
		" AND (:cpu IS NULL OR free_cpu = :cpu)" CACHE_ONLY " GROUP BY 1),\n", k->freed);
	if (k->free)
		fprintf(out, "f(key, frees) AS (SELECT %s, sum(e.events) FROM event_agg e WHERE e.op IN "
			FREE_OPS EVENT_WINDOW " GROUP BY 1),\n", k->free);
	else
		fprintf(out, "f(key, frees) AS (SELECT key, objects FROM o),\n");
	fprintf(out, "l(key, objects, bytes) AS (SELECT key, sum(objects), sum(bytes) FROM ("
		"SELECT %s AS key, sum(objects) AS objects, sum(bytes) AS bytes FROM object_agg"
		" WHERE alloc_cpu IS NOT NULL AND alloc_ts < :end"
		" AND (:cpu IS NULL OR alloc_cpu = :cpu)" CACHE_ONLY " GROUP BY 1 UNION ALL "
		"SELECT %s, -sum(objects), -sum(bytes) FROM object_agg WHERE alloc_cpu IS NOT NULL"
		" AND freed = 1 AND free_ts < :end AND (:cpu IS NULL OR alloc_cpu = :cpu)" CACHE_ONLY
		" GROUP BY 1) GROUP BY 1),\n", k->live, k->live);
}

static char *table_sql(const struct stat_key *k, const char *order)
{
	char *sql = NULL;
	size_t bytes;
	FILE *out = open_memstream(&sql, &bytes);

	if (!out)
		return NULL;
	write_passes(out, k);
	fprintf(out, "k(key) AS (SELECT key FROM a UNION SELECT key FROM f)\n"
		"SELECT %s AS name, coalesce(a.hit, 0) AS hit,"
		" round(coalesce(a.hit, 0) / nullif(:ns / 1e9, 0), 1) AS hit_per_s,"
		" coalesce(f.frees, 0) AS free, coalesce(a.bytes, 0) AS bytes, a.room AS slot_bytes,"
		" round(1.0 - 1.0 * a.asked / nullif(a.room, 0), 4) AS frag,"
		" coalesce(CAST(o.remote AS INTEGER), 0) AS pingpong,"
		" round(o.remote / nullif(o.known, 0), 4) AS remote,"
		" round(o.crossed / nullif(o.placed, 0), 4) AS cross_node,"
		" CAST(o.life / nullif(o.known, 0) AS INTEGER) AS life_ns, o.life_max AS life_max_ns,"
		" coalesce(l.objects, 0) AS live, coalesce(l.bytes, 0) AS live_bytes, %s AS coverage\n"
		"FROM k LEFT JOIN a ON a.key IS k.key LEFT JOIN f ON f.key IS k.key"
		" LEFT JOIN o ON o.key IS k.key LEFT JOIN l ON l.key IS k.key\n"
		"ORDER BY %s, name LIMIT :limit", k->label, k->coverage, order);
	return fclose(out) ? NULL : sql;
}

/* ---- by time ---- */

enum { PARTS_DEFAULT = 20 };

static json_t *timeline_rows(const struct timeline *l)
{
	json_t *rows = json_array();

	for (uint32_t i = 0; i < l->parts; i++) {
		const struct timeline_point *p = &l->total.points[i];

		json_array_append_new(rows, json_pack(
			"{s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "begin_s",
			(double)(l->begin_ns + i * l->width_ns) / 1e9, "hit", (json_int_t)p->allocs,
			"free", (json_int_t)p->frees, "bytes", (json_int_t)p->alloc_bytes, "live",
			(json_int_t)p->live_objs, "live_bytes", (json_int_t)p->live_bytes, "peak",
			(json_int_t)p->peak_objs, "peak_bytes", (json_int_t)p->peak_bytes));
	}
	return rows;
}

static int table_by_time(struct tape *t, const struct stat_config *cfg, json_t **ret_rows,
			 struct tape_err *reterr)
{
	TAPE_CLEANUP(timeline_destroyp) struct timeline *l = NULL;
	const struct timeline_config parts = {
		.begin_ns = cfg->begin_ns, .end_ns = cfg->end_ns, .cpu = cfg->cpu, .cache = cfg->cache,
		.parts = cfg->limit < 1 ? PARTS_DEFAULT : cfg->limit > TIMELINE_PARTS_MAX ?
			 TIMELINE_PARTS_MAX : (uint32_t)cfg->limit,
	};
	int rc = timeline_load(t, &parts, &l, reterr);

	if (rc < 0)
		return rc;
	*ret_rows = timeline_rows(l);
	return 0;
}

int stat_table(struct tape *t, const struct stat_config *cfg, json_t **ret_rows,
	       struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) char *sql = NULL;
	struct analyze_bind binds[8];
	const struct stat_key *k;
	double seconds;
	int rc;

	if (cfg->by == STAT_BY_TIME)
		return table_by_time(t, cfg, ret_rows, reterr);
	k = &keys[cfg->by];
	rc = window_seconds(t, cfg, &seconds, reterr);
	if (rc < 0)
		return rc;
	fill_binds(cfg, seconds, binds);
	sql = table_sql(k, cfg->sort ? stat_sort_find(cfg->sort) : k->order);
	return sql ? analyze_ask(tape_db(t), sql, binds, ret_rows, reterr) : -ENOMEM;
}

/* ---- summary ---- */

static const char summary_sql[] =
	"WITH " SLOT_CTE ",\n"
	"a(hit, bytes, room, asked) AS (SELECT sum(e.events), sum(e.bytes)," SLOT_SUMS
	" FROM event_agg e LEFT JOIN slot s ON s.cache = e.cache WHERE e.op IN " ALLOC_OPS
	" AND e.flags & 16 = 0" EVENT_WINDOW "),\n"
	"f(frees) AS (SELECT sum(e.events) FROM event_agg e WHERE e.op IN " FREE_OPS EVENT_WINDOW "),\n"
	"o(known, remote, placed, crossed) AS (SELECT total((alloc_cpu IS NOT NULL) * objects),"
	" total(remote * objects), total((cross_node IS NOT NULL) * objects),"
	" total(cross_node * objects) FROM object_agg WHERE freed = 1"
	" AND free_ts >= :begin AND free_ts < :end AND (:cpu IS NULL OR free_cpu = :cpu)" CACHE_ONLY ")\n"
	"SELECT (SELECT coalesce(sum(events), 0) FROM event_agg e WHERE 1" EVENT_WINDOW ") AS events,"
	" :ns / 1e9 AS seconds, (SELECT count(*) FROM cpu) AS cpus,"
	" (SELECT count(DISTINCT node) FROM cpu) AS nodes, coalesce(hit, 0) AS hit,"
	" coalesce(frees, 0) AS free, coalesce(bytes, 0) AS bytes, room AS slot_bytes,"
	" round(1.0 - 1.0 * asked / nullif(room, 0), 4) AS frag,"
	" round(remote / nullif(known, 0), 4) AS remote,"
	" round(crossed / nullif(placed, 0), 4) AS cross_node FROM a, f, o";

int stat_summary(struct tape *t, const struct stat_config *cfg, json_t **ret_summary,
		 struct tape_err *reterr)
{
	struct analyze_bind binds[8];
	struct tape_totals n;
	double seconds;
	json_t *rows, *row;
	int rc = window_seconds(t, cfg, &seconds, reterr);

	if (rc == 0)
		rc = tape_totals_get(t, &n, reterr);
	if (rc < 0)
		return rc;
	fill_binds(cfg, seconds, binds);
	rc = analyze_ask(tape_db(t), summary_sql, binds, &rows, reterr);
	if (rc < 0)
		return rc;
	row = json_incref(json_array_get(rows, 0));
	json_decref(rows);
	json_object_set_new(row, "lost", json_integer((json_int_t)n.lost));
	json_object_set_new(row, "inferred",
			    json_integer((json_int_t)(n.inferred_allocs + n.inferred_frees)));
	json_object_set_new(row, "orphan_frees", json_integer((json_int_t)n.orphan_frees));
	*ret_summary = row;
	return 0;
}
