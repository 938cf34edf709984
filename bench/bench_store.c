/* SPDX-License-Identifier: MIT */
/*
 * Rates and sizes of the codec and of the tape on synthetic events.
 *
 *	bench_store [EVENTS [LIVE [CPUS [TAPE]]]]
 *
 * CPU time of this thread, minimum of ROUNDS passes; the codec runs over CHUNKS different
 * chunks so that the branch predictor cannot learn one of them.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/objects_reader.h"
#include "store/tape.h"
#include "traces/chunk.h"
#include "traces/freeset.h"

#define CHUNKS 8u
#define ROUNDS 5u

struct synth {
	uint64_t seed, ts, next;
	uint32_t cpus, live_max, live_nr;
	uint64_t *object, *address; /* by slot */
	uint16_t *cache;	    /* by slot */
	uint32_t *live;		    /* slots */
	struct tape_freeset free;
};

static uint64_t rnd(struct synth *s)
{
	s->seed ^= s->seed << 13;
	s->seed ^= s->seed >> 7;
	s->seed ^= s->seed << 17;
	return s->seed;
}

static void *xcalloc(size_t nr, size_t bytes)
{
	void *memory = calloc(nr, bytes);

	if (!memory)
		abort();
	return memory;
}

static void synth_init(struct synth *s, uint32_t live_max, uint32_t cpus)
{
	*s = (struct synth){ .seed = 88172645463325252u, .cpus = cpus, .live_max = live_max };
	s->object = xcalloc(live_max, sizeof(*s->object));
	s->address = xcalloc(live_max, sizeof(*s->address));
	s->cache = xcalloc(live_max, sizeof(*s->cache));
	s->live = xcalloc(live_max, sizeof(*s->live));
	if (tape_freeset_init(&s->free, live_max) < 0)
		abort();
	for (uint32_t i = 0; i < live_max; i++) {
		tape_freeset_add(&s->free, i);
		s->address[i] = UINT64_C(0xffff888100000000) + rnd(s) % (live_max * 4) * 64;
	}
}

static void synth_fini(struct synth *s)
{
	free(s->object);
	free(s->address);
	free(s->cache);
	free(s->live);
	tape_freeset_fini(&s->free);
}

static void synth_alloc(struct synth *s, struct tape_event *ev)
{
	static const uint64_t sizes[12] = { 8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096 };

	ev->op = TAPE_OP_ALLOC;
	ev->slot = (uint32_t)tape_freeset_min(&s->free);
	tape_freeset_remove(&s->free, ev->slot);
	ev->object = s->next++;
	s->live[s->live_nr++] = ev->slot;
	s->object[ev->slot] = ev->object;
	s->cache[ev->slot] = (uint16_t)(1 + rnd(s) % 12);
	ev->cache = s->cache[ev->slot];
	ev->size = sizes[ev->cache - 1] - rnd(s) % 3;
	ev->site = 1 + ev->cache * 2 + (uint32_t)(rnd(s) % 2);
	ev->gfp = TAPE_GFP_KERNEL;
}

static void synth_free(struct synth *s, struct tape_event *ev)
{
	/* half the frees are recent */
	uint32_t recent = s->live_nr < 64 ? s->live_nr : 64;
	uint32_t pick = rnd(s) % 2 ? (uint32_t)(rnd(s) % s->live_nr) :
				     s->live_nr - 1 - (uint32_t)(rnd(s) % recent);

	ev->op = TAPE_OP_FREE;
	ev->slot = s->live[pick];
	s->live[pick] = s->live[--s->live_nr];
	ev->object = s->object[ev->slot];
	ev->cache = s->cache[ev->slot];
	ev->site = 100 + ev->cache;
	tape_freeset_add(&s->free, ev->slot);
}

/* ts, cpu, 12 classes, object; exponential-ish gaps of 1 us in the mean. */
static struct tape_event synth_event(struct synth *s)
{
	struct tape_event ev = tape_event_blank();
	uint64_t bits = rnd(s);

	s->ts += (bits & 1023) * (1 + (uint64_t)__builtin_ctzll(bits | 1u << 20));
	ev.ts = ev.ts_lo = ev.ts_hi = s->ts;
	ev.cpu = (uint16_t)(rnd(s) % s->cpus);
	ev.tid = 1000 + ev.cpu;
	if (s->live_nr == 0 || (s->live_nr < s->live_max && rnd(s) % 2))
		synth_alloc(s, &ev);
	else
		synth_free(s, &ev);
	ev.address = s->address[ev.slot];
	return ev;
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct column_figures {
	double encode_s, decode_s;
	size_t bytes, raw_bytes;
};

/* One pass over one batch: encode every column, decode it into @out. */
static void codec_pass(struct tape_codec *c, const struct tape_batch *b, struct tape_batch *out,
		       struct column_figures figures[TAPE_COL_MAX])
{
	static const enum tape_col order[] = { TAPE_COL_OP, TAPE_COL_CPU, TAPE_COL_TS,
		TAPE_COL_SITE, TAPE_COL_OBJECT, TAPE_COL_SLOT, TAPE_COL_SIZE, TAPE_COL_CACHE,
		TAPE_COL_NODE_REQ, TAPE_COL_MEM_NODE, TAPE_COL_TID, TAPE_COL_GFP, TAPE_COL_CTX,
		TAPE_COL_BULK, TAPE_COL_ARG, TAPE_COL_FLAGS, TAPE_COL_ADDRESS, TAPE_COL_TS_LO,
		TAPE_COL_TS_HI };

	out->events = b->events;
	out->valid = 0;
	for (size_t i = 0; i < TAPE_COL_MAX; i++) {
		struct column_figures *f = &figures[order[i]];
		const void *data;
		size_t bytes, raw_bytes;
		double begin = cpu_seconds(), middle;
		void *copy;

		if (tape_column_encode(c, order[i], b, &data, &bytes, &raw_bytes) < 0)
			abort();
		middle = cpu_seconds();
		f->encode_s += middle - begin;
		copy = xcalloc(1, bytes + 1);
		if (bytes)
			memcpy(copy, data, bytes);
		f->bytes += bytes;
		f->raw_bytes += raw_bytes;
		begin = cpu_seconds();
		if (tape_column_decode(c, order[i], copy, bytes, out, NULL) < 0)
			abort();
		f->decode_s += cpu_seconds() - begin;
		free(copy);
	}
}

static void figures_min(struct column_figures *best, const struct column_figures *now, bool first)
{
	for (int col = 0; col < TAPE_COL_MAX; col++) {
		double encode_s = best[col].encode_s, decode_s = best[col].decode_s;

		best[col] = now[col];
		if (!first && encode_s < best[col].encode_s)
			best[col].encode_s = encode_s;
		if (!first && decode_s < best[col].decode_s)
			best[col].decode_s = decode_s;
	}
}

static void figures_print(const struct column_figures *f, double events)
{
	double encode_s = 0, decode_s = 0, replay_s = 0, bytes = 0;

	printf("%-9s %10s %10s %10s %10s\n", "column", "raw B/ev", "B/ev", "encode ns", "decode ns");
	for (int col = 0; col < TAPE_COL_MAX; col++) {
		printf("%-9s %10.3f %10.3f %10.2f %10.2f\n", tape_column_name((enum tape_col)col),
		       (double)f[col].raw_bytes / events, (double)f[col].bytes / events,
		       f[col].encode_s * 1e9 / events, f[col].decode_s * 1e9 / events);
		encode_s += f[col].encode_s;
		decode_s += f[col].decode_s;
		bytes += (double)f[col].bytes;
		if (TAPE_COLS_REPLAY & 1u << col)
			replay_s += f[col].decode_s;
	}
	printf("%-9s %10s %10.3f %10.2f %10.2f  (replay columns %.2f)\n", "all", "", bytes / events,
	       encode_s * 1e9 / events, decode_s * 1e9 / events, replay_s * 1e9 / events);
}

static void bench_codec(uint32_t live, uint32_t cpus)
{
	struct tape_codec *c = tape_codec_create();
	struct tape_batch *chunks[CHUNKS], *out = tape_batch_create(TAPE_CHUNK_EVENTS);
	struct column_figures best[TAPE_COL_MAX] = { { 0 } };
	struct synth s;

	synth_init(&s, live, cpus);
	for (uint32_t i = 0; i < CHUNKS; i++) {
		chunks[i] = tape_batch_create(TAPE_CHUNK_EVENTS);
		while (chunks[i]->events < TAPE_CHUNK_EVENTS) {
			struct tape_event ev = synth_event(&s);

			tape_batch_push(chunks[i], &ev);
		}
	}
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct column_figures now[TAPE_COL_MAX] = { { 0 } };

		for (uint32_t i = 0; i < CHUNKS; i++)
			codec_pass(c, chunks[i], out, now);
		figures_min(best, now, round == 0);
	}
	printf("codec: %u chunks of %u events, %u live, %u CPUs, best of %u\n", CHUNKS,
	       TAPE_CHUNK_EVENTS, live, cpus, ROUNDS);
	figures_print(best, (double)CHUNKS * TAPE_CHUNK_EVENTS);
	for (uint32_t i = 0; i < CHUNKS; i++)
		tape_batch_destroy(chunks[i]);
	tape_batch_destroy(out);
	tape_codec_destroy(c);
	synth_fini(&s);
}

/* ---- the tape ---- */

#define PRODUCED 4096u

static void fail(const char *what, const struct tape_err *err)
{
	fprintf(stderr, "%s: %s\n", what, err->text);
	exit(1);
}

/* Every thread of the process. */
static double process_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double wall_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void rate_print(const char *what, uint64_t events, double cpu_s, double wall_s)
{
	printf("%-22s %8.1f ns/event CPU, %8.1f ns wall, %6.2f M events/s CPU\n", what,
	       cpu_s * 1e9 / (double)events, wall_s * 1e9 / (double)events,
	       (double)events / cpu_s / 1e6);
}

/* Append @events; the time to make them up is measured apart and not counted. */
static void bench_append(struct tape *t, struct synth *s, uint64_t events)
{
	static struct tape_event made[PRODUCED];
	struct tape_err err = { 0 };
	double cpu_s = 0, wall_s = 0, made_s = 0, all_s = process_seconds();

	for (uint64_t at = 0; at < events; at += PRODUCED) {
		double cpu = cpu_seconds(), wall;

		for (uint32_t i = 0; i < PRODUCED; i++)
			made[i] = synth_event(s);
		made_s += cpu_seconds() - cpu;
		cpu = cpu_seconds();
		wall = wall_seconds();
		for (uint32_t i = 0; i < PRODUCED; i++)
			if (tape_writer_append(t, &made[i], NULL, &err) < 0)
				fail("append", &err);
		cpu_s += cpu_seconds() - cpu;
		wall_s += wall_seconds() - wall;
	}
	cpu_s -= cpu_seconds();
	wall_s -= wall_seconds();
	if (tape_writer_finish(t, &err) < 0)
		fail("finish", &err);
	rate_print("append, calling thread", events, cpu_s + cpu_seconds(), wall_s + wall_seconds());
	all_s = process_seconds() - all_s - made_s;
	rate_print("append, both threads", events, all_s, wall_s + wall_seconds());
}

static void bench_read(struct tape *t, const char *what, uint32_t columns, uint64_t events)
{
	struct tape_reader *r;
	const struct tape_batch *b;
	struct tape_err err = { 0 };
	double cpu = cpu_seconds(), wall = wall_seconds();
	uint64_t seen = 0;

	if (tape_reader_open(t, &TAPE_RANGE_ALL, columns, &r, &err) < 0)
		fail("open", &err);
	while (tape_reader_next(r, &b, &err) == 1)
		seen += b->events;
	tape_reader_close(r);
	if (seen != events)
		fail("read", &err);
	rate_print(what, events, cpu_seconds() - cpu, wall_seconds() - wall);
}

static void bench_objects(struct tape *t)
{
	struct tape_objects_reader *r;
	const struct tape_object_batch *b;
	struct tape_err err = { 0 };
	double cpu = cpu_seconds(), wall = wall_seconds();
	uint64_t seen = 0;

	if (tape_objects_open(t, 0, UINT64_MAX, 1u << TAPE_COL_TS | 1u << TAPE_COL_CPU, &r, &err) < 0)
		fail("objects", &err);
	while (tape_objects_next(r, &b, &err) == 1)
		seen += b->objects;
	tape_objects_close(r);
	rate_print("objects (per object)", seen, cpu_seconds() - cpu, wall_seconds() - wall);
}

static void bench_tape(const char *path, uint64_t events, uint32_t live, uint32_t cpus)
{
	struct tape *t;
	struct tape_totals totals;
	struct tape_err err = { 0 };
	struct synth s;
	FILE *f;

	events = (events + PRODUCED - 1) / PRODUCED * PRODUCED;
	synth_init(&s, live, cpus);
	if (tape_create(path, true, &t, &err) < 0)
		fail("create", &err);
	bench_append(t, &s, events);
	if (tape_totals_get(t, &totals, &err) < 0)
		fail("totals", &err);
	for (uint32_t round = 0; round < 3; round++) {
		bench_read(t, "read replay columns", TAPE_COLS_REPLAY, events);
		bench_read(t, "read ts, cpu, op", 1u << TAPE_COL_TS | 1u << TAPE_COL_CPU | 1u << TAPE_COL_OP,
			   events);
	}
	bench_objects(t);
	tape_close(t);
	f = fopen(path, "rb");
	fseek(f, 0, SEEK_END);
	printf("tape: %.1f MB, %.3f bytes/event (columns %.3f)\n", (double)ftell(f) / 1e6,
	       (double)ftell(f) / (double)events, (double)totals.bytes / (double)events);
	fclose(f);
	synth_fini(&s);
}

int main(int argc, char **argv)
{
	uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 4000000;
	const char *path = argc > 4 ? argv[4] : "bench_store.tape";
	uint32_t live = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 10000;
	uint32_t cpus = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 16;

	bench_codec(live, cpus);
	bench_tape(path, events, live, cpus);
	if (argc <= 4)
		remove(path);
	return 0;
}
