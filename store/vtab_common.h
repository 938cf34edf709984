/* SPDX-License-Identifier: MIT */
/*
 * The part of a virtual table that is the same for all of them: connect, disconnect, errors.
 */
#ifndef SLABTAPE_STORE_VTAB_COMMON_H
#define SLABTAPE_STORE_VTAB_COMMON_H

#include "store/vtab_plan.h"
#include "store/vtab_source.h"

struct vtab {
	sqlite3_vtab base; /* first: SQLite sees this */
	sqlite3 *db;
	const struct vtab_table *table;
	char *schema;		    /* NULL for functions, which find theirs in xFilter */
	struct vtab_source *source; /* opened by vtab_use() */
};

/*
 * xCreate and xConnect: declares @table.  The tape itself is not looked at yet: the schema may be
 * just being made.  @schema NULL for functions.  Returns an SQLite code.
 */
int vtab_connect(sqlite3 *db, const struct vtab_table *table, const char *schema,
		 sqlite3_vtab **ret_vtab);
int vtab_disconnect(sqlite3_vtab *base); /* xDisconnect and xDestroy */

/* The table's source, opened on first use (checks the tape then) and brought up to date. */
int vtab_use(struct vtab *v);

/*
 * The source of a function call: schema @param (NULL: main).  *source is kept when it is that
 * schema's already, else replaced; the caller closes it.
 */
int vtab_function_source(sqlite3 *db, sqlite3_value *param, struct vtab_source **source,
			 char **ret_message);

/* Put @message (from sqlite3_mprintf, may be NULL) where SQLite looks for it; returns @rc. */
int vtab_fail(sqlite3_vtab *base, int rc, char *message);

#endif
