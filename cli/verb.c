/* SPDX-License-Identifier: MIT */
#include "cli/verb.h"

#include <stdarg.h>
#include <stdio.h>

#include "cli/options.h"

#define X(name) extern const struct cli_verb cli_verb_##name;
#include "cli/verbs.def"
#undef X

const struct cli_verb *const cli_verbs[] = {
#define X(name) &cli_verb_##name,
#include "cli/verbs.def"
#undef X
	NULL,
};

int cli_fail(const char *verb, int code, const struct tape_err *err)
{
	fprintf(stderr, "slabtape: %s: %s\n", verb,
		err && err->code ? err->text : tape_err_name(code));
	return tape_exit_code(code);
}

int cli_usage(const char *verb, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "slabtape: %s: ", verb);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return 2;
}

void cli_verbs_print(FILE *out)
{
	fputs("usage: slabtape VERB [ARGUMENT...]\n\n", out);
	for (const struct cli_verb *const *v = cli_verbs; *v; v++)
		fprintf(out, "  %-10s %s\n", (*v)->name, (*v)->help);
	fputs("\nslabtape VERB --help shows a verb's options.\n", out);
}

poptContext cli_parse(const struct cli_verb *verb, int argc, const char **argv, int *ret_exit)
{
	int help = 0, rc;
	struct poptOption table[] = {
		{ NULL, '\0', POPT_ARG_INCLUDE_TABLE, NULL, 0, "Options:", NULL },
		{ "help", 'h', POPT_ARG_NONE, &help, 0, "show this help", NULL },
		POPT_TABLEEND,
	};
	poptContext con;

	/* popt declares the table's slot `void *`; it is only read. */
	table[0].arg = (void *)(uintptr_t)verb->options;
	con = poptGetContext("slabtape", argc, argv, table, 0);
	while ((rc = poptGetNextOpt(con)) > 0)
		;
	if (rc < -1) {
		*ret_exit = cli_usage(verb->name, "option %s: %s", poptBadOption(con, 0),
				      poptStrerror(rc));
		poptFreeContext(con);
		return NULL;
	}
	if (help) {
		cli_help_print(stdout, verb);
		*ret_exit = 0;
		poptFreeContext(con);
		return NULL;
	}
	return con;
}
