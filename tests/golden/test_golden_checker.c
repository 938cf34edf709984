/* SPDX-License-Identifier: MIT */
/* The checker itself: it passes the real files and fails on a wrong digit and on a missing file. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "golden_check.h"
#include "golden_files.h"

#define CASE "r11-bulk"

static char folder[64];

static struct golden_case real_case(void)
{
	return (struct golden_case){ TEST_SLABTAPE, "slub-6.1", TEST_GOLDEN "/cases",
				     TEST_GOLDEN "/6.1", CASE, false, false };
}

static void put(const char *suffix, const char *data, size_t bytes)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/" CASE "%s", folder, suffix);
	assert_int_equal(golden_write_path(path, data, bytes), 0);
}

static int check_copy(void)
{
	struct golden_case c = real_case();

	c.expected = folder;
	return golden_check(&c);
}

static void the_real_files_pass(void **state)
{
	struct golden_case c = real_case();

	(void)state;
	assert_int_equal(golden_check(&c), 0);
}

/* Positions of digits that carry a compared value, found by the text before them. */
static void wrong_digit(const char *suffix, const char *before)
{
	size_t expect_bytes, path_bytes;
	char *expect = golden_read(TEST_GOLDEN "/6.1", CASE, ".expect", &expect_bytes);
	char *path = golden_read(TEST_GOLDEN "/6.1", CASE, ".path", &path_bytes);
	char *text, *at;

	assert_non_null(expect);
	assert_non_null(path);
	text = strcmp(suffix, ".path") ? expect : path;
	at = text;
	do { /* the first place where a digit follows: script lines say "-" or quote it */
		at = strstr(at, before);
		assert_non_null(at);
		at += strlen(before);
	} while (!isdigit((unsigned char)*at));
	*at = *at == '9' ? '8' : (char)(*at + 1);
	put(".expect", expect, expect_bytes);
	put(".path", path, path_bytes);
	assert_int_not_equal(check_copy(), 0);
	free(expect);
	free(path);
}

static void a_wrong_digit_fails(void **state)
{
	static const char *const expect[] = {
		"\"slabs_seen\": ", "\"alloc_fastpath\": ", "\"cpu_partial_drain\": ",
		"\"1\": {\"free_slowpath\": ", "\"inuse\": ", "\"cpu_free\": [", "\"nr_slabs\": ",
		"\"full\": [", "\"live_slabs\": ", "\"ops\": ", "\"cpu_node\": [",
		"\"min_partial\": ", "\"cpu_partial_slabs\": ", "\"slabs_cpu_partial\": \"0(",
		"\"total_objects\": \"", "\"order\": ",
	};
	static const char *const path[] = { "\nP 3 free_slowpath+", "\n6 30 1.", "\n2 1." };

	(void)state;
	for (size_t i = 0; i < sizeof(expect) / sizeof(*expect); i++)
		wrong_digit(".expect", expect[i]);
	for (size_t i = 0; i < sizeof(path) / sizeof(*path); i++)
		wrong_digit(".path", path[i]);
}

static void a_missing_file_fails(void **state)
{
	static const char *const suffix[] = { ".expect", ".path" };
	struct golden_case c = real_case();
	char path[128];

	(void)state;
	for (int missing = 0; missing < 2; missing++) {
		size_t bytes;
		char *data = golden_read(TEST_GOLDEN "/6.1", CASE, suffix[!missing], &bytes);

		snprintf(path, sizeof(path), "%s/" CASE "%s", folder, suffix[missing]);
		unlink(path);
		put(suffix[!missing], data, bytes);
		assert_int_not_equal(check_copy(), 0);
		free(data);
	}
	c.name = "no-such-case";
	assert_int_not_equal(golden_check(&c), 0);
	c = real_case();
	c.variant = "no-such-variant";
	assert_int_not_equal(golden_check(&c), 0);
}

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/golden-checker.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	const char *const argv[] = { "/bin/rm", "-rf", folder, NULL };

	(void)state;
	return golden_run(argv, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_real_files_pass),
		cmocka_unit_test(a_wrong_digit_fails),
		cmocka_unit_test(a_missing_file_fails),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
