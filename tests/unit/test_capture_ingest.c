/* SPDX-License-Identifier: MIT */
/* What tracers do not see is completed by address alone: rules (a) to (e), names, texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/import.h"
#include "store/tape.h"

static char path[] = "/tmp/slabtape-test-XXXXXX";
static struct capture_stats stats;

/* Lines of a trace: kmalloc and cache events at a time in us on a CPU. */
#define AT(cpu, us) "  task-7  [00" cpu "] d.s2.  0.0000" us ": "
#define KMALLOC(cpu, us, ptr, size)                                                       \
	AT(cpu, us) "kmalloc: call_site=f+0x10/0x20 ptr=ffff8880000" ptr " bytes_req=" size \
		    " bytes_alloc=" size " gfp_flags=GFP_KERNEL node=-1 accounted=false\n"
#define KFREE(cpu, us, ptr) AT(cpu, us) "kfree: call_site=g+0x10/0x20 ptr=ffff8880000" ptr "\n"
#define CACHE_ALLOC(cpu, us, ptr, site)                                                   \
	AT(cpu, us) "kmem_cache_alloc: call_site=" site " ptr=ffff8880000" ptr             \
		    " bytes_req=40 bytes_alloc=40 gfp_flags=GFP_NOWAIT|__GFP_ZERO node=1 " \
		    "accounted=false\n"
#define CACHE_FREE(cpu, us, ptr, name)                                                    \
	AT(cpu, us) "kmem_cache_free: call_site=h+0x1/0x2 ptr=ffff8880000" ptr " name=" name "\n"

static struct tape *import_text(const char *text, const struct capture_options *options)
{
	struct tape_err err = { 0 };
	struct tape *t = NULL;
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	if (capture_open_source(path, options, &t, &stats, &err) < 0)
		fail_msg("%s", err.text);
	return t;
}

static struct tape_event row(struct tape *t, uint64_t seq)
{
	const struct tape_range range = { seq, seq + 1, 0, UINT64_MAX };
	const struct tape_batch *b;
	struct tape_event ev;
	struct tape_reader *r;

	assert_int_equal(tape_reader_open(t, &range, TAPE_COLS_ALL, &r, NULL), 0);
	assert_int_equal(tape_reader_next(r, &b, NULL), 1);
	tape_batch_get(b, 0, &ev);
	tape_reader_close(r);
	return ev;
}

static const char *cache_name(struct tape *t, uint16_t id)
{
	static char name[64];
	struct tape_cache *caches;
	size_t nr;

	assert_true(tape_caches_get(t, &caches, &nr, NULL) >= 0);
	name[0] = '\0';
	for (size_t i = 0; i < nr; i++)
		if (caches[i].id == id)
			memcpy(name, caches[i].name, sizeof(name));
	free(caches);
	return name;
}

static void a_line_becomes_a_row(void **state)
{
	struct tape *t = import_text(CACHE_ALLOC("2", "10", "01000", "f+0x10/0x20")
				     CACHE_FREE("3", "12", "01000", "dentry"), NULL);
	struct tape_event ev = row(t, 0);

	(void)state;
	assert_int_equal(ev.op, TAPE_OP_ALLOC);
	assert_int_equal(ev.ts, 0);
	assert_int_equal(ev.cpu, 2);
	assert_int_equal(ev.tid, 7);
	assert_int_equal(ev.size, 40);
	assert_int_equal(ev.node_req, 1);
	assert_int_equal(ev.ctx, TAPE_CTX_SOFTIRQ);
	assert_int_equal(ev.gfp, TAPE_GFP_NOWAIT | TAPE_GFP_ZERO);
	assert_true(ev.address == 0xffff888000001000);
	assert_int_equal(ev.flags, 0); /* named by its free */
	assert_string_equal(cache_name(t, ev.cache), "dentry");
	ev = row(t, 1);
	assert_int_equal(ev.op, TAPE_OP_FREE);
	assert_int_equal(ev.ts, 2000);
	assert_int_equal(ev.cpu, 3);
	assert_int_equal(ev.object, 0);
	tape_close(t);
}

static void rule_a_alloc_of_a_live_address(void **state)
{
	static const char text[] = KMALLOC("0", "10", "01000", "64") KMALLOC("0", "12", "02000", "8")
		KMALLOC("1", "20", "01000", "96");
	struct tape *t = import_text(text, NULL);
	struct tape_event ev = row(t, 2);

	(void)state;
	assert_int_equal(stats.inferred_frees, 1);
	assert_int_equal(ev.op, TAPE_OP_FREE);
	assert_int_equal(ev.flags, TAPE_F_INFERRED);
	assert_int_equal(ev.object, 0);
	assert_int_equal(ev.cpu, 1);
	assert_int_equal(ev.ts, 10000);
	assert_int_equal(ev.ts_lo, 0);
	assert_int_equal(ev.ts_hi, 10000);
	assert_string_equal(cache_name(t, ev.cache), "kmalloc-64");
	ev = row(t, 3);
	assert_int_equal(ev.object, 2);
	assert_int_equal(ev.slot, 0); /* the slot of the object that ended */
	tape_close(t);
}

static void rule_b_free_of_a_freed_address(void **state)
{
	struct tape *t = import_text(KMALLOC("0", "10", "01000", "64") KFREE("0", "11", "01000")
				     KFREE("1", "15", "01000"), NULL);
	struct tape_event ev = row(t, 2);

	(void)state;
	assert_int_equal(stats.inferred_allocs, 1);
	assert_int_equal(stats.orphan_frees, 0);
	assert_int_equal(ev.op, TAPE_OP_ALLOC);
	assert_int_equal(ev.flags, TAPE_F_INFERRED | TAPE_F_UNNAMED);
	assert_int_equal(ev.ts_lo, 1000);
	assert_int_equal(ev.ts_hi, 5000);
	assert_int_equal(ev.object, 1);
	ev = row(t, 3);
	assert_int_equal(ev.op, TAPE_OP_FREE);
	assert_int_equal(ev.object, 1);
	assert_false(ev.flags & (TAPE_F_INFERRED | TAPE_F_ORPHAN));
	tape_close(t);
}

/* Orphans until the cache shows that its allocs are not all traced. */
static void rule_c_free_of_an_unknown_address(void **state)
{
	struct tape *t = import_text(CACHE_FREE("0", "10", "01000", "dentry")
				     CACHE_FREE("0", "11", "01000", "dentry")
				     CACHE_FREE("0", "12", "02000", "dentry")
				     CACHE_FREE("0", "13", "03000", "inode"), NULL);

	(void)state;
	assert_int_equal(stats.orphan_frees, 2); /* the first dentry, the inode */
	assert_int_equal(stats.inferred_allocs, 2);
	assert_int_equal(row(t, 0).flags, TAPE_F_ORPHAN);
	assert_int_equal(row(t, 0).slot, TAPE_NO_SLOT);
	assert_int_equal(row(t, 1).flags, TAPE_F_INFERRED);
	assert_int_equal(row(t, 5).flags, TAPE_F_ORPHAN);
	tape_close(t);
}

static void rule_c_is_capped_by_the_snapshot(void **state)
{
	char snapshot[] = "/tmp/slabtape-test-XXXXXX";
	struct capture_options options = { .slab_before = snapshot };
	int fd = mkstemp(snapshot);
	static const char text[] = "dentry/objects:1 N0=1\ndentry/object_size:192\n";
	struct tape *t;

	(void)state;
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	t = import_text(CACHE_FREE("0", "10", "01000", "dentry")
			CACHE_FREE("0", "11", "02000", "dentry"), &options);
	unlink(snapshot);
	assert_int_equal(stats.orphan_frees, 1);
	assert_int_equal(stats.inferred_allocs, 1);
	tape_close(t);
}

static void rule_d_null_and_failed_have_no_rows(void **state)
{
	static const char text[] = KMALLOC("0", "10", "01000", "64")
		AT("0", "11") "kfree: call_site=g+0x1/0x2 ptr=0000000000000000\n"
		AT("0", "12") "kfree: call_site=g+0x1/0x2 ptr=(nil)\n"
		AT("0", "13") "kmalloc: call_site=f+0x1/0x2 ptr=(nil) bytes_req=8 bytes_alloc=0 "
			      "gfp_flags=GFP_ATOMIC node=-1 accounted=false\n";
	struct tape_totals totals;
	struct tape *t = import_text(text, NULL);

	(void)state;
	assert_int_equal(stats.null_frees, 2);
	assert_int_equal(stats.failed_allocs, 1);
	assert_int_equal(stats.tape_events, 1);
	assert_int_equal(tape_totals_get(t, &totals, NULL), 0);
	assert_int_equal(totals.null_frees, 2);
	assert_int_equal(totals.failed_allocs, 1);
	tape_close(t);
}

static void rule_e_windows_that_touch_a_loss(void **state)
{
	static const char text[] = KMALLOC("0", "10", "01000", "64") KFREE("0", "11", "01000")
		KFREE("0", "15", "01000") "CPU:0 [LOST 3 EVENTS]\n" KMALLOC("0", "30", "02000", "8")
		KFREE("0", "35", "01000");
	struct tape *t = import_text(text, NULL);

	(void)state;
	assert_int_equal(stats.lost, 3);
	assert_int_equal(stats.inferred_allocs, 2);
	assert_false(row(t, 2).flags & TAPE_F_UNKNOWN); /* window 1..5 us */
	assert_true(row(t, 5).flags & TAPE_F_UNKNOWN);	/* window 5..25 us, loss 5..20 us */
	tape_close(t);
}

static void none_leaves_inferred_rows_out(void **state)
{
	static const char text[] = KMALLOC("0", "10", "01000", "64")
		KMALLOC("0", "12", "01000", "64") KFREE("0", "13", "01000")
		KFREE("0", "15", "01000");
	struct capture_options options = { .infer = CAPTURE_INFER_NONE };
	struct tape *t = import_text(text, &options);

	(void)state;
	assert_int_equal(stats.tape_events, 4);
	assert_int_equal(stats.inferred_allocs + stats.inferred_frees, 0);
	assert_int_equal(row(t, 3).flags & TAPE_F_ORPHAN, TAPE_F_ORPHAN);
	tape_close(t);
}

static void large_kmallocs_are_no_slab_objects(void **state)
{
	struct tape *t = import_text(KMALLOC("0", "10", "04000", "16384")
				     KFREE("0", "11", "04000")
				     KMALLOC("0", "12", "08000", "8192"), NULL);

	(void)state;
	assert_int_equal(row(t, 0).flags, TAPE_F_BIG);
	assert_int_equal(row(t, 0).cache, TAPE_NO_CACHE);
	assert_int_equal(row(t, 1).flags, TAPE_F_BIG);
	assert_int_equal(row(t, 2).flags, 0);
	assert_string_equal(cache_name(t, row(t, 2).cache), "kmalloc-8k");
	tape_close(t);
}

/* Three objects of one site, one of them named; a page neighbour; an object nobody knows. */
static void names_are_learned_and_guessed(void **state)
{
	static const char text[] = CACHE_ALLOC("0", "10", "01000", "f+0x10/0x20")
		CACHE_ALLOC("0", "11", "01040", "f+0x10/0x20")
		CACHE_ALLOC("0", "12", "01080", "other+0x10/0x20")
		CACHE_ALLOC("0", "13", "09000", "third+0x10/0x20")
		CACHE_FREE("0", "14", "01000", "dentry");
	struct tape *t = import_text(text, NULL);

	(void)state;
	assert_int_equal(stats.guessed, 2);
	assert_int_equal(stats.unnamed, 1);
	assert_string_equal(cache_name(t, row(t, 0).cache), "dentry");
	assert_int_equal(row(t, 0).flags, 0);
	assert_string_equal(cache_name(t, row(t, 1).cache), "dentry"); /* same site and size */
	assert_int_equal(row(t, 1).flags, TAPE_F_UNNAMED);
	assert_string_equal(cache_name(t, row(t, 2).cache), "dentry"); /* same page */
	assert_int_equal(row(t, 3).cache, TAPE_CACHE_UNKNOWN);
	assert_int_equal(row(t, 3).flags, TAPE_F_UNNAMED);
	tape_close(t);
}

/* One event, as each program writes it. */
static const char *const spellings[] = {
	"   kworker/0:1-e v-12  ( 12) [001] d..1.   5.000001: kfree: call_site=f+0x1/0x2 "
	"ptr=ffff888000001000\n",
	"   kworker/0:1-e v-12  [001] 5.000001: kfree:  (f+0x1) call_site=f+0x1 "
	"ptr=0xffff888000001000\n",
	"   kworker/0:1-e v-12  [001] d..1. 5.000001500: kfree: (f+0x1) call_site=f+0x1 "
	"ptr=0xffff888000001000\n",
	"kworker/0:1-e v    12 [001]     5.000001: kmem:kfree: call_site=f+0x1 "
	"ptr=0xffff888000001000\n",
	"kworker/0:1-e v 10/12 [001]     5.000001: kmem:kfree: call_site=f+0x1 "
	"ptr=0xffff888000001000 name=(null)\n",
};

static void every_spelling_is_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
		struct tape *t = import_text(spellings[i], NULL);
		struct tape_event ev = row(t, 0);

		if (stats.kfree != 1 || ev.cpu != 1 || ev.tid != 12 || ev.site != 1 ||
		    ev.address != 0xffff888000001000)
			fail_msg("%s", spellings[i]);
		tape_close(t);
	}
}

static const struct {
	const char *text;
	int code;
	const char *says;
} wrong[] = {
	{ "# tracer: nop\n#\n", -TAPE_E_FORMAT, "no kmem event" },
	{ KFREE("0", "10", "01000") "what is this\n", -TAPE_E_FORMAT, ":2: no line of" },
	{ KFREE("0", "10", "01000") "  task-7  [000]  0.000010: kfree: ptr=ffff", -TAPE_E_TRUNCATED,
	  ":2: the last line has no end" },
	{ AT("0", "10") "kfree: call_site=f+0x1/0x2 ptr=(____ptrval____)\n", -TAPE_E_FORMAT,
	  "nohash-ptr" },
	{ AT("0", "10") "kmalloc: call_site=f+0x1/0x2 ptr=ffff888000001000 bytes_req=8\n",
	  -TAPE_E_FORMAT, ":1: no bytes_req or bytes_alloc" },
	{ "hello\n", -TAPE_E_FORMAT, "no format this build can import" },
};

static void what_is_wrong_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct tape_err err = { 0 };
		struct tape *t = NULL;
		FILE *f = fopen(path, "w");

		assert_true(f && fputs(wrong[i].text, f) >= 0 && fclose(f) == 0);
		if (capture_open_source(path, NULL, &t, NULL, &err) != wrong[i].code ||
		    !strstr(err.text, wrong[i].says) || !strstr(err.text, path))
			fail_msg("text %zu: %d, \"%s\"", i, err.code, err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_becomes_a_row),
		cmocka_unit_test(rule_a_alloc_of_a_live_address),
		cmocka_unit_test(rule_b_free_of_a_freed_address),
		cmocka_unit_test(rule_c_free_of_an_unknown_address),
		cmocka_unit_test(rule_c_is_capped_by_the_snapshot),
		cmocka_unit_test(rule_d_null_and_failed_have_no_rows),
		cmocka_unit_test(rule_e_windows_that_touch_a_loss),
		cmocka_unit_test(none_leaves_inferred_rows_out),
		cmocka_unit_test(large_kmallocs_are_no_slab_objects),
		cmocka_unit_test(names_are_learned_and_guessed),
		cmocka_unit_test(every_spelling_is_read),
		cmocka_unit_test(what_is_wrong_is_named),
	};
	int fd = mkstemp(path), rc;

	if (fd < 0)
		return 1;
	close(fd);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return rc;
}
