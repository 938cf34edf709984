/* SPDX-License-Identifier: MIT */
#include "store/vtab_rows.h"

#include <string.h>

const int8_t vtab_event_source[EV_MAX] = {
	[EV_SEQ] = -1,
	[EV_TS] = TAPE_COL_TS,
	[EV_CPU] = TAPE_COL_CPU,
	[EV_NODE] = TAPE_COL_CPU,
	[EV_OP] = TAPE_COL_OP,
	[EV_CACHE] = TAPE_COL_CACHE,
	[EV_OBJECT] = TAPE_COL_OBJECT,
	[EV_SIZE] = TAPE_COL_SIZE,
	[EV_NODE_REQ] = TAPE_COL_NODE_REQ,
	[EV_MEM_NODE] = TAPE_COL_MEM_NODE,
	[EV_SITE] = TAPE_COL_SITE,
	[EV_TID] = TAPE_COL_TID,
	[EV_GFP] = TAPE_COL_GFP,
	[EV_CTX] = TAPE_COL_CTX,
	[EV_BULK] = TAPE_COL_BULK,
	[EV_ARG] = TAPE_COL_ARG,
	[EV_FLAGS] = TAPE_COL_FLAGS,
	[EV_ADDRESS] = TAPE_COL_ADDRESS,
	[EV_SLOT] = TAPE_COL_SLOT,
	[EV_TS_LO] = TAPE_COL_TS_LO,
	[EV_TS_HI] = TAPE_COL_TS_HI,
};

#define BIT(column) (UINT64_C(1) << (column))

uint32_t vtab_rows_columns(const struct vtab_filter *f)
{
	uint32_t mask = 0;
	/* A column that is only filtered on counts as used too: SQLite sets its bit. */
	uint64_t wanted = f->used | f->ranged | f->picked;

	for (int i = 0; i < EV_MAX; i++)
		if (wanted & BIT(i) && vtab_event_source[i] >= 0)
			mask |= 1u << vtab_event_source[i];
	return mask;
}

/* Part of the set of CPUs: those whose node is wanted. */
static int cpus_by_node(struct vtab_filter *f, const struct vtab_source *s)
{
	uint8_t *cpus = f->set[EV_CPU];
	const uint8_t *nodes = f->set[EV_NODE];

	if (!cpus)
		cpus = f->set[EV_CPU] = sqlite3_malloc(VTAB_SET_VALUES);
	if (!cpus)
		return SQLITE_NOMEM;
	if (!(f->picked & BIT(EV_CPU)))
		memset(cpus, 1, VTAB_SET_VALUES);
	f->picked |= BIT(EV_CPU);
	for (int cpu = 0; cpu < TAPE_CPU_MAX; cpu++) {
		int node = s->cpu_node[cpu];

		cpus[cpu] = cpus[cpu] && node >= 0 && nodes[node];
	}
	return SQLITE_OK;
}

int vtab_rows_prepare(struct vtab_filter *f, const struct vtab_source *s)
{
	int rc = SQLITE_OK;

	/* Ids are from 0; a missing object is NULL in SQL and never matches. */
	if (f->ranged & BIT(EV_OBJECT) && f->range[EV_OBJECT].lo < 0)
		f->range[EV_OBJECT].lo = 0;
	if (f->picked & BIT(EV_CACHE))
		f->set[EV_CACHE][TAPE_NO_CACHE] = 0;
	if (f->picked & BIT(EV_NODE))
		rc = cpus_by_node(f, s);
	f->cpus = UINT64_MAX;
	if (rc == SQLITE_OK && f->picked & BIT(EV_CPU)) {
		f->cpus = 0;
		for (int cpu = 0; cpu < TAPE_CPU_MAX; cpu++)
			if (f->set[EV_CPU][cpu])
				f->cpus |= store_cpu_bit((uint16_t)cpu);
	}
	return rc;
}

bool vtab_rows_possible(const struct vtab_filter *f, const struct store_chunk *c)
{
	uint64_t last = c->first_seq + c->events - 1;

	return vtab_filter_meets(f, EV_SEQ, (int64_t)c->first_seq, (int64_t)last) &&
	       vtab_filter_meets(f, EV_TS, (int64_t)c->ts_min, (int64_t)c->ts_max) &&
	       (c->cpu_mask & f->cpus);
}

/* First row whose time is not below @ts. */
static uint32_t first_not_below(const struct tape_batch *b, int64_t ts)
{
	uint32_t lo = 0, hi = b->events;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if ((int64_t)b->ts[mid] < ts)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* seq and ts never decrease: their intervals are one run of rows. */
static void row_run(const struct vtab_filter *f, const struct tape_batch *b, uint32_t *ret_lo,
		    uint32_t *ret_hi)
{
	const struct vtab_interval *seq = &f->range[EV_SEQ], *ts = &f->range[EV_TS];
	int64_t first = (int64_t)b->first_seq;
	uint32_t lo = 0, hi = b->events;

	if (seq->lo > first)
		lo = seq->lo - first < hi ? (uint32_t)(seq->lo - first) : hi;
	if (seq->hi < first)
		hi = 0;
	else if (seq->hi - first < hi)
		hi = (uint32_t)(seq->hi - first) + 1;
	if (f->ranged & BIT(EV_TS)) {
		uint32_t from = first_not_below(b, ts->lo);
		uint32_t to = ts->hi == INT64_MAX ? b->events : first_not_below(b, ts->hi + 1);

		lo = from > lo ? from : lo;
		hi = to < hi ? to : hi;
	}
	*ret_lo = lo;
	*ret_hi = hi > lo ? hi : lo;
}

/* Keep the rows of sel[0..n) that pass; always stores, advances when the test holds. */
#define KEEP(n, test)                                   \
	do {                                            \
		uint32_t kept = 0;                      \
		for (uint32_t i = 0; i < (n); i++) {    \
			uint32_t row = sel[i];          \
			sel[kept] = row;                \
			kept += (test);                 \
		}                                       \
		(n) = kept;                             \
	} while (0)

static uint32_t keep_sets(const struct vtab_filter *f, const struct tape_batch *b, uint32_t *sel,
			  uint32_t n)
{
	if (f->picked & BIT(EV_CPU))
		KEEP(n, f->set[EV_CPU][b->cpu[row]]);
	if (f->picked & BIT(EV_OP))
		KEEP(n, f->set[EV_OP][b->op[row]]);
	if (f->picked & BIT(EV_CACHE))
		KEEP(n, f->set[EV_CACHE][b->cache[row]]);
	return n;
}

#define RANGE_CASE(column, array)                                                     \
	case column:                                                                  \
		KEEP(n, (int64_t)b->array[row] >= lo && (int64_t)b->array[row] <= hi); \
		break

static uint32_t keep_range(const struct vtab_filter *f, int column, const struct tape_batch *b,
			   uint32_t *sel, uint32_t n)
{
	int64_t lo = f->range[column].lo, hi = f->range[column].hi;

	switch (column) {
		RANGE_CASE(EV_OBJECT, object);
		RANGE_CASE(EV_SIZE, size);
		RANGE_CASE(EV_NODE_REQ, node_req);
		RANGE_CASE(EV_MEM_NODE, mem_node);
		RANGE_CASE(EV_SITE, site);
		RANGE_CASE(EV_TID, tid);
		RANGE_CASE(EV_BULK, bulk);
		RANGE_CASE(EV_ADDRESS, address);
	default: /* seq and ts: row_run() */
		break;
	}
	return n;
}

uint32_t vtab_rows_select(const struct vtab_filter *f, const struct tape_batch *b, uint32_t *sel,
			  uint32_t *ret_first, bool *ret_listed)
{
	uint64_t tests = f->ranged & ~(BIT(EV_SEQ) | BIT(EV_TS));
	uint32_t lo, hi, n = 0;

	row_run(f, b, &lo, &hi);
	*ret_first = lo;
	*ret_listed = tests || f->picked;
	if (!*ret_listed)
		return hi - lo;
	for (uint32_t row = lo; row < hi; row++)
		sel[n++] = row;
	n = keep_sets(f, b, sel, n);
	for (int column = 0; tests; column++, tests >>= 1)
		if (tests & 1)
			n = keep_range(f, column, b, sel, n);
	return n;
}
