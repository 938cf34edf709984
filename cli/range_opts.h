/* SPDX-License-Identifier: MIT */
/* What verbs understand as a time, a marker, a span of time and a cache. */
#ifndef SLABTAPE_CLI_RANGE_OPTS_H
#define SLABTAPE_CLI_RANGE_OPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/tape.h"

/* "1.5ms" as ns since the start of the tape; false when @text is no number with ns, us, ms or s. */
bool cli_parse_time(const char *text, uint64_t *ret_ns);

/*
 * The first marker whose text, or whose first word, is @name.  -TAPE_E_USAGE: there is none.
 * @ret_ts may be NULL.
 */
int cli_find_marker(struct tape *t, const char *name, uint64_t *ret_seq, uint64_t *ret_ts,
		    struct tape_err *reterr) TAPE_MUST_CHECK;

/* The id of cache @name.  -TAPE_E_USAGE: there is none. */
int cli_find_cache(struct tape *t, const char *name, int32_t *ret_cache, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/*
 * --time A-B (or A,B): from A up to before B, each a time or a marker; either may be left out.
 * Fills ts_begin and ts_end of *ret_range.  -TAPE_E_USAGE says what is wrong.
 */
int cli_parse_span(struct tape *t, const char *text, struct tape_range *ret_range,
		   struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
