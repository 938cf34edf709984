/* SPDX-License-Identifier: MIT */
/* Counting windows: a marker or a time of the tape as an event number. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "replay/plan.h"

/* First event at or after @ts; UINT64_MAX: none. */
static int seq_of_time(struct tape *t, uint64_t ts, uint64_t *ret_seq, struct tape_err *reterr)
{
	const struct tape_range range = { 0, UINT64_MAX, ts, UINT64_MAX };
	const struct tape_batch *b;
	struct tape_reader *r;
	int rc = tape_reader_open(t, &range, 1u << TAPE_COL_TS, &r, reterr);

	if (rc < 0)
		return rc;
	*ret_seq = UINT64_MAX;
	while ((rc = tape_reader_next(r, &b, reterr)) > 0 && *ret_seq == UINT64_MAX)
		for (uint32_t i = 0; i < b->events && *ret_seq == UINT64_MAX; i++)
			if (b->ts[i] >= ts)
				*ret_seq = b->first_seq + i;
	tape_reader_close(r);
	return rc < 0 ? rc : 0;
}

/* Does the text of a marker, up to its first space, equal @name? */
static bool marker_matches(const char *text, const char *name)
{
	size_t len = strcspn(text, " ");

	return strlen(name) == len && !strncmp(text, name, len);
}

int replay_window_seq(struct tape *t, const char *text, uint64_t *ret_seq, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) struct tape_marker *markers = NULL;
	size_t nr;
	char *end;
	uint64_t ts;
	int rc;

	errno = 0;
	ts = strtoull(text, &end, 10);
	if (end != text && !errno && (!*end || !strcmp(end, "ns")))
		return seq_of_time(t, ts, ret_seq, reterr);
	rc = tape_markers_get(t, &markers, &nr, reterr);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < nr; i++)
		if (marker_matches(markers[i].name, text)) {
			*ret_seq = markers[i].seq;
			return 0;
		}
	return tape_err_set(reterr, -TAPE_E_USAGE, "window bound %s: neither a time in ns nor the "
			    "first word of one of the tape's %zu markers", text, nr);
}

uint64_t replay_next_window(const struct replay_plan *p, uint64_t seq)
{
	uint64_t next = p->to_seq > seq ? p->to_seq : UINT64_MAX;

	for (size_t i = 0; i < p->nr_caches; i++)
		if (p->caches[i].from_seq > seq && p->caches[i].from_seq < next)
			next = p->caches[i].from_seq;
	return next;
}
