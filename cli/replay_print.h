/* SPDX-License-Identifier: MIT */
/* Results of replays as tables and as the spread over repeats. */
#ifndef SLABTAPE_CLI_REPLAY_PRINT_H
#define SLABTAPE_CLI_REPLAY_PRINT_H

#include "replay/engine.h"

struct json_t;
struct tape;

/* Per cache: geometry, counters that moved, what sysfs would show. */
void cli_print_result(const struct replay_result *r, bool timing);
/* One line: the cost table of a simulated run. */
void cli_print_costs(struct json_t *costs);
/* One line per cache and counter. */
void cli_print_result_csv(const struct replay_result *r);

/* min, mean and max of one counter over several results. */
struct cli_spread {
	int64_t min, max;
	double mean;
};
/* Counter @counter of cache @cache of the first result, over all @nr. */
struct cli_spread cli_spread_of(struct replay_result *const *results, uint32_t nr, size_t cache,
				size_t counter);
void cli_print_spread(struct replay_result *const *results, uint32_t nr);
/* {"runs": n, "caches": [{"name", "counters": {name: {"min","mean","max"}}}]}, new reference. */
struct json_t *cli_spread_json(struct replay_result *const *results, uint32_t nr);

#endif
