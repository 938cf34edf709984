/* SPDX-License-Identifier: MIT */
#include "store/vtab_plan.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * idxStr: 16 hex digits (columns used), then two characters per argument: 'A' + column, operator.
 * idxNum: 1 when rows are wanted in descending order.
 */
#define PLAN_HEAD 16

int vtab_declare(sqlite3 *db, const struct vtab_table *t)
{
	char *sql = sqlite3_mprintf("CREATE TABLE %s(", t->name);
	int rc;

	assert(t->nr <= VTAB_COLUMNS_MAX);
	for (int i = 0; sql && i < t->nr; i++)
		sql = sqlite3_mprintf("%z%s\"%w\" %s", sql, i ? ", " : "", t->columns[i].name,
				      t->columns[i].type);
	if (sql)
		sql = sqlite3_mprintf("%z)", sql);
	if (!sql)
		return SQLITE_NOMEM;
	rc = sqlite3_declare_vtab(db, sql);
	sqlite3_free(sql);
	return rc;
}

/* ---- xBestIndex ---- */

static char operator_code(unsigned char op)
{
	switch (op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		return '=';
	case SQLITE_INDEX_CONSTRAINT_GT:
		return '>';
	case SQLITE_INDEX_CONSTRAINT_GE:
		return 'g';
	case SQLITE_INDEX_CONSTRAINT_LT:
		return '<';
	case SQLITE_INDEX_CONSTRAINT_LE:
		return 'l';
	default:
		return 0;
	}
}

/* The code under which constraint @i is taken over, 0: left to SQLite. */
static char takes(const struct vtab_table *t, sqlite3_index_info *info, int i)
{
	const struct sqlite3_index_constraint *c = &info->aConstraint[i];
	char code = operator_code(c->op);

	if (c->iColumn < 0 || c->iColumn >= t->nr || !code)
		return 0;
	if (!c->usable && t->columns[c->iColumn].take != VTAB_PARAM)
		return 0;
	switch (t->columns[c->iColumn].take) {
	case VTAB_RANGE:
		return code;
	case VTAB_SET:
		return code == '=' && sqlite3_vtab_in(info, i, 1) ? 'i' : code;
	case VTAB_NAME:
		if (code != '=' || strcmp(sqlite3_vtab_collation(info, i), "BINARY"))
			return 0;
		return sqlite3_vtab_in(info, i, 1) ? 'i' : '=';
	case VTAB_PARAM:
		return code == '=' ? '=' : 0;
	default:
		return 0;
	}
}

struct estimate {
	double rows;  /* of the result */
	double share; /* of all rows that have to be looked at */
	bool unique;
	uint64_t below, above; /* columns with an upper / a lower bound */
};

/* A range with both ends is a window (1 % unless the values say more), one end keeps half. */
static void estimate_term(struct estimate *e, const struct vtab_column *col, int column, char code)
{
	uint64_t bit = UINT64_C(1) << column;
	bool upper = code == '<' || code == 'l';
	double cut;

	if (col->take == VTAB_PARAM)
		return;
	if (code == '=' || code == 'i') {
		if (col->share == VTAB_UNIQUE)
			e->unique = true;
		e->rows *= col->share * (code == 'i' ? 3 : 1);
		return;
	}
	cut = (upper ? e->above : e->below) & bit ? 0.02 : 0.5;
	*(upper ? &e->below : &e->above) |= bit;
	e->rows *= cut;
	if (col->share == VTAB_UNIQUE) /* whole chunks are skipped */
		e->share *= cut;
}

static void take_order(const struct vtab_table *t, sqlite3_index_info *info)
{
	const struct sqlite3_index_orderby *by = info->aOrderBy;
	int n = info->nOrderBy;

	if (!n || t->order_major < 0)
		return;
	/* The major column is unique: what follows it does not matter. */
	if (by[0].iColumn != t->order_major) {
		if (by[0].iColumn != t->order_minor || t->order_minor < 0)
			return;
		if (n > 1 && (by[1].iColumn != t->order_major || by[1].desc != by[0].desc))
			return;
	}
	info->orderByConsumed = 1;
	info->idxNum = by[0].desc ? 1 : 0;
}

static void set_costs(sqlite3_index_info *info, const struct estimate *e, double rows)
{
	if (e->unique) {
		/* One chunk is decoded at most, and usually is at hand already. */
		info->estimatedRows = 2;
		info->estimatedCost = 40;
		return;
	}
	info->estimatedRows = (sqlite3_int64)(rows * e->rows) + 1;
	info->estimatedCost = 100 + rows * e->share * 0.3 + (double)info->estimatedRows;
}

int vtab_plan(const struct vtab_table *t, sqlite3_index_info *info, double rows)
{
	struct estimate e = { .rows = 1, .share = 1 };
	sqlite3_str *text = sqlite3_str_new(NULL);
	int args = 0;

	sqlite3_str_appendf(text, "%016llx", (unsigned long long)info->colUsed);
	for (int i = 0; i < info->nConstraint; i++) {
		const struct sqlite3_index_constraint *c = &info->aConstraint[i];
		char code = takes(t, info, i);

		if (!code)
			continue;
		if (!c->usable) { /* a parameter not at hand yet: this join order cannot work */
			sqlite3_free(sqlite3_str_finish(text));
			return SQLITE_CONSTRAINT;
		}
		info->aConstraintUsage[i].argvIndex = ++args;
		info->aConstraintUsage[i].omit = 1;
		sqlite3_str_appendf(text, "%c%c", 'A' + c->iColumn, code);
		estimate_term(&e, &t->columns[c->iColumn], c->iColumn, code);
	}
	take_order(t, info);
	set_costs(info, &e, rows);
	info->idxStr = sqlite3_str_finish(text);
	info->needToFreeIdxStr = 1;
	return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

int vtab_plan_function(const struct vtab_table *t, sqlite3_index_info *info)
{
	int rc = vtab_plan(t, info, 1000);

	/* Never the inner loop of a join. */
	info->estimatedCost = 1e7 + (double)info->estimatedRows;
	return rc;
}

/* ---- xFilter ---- */

static void at_least(struct vtab_interval *r, int64_t v)
{
	if (v > r->lo)
		r->lo = v;
}

static void at_most(struct vtab_interval *r, int64_t v)
{
	if (v < r->hi)
		r->hi = v;
}

static void nothing(struct vtab_interval *r)
{
	r->lo = 1;
	r->hi = 0;
}

static void narrow_int(struct vtab_interval *r, char code, int64_t v)
{
	if ((code == '>' && v == INT64_MAX) || (code == '<' && v == INT64_MIN)) {
		nothing(r);
		return;
	}
	if (code == '=' || code == '>' || code == 'g')
		at_least(r, code == '>' ? v + 1 : v);
	if (code == '=' || code == '<' || code == 'l')
		at_most(r, code == '<' ? v - 1 : v);
}

/* Integers compared with a real: the integers on the wanted side of it. */
static void narrow_real(struct vtab_interval *r, char code, double v)
{
	double down = floor(v);

	if (v >= 9223372036854775808.0) {
		if (code != '<' && code != 'l')
			nothing(r);
	} else if (v < -9223372036854775808.0) {
		if (code != '>' && code != 'g')
			nothing(r);
	} else if (down == v) {
		narrow_int(r, code, (int64_t)v);
	} else if (code == '=') {
		nothing(r);
	} else {
		narrow_int(r, code == '>' || code == 'g' ? '>' : 'l', (int64_t)down);
	}
}

/* SQLite's rules for INTEGER column <op> value: numeric affinity, then text sorts after numbers. */
static void narrow(struct vtab_interval *r, char code, sqlite3_value *v)
{
	switch (sqlite3_value_numeric_type(v)) {
	case SQLITE_INTEGER:
		narrow_int(r, code, sqlite3_value_int64(v));
		break;
	case SQLITE_FLOAT:
		narrow_real(r, code, sqlite3_value_double(v));
		break;
	case SQLITE_NULL:
		nothing(r);
		break;
	default:
		if (code != '<' && code != 'l')
			nothing(r);
	}
}

/* One value of an IN list; -1: cannot be equal to any value of the column. */
static int64_t set_member(const struct vtab_column *col, sqlite3_value *v)
{
	struct vtab_interval r = { 0, VTAB_SET_VALUES - 1 };

	if (col->take == VTAB_NAME)
		return sqlite3_value_type(v) == SQLITE_TEXT ?
			col->parse((const char *)sqlite3_value_text(v)) : -1;
	narrow(&r, '=', v);
	return r.lo == r.hi ? r.lo : -1;
}

/* The column's set, everything in it on first use within this call. */
static uint8_t *set_get(struct vtab_filter *f, int column)
{
	uint64_t bit = UINT64_C(1) << column;

	if (!f->set[column])
		f->set[column] = sqlite3_malloc(VTAB_SET_VALUES);
	if (f->set[column] && !(f->picked & bit)) {
		memset(f->set[column], 1, VTAB_SET_VALUES);
		f->picked |= bit;
	}
	return f->set[column];
}

static int set_in(struct vtab_filter *f, int column, const struct vtab_column *col,
		  sqlite3_value *list)
{
	uint8_t *set = set_get(f, column);
	sqlite3_value *v;
	int rc;

	if (!set)
		return SQLITE_NOMEM;
	/* Members get bit 1, then the old set is intersected with them. */
	for (rc = sqlite3_vtab_in_first(list, &v); rc == SQLITE_OK && v;
	     rc = sqlite3_vtab_in_next(list, &v)) {
		int64_t member = set_member(col, v);

		if (member >= 0)
			set[member] |= 2;
	}
	if (rc != SQLITE_OK && rc != SQLITE_DONE)
		return rc;
	for (int i = 0; i < VTAB_SET_VALUES; i++)
		set[i] = set[i] == 3;
	return SQLITE_OK;
}

static int set_narrow(struct vtab_filter *f, int column, const struct vtab_column *col, char code,
		      sqlite3_value *v)
{
	struct vtab_interval r = { 0, VTAB_SET_VALUES - 1 };
	uint8_t *set = set_get(f, column);

	if (!set)
		return SQLITE_NOMEM;
	if (col->take == VTAB_NAME)
		r.lo = r.hi = set_member(col, v);
	else
		narrow(&r, code, v);
	if (r.lo > r.hi || r.hi < 0) {
		f->empty = true;
		return SQLITE_OK;
	}
	memset(set, 0, (size_t)r.lo);
	memset(set + r.hi + 1, 0, (size_t)(VTAB_SET_VALUES - 1 - r.hi));
	return SQLITE_OK;
}

static int read_term(struct vtab_filter *f, const struct vtab_table *t, int column, char code,
		     sqlite3_value *v)
{
	const struct vtab_column *col = &t->columns[column];

	switch (col->take) {
	case VTAB_PARAM:
		f->param[column] = v;
		return SQLITE_OK;
	case VTAB_RANGE:
		narrow(&f->range[column], code, v);
		f->ranged |= UINT64_C(1) << column;
		f->empty |= f->range[column].lo > f->range[column].hi;
		return SQLITE_OK;
	default:
		return code == 'i' ? set_in(f, column, col, v) :
				     set_narrow(f, column, col, code, v);
	}
}

int vtab_filter_read(struct vtab_filter *f, const struct vtab_table *t, int idx_num,
		     const char *idx_text, int argc, sqlite3_value **argv)
{
	unsigned long long used = 0;
	int rc = SQLITE_OK;

	assert(strlen(idx_text) == PLAN_HEAD + 2 * (size_t)argc);
	sscanf(idx_text, "%16llx", &used);
	f->used = used;
	f->ranged = f->picked = 0;
	f->empty = false;
	f->descending = idx_num & 1;
	for (int i = 0; i < VTAB_COLUMNS_MAX; i++) {
		f->range[i] = (struct vtab_interval){ INT64_MIN, INT64_MAX };
		f->param[i] = NULL;
	}
	for (int i = 0; i < argc && rc == SQLITE_OK; i++) {
		const char *term = idx_text + PLAN_HEAD + 2 * (size_t)i;

		rc = read_term(f, t, term[0] - 'A', term[1], argv[i]);
	}
	return rc;
}

void vtab_filter_drop(struct vtab_filter *f, int nr)
{
	size_t left = (size_t)(VTAB_COLUMNS_MAX - nr);

	f->used >>= nr;
	f->ranged >>= nr;
	f->picked >>= nr;
	for (int i = 0; i < nr; i++)
		sqlite3_free(f->set[i]);
	memmove(f->range, f->range + nr, left * sizeof(*f->range));
	memmove(f->set, f->set + nr, left * sizeof(*f->set));
	memmove(f->param, f->param + nr, left * sizeof(*f->param));
	for (int i = (int)left; i < VTAB_COLUMNS_MAX; i++) {
		f->range[i] = (struct vtab_interval){ INT64_MIN, INT64_MAX };
		f->set[i] = NULL;
		f->param[i] = NULL;
	}
}

void vtab_filter_fini(struct vtab_filter *f)
{
	for (int i = 0; i < VTAB_COLUMNS_MAX; i++)
		sqlite3_free(f->set[i]);
	memset(f, 0, sizeof(*f));
}

bool vtab_filter_meets(const struct vtab_filter *f, int column, int64_t lo, int64_t hi)
{
	return f->range[column].lo <= hi && f->range[column].hi >= lo;
}
