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

/* Open the streams of a column whose rows have the classes of their ops. */
static void streams_open_by_op(struct tape_scratch *s, struct tape_cursor *in,
			       const struct tape_batch *b)
{
	uint32_t nr[TAPE_STREAMS] = { 0 };

	for (uint32_t i = 0; i < b->events; i++)
		s->classes[i] = tape_op_class[b->op[i]];
	for (uint32_t i = 0; i < b->events; i++) {
		nr[0] += s->classes[i] == 0;
		nr[1] += s->classes[i] == 1;
	}
	nr[2] = b->events - nr[0] - nr[1];
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
		uint64_t aged = (next - (value[i] - 1)) | (0 - (uint64_t)(value[i] == 0));
		bool alloc = classes[i] == TAPE_ROW_ALLOC;

		uint64_t mask = 0 - (uint64_t)alloc;

		good &= alloc | (value[i] <= next + 1);
		object[i] = aged ^ ((aged ^ fresh) & mask);
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
	streams_open_by_op(s, in, b);
	for (uint32_t at = 0, nr; at < b->events; at += nr) {
		nr = b->events - at < TAPE_INTS_BLOCK ? b->events - at : TAPE_INTS_BLOCK;
		if (!tape_rows_merge(s->streams, s->classes + at, nr, block) ||
		    !object_rows(s->classes + at, block, nr, b->object + at, &next))
			return false;
	}
	return streams_done(s);
}

/* ---- rows by what a chunk knows of their object ---- */

/*
 * A row is an alloc; or its object is known, because an earlier row of the chunk (its source, the
 * latest such row) allocated it; or neither.  A function of op and object alone, so encoder and
 * decoder agree.
 */
enum { ROW_ALLOC = TAPE_ROW_ALLOC, ROW_KNOWN, ROW_UNKNOWN };

/* The rows of one block, classified in order. */
struct block {
	uint32_t at, nr;
	uint8_t classes[TAPE_INTS_BLOCK];
	uint16_t source[TAPE_INTS_BLOCK]; /* of known rows; else 0 */
	uint64_t values[TAPE_INTS_BLOCK];
};

/* Begin classifying; returns the id of row_of[0]. */
static uint64_t rows_begin(struct tape_scratch *s, const struct tape_batch *b)
{
	memset(s->row_of, 0, sizeof(*s->row_of) * TAPE_WINDOW);
	return object_base(b);
}

/* Classify the rows after those of @k; false at the end of the batch. */
static bool rows_next(struct tape_scratch *s, const struct tape_batch *b, uint64_t base,
		      struct block *restrict k)
{
	uint16_t *restrict row_of = s->row_of;

	k->at += k->nr;
	k->nr = b->events - k->at < TAPE_INTS_BLOCK ? b->events - k->at : TAPE_INTS_BLOCK;
	for (uint32_t i = 0, row = k->at; i < k->nr; i++, row++) {
		/* masks, no branch: the order of allocs and frees is random */
		uint64_t object = b->object[row], offset = object - base;
		uint32_t alloc = 0 - (uint32_t)(tape_op_class[b->op[row]] == TAPE_ROW_ALLOC);
		uint32_t inside = (offset < TAPE_WINDOW) & (object != TAPE_NO_OBJECT);
		uint16_t *of = &row_of[inside ? offset : TAPE_WINDOW];
		uint32_t was = *of, known;

		/* row 65535 + 1 wraps to "none": no row comes after it */
		*of = (uint16_t)((was & ~alloc) | ((row + 1) & alloc));
		known = (inside & (was != 0)) & ~alloc;
		k->source[i] = (uint16_t)((was - 1) & (0 - known));
		k->classes[i] = (uint8_t)((ROW_UNKNOWN - known) & ~alloc);
	}
	return k->nr > 0;
}

/* Streams in the order alloc, known, unknown; before them how many rows are known. */
static void streams_write(struct tape_scratch *s, const uint32_t nr[TAPE_STREAMS],
			  struct tape_buf *out)
{
	tape_buf_varint(out, nr[ROW_KNOWN]);
	for (uint32_t c = 0; c < TAPE_STREAMS; c++)
		tape_ints_encode(s->values[c], nr[c], out);
}

static bool streams_open(struct tape_scratch *s, struct tape_cursor *in, const struct tape_batch *b)
{
	uint64_t known = tape_cursor_varint(in);
	uint32_t allocs = 0;

	for (uint32_t i = 0; i < b->events; i++)
		allocs += tape_op_class[b->op[i]] == TAPE_ROW_ALLOC;
	if (known > b->events - allocs)
		return false;
	tape_ints_open(&s->streams[ROW_ALLOC], in, allocs);
	tape_ints_open(&s->streams[ROW_KNOWN], in, (uint32_t)known);
	tape_ints_open(&s->streams[ROW_UNKNOWN], in, b->events - allocs - (uint32_t)known);
	return true;
}

/* ---- slot: form 0 written out, form 1 allocs predicted ---- */

struct slot_model {
	struct tape_freeset *free; /* slots freed in this chunk and not taken again */
	uint64_t next;		   /* smallest of them; when there is none UINT64_MAX */
	uint64_t high;		   /* highest slot seen + 1 */
	uint32_t last;		   /* last slot that was written out */
};

static uint32_t slot_predict(const struct slot_model *m)
{
	return (uint32_t)(m->next != UINT64_MAX ? m->next : m->high);
}

static inline void slot_seen(struct slot_model *m, uint32_t slot)
{
	uint64_t above = slot == TAPE_NO_SLOT ? 0 : (uint64_t)slot + 1;

	m->high = max_u64(m->high, above);
}

static inline void slot_freed(struct slot_model *m, uint32_t slot)
{
	slot_seen(m, slot);
	if (slot >= TAPE_SLOT_MODEL_LIMIT)
		return;
	tape_freeset_add(m->free, slot);
	m->next = slot < m->next ? slot : m->next;
}

static inline void slot_taken(struct slot_model *m, uint32_t slot)
{
	slot_seen(m, slot);
	if (slot == m->next) /* sought now, so that it is ready when the next alloc asks */
		m->next = tape_freeset_take_min(m->free, slot);
	else if (slot < TAPE_SLOT_MODEL_LIMIT)
		tape_freeset_remove(m->free, slot);
}

/* The number of an alloc in form 1: 0 as predicted, else 1 + step from the last written one. */
static uint64_t slot_alloc_number(struct slot_model *m, uint32_t slot)
{
	uint64_t number = 0;

	if (slot != slot_predict(m)) {
		number = 1 + tape_zigzag((uint64_t)slot - m->last);
		m->last = slot;
	}
	slot_taken(m, slot);
	return number;
}

/* Fill the streams of form 1, or with @predict false of form 0; returns the allocs that were
 * not predicted. */
static uint32_t slot_streams(struct tape_scratch *s, const struct tape_batch *b, bool predict,
			     uint32_t nr[TAPE_STREAMS])
{
	struct slot_model m = { .free = &s->free_slots, .next = UINT64_MAX };
	uint64_t base = rows_begin(s, b);
	struct block k = { 0 };
	uint32_t missed = 0;

	memset(nr, 0, sizeof(*nr) * TAPE_STREAMS);
	while (rows_next(s, b, base, &k)) {
		for (uint32_t i = 0, row = k.at; i < k.nr; i++, row++) {
			uint32_t class = k.classes[i], slot = b->slot[row];
			uint64_t number = (uint32_t)(slot + 1);

			if (class == ROW_KNOWN)
				number = (uint32_t)(slot - b->slot[k.source[i]]);
			if (predict && class == ROW_ALLOC) {
				number = slot_alloc_number(&m, slot);
				missed += number != 0;
			} else if (predict && tape_op_class[b->op[row]] == TAPE_ROW_FREE) {
				slot_freed(&m, slot);
			}
			s->values[class][nr[class]++] = number;
		}
	}
	tape_freeset_clear(m.free);
	return missed;
}

void tape_slot_encode(struct tape_scratch *s, enum tape_col col, const struct tape_batch *b,
		      struct tape_buf *out)
{
	uint32_t nr[TAPE_STREAMS], missed = slot_streams(s, b, true, nr);
	bool predict = missed <= nr[ROW_ALLOC] / 2;

	(void)col;
	if (!predict)
		slot_streams(s, b, false, nr);
	tape_buf_u8(out, predict);
	streams_write(s, nr, out);
}

static inline uint32_t slot_alloc_decode(struct slot_model *m, uint64_t number)
{
	uint32_t slot = slot_predict(m);

	if (number)
		slot = m->last += (uint32_t)tape_unzigzag(number - 1);
	slot_taken(m, slot);
	return slot;
}

/* The slot of a row that is no predicted alloc; without a branch, see rows_next(). */
static inline uint32_t slot_other_decode(const uint32_t *slots, const struct block *k, uint32_t i)
{
	uint32_t unknown = 0 - (uint32_t)(k->classes[i] != ROW_KNOWN);

	return (uint32_t)k->values[i] + (slots[k->source[i]] | unknown);
}

static void slot_rows_written(struct tape_batch *b, const struct block *k)
{
	uint32_t *slots = b->slot;

	for (uint32_t i = 0, row = k->at; i < k->nr; i++, row++)
		slots[row] = slot_other_decode(slots, k, i);
}

static void slot_rows_predicted(struct slot_model *model, struct tape_batch *b,
				const struct block *k)
{
	struct slot_model m = *model; /* a copy the compiler can keep in registers */
	uint32_t *slots = b->slot;
	const uint8_t *op = b->op + k->at;

	for (uint32_t i = 0, row = k->at; i < k->nr; i++, row++) {
		if (k->classes[i] == ROW_ALLOC) {
			slots[row] = slot_alloc_decode(&m, k->values[i]);
			continue;
		}
		slots[row] = slot_other_decode(slots, k, i);
		if (tape_op_class[op[i]] == TAPE_ROW_FREE)
			slot_freed(&m, slots[row]);
	}
	*model = m;
}

bool tape_slot_decode(struct tape_scratch *s, enum tape_col col, struct tape_cursor *in,
		      struct tape_batch *b)
{
	struct slot_model m = { .free = &s->free_slots, .next = UINT64_MAX };
	uint64_t base = rows_begin(s, b);
	uint8_t form = tape_cursor_u8(in);
	struct block k = { 0 };
	bool good = form <= 1 && streams_open(s, in, b);

	(void)col;
	while (good && rows_next(s, b, base, &k)) {
		good = tape_rows_merge(s->streams, k.classes, k.nr, k.values);
		if (good && form)
			slot_rows_predicted(&m, b, &k);
		else if (good)
			slot_rows_written(b, &k);
	}
	tape_freeset_clear(m.free);
	return good && streams_done(s);
}

/* ---- address: difference to the last address of the same CPU and site ---- */

static uint64_t *address_context(struct tape_scratch *s, uint32_t site, uint32_t cpu)
{
	uint32_t hash = site * UINT32_C(0x9E3779B1) ^ cpu * UINT32_C(0x85EBCA6B);

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
	uint64_t last = 0, base = rows_begin(s, b);
	struct block k = { 0 };

	(void)col;
	memset(s->contexts, 0, sizeof(s->contexts));
	while (rows_next(s, b, base, &k)) {
		for (uint32_t i = 0, row = k.at; i < k.nr; i++, row++) {
			uint64_t address = b->address[row] >> shift, from;
			uint64_t *context = address_context(s, b->site[row], b->cpu[row]);

			if (k.classes[i] == ROW_KNOWN) {
				from = b->address[k.source[i]] >> shift;
			} else {
				from = *context ? *context : last;
				*context = last = address;
			}
			s->values[k.classes[i]][nr[k.classes[i]]++] = tape_zigzag(address - from);
		}
	}
	tape_buf_u8(out, (uint8_t)shift);
	streams_write(s, nr, out);
}

/* The addresses of @k's rows; returns the last one that was not a known row's. */
static uint64_t address_rows(struct tape_scratch *s, struct tape_batch *b, uint32_t shift,
			     const struct block *k, uint64_t last)
{
	for (uint32_t i = 0, row = k->at; i < k->nr; i++, row++) {
		uint64_t *context = address_context(s, b->site[row], b->cpu[row]);
		uint64_t address = tape_unzigzag(k->values[i]);

		if (k->classes[i] == ROW_KNOWN) {
			address += b->address[k->source[i]] >> shift;
		} else {
			address += *context ? *context : last;
			*context = last = address;
		}
		b->address[row] = address << shift;
	}
	return last;
}

bool tape_address_decode(struct tape_scratch *s, enum tape_col col, struct tape_cursor *in,
			 struct tape_batch *b)
{
	uint64_t last = 0, base = rows_begin(s, b);
	uint8_t shift = tape_cursor_u8(in);
	struct block k = { 0 };
	bool good = shift <= 63 && streams_open(s, in, b);

	(void)col;
	memset(s->contexts, 0, sizeof(s->contexts));
	while (good && rows_next(s, b, base, &k)) {
		good = tape_rows_merge(s->streams, k.classes, k.nr, k.values);
		if (good)
			last = address_rows(s, b, shift, &k, last);
	}
	return good && streams_done(s);
}
