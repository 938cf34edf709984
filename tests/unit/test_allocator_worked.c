/* SPDX-License-Identifier: MIT */
/*
 * Worked examples: four scenarios, every counter of every SLUB variant (tests/data/
 * worked-examples.tsv), the signatures of single steps, and the identities between counters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/one_cache.h"

enum { LIVE_MAX = 1000 };

/* CPU 0 allocates 100 and frees them in the same order. */
static void scenario_1(struct bench *b)
{
	void *objs[100];

	for (int i = 0; i < 100; i++)
		objs[i] = take(b, 0);
	for (int i = 0; i < 100; i++)
		give(b, 0, objs[i]);
}

/* CPU 0 produces, CPU 1 frees the oldest as soon as more than 64 are live. */
static void scenario_2(struct bench *b)
{
	void *objs[1000];
	int oldest = 0;

	for (int i = 0; i < 1000; i++) {
		objs[i] = take(b, 0);
		if (i + 1 - oldest > 64)
			give(b, 1, objs[oldest++]);
	}
	while (oldest < 1000)
		give(b, 1, objs[oldest++]);
}

/* CPU 1 frees every eighth of 400, allocates 200, CPU 0 frees what is left. */
static void scenario_3(struct bench *b)
{
	void *objs[600];

	for (int i = 0; i < 400; i++)
		objs[i] = take(b, 0);
	for (int i = 0; i < 400; i += 8) {
		give(b, 1, objs[i]);
		objs[i] = NULL;
	}
	for (int i = 400; i < 600; i++)
		objs[i] = take(b, 1);
	for (int i = 0; i < 600; i++)
		if (objs[i])
			give(b, 0, objs[i]);
}

/* 20000 steps of a linear congruential generator on two CPUs. */
static void scenario_4(struct bench *b)
{
	void *objs[LIVE_MAX];
	uint64_t x = 1, r;
	uint32_t live = 0, j;

	for (int i = 0; i < 20000; i++) {
		x = (x * 1103515245 + 12345) % (1ull << 31);
		r = x >> 8;
		if (live < 300 || ((r >> 1) % 100 < 50 && live < 900)) {
			objs[live++] = take(b, r & 1);
			continue;
		}
		j = (uint32_t)((r >> 9) % live);
		give(b, r & 1, objs[j]);
		objs[j] = objs[--live];
	}
}

static void run_scenario(struct bench *b, const char *name)
{
	static void (*const scenarios[])(struct bench *) = { scenario_1, scenario_2, scenario_3,
							     scenario_4 };

	scenarios[name[1] - '1'](b);
}

/* A counter, or one of the state values `partial` and `slabs`. */
static int64_t value_of(const struct bench *b, const char *name)
{
	struct alloc_cache_state st;

	b->v->state(b->c, &st);
	if (!strcmp(name, "partial"))
		return (int64_t)st.partial;
	if (!strcmp(name, "slabs"))
		return (int64_t)st.slabs;
	/* Creation counts one sheaf per CPU; the tables were made with two CPUs. */
	return counter(b, name) - (!strcmp(name, "sheaf_alloc") && b->v->prefill ? CPUS - 2 : 0);
}

static void every_counter_of_the_tables(void **state)
{
	char line[256], scenario[8], variant[64], name[64], last[128] = "", key[128];
	FILE *f = fopen(TEST_SOURCE_DIR "/data/worked-examples.tsv", "r");
	struct bench b = { 0 };
	unsigned int size;
	int rows = 0;
	long want;

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (*line == '#')
			continue;
		assert_int_equal(sscanf(line, "%7s %u %63s %63s %ld", scenario, &size, variant, name,
					&want), 5);
		snprintf(key, sizeof(key), "%s %u %s", scenario, size, variant);
		if (strcmp(key, last)) {
			if (*last)
				close_cache(&b);
			open_cache(&b, variant, size, NULL, 0);
			run_scenario(&b, scenario);
			memcpy(last, key, sizeof(last));
		}
		if (value_of(&b, name) != want)
			fail_msg("%s %s: %lld, not %ld", key, name, (long long)value_of(&b, name),
				 want);
		rows++;
	}
	close_cache(&b);
	fclose(f);
	assert_true(rows > 900);
}

/*
 * Single steps.  @steps: An:k allocate k on CPU n, Fn:i free the i-th object on CPU n, Xn flush
 * CPU n.  The last step is measured: the counters it moves, by variant.
 */
static const struct signature {
	const char *steps;
	const char *classic, *c32, *d, *d612;
} signatures[] = {
	{ "A0:1 A0:1", "AF", "AF", "AF", "AF" },
	{ "A0:1", "AS SLAB", "SLAB", "AS SLAB", "AS SLAB" },
	/* exhausted, remote frees on the slab */
	{ "A0:32 F1:3 A0:1", "AR AS", "AS AR", "AS AR", "AS AR" },
	/* exhausted, one slab on the CPU's list (2.6.30: on the node's) */
	{ "A0:64 F0:3 A0:1", "AR DF AFP AS", "AS BYP CPA AS AR", "AS BYP CPA AR", "AS BYP CPA" },
	/* exhausted, one slab on the node's list */
	{ "A0:64 F1:3 X1 A0:1", "AR DF AFP AS", "AS BYP AFP", "AS BYP AFP", "AS BYP AFP" },
	/* exhausted, nothing */
	{ "A0:32 A0:1", "AR DF SLAB AS", "AS BYP SLAB", "AS BYP SLAB", "AS BYP SLAB" },
	{ "A0:1 F0:0", "FF", "FF", "FF", "FF" },
	/* another CPU's slab */
	{ "A0:1 F1:0", "FS FZ", "FS FZ", "FS FZ", "FS FZ" },
	/* first free to a full slab */
	{ "A0:33 F0:3", "FS FAP", "FS CPF", "FS CPF", "FS CPF" },
	/* a slab on a CPU's list */
	{ "A0:33 F0:3 F0:4", "FS", "FS FZ", "FS FZ", "FS" },
	/* partial -> partial on the node's list */
	{ "A0:33 F1:3 X1 F0:4", "FS", "FS", "FS", "FS" },
};

static const struct {
	const char *code, *counter;
} codes[] = {
	{ "AF", "alloc_fastpath" },	 { "AS", "alloc_slowpath" },
	{ "AR", "alloc_refill" },	 { "AFP", "alloc_from_partial" },
	{ "SLAB", "alloc_slab" },	 { "BYP", "deactivate_bypass" },
	{ "DF", "deactivate_full" },	 { "CPA", "cpu_partial_alloc" },
	{ "CPF", "cpu_partial_free" },	 { "FF", "free_fastpath" },
	{ "FS", "free_slowpath" },	 { "FZ", "free_frozen" },
	{ "FAP", "free_add_partial" },	 { "FRP", "free_remove_partial" },
	{ "FSL", "free_slab" },
};
enum { CODES = sizeof(codes) / sizeof(*codes) };

static void run_step(struct bench *b, const char *step, void **objs)
{
	uint32_t cpu = (uint32_t)(step[1] - '0');
	long arg = step[2] == ':' ? strtol(step + 3, NULL, 10) : 0;

	if (*step == 'X')
		b->v->flush_cpu(b->c, cpu);
	else if (*step == 'F')
		give(b, cpu, objs[arg]);
	else
		for (; arg; arg--)
			objs[b->allocs] = take(b, cpu);
}

static void check_signature(const struct signature *s, const char *variant, const char *expected)
{
	int64_t before[CODES], want[CODES] = { 0 };
	char text[128], *save, *step;
	void *objs[256];
	struct bench b;

	snprintf(text, sizeof(text), "%s", expected);
	for (step = strtok_r(text, " ", &save); step; step = strtok_r(NULL, " ", &save))
		for (int i = 0; i < CODES; i++)
			want[i] += !strcmp(codes[i].code, step);
	open_cache(&b, variant, 256, NULL, 0);
	snprintf(text, sizeof(text), "%s", s->steps);
	for (step = strtok_r(text, " ", &save); step; step = strtok_r(NULL, " ", &save)) {
		for (int i = 0; i < CODES; i++)
			before[i] = counter(&b, codes[i].counter);
		run_step(&b, step, objs);
	}
	for (int i = 0; i < CODES; i++)
		if (counter(&b, codes[i].counter) - before[i] != want[i])
			fail_msg("%s, %s: %s moved by %lld, not %lld", variant, s->steps,
				 codes[i].counter,
				 (long long)(counter(&b, codes[i].counter) - before[i]),
				 (long long)want[i]);
	close_cache(&b);
}

static void signatures_of_single_steps(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(signatures) / sizeof(*signatures); i++) {
		const struct signature *s = &signatures[i];

		check_signature(s, "slub-2.6.30", s->classic);
		check_signature(s, "slub-3.2", s->c32);
		check_signature(s, "slub-5.15", s->d);
		check_signature(s, "slub-6.1", s->d);
		check_signature(s, "slub-6.12", s->d612);
	}
}

static const char *const cpu_slab_variants[] = {
	"slub-2.6.30", "slub-2.6.30-thrash", "slub-3.2", "slub-5.15", "slub-6.1",
	"slub-6.1-halffull", "slub-6.1-numalocal", "slub-6.1-minfree", "slub-6.12",
};

static void check_identities(struct bench *b)
{
	struct alloc_cache_state st;
	uint64_t classes = 0;
	int64_t refills = counter(b, "alloc_slab") + counter(b, "alloc_from_partial");

	b->v->state(b->c, &st);
	for (uint32_t i = 0; i < ALLOC_FREE_CLASSES; i++)
		classes += alloc_free_class(b->c, i);
	assert_int_equal(classes, counter(b, "free_slowpath"));
	assert_int_equal(counter(b, "free_fastpath") + counter(b, "free_slowpath"), b->frees);
	assert_int_equal(st.slabs, counter(b, "alloc_slab") - counter(b, "free_slab"));
	if (!strncmp(b->v->name, "slub-2.6.30", 11)) {
		assert_true(counter(b, "alloc_refill") >=
			    counter(b, "alloc_slowpath") - refills);
	} else if (!strcmp(b->v->name, "slub-6.12")) {
		refills += counter(b, "alloc_refill") + counter(b, "cpu_partial_alloc");
		assert_int_equal(counter(b, "alloc_slowpath"), refills);
	} else if (strcmp(b->v->name, "slub-3.2")) {
		assert_int_equal(counter(b, "alloc_slowpath"), refills + counter(b, "alloc_refill"));
	}
	if (strcmp(b->v->name, "slub-3.2")) /* which counts tries */
		assert_int_equal(counter(b, "alloc_fastpath") + counter(b, "alloc_slowpath"),
				 b->allocs);
}

static void identities_between_counters(void **state)
{
	static const char *const scenarios[] = { "S1", "S2", "S3", "S4" };
	struct bench b;

	(void)state;
	for (size_t v = 0; v < sizeof(cpu_slab_variants) / sizeof(*cpu_slab_variants); v++)
		for (int s = 0; s < 4; s++) {
			open_cache(&b, cpu_slab_variants[v], s % 2 ? 256 : 700, NULL, 0);
			run_scenario(&b, scenarios[s]);
			check_identities(&b);
			close_cache(&b);
		}
}

static void thrash_ratio_0_is_2_6_30(void **state)
{
	struct bench plain, thrash;

	(void)state;
	open_cache(&plain, "slub-2.6.30", 256, NULL, 0);
	open_cache(&thrash, "slub-2.6.30-thrash", 256, NULL, 0);
	scenario_4(&plain);
	scenario_4(&thrash);
	for (uint32_t i = 0; i < plain.v->nr_counters; i++) {
		const char *name = alloc_counter_name((enum alloc_counter)plain.v->counters[i]);

		assert_int_equal(counter(&plain, name), counter(&thrash, name));
	}
	close_cache(&plain);
	close_cache(&thrash);
}

static void thrash_ratio_20_trades_slabs_for_the_fast_path(void **state)
{
	const struct alloc_knob_value ratio = { "slab_thrash_ratio", 20 };
	struct bench plain, thrash;

	(void)state;
	open_cache(&plain, "slub-2.6.30", 2048, NULL, 0);
	open_cache(&thrash, "slub-2.6.30-thrash", 2048, &ratio, 1);
	scenario_4(&plain);
	scenario_4(&thrash);
	assert_true(counter(&thrash, "alloc_fastpath") > counter(&plain, "alloc_fastpath"));
	assert_true(counter(&thrash, "alloc_slab") > counter(&plain, "alloc_slab"));
	assert_true(counter(&thrash, "thrash_enter") > 0);
	assert_true(counter(&thrash, "thrash_skip") > 0);
	close_cache(&plain);
	close_cache(&thrash);
}

/* With an even number of objects both lists hold the same number of slabs; a fetch differs. */
static void halffull_drains_where_6_1_does(void **state)
{
	static const uint32_t sizes[] = { 64, 256, 512, 1024, 2048, 4096 };
	static const char *const same[] = { "cpu_partial_drain", "cpu_partial_free",
					    "free_add_partial" };
	struct bench d, e;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		open_cache(&d, "slub-6.1", sizes[i], NULL, 0);
		open_cache(&e, "slub-6.1-halffull", sizes[i], NULL, 0);
		scenario_1(&d);
		scenario_1(&e);
		for (int n = 0; n < 3; n++)
			assert_int_equal(counter(&d, same[n]), counter(&e, same[n]));
		close_cache(&d);
		close_cache(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_counter_of_the_tables),
		cmocka_unit_test(signatures_of_single_steps),
		cmocka_unit_test(identities_between_counters),
		cmocka_unit_test(thrash_ratio_0_is_2_6_30),
		cmocka_unit_test(thrash_ratio_20_trades_slabs_for_the_fast_path),
		cmocka_unit_test(halffull_drains_where_6_1_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
