/* SPDX-License-Identifier: MIT */
/*
 * Generators: synthetic tapes with the shape of published workloads.
 *
 * A pattern is a rule that says what one CPU does next; the generator picks the CPU (uniformly,
 * seeded) and moves time on, so that the same arguments give the same tape on every machine.
 * Each pattern names the source of its shape; `gen --list` prints patterns and parameters.
 */
#ifndef SLABTAPE_CAPTURE_GEN_H
#define SLABTAPE_CAPTURE_GEN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct tape;

#define GEN_PARAMS_MAX 8

struct gen_param {
	const char *name;
	const char *what; /* one line, with the unit */
	int64_t value;	  /* default */
	int64_t min, max; /* accepted range, inclusive */
};

struct gen_pattern {
	const char *name;
	const char *what;   /* one line */
	const char *source; /* where the shape comes from */
	struct gen_param params[GEN_PARAMS_MAX]; /* ends with a NULL name */
};

struct gen_setting {
	const char *name;
	int64_t value;
};

struct gen_config {
	const char *pattern;
	uint32_t cpus, nodes; /* CPUs spread over the nodes in equal runs */
	uint64_t events;      /* at least so many; a pattern finishes its last step */
	uint64_t seed;
	const struct gen_setting *settings;
	size_t nr_settings;
	void (*progress)(void *ctx, uint64_t done, uint64_t total); /* NULL: silent */
	void *progress_ctx;
};

/* The @i-th pattern, or NULL past the end. */
const struct gen_pattern *gen_pattern_at(uint32_t i);

/*
 * Fill the new tape @t and finish it.  -TAPE_E_USAGE: unknown pattern or parameter, a value out of
 * range, more nodes than CPUs.
 */
int gen_run(struct tape *t, const struct gen_config *cfg, struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
