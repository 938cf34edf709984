/* SPDX-License-Identifier: MIT */
/*
 * Rates of importing: reading alone (a trace.dat decoded to fields in memory) and a finished tape.
 *
 *	bench_import SOURCE [SOURCE...]
 *
 * CPU time of this process, minimum and median of ROUNDS passes.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture/import.h"
#include "capture/input.h"
#include "capture/tracedat_events.h"
#include "capture/tracedat_pages.h"
#include "store/tape.h"

#define ROUNDS 5

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void report(const char *what, uint64_t events, double *seconds)
{
	qsort(seconds, ROUNDS, sizeof(*seconds), by_value);
	printf("%-8s %10llu events  %7.3f s  %6.2f M/s (median %.2f)\n", what,
	       (unsigned long long)events, seconds[0], (double)events / seconds[0] / 1e6,
	       (double)events / seconds[ROUNDS / 2] / 1e6);
}

/* Every field of every event of all CPUs; the sum keeps the compiler from leaving work out. */
static uint64_t read_streams(const struct tracedat *td, struct td_events *ev, uint64_t *sum)
{
	uint64_t events = 0;

	for (size_t i = 0; i < td->cpus_nr; i++) {
		struct td_stream s;

		if (td_stream_init(&s, td, &td->cpus[i], NULL) < 0)
			exit(3);
		while (td_stream_next(&s, NULL) > 0) {
			uint16_t id;
			struct td_format *f;

			memcpy(&id, s.event, sizeof(id));
			f = &ev->format[ev->by_id[id]];
			if (s.event_bytes < f->min_bytes)
				exit(3);
			for (int field = 0; field < TD_FIELD_MAX; field++)
				*sum += td_field_get(f, (enum td_field_name)field, s.event);
			*sum += s.ts;
			events++;
		}
		td_stream_fini(&s);
	}
	return events;
}

static int bench_reading(const char *file)
{
	static struct td_events events;
	struct capture_input *in = NULL;
	struct tracedat *td = NULL;
	struct tape_err err = { 0 };
	double seconds[ROUNDS];
	uint64_t nr = 0, sum = 0;
	int rc = capture_input_open(file, &in, &err);

	if (rc >= 0)
		rc = tracedat_open(in, &td, &err);
	if (rc >= 0)
		rc = td_events_read(td, &events, &err);
	for (int i = 0; rc >= 0 && i < ROUNDS; i++) {
		double start = cpu_seconds();

		nr = read_streams(td, &events, &sum);
		seconds[i] = cpu_seconds() - start;
	}
	if (rc >= 0)
		report(sum ? "read" : "empty", nr, seconds);
	else
		fprintf(stderr, "%s\n", err.text);
	tracedat_close(td);
	capture_input_close(in);
	return rc;
}

static int bench_import(const char *source, enum capture_format *ret_format)
{
	struct capture_stats stats = { 0 };
	double seconds[ROUNDS];
	uint64_t nr = 0;

	for (int i = 0; i < ROUNDS; i++) {
		struct tape_err err = { 0 };
		struct tape *t = NULL;
		double start = cpu_seconds();

		if (capture_open_source(source, NULL, &t, &stats, &err) < 0) {
			fprintf(stderr, "%s\n", err.text);
			return -1;
		}
		seconds[i] = cpu_seconds() - start;
		tape_close(t);
	}
	nr = stats.kmalloc + stats.cache_alloc + stats.kfree + stats.cache_free + stats.markers +
	     stats.other + stats.script_ops;
	report("import", nr, seconds);
	*ret_format = stats.format;
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		enum capture_format format;
		char file[4096];

		printf("%s\n", argv[i]);
		if (bench_import(argv[i], &format) < 0)
			return 3;
		snprintf(file, sizeof(file), "%s/trace.dat", argv[i]);
		if (format == CAPTURE_FORMAT_TRACEDAT &&
		    bench_reading(strstr(argv[i], ".dat") ? argv[i] : file) < 0)
			return 3;
	}
	return argc > 1 ? 0 : 2;
}
