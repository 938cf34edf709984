/* SPDX-License-Identifier: MIT */
/*
 * check_consistency all|NUMBER CASES_DIR MODEL.md STEP: replay every STEP-th script of CASES_DIR
 * on the variants (or the NUMBER-th of the registry) with everything recorded and stored, and
 * check what docs/allocator-model.md says under "Counters and transitions".
 */
#include <dirent.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/hooks.h"
#include "base/cleanup.h"
#include "capture/import.h"
#include "identities.h"
#include "replay/engine.h"
#include "store/tape.h"

#define IDENTITIES_MAX 64

static struct {
	struct identity identities[IDENTITIES_MAX];
	size_t nr_identities;
	unsigned long checked, failed;
} all;

static void expect(bool ok, const char *script, const char *variant, const char *what, int64_t want,
		   int64_t got)
{
	all.checked++;
	if (ok)
		return;
	if (++all.failed <= 30)
		fprintf(stderr, "%s on %s: %s: %lld and %lld\n", script, variant, what,
			(long long)want, (long long)got);
}

static int64_t query(sqlite3 *db, const char *sql, int64_t run)
{
	sqlite3_stmt *s;
	int64_t value = INT64_MIN;

	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK) {
		fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
		return value;
	}
	sqlite3_bind_int64(s, 1, run);
	if (sqlite3_step(s) == SQLITE_ROW)
		value = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return value;
}

/* ---- chains ---- */

struct chains {
	uint8_t *state; /* by slab */
	size_t slabs;
	int64_t broken, live[16];
};

/* Every transition of the run, in order: each begins where the slab is; a birth is the next number. */
static int follow(sqlite3 *db, int64_t run, struct chains *c)
{
	sqlite3_stmt *s;

	if (sqlite3_prepare_v2(db, "SELECT slab, from_state, to_state, inuse, objects FROM transition"
				   " WHERE run = ?", -1, &s, NULL) != SQLITE_OK)
		return -1;
	sqlite3_bind_int64(s, 1, run);
	while (sqlite3_step(s) == SQLITE_ROW) {
		size_t slab = (size_t)sqlite3_column_int64(s, 0);
		int from = state_number((const char *)sqlite3_column_text(s, 1));
		int to = state_number((const char *)sqlite3_column_text(s, 2));

		if (slab == c->slabs) {
			c->state = realloc(c->state, ++c->slabs);
			if (!c->state)
				return -1;
			c->state[slab] = 0;
		}
		c->broken += slab >= c->slabs || c->state[slab] != from || from == to ||
			     sqlite3_column_int64(s, 3) > sqlite3_column_int64(s, 4);
		if (slab < c->slabs)
			c->state[slab] = (uint8_t)to;
	}
	sqlite3_finalize(s);
	for (size_t i = 0; i < c->slabs; i++)
		c->live[c->state[i]]++;
	return 0;
}

/* Rows of `slab` that say something else than the chains. */
static int64_t slab_rows_wrong(sqlite3 *db, int64_t run, const struct chains *c)
{
	int64_t wrong = 0, rows = 0;
	sqlite3_stmt *s;

	if (sqlite3_prepare_v2(db, "SELECT slab, state, died_seq IS NOT NULL FROM slab WHERE run = ?", -1,
			       &s, NULL) != SQLITE_OK)
		return -1;
	sqlite3_bind_int64(s, 1, run);
	for (; sqlite3_step(s) == SQLITE_ROW; rows++) {
		size_t slab = (size_t)sqlite3_column_int64(s, 0);
		int state = state_number((const char *)sqlite3_column_text(s, 1));

		wrong += slab >= c->slabs || c->state[slab] != state ||
			 (state == 0) != sqlite3_column_int(s, 2);
	}
	sqlite3_finalize(s);
	return wrong + (rows != (int64_t)c->slabs);
}

static void check_chains(sqlite3 *db, int64_t run, const char *script, const struct replay_result *r)
{
	const struct alloc_cache_state *st = &r->caches[0].state;
	const char *v = r->variant->name;
	struct chains c = { 0 };
	int64_t live;

	if (follow(db, run, &c) < 0)
		expect(false, script, v, "reading transitions", 0, -1);
	live = (int64_t)c.slabs - c.live[0];
	expect(!c.broken, script, v, "broken steps of chains", 0, c.broken);
	expect(live == (int64_t)st->slabs, script, v, "slabs at the end", (int64_t)st->slabs, live);
	expect(!slab_rows_wrong(db, run, &c), script, v, "rows of `slab`", 0, 1);
	live = c.live[ALLOC_STATE_PARTIAL];
	if (!strncmp(v, "slub-", 5)) {
		live += c.live[ALLOC_STATE_EMPTY];
		expect(c.live[ALLOC_STATE_CPU_PARTIAL] == (int64_t)st->slabs_cpu_partial, script, v,
		       "slabs on per-cpu lists", (int64_t)st->slabs_cpu_partial,
		       c.live[ALLOC_STATE_CPU_PARTIAL]);
	}
	expect(live == (int64_t)st->partial, script, v, "listed slabs", (int64_t)st->partial, live);
	free(c.state);
}

/* ---- the rest ---- */

static void check_refills(sqlite3 *db, int64_t run, const char *script,
			  const struct replay_result *r)
{
	const struct replay_cache *c = &r->caches[0];
	int64_t seen = 0, want = 0;
	sqlite3_stmt *s;

	for (uint32_t i = 0; i < c->refill_entries; i++)
		want += (int64_t)c->refill_hist[i];
	if (sqlite3_prepare_v2(db, "SELECT size, sum(refills) FROM refill_agg WHERE run = ? GROUP BY size",
			       -1, &s, NULL) != SQLITE_OK)
		expect(false, script, r->variant->name, sqlite3_errmsg(db), 0, 0);
	sqlite3_bind_int64(s, 1, run);
	while (sqlite3_step(s) == SQLITE_ROW) {
		int64_t size = sqlite3_column_int64(s, 0), n = sqlite3_column_int64(s, 1);

		seen += n;
		if (size + 1 < c->refill_entries) /* larger refills count in the last entry */
			expect(n == (int64_t)c->refill_hist[size], script, r->variant->name,
			       "refills of one size", (int64_t)c->refill_hist[size], n);
	}
	sqlite3_finalize(s);
	expect(seen == want, script, r->variant->name, "refills", want, seen);
}

static void check_samples(sqlite3 *db, int64_t run, const char *script,
			  const struct replay_result *r)
{
	const struct alloc_cache_state *st = &r->caches[0].state;
	static const char *const at_end = "SELECT coalesce(sum(%s), 0) FROM sample WHERE run = ?1 AND ts ="
					  " (SELECT max(ts) FROM sample WHERE run = ?1)";
	const struct {
		const char *column;
		uint64_t want;
	} sums[] = { { "slabs", st->slabs }, { "objects_total", st->total_objects },
		     { "cached_objs", st->cached_objs }, { "full_sheaves", st->full_sheaves },
		     { "empty_sheaves", st->empty_sheaves } };

	for (size_t i = 0; i < sizeof(sums) / sizeof(*sums); i++) {
		char sql[200];
		int64_t got;

		snprintf(sql, sizeof(sql), at_end, sums[i].column);
		got = query(db, sql, run);
		expect(got == (int64_t)sums[i].want, script, r->variant->name, sums[i].column,
		       (int64_t)sums[i].want, got);
	}
}

static void check_identities(sqlite3 *db, int64_t run, const char *script, const char *variant)
{
	static struct run_counts counts;

	if (run_counts_read(db, run, &counts) < 0)
		expect(false, script, variant, "reading counts", 0, 0);
	for (size_t i = 0; i < all.nr_identities; i++) {
		const struct identity *d = &all.identities[i];
		char text[400];
		int64_t left, right;

		if (!identity_applies(d, variant))
			continue;
		snprintf(text, sizeof(text), "%s = %s", d->left, d->right);
		expect(identity_holds(d, &counts, &left, &right) == 1, script, variant, text, left, right);
	}
}

static void check(struct tape *t, const char *script, const char *variant)
{
	struct replay_config cfg = REPLAY_CONFIG_DEFAULT;
	struct replay_result *r = NULL;
	struct tape_err err = { 0 };
	sqlite3 *db = tape_db(t);
	int64_t run = 0;
	int rc;

	cfg.variant = variant;
	cfg.record = REPLAY_RECORD_ALL;
	rc = replay_run(t, &cfg, &r, &err);
	if (rc >= 0)
		rc = replay_result_store(t, r, script, &run, &err);
	if (rc < 0) {
		expect(false, script, variant, err.text, 0, rc);
	} else {
		check_chains(db, run, script, r);
		check_refills(db, run, script, r);
		check_samples(db, run, script, r);
		check_identities(db, run, script, variant);
	}
	replay_result_destroy(r);
}

/* One script on every variant from @first to @last of the registry. */
static void check_script(const char *folder, const char *name, uint32_t first, uint32_t last)
{
	TAPE_CLEANUP(tape_closep_tape) struct tape *t = NULL;
	TAPE_CLEANUP(tape_freep) char *path = NULL;
	struct tape_err err = { 0 };
	const struct alloc_variant *v;

	if (asprintf(&path, "%s/%s", folder, name) < 0 ||
	    capture_open_source(path, NULL, &t, NULL, &err) < 0) {
		expect(false, name, "all", err.text, 0, 0);
		return;
	}
	for (uint32_t i = first; i <= last && (v = alloc_variant_at(i, ALLOC_SYNC_SERIAL)); i++)
		check(t, name, v->name);
}

static int is_script(const struct dirent *d)
{
	return strstr(d->d_name, ".ops") != NULL;
}

int main(int argc, char **argv)
{
	bool every = argc == 5 && !strcmp(argv[1], "all");
	uint32_t first = argc == 5 && !every ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
	long step = argc == 5 ? strtol(argv[4], NULL, 10) : 0;
	struct dirent **scripts;
	int nr;

	if (step < 1) {
		fputs("usage: check_consistency all|NUMBER CASES_DIR MODEL.md STEP\n", stderr);
		return 2;
	}
	all.nr_identities = identities_read(argv[3], all.identities, IDENTITIES_MAX);
	nr = scandir(argv[2], &scripts, is_script, alphasort);
	if (nr < 100 || all.nr_identities < 20 || !alloc_variant_at(first, ALLOC_SYNC_SERIAL)) {
		fprintf(stderr, "%d scripts, %zu identities, or no such variant\n", nr,
			all.nr_identities);
		return 1;
	}
	for (int i = 0; i < nr; i++) {
		if (i % step == 0)
			check_script(argv[2], scripts[i]->d_name, first, every ? UINT32_MAX : first);
		free(scripts[i]);
	}
	free(scripts);
	printf("%lu checks, %lu failed\n", all.checked, all.failed);
	return all.failed != 0;
}
