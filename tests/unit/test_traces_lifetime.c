/* SPDX-License-Identifier: MIT */
/* Each rule of lifetime.h holds for good recordings and is named when it is broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "traces/lifetime.h"

struct row {
	uint8_t op;
	uint64_t object;
	uint32_t slot;
	uint16_t flags;
};

#define A TAPE_OP_ALLOC
#define F TAPE_OP_FREE
#define END { TAPE_OP_MAX, 0, 0, 0 }

/* Check @rows; 0, or -1 with the text in @err.  Also checks that ids are dense at the end. */
static int check(const struct row *rows, struct tape_err *err)
{
	struct tape_lifetime *l = tape_lifetime_create();
	struct tape_batch *b = tape_batch_create(16);
	uint64_t objects;
	int rc;

	for (; rows->op != TAPE_OP_MAX; rows++) {
		struct tape_event ev = tape_event_blank();

		ev.op = rows->op;
		ev.object = rows->object;
		ev.slot = rows->slot;
		ev.flags = rows->flags;
		tape_batch_push(b, &ev);
	}
	rc = tape_lifetime_take(l, b, err);
	if (rc == 0)
		rc = tape_lifetime_finish(l, &objects, err);
	tape_batch_destroy(b);
	tape_lifetime_destroy(l);
	return rc;
}

static void good_rows_pass(void **state)
{
	static const struct row rows[] = {
		{ A, 0, 0, 0 }, { A, 1, 1, 0 }, { F, 0, 0, 0 }, { A, 2, 0, 0 },
		{ F, 3, TAPE_NO_SLOT, TAPE_F_ORPHAN },
		{ F, 1, 1, TAPE_F_INHERITED }, { F, 1, 1, 0 },
		{ F, TAPE_NO_OBJECT, TAPE_NO_SLOT, 0 },
		{ TAPE_OP_SHEAF_ALLOC, 4, 1, 0 }, { TAPE_OP_FREE_RCU, 4, 1, 0 }, END
	};
	struct tape_err err;

	(void)state;
	assert_int_equal(check(rows, &err), 0);
}

static void broken_rules_are_named(void **state)
{
	static const struct {
		struct row rows[5];
		const char *text;
	} cases[] = {
		{ { { A, 0, 0, 0 }, { F, 0, 0, 0 }, { F, 0, 0, 0 }, END }, "freed twice" },
		{ { { F, 0, 0, 0 }, { A, 0, 0, 0 }, END }, "freed before its alloc" },
		{ { { A, 0, 0, 0 }, { F, 0, 1, 0 }, END }, "slot of its alloc" },
		{ { { A, 0, 0, 0 }, { A, 1, 0, 0 }, END }, "belongs to a live object" },
		{ { { A, 0, 0, 0 }, { F, 0, 0, 0 }, { A, 0, 0, 0 }, END }, "begins a second time" },
		{ { { A, 0, 0, 0 }, { A, 2, 1, 0 }, END }, "not dense" },
		{ { { A, UINT64_C(1) << 60, 0, 0 }, END }, "far above" },
		{ { { A, 0, UINT32_MAX - 1, 0 }, END }, "far above" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tape_err err = { 0 };

		assert_int_equal(check(cases[i].rows, &err), -TAPE_E_FORMAT);
		if (!strstr(err.text, cases[i].text))
			fail_msg("%s: %s", cases[i].text, err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_rows_pass),
		cmocka_unit_test(broken_rules_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
