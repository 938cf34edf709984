/* SPDX-License-Identifier: MIT */
/* One run as the tables that readers of slabinfo and /sys/kernel/slab know. */
#include <errno.h>
#include <string.h>

#include "analyze/ask.h"
#include "analyze/stat.h"
#include "store/tape.h"

/* The sum over all CPUs of one counter; a shape that the run does not say is the recording's. */
#define V(name) "sum(n.value) FILTER (WHERE n.name = '" name "')"
#define V0(name) "coalesce(" V(name) ", 0)"
#define SHAPE(name) "coalesce(" V(name) ", (SELECT CAST(k.value AS INTEGER) FROM cache_knob k" \
	" WHERE k.cache = n.cache AND k.knob = '" name "'))"
#define FROM_COUNTERS                                                                \
	" FROM counter n LEFT JOIN cache c ON c.cache = n.cache WHERE n.run = :run"   \
	" AND n.cpu IS NULL AND (:cache IS NULL OR n.cache = :cache) GROUP BY n.cache"

/* Frees through rcu sheaves stand in a counter of their own; SLQB counts all in one. */
static const char activity_sql[] =
	"WITH v AS (SELECT c.name AS name, coalesce(" V("objects") ", " V("total_objects") ") AS objects,"
	" coalesce(" V("alloc_fastpath") ", " V("alloc") ", 0) AS fa, " V0("alloc_slowpath") " AS sa,"
	" coalesce(" V("free_fastpath") ", " V("free") ", 0) + " V0("free_rcu_sheaf") " AS ff,"
	" " V0("free_slowpath") " AS sf, " V0("order_fallback") " AS fallback,"
	" " SHAPE("order") " AS \"order\","
	" " V0("cmpxchg_double_cpu_fail") " + " V0("cmpxchg_double_fail") " AS cmpxchg_fail"
	FROM_COUNTERS ")\n"
	"SELECT name, objects, fa + sa AS alloc, ff + sf AS free,"
	" round(100.0 * fa / nullif(fa + sa, 0), 1) AS fast_alloc,"
	" round(100.0 * ff / nullif(ff + sf, 0), 1) AS fast_free, fallback, \"order\", cmpxchg_fail"
	" FROM v WHERE fa + sa + ff + sf > 0 ORDER BY alloc + free DESC, name LIMIT :limit";

static const char loss_sql[] =
	"WITH v AS (SELECT c.name AS name, " V("objects") " AS objects,"
	" coalesce(" V("object_size") ", c.object_size) AS object_size, " V("slabs") " AS slabs,"
	" " V0("partial") " AS partial, " V0("cpu_slabs") " AS cpu_slabs,"
	" " SHAPE("objs_per_slab") " AS objs_per_slab, " SHAPE("order") " AS \"order\","
	" " V0("alloc_node_mismatch") " AS node_mismatch" FROM_COUNTERS ")\n"
	"SELECT name, objects, object_size,"
	" slabs * (4096 << \"order\") - objects * object_size AS loss_bytes, slabs, partial, cpu_slabs,"
	" objs_per_slab, \"order\", round(100.0 * partial / nullif(slabs, 0), 1) AS partial_percent,"
	" round(100.0 * objects * object_size / nullif(slabs * (4096 << \"order\"), 0), 1) AS used_percent,"
	" node_mismatch FROM v WHERE slabs > 0 ORDER BY loss_bytes DESC, name LIMIT :limit";

/* Every counter that moved; percent: of all allocations or of all frees, whichever it belongs to. */
static const char report_sql[] =
	"WITH n AS (SELECT rowid AS at, cache, name, value FROM counter WHERE run = :run AND cpu IS NULL"
	" AND (:cache IS NULL OR cache = :cache)),\n"
	"w AS (SELECT cache, sum(value) FILTER (WHERE name IN ('alloc_fastpath', 'alloc_slowpath',"
	" 'alloc')) AS allocs, sum(value) FILTER (WHERE name IN ('free_fastpath', 'free_slowpath',"
	" 'free_rcu_sheaf', 'free')) AS frees FROM n GROUP BY cache)\n"
	"SELECT c.name AS name, n.name AS counter, n.value AS value, CASE"
	" WHEN n.name IN ('alloc_fastpath', 'alloc_slowpath', 'alloc_from_partial', 'alloc_slab',"
	" 'alloc_refill', 'cpu_partial_alloc', 'alloc_node_mismatch', 'sheaf_refill')"
	" THEN round(100.0 * n.value / nullif(w.allocs, 0), 1)"
	" WHEN n.name IN ('free_fastpath', 'free_slowpath', 'free_frozen', 'free_add_partial',"
	" 'free_remove_partial', 'free_slab', 'cpu_partial_free', 'free_rcu_sheaf', 'sheaf_flush')"
	" THEN round(100.0 * n.value / nullif(w.frees, 0), 1) END AS percent\n"
	"FROM n JOIN w USING(cache) LEFT JOIN cache c USING(cache)"
	" WHERE n.value != 0 ORDER BY coalesce(w.allocs, 0) + coalesce(w.frees, 0) DESC, n.cache, n.at"
	" LIMIT :limit";

static const char counters_sql[] =
	"SELECT c.name AS name, n.name AS counter, n.value AS value,"
	" coalesce((SELECT group_concat(printf(' C%d=%d', cpu, value), '') FROM (SELECT p.cpu, p.value"
	" FROM counter p WHERE p.run = n.run AND p.cache = n.cache AND p.name = n.name"
	" AND p.cpu IS NOT NULL AND p.value != 0 ORDER BY p.cpu)), '') AS per_cpu\n"
	"FROM counter n LEFT JOIN cache c ON c.cache = n.cache WHERE n.run = :run AND n.cpu IS NULL"
	" AND (:cache IS NULL OR n.cache = :cache) ORDER BY c.name, n.rowid LIMIT :limit";

static const char *const views[STAT_VIEW_MAX] = {
	[STAT_ACTIVITY] = activity_sql,
	[STAT_LOSS] = loss_sql,
	[STAT_REPORT] = report_sql,
	[STAT_COUNTERS] = counters_sql,
};

int stat_run_table(struct tape *t, int64_t run, enum stat_view view, int32_t cache, int64_t limit,
		   json_t **ret_rows, struct tape_err *reterr)
{
	const struct analyze_bind binds[] = {
		{ "run", ANALYZE_INT, run, NULL, 0 },
		{ "cache", cache < 0 ? ANALYZE_NULL : ANALYZE_INT, cache, NULL, 0 },
		{ "limit", ANALYZE_INT, limit, NULL, 0 },
		{ .name = NULL },
	};
	json_t *found;
	int rc = analyze_ask(tape_db(t), "SELECT 1 FROM run WHERE run = :run", binds, &found, reterr);
	size_t nr;

	if (rc < 0)
		return rc;
	nr = json_array_size(found);
	json_decref(found);
	if (!nr)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--run %lld: no such run; slabtape info "
				    "lists them", (long long)run);
	return analyze_ask(tape_db(t), views[view], binds, ret_rows, reterr);
}
