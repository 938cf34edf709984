/* SPDX-License-Identifier: MIT */
#include "cli/record_kernel_verb.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/verb.h"

struct named {
	const char *name;
	uint64_t value;
};

static void set_counts(json_t *o, const struct named *counts, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		json_object_set_new(o, counts[i].name, json_integer((json_int_t)counts[i].value));
}

#define SET_COUNTS(o, counts) set_counts(o, counts, sizeof(counts) / sizeof((counts)[0]))

int cli_record_write_json(json_t *root, const struct cli_record_report *r)
{
	int rc = 0;

	if (r->file)
		rc = json_dump_file(root, r->file, JSON_INDENT(2));
	if (r->json) {
		rc |= json_dumpf(root, stdout, JSON_INDENT(2));
		putchar('\n');
		rc |= fflush(stdout);
	}
	return rc ? -1 : 0;
}

/* What the ring buffers held, without the summary's own BEGIN and END. */
static uint64_t events_read(const struct record_kernel_summary *s)
{
	uint64_t events = 0;

	for (uint32_t i = 0; i < s->cpus_nr; i++)
		events += s->cpus[i].events;
	return events;
}

static double per_second(const struct record_kernel_summary *s)
{
	return s->elapsed_ns ? (double)events_read(s) * 1e9 / (double)s->elapsed_ns : 0;
}

static double bytes_per_event(const struct record_kernel_summary *s)
{
	return s->stats.tape_events ? (double)s->tape_bytes / (double)s->stats.tape_events : 0;
}

static void print_summary(const char *path, const struct record_kernel_summary *s)
{
	const struct capture_stats *c = &s->stats;

	fprintf(stderr,
		"%s: %" PRIu64 " events in %.2f s (%.0f/s, kernel), lost %" PRIu64
		"; %.2f bytes/event\n",
		path, events_read(s), (double)s->elapsed_ns / 1e9, per_second(s), c->lost,
		bytes_per_event(s));
	fprintf(stderr,
		"  kmalloc %" PRIu64 ", kmem_cache_alloc %" PRIu64 ", kfree %" PRIu64
		", kmem_cache_free %" PRIu64 ", other %" PRIu64 "\n",
		c->kmalloc, c->cache_alloc, c->kfree, c->cache_free, c->other);
	fprintf(stderr,
		"  inferred allocs %" PRIu64 ", inferred frees %" PRIu64 ", orphan frees %" PRIu64
		", null frees %" PRIu64 ", failed allocs %" PRIu64 "\n",
		c->inferred_allocs, c->inferred_frees, c->orphan_frees, c->null_frees,
		c->failed_allocs);
	if (s->stopped)
		fprintf(stderr, "  recording ended: %s\n", s->stopped);
	if (s->stale)
		fprintf(stderr, "  removed %u tracing instance%s of recorders that were killed\n",
			s->stale, s->stale > 1 ? "s" : "");
}

static json_t *cpus_json(const struct record_kernel_summary *s)
{
	json_t *cpus = json_array();

	for (uint32_t i = 0; i < s->cpus_nr; i++) {
		const struct record_kernel_cpu *c = &s->cpus[i];
		const struct named counts[] = {
			{"cpu", c->cpu},
			{"events", c->events},
			{"read_events", c->read},
			{"entries", c->entries},
			{"overrun", c->overrun},
			{"commit_overrun", c->commit_overrun},
			{"dropped_events", c->dropped},
		};
		json_t *o = json_object();

		SET_COUNTS(o, counts);
		json_array_append_new(cpus, o);
	}
	return cpus;
}

static json_t *summary_json(const char *path, const struct record_kernel_summary *s, int rc,
			    const struct tape_err *err)
{
	const struct capture_stats *c = &s->stats;
	const struct named counts[] = {
		{"events", events_read(s)},
		{"kmalloc", c->kmalloc},
		{"kmem_cache_alloc", c->cache_alloc},
		{"kfree", c->kfree},
		{"kmem_cache_free", c->cache_free},
		{"markers", c->markers},
		{"other", c->other},
		{"tape_events", c->tape_events},
		{"inferred_allocs", c->inferred_allocs},
		{"inferred_frees", c->inferred_frees},
		{"orphan_frees", c->orphan_frees},
		{"null_frees", c->null_frees},
		{"failed_allocs", c->failed_allocs},
		{"guessed", c->guessed},
		{"unnamed", c->unnamed},
		{"lost", c->lost},
		{"elapsed_ns", s->elapsed_ns},
		{"finish_ns", s->finish_ns},
		{"tape_bytes", s->tape_bytes},
		{"stale_instances", s->stale},
	};
	json_t *root = json_pack("{s:s, s:i, s:s, s:s}", "slabtape", SLABTAPE_VERSION, "format", 1,
				 "tape", path, "backend", "tracefs");

	SET_COUNTS(root, counts);
	json_object_set_new(root, "cpus", cpus_json(s));
	json_object_set_new(root, "events_per_s", json_real(per_second(s)));
	json_object_set_new(root, "bytes_per_event", json_real(bytes_per_event(s)));
	json_object_set_new(root, "stopped", s->stopped ? json_string(s->stopped) : json_null());
	json_object_set_new(root, "exit_status", json_integer(s->exit_status));
	json_object_set_new(root, "code", json_integer(tape_exit_code(rc)));
	json_object_set_new(root, "error", rc < 0 ? json_string(err->text) : json_null());
	return root;
}

static void show_progress(void *ctx, uint64_t events, uint64_t lost, uint64_t elapsed_ns)
{
	(void)ctx;
	fprintf(stderr, "\rrecord: %.0f s, %.2f M events, lost %" PRIu64 " ",
		(double)elapsed_ns / 1e9, (double)events / 1e6, lost);
	fflush(stderr);
}

int cli_record_kernel(const struct record_kernel_options *options,
		      const struct cli_record_report *r)
{
	struct record_kernel_options o = *options;
	struct record_kernel_summary s;
	struct tape_err err = {0};
	int rc, exit_code;
	json_t *root;

	if (!r->quiet && isatty(STDERR_FILENO))
		o.progress = show_progress;
	rc = record_kernel(&o, &s, &err);
	exit_code = o.argv ? s.exit_status : 0;
	if (o.progress)
		fputc('\r', stderr);
	if (rc < 0) {
		int code = cli_fail("record", rc, &err);

		exit_code = o.argv ? exit_code : code;
		s.exit_status = exit_code;
	} else if (!r->quiet) {
		print_summary(o.output, &s);
	}
	if (rc >= 0 && r->max_lost >= 0 && s.stats.lost > (uint64_t)r->max_lost) {
		rc = tape_err_set(&err, -TAPE_E_LOST,
				  "%s: %" PRIu64 " events lost, more than %lld; a larger --buffer "
				  "helps",
				  o.output, s.stats.lost, r->max_lost);
		exit_code = cli_fail("record", rc, &err);
	}
	root = summary_json(o.output, &s, rc, &err);
	if (cli_record_write_json(root, r) < 0 && !exit_code)
		exit_code = 7;
	json_decref(root);
	free(s.cpus);
	return exit_code;
}
