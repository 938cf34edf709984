/* SPDX-License-Identifier: MIT */
#include "store/vtab_common.h"

#include <string.h>

int vtab_connect(sqlite3 *db, const struct vtab_table *table, const char *schema,
		 sqlite3_vtab **ret_vtab)
{
	struct vtab *v;
	int rc = vtab_declare(db, table);

	if (rc != SQLITE_OK)
		return rc;
	v = sqlite3_malloc(sizeof(*v));
	if (!v)
		return SQLITE_NOMEM;
	memset(v, 0, sizeof(*v));
	v->db = db;
	v->table = table;
	if (schema) {
		v->schema = sqlite3_mprintf("%s", schema);
		if (!v->schema) {
			sqlite3_free(v);
			return SQLITE_NOMEM;
		}
	}
	/* Only reads its own tape: may be used from views whatever the trust in the schema. */
	sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
	*ret_vtab = &v->base;
	return SQLITE_OK;
}

int vtab_disconnect(sqlite3_vtab *base)
{
	struct vtab *v = (struct vtab *)base;

	vtab_source_close(v->source);
	sqlite3_free(v->schema);
	sqlite3_free(v);
	return SQLITE_OK;
}

int vtab_use(struct vtab *v)
{
	char *message = NULL;
	int rc = v->source ? vtab_source_refresh(v->source, &message) :
			     vtab_source_open(v->db, v->schema, &v->source, &message);

	return rc == SQLITE_OK ? rc : vtab_fail(&v->base, rc, message);
}

int vtab_function_source(sqlite3 *db, sqlite3_value *param, struct vtab_source **source,
			 char **ret_message)
{
	const char *schema = param ? (const char *)sqlite3_value_text(param) : NULL;

	if (!schema)
		schema = "main";
	if (*source && !sqlite3_stricmp((*source)->tape.schema, schema))
		return vtab_source_refresh(*source, ret_message);
	vtab_source_close(*source);
	*source = NULL;
	return vtab_source_open(db, schema, source, ret_message);
}

int vtab_fail(sqlite3_vtab *base, int rc, char *message)
{
	if (message) {
		sqlite3_free(base->zErrMsg);
		base->zErrMsg = message;
	}
	return rc;
}
