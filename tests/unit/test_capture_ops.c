/* SPDX-License-Identifier: MIT */
/* .ops scripts: what goes in comes out again; what is wrong is named with file and line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/export_ops.h"
#include "capture/import.h"
#include "capture/input.h"
#include "store/tape.h"

#define HEADER                                                                                   \
	"slabops 1\ncase every-op\nnote all letters\n"                                           \
	"machine cpus=4 nodes=2 cpu_node=0,0,1,1\n"                                              \
	"cache size=256 align=0 min_partial=7 cpu_partial=- defrag=1023 hwalign=1 "              \
	"sheaf_capacity=32 gfp=nowait\n"                                                         \
	"ids 12\nops\n"

static const char every_op[] = HEADER "a 0 0\nn 1 1 1\nA 2 2 4\nf 3 0\nk 3 1\nR 2 5 2 3\nA 1 6 1\n"
				      "R 1 4\nP 0 3 5\np 0 3 7\nX 0 3 2\nQ 0 3\nF 2\ns\nb\nO 1\nc\n"
				      "a 0 0\nf 1 0\nend\n";

static char path[] = "/tmp/slabtape-test-XXXXXX";

static void write_file(const char *text, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static char *export_of(struct tape *t)
{
	struct tape_err err = { 0 };
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	if (export_ops(t, out, &err) < 0)
		fail_msg("%s", err.text);
	fclose(out);
	return text;
}

static struct tape *import(const char *source)
{
	struct tape_err err = { 0 };
	struct tape *t = NULL;

	if (capture_open_source(source, NULL, &t, NULL, &err) < 0)
		fail_msg("%s", err.text);
	return t;
}

static void script_comes_back(void **state)
{
	struct tape *t;
	char *text;

	(void)state;
	write_file(every_op, strlen(every_op));
	t = import(path);
	text = export_of(t);
	assert_string_equal(text, every_op);
	free(text);
	tape_close(t);
}

static void header_becomes_rows(void **state)
{
	struct tape_machine machine;
	struct tape_cache *caches;
	struct tape_totals totals;
	struct tape *t;
	char *knob;
	size_t nr;

	(void)state;
	write_file(every_op, strlen(every_op));
	t = import(path);
	assert_int_equal(tape_machine_get(t, &machine, NULL), 0);
	assert_int_equal(machine.cpus, 4);
	assert_int_equal(machine.nodes, 2);
	assert_int_equal(machine.cpu_node[2], 1);
	assert_true(tape_caches_get(t, &caches, &nr, NULL) >= 0);
	assert_int_equal(nr, 1);
	assert_int_equal(caches[0].id, 1);
	assert_string_equal(caches[0].name, "every-op");
	assert_int_equal(caches[0].object_size, 256);
	assert_true(caches[0].flags & TAPE_CACHE_HWALIGN);
	free(caches);
	assert_int_equal(tape_knob_get(t, 1, "min_partial", &knob, NULL), 0);
	assert_string_equal(knob, "7");
	free(knob);
	assert_int_equal(tape_knob_get(t, 1, "cpu_partial", &knob, NULL), 0);
	assert_null(knob);
	assert_int_equal(tape_totals_get(t, &totals, NULL), 0);
	assert_int_equal(totals.objects, 9); /* id 0 twice: two objects */
	assert_int_equal(totals.ops[TAPE_OP_ALLOC_BULK], 5);
	assert_int_equal(totals.ops[TAPE_OP_FREE_BULK], 4);
	tape_close(t);
}

/* A script, the error it gives and a part of its message. */
static const struct {
	const char *script;
	int code;
	const char *says;
} wrong[] = {
	{ "", -TAPE_E_TRUNCATED, "empty" },
	{ "slabops 2\n", -TAPE_E_VERSION, ":1: .ops format 2" },
	{ "slabops 1\ncase x\n", -TAPE_E_TRUNCATED, ":3: the script ends in its header" },
	{ "slabops 1\ncase x\nnonsense 1\nops\nend\n", -TAPE_E_FORMAT, ":3: no such header" },
	{ "slabops 1\ncase x\nops\nend\n", -TAPE_E_FORMAT, ":3: no machine line" },
	{ "slabops 1\nmachine cpus=2 nodes=1 cpu_node=0\n", -TAPE_E_FORMAT, ":2: machine" },
	{ "slabops 1\nmachine cpus=1 nodes=1 cpu_node=3\n", -TAPE_E_FORMAT, "node 3 of 1" },
	{ "slabops 1\ncache size=x\n", -TAPE_E_FORMAT, ":2: cache: bad size" },
	{ HEADER "z 1 2\nend\n", -TAPE_E_FORMAT, ":8: no such operation" },
	{ HEADER "a 4 0\nend\n", -TAPE_E_FORMAT, ":8: CPU must be below 4" },
	{ HEADER "a 0 12\nend\n", -TAPE_E_FORMAT, ":8: ID must be below 12" },
	{ HEADER "n 0 2 1\nend\n", -TAPE_E_FORMAT, ":8: NODE must be below 2" },
	{ HEADER "a 0\nend\n", -TAPE_E_FORMAT, ":8: ID expected" },
	{ HEADER "a 0 1 2\nend\n", -TAPE_E_FORMAT, ":8: unexpected" },
	{ HEADER "a 0 1\na 0 1\nend\n", -TAPE_E_FORMAT, ":9: id 1 is allocated already" },
	{ HEADER "f 0 1\nend\n", -TAPE_E_FORMAT, ":8: id 1 is not allocated" },
	{ HEADER "a 0 1\nf 0 1\nf 0 1\nend\n", -TAPE_E_FORMAT, ":10: id 1 is freed already" },
	{ HEADER "A 0 10 3\nend\n", -TAPE_E_FORMAT, ":8: N must" },
	{ HEADER "O 3\nend\n", -TAPE_E_FORMAT, ":8: LEVEL must be below 3" },
	{ HEADER "a 0 1\n", -TAPE_E_TRUNCATED, ":9: the script ends without `end`" },
};

static void what_is_wrong_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct tape_err err = { 0 };
		struct tape *t = NULL;

		write_file(wrong[i].script, strlen(wrong[i].script));
		if (capture_open_source(path, NULL, &t, NULL, &err) != wrong[i].code ||
		    !strstr(err.text, wrong[i].says) || !strstr(err.text, path))
			fail_msg("script %zu: %d, \"%s\"", i, err.code, err.text);
		assert_int_equal(tape_exit_code(err.code), 3);
	}
}

/* Whatever is cut or flipped: an import ends with success or with an error that says something. */
static void damaged_scripts_end_in_an_error(void **state)
{
	char copy[sizeof(every_op)];
	unsigned seed = 7;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct tape_err err = { 0 };
		struct tape *t = NULL;
		size_t len = sizeof(every_op) - 1;

		memcpy(copy, every_op, sizeof(copy));
		seed = seed * 1103515245 + 12345;
		if (round % 3 == 0)
			len = seed / 65536 % len;
		else
			copy[seed / 65536 % len] = (char)(seed >> 24);
		write_file(copy, len);
		if (capture_open_source(path, NULL, &t, NULL, &err) < 0)
			assert_true(err.text[0] != '\0');
		tape_close(t);
	}
}

/* Every committed golden script survives the round trip. */
static void golden_scripts_come_back(void **state)
{
	const char *dir_path = TEST_SOURCE_DIR "/golden/cases";
	DIR *dir = opendir(dir_path);
	struct dirent *entry;
	int cases = 0;

	(void)state;
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char name[512], *want, *have, *out;
		struct tape *t;
		size_t len;

		if (!strstr(entry->d_name, ".ops"))
			continue;
		snprintf(name, sizeof(name), "%s/%s", dir_path, entry->d_name);
		assert_int_equal(capture_input_slurp(name, 64u << 20, &want, &len, NULL), 0);
		/* Without comments and blank lines. */
		out = want;
		for (char *line = want, *next; *line; line = next) {
			next = line + strcspn(line, "\n");
			next += *next == '\n';
			if (*line != '#' && *line != '\n') {
				memmove(out, line, (size_t)(next - line));
				out += next - line;
			}
		}
		*out = '\0';
		t = import(name);
		have = export_of(t);
		if (strcmp(have, want))
			fail_msg("%s does not come back", name);
		free(have);
		free(want);
		tape_close(t);
		cases++;
	}
	closedir(dir);
	assert_true(cases > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(script_comes_back),
		cmocka_unit_test(header_becomes_rows),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(damaged_scripts_end_in_an_error),
		cmocka_unit_test(golden_scripts_come_back),
	};
	int fd = mkstemp(path), rc;

	if (fd < 0)
		return 1;
	close(fd);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return rc;
}
