/* SPDX-License-Identifier: MIT */
/*
 * SQL over a big tape: rates, times, memory, size.  Not a test: it prints, with the machine.
 *
 *	bench_sql [EVENTS [TAPE]]	default 50 million events in a file that is removed again
 *
 * The tape is synthetic: 16 CPUs on 2 nodes, 12 caches, up to 200,000 live objects, one free in
 * four wherever the CPU happens to be, addresses taken again last in, first out.  The plain table for comparison holds the first 2 million of the same events,
 * indexed on ts and object, and is compared per event.
 */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "store/run_buffer.h"
#include "store/tape.h"
#include "store/vtab.h"
#include "traces/objects.h"

#define LIVE_MAX 200000u
#define CPUS 16u
#define CACHES 12u
#define PLAIN_ROWS 2000000u
#define TRANSITIONS 5000000u
#define RUNS 5

static uint64_t seed = 1;

static uint32_t rnd(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 32) * below >> 32);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench_sql: %s: %s\n", what, why);
	exit(1);
}

static void must(int rc, const struct tape_err *err)
{
	if (rc < 0)
		die("tape", err->text);
}

/* ---- the tape ---- */

#define RECENT 64u

struct object {
	uint64_t address;
	uint16_t cpu;
};

/* Freed addresses of a cache, taken again last in, first out, as allocators do. */
struct stack {
	uint64_t *addresses;
	uint32_t nr;
	uint64_t fresh; /* next address never used */
};

struct maker {
	struct tape_objects *map;
	struct object *live; /* in no order */
	uint32_t nr;
	uint64_t ts;
	uint16_t cpu, cache; /* what the CPU is busy with */
	struct stack free[CACHES + 1];
};

static void maker_init(struct maker *m)
{
	memset(m, 0, sizeof(*m));
	m->map = tape_objects_create(false);
	m->live = malloc(LIVE_MAX * sizeof(*m->live));
	for (uint32_t c = 0; c <= CACHES; c++) {
		m->free[c].addresses = malloc(LIVE_MAX * sizeof(uint64_t));
		m->free[c].fresh = UINT64_C(0xffff888000000000) + ((uint64_t)c << 32);
		if (!m->free[c].addresses)
			die("making the tape", "out of memory");
	}
	if (!m->map || !m->live)
		die("making the tape", "out of memory");
}

static void maker_fini(struct maker *m)
{
	for (uint32_t c = 0; c <= CACHES; c++)
		free(m->free[c].addresses);
	free(m->live);
	tape_objects_destroy(m->map);
}

static struct tape_event next_alloc(struct maker *m)
{
	struct tape_event ev = tape_event_blank();
	uint16_t cache = m->cache;
	struct stack *stack = &m->free[cache];
	struct tape_live *live;

	ev.op = TAPE_OP_ALLOC;
	ev.cache = cache;
	ev.size = 32u << (cache % 6);
	ev.cpu = m->cpu;
	ev.address = stack->nr ? stack->addresses[--stack->nr] : stack->fresh;
	if (ev.address == stack->fresh)
		stack->fresh += ev.size;
	live = tape_objects_add(m->map, 0, ev.address);
	if (!live)
		die("making the tape", "out of memory");
	live->cache = cache;
	ev.object = live->object;
	ev.slot = live->slot;
	m->live[m->nr++] = (struct object){ ev.address, ev.cpu };
	return ev;
}

/* Three frees in four end one of the youngest objects. */
static struct tape_event next_free(struct maker *m)
{
	struct tape_event ev = tape_event_blank();
	uint32_t i = rnd(4) && m->nr > RECENT ? m->nr - 1 - rnd(RECENT) : rnd(m->nr);
	struct tape_live *live = tape_objects_find(m->map, 0, m->live[i].address);

	ev.op = TAPE_OP_FREE;
	ev.cache = live->cache;
	ev.address = live->address;
	ev.object = live->object;
	ev.slot = live->slot;
	ev.cpu = rnd(4) ? m->live[i].cpu : m->cpu;
	if (tape_objects_remove(m->map, live, 0, 0) < 0)
		die("making the tape", "out of memory");
	m->free[ev.cache].addresses[m->free[ev.cache].nr++] = ev.address;
	m->live[i] = m->live[--m->nr];
	return ev;
}

static struct tape_event next_event(struct maker *m)
{
	bool alloc = m->nr < LIVE_MAX / 2 || (m->nr < LIVE_MAX && rnd(2));
	struct tape_event ev;

	if (!rnd(16))
		m->cpu = (uint16_t)rnd(CPUS);
	if (!rnd(4) || !m->cache)
		m->cache = (uint16_t)(1 + rnd(CACHES));
	ev = alloc ? next_alloc(m) : next_free(m);
	m->ts += 100 + rnd(400);
	ev.ts = ev.ts_lo = ev.ts_hi = m->ts;
	ev.site = 1 + ev.cache * 4u + (alloc ? rnd(8) == 0 : 2);
	ev.tid = 100 + ev.cpu;
	ev.gfp = TAPE_GFP_KERNEL;
	return ev;
}

static void describe(struct tape *t)
{
	struct tape_err err = { 0 };

	for (uint16_t cpu = 0; cpu < CPUS; cpu++)
		must(tape_define_cpu(t, cpu, cpu >= CPUS / 2, &err), &err);
	for (uint16_t cache = 0; cache <= CACHES; cache++) {
		struct tape_cache c = { .id = cache, .object_size = 64, .coverage = 1 };

		snprintf(c.name, sizeof(c.name), "cache-%u", cache);
		must(tape_define_cache(t, &c, &err), &err);
	}
}

static void make_tape(const char *path, uint64_t events)
{
	struct maker m;
	struct tape_err err = { 0 };
	struct tape *t;
	double begin = now();

	maker_init(&m);
	must(tape_create(path, true, &t, &err), &err);
	describe(t);
	for (uint64_t i = 0; i < events; i++) {
		struct tape_event ev = next_event(&m);

		must(tape_writer_append(t, &ev, NULL, &err), &err);
	}
	must(tape_writer_finish(t, &err), &err);
	tape_close(t);
	maker_fini(&m);
	printf("%-34s %8.2f s  %.1f M events/s\n", "making the tape", now() - begin,
	       (double)events / (now() - begin) / 1e6);
}

/* A run of TRANSITIONS rows: slabs that walk through the states, 16 CPUs, 12 caches. */
static void make_run(const char *path)
{
	struct tape_run run = { .variant = "null", .mode = "ordered" };
	struct tape_run_buffer *b;
	struct tape_err err = { 0 };
	double begin = now();
	struct tape *t;

	must(tape_open(path, TAPE_READ_WRITE, &t, &err), &err);
	must(tape_run_buffer_create(&b), &err);
	for (uint32_t i = 0; i < TRANSITIONS; i++) {
		uint32_t slab = rnd(50000), step = rnd(5);
		struct tape_transition tr = { .seq = 9ull * i, .ts = 2700ull * i, .slab = slab,
			.inuse = rnd(33), .objects = 32, .cpu = (uint16_t)rnd(CPUS),
			.node = (uint16_t)(slab & 1), .cache = (uint16_t)(1 + slab % CACHES),
			.from = (uint8_t)step, .to = (uint8_t)(step + 1), .op = (uint8_t)(step & 1) };

		must(tape_run_buffer_transition(b, &tr), &err);
	}
	must(tape_run_begin(t, &run, &err), &err);
	must(tape_run_buffer_write(t, run.id, b, &err), &err);
	must(tape_run_end(t, run.id, 0, 0, -1, &err), &err);
	printf("%-34s %8.2f s  %.1f M rows/s, %.2f bytes/row\n", "recording a run's transitions",
	       now() - begin, TRANSITIONS / (now() - begin) / 1e6,
	       (double)tape_run_buffer_bytes(b) / TRANSITIONS);
	tape_run_buffer_destroy(b);
	tape_close(t);
}

/* ---- measuring ---- */

static int64_t run_sql(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *s;
	int64_t first = 0;
	int rows = 0, step;

	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
		die(sql, sqlite3_errmsg(db));
	while ((step = sqlite3_step(s)) == SQLITE_ROW)
		if (!rows++)
			first = sqlite3_column_int64(s, 0);
	if (step != SQLITE_DONE)
		die(sql, sqlite3_errmsg(db));
	sqlite3_finalize(s);
	return first;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double cpu_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Median and spread of @runs in wall time; the rate is rows per second of the one core's time. */
static void measure(sqlite3 *db, const char *name, const char *sql, uint64_t rows, int runs)
{
	double wall[RUNS], cpu[RUNS];

	for (int i = 0; i < runs; i++) {
		double wall_begin = now(), cpu_begin = cpu_now();

		run_sql(db, sql);
		wall[i] = now() - wall_begin;
		cpu[i] = cpu_now() - cpu_begin;
	}
	qsort(wall, (size_t)runs, sizeof(*wall), by_value);
	qsort(cpu, (size_t)runs, sizeof(*cpu), by_value);
	printf("%-34s %8.2f ms (%.2f .. %.2f, %d runs), cpu %.2f ms", name, wall[runs / 2] * 1e3,
	       wall[0] * 1e3, wall[runs - 1] * 1e3, runs, cpu[runs / 2] * 1e3);
	if (rows)
		printf("  %.1f M rows/s", (double)rows / cpu[runs / 2] / 1e6);
	putchar('\n');
}

static uint64_t file_bytes(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : (uint64_t)st.st_size;
}

/* Bytes per event of an ordinary table with the same columns and two indexes. */
static double plain_bytes(const char *tape_name)
{
	TAPE_CLEANUP(tape_freep) char *path = NULL;
	sqlite3 *db;
	char *sql;
	double bytes;

	if (asprintf(&path, "%s.plain", tape_name) < 0)
		die("plain table", "out of memory");
	unlink(path);
	if (sqlite3_open(path, &db) != SQLITE_OK || vtab_register(db) != SQLITE_OK)
		die(path, sqlite3_errmsg(db));
	sql = sqlite3_mprintf("ATTACH %Q AS tape;"
			      "CREATE TABLE event AS SELECT seq, ts, cpu, node, op, cache, object, size,"
			      " node_req, mem_node, site, tid, gfp, ctx, bulk, arg, flags, address FROM tape.event WHERE seq < %u;"
			      "CREATE INDEX by_ts ON event(ts); CREATE INDEX by_object ON event(object)",
			      tape_name, PLAIN_ROWS);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		die("plain table", sqlite3_errmsg(db));
	sqlite3_free(sql);
	sqlite3_close(db);
	bytes = (double)file_bytes(path) / PLAIN_ROWS;
	unlink(path);
	return bytes;
}

static void measure_run(sqlite3 *db)
{
	measure(db, "transition_agg by states, cache",
		"SELECT from_state, to_state, cache, sum(transitions) FROM transition_agg WHERE run = 1"
		" GROUP BY 1, 2, 3", TRANSITIONS, RUNS);
	measure(db, "transition by states",
		"SELECT from_state, to_state, count(*) FROM transition WHERE run = 1 GROUP BY 1, 2",
		TRANSITIONS, 3);
	measure(db, "transitions of one slab",
		"SELECT * FROM transition WHERE run = 1 AND slab = 77", TRANSITIONS, RUNS);
	measure(db, "transitions of 10 ms",
		"SELECT * FROM transition WHERE run = 1 AND ts BETWEEN 5000000000 AND 5010000000", 0, RUNS);
}

static void measure_all(sqlite3 *db, uint64_t events)
{
	int64_t object = run_sql(db, "SELECT max(object) / 2 FROM event WHERE seq > (SELECT max(last_seq)"
				     " - 1000 FROM chunk)");
	char sql[200];

	measure(db, "event_agg by cpu: count, sum(size)",
		"SELECT cpu, sum(events), sum(bytes) FROM event_agg GROUP BY cpu", events, RUNS);
	measure(db, "event_agg by cpu where alloc",
		"SELECT cpu, sum(events), sum(bytes) FROM event_agg WHERE op = 'alloc' GROUP BY cpu",
		events, RUNS);
	measure(db, "event_agg by cache, site",
		"SELECT cache, site, sum(events), sum(bytes) FROM event_agg GROUP BY cache, site", events,
		3);
	measure(db, "chunk_stat by cpu",
		"SELECT cpu, sum(events), sum(bytes) FROM chunk_stat GROUP BY cpu", 0, RUNS);
	measure(db, "event by cpu: count, sum(size)",
		"SELECT cpu, count(*), sum(size) FROM event GROUP BY cpu", events, 1);
	measure(db, "event where cache=5: count, sum",
		"SELECT count(*), sum(size) FROM event WHERE cache = 5 AND op = 'alloc'", events, 3);
	measure(db, "10 ms of the middle",
		"WITH mid(t) AS (SELECT max(ts_max) / 2 FROM chunk) SELECT count(*), sum(size) FROM event"
		" WHERE ts >= (SELECT t FROM mid) AND ts < (SELECT t FROM mid) + 10000000", 0, RUNS);
	snprintf(sql, sizeof(sql), "SELECT * FROM event WHERE object = %" PRId64, object);
	measure(db, "events of an object by id", sql, 0, RUNS);
	snprintf(sql, sizeof(sql), "SELECT * FROM object WHERE object = %" PRId64, object);
	measure(db, "an object's row by id", sql, 0, RUNS);
	measure(db, "object_agg cpu x cpu",
		"SELECT alloc_cpu, free_cpu, sum(objects) FROM object_agg GROUP BY 1, 2", events / 2, 3);
}

int main(int argc, char **argv)
{
	uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 50000000;
	const char *path = argc > 2 ? argv[2] : "bench_sql.tape";
	struct rusage usage;
	struct utsname host;
	struct tape_err err = { 0 };
	struct tape *t;
	double tape_bytes, plain;

	uname(&host);
	printf("%s %s, %ld CPUs, SQLite %s; %" PRIu64 " events\n", host.sysname, host.machine,
	       sysconf(_SC_NPROCESSORS_ONLN), sqlite3_libversion(), events);
	make_tape(path, events);
	tape_bytes = (double)file_bytes(path) / (double)events;
	make_run(path);
	must(tape_open(path, TAPE_READ, &t, &err), &err);
	measure_all(tape_db(t), events);
	measure_run(tape_db(t));
	getrusage(RUSAGE_SELF, &usage);
	printf("%-34s %8.0f MB\n", "peak memory", (double)usage.ru_maxrss / 1024);
	plain = plain_bytes(path);
	printf("%-34s %8.2f bytes/event\n", "tape", tape_bytes);
	printf("%-34s %8.2f bytes/event  (%.1f x the tape)\n", "plain table, two indexes", plain,
	       plain / tape_bytes);
	tape_close(t);
	if (argc <= 2)
		unlink(path);
	return 0;
}
