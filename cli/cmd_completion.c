/* SPDX-License-Identifier: MIT */
/*
 * slabtape completion: scripts for bash, zsh and fish, made from the option tables.
 *
 * A value that the table spells as a|b|c completes to those words, one that names a file or tape
 * to file names; operands are files.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "cli/verb.h"

static const struct poptOption options[] = { POPT_TABLEEND };

/* "a|b|c" in small letters: words to choose from. */
static bool is_choice(const char *value)
{
	return value && strchr(value, '|') && !strpbrk(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ[=");
}

/* The words of a choice, separated by spaces; commas separate words that may be combined. */
static void print_words(const char *value)
{
	for (; *value; value++)
		putchar(*value == '|' || *value == ',' ? ' ' : *value);
}

static void print_quoted(const char *text, const char *special)
{
	for (; *text; text++) {
		if (strchr(special, *text))
			putchar('\\');
		if (*text == '\'') /* inside single quotes */
			fputs("'\\''", stdout);
		else
			putchar(*text);
	}
}

/* ---- bash ---- */

static void bash_words(void *ctx, const char *title, const struct poptOption *o)
{
	(void)ctx;
	(void)title;
	printf(" --%s", o->longName);
	if (o->shortName)
		printf(" -%c", o->shortName);
}

static void bash_value(void *ctx, const char *title, const struct poptOption *o)
{
	const struct cli_verb *verb = ctx;

	(void)title;
	if (!is_choice(cli_option_value(o)))
		return;
	printf("\t%s,--%s) words='", verb->name, o->longName);
	print_words(cli_option_value(o));
	puts("' ;;");
}

static void print_bash(void)
{
	puts("# bash completion of slabtape; made by `slabtape completion bash`\n"
	     "_slabtape()\n{\n"
	     "\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=\n"
	     "\tif [ \"$COMP_CWORD\" = 1 ]; then");
	printf("\t\tCOMPREPLY=($(compgen -W '");
	for (const struct cli_verb *const *v = cli_verbs; *v; v++)
		printf("%s ", (*v)->name);
	puts("' -- \"$word\"))\n\t\treturn\n\tfi\n\tcase ${COMP_WORDS[1]},$before in");
	for (const struct cli_verb *const *v = cli_verbs; *v; v++)
		cli_options_each(*v, bash_value, (void *)(uintptr_t)*v);
	puts("\tesac\n\tif [ -z \"$words\" ] && [[ $word == -* ]]; then\n"
	     "\t\tcase ${COMP_WORDS[1]} in");
	for (const struct cli_verb *const *v = cli_verbs; *v; v++) {
		printf("\t\t%s) words='", (*v)->name);
		cli_options_each(*v, bash_words, NULL);
		puts("' ;;");
	}
	puts("\t\tesac\n\tfi\n"
	     "\tif [ -n \"$words\" ]; then\n"
	     "\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
	     "\telse\n\t\tCOMPREPLY=($(compgen -f -- \"$word\"))\n\tfi\n}\n"
	     "complete -o filenames -F _slabtape slabtape");
}

/* ---- zsh ---- */

static void zsh_option(void *ctx, const char *title, const struct poptOption *o)
{
	const char *value = cli_option_value(o);

	(void)ctx;
	(void)title;
	if (o->shortName)
		printf(" \\\n\t\t\t'(-%c --%s)'{-%c,--%s}'[", o->shortName, o->longName,
		       o->shortName, o->longName);
	else
		printf(" \\\n\t\t\t'--%s[", o->longName);
	print_quoted(o->descrip, "[]:");
	putchar(']');
	if (value) {
		putchar(':');
		print_quoted(value, "[]:()");
		putchar(':');
		if (is_choice(value)) {
			putchar('(');
			print_words(value);
			putchar(')');
		} else {
			printf("_files");
		}
	}
	putchar('\'');
}

static void print_zsh(void)
{
	puts("#compdef slabtape\n# made by `slabtape completion zsh`\n_slabtape()\n{\n"
	     "\tlocal -a verbs=(");
	for (const struct cli_verb *const *v = cli_verbs; *v; v++) {
		printf("\t\t'%s:", (*v)->name);
		print_quoted((*v)->help, ":");
		puts("'");
	}
	puts("\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe verb verbs\n\t\treturn\n\tfi\n"
	     "\tshift words\n\t(( CURRENT-- ))\n\tcase $words[1] in");
	for (const struct cli_verb *const *v = cli_verbs; *v; v++) {
		printf("\t%s)\n\t\t_arguments -s", (*v)->name);
		cli_options_each(*v, zsh_option, NULL);
		puts(" \\\n\t\t\t'*:file:_files'\n\t\t;;");
	}
	puts("\tesac\n}\n_slabtape \"$@\"");
}

/* ---- fish ---- */

static void fish_option(void *ctx, const char *title, const struct poptOption *o)
{
	const struct cli_verb *verb = ctx;
	const char *value = cli_option_value(o);

	(void)title;
	printf("complete -c slabtape -n '__fish_seen_subcommand_from %s' -l %s", verb->name,
	       o->longName);
	if (o->shortName)
		printf(" -s %c", o->shortName);
	if (is_choice(value)) {
		printf(" -x -a '");
		print_words(value);
		putchar('\'');
	} else if (value) {
		printf(" -r");
	}
	printf(" -d '");
	print_quoted(o->descrip, "\\");
	puts("'");
}

static void print_fish(void)
{
	puts("# made by `slabtape completion fish`");
	for (const struct cli_verb *const *v = cli_verbs; *v; v++) {
		printf("complete -c slabtape -n __fish_use_subcommand -f -a %s -d '", (*v)->name);
		print_quoted((*v)->help, "\\");
		puts("'");
		cli_options_each(*v, fish_option, (void *)(uintptr_t)*v);
	}
}

static int run_completion(int argc, const char **argv);

extern const struct cli_verb cli_verb_completion;
const struct cli_verb cli_verb_completion = { "completion", "bash|zsh|fish",
					      "print a completion script for a shell",
					      run_completion, options };

static int run_completion(int argc, const char **argv)
{
	static const struct {
		const char *shell;
		void (*print)(void);
	} shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };
	int rc = 0;
	poptContext con = cli_parse(&cli_verb_completion, argc, argv, &rc);
	const char *shell = con ? poptGetArg(con) : NULL;
	size_t i = 0;

	if (!con)
		return rc;
	while (i < 3 && (!shell || strcmp(shells[i].shell, shell)))
		i++;
	if (i == 3 || poptPeekArg(con))
		rc = cli_usage("completion", "which shell: bash, zsh or fish?");
	else
		shells[i].print();
	poptFreeContext(con);
	return rc;
}
