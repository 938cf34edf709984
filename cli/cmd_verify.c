/* SPDX-License-Identifier: MIT */
/* slabtape verify: check a whole tape. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/verb.h"
#include "store/tape.h"

static int want_json;

static const struct poptOption options[] = {
	{ "json", '\0', POPT_ARG_NONE, &want_json, 0, "as JSON", NULL },
	POPT_TABLEEND,
};

static void print_json(const char *path, const struct tape_totals *n, const char *note,
		       const struct tape_err *err)
{
	json_t *j = json_object();

	json_object_set_new(j, "tape", json_string(path));
	json_object_set_new(j, "ok", json_boolean(!err->code));
	json_object_set_new(j, "complete", json_boolean(n->complete));
	json_object_set_new(j, "events", json_integer((json_int_t)n->events));
	json_object_set_new(j, "objects", json_integer((json_int_t)n->objects));
	json_object_set_new(j, "note", note ? json_string(note) : json_null());
	json_object_set_new(j, "error", err->code ? json_string(err->text) : json_null());
	json_dumpf(j, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(j);
}

static int run(const char *path)
{
	TAPE_CLEANUP(tape_closep_tape) struct tape *t = NULL;
	TAPE_CLEANUP(tape_freep) char *note = NULL;
	struct tape_totals n = { 0 };
	struct tape_err err = { 0 };
	int rc = tape_open(path, TAPE_READ, &t, &err);

	if (rc == 0)
		rc = tape_verify(t, &note, &err);
	if (rc == 0)
		rc = tape_totals_get(t, &n, &err);
	if (want_json)
		print_json(path, &n, note, &err);
	if (rc < 0)
		return cli_fail("verify", rc, &err);
	if (!want_json)
		printf("%s: sound, %s, %llu events, %llu objects%s%s\n", path,
		       n.complete ? "complete" : "not complete", (unsigned long long)n.events,
		       (unsigned long long)n.objects, note ? "; " : "", note ? note : "");
	return 0;
}

static int run_verify(int argc, const char **argv);

extern const struct cli_verb cli_verb_verify;
const struct cli_verb cli_verb_verify = { "verify", "TAPE [--json]", "check a whole tape",
					  run_verify, options };

static int run_verify(int argc, const char **argv)
{
	int rc;
	poptContext con = cli_parse(&cli_verb_verify, argc, argv, &rc);
	const char *path = con ? poptGetArg(con) : NULL;

	if (!con)
		return rc;
	if (!path)
		rc = cli_usage("verify", "which tape?");
	else if (poptPeekArg(con))
		rc = cli_usage("verify", "one tape only; '%s' is left over", poptPeekArg(con));
	else
		rc = run(path);
	poptFreeContext(con);
	return rc;
}
