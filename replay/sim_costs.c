/* SPDX-License-Identifier: MIT */
#include "replay/sim_costs.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

extern const char replay_costs_ini[]; /* made from replay/costs/default.ini */

static const struct {
	const char *key;
	size_t offset;
	double to_unit; /* ns -> ps, or 1 */
} keys[] = {
#define COST_KEY(name) { #name "_ns", offsetof(struct replay_costs, name##_ps), 1000 },
	REPLAY_COSTS(COST_KEY)
#undef COST_KEY
	{ "page_batch", offsetof(struct replay_costs, page_batch), 1 },
};
#define NR_KEYS (sizeof(keys) / sizeof(*keys))
_Static_assert(NR_KEYS <= REPLAY_COSTS_MAX, "REPLAY_COSTS_MAX");

static uint64_t *value_at(struct replay_costs *c, size_t i)
{
	return (uint64_t *)(void *)((char *)c + keys[i].offset);
}

const char *replay_costs_key(size_t i)
{
	return i < NR_KEYS ? keys[i].key : NULL;
}

double replay_costs_value(const struct replay_costs *c, size_t i)
{
	struct replay_costs copy = *c;

	return (double)*value_at(&copy, i) / keys[i].to_unit;
}

static int parse_line(char *line, struct replay_costs *c)
{
	char *equals, *end, *key = line + strspn(line, " \t");
	double value;

	key[strcspn(key, "#;\n")] = '\0';
	if (!*key)
		return 0;
	equals = strchr(key, '=');
	if (!equals)
		return -EINVAL;
	key[strcspn(key, " \t=")] = '\0';
	value = strtod(equals + 1, &end);
	if (end == equals + 1 || end[strspn(end, " \t")] || !(value >= 0 && value <= 1e9))
		return -EINVAL;
	for (size_t i = 0; i < NR_KEYS; i++) {
		if (strcmp(keys[i].key, key))
			continue;
		*value_at(c, i) = (uint64_t)(value * keys[i].to_unit + 0.5);
		return 0;
	}
	return -ENOENT;
}

static int parse(FILE *in, const char *name, struct replay_costs *c, struct tape_err *reterr)
{
	char line[512];
	bool any = false;
	int rc;

	for (unsigned int number = 1; fgets(line, sizeof(line), in); number++) {
		any |= line[strcspn(line, "#=")] == '='; /* parse_line() cuts it */
		if ((rc = parse_line(line, c)) < 0)
			return tape_err_set(reterr, -TAPE_E_FORMAT, "%s:%u: %s", name, number,
					    rc == -ENOENT ? "no such cost"
							  : "not \"key = number of ns\"");
	}
	if (ferror(in))
		return tape_err_set(reterr, -errno, "cost table %s: %s", name, strerror(errno));
	if (!any)
		return tape_err_set(reterr, -TAPE_E_FORMAT, "%s: no cost in it", name);
	if (!c->page_batch)
		return tape_err_set(reterr, -TAPE_E_FORMAT, "%s: page_batch must be at least 1", name);
	return 0;
}

void replay_costs_default(struct replay_costs *ret_costs)
{
	/* fmemopen() only reads it. */
	TAPE_CLEANUP(tape_fclosep) FILE *in = fmemopen((void *)(uintptr_t)replay_costs_ini,
						       strlen(replay_costs_ini), "r");
	int rc;

	*ret_costs = (struct replay_costs){ 0 };
	rc = in ? parse(in, "default.ini", ret_costs, NULL) : -ENOMEM;
	assert(rc == 0);
	(void)rc;
}

int replay_costs_read(const char *path, struct replay_costs *ret_costs, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_fclosep) FILE *in = fopen(path, "r");
	struct replay_costs c;
	int rc;

	if (!in)
		return tape_err_set(reterr, -errno, "cannot open cost table %s: %s", path,
				    strerror(errno));
	replay_costs_default(&c);
	rc = parse(in, path, &c, reterr);
	if (rc == 0)
		*ret_costs = c;
	return rc;
}

json_t *replay_costs_json(const struct replay_costs *c)
{
	struct replay_costs copy = *c;
	json_t *obj = json_object();

	for (size_t i = 0; obj && i < NR_KEYS; i++)
		json_object_set_new(obj, keys[i].key,
				    keys[i].to_unit > 1
					    ? json_real((double)*value_at(&copy, i) / keys[i].to_unit)
					    : json_integer((json_int_t)*value_at(&copy, i)));
	return obj;
}

struct sim_costs replay_costs_core(const struct replay_costs *c)
{
	return (struct sim_costs){
		.line_local_ps = c->line_local_ps,
		.line_same_node_ps = c->line_same_node_ps,
		.line_other_node_ps = c->line_other_node_ps,
		.atomic_ps = c->atomic_ps,
		.handover_same_node_ps = c->handover_same_node_ps,
		.handover_other_node_ps = c->handover_other_node_ps,
	};
}
