/* SPDX-License-Identifier: MIT */
/*
 * bench_replay TAPE [VARIANT [REPEATS]]: events per second of an ordered replay from a tape,
 * decoding included, on one core; the share of decoding; and the ratio to a bare loop over the
 * same events decoded in memory that only keeps the slot table.  CPU time of this process, best
 * and median of the repeats.  Behind it what each kind of recording (--record) adds to that
 * replay, interleaved in the same run, and what storing the rows takes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/cleanup.h"
#include "replay/engine.h"
#include "store/tape.h"

#define REPEATS_MAX 100
/* What the ordered engine reads of a recording without bulk calls. */
#define BENCH_COLUMNS (1u << TAPE_COL_OP | 1u << TAPE_COL_CPU | 1u << TAPE_COL_CACHE | \
		       1u << TAPE_COL_SLOT | 1u << TAPE_COL_NODE_REQ | 1u << TAPE_COL_GFP | \
		       1u << TAPE_COL_FLAGS)

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(const char *what, double *seconds, int nr, uint64_t events)
{
	qsort(seconds, (size_t)nr, sizeof(*seconds), by_value);
	printf("%-28s best %8.2f M events/s  median %8.2f  (%.1f ns/event)\n", what,
	       (double)events / seconds[0] / 1e6, (double)events / seconds[nr / 2] / 1e6,
	       seconds[0] * 1e9 / (double)events);
}

/* Decode every column a replay needs; the time is the decoder's alone. */
static int decode_once(struct tape *t, uint64_t *ret_events, struct tape_err *err)
{
	const struct tape_range all = TAPE_RANGE_ALL;
	const struct tape_batch *b;
	struct tape_reader *r;
	int rc = tape_reader_open(t, &all, BENCH_COLUMNS, &r, err);

	if (rc < 0)
		return rc;
	*ret_events = 0;
	while ((rc = tape_reader_next(r, &b, err)) > 0)
		*ret_events += b->events;
	tape_reader_close(r);
	return rc;
}

/* The bare loop's input: what it reads of each event. */
struct bare {
	uint32_t *slot;
	uint8_t *op;
	uint64_t events;
	uint32_t slots;
};

static int bare_load(struct tape *t, struct bare *bare, uint64_t events, struct tape_err *err)
{
	const struct tape_range all = TAPE_RANGE_ALL;
	const struct tape_batch *b;
	struct tape_reader *r;
	int rc;

	*bare = (struct bare){ .slot = malloc(events * sizeof(*bare->slot)), .op = malloc(events) };
	if (!bare->slot || !bare->op)
		return tape_err_set(err, -ENOMEM, "out of memory");
	rc = tape_reader_open(t, &all, BENCH_COLUMNS, &r, err);
	if (rc < 0)
		return rc;
	while ((rc = tape_reader_next(r, &b, err)) > 0)
		for (uint32_t i = 0; i < b->events; i++) {
			uint32_t slot = b->slot[i];

			if (slot == TAPE_NO_SLOT)
				continue;
			bare->slots = slot >= bare->slots ? slot + 1 : bare->slots;
			bare->slot[bare->events] = slot;
			bare->op[bare->events++] = b->op[i];
		}
	tape_reader_close(r);
	return rc;
}

static uint64_t bare_loop(const struct bare *b, uint64_t *table)
{
	uint64_t live = 0;

	for (uint64_t i = 0; i < b->events; i++)
		switch (b->op[i]) {
		case TAPE_OP_ALLOC:
			table[b->slot[i]] = i + 1;
			live++;
			break;
		case TAPE_OP_FREE:
			live -= table[b->slot[i]] != 0;
			table[b->slot[i]] = 0;
			break;
		default:
			break;
		}
	return live;
}

/* What is recorded; the last one is stored too. */
static const struct {
	const char *name;
	uint32_t record;
	bool stored;
} kinds[] = {
	{ "record none", 0, false },
	{ "record transitions", REPLAY_RECORD_TRANSITIONS, false },
	{ "record refills", REPLAY_RECORD_REFILLS, false },
	{ "record samples", REPLAY_RECORD_SAMPLES, false },
	{ "record locks", REPLAY_RECORD_LOCKS, false },
	{ "record all", REPLAY_RECORD_ALL, false },
	{ "record all, stored", REPLAY_RECORD_ALL, true },
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* One replay of kind @k, its rows written to @results. */
static int record_once(struct tape *t, struct tape *results, const char *variant, size_t k,
		       double *ret_s, struct tape_err *err)
{
	struct replay_config cfg = REPLAY_CONFIG_DEFAULT;
	struct replay_result *r = NULL;
	double begin = now_s();
	int64_t run;
	int rc;

	cfg.variant = variant;
	cfg.record = kinds[k].record;
	cfg.record_limit = REPLAY_RECORD_LIMIT;
	rc = replay_run(t, &cfg, &r, err);
	if (rc >= 0 && kinds[k].stored)
		rc = replay_result_store(results, r, NULL, &run, err);
	*ret_s = now_s() - begin;
	replay_result_destroy(r);
	return rc;
}

static int record_costs(struct tape *t, const char *variant, int repeats, uint64_t events,
			struct tape_err *err)
{
	TAPE_CLEANUP(tape_closep_tape) struct tape *results = NULL;
	static double seconds[KINDS][REPEATS_MAX];
	int rc = tape_create(NULL, false, &results, err);

	if (rc >= 0)
		rc = tape_writer_finish(results, err);
	for (int i = 0; i < repeats && rc >= 0; i++)
		for (size_t k = 0; k < KINDS && rc >= 0; k++)
			rc = record_once(t, results, variant, k, &seconds[k][i], err);
	for (size_t k = 0; k < KINDS && rc >= 0; k++) {
		report(kinds[k].name, seconds[k], repeats, events);
		if (k)
			printf("%-28s %.2f x none (medians)\n", "", seconds[k][repeats / 2] /
								   seconds[0][repeats / 2]);
	}
	return rc;
}

static int bench(struct tape *t, const char *variant, int repeats, struct tape_err *err)
{
	struct replay_config cfg = REPLAY_CONFIG_DEFAULT;
	double decode[REPEATS_MAX], replay[REPEATS_MAX], loop[REPEATS_MAX], ops[REPEATS_MAX];
	struct bare bare = { 0 };
	uint64_t events = 0, live = 0, *table = NULL;
	int rc = 0;

	cfg.variant = variant;
	for (int i = 0; i < repeats && rc >= 0; i++) {
		struct replay_result *r = NULL;
		double begin = now_s();

		rc = decode_once(t, &events, err);
		decode[i] = now_s() - begin;
		begin = now_s();
		if (rc >= 0)
			rc = replay_run(t, &cfg, &r, err);
		replay[i] = now_s() - begin;
		ops[i] = r ? (double)r->elapsed_ns / 1e9 : 0;
		replay_result_destroy(r);
	}
	if (rc >= 0)
		rc = bare_load(t, &bare, events, err);
	if (rc >= 0 && !(table = calloc(bare.slots + 1u, sizeof(*table))))
		rc = tape_err_set(err, -ENOMEM, "out of memory");
	for (int i = 0; i < repeats && rc >= 0; i++) {
		double begin = now_s();

		live += bare_loop(&bare, table);
		loop[i] = now_s() - begin;
	}
	if (rc >= 0) {
		report("decode", decode, repeats, events);
		report("bare loop, decoded", loop, repeats, events);
		report("operations (wall clock)", ops, repeats, events);
		report("replay, decode included", replay, repeats, events);
		printf("replay / bare loop: %.1f  (%" PRIu64 " events, checksum %" PRIu64 ")\n",
		       replay[0] / loop[0], events, live);
	}
	free(bare.slot);
	free(bare.op);
	free(table);
	return rc < 0 ? rc : record_costs(t, variant, repeats, events, err);
}

int main(int argc, char **argv)
{
	TAPE_CLEANUP(tape_closep_tape) struct tape *t = NULL;
	const char *variant = argc > 2 ? argv[2] : "slub-6.1";
	int repeats = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 5;
	struct tape_err err = { 0 };
	struct utsname host;
	int rc;

	if (argc < 2 || repeats < 1 || repeats > REPEATS_MAX) {
		fprintf(stderr, "usage: bench_replay TAPE [VARIANT [REPEATS 1..%d]]\n", REPEATS_MAX);
		return 2;
	}
	if (!uname(&host))
		printf("%s %s, variant %s, %d repeats, CPU time\n", host.sysname, host.machine,
		       variant, repeats);
	rc = tape_open(argv[1], TAPE_READ, &t, &err);
	if (rc >= 0)
		rc = bench(t, variant, repeats, &err);
	if (rc < 0)
		fprintf(stderr, "bench_replay: %s\n", err.text);
	return tape_exit_code(rc);
}
