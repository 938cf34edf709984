/* SPDX-License-Identifier: MIT */
/* slabtape calibrate: this host's cost table, for `replay --mode simulated --costs`. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "replay/calibrate.h"

static struct {
	const char *out;
	int overwrite, rounds, json, csv;
} opt = { .out = "costs.ini", .rounds = 41 };

static const struct poptOption options[] = {
	{ "output", 'o', POPT_ARG_STRING, &opt.out, 0, "cost table to write (default costs.ini)",
	  "FILE" },
	{ "overwrite", 'f', POPT_ARG_NONE, &opt.overwrite, 0, "replace an existing file", NULL },
	{ "rounds", '\0', POPT_ARG_INT, &opt.rounds, 0,
	  "rounds of each measurement, the smallest counts (default 41)", "N" },
	{ "json", '\0', POPT_ARG_NONE, &opt.json, 0, "one JSON object", NULL },
	{ "csv", '\0', POPT_ARG_NONE, &opt.csv, 0, "one line per cost", NULL },
	POPT_TABLEEND,
};

static int run(int argc, const char **argv);

extern const struct cli_verb cli_verb_calibrate;
const struct cli_verb cli_verb_calibrate = { "calibrate", "[OPTION...]",
	"measure this host's costs for the simulated engine", run, options };

static void print_json(const struct replay_calibration *r, const struct replay_costs *standard)
{
	json_t *j = json_object(), *how = json_object();

	for (size_t i = 0; replay_costs_key(i); i++)
		json_object_set_new(how, replay_costs_key(i), json_string(r->how[i]));
	json_object_set_new(j, "slabtape", json_string(SLABTAPE_VERSION));
	json_object_set_new(j, "format", json_integer(1));
	json_object_set_new(j, "file", json_string(opt.out));
	json_object_set_new(j, "cpus", json_integer(r->cpus));
	json_object_set_new(j, "nodes", json_integer(r->nodes));
	json_object_set_new(j, "lock_pair_ns", json_real(r->lock_pair_ns));
	json_object_set_new(j, "costs", replay_costs_json(&r->costs));
	json_object_set_new(j, "default", replay_costs_json(standard));
	json_object_set_new(j, "how", how);
	json_dumpf(j, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(j);
}

static int print_rows(const struct replay_calibration *r, const struct replay_costs *standard,
		      enum output_format format)
{
	struct output *o = output_begin(stdout, format, 4,
					(const char *[]){ "cost", "here", "default", "how" });

	if (!o)
		return -ENOMEM;
	for (size_t i = 0; replay_costs_key(i); i++) {
		output_text(o, replay_costs_key(i), strlen(replay_costs_key(i)));
		output_real(o, replay_costs_value(&r->costs, i));
		output_real(o, replay_costs_value(standard, i));
		output_text(o, r->how[i], strlen(r->how[i]));
	}
	return output_end(o);
}

static int print(const struct replay_calibration *r)
{
	struct replay_costs standard;
	int rc;

	replay_costs_default(&standard);
	if (opt.json) {
		print_json(r, &standard);
		return 0;
	}
	rc = print_rows(r, &standard, opt.csv ? OUTPUT_CSV : OUTPUT_TABLE);
	if (!opt.csv)
		printf("\n%u CPUs on %u nodes; an uncontended lock and its release: %.1f ns\n"
		       "written to %s: slabtape replay TAPE --mode simulated --costs %s\n",
		       r->cpus, r->nodes, r->lock_pair_ns, opt.out, opt.out);
	return rc;
}

static int calibrate(void)
{
	TAPE_CLEANUP(tape_fclosep) FILE *out = NULL;
	struct replay_calibration r;
	struct tape_err err = { 0 };
	int rc;

	/* Before the measurement: "e" and "x" keep a file that is there. */
	out = fopen(opt.out, opt.overwrite ? "we" : "wxe");
	if (!out)
		rc = tape_err_set(&err, errno == EEXIST ? -TAPE_E_USAGE : -TAPE_E_IO, "%s: %s%s", opt.out,
				  strerror(errno), errno == EEXIST ? "; -f replaces it" : "");
	else
		rc = replay_calibrate((uint32_t)opt.rounds, &r, &err);
	if (rc >= 0 && (rc = replay_calibration_write(&r, out)) < 0)
		tape_err_set(&err, rc, "%s: cannot write", opt.out);
	if (rc >= 0)
		rc = print(&r);
	if (rc < 0 && out)
		remove(opt.out); /* half a table is worth nothing */
	if (rc < 0)
		return cli_fail("calibrate", rc, &err);
	return fflush(stdout) ? cli_fail("calibrate", -TAPE_E_IO, NULL) : 0;
}

static int run(int argc, const char **argv)
{
	int code = 0;
	poptContext con = cli_parse(&cli_verb_calibrate, argc, argv, &code);

	if (!con)
		return code;
	if (poptPeekArg(con))
		code = cli_usage("calibrate", "no argument is wanted, got %s", poptPeekArg(con));
	else if (opt.rounds < 1 || opt.rounds > (int)CALIBRATE_ROUNDS_MAX)
		code = cli_usage("calibrate", "--rounds %d: want 1..%u", opt.rounds,
				 CALIBRATE_ROUNDS_MAX);
	else
		code = calibrate();
	poptFreeContext(con);
	return code;
}
