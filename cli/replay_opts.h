/* SPDX-License-Identifier: MIT */
/*
 * The options that say how to replay; shared by every verb that replays.
 *
 *	static const struct poptOption options[] = {
 *		CLI_REPLAY_OPTIONS,
 *		...
 *	};
 *
 * popt writes into one static struct: one verb runs per process.
 */
#ifndef SLABTAPE_CLI_REPLAY_OPTS_H
#define SLABTAPE_CLI_REPLAY_OPTS_H

#include <popt.h>

#include "replay/engine.h"

extern const struct poptOption cli_replay_options[];
#define CLI_REPLAY_OPTIONS                                                           \
	{ NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)cli_replay_options, 0, \
	  "Replay options:", NULL }

/*
 * What the options say, as a configuration; what it points to lives as long as the process.
 * Returns 0, or the exit code after a message for @verb.
 */
int cli_replay_config(const char *verb, struct replay_config *ret_cfg);
/* --cpus with several numbers: how many, and *ret_cpus; else 0.  Only `replay` may have them. */
uint32_t cli_replay_curve(const uint32_t **ret_cpus);
/* Whether --record was given; else cfg.record is 0 and the verb decides. */
bool cli_replay_record_given(void);
/* --repeat, at least 1. */
uint32_t cli_replay_repeat(void);

/*
 * "0-7:0,8-15:1" as node per CPU; every CPU from 0 on must be named.  Returns the number of CPUs
 * or -TAPE_E_USAGE.
 */
int cli_parse_topology(const char *text, uint16_t *ret_cpu_node, uint32_t capacity,
		       uint32_t *ret_nodes, struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
