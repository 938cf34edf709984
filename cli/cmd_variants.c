/* SPDX-License-Identifier: MIT */
/* slabtape variants: the allocators there are, with their knobs. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "allocator/variant.h"
#include "cli/verb.h"

static int want_json, want_csv;

static const struct poptOption options[] = {
	{ "json", '\0', POPT_ARG_NONE, &want_json, 0, "as JSON", NULL },
	{ "csv", '\0', POPT_ARG_NONE, &want_csv, 0, "as CSV, one line per knob", NULL },
	POPT_TABLEEND,
};

static int run(int argc, const char **argv);

extern const struct cli_verb cli_verb_variants;
const struct cli_verb cli_verb_variants = { "variants", "[--json|--csv]",
	"list the allocator variants, their knobs and where they come from", run, options };

static json_t *variant_json(const struct alloc_variant *v)
{
	json_t *j = json_object(), *counters = json_array(), *knobs = json_array();

	for (uint32_t i = 0; i < v->nr_counters; i++)
		json_array_append_new(counters, json_string(alloc_counter_name(v->counters[i])));
	for (uint32_t i = 0; i < v->nr_knobs; i++)
		json_array_append_new(knobs, json_pack("{s:s, s:s, s:I, s:I, s:s, s:b}",
			"name", v->knobs[i].name, "what", v->knobs[i].what,
			"min", (json_int_t)v->knobs[i].min, "max", (json_int_t)v->knobs[i].max,
			"default", v->knobs[i].value, "at_create", v->knobs[i].at_create));
	json_object_set_new(j, "name", json_string(v->name));
	json_object_set_new(j, "era", json_string(v->era));
	json_object_set_new(j, "source", json_string(v->origin));
	json_object_set_new(j, "what", json_string(v->what));
	json_object_set_new(j, "knobs", knobs);
	json_object_set_new(j, "counters", counters);
	return j;
}

static int print_json(void)
{
	json_t *all = json_array();
	const struct alloc_variant *v;

	for (uint32_t i = 0; (v = alloc_variant_at(i, ALLOC_SYNC_SERIAL)); i++)
		json_array_append_new(all, variant_json(v));
	json_dumpf(all, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(all);
	return 0;
}

static int print_csv(void)
{
	const struct alloc_variant *v;

	puts("variant,era,knob,min,max,default,at_create");
	for (uint32_t i = 0; (v = alloc_variant_at(i, ALLOC_SYNC_SERIAL)); i++) {
		if (!v->nr_knobs)
			printf("%s,%s,,,,,\n", v->name, v->era);
		for (uint32_t k = 0; k < v->nr_knobs; k++)
			printf("%s,%s,%s,%" PRId64 ",%" PRId64 ",%s,%d\n", v->name, v->era,
			       v->knobs[k].name, v->knobs[k].min, v->knobs[k].max,
			       v->knobs[k].value, v->knobs[k].at_create);
	}
	return 0;
}

static int print_text(void)
{
	const struct alloc_variant *newest = alloc_variant_find("slub", ALLOC_SYNC_SERIAL);
	const struct alloc_variant *v;

	for (uint32_t i = 0; (v = alloc_variant_at(i, ALLOC_SYNC_SERIAL)); i++) {
		printf("%-20s %s (%s)\n%-20s source: %s\n", v->name, v->what, v->era, "",
		       v->origin);
		for (uint32_t k = 0; k < v->nr_knobs; k++)
			printf("%-20s   %-26s %s [%" PRId64 "..%" PRId64 ", default %s]%s\n", "",
			       v->knobs[k].name, v->knobs[k].what, v->knobs[k].min,
			       v->knobs[k].max, v->knobs[k].value,
			       v->knobs[k].at_create ? " (at creation)" : "");
	}
	if (newest)
		printf("\n`slub` means %s.  On variants without free_rcu of their own, rcu_delay_ns "
		       "[default 20000000]\nsays how long freed objects wait.\n", newest->name);
	return 0;
}

static int run(int argc, const char **argv)
{
	int code = 0;
	poptContext con = cli_parse(&cli_verb_variants, argc, argv, &code);

	if (!con)
		return code;
	if (poptPeekArg(con))
		code = cli_usage("variants", "unexpected argument %s", poptGetArg(con));
	else if (want_json)
		code = print_json();
	else
		code = want_csv ? print_csv() : print_text();
	poptFreeContext(con);
	return code;
}
