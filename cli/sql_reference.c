/* SPDX-License-Identifier: MIT */
#include "cli/sql_reference.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/verb.h"
#include "store/tape.h"
#include "store/vtab.h"

/* `sql --reference` shows the virtual tables from their definitions, with meanings. */
static void print_virtual(const struct vtab_table *t)
{
	static const char *const taken[] = {
		[VTAB_NONE] = "", [VTAB_RANGE] = "=, <, >", [VTAB_SET] = "=, <, >, IN",
		[VTAB_NAME] = "=, IN", [VTAB_PARAM] = "argument" };

	printf("\n### %s\n\n| column | type | pushed down | meaning |\n|---|---|---|---|\n", t->name);
	for (int i = 0; i < t->nr; i++) {
		const struct vtab_column *c = &t->columns[i];

		printf("| %s | %s | %s | %s |\n", c->name, c->type, taken[c->take], c->doc);
	}
}

static int print_plain(sqlite3 *db)
{
	sqlite3_stmt *s;
	int step;

	if (sqlite3_prepare_v2(db, "SELECT m.name, group_concat(c.name || ' ' || lower(c.type), ', ')"
				   " FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type ="
				   " 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%' GROUP BY m.name"
				   " ORDER BY m.rowid", -1, &s, NULL) != SQLITE_OK)
		return 7;
	printf("\n### Ordinary tables\n\n| table | columns |\n|---|---|\n");
	while ((step = sqlite3_step(s)) == SQLITE_ROW)
		printf("| %s | %s |\n", (const char *)sqlite3_column_text(s, 0),
		       (const char *)sqlite3_column_text(s, 1));
	sqlite3_finalize(s);
	return step == SQLITE_DONE ? 0 : 7;
}

int sql_reference(void)
{
	TAPE_CLEANUP(tape_closep_tape) struct tape *t = NULL;
	struct tape_err err = { 0 };
	int rc = tape_create(NULL, false, &t, &err);

	if (rc < 0)
		return cli_fail("sql", rc, &err);
	for (const struct vtab_table *const *v = vtab_tables; *v; v++)
		print_virtual(*v);
	return print_plain(tape_db(t));
}
