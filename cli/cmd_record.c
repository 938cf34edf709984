/* SPDX-License-Identifier: MIT */
/* slabtape record: make a tape of what a program, or the kernel, allocates and frees. */
#include "cli/verb.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "capture/record.h"
#include "capture/record_backend.h"
#include "cli/record_kernel_verb.h"

#define OUTPUT_DEFAULT "record.tape"

/* popt writes here; one verb runs per process. */
static struct {
	const char *output, *buffer, *max_size, *summary, *cache, *snapshot;
	double duration_s;
	long long max_lost;
	int force, json, quiet, native, lossless, kernel, all, pid, print_script,
		system_daemon;
} opt = {.max_lost = -1};

static const struct poptOption options[] = {
	{"output", 'o', POPT_ARG_STRING, &opt.output, 0,
	 "tape to write (default " OUTPUT_DEFAULT ")", "TAPE"},
	{"force", 'f', POPT_ARG_NONE, &opt.force, 0, "overwrite an existing tape", NULL},
	{"native", '\0', POPT_ARG_NONE, &opt.native, 0,
	 "through shared memory instead of LTTng: no daemon, least overhead", NULL},
	{"lossless", '\0', POPT_ARG_NONE, &opt.lossless, 0,
	 "hold the program up when buffers are full, instead of losing events", NULL},
	{"kernel", '\0', POPT_ARG_NONE, &opt.kernel, 0,
	 "record the running kernel's slab events: those of COMMAND's processes, or, without a "
	 "command, all",
	 NULL},
	{"all", 'a', POPT_ARG_NONE, &opt.all, 0,
	 "with --kernel: everything that happens while COMMAND runs", NULL},
	{"filter-pid", '\0', POPT_ARG_INT, &opt.pid, 0,
	 "with --kernel: only process PID, its threads and their children", "PID"},
	{"cache", '\0', POPT_ARG_STRING, &opt.cache, 0, "with --kernel: only this slab cache",
	 "NAME"},
	{"print-script", '\0', POPT_ARG_NONE, &opt.print_script, 0,
	 "with --kernel: print a shell script that records the same without slabtape", NULL},
	{"snapshot", '\0', POPT_ARG_STRING, &opt.snapshot, 0,
	 "LTTng: keep only the last SIZE of events, written when the program ends", "SIZE"},
	{"buffer", '\0', POPT_ARG_STRING, &opt.buffer, 0,
	 "memory for buffers (default: LTTng 64M a CPU, native 256M)", "SIZE"},
	{"system-daemon", '\0', POPT_ARG_NONE, &opt.system_daemon, 0,
	 "LTTng: use the session daemon that is running, not a private one", NULL},
	{"max-size", '\0', POPT_ARG_STRING, &opt.max_size, 0,
	 "stop recording when the tape is larger; what the buffers hold then still comes", "SIZE"},
	{"duration", '\0', POPT_ARG_DOUBLE, &opt.duration_s, 0, "stop recording after that time",
	 "SECONDS"},
	{"max-lost", '\0', POPT_ARG_LONGLONG, &opt.max_lost, 0, "exit 4 when more events were lost",
	 "N"},
	{"json", '\0', POPT_ARG_NONE, &opt.json, 0,
	 "print the summary as JSON on standard output, after the program's own", NULL},
	{"summary", '\0', POPT_ARG_STRING, &opt.summary, 0, "write the JSON summary to FILE",
	 "FILE"},
	{"quiet", 'q', POPT_ARG_NONE, &opt.quiet, 0, "no summary on standard error", NULL},
	POPT_TABLEEND,
};

static int run(int argc, const char **argv);

extern const struct cli_verb cli_verb_record;
const struct cli_verb cli_verb_record = {"record", "[-o TAPE] -- COMMAND [ARGUMENT...]",
					 "record what a program allocates", run, options};

/* "64M" -> bytes; NULL -> 0.  Negative: not a size. */
static int parse_size(const char *text, uint64_t *ret_bytes)
{
	static const char units[] = "KMGT";
	unsigned long long value;
	const char *unit;
	char *end;

	*ret_bytes = 0;
	if (!text)
		return 0;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *text == '-')
		return -1;
	unit = *end ? strchr(units, *end) : NULL;
	if (*end && (!unit || end[1]))
		return -1;
	for (const char *u = units; unit && u <= unit; u++)
		if (__builtin_mul_overflow(value, 1024ull, &value))
			return -1;
	*ret_bytes = value;
	return value ? 0 : -1;
}

static double per_second(const struct record_summary *s)
{
	return s->elapsed_ns ? (double)s->events * 1e9 / (double)s->elapsed_ns : 0;
}

static double bytes_per_event(const struct record_summary *s)
{
	return s->events ? (double)s->tape_bytes / (double)s->events : 0;
}

static void print_summary(const char *path, const char *backend, const struct record_summary *s)
{
	const struct heap_stats *h = &s->stats;

	fprintf(stderr,
		"%s: %" PRIu64 " events in %.2f s (%.0f/s, %s), lost %" PRIu64
		"; %.2f bytes/event, "
		"about %.0f ns/event in the program\n",
		path, s->events, (double)s->elapsed_ns / 1e9, per_second(s), backend, h->lost,
		bytes_per_event(s), s->overhead_ns);
	fprintf(stderr,
		"  allocs %" PRIu64 ", frees %" PRIu64 " (inherited %" PRIu64 "); programs %" PRIu64
		", forks %" PRIu64 "; lifetime violations outside loss %" PRIu64 "\n",
		h->allocs, h->frees, h->inherited_frees, h->execs, h->forks, h->violations);
	if (h->lost_unknown)
		fprintf(stderr, "  and an unknown number of events in %" PRIu64 " losses (table loss)\n",
			h->lost_unknown);
	if (s->stopped)
		fprintf(stderr, "  recording ended before the program: %s\n", s->stopped);
}

static json_t *summary_json(const char *path, const char *backend, const struct record_summary *s,
			    int rc, const struct tape_err *err)
{
	const struct heap_stats *h = &s->stats;
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{"events", s->events},
		{"allocs", h->allocs},
		{"frees", h->frees},
		{"inherited_frees", h->inherited_frees},
		{"orphan_frees", h->orphan_frees},
		{"inferred_allocs", h->inferred_allocs},
		{"inferred_frees", h->inferred_frees},
		{"violations", h->violations},
		{"lost", h->lost},
		{"lost_unknown", h->lost_unknown},
		{"forks", h->forks},
		{"execs", h->execs},
		{"exits", h->exits},
		{"late", h->late},
		{"elapsed_ns", s->elapsed_ns},
		{"finish_ns", s->finish_ns},
		{"tape_bytes", s->tape_bytes},
	};
	json_t *root = json_pack("{s:s, s:i, s:s, s:s}", "slabtape", SLABTAPE_VERSION, "format", 1,
				 "tape", path, "backend", backend);

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		json_object_set_new(root, counts[i].name,
				    json_integer((json_int_t)counts[i].value));
	json_object_set_new(root, "events_per_s", json_real(per_second(s)));
	json_object_set_new(root, "bytes_per_event", json_real(bytes_per_event(s)));
	json_object_set_new(root, "overhead_ns", json_real(s->overhead_ns));
	json_object_set_new(root, "stopped", s->stopped ? json_string(s->stopped) : json_null());
	json_object_set_new(root, "exit_status", json_integer(s->exit_status));
	json_object_set_new(root, "code", json_integer(tape_exit_code(rc)));
	json_object_set_new(root, "error", rc < 0 ? json_string(err->text) : json_null());
	return root;
}

static struct cli_record_report report(void)
{
	return (struct cli_record_report){.json = opt.json,
					  .quiet = opt.quiet,
					  .file = opt.summary,
					  .max_lost = opt.max_lost};
}

static int read_options(struct record_options *o)
{
	uint64_t snapshot_bytes;

	if (opt.all || opt.pid || opt.cache)
		return cli_usage("record", "--all, --filter-pid and --cache go with --kernel");
	if (parse_size(opt.buffer, &o->buffer_bytes))
		return cli_usage("record", "--buffer %s: a size such as 64M expected", opt.buffer);
	if (parse_size(opt.max_size, &o->max_bytes))
		return cli_usage("record", "--max-size %s: a size such as 64M expected",
				 opt.max_size);
	if (parse_size(opt.snapshot, &snapshot_bytes))
		return cli_usage("record", "--snapshot %s: a size such as 64M expected",
				 opt.snapshot);
	if (opt.snapshot && (opt.native || opt.lossless || opt.buffer))
		return cli_usage("record", "--snapshot: not with --native, --lossless or --buffer");
	if (opt.system_daemon && opt.native)
		return cli_usage("record", "--system-daemon: not with --native");
	if (opt.duration_s < 0 || opt.duration_s > 1e9)
		return cli_usage("record", "--duration %g: seconds expected", opt.duration_s);
	o->duration_ns = (uint64_t)(opt.duration_s * 1e9);
	o->output = opt.output ? opt.output : OUTPUT_DEFAULT;
	o->overwrite = opt.force;
	o->lossless = opt.lossless;
	o->system_daemon = opt.system_daemon;
	o->snapshot = opt.snapshot != NULL;
	if (o->snapshot)
		o->buffer_bytes = snapshot_bytes;
	o->backend =
		opt.native || !record_lttng_backend() ? &record_native : record_lttng_backend();
	return 0;
}

static int record(const struct record_options *o)
{
	const struct cli_record_report r = report();
	struct record_summary summary;
	struct tape_err err = {0};
	int rc = record_run(o, &summary, &err), exit_code = summary.exit_status;
	json_t *root;

	if (rc < 0)
		cli_fail("record", rc, &err);
	else if (!opt.quiet)
		print_summary(o->output, o->backend->name, &summary);
	if (rc >= 0 && opt.max_lost >= 0 && summary.stats.lost > (uint64_t)opt.max_lost) {
		rc = tape_err_set(&err, -TAPE_E_LOST,
				  "%s: %" PRIu64 " events lost, more than %lld; a "
				  "larger --buffer or --lossless helps",
				  o->output, summary.stats.lost, opt.max_lost);
		exit_code = cli_fail("record", rc, &err);
	}
	root = summary_json(o->output, o->backend->name, &summary, rc, &err);
	if (cli_record_write_json(root, &r) < 0 && !exit_code)
		exit_code = 7;
	json_decref(root);
	return exit_code;
}

static int read_kernel_options(struct record_kernel_options *k, const char *const *argv)
{
	struct record_options o = {0};
	int all = opt.all, pid = opt.pid, exit_code;

	k->cache = opt.cache;
	opt.all = opt.pid = 0;
	opt.cache = NULL;
	exit_code = read_options(&o);
	if (exit_code)
		return exit_code;
	if (opt.native || opt.lossless)
		return cli_usage("record", "--native and --lossless are not for --kernel");
	if (pid < 0 || (pid && (argv || all)))
		return cli_usage("record", "--filter-pid %d: a process id, and neither a command "
					   "nor --all",
				 pid);
	k->output = o.output;
	k->overwrite = o.overwrite;
	k->argv = argv;
	k->all = all;
	k->pid = pid;
	k->buffer_bytes = o.buffer_bytes;
	k->max_bytes = o.max_bytes;
	k->duration_ns = o.duration_ns;
	return 0;
}

static int record_the_kernel(const char *const *argv)
{
	struct record_kernel_options k = {0};
	const struct cli_record_report r = report();
	int exit_code;

	if (argv && !*argv)
		argv = NULL;
	exit_code = read_kernel_options(&k, argv);
	if (exit_code)
		return argv ? 125 : exit_code;
	return cli_record_kernel(&k, &r);
}

static int run(int argc, const char **argv)
{
	struct record_options o = {0};
	int own = 1, exit_code = 0;
	poptContext con;

	while (own < argc && strcmp(argv[own], "--"))
		own++;
	con = cli_parse(&cli_verb_record, own, argv, &exit_code);
	if (!con)
		return exit_code == 2 ? 125 : exit_code;
	if (own < argc) {
		o.argv = argv + own + 1;
		if (poptPeekArg(con))
			exit_code = cli_usage("record", "%s: the command stands behind --",
					      poptPeekArg(con));
	} else {
		o.argv = poptGetArgs(con);
	}
	if (opt.print_script) {
		fputs(record_kernel_script(), stdout);
		exit_code = fflush(stdout) ? 7 : 0;
	} else if (!exit_code && opt.kernel) {
		exit_code = record_the_kernel(o.argv);
	} else {
		if (!exit_code && (!o.argv || !*o.argv))
			exit_code = cli_usage("record",
					      "no command; slabtape record -o TAPE -- COMMAND");
		if (!exit_code)
			exit_code = read_options(&o);
		exit_code = exit_code ? 125 : record(&o);
	}
	poptFreeContext(con);
	return exit_code;
}
