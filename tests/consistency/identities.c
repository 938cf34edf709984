/* SPDX-License-Identifier: MIT */
#include "identities.h"

#include <fnmatch.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/tape.h"

static char *trim(char *text)
{
	size_t n = strlen(text);

	while (n && strchr(" \n", text[n - 1]))
		text[--n] = '\0';
	return text + strspn(text, " ");
}

/* "| variants | left = right |" */
static int row_read(char *line, struct identity *row)
{
	char *variants = strchr(line, '|'), *sum, *equal, *end;

	if (!variants || !(sum = strchr(variants + 1, '|')) || !(end = strchr(sum + 1, '|')))
		return -1;
	*sum++ = *end = '\0';
	equal = strstr(sum, " = ");
	if (!equal)
		return -1;
	*equal = '\0';
	snprintf(row->variants, sizeof(row->variants), "%s", trim(variants + 1));
	snprintf(row->left, sizeof(row->left), "%s", trim(sum));
	snprintf(row->right, sizeof(row->right), "%s", trim(equal + 3));
	return 0;
}

size_t identities_read(const char *path, struct identity *rows, size_t max)
{
	FILE *f = fopen(path, "r");
	char line[1000];
	int inside = 0;
	size_t nr = 0;

	while (f && fgets(line, sizeof(line), f) && nr < max) {
		if (inside && line[0] != '|')
			break;
		if (inside && strncmp(line, "|---", 4) && row_read(line, &rows[nr]) == 0)
			nr++;
		inside = inside || !strcmp(line, "| variants | identity |\n");
	}
	if (f)
		fclose(f);
	return nr;
}

int identity_applies(const struct identity *identity, const char *name)
{
	char text[sizeof(identity->variants)], *save = NULL;

	memcpy(text, identity->variants, sizeof(text));
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		if (!fnmatch(word, name, 0))
			return 1;
	return 0;
}

int state_number(const char *name)
{
	for (int i = 0; tape_slab_state_name(i); i++)
		if (!strcmp(tape_slab_state_name(i), name))
			return i;
	return -1;
}

/* Call @row for each row of @sql. */
static int each_row(sqlite3 *db, const char *sql, int64_t run, struct run_counts *c,
		    void (*row)(struct run_counts *c, sqlite3_stmt *s))
{
	sqlite3_stmt *s;
	int step;

	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK) {
		fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
		return -1;
	}
	sqlite3_bind_int64(s, 1, run);
	while ((step = sqlite3_step(s)) == SQLITE_ROW)
		row(c, s);
	sqlite3_finalize(s);
	return step == SQLITE_DONE ? 0 : -1;
}

static void transition_row(struct run_counts *c, sqlite3_stmt *s)
{
	int from = state_number((const char *)sqlite3_column_text(s, 0));
	int to = state_number((const char *)sqlite3_column_text(s, 1));

	if (from >= 0 && to >= 0)
		c->transitions[from][to] = sqlite3_column_int64(s, 2);
}

static void count_row(struct run_counts *c, sqlite3_stmt *s)
{
	struct count *to = &c->counts[c->nr];

	if (c->nr == sizeof(c->counts) / sizeof(*c->counts))
		return;
	snprintf(to->name, sizeof(to->name), "%s", (const char *)sqlite3_column_text(s, 0));
	to->value = sqlite3_column_int64(s, 1);
	c->nr++;
}

int run_counts_read(sqlite3 *db, int64_t run, struct run_counts *ret_counts)
{
	memset(ret_counts, 0, sizeof(*ret_counts));
	if (each_row(db, "SELECT from_state, to_state, sum(transitions) FROM transition_agg WHERE run = ?"
			 " GROUP BY 1, 2", run, ret_counts, transition_row) < 0)
		return -1;
	return each_row(db, "SELECT name, sum(value) FROM counter WHERE run = ?1 AND cpu IS NULL GROUP BY 1"
			    " UNION ALL SELECT class, sum(count) FROM free_class WHERE run = ?1 GROUP BY 1",
			run, ret_counts, count_row);
}

static int term(const struct run_counts *c, const char *word, int64_t *ret_value)
{
	const char *sign = strchr(word, '>');
	char from_name[40];
	int from, to;

	for (size_t i = 0; i < c->nr; i++)
		if (!strcmp(c->counts[i].name, word)) {
			*ret_value = c->counts[i].value;
			return 0;
		}
	if (!sign || (size_t)(sign - word) >= sizeof(from_name))
		return -1;
	memcpy(from_name, word, (size_t)(sign - word));
	from_name[sign - word] = '\0';
	from = state_number(from_name);
	to = state_number(sign + 1);
	if ((from < 0 && strcmp(from_name, "*") != 0) || (to < 0 && strcmp(sign + 1, "*") != 0))
		return -1;
	*ret_value = 0;
	for (int i = 0; i < 16; i++)
		for (int j = 0; j < 16; j++)
			if ((from < 0 || i == from) && (to < 0 || j == to))
				*ret_value += c->transitions[i][j];
	return 0;
}

static int sum(const struct run_counts *c, const char *text, int64_t *ret_sum)
{
	char copy[200], *save = NULL;
	int64_t sign = 1, value;

	snprintf(copy, sizeof(copy), "%s", text);
	*ret_sum = 0;
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		if (!strcmp(word, "+") || !strcmp(word, "-")) {
			sign = *word == '+' ? 1 : -1;
			continue;
		}
		if (term(c, word, &value) < 0) {
			fprintf(stderr, "the run has no %s\n", word);
			return -1;
		}
		*ret_sum += sign * value;
	}
	return 0;
}

int identity_holds(const struct identity *identity, const struct run_counts *counts,
		   int64_t *ret_left, int64_t *ret_right)
{
	*ret_left = *ret_right = 0;
	if (sum(counts, identity->left, ret_left) < 0 || sum(counts, identity->right, ret_right) < 0)
		return -1;
	return *ret_left == *ret_right;
}
