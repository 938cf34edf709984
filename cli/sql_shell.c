/* SPDX-License-Identifier: MIT */
#include "cli/sql_shell.h"

#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifdef SLABTAPE_EDIT
#include <editline/readline.h>
#endif

#define HISTORY_LINES 1000

static sqlite3 *shell_db; /* for completion and ^C: both are called without an argument */

/* ---- completion: names of tables, columns, functions, and SQL's own words ---- */

#ifdef SLABTAPE_EDIT
/* ?1: what was typed so far. */
static const char words_sql[] =
	"WITH t(name) AS (SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"
	" AND name NOT LIKE 'sqlite_%' UNION SELECT 'event_agg' UNION SELECT 'object_agg'),"
	" word(w) AS (SELECT name FROM t UNION SELECT c.name FROM t, pragma_table_xinfo(t.name) c"
	" UNION VALUES ('SELECT'), ('FROM'), ('WHERE'), ('GROUP BY'), ('ORDER BY'), ('HAVING'),"
	" ('LIMIT'), ('JOIN'), ('LEFT JOIN'), ('USING'), ('WITH'), ('UNION'), ('DISTINCT'),"
	" ('count('), ('sum('), ('min('), ('max('), ('avg('), ('total('), ('gfp_text('),"
	" ('flags_text('), ('ATTACH'), ('EXPLAIN QUERY PLAN'), ('CASE'), ('BETWEEN'))"
	" SELECT w FROM word WHERE substr(w, 1, length(?1)) = ?1 COLLATE NOCASE ORDER BY w";

static char *next_word(const char *text, int again)
{
	static sqlite3_stmt *list;
	char *word = NULL;

	if (!again) {
		sqlite3_finalize(list);
		list = NULL;
		if (sqlite3_prepare_v2(shell_db, words_sql, -1, &list, NULL) != SQLITE_OK)
			return NULL;
		sqlite3_bind_text(list, 1, text, -1, SQLITE_TRANSIENT);
	}
	if (list && sqlite3_step(list) == SQLITE_ROW)
		word = strdup((const char *)sqlite3_column_text(list, 0));
	if (!word) {
		sqlite3_finalize(list);
		list = NULL;
	}
	return word;
}

static char **complete(const char *text, int start, int end)
{
	(void)start;
	(void)end;
	rl_attempted_completion_over = 1; /* never file names */
	return rl_completion_matches(text, next_word);
}

static char *read_line(const char *prompt)
{
	char *line;

	if (!isatty(STDIN_FILENO)) {
		size_t room = 0;

		line = NULL;
		if (getline(&line, &room, stdin) < 0) {
			free(line);
			return NULL;
		}
		line[strcspn(line, "\n")] = 0;
		return line;
	}
	line = readline(prompt);
	if (line && *line)
		add_history(line);
	return line;
}

static char *history_file(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *name = NULL;

	if (!isatty(STDIN_FILENO) || (!state && !home))
		return NULL;
	if (state)
		return asprintf(&name, "%s/slabtape_history", state) < 0 ? NULL : name;
	return asprintf(&name, "%s/.slabtape_history", home) < 0 ? NULL : name;
}

static void editing_begin(const char *history)
{
	rl_readline_name = "slabtape";
	using_history();
	stifle_history(HISTORY_LINES);
	if (history)
		read_history(history);
	rl_attempted_completion_function = complete;
}

static void editing_end(const char *history)
{
	if (history)
		write_history(history);
}
#else
static char *read_line(const char *prompt)
{
	char *line = NULL;
	size_t room = 0;

	if (isatty(STDIN_FILENO)) {
		fputs(prompt, stdout);
		fflush(stdout);
	}
	if (getline(&line, &room, stdin) < 0) {
		free(line);
		return NULL;
	}
	line[strcspn(line, "\n")] = 0;
	return line;
}

static char *history_file(void)
{
	return NULL;
}

static void editing_begin(const char *history)
{
	(void)history;
}

static void editing_end(const char *history)
{
	(void)history;
}
#endif

/* ---- dot commands ---- */

static void command_help(void)
{
	puts(".tables           tables, views and functions of the tape\n"
	     ".schema [NAME]    columns and statements that made them\n"
	     ".format NAME      table, csv, json or markdown\n"
	     ".read FILE        run a file of SQL\n"
	     ".quit             leave (also ^D)\n"
	     "Anything else is SQL and ends with a semicolon.");
}

static void command_schema(struct sql_session *s, const char *name)
{
	sqlite3_stmt *statement;

	if (sqlite3_prepare_v2(s->db,
			       "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND"
			       " (?1 IS NULL OR tbl_name = ?1)", -1, &statement, NULL) != SQLITE_OK) {
		sql_failed(s, NULL);
		return;
	}
	if (name)
		sqlite3_bind_text(statement, 1, name, -1, SQLITE_TRANSIENT);
	while (sqlite3_step(statement) == SQLITE_ROW)
		printf("%s;\n", (const char *)sqlite3_column_text(statement, 0));
	sqlite3_finalize(statement);
	if (!name)
		return;
	if (sqlite3_prepare_v2(s->db, "SELECT name, type FROM pragma_table_xinfo(?1)", -1,
			       &statement, NULL) == SQLITE_OK) {
		sqlite3_bind_text(statement, 1, name, -1, SQLITE_TRANSIENT);
		sql_print(s, statement);
	}
	sqlite3_finalize(statement);
}

static void command_read(struct sql_session *s, const char *path)
{
	TAPE_CLEANUP(tape_freep) char *text = path ? sql_read_file(path) : NULL;

	if (!path)
		fputs("slabtape: sql: .read needs a file\n", stderr);
	else if (!text)
		fprintf(stderr, "slabtape: sql: %s: %s\n", path, strerror(errno));
	else
		sql_run(s, text);
}

/* False when the shell shall end. */
static bool run_command(struct sql_session *s, char *line)
{
	char *save, *name = strtok_r(line, " \t", &save), *arg = strtok_r(NULL, " \t", &save);
	int format = arg ? output_parse(arg) : -1;

	if (!strcmp(name, ".quit") || !strcmp(name, ".exit"))
		return false;
	if (!strcmp(name, ".tables"))
		sql_run(s, "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND"
			   " name NOT LIKE 'sqlite_%' UNION ALL SELECT name FROM pragma_module_list"
			   " WHERE name IN ('event_agg', 'object_agg') ORDER BY 1");
	else if (!strcmp(name, ".schema"))
		command_schema(s, arg);
	else if (!strcmp(name, ".read"))
		command_read(s, arg);
	else if (!strcmp(name, ".format") && format >= 0)
		s->format = (enum output_format)format;
	else if (!strcmp(name, ".format"))
		fputs("slabtape: sql: .format takes table, csv, json or markdown\n", stderr);
	else if (!strcmp(name, ".help"))
		command_help();
	else
		fprintf(stderr, "slabtape: sql: no command %s; .help lists them\n", name);
	return true;
}

/* ---- the loop ---- */

static void interrupt(int signal_nr)
{
	(void)signal_nr;
	sqlite3_interrupt(shell_db); /* async-signal-safe by its documentation */
}

/* Append @line to *pending; true when that is a whole statement. */
static bool collect(char **pending, const char *line)
{
	char *joined = NULL;

	if (asprintf(&joined, "%s%s%s", *pending ? *pending : "", *pending ? "\n" : "", line) < 0)
		return false;
	free(*pending);
	*pending = joined;
	return sqlite3_complete(joined);
}

static void run_lines(struct sql_session *s)
{
	TAPE_CLEANUP(tape_freep) char *pending = NULL;

	for (;;) {
		TAPE_CLEANUP(tape_freep) char *line = read_line(pending ? "     ...> " : "slabtape> ");

		if (!line)
			break;
		if (!pending && line[strspn(line, " \t")] == 0)
			continue;
		if (!pending && *line == '.') {
			if (!run_command(s, line))
				return;
			continue;
		}
		if (collect(&pending, line)) {
			sql_run(s, pending);
			free(pending);
			pending = NULL;
		}
	}
	if (pending)
		sql_run(s, pending);
}

int sql_shell(struct sql_session *s)
{
	TAPE_CLEANUP(tape_freep) char *history = history_file();
	struct sigaction action = { .sa_handler = interrupt }, before;

	shell_db = s->db;
	sigaction(SIGINT, &action, &before);
	editing_begin(history);
	if (isatty(STDIN_FILENO))
		puts("slabtape " SLABTAPE_VERSION " on SQLite " SQLITE_VERSION
		     "; .help lists commands, ^D leaves");
	run_lines(s);
	editing_end(history);
	sigaction(SIGINT, &before, NULL);
	return 0;
}
