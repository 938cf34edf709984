/* SPDX-License-Identifier: MIT */
#include "cli/sql_run.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

#define SQL_FILE_MAX (16u << 20) /* bytes of one file of SQL */

/* Our own virtual tables' complaints are about the tape, everything else SQLite says is not. */
static int exit_code(struct sqlite3 *db)
{
	switch (sqlite3_errcode(db)) {
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return 3;
	case SQLITE_IOERR:
	case SQLITE_FULL:
	case SQLITE_CANTOPEN:
	case SQLITE_BUSY:
	case SQLITE_NOMEM:
		return 7;
	default:
		return !strncmp(sqlite3_errmsg(db), "slabtape: tape", 14) ? 3 : 2;
	}
}

static const char *hint(struct sqlite3 *db)
{
	if (sqlite3_errcode(db) == SQLITE_READONLY)
		return "; tapes are opened for reading, --write allows changes";
	if (strstr(sqlite3_errmsg(db), "no such table"))
		return "; .tables lists the tables";
	return "";
}

/* The line of @sql that holds byte @at, with a mark under it. */
static void print_place(const char *sql, int at)
{
	int begin = at, column = 0;

	while (begin > 0 && sql[begin - 1] != '\n')
		begin--;
	fprintf(stderr, "  %.*s\n  ", (int)strcspn(sql + begin, "\n"), sql + begin);
	for (int i = begin; i < at; i++)
		column += ((unsigned char)sql[i] & 0xc0) != 0x80;
	fprintf(stderr, "%*s^\n", column, "");
}

int sql_failed(const struct sql_session *s, const char *sql)
{
	const char *text = sqlite3_errmsg(s->db);
	int code = exit_code(s->db), at = sqlite3_error_offset(s->db);

	if (!strncmp(text, "slabtape: ", 10))
		text += 10;
	fprintf(stderr, "slabtape: %s: %s%s%s%s\n", s->verb, s->source ? s->source : "",
		s->source ? ": " : "", text, hint(s->db));
	if (sql && at >= 0)
		print_place(sql, at);
	return code;
}

static void print_cell(struct output *o, sqlite3_stmt *statement, int i)
{
	switch (sqlite3_column_type(statement, i)) {
	case SQLITE_INTEGER:
		output_int(o, sqlite3_column_int64(statement, i));
		break;
	case SQLITE_FLOAT:
		output_real(o, sqlite3_column_double(statement, i));
		break;
	case SQLITE_TEXT:
		output_text(o, (const char *)sqlite3_column_text(statement, i),
			    (size_t)sqlite3_column_bytes(statement, i));
		break;
	case SQLITE_BLOB:
		output_blob(o, sqlite3_column_blob(statement, i),
			    (size_t)sqlite3_column_bytes(statement, i));
		break;
	default:
		output_null(o);
	}
}

static struct output *open_output(const struct sql_session *s, sqlite3_stmt *statement, int columns)
{
	const char **names = calloc((size_t)columns, sizeof(*names));
	struct output *o = NULL;

	for (int i = 0; names && i < columns; i++)
		names[i] = sqlite3_column_name(statement, i);
	if (names)
		o = output_begin(s->out, s->format, columns, names);
	free(names);
	return o;
}

int sql_print(const struct sql_session *s, sqlite3_stmt *statement)
{
	int columns = sqlite3_column_count(statement), step = sqlite3_step(statement), rc = 0;
	struct output *o;

	if (step != SQLITE_ROW && step != SQLITE_DONE)
		return sql_failed(s, NULL); /* before anything is printed */
	o = columns ? open_output(s, statement, columns) : NULL;
	if (columns && !o) {
		fprintf(stderr, "slabtape: %s: out of memory\n", s->verb);
		return 7;
	}
	for (; step == SQLITE_ROW; step = sqlite3_step(statement))
		for (int i = 0; i < columns; i++)
			print_cell(o, statement, i);
	if (output_end(o) < 0) {
		fprintf(stderr, "slabtape: %s: writing the result failed\n", s->verb);
		rc = 7;
	}
	return step == SQLITE_DONE ? rc : sql_failed(s, NULL);
}

int sql_run(const struct sql_session *s, const char *sql)
{
	const char *rest = sql;
	int rc = 0;

	while (rc == 0 && *rest) {
		sqlite3_stmt *statement = NULL;
		const char *begin = rest;

		if (sqlite3_prepare_v2(s->db, begin, -1, &statement, &rest) != SQLITE_OK)
			return sql_failed(s, begin);
		if (!statement) /* a comment, or blanks */
			continue;
		rc = sql_print(s, statement);
		sqlite3_finalize(statement);
	}
	return rc;
}

char *sql_read_file(const char *path)
{
	bool std = !strcmp(path, "-");
	TAPE_CLEANUP(tape_fclosep) FILE *file = std ? NULL : fopen(path, "re");
	FILE *from = std ? stdin : file;
	TAPE_CLEANUP(tape_freep) char *text = malloc(SQL_FILE_MAX + 1);
	size_t n;

	if (!from || !text)
		return NULL;
	n = fread(text, 1, SQL_FILE_MAX + 1, from);
	if (ferror(from))
		return NULL;
	if (n > SQL_FILE_MAX) {
		errno = EFBIG;
		return NULL;
	}
	text[n] = 0;
	if (memchr(text, 0, n)) {
		errno = EINVAL;
		return NULL;
	}
	return tape_steal(&text);
}
