/* SPDX-License-Identifier: MIT */
/* Event names round-trip; a batch gives back the rows that were pushed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "traces/batch.h"

static void op_names_round_trip(void **state)
{
	(void)state;
	for (int op = 0; op < TAPE_OP_MAX; op++)
		assert_int_equal(tape_op_parse(tape_op_name((uint8_t)op)), op);
	assert_int_equal(tape_op_parse("nonsense"), -1);
}

static void batch_gives_rows_back(void **state)
{
	struct tape_batch *b = tape_batch_create(3);
	struct tape_event in = tape_event_blank(), out;

	(void)state;
	assert_non_null(b);
	for (uint32_t i = 0; i < 3; i++) {
		in.ts = in.ts_lo = in.ts_hi = 100 + i;
		in.object = i;
		in.cpu = (uint16_t)(i + 1);
		in.node_req = -1;
		tape_batch_push(b, &in);
	}
	tape_batch_get(b, 2, &out);
	assert_int_equal(out.ts, 102);
	assert_int_equal(out.object, 2);
	assert_int_equal(out.cpu, 3);
	assert_int_equal(out.node_req, -1);
	b->valid = 1u << TAPE_COL_TS;
	tape_batch_get(b, 1, &out);
	assert_int_equal(out.ts_hi, 101);
	assert_true(out.object == TAPE_NO_OBJECT);
	tape_batch_destroy(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(op_names_round_trip),
		cmocka_unit_test(batch_gives_rows_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
