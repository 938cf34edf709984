/* SPDX-License-Identifier: MIT */
/*
 * The table of identities of docs/allocator-model.md ("Counters and transitions"), evaluated on a
 * stored run.  A sum is words joined by + and -: `a>b` transitions (`*` any state), `a->b` a free
 * class, else a counter.
 */
#ifndef SLABTAPE_TESTS_CONSISTENCY_IDENTITIES_H
#define SLABTAPE_TESTS_CONSISTENCY_IDENTITIES_H

#include <stddef.h>
#include <stdint.h>

struct sqlite3;

struct identity {
	char variants[200]; /* patterns, separated by spaces */
	char left[120], right[200];
};

/* Read the table of document @path; how many rows, 0 when there is none. */
size_t identities_read(const char *path, struct identity *rows, size_t max);
/* Whether @identity is about variant @name. */
int identity_applies(const struct identity *identity, const char *name);
/* What a stored run says, read once. */
struct run_counts {
	struct count {
		char name[40]; /* counter or free class */
		int64_t value;
	} counts[128];
	size_t nr;
	int64_t transitions[16][16]; /* [from][to] by number of the state */
};
/* 0, or -1 with a message on stderr. */
int run_counts_read(struct sqlite3 *db, int64_t run, struct run_counts *ret_counts);

/*
 * Whether both sums are equal; the values are returned.  A name that the run does not have is an
 * error (-1), so that no row can hold by a misspelling.
 */
int identity_holds(const struct identity *identity, const struct run_counts *counts,
		   int64_t *ret_left, int64_t *ret_right);

/* Number of a state by name; -1 none. */
int state_number(const char *name);

#endif
