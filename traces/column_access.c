/* SPDX-License-Identifier: MIT */
/* Columns as 64-bit numbers, their defaults and their limits. */
#include "traces/columns.h"

/* How a field becomes a number and comes back; LIMIT: numbers must be below (0: any). */
#define AS_IS(x) (x)
#define NODE_TO(x) ((uint64_t)((x) + 1))
#define NODE_FROM(x) ((int16_t)(x)-1)
#define TID_TO(x) ((uint32_t)(x))
#define ARG_TO(x) tape_zigzag((uint64_t)(x))
#define ARG_FROM(x) ((int64_t)tape_unzigzag(x))
#define BITS(n) (UINT64_C(1) << (n))

/* X(column, field, type, to number, from number, limit) */
#define ACCESS(X)                                                                  \
	X(TS, ts, uint64_t, AS_IS, AS_IS, 0)                                       \
	X(TS_LO, ts_lo, uint64_t, AS_IS, AS_IS, 0)                                 \
	X(TS_HI, ts_hi, uint64_t, AS_IS, AS_IS, 0)                                 \
	X(OBJECT, object, uint64_t, AS_IS, AS_IS, 0)                               \
	X(ADDRESS, address, uint64_t, AS_IS, AS_IS, 0)                             \
	X(SIZE, size, uint64_t, AS_IS, AS_IS, 0)                                   \
	X(ARG, arg, int64_t, ARG_TO, ARG_FROM, 0)                                  \
	X(SLOT, slot, uint32_t, AS_IS, AS_IS, BITS(32))                            \
	X(SITE, site, uint32_t, AS_IS, AS_IS, BITS(32))                            \
	X(BULK, bulk, uint32_t, AS_IS, AS_IS, BITS(32))                            \
	X(TID, tid, int32_t, TID_TO, AS_IS, BITS(32))                              \
	X(CPU, cpu, uint16_t, AS_IS, AS_IS, TAPE_CPU_MAX)                          \
	X(CACHE, cache, uint16_t, AS_IS, AS_IS, BITS(16))                          \
	X(GFP, gfp, uint16_t, AS_IS, AS_IS, BITS(16))                              \
	X(FLAGS, flags, uint16_t, AS_IS, AS_IS, BITS(16))                          \
	X(NODE_REQ, node_req, int16_t, NODE_TO, NODE_FROM, TAPE_NODE_MAX + 1)      \
	X(MEM_NODE, mem_node, int16_t, NODE_TO, NODE_FROM, TAPE_NODE_MAX + 1)      \
	X(OP, op, uint8_t, AS_IS, AS_IS, TAPE_OP_MAX)                              \
	X(CTX, ctx, uint8_t, AS_IS, AS_IS, TAPE_CTX_MAX)

const uint8_t tape_op_class[TAPE_OP_MAX] = {
	[TAPE_OP_ALLOC] = TAPE_ROW_ALLOC,
	[TAPE_OP_FREE] = TAPE_ROW_FREE,
	[TAPE_OP_FREE_RCU] = TAPE_ROW_FREE,
	[TAPE_OP_ALLOC_BULK] = TAPE_ROW_ALLOC,
	[TAPE_OP_FREE_BULK] = TAPE_ROW_FREE,
	[TAPE_OP_PREFILL] = TAPE_ROW_OTHER,
	[TAPE_OP_SHEAF_ALLOC] = TAPE_ROW_ALLOC,
	[TAPE_OP_SHEAF_REFILL] = TAPE_ROW_OTHER,
	[TAPE_OP_SHEAF_RETURN] = TAPE_ROW_OTHER,
	[TAPE_OP_FLUSH] = TAPE_ROW_OTHER,
	[TAPE_OP_SHRINK] = TAPE_ROW_OTHER,
	[TAPE_OP_RCU_BARRIER] = TAPE_ROW_OTHER,
	[TAPE_OP_PAGE_LIMIT] = TAPE_ROW_OTHER,
	[TAPE_OP_CHECKPOINT] = TAPE_ROW_OTHER,
	[TAPE_OP_MARKER] = TAPE_ROW_OTHER,
	[TAPE_OP_FORK] = TAPE_ROW_OTHER,
	[TAPE_OP_EXEC] = TAPE_ROW_OTHER,
	[TAPE_OP_EXIT] = TAPE_ROW_OTHER,
};

void tape_column_load(const struct tape_batch *b, enum tape_col col, uint32_t at, uint32_t nr,
		      uint64_t *ret_values)
{
	assert(at + nr <= b->events);
	switch (col) {
#define LOAD(column, field, type, to, from, limit)      \
	case TAPE_COL_##column:                         \
		for (uint32_t i = 0; i < nr; i++)       \
			ret_values[i] = to(b->field[at + i]); \
		break;
		ACCESS(LOAD)
#undef LOAD
	case TAPE_COL_MAX:
		assert(!"no column");
	}
}

/* Every number is inside the column's type and the limits of event.h. */
static bool numbers_good(enum tape_col col, const uint64_t *values, uint32_t nr)
{
	static const uint64_t limits[TAPE_COL_MAX] = {
#define LIMIT(column, field, type, to, from, limit) [TAPE_COL_##column] = limit,
		ACCESS(LIMIT)
#undef LIMIT
	};
	uint64_t limit = limits[col];
	bool good = true;

	for (uint32_t i = 0; limit && i < nr; i++)
		good &= values[i] < limit;
	return good;
}

bool tape_column_store(struct tape_batch *b, enum tape_col col, uint32_t at, uint32_t nr,
		       const uint64_t *values)
{
	assert(at + nr <= b->events);
	if (!numbers_good(col, values, nr))
		return false;
	switch (col) {
#define STORE(column, field, type, to, from, bound)                \
	case TAPE_COL_##column:                                    \
		for (uint32_t i = 0; i < nr; i++)                  \
			b->field[at + i] = (type)from(values[i]);  \
		break;
		ACCESS(STORE)
#undef STORE
	case TAPE_COL_MAX:
		break;
	}
	return true;
}

/* Rows of one type from a dictionary of that type. */
#define GATHER(type)                                                                          \
	static bool gather_##type(type *restrict field, uint32_t rows, struct tape_ints *s,   \
				  const type dict[TAPE_INTS_DICT])                            \
	{                                                                                     \
		uint8_t room[TAPE_INTS_BLOCK];                                                \
                                                                                              \
		for (uint32_t at = 0, nr; at < rows; at += nr) {                              \
			const uint8_t *index;                                                 \
                                                                                              \
			nr = rows - at < TAPE_INTS_BLOCK ? rows - at : TAPE_INTS_BLOCK;       \
			index = tape_ints_indices(s, room, nr);                               \
			if (!index)                                                           \
				return false;                                                 \
			for (uint32_t i = 0; i < nr; i++)                                     \
				field[at + i] = dict[index[i]];                               \
		}                                                                             \
		return true;                                                                  \
	}
GATHER(uint64_t)
GATHER(int64_t)
GATHER(uint32_t)
GATHER(int32_t)
GATHER(uint16_t)
GATHER(int16_t)
GATHER(uint8_t)
#undef GATHER

bool tape_column_gather(struct tape_batch *b, enum tape_col col, struct tape_ints *s,
			const uint64_t *dict, uint32_t entries)
{
	if (!numbers_good(col, dict, entries))
		return false;
	switch (col) {
#define CASE(column, field, type, to, from, bound)                          \
	case TAPE_COL_##column: {                                           \
		type narrow[TAPE_INTS_DICT];                                \
                                                                            \
		for (uint32_t i = 0; i < entries; i++)                      \
			narrow[i] = (type)from(dict[i]);                    \
		return gather_##type(b->field, b->events, s, narrow);       \
	}
		ACCESS(CASE)
#undef CASE
	case TAPE_COL_MAX:
		break;
	}
	return false;
}

bool tape_column_is_blank(const struct tape_batch *b, enum tape_col col)
{
	const struct tape_event blank = tape_event_blank();

	switch (col) {
	case TAPE_COL_TS_LO:
		return !memcmp(b->ts_lo, b->ts, sizeof(*b->ts) * b->events);
	case TAPE_COL_TS_HI:
		return !memcmp(b->ts_hi, b->ts, sizeof(*b->ts) * b->events);
	default:
		break;
	}
	switch (col) {
/* block by block without a way out of the inner loop, which is then vectorised */
#define IS_BLANK(column, field, type, to, from, limit)                                    \
	case TAPE_COL_##column:                                                           \
		for (uint32_t at = 0, nr; at < b->events; at += nr) {                     \
			type differs = 0;                                                 \
                                                                                          \
			nr = b->events - at < 512 ? b->events - at : 512;                 \
			for (uint32_t i = 0; i < nr; i++)                                 \
				differs |= (type)(b->field[at + i] ^ blank.field);        \
			if (differs)                                                      \
				return false;                                             \
		}                                                                         \
		return true;
		ACCESS(IS_BLANK)
#undef IS_BLANK
	case TAPE_COL_MAX:
		break;
	}
	assert(!"no column");
	return false;
}

void tape_batch_blank(struct tape_batch *b, enum tape_col col)
{
	const struct tape_event blank = tape_event_blank();

	switch (col) {
	case TAPE_COL_TS_LO:
		memcpy(b->ts_lo, b->ts, sizeof(*b->ts) * b->events);
		return;
	case TAPE_COL_TS_HI:
		memcpy(b->ts_hi, b->ts, sizeof(*b->ts) * b->events);
		return;
	default:
		break;
	}
	switch (col) {
#define BLANK(column, field, type, to, from, limit)        \
	case TAPE_COL_##column:                            \
		for (uint32_t i = 0; i < b->events; i++)   \
			b->field[i] = blank.field;         \
		return;
		ACCESS(BLANK)
#undef BLANK
	case TAPE_COL_MAX:
		break;
	}
}

/* Two classes: no counters in memory and no branch, which would be mispredicted every second row. */
static void merge_two(const uint64_t *first, const uint64_t *second, const uint8_t *classes,
		      uint32_t nr, uint64_t *restrict values)
{
	for (uint32_t i = 0, taken = 0; i < nr; i++) {
		uint64_t other = 0 - (uint64_t)(classes[i] != 0);
		uint64_t a = first[taken], b = second[i - taken];

		values[i] = a ^ ((a ^ b) & other);
		taken += 1 + (uint32_t)other;
	}
}

bool tape_rows_merge(struct tape_ints streams[TAPE_STREAMS], const uint8_t *classes, uint32_t nr,
		     uint64_t *ret_values)
{
	/* one more: merge_two() looks one number ahead in both */
	uint64_t numbers[TAPE_STREAMS][TAPE_INTS_BLOCK + 1];
	uint32_t count[TAPE_STREAMS] = { 0 };

	assert(nr <= TAPE_INTS_BLOCK);
	for (uint32_t i = 0; i < nr; i++) {
		assert(classes[i] < TAPE_STREAMS);
		count[0] += classes[i] == 0;
		count[1] += classes[i] == 1;
	}
	count[2] = nr - count[0] - count[1];
	for (uint32_t c = 0; c < TAPE_STREAMS; c++) {
		if (count[c] > tape_ints_left(&streams[c]))
			return false;
		if (count[c])
			tape_ints_next(&streams[c], numbers[c], count[c]);
		numbers[c][count[c]] = 0;
	}
	if (!count[2]) {
		merge_two(numbers[0], numbers[1], classes, nr, ret_values);
		return true;
	}
	memset(count, 0, sizeof(count));
	for (uint32_t i = 0; i < nr; i++)
		ret_values[i] = numbers[classes[i]][count[classes[i]]++];
	return true;
}
