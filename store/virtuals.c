/* SPDX-License-Identifier: MIT */
/*
 * The virtual tables of a tape, in one list.
 *
 * A table joins by a row in store_virtuals[] (the statement becomes part of the file format) and
 * by registering its module in store_modules_register().
 */
#include "store/store_internal.h"
#include "store/vtab.h"

const struct store_virtual store_virtuals[] = {
	{ "event", "CREATE VIRTUAL TABLE event USING slabtape_event" },
	{ "object", "CREATE VIRTUAL TABLE object USING slabtape_object" },
	{ "transition", "CREATE VIRTUAL TABLE transition USING slabtape_transition" },
	{ "refill", "CREATE VIRTUAL TABLE refill USING slabtape_refill" },
	{ "slab", "CREATE VIRTUAL TABLE slab USING slabtape_slab" },
	{ "pinned", "CREATE VIRTUAL TABLE pinned USING slabtape_pinned" },
	{ NULL, NULL },
};

int store_modules_register(struct sqlite3 *db)
{
	return vtab_register(db);
}
