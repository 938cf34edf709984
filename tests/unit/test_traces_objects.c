/* SPDX-License-Identifier: MIT */
/* The object map against a naive model: same ids, smallest slots, same memory of frees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "traces/freeset.h"
#include "traces/objects.h"

#define ADDRESSES 150u
#define SPACES 3u

static uint64_t seed = 88172645463325252u; /* global for the debugger */

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

struct naive {
	bool live, freed;
	uint64_t object, free_seq;
	uint32_t slot;
};
static struct naive model[SPACES][ADDRESSES];

static uint32_t smallest_free_slot(void)
{
	for (uint32_t slot = 0;; slot++) {
		bool taken = false;

		for (uint32_t s = 0; s < SPACES; s++)
			for (uint32_t a = 0; a < ADDRESSES; a++)
				taken |= model[s][a].live && model[s][a].slot == slot;
		if (!taken)
			return slot;
	}
}

static void assert_same(const struct tape_objects *o, uint32_t space, uint32_t a)
{
	const struct naive *m = &model[space][a];
	const struct tape_live *live = tape_objects_find(o, space, 4096 + a * 16);
	const struct tape_past *past = tape_objects_past(o, space, 4096 + a * 16);

	assert_int_equal(live != NULL, m->live);
	if (live) {
		assert_int_equal(live->object, m->object);
		assert_int_equal(live->slot, m->slot);
	}
	assert_int_equal(past != NULL, m->freed);
	if (past)
		assert_int_equal(past->seq, m->free_seq);
}

static void step(struct tape_objects *o, uint64_t seq, uint64_t *next)
{
	uint32_t space = (uint32_t)(rnd() % SPACES), a = (uint32_t)(rnd() % ADDRESSES);
	struct naive *m = &model[space][a];
	struct tape_live *live = tape_objects_find(o, space, 4096 + a * 16);

	assert_same(o, space, a);
	if (live) {
		assert_int_equal(tape_objects_remove(o, live, seq * 10, seq), 0);
		m->live = false;
		m->freed = true;
		m->free_seq = seq;
	} else if (rnd() % 16 == 0) {
		assert_int_equal(tape_objects_orphan(o), (*next)++);
	} else {
		uint32_t slot = smallest_free_slot();

		live = tape_objects_add(o, space, 4096 + a * 16);
		assert_non_null(live);
		assert_int_equal(live->slot, slot);
		*m = (struct naive){ .live = true, .object = (*next)++, .slot = slot,
				     .freed = m->freed, .free_seq = m->free_seq };
		assert_int_equal(live->object, m->object);
	}
	assert_same(o, space, a);
}

static int count_each(struct tape_live *live, void *context)
{
	uint64_t *count = context;

	assert_int_equal(live->in_use, 1);
	++*count;
	return 0;
}

static void map_equals_naive_model(void **state)
{
	struct tape_objects *o = tape_objects_create(true);
	uint64_t next = 0, count = 0;

	(void)state;
	for (uint64_t seq = 0; seq < 4000; seq++)
		step(o, seq, &next);
	for (uint32_t s = 0; s < SPACES; s++)
		for (uint32_t a = 0; a < ADDRESSES; a++)
			assert_same(o, s, a);
	assert_int_equal(tape_objects_each(o, count_each, &count), 0);
	assert_int_equal(count, tape_objects_live(o));
	assert_int_equal(tape_objects_total(o), next);
	tape_objects_destroy(o);
}

/* Many more objects than the first tables hold; removal in another order. */
static void map_grows(void **state)
{
	const uint64_t nr = 300000;
	struct tape_objects *o = tape_objects_create(false);

	(void)state;
	for (uint64_t i = 0; i < nr; i++) {
		struct tape_live *live = tape_objects_add(o, 0, i * 32);

		assert_non_null(live);
		assert_int_equal(live->slot, i);
	}
	for (uint64_t i = 0; i < nr; i++) {
		struct tape_live *live = tape_objects_find(o, 0, i * 7919 % nr * 32);

		assert_non_null(live);
		assert_int_equal(live->object, i * 7919 % nr);
		assert_int_equal(tape_objects_remove(o, live, 0, 0), 0);
	}
	assert_int_equal(tape_objects_live(o), 0);
	assert_int_equal(tape_objects_peak(o), nr);
	assert_int_equal(tape_objects_add(o, 9, 1)->slot, 0);
	assert_null(tape_objects_past(o, 0, 32));
	tape_objects_destroy(o);
}

static void freeset_gives_smallest(void **state)
{
	struct tape_freeset s;
	static bool in[5000];

	(void)state;
	assert_int_equal(tape_freeset_init(&s, 64), 0);
	for (uint32_t i = 0; i < 60; i += 3)
		tape_freeset_add(&s, i);
	assert_int_equal(tape_freeset_grow(&s, 5000), 0);
	assert_int_equal(tape_freeset_min(&s), 0);
	tape_freeset_clear(&s);
	assert_int_equal(s.members, 0);
	for (uint32_t round = 0; round < 20000; round++) {
		uint32_t n = (uint32_t)(rnd() % 5000), smallest = 0;

		in[n] = rnd() % 3 == 0;
		if (in[n])
			tape_freeset_add(&s, n);
		else
			tape_freeset_remove(&s, n);
		assert_int_equal(tape_freeset_has(&s, n), in[n]);
		while (smallest < 5000 && !in[smallest])
			smallest++;
		assert_int_equal(s.members > 0, smallest < 5000);
		if (s.members)
			assert_int_equal(tape_freeset_min(&s), smallest);
	}
	tape_freeset_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_equals_naive_model),
		cmocka_unit_test(map_grows),
		cmocka_unit_test(freeset_gives_smallest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
