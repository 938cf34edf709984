/* SPDX-License-Identifier: MIT */
/* What the exporters share.  Internal to analyze/. */
#ifndef SLABTAPE_ANALYZE_EXPORT_INTERNAL_H
#define SLABTAPE_ANALYZE_EXPORT_INTERNAL_H

#include <stdio.h>

#include "analyze/ask.h"
#include "analyze/export.h"
#include "traces/batch.h"

/*
 * A format.  write() prints everything and says what it printed; check() reads it back from the
 * start.  ctf works on a directory instead: dir().
 */
struct export_format {
	const char *name;
	int (*write)(struct tape *t, const struct export_config *cfg, FILE *out,
		     struct export_sums *ret_sums, struct tape_err *reterr);
	int (*check)(FILE *in, struct export_sums *ret_sums, struct tape_err *reterr);
	/* How many events the tape says there are, without decoding them the same way. */
	int (*expect)(struct tape *t, const struct export_config *cfg, uint64_t *ret_events,
		      struct tape_err *reterr);
	int (*dir)(struct tape *t, const struct export_config *cfg, const char *path,
		   struct export_sums *ret_sums, struct tape_err *reterr);
	bool runs; /* knows --run */
};

extern const struct export_format export_csv, export_json, export_folded, export_speedscope,
	export_perfetto, export_ctf;

/* Names of caches and call sites by id; texts are owned. */
struct export_names {
	char **cache, **site; /* NULL entries: nobody named it */
	size_t nr_caches, nr_sites;
};
int export_names_load(struct tape *t, struct export_names *ret_names, struct tape_err *reterr)
	TAPE_MUST_CHECK;
void export_names_fini(struct export_names *n);
const char *export_cache_name(const struct export_names *n, uint16_t cache); /* "" when none */
const char *export_site_name(const struct export_names *n, uint32_t site);

/* Call @each for the events of @cfg in seq order until it returns other than 0. */
int export_each(struct tape *t, const struct export_config *cfg,
		int (*each)(void *ctx, uint64_t seq, const struct tape_event *ev), void *ctx,
		struct tape_err *reterr) TAPE_MUST_CHECK;

/* expect() of formats that print each event: event_agg's count. */
int export_expect_events(struct tape *t, const struct export_config *cfg, uint64_t *ret_events,
			 struct tape_err *reterr) TAPE_MUST_CHECK;

/* :run, :begin, :end and :cache of @cfg for a statement; NULL where everything is meant. */
#define EXPORT_BINDS 5
void export_binds(const struct export_config *cfg, struct analyze_bind ret_binds[EXPORT_BINDS]);

/* The one number that @sql gives under these binds. */
int export_count(struct tape *t, const struct export_config *cfg, const char *sql,
		 uint64_t *ret_number, struct tape_err *reterr) TAPE_MUST_CHECK;

/* What was found must be what was written, and what the tape holds (@expected events). */
int export_compare(const struct export_format *f, const struct export_sums *written,
		   const struct export_sums *found, uint64_t expected, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/* A JSON string literal of @text. */
void export_json_text(FILE *out, const char *text);

#endif
