/* SPDX-License-Identifier: MIT */
/* For tests of canned queries: random numbers, errors, a query prepared with its parameters. */
#ifndef SLABTAPE_TESTS_UNIT_QUERY_FIXTURE_H
#define SLABTAPE_TESTS_UNIT_QUERY_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "analyze/queries.h"
#include "store/run_buffer.h"
#include "store/tape.h"

static uint64_t query_seed = 11;

static inline uint32_t rnd(uint32_t below)
{
	query_seed ^= query_seed << 13;
	query_seed ^= query_seed >> 7;
	query_seed ^= query_seed << 17;
	return (uint32_t)(query_seed >> 20) % below;
}

static inline void must(int rc, const struct tape_err *err)
{
	if (rc < 0)
		fail_msg("%s", err->text);
}

/* A tape without events and with caches cache-0, cache-1, ... of 64, 128, ... bytes. */
static inline struct tape *query_tape(uint16_t caches)
{
	struct tape_err err = { 0 };
	struct tape *t;

	must(tape_create(NULL, false, &t, &err), &err);
	for (uint16_t i = 0; i < caches; i++) {
		struct tape_cache c = { .id = i, .object_size = 64u << i, .coverage = 1 };

		snprintf(c.name, sizeof(c.name), "cache-%d", i);
		must(tape_define_cache(t, &c, &err), &err);
	}
	must(tape_writer_finish(t, &err), &err);
	return t;
}

/* The query prepared, all parameters NULL or at their defaults. */
static inline sqlite3_stmt *query_prepare(struct tape *t, const char *name)
{
	const struct analyze_query *q = analyze_query_find(name);
	struct analyze_param p;
	sqlite3_stmt *s;

	assert_non_null(q);
	if (sqlite3_prepare_v2(tape_db(t), q->sql, -1, &s, NULL) != SQLITE_OK)
		fail_msg("%s: %s", name, sqlite3_errmsg(tape_db(t)));
	for (unsigned int i = 0; analyze_query_param(q, i, &p); i++) {
		char text[40];

		snprintf(text, sizeof(text), ":%s", p.name);
		assert_true(sqlite3_bind_parameter_index(s, text) > 0);
		if (p.has_value)
			sqlite3_bind_text(s, sqlite3_bind_parameter_index(s, text), p.value, -1,
					  SQLITE_TRANSIENT);
	}
	return s;
}

static inline const char *text_at(sqlite3_stmt *s, int i)
{
	return (const char *)sqlite3_column_text(s, i);
}

static inline int cache_of(sqlite3_stmt *s, int i)
{
	return text_at(s, i)[strlen("cache-")] - '0';
}

#endif
