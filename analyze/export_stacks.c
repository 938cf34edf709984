/* SPDX-License-Identifier: MIT */
/*
 * Stacks of two or three frames, cache;module;site: what flame graphs and Speedscope show.
 *
 * A tape knows the call site, not the callers above it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/export_internal.h"
#include "base/cleanup.h"
#include "store/tape.h"

/* Objects allocated in the window, and which of them are alive at its end. */
static const char stacks_sql[] =
	"WITH o AS (SELECT cache, alloc_site, objects, bytes,"
	"  CASE WHEN freed = 0 THEN bytes ELSE 0 END AS live FROM object_agg"
	"  WHERE alloc_cpu IS NOT NULL AND alloc_ts >= :begin AND alloc_ts < :end"
	"  AND (:cache IS NULL OR cache = :cache)"
	" UNION ALL SELECT cache, alloc_site, 0, 0, bytes FROM object_agg"
	"  WHERE alloc_cpu IS NOT NULL AND alloc_ts >= :begin AND alloc_ts < :end AND freed = 1"
	"  AND free_ts >= :end AND (:cache IS NULL OR cache = :cache))\n"
	"SELECT coalesce(c.name, 'pages') AS cache, s.module,"
	" coalesce(s.symbol, nullif(printf('0x%x', s.address), '0x0'),"
	"  CASE WHEN s.offset THEN printf('+0x%x', s.offset) END, 'unknown') AS site,"
	" sum(o.objects) AS hit, sum(o.bytes) AS bytes, sum(o.live) AS live_bytes\n"
	"FROM o LEFT JOIN cache c USING(cache) LEFT JOIN site s ON s.site = o.alloc_site\n"
	"GROUP BY 1, 2, 3 ORDER BY 1, 2, 3";

static int load_stacks(struct tape *t, const struct export_config *cfg, json_t **ret_rows,
		       struct tape_err *reterr)
{
	struct analyze_bind binds[EXPORT_BINDS];

	export_binds(cfg, binds);
	return analyze_ask(tape_db(t), stacks_sql, binds, ret_rows, reterr);
}

/* Semicolons and blanks would split a frame. */
static void print_frame(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc(*text == ';' ? ':' : *text == ' ' || *text == '\n' ? '_' : *text, out);
}

static int write_folded(struct tape *t, const struct export_config *cfg, FILE *out,
			struct export_sums *ret_sums, struct tape_err *reterr)
{
	json_t *rows, *row;
	size_t i;
	int rc = load_stacks(t, cfg, &rows, reterr);

	if (rc < 0)
		return rc;
	json_array_foreach(rows, i, row) {
		int64_t weight = analyze_int(row, cfg->weight);

		if (!weight)
			continue;
		print_frame(out, analyze_text(row, "cache"));
		if (*analyze_text(row, "module")) {
			fputc(';', out);
			print_frame(out, analyze_text(row, "module"));
		}
		fputc(';', out);
		print_frame(out, analyze_text(row, "site"));
		fprintf(out, " %" PRId64 "\n", weight);
		ret_sums->records++;
		ret_sums->events += (uint64_t)weight;
	}
	json_decref(rows);
	return 0;
}

static int check_folded(FILE *in, struct export_sums *ret_sums, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) char *line = NULL;
	size_t room = 0;
	ssize_t n;

	(void)reterr;
	while ((n = getline(&line, &room, in)) > 0 && line[n - 1] == '\n') {
		const char *blank = strrchr(line, ' ');

		if (!blank || !memchr(line, ';', (size_t)(blank - line)))
			break;
		ret_sums->records++;
		ret_sums->events += strtoull(blank, NULL, 10);
	}
	return 0;
}

/* The weight of everything, from the events instead of the objects; live: allocated minus freed. */
#define MADE_IN_WINDOW                                                        \
	" FROM event_agg WHERE op IN ('alloc', 'alloc_bulk', 'sheaf_alloc')"     \
	" AND flags & 16 = 0 AND ts >= :begin AND ts < :end"                     \
	" AND (:cache IS NULL OR cache = :cache)"

static int expect_weight(struct tape *t, const struct export_config *cfg, const char *weight,
			 uint64_t *ret_weight, struct tape_err *reterr)
{
	const char *sql = !strcmp(weight, "hit") ?
		"SELECT coalesce(sum(events), 0) AS n" MADE_IN_WINDOW : !strcmp(weight, "bytes") ?
		"SELECT coalesce(sum(bytes), 0) AS n" MADE_IN_WINDOW :
		"SELECT coalesce(sum(size), 0) AS n FROM object WHERE alloc_ts >= :begin AND"
		" alloc_ts < :end AND coalesce(free_ts >= :end, 1) AND (:cache IS NULL OR cache = :cache)";

	return export_count(t, cfg, sql, ret_weight, reterr);
}

static int expect_folded(struct tape *t, const struct export_config *cfg, uint64_t *ret_events,
			 struct tape_err *reterr)
{
	return expect_weight(t, cfg, cfg->weight, ret_events, reterr);
}

/* ---- Speedscope ---- */

static const struct {
	const char *key, *name, *unit;
} profiles[] = {
	{ "hit", "allocations", "none" },
	{ "bytes", "requested bytes", "bytes" },
	{ "live_bytes", "bytes alive at the end", "bytes" },
};
#define PROFILES (sizeof(profiles) / sizeof(profiles[0]))

/* Index of the frame @text, which gets the next number when it is new. */
static json_int_t frame_of(json_t *index, json_t *frames, const char *text)
{
	json_t *at = json_object_get(index, text);

	if (!at) {
		at = json_integer((json_int_t)json_array_size(frames));
		json_object_set_new(index, text, at);
		json_array_append_new(frames, json_pack("{s:s}", "name", text));
	}
	return json_integer_value(at);
}

static json_t *stack_of(json_t *index, json_t *frames, const json_t *row)
{
	json_t *stack = json_array();
	static const char *const keys[] = { "cache", "module", "site" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (*analyze_text(row, keys[i]))
			json_array_append_new(stack, json_integer(frame_of(
				index, frames, analyze_text(row, keys[i]))));
	return stack;
}

static json_t *profile_of(const json_t *rows, const json_t *stacks, size_t which,
			  struct export_sums *sums)
{
	json_t *samples = json_array(), *weights = json_array(), *row;
	json_int_t whole = 0;
	size_t i;

	json_array_foreach(rows, i, row) {
		json_int_t weight = analyze_int(row, profiles[which].key);

		if (!weight)
			continue;
		json_array_append(samples, json_array_get(stacks, i));
		json_array_append_new(weights, json_integer(weight));
		whole += weight;
		sums->records++;
	}
	sums->events += (uint64_t)whole;
	return json_pack("{s:s, s:s, s:s, s:i, s:I, s:o, s:o}", "type", "sampled", "name",
			 profiles[which].name, "unit", profiles[which].unit, "startValue", 0, "endValue",
			 whole, "samples", samples, "weights", weights);
}

static json_t *speedscope(const json_t *rows, const char *name, struct export_sums *sums)
{
	json_t *index = json_object(), *frames = json_array(), *stacks = json_array();
	json_t *list = json_array(), *row;
	size_t i;

	json_array_foreach(rows, i, row)
		json_array_append_new(stacks, stack_of(index, frames, row));
	for (i = 0; i < PROFILES; i++)
		json_array_append_new(list, profile_of(rows, stacks, i, sums));
	json_decref(index);
	json_decref(stacks);
	return json_pack("{s:s, s:s, s:s, s:i, s:{s:o}, s:o}", "$schema",
			 "https://www.speedscope.app/file-format-schema.json", "exporter",
			 "slabtape " SLABTAPE_VERSION, "name", name, "activeProfileIndex", 1, "shared",
			 "frames", frames, "profiles", list);
}

static int write_speedscope(struct tape *t, const struct export_config *cfg, FILE *out,
			    struct export_sums *ret_sums, struct tape_err *reterr)
{
	json_t *rows, *file;
	int rc = load_stacks(t, cfg, &rows, reterr);

	if (rc < 0)
		return rc;
	file = speedscope(rows, *tape_path(t) ? tape_path(t) : "tape", ret_sums);
	json_decref(rows);
	if (!file)
		return -ENOMEM;
	rc = json_dumpf(file, out, JSON_COMPACT);
	fputc('\n', out);
	json_decref(file);
	return rc ? tape_err_set(reterr, -TAPE_E_IO, "speedscope: %s", strerror(errno)) : 0;
}

static int check_speedscope(FILE *in, struct export_sums *ret_sums, struct tape_err *reterr)
{
	json_error_t why;
	json_t *file = json_loadf(in, 0, &why), *profile, *weight;
	size_t i, k, frames = json_array_size(json_object_get(json_object_get(file, "shared"), "frames"));

	if (!file)
		return tape_err_set(reterr, -TAPE_E_IO, "speedscope: read back line %d: %s", why.line,
				    why.text);
	json_array_foreach(json_object_get(file, "profiles"), i, profile) {
		const json_t *samples = json_object_get(profile, "samples");

		json_array_foreach(json_object_get(profile, "weights"), k, weight) {
			const json_t *last = json_array_get(json_array_get(samples, k), 0);

			if (!last || (size_t)json_integer_value(last) >= frames)
				continue;
			ret_sums->records++;
			ret_sums->events += (uint64_t)json_integer_value(weight);
		}
	}
	json_decref(file);
	return 0;
}

static int expect_speedscope(struct tape *t, const struct export_config *cfg, uint64_t *ret_events,
			     struct tape_err *reterr)
{
	uint64_t weight = 0;
	int rc = 0;

	*ret_events = 0;
	for (size_t i = 0; i < PROFILES && rc == 0; i++) {
		rc = expect_weight(t, cfg, profiles[i].key, &weight, reterr);
		*ret_events += weight;
	}
	return rc;
}

const struct export_format export_folded = { .name = "folded", .write = write_folded,
					     .check = check_folded, .expect = expect_folded };
const struct export_format export_speedscope = { .name = "speedscope", .write = write_speedscope,
						 .check = check_speedscope,
						 .expect = expect_speedscope };
