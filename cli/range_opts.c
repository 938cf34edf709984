/* SPDX-License-Identifier: MIT */
#include "cli/range_opts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

bool cli_parse_time(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	char *end;
	double value;

	if (*text < '0' || *text > '9')
		return false;
	value = strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit) != 0 || value * units[i].ns >= 9.2e18)
			continue;
		*ret_ns = (uint64_t)(value * units[i].ns + 0.5);
		return true;
	}
	return false;
}

static bool marker_is(const char *text, const char *name)
{
	size_t word = strcspn(text, " ");

	return !strcmp(text, name) || (strlen(name) == word && !strncmp(text, name, word));
}

int cli_find_marker(struct tape *t, const char *name, uint64_t *ret_seq, uint64_t *ret_ts,
		    struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) struct tape_marker *markers = NULL;
	size_t nr = 0;
	int rc = tape_markers_get(t, &markers, &nr, reterr);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < nr; i++) {
		if (!marker_is(markers[i].name, name))
			continue;
		*ret_seq = markers[i].seq;
		if (ret_ts)
			*ret_ts = markers[i].ts;
		return 0;
	}
	return tape_err_set(reterr, -TAPE_E_USAGE,
			    "no marker '%s', and no time (a number with ns, us, ms or s)", name);
}

int cli_find_cache(struct tape *t, const char *name, int32_t *ret_cache, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) struct tape_cache *caches = NULL;
	size_t nr = 0;
	int rc = tape_caches_get(t, &caches, &nr, reterr);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < nr; i++) {
		if (strcmp(caches[i].name, name) != 0)
			continue;
		*ret_cache = caches[i].id;
		return 0;
	}
	return tape_err_set(reterr, -TAPE_E_USAGE, "no cache '%s'; slabtape info lists them", name);
}

/* A time or a marker as ns; empty text leaves *ret_ns. */
static int bound(struct tape *t, const char *text, uint64_t *ret_ns, struct tape_err *reterr)
{
	uint64_t seq;

	if (!*text || cli_parse_time(text, ret_ns))
		return 0;
	return cli_find_marker(t, text, &seq, ret_ns, reterr);
}

/* Split at @at and look both sides up. */
static int try_split(struct tape *t, const char *text, size_t at, struct tape_range *range,
		     struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) char *left = strndup(text, at);
	int rc;

	if (!left)
		return -ENOMEM;
	rc = bound(t, left, &range->ts_begin, reterr);
	return rc < 0 ? rc : bound(t, text + at + 1, &range->ts_end, reterr);
}

int cli_parse_span(struct tape *t, const char *text, struct tape_range *ret_range,
		   struct tape_err *reterr)
{
	struct tape_range range = *ret_range;
	int rc = tape_err_set(reterr, -TAPE_E_USAGE,
			      "--time %s: want A-B, each a time (12s, 1.5ms) or a marker", text);

	/* Markers may hold dashes: the first split whose sides both mean something counts. */
	for (size_t i = 0; text[i]; i++) {
		if (text[i] != '-' && text[i] != ',')
			continue;
		range = *ret_range;
		rc = try_split(t, text, i, &range, reterr);
		if (rc != -TAPE_E_USAGE)
			break;
	}
	if (rc == 0 && range.ts_begin >= range.ts_end)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--time %s: the end is not after the "
				    "beginning", text);
	if (rc == 0)
		*ret_range = range;
	return rc;
}
