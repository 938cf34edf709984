/* SPDX-License-Identifier: MIT */
/*
 * The tested tables of docs/allocator-model.md: states and moves of the object queues, and what
 * free_rcu, bulk calls and prefill mean on every variant of the registry.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/hooks.h"
#include "allocator/variant.h"

enum { CPUS = 4, NODES = 2, LIVE_MAX = 1500, COLUMNS = 4, BULK_MAX = 40 };

/* ---- tables of the document ---- */

struct row {
	char cell[COLUMNS][200];
	int columns;
};

static char *trim(char *text)
{
	size_t n = strlen(text);

	while (n && (text[n - 1] == ' ' || text[n - 1] == '`'))
		text[--n] = 0;
	return text + strspn(text, " `");
}

static void split_row(char *line, struct row *ret_row)
{
	char *save = NULL;

	memset(ret_row, 0, sizeof(*ret_row));
	for (char *cell = strtok_r(line, "|\n", &save); cell && ret_row->columns < COLUMNS;
	     cell = strtok_r(NULL, "|\n", &save))
		snprintf(ret_row->cell[ret_row->columns++], sizeof(ret_row->cell[0]), "%s",
			 trim(cell));
}

/* Rows of the table whose head line begins with @head; how many. */
static size_t read_table(const char *head, struct row *rows, size_t max)
{
	FILE *f = fopen(TEST_SOURCE_DIR "/../docs/allocator-model.md", "r");
	char line[1000];
	bool inside = false;
	size_t nr = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (inside && line[0] != '|')
			break;
		if (inside && strncmp(line, "|---", 4)) {
			assert_true(nr < max);
			split_row(line, &rows[nr++]);
		}
		inside = inside || !strncmp(line, head, strlen(head));
	}
	fclose(f);
	assert_true(nr > 0);
	return nr;
}

static enum alloc_state state_named(const char *name)
{
	for (int s = 0; s < ALLOC_STATE_MAX; s++)
		if (!strcmp(alloc_state_name((enum alloc_state)s), name))
			return (enum alloc_state)s;
	fail_msg("no state is called %s", name);
	return ALLOC_STATE_MAX;
}

/* ---- a random load under observation ---- */

/* moves[from][to], how often. */
struct moves {
	uint64_t nr[ALLOC_STATE_MAX][ALLOC_STATE_MAX];
};

static void on_transition(void *ctx, const struct alloc_cache *c, const struct alloc_slab *s,
			  uint32_t cpu, enum alloc_state from, enum alloc_state to)
{
	struct moves *m = ctx;

	(void)c;
	(void)s;
	(void)cpu;
	m->nr[from][to]++;
}

static uint32_t draw(uint64_t *random, uint32_t below)
{
	*random = *random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*random >> 33) % below;
}

static void open_cache(const struct alloc_variant *v, uint32_t size, uint64_t node_pages,
		       const struct alloc_observer *o, struct alloc_machine **ret_m,
		       struct alloc_cache **ret_c)
{
	static const uint16_t cpu_node[CPUS] = { 0, 0, 1, 1 };
	struct alloc_machine_config mc = { .cpus = CPUS, .nodes = NODES, .cpu_node = cpu_node,
					   .seed = 1, .node_pages = node_pages, .observer = o };
	struct alloc_cache_config cc = { .name = "states", .object_size = size };

	assert_int_equal(alloc_machine_create(&mc, ret_m), 0);
	assert_int_equal(v->create(*ret_m, &cc, ret_c), 0);
}

/* Tides of growing and shrinking; allocations on the first @busy CPUs, frees on all. */
static void load(const struct alloc_variant *v, struct alloc_cache *c, uint32_t busy)
{
	static void *live[LIVE_MAX];
	uint32_t nr = 0;
	uint64_t random = 7, now_ns = 0;

	for (uint32_t step = 0; step < 40000; step++) {
		uint32_t what = draw(&random, 1000), cpu = draw(&random, CPUS), at;

		if (what < 2) {
			v->shrink(c);
		} else if (what < 8) {
			now_ns += 500000000ull;
			v->tick(c, cpu, now_ns);
		} else if (what < (step / 2000 % 2 ? 250u : 750u)) {
			if (nr < LIVE_MAX)
				live[nr] = v->alloc(c, cpu % busy, ALLOC_NODE_ANY,
						    ALLOC_GFP_MAY_BLOCK);
			nr += nr < LIVE_MAX && live[nr];
		} else if (nr) {
			at = draw(&random, nr);
			v->free(c, cpu, live[at]);
			live[at] = live[--nr];
		}
	}
}

static void observe(const char *variant, struct moves *ret_moves)
{
	static const struct {
		uint32_t size, busy;
		uint64_t node_pages;
	} loads[] = { { 64, CPUS, 0 }, { 256, CPUS, 0 }, { 4096, CPUS, 0 }, { 256, 2, 12 },
		      { 4096, 2, 60 } };
	const struct alloc_variant *v = alloc_variant_find(variant, ALLOC_SYNC_SERIAL);
	struct moves seen = { 0 };
	struct alloc_observer o = { .ctx = &seen, .transition = on_transition };

	assert_non_null(v);
	memset(ret_moves, 0, sizeof(*ret_moves));
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		struct alloc_machine *m;
		struct alloc_cache *c;

		open_cache(v, loads[i].size, loads[i].node_pages, &o, &m, &c);
		load(v, c, loads[i].busy);
		*ret_moves = seen;
		v->destroy(c);
		assert_int_equal(alloc_machine_pages(m), 0);
		alloc_machine_destroy(m);
		seen = *ret_moves; /* destroy's own moves are not part of the table */
	}
}

static const char *const queues[] = { "slab-2.6.30", "slab-6.1", "slqb-2.6.31" };
enum { NR_QUEUES = sizeof(queues) / sizeof(queues[0]) };

static void moves_are_those_of_the_table(void **state)
{
	static struct row rows[64];
	size_t nr = read_table("| variants | move | when |", rows, 64);

	(void)state;
	for (int q = 0; q < NR_QUEUES; q++) {
		bool listed[ALLOC_STATE_MAX][ALLOC_STATE_MAX] = { { false } };
		struct moves seen;

		for (size_t i = 0; i < nr; i++) {
			char from[32], to[32];

			if (!strstr(rows[i].cell[0], queues[q]))
				continue;
			assert_int_equal(sscanf(rows[i].cell[1], "%31[a-z_]` -> `%31[a-z_]", from, to),
					 2);
			listed[state_named(from)][state_named(to)] = true;
		}
		observe(queues[q], &seen);
		for (int a = 0; a < ALLOC_STATE_MAX; a++)
			for (int b = 0; b < ALLOC_STATE_MAX; b++)
				if (listed[a][b] != (seen.nr[a][b] > 0))
					fail_msg("%s: %s -> %s %s", queues[q],
						 alloc_state_name((enum alloc_state)a),
						 alloc_state_name((enum alloc_state)b),
						 listed[a][b] ? "never happens" : "is not listed");
	}
}

static void states_are_those_of_the_table(void **state)
{
	static struct row rows[ALLOC_STATE_MAX + 1];
	size_t nr = read_table("| state | slab-6.1, slab-2.6.30 | slqb-2.6.31 |", rows,
			       ALLOC_STATE_MAX + 1);

	(void)state;
	assert_int_equal(nr, ALLOC_STATE_MAX);
	for (int q = 0; q < NR_QUEUES; q++) {
		int column = strncmp(queues[q], "slab-", 5) ? 2 : 1;
		struct moves seen;

		observe(queues[q], &seen);
		for (size_t i = 0; i < nr; i++) {
			enum alloc_state s = state_named(rows[i].cell[0]);
			uint64_t entered = 0;

			for (int from = 0; from < ALLOC_STATE_MAX; from++)
				entered += seen.nr[from][s];
			assert_int_equal(entered > 0, strcmp(rows[i].cell[column], "-") != 0);
		}
	}
}

/* ---- free_rcu, bulk, prefill ---- */

/* The same cache twice: bulk calls on one, single calls on the other. */
struct twins {
	const struct alloc_variant *v;
	struct alloc_machine *m[2];
	struct alloc_cache *c[2];
	void *live[2][LIVE_MAX];
	uint32_t nr;
	bool differ;
};

static void compare_places(struct twins *t, uint32_t from)
{
	for (uint32_t i = from; i < t->nr; i++) {
		struct alloc_slab_info a, b;
		uint32_t index_a, index_b;

		alloc_slab_info(alloc_slab_of(t->m[0], t->live[0][i], &index_a), &a);
		alloc_slab_info(alloc_slab_of(t->m[1], t->live[1][i], &index_b), &b);
		t->differ = t->differ || a.id != b.id || index_a != index_b;
	}
}

static void twins_alloc(struct twins *t, uint32_t cpu, uint32_t nr)
{
	uint32_t from = t->nr;

	assert_int_equal(t->v->alloc_bulk(t->c[0], cpu, ALLOC_GFP_MAY_BLOCK, nr,
					  t->live[0] + from), nr);
	for (uint32_t i = 0; i < nr; i++) {
		t->live[1][from + i] = t->v->alloc(t->c[1], cpu, ALLOC_NODE_ANY,
						   ALLOC_GFP_MAY_BLOCK);
		assert_non_null(t->live[1][from + i]);
	}
	t->nr += nr;
	compare_places(t, from);
}

static void twins_free(struct twins *t, uint32_t cpu, uint32_t nr, uint64_t *random)
{
	void *objs[2][BULK_MAX];

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t at = draw(random, t->nr--);

		for (int side = 0; side < 2; side++) {
			objs[side][i] = t->live[side][at];
			t->live[side][at] = t->live[side][t->nr];
		}
	}
	t->v->free_bulk(t->c[0], cpu, nr, objs[0]);
	for (uint32_t i = 0; i < nr; i++)
		t->v->free(t->c[1], cpu, objs[1][i]);
}

struct sums {
	int64_t value[2][4096];
	size_t at;
	int side;
};

static void take_value(void *ctx, uint32_t cpu, const char *name, int64_t value)
{
	struct sums *s = ctx;

	(void)cpu;
	(void)name;
	assert_true(s->at < sizeof(s->value[0]) / sizeof(s->value[0][0]));
	s->value[s->side][s->at++] = value;
}

static bool counters_differ(struct twins *t)
{
	static struct sums s;
	size_t nr;

	memset(&s, 0, sizeof(s));
	alloc_read_counters(t->c[0], take_value, &s);
	nr = s.at;
	s.at = 0;
	s.side = 1;
	alloc_read_counters(t->c[1], take_value, &s);
	assert_int_equal(nr, s.at);
	return memcmp(s.value[0], s.value[1], sizeof(s.value[0])) != 0;
}

static bool bulk_is_a_loop(const struct alloc_variant *v)
{
	static struct twins t;
	uint64_t random = 3;
	bool loop;

	memset(&t, 0, sizeof(t));
	t.v = v;
	for (int side = 0; side < 2; side++)
		open_cache(v, 256, 0, NULL, &t.m[side], &t.c[side]);
	for (uint32_t step = 0; step < 4000 && !t.differ; step++) {
		uint32_t cpu = draw(&random, CPUS), nr = 1 + draw(&random, BULK_MAX);

		if (draw(&random, 2) && t.nr + nr <= LIVE_MAX)
			twins_alloc(&t, cpu, nr);
		else if (t.nr >= nr)
			twins_free(&t, cpu, nr, &random);
	}
	loop = !t.differ && !counters_differ(&t);
	for (int side = 0; side < 2; side++) {
		v->destroy(t.c[side]);
		alloc_machine_destroy(t.m[side]);
	}
	return loop;
}

static void meaning_of_calls_on_every_variant(void **state)
{
	static struct row rows[64];
	size_t nr = read_table("| variant | free_rcu | bulk calls | prefill |", rows, 64);

	(void)state;
	assert_null(alloc_variant_at((uint32_t)nr, ALLOC_SYNC_SERIAL));
	for (size_t i = 0; i < nr; i++) {
		const struct alloc_variant *v = alloc_variant_at((uint32_t)i, ALLOC_SYNC_SERIAL);

		assert_non_null(v);
		assert_string_equal(rows[i].cell[0], v->name);
		assert_string_equal(rows[i].cell[1], v->free_rcu ? "own" : "engine");
		assert_int_equal(v->free_rcu != NULL, v->rcu_barrier != NULL);
		assert_string_equal(rows[i].cell[2], bulk_is_a_loop(v) ? "loop" : "own");
		assert_string_equal(rows[i].cell[3], v->prefill ? "own" : "nothing");
		assert_int_equal(v->prefill != NULL, v->sheaf_alloc != NULL);
		assert_int_equal(v->prefill != NULL, v->sheaf_refill != NULL);
		assert_int_equal(v->prefill != NULL, v->sheaf_return != NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_are_those_of_the_table),
		cmocka_unit_test(moves_are_those_of_the_table),
		cmocka_unit_test(meaning_of_calls_on_every_variant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
