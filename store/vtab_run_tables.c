/* SPDX-License-Identifier: MIT */
/* The columns of `transition`, `refill`, `slab` and `pinned`. */
#include <string.h>

#include "store/vtab.h"
#include "store/vtab_run.h"
#include "traces/event.h"

int run_parse_state(const char *name)
{
	for (int i = 0; tape_slab_state_name(i); i++)
		if (!strcmp(tape_slab_state_name(i), name))
			return i;
	return -1;
}

int run_parse_source(const char *name)
{
	for (int i = 0; tape_refill_source_name(i); i++)
		if (!strcmp(tape_refill_source_name(i), name))
			return i;
	return -1;
}

#define RUN_COLUMN { "run", "INTEGER", VTAB_RANGE, 0.3, "run", NULL }

static const struct vtab_column transition_columns[TR_MAX + 1] = {
	RUN_COLUMN,
	[TR_SEQ + 1] = { "seq", "INTEGER", VTAB_RANGE, 0.001,
			 "event that caused it (the next one where op is NULL)", NULL },
	[TR_TS + 1] = { "ts", "INTEGER", VTAB_RANGE, 0.001, "time of that event, ns", NULL },
	[TR_VTS + 1] = { "vts", "INTEGER", VTAB_RANGE, 0.001,
			 "virtual time, ns, in simulated runs; else 0", NULL },
	[TR_CPU + 1] = { "cpu", "INTEGER", VTAB_SET, 0.2, "CPU that did it", NULL },
	[TR_NODE + 1] = { "node", "INTEGER", VTAB_SET, 0.5, "node of the slab", NULL },
	[TR_CACHE + 1] = { "cache", "INTEGER", VTAB_SET, 0.05, "cache id", NULL },
	[TR_SLAB + 1] = { "slab", "INTEGER", VTAB_RANGE, 0.001,
			  "slab, numbered in order of birth within the run", NULL },
	[TR_FROM + 1] = { "from_state", "TEXT", VTAB_NAME, 0.2, "where the slab was", run_parse_state },
	[TR_TO + 1] = { "to_state", "TEXT", VTAB_NAME, 0.2, "where it is now", run_parse_state },
	[TR_INUSE + 1] = { "inuse", "INTEGER", VTAB_RANGE, 0.1, "its objects in use, after", NULL },
	[TR_OBJECTS + 1] = { "objects", "INTEGER", VTAB_RANGE, 0.5, "its objects in all", NULL },
	[TR_OP + 1] = { "op", "TEXT", VTAB_NAME, 0.3,
			"operation of that event; NULL: warming, timer work, end of a grace period",
			tape_op_parse },
};

static const struct vtab_column refill_columns[RE_MAX + 1] = {
	RUN_COLUMN,
	[RE_SEQ + 1] = { "seq", "INTEGER", VTAB_RANGE, 0.001, "event that caused it", NULL },
	[RE_TS + 1] = { "ts", "INTEGER", VTAB_RANGE, 0.001, "time of that event, ns", NULL },
	[RE_VTS + 1] = { "vts", "INTEGER", VTAB_RANGE, 0.001,
			 "virtual time, ns, in simulated runs; else 0", NULL },
	[RE_CPU + 1] = { "cpu", "INTEGER", VTAB_SET, 0.2, "CPU", NULL },
	[RE_CACHE + 1] = { "cache", "INTEGER", VTAB_SET, 0.05, "cache id", NULL },
	[RE_SOURCE + 1] = { "source", "TEXT", VTAB_NAME, 0.2, "where the objects came from",
			    run_parse_source },
	[RE_OBJECTS + 1] = { "objects", "INTEGER", VTAB_RANGE, 0.1, "usable objects obtained",
			     NULL },
	[RE_NODE + 1] = { "node", "INTEGER", VTAB_SET, 0.5, "node of the CPU", NULL },
};

static const struct vtab_column slab_columns[SL_MAX + 1] = {
	RUN_COLUMN,
	[SL_SLAB + 1] = { "slab", "INTEGER", VTAB_RANGE, 0.001,
			  "number in order of birth within the run", NULL },
	[SL_CACHE + 1] = { "cache", "INTEGER", VTAB_SET, 0.05, "cache id", NULL },
	[SL_NODE + 1] = { "node", "INTEGER", VTAB_SET, 0.5, "node of its memory", NULL },
	[SL_ORDER + 1] = { "order", "INTEGER", VTAB_RANGE, 0.5, "2^order pages of 4096 bytes", NULL },
	[SL_OBJECTS + 1] = { "objects", "INTEGER", VTAB_RANGE, 0.5, "its objects in all", NULL },
	[SL_BORN_SEQ + 1] = { "born_seq", "INTEGER", VTAB_RANGE, 0.001, "event that made it", NULL },
	[SL_DIED_SEQ + 1] = { "died_seq", "INTEGER", VTAB_RANGE, 0.001,
			      "event that gave it back; NULL: it was there at the end", NULL },
	[SL_BORN_TS + 1] = { "born_ts", "INTEGER", VTAB_RANGE, 0.001,
			     "ns of tape time (virtual time in simulated runs)", NULL },
	[SL_DIED_TS + 1] = { "died_ts", "INTEGER", VTAB_RANGE, 0.001, "the same; NULL: alive", NULL },
	[SL_STATE + 1] = { "state", "TEXT", VTAB_NAME, 0.2, "where it was at the end", run_parse_state },
};

static const struct vtab_column pinned_columns[PI_MAX + 1] = {
	RUN_COLUMN,
	[PI_SLAB + 1] = { "slab", "INTEGER", VTAB_RANGE, 0.001, "slab that it keeps alive", NULL },
	[PI_OBJECT + 1] = { "object", "INTEGER", VTAB_RANGE, 0.001, "object id", NULL },
	[PI_ALLOC_SITE + 1] = { "alloc_site", "INTEGER", VTAB_RANGE, 0.05,
				"call site id; 0 unknown", NULL },
	[PI_AGE + 1] = { "age", "INTEGER", VTAB_RANGE, 0.1, "ns from its allocation to the end", NULL },
	[PI_CACHE + 1] = { "cache", "INTEGER", VTAB_SET, 0.05, "cache id", NULL },
	[PI_NODE + 1] = { "node", "INTEGER", VTAB_SET, 0.5, "node of the slab", NULL },
	[PI_INUSE + 1] = { "inuse", "INTEGER", VTAB_RANGE, 0.2, "objects of the slab in use", NULL },
	[PI_OBJECTS + 1] = { "objects", "INTEGER", VTAB_RANGE, 0.5, "objects of the slab in all", NULL },
	[PI_ALLOC_SEQ + 1] = { "alloc_seq", "INTEGER", VTAB_RANGE, 0.001, "event that allocated it",
			       NULL },
	[PI_ALLOC_TS + 1] = { "alloc_ts", "INTEGER", VTAB_RANGE, 0.001, "its time, ns", NULL },
};

const struct vtab_table vtab_transition_table = { "transition", transition_columns, TR_MAX + 1, -1, -1 };
const struct vtab_table vtab_refill_table = { "refill", refill_columns, RE_MAX + 1, -1, -1 };
const struct vtab_table vtab_slab_table = { "slab", slab_columns, SL_MAX + 1, -1, -1 };
const struct vtab_table vtab_pinned_table = { "pinned", pinned_columns, PI_MAX + 1, -1, -1 };

const struct vtab_table *const vtab_run_tables[RUN_KINDS] = {
	[RUN_TRANSITION] = &vtab_transition_table,
	[RUN_REFILL] = &vtab_refill_table,
	[RUN_SLAB] = &vtab_slab_table,
	[RUN_PINNED] = &vtab_pinned_table,
};

void run_column_result(sqlite3_context *ctx, enum run_kind kind, int column, int64_t value)
{
	const struct vtab_column *c = &vtab_run_tables[kind]->columns[column];
	const char *name = NULL;

	if (c->parse == run_parse_state)
		name = tape_slab_state_name(value);
	else if (c->parse == run_parse_source)
		name = tape_refill_source_name(value);
	else if (c->parse == tape_op_parse)
		name = value >= 0 && value < TAPE_OP_MAX ? tape_op_name((uint8_t)value) : NULL;
	else if (column == 0 || value != -1 || !(run_kinds[kind].nullable >> (column - 1) & 1))
		sqlite3_result_int64(ctx, value);
	if (name)
		sqlite3_result_text(ctx, name, -1, SQLITE_STATIC);
}
