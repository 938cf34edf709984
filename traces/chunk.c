/* SPDX-License-Identifier: MIT */
/* The chunk codec: the table of columns and the zstd frame around each. */
#include "traces/chunk.h"

#include <errno.h>
#include <inttypes.h>
#include <zstd.h>

#include "traces/columns.h"

#define LEVEL 3
/* Bytes before compression: 32 of a far free, less of a column; dictionaries and headers. */
#define RAW_BYTES_MAX (TAPE_CHUNK_EVENTS * 40u)

#define COL(name) (1u << TAPE_COL_##name)

/* clang-format off */
const struct tape_column_kind tape_column_kinds[TAPE_COL_MAX] = {
	[TAPE_COL_TS] = { "ts", 0, tape_ts_encode, tape_ts_decode },
	[TAPE_COL_CPU] = { "cpu", 0, tape_plain_encode, tape_plain_decode },
	[TAPE_COL_OP] = { "op", 0, tape_plain_encode, tape_plain_decode },
	[TAPE_COL_CACHE] = { "cache", 0, tape_plain_encode, tape_plain_decode },
	[TAPE_COL_OBJECT] = { "object", COL(OP), tape_object_encode, tape_object_decode },
	[TAPE_COL_SLOT] = { "slot", COL(OP) | COL(OBJECT), tape_slot_encode, tape_slot_decode },
	[TAPE_COL_SIZE] = { "size", COL(OP), tape_split_encode, tape_split_decode },
	[TAPE_COL_NODE_REQ] = { "node_req", COL(OP), tape_split_encode, tape_split_decode },
	[TAPE_COL_MEM_NODE] = { "mem_node", COL(OP), tape_split_encode, tape_split_decode },
	[TAPE_COL_SITE] = { "site", COL(OP), tape_split_encode, tape_split_decode },
	[TAPE_COL_TID] = { "tid", COL(CPU), tape_tid_encode, tape_tid_decode },
	[TAPE_COL_GFP] = { "gfp", COL(OP), tape_split_encode, tape_split_decode },
	[TAPE_COL_CTX] = { "ctx", 0, tape_plain_encode, tape_plain_decode },
	[TAPE_COL_BULK] = { "bulk", 0, tape_bulk_encode, tape_bulk_decode },
	[TAPE_COL_ARG] = { "arg", 0, tape_plain_encode, tape_plain_decode },
	[TAPE_COL_FLAGS] = { "flags", 0, tape_plain_encode, tape_plain_decode },
	[TAPE_COL_ADDRESS] = { "address", COL(OP) | COL(OBJECT) | COL(CPU) | COL(SITE),
			       tape_address_encode, tape_address_decode },
	[TAPE_COL_TS_LO] = { "ts_lo", COL(TS), tape_window_encode, tape_window_decode },
	[TAPE_COL_TS_HI] = { "ts_hi", COL(TS), tape_window_encode, tape_window_decode },
};
/* clang-format on */

static int scratch_init(struct tape_scratch *s)
{
	for (uint32_t i = 0; i < TAPE_STREAMS; i++) {
		s->values[i] = malloc(sizeof(*s->values[i]) * TAPE_CHUNK_EVENTS);
		if (!s->values[i])
			return -ENOMEM;
	}
	s->row_of = malloc(sizeof(*s->row_of) * (TAPE_WINDOW + 1));
	s->classes = malloc(TAPE_CHUNK_EVENTS);
	if (!s->row_of || !s->classes)
		return -ENOMEM;
	return tape_freeset_init(&s->free_slots, TAPE_SLOT_MODEL_LIMIT);
}

static void scratch_fini(struct tape_scratch *s)
{
	for (uint32_t i = 0; i < TAPE_STREAMS; i++)
		free(s->values[i]);
	free(s->row_of);
	free(s->classes);
	tape_freeset_fini(&s->free_slots);
}

struct tape_codec *tape_codec_create(void)
{
	struct tape_codec *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->compress = ZSTD_createCCtx();
	c->decompress = ZSTD_createDCtx();
	if (!c->compress || !c->decompress || scratch_init(&c->scratch) < 0 ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(c->compress, ZSTD_c_compressionLevel, LEVEL)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(c->compress, ZSTD_c_checksumFlag, 1))) {
		tape_codec_destroy(c);
		return NULL;
	}
	return c;
}

void tape_codec_destroy(struct tape_codec *c)
{
	if (!c)
		return;
	ZSTD_freeCCtx(c->compress);
	ZSTD_freeDCtx(c->decompress);
	tape_buf_fini(&c->raw);
	tape_buf_fini(&c->packed);
	scratch_fini(&c->scratch);
	free(c);
}

/* A block ends at every cut, so that each byte plane has its own entropy table. */
int tape_frame_write(struct tape_codec *c)
{
	size_t room = ZSTD_compressBound(c->raw.bytes) + 64u * (c->raw.cuts_nr + 1u), begin = 0;
	ZSTD_outBuffer out = { .size = room };

	tape_buf_clear(&c->packed);
	out.dst = tape_buf_add(&c->packed, room);
	if (!out.dst || c->raw.failed)
		return -ENOMEM;
	ZSTD_CCtx_reset(c->compress, ZSTD_reset_session_only);
	if (ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(c->compress, c->raw.bytes)))
		return -ENOMEM;
	for (uint32_t i = 0; i <= c->raw.cuts_nr; i++) {
		bool last = i == c->raw.cuts_nr;
		size_t end = last ? c->raw.bytes : c->raw.cuts[i];
		ZSTD_inBuffer in = { .src = c->raw.data + begin, .size = end - begin };

		if (!last && end - begin < 2048)
			continue; /* not worth a block of its own */
		if (ZSTD_compressStream2(c->compress, &out, &in, last ? ZSTD_e_end : ZSTD_e_flush))
			return -ENOMEM;
		begin = end;
	}
	c->packed.bytes = out.pos;
	return 0;
}

int tape_column_encode(struct tape_codec *c, enum tape_col col, const struct tape_batch *b,
		       const void **ret_data, size_t *ret_bytes, size_t *ret_raw_bytes)
{
	int rc;

	assert(col < TAPE_COL_MAX && b->events <= TAPE_CHUNK_EVENTS);
	assert((b->valid & (tape_column_kinds[col].needs | 1u << col)) ==
	       (tape_column_kinds[col].needs | 1u << col));
	if (tape_column_is_blank(b, col)) {
		*ret_data = NULL;
		*ret_bytes = *ret_raw_bytes = 0;
		return 0;
	}
	tape_buf_clear(&c->raw);
	tape_column_kinds[col].encode(&c->scratch, col, b, &c->raw);
	assert(c->raw.bytes <= RAW_BYTES_MAX);
	rc = tape_frame_write(c);
	if (rc < 0)
		return rc;
	*ret_data = c->packed.data;
	*ret_bytes = c->packed.bytes;
	*ret_raw_bytes = c->raw.bytes;
	return 0;
}

int tape_frame_read(struct tape_codec *c, const void *data, size_t bytes, struct tape_err *reterr)
{
	unsigned long long raw_bytes = ZSTD_getFrameContentSize(data, bytes);
	uint8_t *at;
	size_t got;

	/* CONTENTSIZE_ERROR and CONTENTSIZE_UNKNOWN are above any limit */
	if (raw_bytes > RAW_BYTES_MAX)
		return tape_err_set(reterr, -TAPE_E_FORMAT, "not a zstd frame of at most %u bytes",
				    RAW_BYTES_MAX);
	tape_buf_clear(&c->raw);
	at = tape_buf_add(&c->raw, (size_t)raw_bytes + 1);
	if (!at)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	got = ZSTD_decompressDCtx(c->decompress, at, (size_t)raw_bytes, data, bytes);
	if (ZSTD_isError(got) || got != raw_bytes)
		return tape_err_set(reterr, -TAPE_E_FORMAT, "%s",
				    ZSTD_isError(got) ? ZSTD_getErrorName(got) : "wrong length");
	c->raw.bytes = got;
	return 0;
}

int tape_column_decode(struct tape_codec *c, enum tape_col col, const void *data, size_t bytes,
		       struct tape_batch *b, struct tape_err *reterr)
{
	const struct tape_column_kind *kind = &tape_column_kinds[col];
	struct tape_err why;
	struct tape_cursor in;
	int rc;

	assert(col < TAPE_COL_MAX && b->events <= b->capacity);
	assert((b->valid & kind->needs) == kind->needs);
	if (!bytes) {
		tape_batch_blank(b, col);
		b->valid |= 1u << col;
		return 0;
	}
	if (!b->events)
		return tape_err_set(reterr, -TAPE_E_FORMAT, "column %s: data without rows", kind->name);
	rc = tape_frame_read(c, data, bytes, &why);
	if (rc < 0)
		return tape_err_set(reterr, rc, "column %s: %s", kind->name, why.text);
	in = (struct tape_cursor){ c->raw.data, c->raw.data + c->raw.bytes, false };
	if (!kind->decode(&c->scratch, col, &in, b) || in.bad || in.at != in.end)
		return tape_err_set(reterr, -TAPE_E_FORMAT,
				    "column %s: the bytes do not hold %" PRIu32 " values", kind->name,
				    b->events);
	b->valid |= 1u << col;
	return 0;
}

uint32_t tape_column_needs(enum tape_col col)
{
	assert(col < TAPE_COL_MAX);
	return tape_column_kinds[col].needs;
}

const char *tape_column_name(enum tape_col col)
{
	assert(col < TAPE_COL_MAX);
	return tape_column_kinds[col].name;
}

uint32_t tape_columns_close(uint32_t mask)
{
	uint32_t closed = mask;

	for (int col = 0; col < TAPE_COL_MAX; col++)
		if (mask & 1u << col)
			closed |= tape_column_kinds[col].needs;
	return closed;
}
