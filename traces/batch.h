/* SPDX-License-Identifier: MIT */
/*
 * A batch: up to TAPE_CHUNK_EVENTS events held as columns, one array per field of tape_event.
 *
 * Batches are what the chunk codec encodes and decodes and what engines and scans loop over.
 * `valid` says which columns hold data; the others must not be read.  Rows are consecutive in
 * seq: row i is event first_seq + i.
 */
#ifndef SLABTAPE_TRACES_BATCH_H
#define SLABTAPE_TRACES_BATCH_H

#include "base/error.h"
#include "traces/event.h"

#define TAPE_CHUNK_EVENTS 65536u

/* Columns of an event.  The values are part of the file format: add at the end. */
enum tape_col {
	TAPE_COL_TS = 0,
	TAPE_COL_CPU,
	TAPE_COL_OP,
	TAPE_COL_CACHE,
	TAPE_COL_OBJECT,
	TAPE_COL_SLOT,
	TAPE_COL_SIZE,
	TAPE_COL_NODE_REQ,
	TAPE_COL_MEM_NODE,
	TAPE_COL_SITE,
	TAPE_COL_TID,
	TAPE_COL_GFP,
	TAPE_COL_CTX,
	TAPE_COL_BULK,
	TAPE_COL_ARG,
	TAPE_COL_FLAGS,
	TAPE_COL_ADDRESS,
	TAPE_COL_TS_LO,
	TAPE_COL_TS_HI,
	TAPE_COL_MAX
};
#define TAPE_COLS_ALL ((1u << TAPE_COL_MAX) - 1)
/* What a replay needs. */
#define TAPE_COLS_REPLAY                                                                   \
	(1u << TAPE_COL_TS | 1u << TAPE_COL_CPU | 1u << TAPE_COL_OP | 1u << TAPE_COL_CACHE | \
	 1u << TAPE_COL_OBJECT | 1u << TAPE_COL_SLOT | 1u << TAPE_COL_SIZE |                \
	 1u << TAPE_COL_NODE_REQ | 1u << TAPE_COL_GFP | 1u << TAPE_COL_BULK |               \
	 1u << TAPE_COL_ARG | 1u << TAPE_COL_FLAGS)

/* X(column, field): the array of a batch and the field of tape_event that belong together. */
#define TAPE_BATCH_FIELDS(X)                                                                      \
	X(TS, ts) X(TS_LO, ts_lo) X(TS_HI, ts_hi) X(OBJECT, object) X(ADDRESS, address)           \
	X(SIZE, size) X(ARG, arg) X(SLOT, slot) X(SITE, site) X(BULK, bulk) X(TID, tid)           \
	X(CPU, cpu) X(CACHE, cache) X(GFP, gfp) X(FLAGS, flags) X(NODE_REQ, node_req)             \
	X(MEM_NODE, mem_node) X(OP, op) X(CTX, ctx)

struct tape_batch {
	uint64_t first_seq;
	uint32_t events; /* rows used, <= capacity */
	uint32_t capacity;
	uint32_t valid;	 /* bit mask of 1u << enum tape_col */
	uint64_t *ts, *ts_lo, *ts_hi, *object, *address, *size;
	int64_t *arg;
	uint32_t *slot, *site, *bulk;
	int32_t *tid;
	uint16_t *cpu, *cache, *gfp, *flags;
	int16_t *node_req, *mem_node;
	uint8_t *op, *ctx;
	void *memory; /* one block behind all arrays */
};

/*
 * Heap batch with room for @capacity rows (1..TAPE_CHUNK_EVENTS), all columns allocated, none
 * valid, no rows.  Returns NULL when out of memory.  The caller destroys it (NULL is accepted).
 */
struct tape_batch *tape_batch_create(uint32_t capacity);
void tape_batch_destroy(struct tape_batch *b);
static inline void tape_batch_destroyp(struct tape_batch **b)
{
	tape_batch_destroy(*b);
}

/* Append one row to a batch that is not full (asserted); all columns become valid. */
void tape_batch_push(struct tape_batch *b, const struct tape_event *ev);

/* Row @i as an event; columns that are not valid read as in tape_event_blank(). */
void tape_batch_get(const struct tape_batch *b, uint32_t i, struct tape_event *ret_ev);

#endif
