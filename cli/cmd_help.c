/* SPDX-License-Identifier: MIT */
/* slabtape help: the verbs, one verb's options, or these as text for a manual page. */
#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "cli/verb.h"

static int want_scdoc;

static const struct poptOption options[] = {
	{ "scdoc", '\0', POPT_ARG_NONE, &want_scdoc, 0,
	  "print the options in scdoc's language, for a manual page", NULL },
	POPT_TABLEEND,
};

/* Text in scdoc's language: what could be markup is escaped. */
static void print_escaped(const char *text)
{
	for (; *text; text++) {
		if (strchr("\\*_.<>[]`#~|+-", *text))
			putchar('\\');
		putchar(*text);
	}
}

static void scdoc_option(void *ctx, const char *title, const struct poptOption *o)
{
	const char **last = ctx, *value = cli_option_value(o);

	if (title && title != *last)
		printf("## %s\n\n", title);
	*last = title;
	if (o->shortName)
		printf("*-%c*, ", o->shortName);
	printf("*--%s*", o->longName);
	if (value) {
		putchar(' ');
		print_escaped(value);
	}
	printf("\n\t");
	print_escaped(o->descrip);
	printf("\n\n");
}

static int help_verb(const char *name)
{
	const struct cli_verb *verb = cli_verb_find(name);
	const char *last = NULL;

	if (!verb)
		return cli_usage("help", "%s: no such verb; slabtape help lists them", name);
	if (want_scdoc)
		cli_options_each(verb, scdoc_option, &last);
	else
		cli_help_print(stdout, verb);
	return 0;
}

static int run_help(int argc, const char **argv);

extern const struct cli_verb cli_verb_help;
const struct cli_verb cli_verb_help = { "help", "[VERB]", "the verbs, or the options of one",
					run_help, options };

static int run_help(int argc, const char **argv)
{
	int rc = 0;
	poptContext con = cli_parse(&cli_verb_help, argc, argv, &rc);
	const char *name = con ? poptGetArg(con) : NULL;

	if (!con)
		return rc;
	if (poptPeekArg(con))
		rc = cli_usage("help", "one verb; '%s' is left over", poptPeekArg(con));
	else if (name)
		rc = help_verb(name);
	else if (want_scdoc)
		rc = cli_usage("help", "of which verb?");
	else
		cli_verbs_print(stdout);
	poptFreeContext(con);
	return rc;
}
