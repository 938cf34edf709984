/* SPDX-License-Identifier: MIT */
/* slabtape export: a tape in another program's format. */
#include "cli/verb.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analyze/export_ops.h"
#include "capture/import.h"
#include "store/tape.h"

static struct {
	const char *to, *output;
} opt;

static const struct poptOption options[] = {
	{ "to", '\0', POPT_ARG_STRING, &opt.to, 0, "format to write", "ops" },
	{ "output", 'o', POPT_ARG_STRING, &opt.output, 0, "file to write (default: stdout)",
	  "FILE" },
	POPT_TABLEEND,
};

static int run(int argc, const char **argv);

extern const struct cli_verb cli_verb_export;
const struct cli_verb cli_verb_export = { "export", "TAPE --to FORMAT [-o FILE]",
	"write a tape in another format", run, options };

/* One row per format. */
static const struct {
	const char *name;
	int (*run)(struct tape *t, FILE *out, struct tape_err *reterr);
} formats[] = {
	{ "ops", export_ops },
};

static int export_as(const char *source, size_t format)
{
	FILE *out = opt.output ? fopen(opt.output, "w") : stdout;
	struct tape_err err = { 0 };
	struct tape *t = NULL;
	int rc;

	if (!out) {
		tape_err_set(&err, -TAPE_E_IO, "open (%s): %s", opt.output, strerror(errno));
		return cli_fail("export", -TAPE_E_IO, &err);
	}
	rc = capture_open_source(source, NULL, &t, NULL, &err);
	if (rc >= 0)
		rc = formats[format].run(t, out, &err);
	tape_close(t);
	if (opt.output && fclose(out) && rc >= 0)
		rc = tape_err_set(&err, -TAPE_E_IO, "write (%s): %s", opt.output, strerror(errno));
	return rc < 0 ? cli_fail("export", rc, &err) : 0;
}

static int run(int argc, const char **argv)
{
	int exit_code = 0;
	poptContext con = cli_parse(&cli_verb_export, argc, argv, &exit_code);
	const char *source;
	size_t format, formats_nr = sizeof(formats) / sizeof(formats[0]);

	if (!con)
		return exit_code;
	source = poptGetArg(con);
	for (format = 0; opt.to && format < formats_nr; format++)
		if (!strcmp(opt.to, formats[format].name))
			break;
	if (!source || poptPeekArg(con))
		exit_code = cli_usage("export", "one TAPE expected; see slabtape export --help");
	else if (!opt.to)
		exit_code = cli_usage("export", "--to FORMAT is needed");
	else if (format == formats_nr)
		exit_code = cli_usage("export", "--to %s: no such format", opt.to);
	else
		exit_code = export_as(source, format);
	poptFreeContext(con);
	return exit_code;
}
