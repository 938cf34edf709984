/* SPDX-License-Identifier: MIT */
#include "cli/verdict_print.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "analyze/ask.h"
#include "cli/output.h"
#include "cli/rows.h"

enum { NAME_WIDTH = 16 };

/* The query on one line, as it can be pasted. */
static void print_sql(const char *sql)
{
	bool blank = false, text = false;

	for (; *sql; sql++) {
		if (*sql == '\'')
			text = !text;
		if (!text && isspace((unsigned char)*sql)) {
			blank = true;
			continue;
		}
		if (blank)
			putchar(' ');
		blank = false;
		putchar(*sql);
	}
}

static void print_evidence(const json_t *finding)
{
	const char *key;
	json_t *value;

	printf("%*s", NAME_WIDTH + 2, "");
	json_object_foreach(json_object_get(finding, "evidence"), key, value) {
		if (json_is_string(value))
			printf("%s=%s ", key, json_string_value(value));
		else if (json_is_number(value))
			printf("%s=%.15g ", key, json_number_value(value));
	}
	printf("\n%*ssql: ", NAME_WIDTH + 2, "");
	print_sql(analyze_text(finding, "sql"));
	putchar('\n');
}

static void print_findings(const json_t *v, bool details)
{
	const json_t *f;
	size_t i;

	json_array_foreach(json_object_get(v, "findings"), i, f) {
		printf("%-*s  %s", NAME_WIDTH, analyze_text(v, "verdict"), analyze_text(f, "text"));
		if (json_is_integer(json_object_get(f, "run")))
			printf(" (run %lld)", (long long)analyze_int(f, "run"));
		putchar('\n');
		if (details)
			print_evidence(f);
	}
}

/* Refusals together: the first with its reason, the number of the others. */
static void print_refused(const json_t *v)
{
	const json_t *refused = json_object_get(v, "refused"), *first = json_array_get(refused, 0);
	size_t nr = json_array_size(refused);

	if (!nr)
		return;
	printf("%-*s  refused for %s (%s)", NAME_WIDTH, analyze_text(v, "verdict"),
	       analyze_text(first, "cache"), analyze_text(first, "reason"));
	if (nr > 1)
		printf(" and %zu more", nr - 1);
	putchar('\n');
}

void verdict_print(const json_t *verdicts, bool details)
{
	const json_t *v;
	size_t i;

	json_array_foreach(verdicts, i, v) {
		const char *state = analyze_text(v, "state");

		print_findings(v, details);
		print_refused(v);
		if (!strcmp(state, "none"))
			printf("%-*s  no finding (%lld judged)\n", NAME_WIDTH, analyze_text(v, "verdict"),
			       (long long)(analyze_int(v, "judged") -
					   (json_int_t)json_array_size(json_object_get(v, "refused"))));
		else if (!strcmp(state, "no data"))
			printf("%-*s  no data: wants %s\n", NAME_WIDTH, analyze_text(v, "verdict"),
			       analyze_text(v, "data"));
	}
}

static void add_row(json_t *rows, const json_t *v, const char *state, const json_t *of)
{
	json_t *row = json_pack("{s:s, s:s}", "verdict", analyze_text(v, "verdict"), "state", state);
	static const char *const keys[] = { "finding", "run", "variant", "cache", "text", "reason", "sql" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		json_t *value = json_object_get(of, keys[i]);

		if (value)
			json_object_set(row, keys[i], value);
		else
			json_object_set_new(row, keys[i], json_null());
	}
	json_array_append_new(rows, row);
}

int verdict_print_csv(const json_t *verdicts)
{
	json_t *rows = json_array();
	const json_t *v, *of;
	size_t i, k;
	int rc;

	json_array_foreach(verdicts, i, v) {
		const char *state = analyze_text(v, "state");

		json_array_foreach(json_object_get(v, "findings"), k, of)
			add_row(rows, v, "finding", of);
		json_array_foreach(json_object_get(v, "refused"), k, of)
			add_row(rows, v, "refused", of);
		if (!strcmp(state, "none") || !strcmp(state, "no data"))
			add_row(rows, v, state, NULL);
	}
	rc = rows_print(stdout, OUTPUT_CSV, rows);
	json_decref(rows);
	return rc;
}
