/* SPDX-License-Identifier: MIT */
/*
 * The table of `compare`: for each cache, counters (rows) of several sources (columns).
 *
 * Column 0 is the baseline: the kernel's own counters (--against recorded) or the first variant.
 * A column with several replays shows their mean and spread.
 *
 * Classes, by rule, never by name (docs/allocator-model.md "Fidelity"); only against a recording:
 *
 *	A  coverage >= 0.999, placement agreement >= 90 %: each counter within 3 or 0.2 %
 *	B  coverage >= 0.999, placement agreement < 90 % (several CPUs fight over its lists): the mean
 *	   within 6 % for counters >= 300, over all such caches 2 % in the median; with --follow
 *	   1-3 % by counter
 *	C  coverage < 0.9: indicative, not judged
 *	-  in between, or the kernel's counters and the events do not cover the same operations
 */
#ifndef SLABTAPE_CLI_COMPARE_H
#define SLABTAPE_CLI_COMPARE_H

#include "cli/recorded.h"
#include "cli/replay_print.h"

#define COMPARE_COLUMNS_MAX 32

struct compare_column {
	const char *name;
	struct replay_result **results; /* [nr]; NULL: the recording */
	uint32_t nr;
	bool class_c_only;		/* the other placement of inferred events */
};

struct compare_value {
	bool there;
	struct cli_spread spread;
	int64_t first; /* of the first replay */
};

struct compare_row {
	char name[40];
	bool state; /* a value at the end, no counter */
	struct compare_value value[COMPARE_COLUMNS_MAX];
};

struct compare_cache {
	const struct replay_cache *cache; /* of the first replay */
	const struct cli_recorded_cache *recorded;
	char class;	      /* 'A', 'B', 'C' or '-' */
	double agreement;     /* share of allocations from the recorded slab; -1 unknown */
	char verdict[256];    /* empty: not judged */
	bool failed;
	struct compare_row *rows;
	size_t nr_rows;
};

/* Against a recording: how many caches of each class, and how class B did as a whole. */
struct compare_summary {
	size_t a, a_exact, a_failed, b, b_failed, c;
	double b_median, b_worst; /* means of counters >= 300, share */
};

struct compare {
	struct compare_column columns[COMPARE_COLUMNS_MAX];
	size_t nr_columns;
	const struct cli_recorded *recorded; /* NULL: variants against variants */
	bool follow;
	const struct replay_result *measure; /* replay that measured the agreement; NULL: column 1 */
	bool script; /* exact: no random gate, one order */
	struct compare_cache *caches;
	size_t nr_caches;
	struct compare_summary summary;
};

/* Fill caches and rows from the columns; compare_judge() then adds classes and verdicts. */
int compare_build(struct compare *c) TAPE_MUST_CHECK;
void compare_fini(struct compare *c); /* results in the columns are the caller's */
void compare_judge(struct compare *c);
/* May column @col of @row differ from the baseline by nothing but noise? */
bool compare_indistinct(const struct compare *c, const struct compare_cache *cache,
			const struct compare_row *row, size_t col);

void compare_print(const struct compare *c);
void compare_print_csv(const struct compare *c);
struct json_t *compare_json(const struct compare *c);

#endif
