/* SPDX-License-Identifier: MIT */
#include "store/vtab_agg.h"

#include <string.h>

#define BIT(column) (UINT64_C(1) << (column))

int agg_connect(sqlite3 *db, const struct agg_kind *kind, sqlite3_vtab **ret_vtab)
{
	return vtab_connect(db, kind->table, NULL, ret_vtab);
}

int agg_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	return vtab_plan_function(((struct vtab *)base)->table, info);
}

int agg_open(const struct agg_kind *kind, sqlite3_vtab_cursor **ret_cursor)
{
	struct agg_cursor *c = sqlite3_malloc(sizeof(*c));

	if (!c)
		return SQLITE_NOMEM;
	memset(c, 0, sizeof(*c));
	c->kind = kind;
	*ret_cursor = &c->base;
	return SQLITE_OK;
}

int agg_close(sqlite3_vtab_cursor *base)
{
	struct agg_cursor *c = (struct agg_cursor *)base;

	group_destroy(c->groups);
	vtab_source_close(c->source);
	vtab_filter_fini(&c->filter);
	sqlite3_free(c);
	return SQLITE_OK;
}

/* ---- keys, measures, parameters ---- */

static int make_groups(struct agg_cursor *c, char **ret_message)
{
	const struct agg_kind *k = c->kind;
	enum group_fold folds[GROUP_MEASURES_MAX];
	unsigned int keys = 0, measures = 0;

	for (int column = 0; column < k->nr; column++) {
		bool used = c->filter.used & BIT(column) &&
			    !(column == k->bucket && !c->bucket_ns);
		bool is_key = column <= k->bucket && !(k->compare_only & BIT(column));

		c->key_of[column] = used && is_key ? (int8_t)keys++ : -1;
		c->measure_of[column] = -1;
		if (used && column > k->bucket) {
			folds[measures] = k->fold[column];
			c->measure_of[column] = (int8_t)measures++;
		}
	}
	if (keys > GROUP_KEYS_MAX) {
		*ret_message = sqlite3_mprintf("slabtape: %s: more than %d columns as a key",
					       k->table->name, GROUP_KEYS_MAX);
		return SQLITE_TOOBIG;
	}
	group_destroy(c->groups);
	c->groups = group_create(keys, measures, folds);
	return c->groups ? SQLITE_OK : SQLITE_NOMEM;
}

static int read_bucket(struct agg_cursor *c, char **ret_message)
{
	sqlite3_value *v = c->filter.param[AGG_BUCKET_NS];

	c->bucket_ns = 0;
	if (!v || sqlite3_value_type(v) == SQLITE_NULL)
		return SQLITE_OK;
	c->bucket_ns = sqlite3_value_int64(v);
	if (sqlite3_value_numeric_type(v) == SQLITE_INTEGER && c->bucket_ns > 0)
		return SQLITE_OK;
	*ret_message = sqlite3_mprintf("slabtape: bucket_ns is a width in ns, 1 or more, not '%s'",
				       sqlite3_value_text(v));
	return SQLITE_ERROR;
}

int agg_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_text, int argc,
	       sqlite3_value **argv)
{
	struct agg_cursor *c = (struct agg_cursor *)base;
	struct vtab *v = (struct vtab *)base->pVtab;
	char *message = NULL;
	int rc = vtab_filter_read(&c->filter, v->table, idx_num, idx_text, argc, argv);

	if (rc == SQLITE_OK)
		rc = read_bucket(c, &message);
	if (rc == SQLITE_OK)
		rc = vtab_function_source(v->db, c->filter.param[AGG_TAPE], &c->source, &message);
	if (rc != SQLITE_OK)
		return vtab_fail(base->pVtab, rc, message);
	vtab_filter_drop(&c->filter, AGG_PARAMS);
	c->at = 0;
	rc = make_groups(c, &message);
	if (rc == SQLITE_OK && !c->filter.empty)
		rc = c->kind->run(c, &message);
	return rc == SQLITE_OK ? rc : vtab_fail(base->pVtab, rc, message);
}

void agg_round_down(int64_t *ts, uint32_t n, int64_t width)
{
	int64_t begin = 0, end = 0;

	/* Mostly the same bucket again, so that few rows need the division. */
	for (uint32_t i = 0; i < n; i++) {
		if (ts[i] < 0)
			continue;
		if (ts[i] >= end || ts[i] < begin) {
			begin = ts[i] - ts[i] % width;
			end = begin > INT64_MAX - width ? INT64_MAX : begin + width;
		}
		ts[i] = begin;
	}
}

int agg_end_batch(struct agg_cursor *c, char **ret_message)
{
	bool too_many;

	if (group_end(c->groups, &too_many))
		return SQLITE_OK;
	if (!too_many)
		return SQLITE_NOMEM;
	*ret_message = sqlite3_mprintf("slabtape: %s: more than %u groups; name fewer columns, or use "
				       "the table itself", c->kind->table->name, GROUPS_MAX);
	return SQLITE_TOOBIG;
}

/* ---- the result ---- */

int agg_next(sqlite3_vtab_cursor *base)
{
	((struct agg_cursor *)base)->at++;
	return SQLITE_OK;
}

int agg_eof(sqlite3_vtab_cursor *base)
{
	const struct agg_cursor *c = (const struct agg_cursor *)base;

	return c->at >= group_nr(c->groups);
}

static void param_result(const struct agg_cursor *c, sqlite3_context *ctx, int column)
{
	if (column == AGG_BUCKET_NS && c->bucket_ns)
		sqlite3_result_int64(ctx, c->bucket_ns);
	else if (column == AGG_TAPE)
		sqlite3_result_text(ctx, c->source->tape.schema, -1, SQLITE_TRANSIENT);
}

/* A least or greatest of no values at all is NULL. */
static void measure_result(sqlite3_context *ctx, enum group_fold fold, int64_t value)
{
	if ((fold == GROUP_LEAST && value == INT64_MAX) || (fold == GROUP_MOST && value == INT64_MIN))
		return;
	sqlite3_result_int64(ctx, value);
}

int agg_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
	const struct agg_cursor *c = (const struct agg_cursor *)base;

	if (column < AGG_PARAMS) {
		param_result(c, ctx, column);
		return SQLITE_OK;
	}
	column -= AGG_PARAMS;
	if (c->kind->compare_only & BIT(column))
		return vtab_fail(base->pVtab, SQLITE_ERROR,
				 sqlite3_mprintf("slabtape: %s: %s can only be compared with <, <=, =, "
						 ">=, > and a value", c->kind->table->name,
						 c->kind->table->columns[column + AGG_PARAMS].name));
	if (c->key_of[column] >= 0)
		c->kind->result(ctx, column,
				group_key(c->groups, c->at, (unsigned int)c->key_of[column]));
	else if (c->measure_of[column] >= 0)
		measure_result(ctx, c->kind->fold[column],
			       group_measure(c->groups, c->at, (unsigned int)c->measure_of[column]));
	return SQLITE_OK;
}

int agg_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret_rowid)
{
	*ret_rowid = (sqlite3_int64)((struct agg_cursor *)base)->at;
	return SQLITE_OK;
}
