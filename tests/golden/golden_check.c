/* SPDX-License-Identifier: MIT */
#include "golden_check.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "golden_files.h"

#define REPORTS_MAX 25

static int differs(int *diffs, const char *where, const json_t *want, const json_t *got)
{
	char *a = want ? json_dumps(want, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
	char *b = got ? json_dumps(got, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;

	if (++*diffs <= REPORTS_MAX)
		fprintf(stderr, "%s: want %.300s, got %.300s\n", where, a ? a : "nothing",
			b ? b : "nothing");
	free(a);
	free(b);
	return 1;
}

/* Every difference below @where, objects key by key in both directions, arrays item by item. */
static void compare(int *diffs, const char *where, json_t *want, json_t *got)
{
	char below[512];
	const char *key;
	json_t *value;
	size_t i;

	if (want && got && json_is_object(want) && json_is_object(got)) {
		json_object_foreach(want, key, value) {
			snprintf(below, sizeof(below), "%s.%s", where, key);
			compare(diffs, below, value, json_object_get(got, key));
		}
		json_object_foreach(got, key, value) {
			snprintf(below, sizeof(below), "%s.%s", where, key);
			if (!json_object_get(want, key))
				differs(diffs, below, NULL, value);
		}
	} else if (want && got && json_is_array(want) && json_is_array(got) &&
		   json_array_size(want) == json_array_size(got)) {
		json_array_foreach(want, i, value) {
			snprintf(below, sizeof(below), "%s[%zu]", where, i);
			compare(diffs, below, value, json_array_get(got, i));
		}
	} else if (!want || !got || !json_equal(want, got)) {
		differs(diffs, where, want, got);
	}
}

/* A value of the golden's config or sysfs (number, or text that begins with one). */
static bool number_of(const json_t *value, long long *ret)
{
	char *end;

	if (json_is_integer(value)) {
		*ret = json_integer_value(value);
		return true;
	}
	if (!json_is_string(value))
		return false;
	*ret = strtoll(json_string_value(value), &end, 10);
	return end != json_string_value(value);
}

static void compare_number(int *diffs, const char *where, const json_t *want, const json_t *got)
{
	long long a, b = 0;

	/* A knob the variant does not have is null; the kernel shows a constant 0. */
	if (!want || !number_of(want, &a) || (!number_of(got, &b) && !(json_is_null(got) && !a)) ||
	    a != b)
		differs(diffs, where, want, got);
}

/* The kernel's name of a configuration value and where the result has it. */
static const struct {
	const char *golden, *result;
	bool knob;
} config_names[] = {
	{ "size", "size", false }, { "object_size", "object_size", false },
	{ "offset", "offset", false }, { "align", "align", false }, { "order", "order", false },
	{ "gfporder", "order", false }, { "objects", "objs_per_slab", false },
	{ "num", "objs_per_slab", false }, { "min_order", "min_order", false },
	{ "min_objects", "min_objects", false }, { "min_partial", "min_partial", false },
	{ "cpu_partial", "cpu_partial", false },
	{ "cpu_partial_slabs", "cpu_partial_slabs", false },
	{ "sheaf_capacity", "sheaf_capacity", false }, { "limit", "limit", true }, { "batchcount", "batchcount", true },
	{ "shared", "shared", true },
}, sysfs_names[] = {
	{ "object_size", "object_size", false }, { "slab_size", "size", false },
	{ "objs_per_slab", "objs_per_slab", false }, { "order", "order", false },
	{ "min_partial", "min_partial", false }, { "cpu_partial", "cpu_partial", false },
	{ "sheaf_capacity", "sheaf_capacity", false }, { "objects", "objects", false },
	{ "total_objects", "total_objects", false }, { "slabs", "slabs", false },
	{ "partial", "partial", false }, { "objects_partial", "objects_partial", false },
	{ "cpu_slabs", "cpu_slabs", false },
};

/* The ratio as the kernel keeps it; a variant that only has the sysfs form shows a tenth. */
static void compare_defrag(int *diffs, const json_t *want, const json_t *knobs)
{
	const json_t *got = json_object_get(knobs, "defrag");
	const json_t *tenth = json_object_get(knobs, "remote_node_defrag_ratio");
	json_t *want_tenth = json_integer(json_integer_value(want) / 10);

	if (got)
		compare_number(diffs, "config.defrag", want, got);
	else
		compare_number(diffs, "config.defrag / 10", want_tenth, tenth);
	json_decref(want_tenth);
}

static void compare_config(int *diffs, const json_t *golden, const json_t *cache,
			   const json_t *knobs)
{
	const json_t *config = json_object_get(golden, "config");
	const json_t *sysfs = json_object_get(golden, "sysfs");
	const char *text = json_string_value(json_object_get(sysfs, "slabs_cpu_partial"));
	char where[64];

	if (json_object_get(config, "defrag"))
		compare_defrag(diffs, json_object_get(config, "defrag"), knobs);
	for (size_t i = 0; i < sizeof(config_names) / sizeof(*config_names); i++) {
		const json_t *want = json_object_get(config, config_names[i].golden);

		snprintf(where, sizeof(where), "config.%s", config_names[i].golden);
		if (want)
			compare_number(diffs, where, want,
				       json_object_get(config_names[i].knob ? knobs : cache,
						       config_names[i].result));
	}
	for (size_t i = 0; i < sizeof(sysfs_names) / sizeof(*sysfs_names); i++) {
		const json_t *want = json_object_get(sysfs, sysfs_names[i].golden);

		snprintf(where, sizeof(where), "sysfs.%s", sysfs_names[i].golden);
		if (want)
			compare_number(diffs, where, want,
				       json_object_get(cache, sysfs_names[i].result));
	}
	/* "objects(slabs) C0=..": the slabs */
	if (text && strchr(text, '(')) {
		json_t *slabs = json_integer(atoll(strchr(text, '(') + 1));

		compare_number(diffs, "sysfs.slabs_cpu_partial", slabs,
			       json_object_get(cache, "slabs_cpu_partial"));
		json_decref(slabs);
	}
}

static void compare_result(int *diffs, json_t *golden, json_t *result, const char *name)
{
	static const char *const whole[] = { "initial_counters", "counters", "per_cpu", "final",
					     "checkpoints", "slabs_seen" };
	static const char *const machine[] = { "cpus", "nodes", "cpu_node" };
	json_t *cache = json_array_get(json_object_get(result, "caches"), 0);
	const json_t *want_machine = json_object_get(golden, "machine");
	const json_t *engine = json_object_get(result, "engine");
	json_t *want_name = json_string(name);

	compare(diffs, "ops", json_object_get(golden, "ops"), json_object_get(result, "ops"));
	compare(diffs, "name", want_name, json_object_get(cache, "name"));
	json_decref(want_name);
	for (size_t i = 0; i < 3; i++)
		compare(diffs, machine[i], json_object_get(want_machine, machine[i]),
			json_object_get(engine, machine[i]));
	for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
		compare(diffs, whole[i], json_object_get(golden, whole[i]),
			json_object_get(cache, whole[i]));
	compare_config(diffs, golden, cache,
		       json_object_get(json_object_get(result, "knobs"), name));
}

/* Byte for byte; reports the first line that differs. */
static void compare_text(int *diffs, const char *what, const char *want, const char *got)
{
	unsigned long line = 1;
	const char *a = want, *b = got;

	if (!want || !got) {
		++*diffs;
		fprintf(stderr, "%s: %s\n", what, want ? "nothing written" : "no expected file");
		return;
	}
	for (; *a && *a == *b; a++, b++)
		if (*a == '\n') {
			line++;
			want = a + 1;
			got = b + 1;
		}
	if (*a == *b)
		return;
	++*diffs;
	fprintf(stderr, "%s, line %lu: want \"%.*s\", got \"%.*s\"\n", what, line,
		(int)strcspn(want, "\n"), want, (int)strcspn(got, "\n"), got);
}

/* Scratch files of one check. */
struct scratch {
	char folder[64], json[96], path[96], tape[96], tape_json[96], tape_path[96], ops[96];
};

static int scratch_make(struct scratch *s)
{
	const char *tmp = "/tmp/golden.XXXXXX";

	snprintf(s->folder, sizeof(s->folder), "%s", tmp);
	if (!mkdtemp(s->folder))
		return -1;
	snprintf(s->json, sizeof(s->json), "%s/json", s->folder);
	snprintf(s->path, sizeof(s->path), "%s/path", s->folder);
	snprintf(s->tape, sizeof(s->tape), "%s/t.tape", s->folder);
	snprintf(s->tape_json, sizeof(s->tape_json), "%s/tape.json", s->folder);
	snprintf(s->tape_path, sizeof(s->tape_path), "%s/tape.path", s->folder);
	snprintf(s->ops, sizeof(s->ops), "%s/ops", s->folder);
	return 0;
}

static void scratch_remove(const struct scratch *s)
{
	const char *const argv[] = { "/bin/rm", "-rf", s->folder, NULL };

	golden_run(argv, NULL);
}

static int replay(const struct golden_case *c, const char *source, const char *json,
		  const char *path)
{
	const char *const argv[] = { c->slabtape, "replay", source, "--variant", c->variant, "--json",
				     "--state", "--no-timing", "--paths", path, NULL };
	int code = golden_run(argv, json);

	if (code)
		fprintf(stderr, "replay %s: exit %d\n", source, code);
	return code;
}

/* Take out of @counters what stands at 0 and is unknown to @kernel. */
static void drop_own_zeros(json_t *counters, const json_t *kernel)
{
	const char *name;
	json_t *value;
	void *next;

	json_object_foreach_safe(counters, next, name, value)
		if (!json_object_get(kernel, name) && json_integer_value(value) == 0)
			json_object_del(counters, name);
}

static void drop_own_counters(json_t *result, const json_t *golden)
{
	const json_t *kernel = json_object_get(golden, "counters");
	json_t *cache = json_array_get(json_object_get(result, "caches"), 0), *point;
	size_t i;

	drop_own_zeros(json_object_get(cache, "counters"), kernel);
	json_array_foreach(json_object_get(cache, "checkpoints"), i, point)
		drop_own_zeros(json_object_get(point, "counters"), kernel);
}

static void check_replay(int *diffs, const struct golden_case *c, const struct scratch *s,
			 const char *script)
{
	size_t bytes;
	char *want = golden_read(c->expected, c->name, ".expect", &bytes);
	char *want_path = golden_read(c->expected, c->name, ".path", &bytes);
	json_t *golden = want ? json_loads(want, 0, NULL) : NULL, *result = NULL;

	if (!golden || replay(c, script, s->json, s->path) ||
	    !(result = json_load_file(s->json, 0, NULL))) {
		++*diffs;
		fprintf(stderr, "%s: %s\n", c->name, golden ? "no result" : "no expected state");
	} else {
		char *got_path = golden_read_path(s->path, &bytes);

		if (c->own_counters)
			drop_own_counters(result, golden);
		compare_result(diffs, golden, result, c->name);
		compare_text(diffs, "path", want_path, got_path);
		free(got_path);
	}
	json_decref(golden);
	json_decref(result);
	free(want);
	free(want_path);
}

/* Comments and blank lines of a script taken out, in place. */
static char *bare_script(char *text)
{
	char *to = text, *line = text;

	while (text && *line) {
		size_t len = strcspn(line, "\n") + (strchr(line, '\n') != NULL);

		if (*line != '#' && strspn(line, " \t\r\n") < len) {
			memmove(to, line, len);
			to += len;
		}
		line += len;
	}
	if (text)
		*to = '\0';
	return text;
}

static void compare_files(int *diffs, const char *what, const char *want, const char *got,
			  char *(*change)(char *))
{
	size_t bytes;
	char *a = golden_read_path(want, &bytes), *b = golden_read_path(got, &bytes);

	compare_text(diffs, what, change ? change(a) : a, change ? change(b) : b);
	free(a);
	free(b);
}

static void check_tape(int *diffs, const struct golden_case *c, const struct scratch *s,
		       const char *script)
{
	const char *const import[] = { c->slabtape, "import", "-q", "-o", s->tape, script, NULL };
	const char *const export[] = { c->slabtape, "export", s->tape, "--to", "ops", "-o", s->ops,
				       NULL };

	if (golden_run(import, NULL) || replay(c, s->tape, s->tape_json, s->tape_path) ||
	    golden_run(export, NULL)) {
		++*diffs;
		fprintf(stderr, "%s: import, replay of the tape or export failed\n", c->name);
		return;
	}
	compare_files(diffs, "JSON by way of the tape", s->json, s->tape_json, NULL);
	compare_files(diffs, "path by way of the tape", s->path, s->tape_path, NULL);
	compare_files(diffs, "script out of the tape", script, s->ops, bare_script);
}

int golden_check(const struct golden_case *c)
{
	char *script = golden_find(c->cases, c->name, ".ops");
	struct scratch s;
	int diffs = 0;

	if (!script || scratch_make(&s) < 0) {
		fprintf(stderr, "%s: no script in %s\n", c->name, c->cases);
		free(script);
		return 1;
	}
	check_replay(&diffs, c, &s, script);
	if (c->tape)
		check_tape(&diffs, c, &s, script);
	scratch_remove(&s);
	free(script);
	if (diffs)
		fprintf(stderr, "%s on %s: %d differences\n", c->name, c->variant, diffs);
	return diffs;
}
