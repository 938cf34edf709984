/* SPDX-License-Identifier: MIT */
/* slabtape query: the canned questions (analyze/queries). */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/queries.h"
#include "base/cleanup.h"
#include "cli/open_source.h"
#include "cli/sql_run.h"
#include "cli/verb.h"

static char **given;
static char *format_name;
static int want_json, want_csv, want_list, want_sql;

static const struct poptOption options[] = {
	{ "param", 'p', POPT_ARG_ARGV, &given, 0, "set a parameter (may be repeated)",
	  "NAME=VALUE" },
	{ "list", 'l', POPT_ARG_NONE, &want_list, 0, "list the queries with their parameters", NULL },
	{ "sql", '\0', POPT_ARG_NONE, &want_sql, 0, "print the SQL of NAME instead of running it",
	  NULL },
	{ "format", '\0', POPT_ARG_STRING, &format_name, 0,
	  "table (default), csv, json or markdown", "FORMAT" },
	{ "json", '\0', POPT_ARG_NONE, &want_json, 0, "same as --format json", NULL },
	{ "csv", '\0', POPT_ARG_NONE, &want_csv, 0, "same as --format csv", NULL },
	POPT_TABLEEND,
};

static void print_line(const struct analyze_query *q, const char *key, const char *indent)
{
	struct analyze_line line;

	if (analyze_query_line(q, key, &line))
		printf("%s%.*s\n", indent, (int)line.bytes, line.text);
}

static int list_queries(void)
{
	struct analyze_param p;

	for (const struct analyze_query *q = analyze_queries; q->name; q++) {
		printf("%s\n", q->name);
		print_line(q, "question", "    ");
		for (unsigned int i = 0; analyze_query_param(q, i, &p); i++)
			printf("    --param %s%s%s  %.*s\n", p.name, p.has_value ? "=" : "", p.value,
			       (int)p.meaning.bytes, p.meaning.text);
	}
	return 0;
}

/* The value given for @name; NULL: none. */
static const char *given_value(const char *name)
{
	size_t n = strlen(name);

	for (char **spec = given; spec && *spec; spec++)
		if (!strncmp(*spec, name, n) && (*spec)[n] == '=')
			return *spec + n + 1;
	return NULL;
}

/* Every --param names a parameter of @q. */
static int check_given(const struct analyze_query *q)
{
	for (char **spec = given; spec && *spec; spec++) {
		size_t n = strcspn(*spec, "=");
		struct analyze_param p;
		bool known = false;

		if (!(*spec)[n])
			return cli_usage("query", "--param wants NAME=VALUE, not '%s'", *spec);
		for (unsigned int i = 0; !known && analyze_query_param(q, i, &p); i++)
			known = strlen(p.name) == n && !strncmp(p.name, *spec, n);
		if (!known)
			return cli_usage("query", "%s has no parameter '%.*s'; --list shows them",
					 q->name, (int)n, *spec);
	}
	return 0;
}

static int bind_value(sqlite3_stmt *s, int at, const char *value)
{
	char *end;
	long long number;

	errno = 0;
	number = strtoll(value, &end, 10);
	if (*value && !*end && !errno)
		return sqlite3_bind_int64(s, at, number);
	return sqlite3_bind_text(s, at, value, -1, SQLITE_TRANSIENT);
}

static void bind_all(const struct analyze_query *q, sqlite3_stmt *s)
{
	struct analyze_param p;

	for (unsigned int i = 0; analyze_query_param(q, i, &p); i++) {
		const char *value = given_value(p.name);
		char name[40];
		int at;

		snprintf(name, sizeof(name), ":%s", p.name);
		at = sqlite3_bind_parameter_index(s, name);
		if (!value && p.has_value)
			value = p.value;
		if (at && value)
			bind_value(s, at, value);
	}
}

/* Exit code 3 and the reason when the header's refuse line gives a row. */
static int check_refusal(const struct sql_session *session, const struct analyze_query *q)
{
	struct analyze_line line;
	sqlite3_stmt *s;
	int rc = 0;

	if (!analyze_query_line(q, "refuse", &line))
		return 0;
	if (sqlite3_prepare_v2(session->db, line.text, (int)line.bytes, &s, NULL) != SQLITE_OK)
		return sql_failed(session, NULL);
	if (sqlite3_step(s) == SQLITE_ROW) {
		fprintf(stderr, "slabtape: query: %s: %s\n", q->name,
			(const char *)sqlite3_column_text(s, 0));
		rc = 3;
	}
	sqlite3_finalize(s);
	return rc;
}

/* The number in the first column of @sql's only row, with @run and @kind as ?1 and ?2. */
static int64_t ask_number(sqlite3 *db, const char *sql, const char *run, const char *kind)
{
	int64_t value = 0;
	sqlite3_stmt *s;

	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
		return -1;
	if (run)
		bind_value(s, 1, run);
	if (kind)
		sqlite3_bind_text(s, 2, kind, -1, SQLITE_STATIC);
	if (sqlite3_step(s) == SQLITE_ROW)
		value = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return value;
}

/* Runs that are named must be there. */
static int check_runs(const struct sql_session *session)
{
	static const char *const names[] = { "run", "a", "b" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *run = given_value(names[i]);

		if (run && !ask_number(session->db, "SELECT count(*) FROM run WHERE run = ?1", run, NULL))
			return cli_usage("query", "no run %s in the tape; it has %lld (SELECT run, variant"
					 " FROM run)", run,
					 (long long)ask_number(session->db, "SELECT count(*) FROM run",
							       NULL, NULL));
	}
	return 0;
}

/* An empty answer for want of recorded rows is said to be one. */
static void note_needs(const struct sql_session *session, const struct analyze_query *q)
{
	static const char rows[] = "SELECT EXISTS(SELECT 1 FROM run_chunk WHERE kind = ?2 AND (?1 IS NULL OR"
				   " run = ?1)) OR EXISTS(SELECT 1 FROM sample WHERE ?2 = 'sample' AND"
				   " (?1 IS NULL OR run = ?1)) OR EXISTS(SELECT 1 FROM lock WHERE"
				   " ?2 = 'lock' AND (?1 IS NULL OR run = ?1))";
	struct analyze_line line;
	char kind[32];

	if (!analyze_query_line(q, "needs", &line) || line.bytes >= sizeof(kind))
		return;
	memcpy(kind, line.text, line.bytes);
	kind[line.bytes] = '\0';
	if (!ask_number(session->db, rows, given_value("run"), kind))
		fprintf(stderr, "slabtape: query: %s: no run recorded %ss; `slabtape replay TAPE "
			"--record %ss` does\n", q->name, kind, kind);
}

static int run_query(const struct sql_session *session, const struct analyze_query *q)
{
	sqlite3_stmt *s;
	int rc = check_runs(session);

	if (!rc)
		rc = check_refusal(session, q);
	if (rc)
		return rc;
	note_needs(session, q);
	if (sqlite3_prepare_v2(session->db, q->sql, -1, &s, NULL) != SQLITE_OK)
		return sql_failed(session, q->sql);
	bind_all(q, s);
	rc = sql_print(session, s);
	sqlite3_finalize(s);
	return rc;
}

static int run(const char *path, const struct analyze_query *q)
{
	int format = format_name ? output_parse(format_name) : want_json ? OUTPUT_JSON :
		     want_csv ? OUTPUT_CSV : OUTPUT_TABLE;
	TAPE_CLEANUP(tape_closep_tape) struct tape *t = NULL;
	struct sql_session session = { .verb = "query", .out = stdout };
	struct tape_err err = { 0 };
	int rc;

	if (format < 0)
		return cli_usage("query", "--format %s: table, csv, json or markdown", format_name);
	rc = check_given(q);
	if (rc)
		return rc;
	rc = cli_open_source(path, TAPE_READ, &t, &err);
	if (rc < 0)
		return cli_fail("query", rc, &err);
	session.db = tape_db(t);
	session.format = (enum output_format)format;
	return run_query(&session, q);
}

static int choose(poptContext con)
{
	const char *path = poptGetArg(con), *name = path ? poptGetArg(con) : NULL;
	const struct analyze_query *q;

	if (want_list)
		return list_queries();
	if (want_sql && !name)
		name = path;
	if (!name)
		return cli_usage("query", "slabtape query TAPE NAME; --list shows the names");
	q = analyze_query_find(name);
	if (!q)
		return cli_usage("query", "no query '%s'; --list shows the names", name);
	if (poptPeekArg(con))
		return cli_usage("query", "'%s' is left over", poptPeekArg(con));
	if (want_sql) {
		fputs(q->sql, stdout);
		return 0;
	}
	return run(path, q);
}

static int run_verb(int argc, const char **argv);

extern const struct cli_verb cli_verb_query;
const struct cli_verb cli_verb_query = { "query", "TAPE NAME [--param NAME=VALUE]",
					 "canned questions about a tape", run_verb, options };

static int run_verb(int argc, const char **argv)
{
	int rc;
	poptContext con = cli_parse(&cli_verb_query, argc, argv, &rc);

	if (!con)
		return rc;
	rc = choose(con);
	poptFreeContext(con);
	return rc;
}
