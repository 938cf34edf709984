/* SPDX-License-Identifier: MIT */
#include "traces/far.h"

#include <errno.h>

#include "traces/columns.h"

/* The fields in the order of their streams; seq and ts as steps. */
enum { FAR_OBJECT, FAR_SEQ, FAR_TS, FAR_SITE, FAR_CPU, FAR_FLAGS, FAR_FIELDS };

static uint64_t field_get(const struct tape_far_free *f, int field)
{
	switch (field) {
	case FAR_OBJECT:
		return f->object;
	case FAR_SEQ:
		return f->seq;
	case FAR_TS:
		return f->ts;
	case FAR_SITE:
		return f->site;
	case FAR_CPU:
		return f->cpu;
	default:
		return f->flags;
	}
}

static bool field_set(struct tape_far_free *f, int field, uint64_t value)
{
	switch (field) {
	case FAR_OBJECT:
		f->object = value;
		return true;
	case FAR_SEQ:
		f->seq = value;
		return true;
	case FAR_TS:
		f->ts = value;
		return true;
	case FAR_SITE:
		f->site = (uint32_t)value;
		return value <= UINT32_MAX;
	case FAR_CPU:
		f->cpu = (uint16_t)value;
		return value < TAPE_CPU_MAX;
	default:
		f->flags = (uint16_t)value;
		return value <= UINT16_MAX;
	}
}

static bool field_steps(int field)
{
	return field == FAR_SEQ || field == FAR_TS;
}

int tape_far_encode(struct tape_codec *c, const struct tape_far_free *frees, uint32_t nr,
		    const void **ret_data, size_t *ret_bytes)
{
	uint64_t *values = c->scratch.values[0];
	int rc;

	assert(nr > 0 && nr <= TAPE_CHUNK_EVENTS);
	tape_buf_clear(&c->raw);
	for (int field = 0; field < FAR_FIELDS; field++) {
		uint64_t first = field < FAR_SITE ? field_get(&frees[0], field) : 0, last = first;

		if (field == FAR_OBJECT)
			first = last = first & ~UINT64_C(0xffff);
		tape_buf_varint(&c->raw, first);
		for (uint32_t i = 0; i < nr; i++) {
			uint64_t value = field_get(&frees[i], field);

			values[i] = value - last;
			last = field_steps(field) ? value : last;
		}
		tape_ints_encode(values, nr, &c->raw);
	}
	rc = tape_frame_write(c);
	if (rc < 0)
		return rc;
	*ret_data = c->packed.data;
	*ret_bytes = c->packed.bytes;
	return 0;
}

static bool field_decode(struct tape_codec *c, struct tape_cursor *in, int field,
			 struct tape_far_free *frees, uint32_t nr)
{
	struct tape_ints *s = &c->scratch.streams[0];
	uint64_t block[TAPE_INTS_BLOCK], last = tape_cursor_varint(in);

	tape_ints_open(s, in, nr);
	for (uint32_t at = 0, take; at < nr; at += take) {
		take = nr - at < TAPE_INTS_BLOCK ? nr - at : TAPE_INTS_BLOCK;
		tape_ints_next(s, block, take);
		for (uint32_t i = 0; i < take; i++) {
			uint64_t value = block[i] + last;

			if (!field_set(&frees[at + i], field, value))
				return false;
			last = field_steps(field) ? value : last;
		}
	}
	return tape_ints_done(s);
}

int tape_far_decode(struct tape_codec *c, const void *data, size_t bytes, uint32_t nr,
		    struct tape_far_free *ret_frees, struct tape_err *reterr)
{
	struct tape_cursor in;
	int rc = tape_frame_read(c, data, bytes, reterr);

	assert(nr > 0 && nr <= TAPE_CHUNK_EVENTS);
	if (rc < 0)
		return rc;
	in = (struct tape_cursor){ c->raw.data, c->raw.data + c->raw.bytes, false };
	for (int field = 0; field < FAR_FIELDS; field++)
		if (!field_decode(c, &in, field, ret_frees, nr))
			return tape_err_set(reterr, -TAPE_E_FORMAT,
					    "the bytes do not hold %u frees", nr);
	if (in.bad || in.at != in.end)
		return tape_err_set(reterr, -TAPE_E_FORMAT, "wrong length");
	return 0;
}
