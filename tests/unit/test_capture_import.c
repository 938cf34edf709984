/* SPDX-License-Identifier: MIT */
/* A real recording becomes a tape without an event lost or invented; its text form, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/import.h"
#include "capture/input.h"
#include "store/tape.h"

#define SAMPLE TEST_SOURCE_DIR "/../traces/samples/src/6.1-netperf0-4c2n"
#define REPORT TEST_SOURCE_DIR "/data/6.1-netperf0-head.report.txt.zst"
#define FIRST_SECOND_V6 TEST_SOURCE_DIR "/data/6.1-first-second.v6.dat.zst"
#define FIRST_SECOND_V7 TEST_SOURCE_DIR "/data/6.1-first-second.v7.dat"
#define CTF_HEAD TEST_SOURCE_DIR "/data/6.1-lttng-head.ctf"
#define REPORT_EVENTS 30000

static struct tape *sample; /* imported once */
static struct capture_stats sample_stats;

static struct tape *import(const char *source, const struct capture_options *options,
			   struct capture_stats *ret_stats)
{
	struct tape_err err = { 0 };
	struct tape *t = NULL;

	if (capture_open_source(source, options, &t, ret_stats, &err) < 0)
		fail_msg("%s", err.text);
	return t;
}

static int64_t query(struct tape *t, const char *sql)
{
	sqlite3_stmt *s = NULL;
	int64_t value;

	if (sqlite3_prepare_v2(tape_db(t), sql, -1, &s, NULL) != SQLITE_OK ||
	    sqlite3_step(s) != SQLITE_ROW)
		fail_msg("%s: %s", sql, sqlite3_errmsg(tape_db(t)));
	value = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return value;
}

/* Numbers of the recording's own summary, counted by another program. */
static void every_event_is_there(void **state)
{
	const struct capture_stats *s = &sample_stats;

	(void)state;
	assert_int_equal(s->kmalloc, 206478);
	assert_int_equal(s->cache_alloc, 93853);
	assert_int_equal(s->kfree, 48749);
	assert_int_equal(s->cache_free, 59189);
	assert_int_equal(s->markers, 2);
	assert_int_equal(s->other, 0);
	assert_int_equal(s->null_frees, 9214);
	assert_int_equal(s->failed_allocs, 0);
	assert_int_equal(s->lost, 0);
	/* frees without an alloc: 491 before and 633 in the window */
	assert_int_equal(s->orphan_frees + s->inferred_allocs, 491 + 633);
	/* allocs of a live address: kmalloc-96 */
	assert_int_equal(s->inferred_frees, 4477);
	/* neither alloc nor free names the cache */
	assert_int_equal(s->guessed + s->unnamed, 34088 + 1696);
	assert_int_equal(s->tape_events, 408271 - 9214 + 4477 + s->inferred_allocs);
}

static void totals_agree_with_the_import(void **state)
{
	struct tape_totals totals;

	(void)state;
	assert_int_equal(tape_totals_get(sample, &totals, NULL), 0);
	assert_true(totals.complete);
	assert_int_equal(totals.events, sample_stats.tape_events);
	assert_int_equal(totals.inferred_allocs, sample_stats.inferred_allocs);
	assert_int_equal(totals.inferred_frees, sample_stats.inferred_frees);
	assert_int_equal(totals.orphan_frees, sample_stats.orphan_frees);
	assert_int_equal(totals.null_frees, 9214);
	assert_int_equal(totals.failed_allocs, 0);
	assert_int_equal(totals.ops[TAPE_OP_MARKER], 2);
	assert_int_equal(totals.lost, 0);
}

static uint16_t cache_named(struct tape *t, const char *name)
{
	struct tape_cache *caches;
	uint16_t id = TAPE_NO_CACHE;
	size_t nr;

	assert_true(tape_caches_get(t, &caches, &nr, NULL) >= 0);
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(caches[i].name, name))
			id = caches[i].id;
	free(caches);
	assert_int_not_equal(id, TAPE_NO_CACHE);
	return id;
}

struct window_counts {
	uint64_t allocs, frees, remote, cross_node;
};

/* Count cache @name's events between the two markers. */
static struct window_counts count_window(const char *name)
{
	struct window_counts counts = { 0 };
	static uint16_t alloc_cpu[1 << 20];
	uint16_t cache = cache_named(sample, name);
	struct tape_machine machine;
	struct tape_marker *markers;
	struct tape_range range = TAPE_RANGE_ALL;
	const struct tape_batch *b;
	struct tape_reader *r;
	size_t nr;

	assert_int_equal(tape_machine_get(sample, &machine, NULL), 0);
	assert_true(tape_markers_get(sample, &markers, &nr, NULL) >= 0);
	assert_int_equal(nr, 2);
	assert_string_equal(markers[0].name, "slabtape:BEGIN netperf0");
	assert_string_equal(markers[1].name, "slabtape:END netperf0");
	range.seq_end = markers[1].seq;
	assert_int_equal(tape_reader_open(sample, &range, TAPE_COLS_ALL, &r, NULL), 0);
	while (tape_reader_next(r, &b, NULL) > 0) {
		for (uint32_t i = 0; i < b->events; i++) {
			bool inside = b->first_seq + i > markers[0].seq;

			if (b->cache[i] != cache)
				continue;
			if (b->op[i] == TAPE_OP_ALLOC) {
				alloc_cpu[b->object[i]] = b->cpu[i];
				counts.allocs += inside;
			} else if (inside) {
				counts.frees++;
				counts.remote += alloc_cpu[b->object[i]] != b->cpu[i];
				counts.cross_node += machine.cpu_node[b->cpu[i]] != b->mem_node[i];
			}
		}
	}
	tape_reader_close(r);
	free(markers);
	return counts;
}

static void window_counts_equal_the_kernels(void **state)
{
	struct window_counts c = count_window("skbuff_fclone_cache");

	(void)state;
	assert_int_equal(c.allocs, 15686);
	assert_int_equal(c.frees, 15686);
	/* 99.27 % on another CPU, 99.26 % on a node that is not the object's */
	assert_int_equal((c.remote * 20000 / c.frees + 1) / 2, 9927);
	assert_int_equal((c.cross_node * 20000 / c.frees + 1) / 2, 9926);
	c = count_window("kmalloc-512");
	assert_int_equal(c.allocs, 15790);
	assert_int_equal(c.frees, 15788);
}

static void snapshots_become_runs(void **state)
{
#define COUNTER(cache, name)                                                                   \
	query(sample, "SELECT value FROM counter JOIN run USING (run) JOIN cache USING (cache) " \
		      "WHERE variant = 'recorded' AND cpu IS NULL AND counter.name = '" name     \
		      "' AND cache.name = '" cache "'")
	(void)state;
	assert_int_equal(COUNTER("skbuff_fclone_cache", "alloc_fastpath"), 14800);
	assert_int_equal(COUNTER("skbuff_fclone_cache", "free_slowpath"), 15571);
	assert_int_equal(COUNTER("kmalloc-512", "alloc_slowpath"), 1268);
	assert_int_equal(COUNTER("shmem_inode_cache", "free_slowpath"), 0);
	/* per CPU and sum agree */
	assert_int_equal(
		query(sample, "SELECT count(*) FROM (SELECT sum(CASE WHEN cpu IS NULL THEN value "
			      "ELSE -value END) d FROM counter JOIN run USING (run) WHERE variant = "
			      "'recorded' GROUP BY cache, name HAVING d <> 0)"),
		0);
	assert_int_equal(query(sample, "SELECT count(*) FROM run WHERE variant = 'kernel:6.1.192'"),
			 2);
	assert_int_equal(
		query(sample, "SELECT value FROM counter JOIN run USING (run) JOIN cache USING "
			      "(cache) WHERE mode = 'before' AND counter.name = 'slabs' AND "
			      "cache.name = 'kmalloc-512' AND cpu IS NULL"),
		45);
	assert_int_equal(query(sample, "SELECT value FROM cache_knob JOIN cache USING (cache) "
				       "WHERE name = 'kmalloc-512' AND knob = 'cpu_partial'"),
			 52);
	assert_int_equal(query(sample, "SELECT object_size FROM cache WHERE name = "
				       "'skbuff_head_cache'"),
			 208);
}

static void coverage_says_what_was_untraced(void **state)
{
	(void)state;
	assert_int_equal(query(sample, "SELECT coverage = 1.0 FROM cache WHERE name = "
				       "'skbuff_fclone_cache'"),
			 1);
	/* maple_node is allocated and freed in bulk, which is not traced */
	assert_int_equal(query(sample, "SELECT coverage < 0.9 FROM cache WHERE name = "
				       "'maple_node'"),
			 1);
}

/* Rows of two tapes, in order, apart from what the text lacks: ctx, and 1 us of time. */
static void assert_same_rows(struct tape *a, struct tape *b, uint64_t rows)
{
	const struct tape_range range = { 0, rows, 0, UINT64_MAX };
	const struct tape_batch *x, *y;
	struct tape_reader *ra, *rb;

	assert_int_equal(tape_reader_open(a, &range, TAPE_COLS_ALL, &ra, NULL), 0);
	assert_int_equal(tape_reader_open(b, &range, TAPE_COLS_ALL, &rb, NULL), 0);
	while (tape_reader_next(ra, &x, NULL) > 0) {
		assert_int_equal(tape_reader_next(rb, &y, NULL), 1);
		assert_int_equal(x->events, y->events);
		for (uint32_t i = 0; i < x->events; i++) {
			assert_int_equal(x->op[i], y->op[i]);
			assert_int_equal(x->cpu[i], y->cpu[i]);
			assert_int_equal(x->address[i], y->address[i]);
			assert_int_equal(x->object[i], y->object[i]);
			assert_int_equal(x->slot[i], y->slot[i]);
			assert_int_equal(x->size[i], y->size[i]);
			assert_int_equal(x->node_req[i], y->node_req[i]);
			assert_int_equal(x->mem_node[i], y->mem_node[i]);
			assert_int_equal(x->tid[i], y->tid[i]);
			assert_int_equal(x->gfp[i], y->gfp[i]);
			assert_in_range(x->ts[i] + 1000 - y->ts[i], 0, 2000);
		}
	}
	tape_reader_close(ra);
	tape_reader_close(rb);
}

static void text_gives_the_same_rows(void **state)
{
	struct capture_options options = { .slab_before = SAMPLE "/slab.before.zst",
					   .zoneinfo = SAMPLE "/zoneinfo" };
	struct capture_stats stats;
	struct tape *t = import(REPORT, &options, &stats);

	(void)state;
	assert_int_equal(stats.format, CAPTURE_FORMAT_TEXT);
	assert_int_equal(stats.kmalloc + stats.cache_alloc + stats.kfree + stats.cache_free,
			 REPORT_EVENTS);
	assert_same_rows(t, sample, stats.tape_events);
	tape_close(t);
}

static void versions_6_and_7_say_the_same(void **state)
{
	struct tape *v6 = import(FIRST_SECOND_V6, NULL, NULL);
	struct tape *v7 = import(FIRST_SECOND_V7, NULL, NULL);

	(void)state;
	assert_int_equal(query(v6, "SELECT value FROM meta WHERE key = 'events'"), 441);
	assert_same_rows(v6, v7, UINT64_MAX);
	tape_close(v6);
	tape_close(v7);
}

/* Counted with `babeltrace2 6.1-lttng-head.ctf`.  A build without babeltrace2 says so. */
static void lttng_recordings_are_read(void **state)
{
	struct tape_err err = { 0 };
	struct capture_stats stats;
	struct tape *t = NULL;
	int rc = capture_open_source(CTF_HEAD, NULL, &t, &stats, &err);

	(void)state;
	if (rc == -TAPE_E_VERSION) {
		assert_non_null(strstr(err.text, "has no babeltrace2"));
		return;
	}
	if (rc < 0)
		fail_msg("%s", err.text);
	assert_int_equal(stats.format, CAPTURE_FORMAT_CTF);
	assert_int_equal(stats.kmalloc, 231);
	assert_int_equal(stats.cache_alloc, 596);
	assert_int_equal(stats.kfree, 223);
	assert_int_equal(stats.cache_free, 450);
	assert_int_equal(query(t, "SELECT max(cpu) FROM cpu"), 3);
	assert_int_equal(query(t, "SELECT value = '6.1.0-57-amd64' FROM meta WHERE key = 'kernel'"),
			 1);
	tape_close(t);
}

/* The first second again, with the header of CPU 0's second page saying that events were lost. */
static void lost_events_become_loss_rows(void **state)
{
	char path[] = "/tmp/slabtape-test-XXXXXX";
	struct capture_stats stats;
	struct tape *t;
	char *data;
	size_t len, page;
	uint64_t commit, missed = 17;
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(capture_input_slurp(FIRST_SECOND_V6, 8u << 20, &data, &len, NULL), 0);
	page = len - 6 * 4096; /* seven pages, all of CPU 0 */
	memcpy(&commit, data + page + 8, 8);
	assert_true(16 + commit + 8 <= 4096);
	memcpy(data + page + 16 + commit, &missed, 8);
	commit |= 1u << 31 | 1u << 30;
	memcpy(data + page + 8, &commit, 8);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	close(fd);
	free(data);
	t = import(path, NULL, &stats);
	unlink(path);
	assert_int_equal(stats.lost, 17);
	assert_int_equal(query(t, "SELECT count(*) FROM loss"), 1);
	assert_int_equal(query(t, "SELECT events FROM loss"), 17);
	assert_int_equal(query(t, "SELECT cpu FROM loss"), 0);
	assert_int_equal(query(t, "SELECT ts_begin <= ts_end FROM loss"), 1);
	tape_close(t);
}

/* Whatever is cut or flipped: the import succeeds or fails with a text and exit code 3. */
static void damaged_files_end_in_an_error(void **state)
{
	char path[] = "/tmp/slabtape-test-XXXXXX";
	char *data, *copy;
	uint64_t seed = 99;
	size_t len;
	int fd = mkstemp(path), failures = 0;

	(void)state;
	assert_int_equal(capture_input_slurp(FIRST_SECOND_V7, 8u << 20, &data, &len, NULL), 0);
	copy = malloc(len);
	assert_non_null(copy);
	for (int round = 0; round < 120; round++) {
		struct tape_err err = { 0 };
		struct tape *t = NULL;
		size_t part = len;

		memcpy(copy, data, len);
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		if (round % 3 == 0)
			part = (seed >> 20) % len;
		else /* metadata of the options in the first and last part, events at the end */
			for (int k = 0; k < round % 8 + 1; k++)
				copy[(seed >> (16 + k)) % (round % 3 == 1 ? 4096 : len)] ^=
					(char)(1 << k);
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, copy, part, 0), (ssize_t)part);
		if (capture_open_source(path, NULL, &t, NULL, &err) < 0) {
			assert_non_null(strstr(err.text, path));
			assert_int_equal(tape_exit_code(err.code), 3);
			failures++;
		}
		tape_close(t);
	}
	close(fd);
	unlink(path);
	free(copy);
	free(data);
	assert_true(failures >= 40); /* every cut one at least */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_event_is_there),
		cmocka_unit_test(totals_agree_with_the_import),
		cmocka_unit_test(window_counts_equal_the_kernels),
		cmocka_unit_test(snapshots_become_runs),
		cmocka_unit_test(coverage_says_what_was_untraced),
		cmocka_unit_test(text_gives_the_same_rows),
		cmocka_unit_test(versions_6_and_7_say_the_same),
		cmocka_unit_test(lttng_recordings_are_read),
		cmocka_unit_test(lost_events_become_loss_rows),
		cmocka_unit_test(damaged_files_end_in_an_error),
	};
	struct tape_err err = { 0 };
	int rc;

	if (capture_open_source(SAMPLE, NULL, &sample, &sample_stats, &err) < 0) {
		print_error("%s\n", err.text);
		return 1;
	}
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	tape_close(sample);
	return rc;
}
