/* SPDX-License-Identifier: MIT */
/*
 * The per-operation file of --paths, in the form of the goldens:
 *
 *	P <n> counter+delta,...		one line per distinct set of counter changes ("-": none)
 *	<n>				one line per operation: the number of its set, then
 *	<n> <slab>.<index>|fail		the object of an allocation
 *	<n> <count> <slab>.<index>...	the objects of a bulk allocation
 *	<n> <code>			the return code of a prefill or a refill
 *
 * In a recording each operation's line ends in " @cache".  The P lines stand first, so
 * everything is kept in memory until replay_paths_write().
 */
#ifndef SLABTAPE_REPLAY_PATHS_H
#define SLABTAPE_REPLAY_PATHS_H

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct ordered;
struct ordered_cache;
struct replay_paths;

enum replay_line_kind { REPLAY_LINE_OTHER = 0, REPLAY_LINE_ALLOC, REPLAY_LINE_ALLOC_BULK,
	REPLAY_LINE_CODE };

struct replay_line {
	enum replay_line_kind kind;
	int code;
	void **objs; /* results; a NULL one failed */
	uint32_t nr;
};

struct replay_paths *replay_paths_create(struct ordered *o, FILE *out);
void replay_paths_destroy(struct replay_paths *p); /* NULL is accepted */
/* One operation on @run (NULL: on no cache) has ended. */
void replay_paths_line(struct replay_paths *p, struct ordered_cache *run,
		       const struct replay_line *line);
int replay_paths_write(struct replay_paths *p) TAPE_MUST_CHECK;

#endif
