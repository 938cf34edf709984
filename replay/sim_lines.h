/* SPDX-License-Identifier: MIT */
/* Which virtual CPU wrote a cache line last: an exact map, so that results depend on no address. */
#ifndef SLABTAPE_REPLAY_SIM_LINES_H
#define SLABTAPE_REPLAY_SIM_LINES_H

#include <stdint.h>

struct sim_lines;

struct sim_lines *sim_lines_create(void); /* NULL: out of memory */
void sim_lines_destroy(struct sim_lines *t);

/*
 * The owner of line @line (address / 64); UINT32_MAX until somebody wrote it.  Borrowed until
 * the next call.  Never NULL: when the table cannot grow, the process is out of memory and ends.
 */
uint32_t *sim_lines_owner(struct sim_lines *t, uint64_t line);

#endif
