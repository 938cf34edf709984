/* SPDX-License-Identifier: MIT */
#include "cli/options.h"

#include <string.h>

#define TEXT_COLUMN 8
#define LINE_WIDTH 80

static const struct poptOption help_option = { "help", 'h', POPT_ARG_NONE, NULL, 0,
					       "show this help", NULL };

static void each_of(const struct poptOption *table, const char *title, cli_option_fn fn, void *ctx)
{
	for (const struct poptOption *o = table; o->longName || o->shortName || o->arg; o++) {
		if ((o->argInfo & POPT_ARG_MASK) == POPT_ARG_INCLUDE_TABLE)
			each_of(o->arg, o->descrip, fn, ctx);
		else if (!(o->argInfo & POPT_ARGFLAG_DOC_HIDDEN) && o->longName)
			fn(ctx, title, o);
	}
}

void cli_options_each(const struct cli_verb *verb, cli_option_fn fn, void *ctx)
{
	if (verb->options)
		each_of(verb->options, NULL, fn, ctx);
	fn(ctx, NULL, &help_option);
}

const struct cli_verb *cli_verb_find(const char *name)
{
	for (const struct cli_verb *const *v = cli_verbs; *v; v++)
		if (!strcmp((*v)->name, name))
			return *v;
	return NULL;
}

const char *cli_option_value(const struct poptOption *o)
{
	if ((o->argInfo & POPT_ARG_MASK) == POPT_ARG_NONE)
		return NULL;
	return o->argDescrip ? o->argDescrip : "VALUE";
}

/* @text from column TEXT_COLUMN on, broken at spaces. */
static void print_wrapped(FILE *out, const char *text)
{
	int column = TEXT_COLUMN;

	fprintf(out, "%*s", TEXT_COLUMN, "");
	while (*text) {
		int word = (int)strcspn(text, " ");

		if (column > TEXT_COLUMN && column + 1 + word > LINE_WIDTH) {
			fprintf(out, "\n%*s", TEXT_COLUMN, "");
			column = TEXT_COLUMN;
		}
		column += fprintf(out, "%s%.*s", column > TEXT_COLUMN ? " " : "", word, text);
		text += word + (text[word] == ' ');
	}
	fputc('\n', out);
}

struct printing {
	FILE *out;
	const char *title;
};

static void print_option(void *ctx, const char *title, const struct poptOption *o)
{
	struct printing *p = ctx;
	const char *value = cli_option_value(o);

	if (title && title != p->title)
		fprintf(p->out, "\n%s\n", title);
	p->title = title;
	if (o->shortName)
		fprintf(p->out, "  -%c, --%s", o->shortName, o->longName);
	else
		fprintf(p->out, "  --%s", o->longName);
	fprintf(p->out, "%s%s\n", value ? " " : "", value ? value : "");
	print_wrapped(p->out, o->descrip);
}

void cli_help_print(FILE *out, const struct cli_verb *verb)
{
	struct printing p = { .out = out };

	fprintf(out, "usage: slabtape %s %s\n%s\n\n", verb->name, verb->args, verb->help);
	cli_options_each(verb, print_option, &p);
}
