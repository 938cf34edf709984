/* SPDX-License-Identifier: MIT */
#include "cli/recorded.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "replay/plan.h"
#include "store/tape.h"

#define RING 128u /* > CLI_WINDOW_MOVE_MAX */

void cli_recorded_fini(struct cli_recorded *r)
{
	for (size_t i = 0; i < r->nr_caches; i++)
		free(r->caches[i].values);
	free(r->caches);
	free(r->from);
	*r = (struct cli_recorded){ 0 };
}

const struct cli_recorded_cache *cli_recorded_find(const struct cli_recorded *r, uint16_t cache)
{
	for (size_t i = 0; i < r->nr_caches; i++)
		if (r->caches[i].cache == cache)
			return &r->caches[i];
	return NULL;
}

bool cli_recorded_value(const struct cli_recorded_cache *c, const char *name, int64_t *ret_value)
{
	for (size_t i = 0; i < c->nr_values; i++)
		if (!strcmp(c->values[i].name, name)) {
			*ret_value = c->values[i].value;
			return true;
		}
	return false;
}

static int add_value(struct cli_recorded *r, uint16_t cache, const char *name, int64_t value)
{
	struct cli_recorded_cache *c = r->nr_caches ? &r->caches[r->nr_caches - 1] : NULL;
	struct cli_recorded_value *grown;

	if (!c || c->cache != cache) {
		c = realloc(r->caches, (r->nr_caches + 1) * sizeof(*c));
		if (!c)
			return -ENOMEM;
		r->caches = c;
		c += r->nr_caches++;
		*c = (struct cli_recorded_cache){ .cache = cache };
	}
	grown = realloc(c->values, (c->nr_values + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	c->values = grown;
	snprintf(grown[c->nr_values].name, sizeof(grown->name), "%s", name);
	grown[c->nr_values++].value = value;
	return 0;
}

/* Rows (cache, name, value) of @sql; caches that have no counters get no state either. */
static int load_rows(struct tape *t, const char *sql, struct cli_recorded *r, bool state)
{
	sqlite3_stmt *stmt;
	int rc = 0;

	if (sqlite3_prepare_v2(tape_db(t), sql, -1, &stmt, NULL) != SQLITE_OK)
		return -TAPE_E_FORMAT;
	while (rc >= 0 && sqlite3_step(stmt) == SQLITE_ROW) {
		uint16_t cache = (uint16_t)sqlite3_column_int(stmt, 0);
		const char *name = (const char *)sqlite3_column_text(stmt, 1);

		if (!state)
			rc = add_value(r, cache, name, sqlite3_column_int64(stmt, 2));
		for (size_t i = 0; state && i < r->nr_caches; i++) {
			/* add_value() appends to the last cache: move it there for a moment */
			struct cli_recorded_cache last = r->caches[r->nr_caches - 1];

			if (r->caches[i].cache != cache)
				continue;
			r->caches[r->nr_caches - 1] = r->caches[i];
			r->caches[i] = last;
			rc = add_value(r, cache, name, sqlite3_column_int64(stmt, 2));
			last = r->caches[r->nr_caches - 1];
			r->caches[r->nr_caches - 1] = r->caches[i];
			r->caches[i] = last;
		}
	}
	sqlite3_finalize(stmt);
	return rc;
}

static int64_t sum_of(const struct cli_recorded_cache *c, const char *a, const char *b)
{
	int64_t x = 0, y = 0;

	cli_recorded_value(c, a, &x);
	cli_recorded_value(c, b, &y);
	return x + y;
}

static int load_counters(struct tape *t, struct cli_recorded *r, struct tape_err *reterr)
{
	static const char counters[] =
		"SELECT cache, name, value FROM counter WHERE cpu IS NULL AND run = "
		"(SELECT min(run) FROM run WHERE variant = 'recorded') ORDER BY cache, name";
	static const char state[] =
		"SELECT cache, name, value FROM counter WHERE cpu IS NULL AND name IN ('slabs', "
		"'total_objects', 'objects', 'partial', 'objects_partial', 'cpu_slabs') "
		"AND run = (SELECT max(run) FROM run WHERE variant LIKE "
		"'kernel:%' AND mode = 'after') ORDER BY cache";
	int rc = load_rows(t, counters, r, false);

	for (size_t i = 0; i < r->nr_caches; i++)
		r->caches[i].nr_counters = r->caches[i].nr_values;
	if (rc >= 0)
		rc = load_rows(t, state, r, true);
	if (rc < 0)
		return tape_err_set(reterr, rc, "recorded counters: cannot be read");
	if (!r->nr_caches)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--against recorded: the tape holds no "
				    "counters of a kernel; import with --slab-before and "
				    "--slab-after");
	for (size_t i = 0; i < r->nr_caches; i++) {
		struct cli_recorded_cache *c = &r->caches[i];

		c->kernel_allocs = sum_of(c, "alloc_fastpath", "alloc_slowpath");
		c->kernel_frees = sum_of(c, "free_fastpath", "free_slowpath");
	}
	return 0;
}

/* Allocations of one cache around the window's start. */
struct around {
	uint64_t before[RING], after[RING]; /* event numbers: the last before, the first after */
	uint64_t nr_before, nr_after;
};

struct scan {
	struct cli_recorded *r;
	struct cli_recorded_cache *of[UINT16_MAX + 1];
	struct around *around; /* [nr_caches]; NULL in the second pass */
	uint64_t from, to;
};

static void scan_row(struct scan *s, struct cli_recorded_cache *c, uint64_t seq, bool alloc)
{
	if (s->around && alloc) {
		struct around *a = &s->around[c - s->r->caches];

		if (seq < s->from)
			a->before[a->nr_before++ % RING] = seq;
		else if (a->nr_after < RING)
			a->after[a->nr_after++] = seq;
	}
	if (seq < c->from_seq || seq >= s->to)
		return;
	c->allocs += alloc;
	c->frees += !alloc;
}

static int scan_tape(struct tape *t, struct scan *s, struct tape_err *reterr)
{
	const struct tape_range range = { 0, s->to, 0, UINT64_MAX };
	const struct tape_batch *b;
	struct tape_reader *r;
	int rc = tape_reader_open(t, &range, 1u << TAPE_COL_OP | 1u << TAPE_COL_CACHE |
				  1u << TAPE_COL_FLAGS, &r, reterr);

	if (rc < 0)
		return rc;
	while ((rc = tape_reader_next(r, &b, reterr)) > 0)
		for (uint32_t i = 0; i < b->events; i++) {
			struct cli_recorded_cache *c = s->of[b->cache[i]];
			bool alloc = tape_op_allocates(b->op[i]);

			if (c && (alloc || tape_op_frees(b->op[i])) &&
			    !(b->flags[i] & (TAPE_F_FAILED | TAPE_F_BIG)))
				scan_row(s, c, b->first_seq + i, alloc);
		}
	tape_reader_close(r);
	return rc;
}

static void align_start(struct cli_recorded_cache *c, const struct around *a)
{
	int64_t missing = c->kernel_allocs - (int64_t)c->allocs;

	if (!missing || missing > CLI_WINDOW_MOVE_MAX || -missing > CLI_WINDOW_MOVE_MAX)
		return;
	if (missing > 0 && (uint64_t)missing <= a->nr_before)
		c->from_seq = a->before[(a->nr_before - (uint64_t)missing) % RING];
	else if (missing < 0 && (uint64_t)-missing <= a->nr_after)
		c->from_seq = a->after[-missing - 1] + 1;
	else
		return;
	c->moved = missing;
}

static bool close_to(int64_t kernel, uint64_t events)
{
	int64_t off = kernel - (int64_t)events, allowed = kernel / 500;

	return (off < 0 ? -off : off) <= (allowed > 1 ? allowed : 1);
}

static int align_windows(struct tape *t, struct scan *s, struct tape_err *reterr)
{
	struct cli_recorded *r = s->r;
	int rc;

	for (size_t i = 0; i < r->nr_caches; i++) {
		r->caches[i].from_seq = s->from;
		s->of[r->caches[i].cache] = &r->caches[i];
	}
	rc = scan_tape(t, s, reterr);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < r->nr_caches; i++) {
		align_start(&r->caches[i], &s->around[i]);
		r->caches[i].allocs = r->caches[i].frees = 0;
	}
	free(s->around);
	s->around = NULL;
	rc = scan_tape(t, s, reterr);
	for (size_t i = 0; i < r->nr_caches; i++) {
		struct cli_recorded_cache *c = &r->caches[i];

		c->comparable = close_to(c->kernel_allocs, c->allocs) &&
				close_to(c->kernel_frees, c->frees) &&
				c->moved * 2 <= c->kernel_allocs;
		r->from[i] = (struct replay_from){ c->cache, c->from_seq };
	}
	return rc;
}

int cli_recorded_load(struct tape *t, const char *from, const char *to, struct cli_recorded *ret,
		      struct tape_err *reterr)
{
	struct cli_recorded r = { 0 };
	struct scan *s = calloc(1, sizeof(*s));
	int rc = s ? load_counters(t, &r, reterr) : -ENOMEM;

	if (rc >= 0) {
		*s = (struct scan){ .r = &r, .to = UINT64_MAX };
		s->around = calloc(r.nr_caches, sizeof(*s->around));
		r.from = calloc(r.nr_caches, sizeof(*r.from));
		rc = s->around && r.from ? 0 : -ENOMEM;
	}
	if (rc >= 0 && from)
		rc = replay_window_seq(t, from, &s->from, reterr);
	if (rc >= 0 && to)
		rc = replay_window_seq(t, to, &s->to, reterr);
	if (rc >= 0)
		rc = align_windows(t, s, reterr);
	if (s)
		free(s->around);
	free(s);
	if (rc < 0) {
		cli_recorded_fini(&r);
		return rc == -ENOMEM ? tape_err_set(reterr, rc, "out of memory") : rc;
	}
	*ret = r;
	return 0;
}
