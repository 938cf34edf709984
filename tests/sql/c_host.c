/* SPDX-License-Identifier: MIT */
/*
 * c_host EXTENSION DATABASE SQL: a C program of somebody else that loads the extension into stock
 * SQLite and prints each statement's rows as one JSON array of arrays.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static void print_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

static void print_value(sqlite3_stmt *s, int i)
{
	switch (sqlite3_column_type(s, i)) {
	case SQLITE_INTEGER:
		printf("%lld", (long long)sqlite3_column_int64(s, i));
		break;
	case SQLITE_FLOAT:
		printf("%.17g", sqlite3_column_double(s, i));
		break;
	case SQLITE_NULL:
		fputs("null", stdout);
		break;
	default:
		print_text((const char *)sqlite3_column_text(s, i));
	}
}

/* The rows of one statement; an SQLite code. */
static int print_rows(sqlite3_stmt *s)
{
	int rows = 0, step;

	putchar('[');
	while ((step = sqlite3_step(s)) == SQLITE_ROW) {
		fputs(rows++ ? ",\n[" : "[", stdout);
		for (int i = 0; i < sqlite3_column_count(s); i++) {
			if (i)
				putchar(',');
			print_value(s, i);
		}
		putchar(']');
	}
	puts("]");
	return step == SQLITE_DONE ? SQLITE_OK : step;
}

static int run(sqlite3 *db, const char *sql)
{
	int rc = SQLITE_OK;

	while (*sql && rc == SQLITE_OK) {
		sqlite3_stmt *s = NULL;

		rc = sqlite3_prepare_v2(db, sql, -1, &s, &sql);
		if (rc == SQLITE_OK && s)
			rc = sqlite3_column_count(s) ? print_rows(s) :
			     sqlite3_step(s) == SQLITE_DONE ? SQLITE_OK : SQLITE_ERROR;
		sqlite3_finalize(s);
	}
	return rc;
}

int main(int argc, char **argv)
{
	char *message = NULL;
	sqlite3 *db;
	int rc;

	if (argc != 4) {
		fputs("usage: c_host EXTENSION DATABASE SQL\n", stderr);
		return 2;
	}
	rc = sqlite3_open_v2(argv[2], &db, SQLITE_OPEN_READONLY, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_enable_load_extension(db, 1);
	if (rc == SQLITE_OK)
		rc = sqlite3_load_extension(db, argv[1], NULL, &message);
	if (rc == SQLITE_OK)
		rc = run(db, argv[3]);
	if (rc != SQLITE_OK)
		fprintf(stderr, "c_host: %s\n", message ? message : sqlite3_errmsg(db));
	sqlite3_free(message);
	sqlite3_close(db);
	return rc != SQLITE_OK;
}
