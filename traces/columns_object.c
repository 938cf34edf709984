/* SPDX-License-Identifier: MIT */
/*
 * Columns that follow objects: object itself, slot, address.
 *
 * An alloc usually makes the next dense id, so it costs nothing; a free names its object by age.
 * A free of an object whose alloc is in the same chunk repeats that row's slot and address, so
 * it costs nothing either.  An alloc usually takes the smallest slot freed before, which both
 * sides can work out.
 */
#include "traces/columns.h"

/* ---- object ---- */

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The first alloc's object; without allocs one above the largest object. */
static uint64_t object_base(const struct tape_batch *b)
{
	uint64_t base = 0;

	for (uint32_t i = 0; i < b->events; i++) {
		if (tape_op_class[b->op[i]] == TAPE_ROW_ALLOC && b->object[i] != TAPE_NO_OBJECT)
			return b->object[i];
		base = max_u64(base, b->object[i] + 1); /* TAPE_NO_OBJECT + 1 == 0 */
	}
	return base;
}

/*
 * Fill the three streams.  False when they cannot say it: a row other than an alloc names an id
 * above `next`, or ids are so large that an age could wrap.
 */
static bool object_ages(struct tape_scratch *s, const struct tape_batch *b, uint64_t base,
			uint32_t nr[TAPE_STREAMS])
{
	uint64_t next = base;

	for (uint32_t i = 0; i < b->events && next <= INT64_MAX; i++) {
		uint32_t class = tape_op_class[b->op[i]];
		uint64_t object = b->object[i], value;

		if (class == TAPE_ROW_ALLOC)
			value = tape_zigzag(object - next);
		else if (object == TAPE_NO_OBJECT)
			value = 0;
		else if (object <= next)
			value = next - object + 1;
		else
			return false;
		s->values[class][nr[class]++] = value;
		next = max_u64(next, object + 1);
	}
	return next <= INT64_MAX;
}

void tape_object_encode(struct tape_scratch *s, enum tape_col col, const struct tape_batch *b,
			struct tape_buf *out)
{
	uint64_t base = object_base(b);
	uint32_t nr[TAPE_STREAMS] = { 0 };

	(void)col;
	if (!object_ages(s, b, base, nr)) {
		tape_buf_u8(out, 0);
		for (uint32_t i = 0; i < b->events; i++)
			s->values[0][i] = b->object[i] + 1;
		tape_ints_encode(s->values[0], b->events, out);
		return;
	}
	tape_buf_u8(out, 1);
	tape_buf_varint(out, base);
	for (uint32_t c = 0; c < TAPE_STREAMS; c++)
		tape_ints_encode(s->values[c], nr[c], out);
}

static bool object_decode_plain(struct tape_scratch *s, struct tape_cursor *in,
				struct tape_batch *b)
{
	uint64_t block[TAPE_INTS_BLOCK];

	tape_ints_open(&s->streams[0], in, b->events);
	for (uint32_t at = 0, nr; at < b->events; at += nr) {
		nr = b->events - at < TAPE_INTS_BLOCK ? b->events - at : TAPE_INTS_BLOCK;
		tape_ints_next(&s->streams[0], block, nr);
		for (uint32_t i = 0; i < nr; i++)
			b->object[at + i] = block[i] - 1;
	}
	return tape_ints_done(&s->streams[0]);
}

static void streams_open(struct tape_scratch *s, struct tape_cursor *in, const uint8_t *classes,
			 uint32_t rows)
{
	uint32_t nr[TAPE_STREAMS] = { 0 };

	for (uint32_t i = 0; i < rows; i++) {
		nr[0] += classes[i] == 0;
		nr[1] += classes[i] == 1;
	}
	nr[2] = rows - nr[0] - nr[1];
	for (uint32_t c = 0; c < TAPE_STREAMS; c++)
		tape_ints_open(&s->streams[c], in, nr[c]);
}

static bool streams_done(const struct tape_scratch *s)
{
	bool done = true;

	for (uint32_t c = 0; c < TAPE_STREAMS; c++)
		done &= tape_ints_done(&s->streams[c]);
	return done;
}

/* @nr objects from their numbers; *next_object moves on.  False: an age beyond the first id. */
static bool object_rows(const uint8_t *classes, const uint64_t *value, uint32_t nr,
			uint64_t *object, uint64_t *next_object)
{
	uint64_t next = *next_object;
	bool good = true;

	for (uint32_t i = 0; i < nr; i++) {
		uint64_t fresh = next + tape_unzigzag(value[i]);
		uint64_t aged = value[i] ? next - (value[i] - 1) : TAPE_NO_OBJECT;
		bool alloc = classes[i] == TAPE_ROW_ALLOC;

		good &= alloc || value[i] <= next + 1;
		object[i] = alloc ? fresh : aged;
		next = max_u64(next, object[i] + 1);
	}
	*next_object = next;
	return good;
}

bool tape_object_decode(struct tape_scratch *s, enum tape_col col, struct tape_cursor *in,
			struct tape_batch *b)
{
	uint64_t block[TAPE_INTS_BLOCK], next;
	uint8_t form = tape_cursor_u8(in);

	(void)col;
	if (form == 0)
		return object_decode_plain(s, in, b);
	next = tape_cursor_varint(in);
	if (form != 1 || next > INT64_MAX)
		return false;
	for (uint32_t i = 0; i < b->events; i++)
		s->classes[i] = tape_op_class[b->op[i]];
	streams_open(s, in, s->classes, b->events);
	for (uint32_t at = 0, nr; at < b->events; at += nr) {
		nr = b->events - at < TAPE_INTS_BLOCK ? b->events - at : TAPE_INTS_BLOCK;
		tape_rows_merge(s->streams, s->classes + at, nr, block);
		if (!object_rows(s->classes + at, block, nr, b->object + at, &next))
			return false;
	}
	return streams_done(s);
}

/* ---- rows by what a chunk knows of their object ---- */

enum { ROW_ALLOC = TAPE_ROW_ALLOC, ROW_KNOWN, ROW_UNKNOWN };

/*
 * s->classes[i]: ROW_ALLOC; ROW_KNOWN when an earlier row of the chunk allocated the object
 * (s->source[i] is the latest such row); else ROW_UNKNOWN.  A function of op and object alone,
 * so encoder and decoder agree.
 */
static void rows_classify(struct tape_scratch *s, const struct tape_batch *b)
{
	uint64_t base = object_base(b);

	memset(s->row_of, 0, sizeof(*s->row_of) * TAPE_WINDOW);
	for (uint32_t i = 0; i < b->events; i++) {
		uint64_t offset = b->object[i] - base;
		bool inside = offset < TAPE_WINDOW && b->object[i] != TAPE_NO_OBJECT;
		uint32_t *row = &s->row_of[inside ? offset : 0];

		if (tape_op_class[b->op[i]] == TAPE_ROW_ALLOC) {
			s->classes[i] = ROW_ALLOC;
			if (inside)
				*row = i + 1;
		} else {
			s->classes[i] = inside && *row ? ROW_KNOWN : ROW_UNKNOWN;
			s->source[i] = *row - 1;
		}
	}
}

/* ---- slot: form 0 written out, form 1 allocs predicted ---- */

struct slot_model {
	struct tape_freeset *free; /* slots freed in this chunk and not taken again */
	uint64_t high;		   /* highest slot seen + 1 */
	uint32_t last;		   /* last slot that was written out */
};

static uint32_t slot_predict(const struct slot_model *m)
{
	return m->free->members ? (uint32_t)tape_freeset_min(m->free) : (uint32_t)m->high;
}

static void slot_seen(struct slot_model *m, uint32_t slot)
{
	if (slot != TAPE_NO_SLOT)
		m->high = max_u64(m->high, (uint64_t)slot + 1);
}

static void slot_freed(struct slot_model *m, uint32_t slot)
{
	slot_seen(m, slot);
	if (slot < TAPE_SLOT_MODEL_LIMIT)
		tape_freeset_add(m->free, slot);
}

static void slot_taken(struct slot_model *m, uint32_t slot)
{
	slot_seen(m, slot);
	if (slot < TAPE_SLOT_MODEL_LIMIT)
		tape_freeset_remove(m->free, slot);
}

/* The three streams of form 1; returns how many allocs had to be written out. */
static uint32_t slot_predicted_streams(struct tape_scratch *s, const struct tape_batch *b,
				       uint32_t nr[TAPE_STREAMS])
{
	struct slot_model m = { .free = &s->free_slots };
	uint32_t missed = 0;

	for (uint32_t i = 0; i < b->events; i++) {
		uint32_t class = s->classes[i], slot = b->slot[i];
		uint64_t value;

		if (class == ROW_ALLOC) {
			value = slot == slot_predict(&m) ? 0 : 1 + tape_zigzag((uint64_t)slot - m.last);
			m.last = value ? slot : m.last;
			missed += value != 0;
			slot_taken(&m, slot);
		} else {
			value = (uint32_t)(class == ROW_KNOWN ? slot - b->slot[s->source[i]] : slot + 1);
			if (tape_op_class[b->op[i]] == TAPE_ROW_FREE)
				slot_freed(&m, slot);
		}
		s->values[class][nr[class]++] = value;
	}
	tape_freeset_clear(m.free);
	return missed;
}

void tape_slot_encode(struct tape_scratch *s, enum tape_col col, const struct tape_batch *b,
		      struct tape_buf *out)
{
	uint32_t nr[TAPE_STREAMS] = { 0 };
	uint32_t missed;
	bool predict;

	(void)col;
	rows_classify(s, b);
	missed = slot_predicted_streams(s, b, nr);
	predict = missed <= nr[ROW_ALLOC] / 2;
	tape_buf_u8(out, predict);
	if (!predict)
		for (uint32_t i = 0, a = 0; i < b->events; i++)
			if (s->classes[i] == ROW_ALLOC)
				s->values[ROW_ALLOC][a++] = (uint32_t)(b->slot[i] + 1);
	for (uint32_t c = 0; c < TAPE_STREAMS; c++)
		tape_ints_encode(s->values[c], nr[c], out);
}

/* Form 0; @value: numbers of rows [at, at + nr). */
static void slot_rows_plain(struct tape_scratch *s, struct tape_batch *b, uint32_t at, uint32_t nr,
			    const uint64_t *value)
{
	for (uint32_t i = at; i < at + nr; i++, value++)
		b->slot[i] = (uint32_t)*value +
			     (s->classes[i] == ROW_KNOWN ? b->slot[s->source[i]] : UINT32_MAX);
}

static void slot_rows_predicted(struct tape_scratch *s, struct tape_batch *b, uint32_t at,
				uint32_t nr, const uint64_t *value, struct slot_model *m)
{
	for (uint32_t i = at; i < at + nr; i++, value++) {
		uint32_t slot;

		if (s->classes[i] == ROW_ALLOC) {
			if (*value)
				slot = m->last += (uint32_t)tape_unzigzag(*value - 1);
			else
				slot = slot_predict(m);
			slot_taken(m, slot);
		} else {
			slot = (uint32_t)*value +
			       (s->classes[i] == ROW_KNOWN ? b->slot[s->source[i]] : UINT32_MAX);
			if (tape_op_class[b->op[i]] == TAPE_ROW_FREE)
				slot_freed(m, slot);
		}
		b->slot[i] = slot;
	}
}

bool tape_slot_decode(struct tape_scratch *s, enum tape_col col, struct tape_cursor *in,
		      struct tape_batch *b)
{
	struct slot_model m = { .free = &s->free_slots };
	uint64_t block[TAPE_INTS_BLOCK];
	uint8_t form = tape_cursor_u8(in);

	(void)col;
	if (form > 1)
		return false;
	rows_classify(s, b);
	streams_open(s, in, s->classes, b->events);
	for (uint32_t at = 0, nr; at < b->events; at += nr) {
		nr = b->events - at < TAPE_INTS_BLOCK ? b->events - at : TAPE_INTS_BLOCK;
		tape_rows_merge(s->streams, s->classes + at, nr, block);
		if (form)
			slot_rows_predicted(s, b, at, nr, block, &m);
		else
			slot_rows_plain(s, b, at, nr, block);
	}
	tape_freeset_clear(m.free);
	return streams_done(s);
}

/* ---- address: difference to the last address of the same CPU and site ---- */

static uint64_t *address_context(struct tape_scratch *s, const struct tape_batch *b, uint32_t i)
{
	uint32_t hash = b->site[i] * UINT32_C(0x9E3779B1) ^ b->cpu[i] * UINT32_C(0x85EBCA6B);

	return &s->contexts[(hash ^ hash >> 15) & (TAPE_ADDRESS_CONTEXTS - 1)];
}

/* Low zero bits that all addresses have in common (63 when all are 0). */
static uint32_t address_shift(const struct tape_batch *b)
{
	uint64_t bits = UINT64_C(1) << 63;

	for (uint32_t i = 0; i < b->events; i++)
		bits |= b->address[i];
	return (uint32_t)__builtin_ctzll(bits);
}

void tape_address_encode(struct tape_scratch *s, enum tape_col col, const struct tape_batch *b,
			 struct tape_buf *out)
{
	uint32_t shift = address_shift(b), nr[TAPE_STREAMS] = { 0 };
	uint64_t last = 0;

	(void)col;
	rows_classify(s, b);
	memset(s->contexts, 0, sizeof(s->contexts));
	for (uint32_t i = 0; i < b->events; i++) {
		uint64_t address = b->address[i] >> shift, value;
		uint64_t *context = address_context(s, b, i);

		if (s->classes[i] == ROW_KNOWN) {
			value = tape_zigzag(address - (b->address[s->source[i]] >> shift));
		} else {
			value = tape_zigzag(address - (*context ? *context : last));
			*context = last = address;
		}
		s->values[s->classes[i]][nr[s->classes[i]]++] = value;
	}
	tape_buf_u8(out, (uint8_t)shift);
	for (uint32_t c = 0; c < TAPE_STREAMS; c++)
		tape_ints_encode(s->values[c], nr[c], out);
}

bool tape_address_decode(struct tape_scratch *s, enum tape_col col, struct tape_cursor *in,
			 struct tape_batch *b)
{
	uint64_t block[TAPE_INTS_BLOCK], last = 0;
	uint8_t shift = tape_cursor_u8(in);

	(void)col;
	if (shift > 63)
		return false;
	rows_classify(s, b);
	memset(s->contexts, 0, sizeof(s->contexts));
	streams_open(s, in, s->classes, b->events);
	for (uint32_t at = 0, nr; at < b->events; at += nr) {
		nr = b->events - at < TAPE_INTS_BLOCK ? b->events - at : TAPE_INTS_BLOCK;
		tape_rows_merge(s->streams, s->classes + at, nr, block);
		for (uint32_t j = 0; j < nr; j++) {
			uint64_t *context = address_context(s, b, at + j);
			uint64_t step = tape_unzigzag(block[j]), address;

			if (s->classes[at + j] == ROW_KNOWN) {
				address = step + (b->address[s->source[at + j]] >> shift);
			} else {
				address = step + (*context ? *context : last);
				*context = last = address;
			}
			b->address[at + j] = address << shift;
		}
	}
	return streams_done(s);
}
