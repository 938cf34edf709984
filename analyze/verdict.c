/* SPDX-License-Identifier: MIT */
#include "analyze/verdict.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/ask.h"
#include "analyze/queries.h"
#include "base/cleanup.h"
#include "store/tape.h"

enum { PARAMS_MAX = 12 };

/* What decides whether an answer may be given at all. */
struct basis {
	struct tape_totals totals;
	bool loss_unknown; /* a loss whose number of events nobody knows */
	json_t *coverage;  /* cache name -> coverage */
	json_t *measured;  /* run -> true for counters of a kernel */
};

static void basis_fini(struct basis *b)
{
	json_decref(b->coverage);
	json_decref(b->measured);
}

static int basis_load(struct tape *t, struct basis *b, struct tape_err *reterr)
{
	json_t *rows = NULL, *row;
	size_t i;
	int rc = tape_totals_get(t, &b->totals, reterr);

	b->coverage = json_object();
	b->measured = json_object();
	if (rc == 0)
		rc = analyze_ask(tape_db(t), "SELECT name, coverage FROM cache", NULL, &rows, reterr);
	if (rc < 0)
		return rc;
	json_array_foreach(rows, i, row)
		json_object_set(b->coverage, analyze_text(row, "name"),
				json_object_get(row, "coverage"));
	json_decref(rows);
	rc = analyze_ask(tape_db(t), "SELECT CAST(run AS TEXT) AS run FROM run WHERE variant ="
			 " 'recorded' OR variant LIKE 'kernel:%'", NULL, &rows, reterr);
	if (rc < 0)
		return rc;
	json_array_foreach(rows, i, row)
		json_object_set_new(b->measured, analyze_text(row, "run"), json_true());
	json_decref(rows);
	rc = analyze_ask(tape_db(t), "SELECT 1 FROM loss WHERE events = 0 LIMIT 1", NULL, &rows, reterr);
	if (rc < 0)
		return rc;
	b->loss_unknown = json_array_size(rows) > 0;
	json_decref(rows);
	return 0;
}

/* ---- a verdict's file ---- */

static char *line_text(const struct analyze_query *q, const char *key)
{
	struct analyze_line line;

	return analyze_query_line(q, key, &line) ? strndup(line.text, line.bytes) : strdup("");
}

/* The statement without the comment lines before it. */
static const char *statement(const struct analyze_query *q)
{
	const char *at = q->sql;

	while (!strncmp(at, "--", 2)) {
		at += strcspn(at, "\n");
		at += *at == '\n';
	}
	return at;
}

struct verdict_binds {
	struct analyze_param params[PARAMS_MAX];
	struct analyze_bind binds[PARAMS_MAX + 3];
};

/* Thresholds are numbers: they are compared as such. */
static void fill_binds(const struct analyze_query *q, int64_t run, const char *cache,
		       struct verdict_binds *v)
{
	unsigned int n = 0;

	while (n < PARAMS_MAX && analyze_query_param(q, n, &v->params[n])) {
		v->binds[n] = (struct analyze_bind){ .name = v->params[n].name, .kind = ANALYZE_REAL,
						     .real = strtod(v->params[n].value, NULL) };
		n++;
	}
	v->binds[n++] = (struct analyze_bind){ .name = "run", .number = run,
		.kind = run < 0 ? ANALYZE_NULL : ANALYZE_INT };
	v->binds[n++] = (struct analyze_bind){ .name = "cache", .text = cache,
		.kind = cache ? ANALYZE_TEXT : ANALYZE_NULL };
	v->binds[n] = (struct analyze_bind){ .name = NULL };
}

/* ---- the sentence ---- */

static void print_bytes(FILE *out, double bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	size_t unit = 0;

	while (fabs(bytes) >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		bytes /= 1024;
		unit++;
	}
	fprintf(out, unit && fabs(bytes) < 10 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

/* One {field}: a column's name, then nothing, "%" or ":b". */
static void print_field(FILE *out, const char *field, size_t bytes, const json_t *row)
{
	char key[40];
	size_t name = strcspn(field, "%:}");
	const json_t *value;

	if (name >= sizeof(key))
		name = sizeof(key) - 1;
	memcpy(key, field, name);
	key[name] = 0;
	value = json_object_get(row, key);
	if (json_is_string(value))
		fputs(json_string_value(value), out);
	else if (!json_is_number(value))
		fputs("an unknown number of", out);
	else if (name < bytes && field[name] == '%')
		fprintf(out, "%.*f %%", json_number_value(value) < 0.1, 100 * json_number_value(value));
	else if (name < bytes && field[name] == ':')
		print_bytes(out, json_number_value(value));
	else
		fprintf(out, "%.15g", json_number_value(value));
}

static char *sentence(const char *text, const json_t *row)
{
	char *made = NULL;
	size_t bytes;
	FILE *out = open_memstream(&made, &bytes);

	if (!out)
		return NULL;
	while (*text) {
		size_t plain = strcspn(text, "{"), field;

		fwrite(text, 1, plain, out);
		text += plain;
		if (!*text)
			break;
		field = strcspn(text, "}");
		print_field(out, text + 1, field - 1, row);
		text += field + (text[field] == '}');
	}
	return fclose(out) ? NULL : made;
}

/* ---- judging ---- */

/* Is @row about counters that a kernel kept itself? */
static bool of_kernel(const struct basis *b, const json_t *row)
{
	char run[24];

	snprintf(run, sizeof(run), "%lld", (long long)analyze_int(row, "run"));
	return json_is_true(json_object_get(b->measured, run));
}

/* Why no verdict may be given about @row; "" when it may. */
static void reason_not(const struct basis *b, const struct analyze_query *q, const json_t *row,
		       char *ret_reason, size_t room)
{
	TAPE_CLEANUP(tape_freep) char *bears = line_text(q, "loss");
	double coverage = analyze_real(b->coverage, analyze_text(row, "cache"));
	double lost = (double)b->totals.lost, all = lost + (double)b->totals.events;
	bool kernels = of_kernel(b, row);
	struct analyze_line line;

	*ret_reason = 0;
	if (!kernels && b->loss_unknown)
		snprintf(ret_reason, room, "an unknown number of events was lost");
	else if (!kernels && lost > 0 && lost > (bears ? strtod(bears, NULL) : 0) * all)
		snprintf(ret_reason, room, "%.0f of %.0f events were lost", lost, all);
	else if (coverage < VERDICT_COVERAGE_MIN &&
		 (!kernels || analyze_query_line(q, "coverage", &line)))
		snprintf(ret_reason, room, "coverage %.3f: too many of its events were not traced",
			 coverage);
}

static bool is_note(const struct analyze_query *q, const char *kind)
{
	TAPE_CLEANUP(tape_freep) char *note = line_text(q, "note");

	return note && !strcmp(note, kind);
}

static json_t *who(const json_t *row)
{
	static const char *const keys[] = { "run", "variant", "cache" };
	json_t *j = json_object();

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		json_t *value = json_object_get(row, keys[i]);

		if (value)
			json_object_set(j, keys[i], value);
	}
	return j;
}

static json_t *evidence_of(const json_t *row)
{
	json_t *j = json_copy((json_t *)(uintptr_t)row);

	json_object_del(j, "run");
	json_object_del(j, "variant");
	json_object_del(j, "cache");
	json_object_del(j, "finding");
	return j;
}

static int add_finding(struct tape *t, const struct analyze_query *q, const json_t *row,
		       json_t *findings)
{
	const char *kind = analyze_text(row, "finding"), *cache = analyze_text(row, "cache");
	bool of_run = json_is_integer(json_object_get(row, "run"));
	TAPE_CLEANUP(tape_freep) char *text = NULL, *made = NULL, *sql = NULL;
	struct verdict_binds v;
	char key[48];
	json_t *j;

	snprintf(key, sizeof(key), "text %s", kind);
	text = line_text(q, key);
	made = text ? sentence(text, row) : NULL;
	fill_binds(q, of_run ? analyze_int(row, "run") : -1, cache, &v);
	sql = analyze_expand(tape_db(t), statement(q), v.binds);
	if (!made || !sql)
		return -ENOMEM;
	j = json_pack("{s:s, s:b}", "finding", kind, "note", is_note(q, kind));
	json_object_update_new(j, who(row));
	json_object_set_new(j, "text", json_string(made));
	json_object_set_new(j, "evidence", evidence_of(row));
	json_object_set_new(j, "sql", json_string(sql));
	return json_array_append_new(findings, j) ? -ENOMEM : 0;
}

static int judge(struct tape *t, const struct basis *b, const struct analyze_query *q,
		 const json_t *rows, json_t *verdict)
{
	json_t *findings = json_object_get(verdict, "findings");
	json_t *refused = json_object_get(verdict, "refused");
	size_t i, nr = json_array_size(rows);
	const char *state = "none";
	int rc = 0;

	for (i = 0; i < nr && rc == 0; i++) {
		const json_t *row = json_array_get(rows, i);
		char reason[128];

		reason_not(b, q, row, reason, sizeof(reason));
		if (*reason) {
			json_t *j = who(row);

			json_object_set_new(j, "reason", json_string(reason));
			json_array_append_new(refused, j);
		} else if (*analyze_text(row, "finding")) {
			rc = add_finding(t, q, row, findings);
		}
	}
	if (json_array_size(findings))
		state = "finding";
	else if (!nr)
		state = "no data";
	else if (json_array_size(refused) == nr)
		state = "refused";
	json_object_set_new(verdict, "judged", json_integer((json_int_t)nr));
	json_object_set_new(verdict, "state", json_string(state));
	return rc;
}

static int ask_one(struct tape *t, const struct basis *b, const struct analyze_query *q,
		   const struct verdict_config *cfg, json_t *verdicts, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) char *question = line_text(q, "question");
	TAPE_CLEANUP(tape_freep) char *data = line_text(q, "data");
	struct verdict_binds v;
	json_t *rows, *verdict;
	int rc;

	fill_binds(q, cfg->run, cfg->cache, &v);
	rc = analyze_ask(tape_db(t), statement(q), v.binds, &rows, reterr);
	if (rc < 0)
		return rc;
	verdict = json_pack("{s:s, s:s, s:s, s:[], s:[]}", "verdict", q->name, "question",
			    question ? question : "", "data", data ? data : "", "findings", "refused");
	rc = verdict ? judge(t, b, q, rows, verdict) : -ENOMEM;
	json_array_append_new(verdicts, verdict);
	json_decref(rows);
	return rc;
}

/* A verdict about events has nothing to say when one run is asked for. */
static bool wanted(const struct analyze_query *q, const struct verdict_config *cfg)
{
	bool of_run = strstr(q->sql, ":run") != NULL;

	return (!cfg->name || !strcmp(cfg->name, q->name)) && (cfg->run < 0 || of_run);
}

int verdict_ask(struct tape *t, const struct verdict_config *cfg, json_t **ret_verdicts,
		struct tape_err *reterr)
{
	struct basis b = { .coverage = NULL };
	json_t *verdicts = json_array();
	int rc = basis_load(t, &b, reterr);

	for (const struct analyze_query *q = analyze_verdicts; q->name && rc == 0; q++)
		if (wanted(q, cfg))
			rc = ask_one(t, &b, q, cfg, verdicts, reterr);
	basis_fini(&b);
	if (rc == 0 && cfg->name && !json_array_size(verdicts))
		rc = tape_err_set(reterr, -TAPE_E_USAGE, "no verdict '%s'", cfg->name);
	if (rc < 0) {
		json_decref(verdicts);
		return rc;
	}
	*ret_verdicts = verdicts;
	return 0;
}

/* ---- --fail-if ---- */

/* Is @name one of the texts between the commas of @list? */
static bool listed(const char *list, const char *name)
{
	size_t n = strlen(name);

	while (*list) {
		size_t word = strcspn(list, ",");

		if (word == n && !strncmp(list, name, n))
			return true;
		list += word + (list[word] == ',');
	}
	return false;
}

bool verdict_found(const json_t *verdicts, const char *kinds)
{
	const json_t *v, *f;
	size_t i, k;

	json_array_foreach(verdicts, i, v) {
		json_array_foreach(json_object_get(v, "findings"), k, f) {
			if (listed(kinds, "any") && !json_is_true(json_object_get(f, "note")))
				return true;
			if (listed(kinds, analyze_text(f, "finding")) ||
			    listed(kinds, analyze_text(v, "verdict")))
				return true;
		}
	}
	return false;
}

bool verdict_known(const char *name, size_t bytes)
{
	char key[48];
	struct analyze_line line;

	if (bytes == 3 && !strncmp(name, "any", 3))
		return true;
	if (!bytes || bytes > 32)
		return false;
	snprintf(key, sizeof(key), "text %.*s", (int)bytes, name);
	for (const struct analyze_query *q = analyze_verdicts; q->name; q++)
		if ((strlen(q->name) == bytes && !strncmp(q->name, name, bytes)) ||
		    analyze_query_line(q, key, &line))
			return true;
	return false;
}
