/* SPDX-License-Identifier: MIT */
/*
 * A verb's option table as a list: what --help, `help --scdoc` and shell completion are made
 * from, so that none of them can name an option that is not there, or miss one.
 */
#ifndef SLABTAPE_CLI_OPTIONS_H
#define SLABTAPE_CLI_OPTIONS_H

#include <stdio.h>

#include "cli/verb.h"

/* @title: of the group the option stands in, without its colon; NULL: the verb's own options. */
typedef void (*cli_option_fn)(void *ctx, const char *title, const struct poptOption *o);

/* Every option of @verb in the order of its table, included tables too; --help comes last. */
void cli_options_each(const struct cli_verb *verb, cli_option_fn fn, void *ctx);

/* The verb called @name, or NULL. */
const struct cli_verb *cli_verb_find(const char *name);

/* What an option takes, for people: "FILE", "a|b|c"; NULL: nothing. */
const char *cli_option_value(const struct poptOption *o);

/* The whole --help text. */
void cli_help_print(FILE *out, const struct cli_verb *verb);

#endif
