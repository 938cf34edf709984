/* SPDX-License-Identifier: MIT */
/*
 * The cost table of the simulated engine: read from an ini file, printed with every result.
 * replay/costs/default.ini is built in and says where each figure comes from.
 */
#ifndef SLABTAPE_REPLAY_SIM_COSTS_H
#define SLABTAPE_REPLAY_SIM_COSTS_H

#include <stddef.h>

#include "replay/sim_core.h"

struct json_t;

/* X(key without unit): every cost in ps. */
#define REPLAY_COSTS(X)                                                                          \
	X(op_fast) X(op_slow) X(refill_object) X(atomic) X(line_local) X(line_same_node)         \
	X(line_other_node) X(handover_same_node) X(handover_other_node) X(page_get) X(page_order) \
	X(zone_hold)

struct replay_costs {
#define REPLAY_COST_FIELD(key) uint64_t key##_ps;
	REPLAY_COSTS(REPLAY_COST_FIELD)
#undef REPLAY_COST_FIELD
	uint64_t page_batch; /* requests */
};

/* The table by position: key as in the file, value in ns (page_batch: requests).  NULL past the end. */
#define REPLAY_COSTS_MAX 16u
const char *replay_costs_key(size_t i);
double replay_costs_value(const struct replay_costs *c, size_t i);

/* The built-in table. */
void replay_costs_default(struct replay_costs *ret_costs);

/*
 * Read "key_ns = number" lines (comments: # or ;) over the built-in table.  -TAPE_E_FORMAT with
 * file and line for an unknown key or a bad number (0 .. 1e9 ns).
 */
int replay_costs_read(const char *path, struct replay_costs *ret_costs, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/* The table as a JSON object, new reference. */
struct json_t *replay_costs_json(const struct replay_costs *c);

struct sim_costs replay_costs_core(const struct replay_costs *c);

#endif
