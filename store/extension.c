/* SPDX-License-Identifier: MIT */
/*
 * Everything a connection learns: modules, functions; and the entry point of the loadable
 * extension slabtape_sqlite.so, which is this module's sources built against the loading
 * program's SQLite (store/sqlite_api.h).
 */
#include <string.h>

#include "store/vtab.h"
#include "store/vtab_common.h"
#include "traces/event.h"

#ifdef SLABTAPE_EXTENSION
SQLITE_EXTENSION_INIT1
#endif

const struct vtab_table *const vtab_tables[] = {
	&vtab_event_table,
	&vtab_object_table,
	&vtab_event_agg_table,
	&vtab_object_agg_table,
	&vtab_transition_table,
	&vtab_refill_table,
	&vtab_slab_table,
	&vtab_pinned_table,
	&vtab_transition_agg_table,
	&vtab_refill_agg_table,
	NULL,
};

/* ---- bits as text ---- */

static const char *const gfp_names[] = { "may_block", "may_spin", "account", "reclaimable",
					 "dma",	      "thisnode", "nofail",  "zero" };
static const char *const flag_names[] = { "inferred", "orphan",	 "unknown", "inherited",
					  "failed",   "unnamed", "big" };

static void bits_text(sqlite3_context *ctx, sqlite3_value *v, const char *const *names, size_t nr)
{
	sqlite3_str *text = sqlite3_str_new(NULL);
	int64_t bits = sqlite3_value_int64(v);
	char *result;

	for (size_t i = 0; i < nr; i++)
		if (bits >> i & 1)
			sqlite3_str_appendf(text, "%s%s", sqlite3_str_length(text) ? "|" : "",
					    names[i]);
	result = sqlite3_str_finish(text);
	if (sqlite3_value_type(v) != SQLITE_NULL)
		sqlite3_result_text(ctx, result ? result : "", -1, SQLITE_TRANSIENT);
	sqlite3_free(result);
}

static void gfp_text(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
	(void)argc;
	bits_text(ctx, argv[0], gfp_names, sizeof(gfp_names) / sizeof(gfp_names[0]));
}

static void flags_text(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
	(void)argc;
	bits_text(ctx, argv[0], flag_names, sizeof(flag_names) / sizeof(flag_names[0]));
}

/* ---- the tables' names on a database that has none ---- */

/*
 * A database that is no tape has no table `event`, and SQLite then looks for a module of that
 * name.  This one answers with what is wrong instead of "no such table".
 */
static int absent_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
			  sqlite3_vtab **ret_vtab, char **ret_message)
{
	const char *file = sqlite3_db_filename(db, "main");

	(void)aux;
	(void)argc;
	(void)ret_vtab;
	*ret_message = sqlite3_mprintf("slabtape: no table '%s': the database (%s) is not a tape; "
				       "open or ATTACH one", argv[0],
				       file && *file ? file : "main");
	return SQLITE_ERROR;
}

/* The pointers that every module must have; never called, for no table ever connects. */
static const sqlite3_module absent_module = {
	.iVersion = 1,
	.xConnect = absent_connect,
	.xDisconnect = vtab_disconnect,
};

int vtab_register(sqlite3 *db)
{
	static const struct vtab_table *transition = &vtab_transition_table,
				       *refill = &vtab_refill_table, *slab = &vtab_slab_table,
				       *pinned = &vtab_pinned_table,
				       *transition_agg = &vtab_transition_agg_table,
				       *refill_agg = &vtab_refill_agg_table;
	static const struct {
		const char *name;
		const sqlite3_module *module;
		const struct vtab_table **aux;
	} modules[] = {
		{ "slabtape_event", &vtab_event_module, NULL },
		{ "slabtape_object", &vtab_object_module, NULL },
		{ "event_agg", &vtab_event_agg_module, NULL },
		{ "object_agg", &vtab_object_agg_module, NULL },
		{ "slabtape_transition", &vtab_run_module, &transition },
		{ "slabtape_refill", &vtab_run_module, &refill },
		{ "slabtape_slab", &vtab_run_module, &slab },
		{ "slabtape_pinned", &vtab_run_module, &pinned },
		{ "transition_agg", &vtab_run_agg_module, &transition_agg },
		{ "refill_agg", &vtab_run_agg_module, &refill_agg },
		{ "event", &absent_module, NULL },
		{ "object", &absent_module, NULL },
		{ "transition", &absent_module, NULL },
		{ "refill", &absent_module, NULL },
		{ "slab", &absent_module, NULL },
		{ "pinned", &absent_module, NULL },
	};
	int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < sizeof(modules) / sizeof(modules[0]); i++)
		rc = sqlite3_create_module_v2(db, modules[i].name, modules[i].module,
					      modules[i].aux, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_create_function_v2(db, "gfp_text", 1, flags, NULL, gfp_text, NULL,
						NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_create_function_v2(db, "flags_text", 1, flags, NULL, flags_text, NULL,
						NULL, NULL);
	return rc;
}

#ifdef SLABTAPE_EXTENSION
#define OLDEST_SQLITE 3038000 /* sqlite3_vtab_in() */

__attribute__((visibility("default"))) int
sqlite3_extension_init(sqlite3 *db, char **ret_message, const sqlite3_api_routines *api);

int sqlite3_extension_init(sqlite3 *db, char **ret_message, const sqlite3_api_routines *api)
{
	SQLITE_EXTENSION_INIT2(api)
	if (sqlite3_libversion_number() < OLDEST_SQLITE) {
		*ret_message = sqlite3_mprintf("slabtape needs SQLite 3.38 or newer, this is %s",
					       sqlite3_libversion());
		return SQLITE_ERROR;
	}
	return vtab_register(db);
}
#endif
