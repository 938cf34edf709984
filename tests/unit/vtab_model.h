/* SPDX-License-Identifier: MIT */
/*
 * A random tape for the tests of the virtual tables and, in the same database, ordinary tables
 * with the same rows (`m` for event, `mo` for object): what SQLite says of these is right.
 */
#ifndef SLABTAPE_TESTS_VTAB_MODEL_H
#define SLABTAPE_TESTS_VTAB_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "store/tape.h"

#define EVENTS 12000
#define CPUS 6
#define CACHES 5
#define ROUNDS 300

static uint64_t seed = 20261130; /* global for the debugger */

static uint32_t rnd(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 20) % below;
}

struct fixture {
	struct tape *t;
	sqlite3 *db;
};

static void must(int rc, const struct tape_err *err)
{
	if (rc < 0)
		fail_msg("%s", err->text);
}

static void exec(sqlite3 *db, const char *sql)
{
	char *message = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s: %s", sql, message);
}

/* ---- a random tape and its rows ---- */

struct live {
	uint64_t object, address;
	uint32_t slot;
	uint16_t cache;
};

struct maker {
	struct live live[512];
	uint32_t nr;
	uint64_t objects, ts;
	uint8_t slot_used[512];
};

static void describe(struct tape *t)
{
	struct tape_err err = { 0 };

	for (uint16_t cpu = 0; cpu < CPUS; cpu++)
		must(tape_define_cpu(t, cpu, cpu / 2, &err), &err);
	for (uint16_t cache = 0; cache < CACHES; cache++) {
		struct tape_cache c = { .id = cache, .object_size = 64u << cache, .coverage = 1 };

		snprintf(c.name, sizeof(c.name), "cache-%d", cache);
		must(tape_define_cache(t, &c, &err), &err);
	}
	for (uint32_t site = 1; site < 8; site++)
		must(tape_define_site(t, site, 0x1000 * site, "fn", NULL, site, &err), &err);
}

static struct tape_event next_alloc(struct maker *m)
{
	struct tape_event ev = tape_event_blank();
	struct live *l = &m->live[m->nr++];

	l->object = m->objects++;
	l->address = UINT64_C(0xffff888000000000) + 64u * (uint64_t)rnd(100000);
	l->cache = (uint16_t)rnd(CACHES);
	for (l->slot = 0; m->slot_used[l->slot]; l->slot++)
		;
	m->slot_used[l->slot] = 1;
	ev.op = rnd(20) ? TAPE_OP_ALLOC : TAPE_OP_SHEAF_ALLOC;
	ev.size = 1 + rnd(64u << l->cache);
	ev.object = l->object;
	ev.address = l->address;
	ev.cache = l->cache;
	ev.slot = l->slot;
	ev.node_req = rnd(4) ? TAPE_NODE_NONE : (int16_t)rnd(3);
	ev.mem_node = (int16_t)rnd(3);
	return ev;
}

static struct tape_event next_free(struct maker *m)
{
	struct tape_event ev = tape_event_blank();
	uint32_t i = rnd(8) ? rnd(m->nr) : rnd(m->nr / 4); /* some live long */

	ev.op = rnd(10) ? TAPE_OP_FREE : TAPE_OP_FREE_RCU;
	ev.object = m->live[i].object;
	ev.address = m->live[i].address;
	ev.cache = m->live[i].cache;
	ev.slot = m->live[i].slot;
	m->slot_used[ev.slot] = 0;
	m->live[i] = m->live[--m->nr];
	return ev;
}

/* A free of an object from before the recording. */
static struct tape_event next_orphan(struct maker *m)
{
	struct tape_event ev = tape_event_blank();

	ev.op = TAPE_OP_FREE;
	ev.object = m->objects++;
	ev.address = UINT64_C(0xffff888000000000) + ev.object;
	ev.cache = (uint16_t)rnd(CACHES);
	ev.flags = TAPE_F_ORPHAN;
	return ev;
}

static struct tape_event next_event(struct maker *m)
{
	struct tape_event ev;

	if (!rnd(50)) {
		ev = tape_event_blank();
		ev.op = TAPE_OP_FLUSH;
		if (rnd(2))
			ev.cache = (uint16_t)rnd(CACHES);
		ev.arg = (int64_t)rnd(100) - 50;
	} else if (!rnd(60)) {
		ev = next_orphan(m);
	} else if (m->nr < 10 || (m->nr < 500 && rnd(5) < 3)) {
		ev = next_alloc(m);
	} else {
		ev = next_free(m);
	}
	m->ts += rnd(4) ? rnd(2000) : 0;
	ev.ts = ev.ts_lo = ev.ts_hi = m->ts;
	if (!rnd(30) && ev.object != TAPE_NO_OBJECT) {
		ev.flags |= TAPE_F_INFERRED;
		ev.ts_lo -= ev.ts_lo > 100 ? 100 : 0;
		ev.ts_hi += 10;
	}
	ev.cpu = (uint16_t)rnd(CPUS);
	ev.site = rnd(8);
	ev.tid = (int32_t)rnd(5);
	ev.gfp = rnd(2) ? TAPE_GFP_KERNEL : TAPE_GFP_NOWAIT;
	ev.ctx = (uint8_t)rnd(TAPE_CTX_MAX);
	return ev;
}

static void model_create(sqlite3 *db)
{
	exec(db, "CREATE TEMP TABLE m(seq INTEGER, ts INTEGER, cpu INTEGER, node INTEGER, op TEXT,"
		 " cache INTEGER, object INTEGER, size INTEGER, node_req INTEGER, mem_node INTEGER,"
		 " site INTEGER, tid INTEGER, gfp INTEGER, ctx TEXT, bulk INTEGER, arg INTEGER,"
		 " flags INTEGER, address INTEGER, slot INTEGER, ts_lo INTEGER, ts_hi INTEGER)");
}

/* The table object by definition: the alloc and the free with the same id. */
static const char model_objects[] =
	"CREATE INDEX temp.m_object ON m(object);"
	"CREATE TEMP TABLE mo AS SELECT ids.object AS object, ifnull(a.cache, f.cache) AS cache,"
	" a.size AS size, a.seq AS alloc_seq, a.ts AS alloc_ts, a.cpu AS alloc_cpu,"
	" a.site AS alloc_site, f.seq AS free_seq, f.ts AS free_ts, f.cpu AS free_cpu,"
	" f.site AS free_site, f.ts - a.ts AS lifetime_ns, a.cpu <> f.cpu AS remote,"
	" CASE WHEN a.mem_node >= 0 THEN a.mem_node <> f.node WHEN f.mem_node >= 0 THEN"
	" f.mem_node <> f.node ELSE a.node <> f.node END AS cross_node,"
	" ifnull(a.flags & 1, 0) | ifnull(f.flags & 1, 0) AS inferred, a.node AS alloc_node,"
	" f.node AS free_node, nullif(coalesce(a.mem_node, f.mem_node), -1) AS mem_node,"
	" f.seq IS NOT NULL AS freed"
	" FROM (SELECT DISTINCT object FROM m WHERE object IS NOT NULL ORDER BY object) ids"
	" LEFT JOIN m a ON a.object = ids.object AND a.op IN ('alloc', 'sheaf_alloc')"
	" LEFT JOIN m f ON f.object = ids.object AND f.op IN ('free', 'free_rcu')";

static void bind_or_null(sqlite3_stmt *s, int at, int64_t value, bool null)
{
	if (null)
		sqlite3_bind_null(s, at);
	else
		sqlite3_bind_int64(s, at, value);
}

static void model_add(sqlite3_stmt *s, uint64_t seq, const struct tape_event *ev)
{
	const int64_t numbers[] = { (int64_t)seq, (int64_t)ev->ts, ev->cpu, ev->cpu / 2, 0, ev->cache,
		(int64_t)ev->object, (int64_t)ev->size, ev->node_req, ev->mem_node, ev->site,
		ev->tid, ev->gfp, 0, ev->bulk, ev->arg, ev->flags, (int64_t)ev->address, ev->slot,
		(int64_t)ev->ts_lo, (int64_t)ev->ts_hi };

	sqlite3_reset(s);
	for (int i = 0; i < 21; i++)
		sqlite3_bind_int64(s, i + 1, numbers[i]);
	sqlite3_bind_text(s, 5, tape_op_name(ev->op), -1, SQLITE_STATIC);
	bind_or_null(s, 6, ev->cache, ev->cache == TAPE_NO_CACHE);
	bind_or_null(s, 7, (int64_t)ev->object, ev->object == TAPE_NO_OBJECT);
	bind_or_null(s, 19, ev->slot, ev->slot == TAPE_NO_SLOT);
	sqlite3_bind_null(s, 14);
	if (ev->ctx)
		sqlite3_bind_text(s, 14, tape_ctx_name(ev->ctx), -1, SQLITE_STATIC);
	assert_int_equal(sqlite3_step(s), SQLITE_DONE);
}

static int setup(void **state)
{
	struct fixture *f = test_calloc(1, sizeof(*f));
	struct maker *m = test_calloc(1, sizeof(*m));
	struct tape_event *events = test_calloc(EVENTS, sizeof(*events));
	struct tape_err err = { 0 };
	sqlite3_stmt *s;

	must(tape_create(NULL, false, &f->t, &err), &err);
	describe(f->t);
	for (uint32_t i = 0; i < EVENTS; i++) {
		events[i] = next_event(m);
		must(tape_writer_append(f->t, &events[i], NULL, &err), &err);
		if (!rnd(500))
			must(tape_writer_flush(f->t, &err), &err);
	}
	must(tape_writer_finish(f->t, &err), &err);
	f->db = tape_db(f->t);
	model_create(f->db);
	exec(f->db, "BEGIN");
	sqlite3_prepare_v2(f->db, "INSERT INTO m VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", -1,
			   &s, NULL);
	for (uint32_t i = 0; i < EVENTS; i++)
		model_add(s, i, &events[i]);
	sqlite3_finalize(s);
	exec(f->db, "COMMIT");
	exec(f->db, model_objects);
	test_free(events);
	test_free(m);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tape_close(f->t);
	test_free(f);
	return 0;
}

#endif
