/* SPDX-License-Identifier: MIT */
/* slabtape sql: SQL over a tape, once, from a file, or interactively. */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/open_source.h"
#include "cli/output.h"
#include "cli/sql_reference.h"
#include "cli/sql_run.h"
#include "cli/sql_shell.h"
#include "cli/verb.h"
#include "store/tape.h"

struct sql_options {
	char *file, *format;
	char **attach;
	int json, csv, write, reference;
};

static struct sql_options opt;

static const struct poptOption options[] = {
	{ "file", 'f', POPT_ARG_STRING, &opt.file, 0, "run the SQL in FILE (- for stdin)", "FILE" },
	{ "attach", 'a', POPT_ARG_ARGV, &opt.attach, 0,
	  "attach another tape under NAME (may be repeated)", "NAME=TAPE" },
	{ "format", 0, POPT_ARG_STRING, &opt.format, 0, "table (default), csv, json or markdown",
	  "FORMAT" },
	{ "json", 0, POPT_ARG_NONE, &opt.json, 0, "same as --format json", NULL },
	{ "csv", 0, POPT_ARG_NONE, &opt.csv, 0, "same as --format csv", NULL },
	{ "write", 0, POPT_ARG_NONE, &opt.write, 0, "allow changes to the tape", NULL },
	{ "reference", 0, POPT_ARG_NONE, &opt.reference, 0,
	  "describe the tables and their columns, and end", NULL },
	POPT_TABLEEND,
};

/* Check that it is a tape of ours before SQLite touches it, then attach it. */
static int attach_tape(struct sqlite3 *db, char *spec)
{
	char *path = strchr(spec, '=');
	struct tape_err err = { 0 };
	struct tape *other;
	char *sql;
	int rc;

	if (!path || path == spec || !path[1])
		return cli_usage("sql", "--attach wants NAME=TAPE, not '%s'", spec);
	*path++ = 0;
	rc = tape_open(path, TAPE_READ, &other, &err);
	if (rc < 0)
		return cli_fail("sql", rc, &err);
	tape_close(other);
	sql = sqlite3_mprintf("ATTACH %Q AS \"%w\"", path, spec);
	rc = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
	sqlite3_free(sql);
	if (rc == SQLITE_OK)
		return 0;
	return cli_usage("sql", "--attach %s=%s: %s", spec, path, sqlite3_errmsg(db));
}

static int run_session(struct tape *t, const char *query, enum output_format format)
{
	struct sql_session s = { .verb = "sql", .db = tape_db(t), .format = format, .out = stdout };
	TAPE_CLEANUP(tape_freep) char *text = NULL;
	int rc = 0;

	for (char **spec = opt.attach; rc == 0 && spec && *spec; spec++)
		rc = attach_tape(s.db, *spec);
	if (rc)
		return rc;
	if (query)
		return sql_run(&s, query);
	if (!opt.file)
		return sql_shell(&s);
	text = sql_read_file(opt.file);
	if (!text) {
		fprintf(stderr, "slabtape: sql: reading %s: %s\n", opt.file, strerror(errno));
		return 2;
	}
	s.source = opt.file;
	return sql_run(&s, text);
}

static int run(poptContext con)
{
	const char *path = poptGetArg(con), *query = path ? poptGetArg(con) : NULL;
	int format = opt.format ? output_parse(opt.format) : opt.json ? OUTPUT_JSON :
		     opt.csv ? OUTPUT_CSV : OUTPUT_TABLE;
	TAPE_CLEANUP(tape_closep_tape) struct tape *t = NULL;
	struct tape_err err = { 0 };
	int rc;

	if (opt.reference)
		return sql_reference();
	if (!path)
		return cli_usage("sql", "which tape?  slabtape sql TAPE [QUERY]");
	if (poptPeekArg(con))
		return cli_usage("sql", "one query only; '%s' is left over (quote the SQL)",
				 poptGetArg(con));
	if (query && opt.file)
		return cli_usage("sql", "either a query or --file, not both");
	if (format < 0)
		return cli_usage("sql", "--format %s: table, csv, json or markdown", opt.format);
	rc = cli_open_source(path, opt.write ? TAPE_READ_WRITE : TAPE_READ, &t, &err);
	if (rc < 0)
		return cli_fail("sql", rc, &err);
	return run_session(t, query, (enum output_format)format);
}

static int run_sql(int argc, const char **argv);

extern const struct cli_verb cli_verb_sql;
const struct cli_verb cli_verb_sql = { "sql", "TAPE [QUERY]", "SQL over a tape", run_sql, options };

static int run_sql(int argc, const char **argv)
{
	int rc;
	poptContext con = cli_parse(&cli_verb_sql, argc, argv, &rc);

	if (!con)
		return rc;
	rc = run(con);
	poptFreeContext(con);
	return rc;
}
