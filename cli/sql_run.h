/* SPDX-License-Identifier: MIT */
/*
 * Running SQL text against a tape and printing the rows: shared by `sql` and `query`.
 */
#ifndef SLABTAPE_CLI_SQL_RUN_H
#define SLABTAPE_CLI_SQL_RUN_H

#include <stdio.h>

#include "cli/output.h"

struct sqlite3;
struct sqlite3_stmt;

struct sql_session {
	const char *verb; /* for messages */
	struct sqlite3 *db;
	enum output_format format;
	FILE *out;
	const char *source; /* file of the text, for messages; NULL: the command line */
};

/*
 * Run every statement of @sql in order, print the rows of those that return some.  Messages go to
 * stderr; returns the exit code (2 wrong SQL, 3 the tape, 7 output or disk) of the first failure,
 * after which nothing more is run.
 */
int sql_run(const struct sql_session *s, const char *sql);

/* Step @statement to its end and print its rows.  Exit code as above. */
int sql_print(const struct sql_session *s, struct sqlite3_stmt *statement);

/* Print the session's last SQLite error; returns the exit code it stands for. */
int sql_failed(const struct sql_session *s, const char *sql);

/* The whole of @path ("-": stdin) as text, malloc'ed; NULL with errno set. */
char *sql_read_file(const char *path);

#endif
