/* SPDX-License-Identifier: MIT */
#include "traces/records.h"

#include <errno.h>

#include "traces/columns.h"

static uint64_t zigzag(uint64_t v)
{
	return v << 1 ^ (v >> 63 ? UINT64_MAX : 0);
}

static uint64_t unzigzag(uint64_t v)
{
	return v >> 1 ^ (v & 1 ? UINT64_MAX : 0);
}

int tape_records_encode(struct tape_codec *c, const int64_t *values, uint32_t nr, bool steps,
			const void **ret_data, size_t *ret_bytes)
{
	uint64_t *numbers = c->scratch.values[0], last = 0;
	int rc;

	assert(nr > 0 && nr <= TAPE_CHUNK_EVENTS);
	for (uint32_t i = 0; i < nr; i++) {
		numbers[i] = zigzag((uint64_t)values[i] - last);
		last = steps ? (uint64_t)values[i] : 0;
	}
	tape_buf_clear(&c->raw);
	tape_ints_encode(numbers, nr, &c->raw);
	rc = tape_frame_write(c);
	if (rc < 0)
		return rc;
	*ret_data = c->packed.data;
	*ret_bytes = c->packed.bytes;
	return 0;
}

int tape_records_decode(struct tape_codec *c, const void *data, size_t bytes, uint32_t nr,
			bool steps, int64_t *ret_values, struct tape_err *reterr)
{
	struct tape_ints *s = &c->scratch.streams[0];
	uint64_t block[TAPE_INTS_BLOCK], last = 0;
	struct tape_cursor in;
	int rc = tape_frame_read(c, data, bytes, reterr);

	assert(nr > 0 && nr <= TAPE_CHUNK_EVENTS);
	if (rc < 0)
		return rc;
	in = (struct tape_cursor){ c->raw.data, c->raw.data + c->raw.bytes, false };
	tape_ints_open(s, &in, nr);
	for (uint32_t at = 0, take; at < nr; at += take) {
		take = nr - at < TAPE_INTS_BLOCK ? nr - at : TAPE_INTS_BLOCK;
		tape_ints_next(s, block, take);
		for (uint32_t i = 0; i < take; i++) {
			uint64_t value = unzigzag(block[i]) + last;

			ret_values[at + i] = (int64_t)value;
			last = steps ? value : 0;
		}
	}
	if (!tape_ints_done(s) || in.bad || in.at != in.end)
		return tape_err_set(reterr, -TAPE_E_FORMAT, "the bytes do not hold %u numbers", nr);
	return 0;
}
