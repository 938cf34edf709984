/* SPDX-License-Identifier: MIT */
/* Verdicts (analyze/verdict.h) on paper. */
#ifndef SLABTAPE_CLI_VERDICT_PRINT_H
#define SLABTAPE_CLI_VERDICT_PRINT_H

#include <jansson.h>
#include <stdbool.h>

/* One line per finding and per verdict without one; @details: evidence and query under each. */
void verdict_print(const json_t *verdicts, bool details);

/* One row per finding, refusal and verdict without one.  0 or a negative code. */
int verdict_print_csv(const json_t *verdicts);

#endif
