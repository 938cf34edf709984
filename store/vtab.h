/* SPDX-License-Identifier: MIT */
/*
 * The SQL side of a tape: virtual tables and table-valued functions.
 *
 * `event`, `object` and what runs recorded (`transition`, `refill`, `slab`, `pinned`) stand in each
 * tape's schema (CREATE VIRTUAL TABLE event USING slabtape_event), so `ATTACH` gives every tape its
 * own; `event_agg`, `object_agg`, `transition_agg` and `refill_agg` exist on every connection and
 * name the tape in a parameter.  docs/sql.md describes all of them.
 */
#ifndef SLABTAPE_STORE_VTAB_H
#define SLABTAPE_STORE_VTAB_H

#include "store/sqlite_api.h"
#include "store/vtab_plan.h"

/*
 * Make everything known to @db.  Returns an SQLite code.  tape_create() and tape_open() call it
 * before they touch the schema, the loadable extension calls it when it is loaded.
 */
int vtab_register(sqlite3 *db);

/* The tables as documented: what docs/sql.md is checked against and completion offers. */
extern const struct vtab_table *const vtab_tables[]; /* ends with NULL */

extern const struct vtab_table vtab_event_table, vtab_object_table, vtab_event_agg_table,
	vtab_object_agg_table, vtab_transition_table, vtab_refill_table, vtab_slab_table,
	vtab_pinned_table, vtab_transition_agg_table, vtab_refill_agg_table;
extern const sqlite3_module vtab_event_module, vtab_object_module, vtab_event_agg_module,
	vtab_object_agg_module, vtab_run_module, vtab_run_agg_module;

#endif
