/* SPDX-License-Identifier: MIT */
/* slabtape import: any source that capture/ reads becomes a tape. */
#include "cli/open_source.h"
#include "cli/verb.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/import.h"
#include "store/tape.h"

/* popt writes here; one verb runs per process. */
static struct {
	const char *output, *infer, *direct_map_base;
	struct capture_options capture;
	long long max_lost;
	int force, json, quiet;
} opt = { .max_lost = -1 };

static const struct poptOption options[] = {
	{ "output", 'o', POPT_ARG_STRING, &opt.output, 0, "tape to write", "TAPE" },
	{ "force", 'f', POPT_ARG_NONE, &opt.force, 0, "overwrite an existing tape", NULL },
	{ "infer", '\0', POPT_ARG_STRING, &opt.infer, 0,
	  "where replays place events the tracer did not see", "late|early|none" },
	{ "slab-before", '\0', POPT_ARG_STRING, &opt.capture.slab_before, 0,
	  "dump of /sys/kernel/slab at the start of the window", "FILE" },
	{ "slab-after", '\0', POPT_ARG_STRING, &opt.capture.slab_after, 0,
	  "dump of /sys/kernel/slab at the end of the window", "FILE" },
	{ "zoneinfo", '\0', POPT_ARG_STRING, &opt.capture.zoneinfo, 0,
	  "copy of /proc/zoneinfo: node boundaries", "FILE" },
	{ "direct-map-base", '\0', POPT_ARG_STRING, &opt.direct_map_base, 0,
	  "address of physical address 0 (default 0xffff888000000000)", "ADDRESS" },
	{ "topology", '\0', POPT_ARG_STRING, &opt.capture.topology, 0, "node of each CPU",
	  "0-3:0,4-7:1" },
	{ "release", '\0', POPT_ARG_STRING, &opt.capture.release, 0,
	  "kernel release when the source names none", "RELEASE" },
	{ "max-lost", '\0', POPT_ARG_LONGLONG, &opt.max_lost, 0,
	  "exit 4 when more events were lost", "N" },
	{ "json", '\0', POPT_ARG_NONE, &opt.json, 0, "print the summary as JSON", NULL },
	{ "quiet", 'q', POPT_ARG_NONE, &opt.quiet, 0, "no summary, no progress", NULL },
	POPT_TABLEEND,
};

static int run(int argc, const char **argv);

extern const struct cli_verb cli_verb_import;
const struct cli_verb cli_verb_import = { "import", "[-o TAPE] SRC",
	"make a tape from a recording", run, options };

static void show_progress(void *ctx, uint64_t done, uint64_t total)
{
	(void)ctx;
	if (total)
		fprintf(stderr, "\rimport: %3" PRIu64 " %%", done * 100 / total);
	else
		fprintf(stderr, "\rimport: %" PRIu64 " MB", done >> 20);
	fflush(stderr);
}

/* "DIR/name.dat.zst" -> "name.tape" in the current directory; malloc'ed. */
static char *default_output(const char *source)
{
	static const char *const cut[] = { ".zst", ".gz", ".xz", ".dat", ".txt", ".ops" };
	size_t len = strlen(source);
	const char *name;
	char *path;

	while (len > 1 && source[len - 1] == '/')
		len--;
	name = source + len;
	while (name > source && name[-1] != '/')
		name--;
	len -= (size_t)(name - source);
	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
		size_t n = strlen(cut[i]);

		if (len > n && !memcmp(name + len - n, cut[i], n))
			len -= n;
	}
	return asprintf(&path, "%.*s.tape", (int)len, name) < 0 ? NULL : path;
}

static int read_options(void)
{
	static const char *const infer[] = { [CAPTURE_INFER_LATE] = "late",
					     [CAPTURE_INFER_EARLY] = "early",
					     [CAPTURE_INFER_NONE] = "none" };
	char *end;

	for (size_t i = 0; opt.infer && i < sizeof(infer) / sizeof(infer[0]); i++) {
		if (!strcmp(opt.infer, infer[i])) {
			opt.capture.infer = (enum capture_infer)i;
			break;
		}
		if (i + 1 == sizeof(infer) / sizeof(infer[0]))
			return cli_usage("import", "--infer %s: late, early or none", opt.infer);
	}
	if (opt.direct_map_base) {
		errno = 0;
		opt.capture.direct_map_base = strtoull(opt.direct_map_base, &end, 0);
		if (errno || *end || end == opt.direct_map_base)
			return cli_usage("import", "--direct-map-base %s: no address",
					 opt.direct_map_base);
	}
	if (isatty(STDERR_FILENO) && !opt.quiet)
		opt.capture.progress = show_progress;
	return 0;
}

static void print_summary(const char *path, const struct capture_stats *s)
{
	uint64_t read = s->kmalloc + s->cache_alloc + s->kfree + s->cache_free + s->markers +
			s->script_ops;
	double seconds = (double)s->elapsed_ns / 1e9;

	fprintf(stderr, "%s%s: %" PRIu64 " events from %s (%.2f M/s), %" PRIu64 " rows\n",
		opt.capture.progress ? "\r" : "", path, read, capture_format_name(s->format),
		seconds > 0 ? (double)read / seconds / 1e6 : 0, s->tape_events);
	if (s->format == CAPTURE_FORMAT_OPS)
		return;
	fprintf(stderr,
		"  kmalloc %" PRIu64 ", kmem_cache_alloc %" PRIu64 ", kfree %" PRIu64
		", kmem_cache_free %" PRIu64 ", markers %" PRIu64 ", other %" PRIu64 "\n",
		s->kmalloc, s->cache_alloc, s->kfree, s->cache_free, s->markers, s->other);
	fprintf(stderr,
		"  inferred allocs %" PRIu64 ", inferred frees %" PRIu64 ", orphan frees %" PRIu64
		", null frees %" PRIu64 ", failed allocs %" PRIu64 "\n",
		s->inferred_allocs, s->inferred_frees, s->orphan_frees, s->null_frees,
		s->failed_allocs);
	fprintf(stderr,
		"  caches: guessed for %" PRIu64 " allocs, unknown for %" PRIu64 "; lost %" PRIu64,
		s->guessed, s->unnamed, s->lost);
	if (s->lost_unknown)
		fprintf(stderr, ", and an unknown number in %" PRIu64 " losses", s->lost_unknown);
	fputc('\n', stderr);
}

static int print_json(const char *path, const struct capture_stats *s)
{
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{ "kmalloc", s->kmalloc },
		{ "kmem_cache_alloc", s->cache_alloc },
		{ "kfree", s->kfree },
		{ "kmem_cache_free", s->cache_free },
		{ "markers", s->markers },
		{ "other", s->other },
		{ "script_ops", s->script_ops },
		{ "tape_events", s->tape_events },
		{ "inferred_allocs", s->inferred_allocs },
		{ "inferred_frees", s->inferred_frees },
		{ "orphan_frees", s->orphan_frees },
		{ "null_frees", s->null_frees },
		{ "failed_allocs", s->failed_allocs },
		{ "guessed", s->guessed },
		{ "unnamed", s->unnamed },
		{ "lost", s->lost },
		{ "lost_unknown", s->lost_unknown },
		{ "elapsed_ns", s->elapsed_ns },
	};
	json_t *root = json_pack("{s:s, s:i, s:s, s:s}", "slabtape", SLABTAPE_VERSION, "format", 1,
				 "source", capture_format_name(s->format), "tape", path);
	int rc;

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		json_object_set_new(root, counts[i].name,
				    json_integer((json_int_t)counts[i].value));
	rc = json_dumpf(root, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(root);
	return rc || fflush(stdout) ? -1 : 0;
}

static int import_to(const char *source, const char *path)
{
	struct capture_stats stats;
	struct tape_err err = { 0 };
	struct tape *t = NULL;
	int rc = cli_check_output("--output", path, source, &err);

	if (rc == 0)
		rc = tape_create(path, opt.force, &t, &err);
	if (rc < 0)
		return cli_fail("import", rc, &err);
	rc = capture_import(source, &opt.capture, t, &stats, &err);
	if (rc < 0) {
		/* Nothing that could be taken for a tape of this source stays behind. */
		tape_discard(t);
		if (opt.capture.progress)
			fputc('\n', stderr);
		return cli_fail("import", rc, &err);
	}
	tape_close(t);
	if (!opt.quiet)
		print_summary(path, &stats);
	if (opt.json && print_json(path, &stats) < 0)
		return cli_fail("import", -TAPE_E_IO, NULL);
	/* a loss of an unknown number took one event at least */
	if (opt.max_lost >= 0 && stats.lost + stats.lost_unknown > (uint64_t)opt.max_lost) {
		tape_err_set(&err, -TAPE_E_LOST, "at least %" PRIu64 " events lost (%s): more than "
			     "%lld", stats.lost + stats.lost_unknown, source, opt.max_lost);
		return cli_fail("import", -TAPE_E_LOST, &err);
	}
	return 0;
}

static int run(int argc, const char **argv)
{
	int exit_code = 0;
	poptContext con = cli_parse(&cli_verb_import, argc, argv, &exit_code);
	TAPE_CLEANUP(tape_freep) char *made = NULL;
	const char *source, *path;

	if (!con)
		return exit_code;
	source = poptGetArg(con);
	if (!source || poptPeekArg(con)) {
		exit_code = cli_usage("import", "one SRC expected; see slabtape import --help");
		goto out;
	}
	exit_code = read_options();
	if (exit_code)
		goto out;
	path = opt.output;
	if (!path && !strcmp(source, "-")) {
		exit_code = cli_usage("import", "-o TAPE is needed when reading standard input");
		goto out;
	}
	if (!path)
		path = made = default_output(source);
	exit_code = path ? import_to(source, path) : cli_fail("import", -ENOMEM, NULL);
out:
	poptFreeContext(con);
	return exit_code;
}
