/* SPDX-License-Identifier: MIT */
/*
 * bench_sim [EVENTS [ROUNDS [PATTERN VARIANT PACE]]]: what one event costs the simulated engine on
 * one core at 16, 64 and 192 virtual CPUs, with the same number of events in all.
 *
 * Tapes are generated (PATTERN).  In each round the three machines take turns, so that they see the
 * same noise; CPU time of this process, best and median.  "all" is a whole replay; "events" is
 * without decoding the tape, making the machine and warming, which a replay of no operation
 * (--count-to 0ns) takes just before.  The fingerprint is that of the
 * result without times: equal programs print equal fingerprints.
 * Without a PATTERN: a few patterns and variants.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/gen.h"
#include "replay/engine.h"
#include "store/tape.h"

#define ROUNDS_MAX 50
#define MACHINES 3

static const struct {
	uint32_t cpus, nodes;
} machines[MACHINES] = { { 16, 1 }, { 64, 2 }, { 192, 2 } };

struct job {
	const char *pattern, *variant;
	enum replay_pace pace;
};

struct figures {
	double run_ns[ROUNDS_MAX], all_ns[ROUNDS_MAX];
	uint64_t ops, fingerprint;
};

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* FNV-1a of the result without its times. */
static uint64_t fingerprint_of(const struct replay_result *r, struct tape *t)
{
	json_t *j = replay_result_json(r, t, false);
	TAPE_CLEANUP(tape_freep) char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	uint64_t hash = 0xcbf29ce484222325u;

	for (const char *at = text; at && *at; at++)
		hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
	json_decref(j);
	return hash;
}

static int make_tape(const char *pattern, int machine, uint64_t events, struct tape **ret_tape,
		     struct tape_err *err)
{
	const struct gen_config cfg = { .pattern = pattern, .cpus = machines[machine].cpus,
					.nodes = machines[machine].nodes, .events = events,
					.seed = 1 };
	char path[] = "/tmp/bench_sim-XXXXXX";
	int fd = mkstemp(path), rc;

	if (fd < 0)
		return tape_err_set(err, -TAPE_E_IO, "cannot make %s", path);
	close(fd);
	rc = tape_create(path, true, ret_tape, err);
	if (rc >= 0)
		rc = gen_run(*ret_tape, &cfg, err);
	unlink(path); /* it lives as long as it is open */
	return rc;
}

/* CPU time of one replay up to @count_to (NULL: the end). */
static int timed_run(struct tape *t, const struct job *job, const char *count_to,
		     struct replay_result **ret_result, double *ret_ns, struct tape_err *err)
{
	struct replay_config cfg = REPLAY_CONFIG_DEFAULT;
	double begin_ns = now_ns();
	int rc;

	cfg.mode = REPLAY_SIMULATED;
	cfg.variant = job->variant;
	cfg.pace = job->pace;
	cfg.count_to = count_to;
	rc = replay_run(t, &cfg, ret_result, err);
	*ret_ns = now_ns() - begin_ns;
	return rc;
}

static int run_once(struct tape *t, const struct job *job, struct figures *f, int round,
		    struct tape_err *err)
{
	struct replay_result *r = NULL;
	double setup_ns, all_ns;
	int rc = timed_run(t, job, "0ns", &r, &setup_ns, err);

	replay_result_destroy(r);
	r = NULL;
	if (rc >= 0)
		rc = timed_run(t, job, NULL, &r, &all_ns, err);
	if (rc < 0)
		return rc;
	f->ops = r->ops;
	f->all_ns[round] = all_ns / (double)r->ops;
	f->run_ns[round] = (all_ns - setup_ns) / (double)r->ops;
	f->fingerprint = fingerprint_of(r, t);
	replay_result_destroy(r);
	return 0;
}

static void report(const struct job *job, struct figures *f, int rounds)
{
	for (int i = 0; i < MACHINES; i++) {
		qsort(f[i].run_ns, (size_t)rounds, sizeof(double), by_value);
		qsort(f[i].all_ns, (size_t)rounds, sizeof(double), by_value);
		printf("%-10s %-18s %-6s %4u CPUs  events %6.1f ns (median %6.1f) = %5.2f M/s, "
		       "x%.2f of 16  all %6.1f ns (median %6.1f) = %5.2f M/s  %016" PRIx64 "\n",
		       job->pattern, job->variant, replay_pace_name(job->pace), machines[i].cpus,
		       f[i].run_ns[0], f[i].run_ns[rounds / 2], 1e3 / f[i].run_ns[0],
		       f[i].run_ns[0] / f[0].run_ns[0], f[i].all_ns[0], f[i].all_ns[rounds / 2],
		       1e3 / f[i].all_ns[0], f[i].fingerprint);
	}
}

static int bench(const struct job *job, uint64_t events, int rounds, struct tape_err *err)
{
	struct tape *tapes[MACHINES] = { NULL };
	static struct figures f[MACHINES];
	int rc = 0;

	for (int i = 0; i < MACHINES && rc >= 0; i++)
		rc = make_tape(job->pattern, i, events, &tapes[i], err);
	for (int round = 0; round < rounds && rc >= 0; round++)
		for (int i = 0; i < MACHINES && rc >= 0; i++)
			rc = run_once(tapes[i], job, &f[i], round, err);
	if (rc >= 0)
		report(job, f, rounds);
	for (int i = 0; i < MACHINES; i++)
		tape_close(tapes[i]);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct job jobs[] = {
		{ "mmap1", "slub-7.2-parking", REPLAY_PACE_TRACE },
		{ "tcp-rr", "slub-6.1", REPLAY_PACE_TRACE },
		{ "hackbench", "slub-6.1", REPLAY_PACE_TRACE },
		{ "uniform", "slub-7.2", REPLAY_PACE_ASAP },
		{ "thrash", "slub-2.6.30", REPLAY_PACE_ASAP },
	};
	uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 5, rc = 0;
	struct tape_err err = { 0 };
	struct job one;

	if (!events || rounds < 1 || rounds > ROUNDS_MAX || (argc > 3 && argc != 6)) {
		fprintf(stderr, "usage: bench_sim [EVENTS [ROUNDS 1..%d [PATTERN VARIANT "
			"trace|asap]]]\n", ROUNDS_MAX);
		return 2;
	}
	if (argc == 6) {
		one = (struct job){ argv[3], argv[4], strcmp(argv[5], "asap") ? REPLAY_PACE_TRACE :
										REPLAY_PACE_ASAP };
		rc = bench(&one, events, rounds, &err);
	}
	for (size_t i = 0; argc < 6 && i < sizeof(jobs) / sizeof(*jobs) && rc >= 0; i++)
		rc = bench(&jobs[i], events, rounds, &err);
	if (rc < 0)
		fprintf(stderr, "bench_sim: %s\n", err.text);
	return tape_exit_code(rc);
}
