/* SPDX-License-Identifier: MIT */
/*
 * Encoding of full batches on a thread of its own, so that the thread that appends only fills
 * batches and runs SQL.  Internal to store/.
 *
 * One worker, a ring of STORE_JOBS jobs, first in first out:
 *
 *	submit -> [queued] -> worker encodes -> [done] -> take, insert into SQLite, put
 *
 * | operation               | needs outside locking against        |
 * | submit, take, put, full | one another (one appending thread)   |
 * | worker                  | nothing                              |
 *
 * A job and its batch belong to the worker between submit and done, to the appending thread
 * otherwise; the mutex in the encoder hands them over.  Where no thread can be started, submit
 * encodes at once.
 */
#ifndef SLABTAPE_STORE_ENCODER_H
#define SLABTAPE_STORE_ENCODER_H

#include "store/store_internal.h"

#define STORE_JOBS 3u

struct store_encoder;

struct store_encoder *store_encoder_create(void); /* NULL when out of memory */
/* Waits for the job the worker is at; NULL is accepted. */
void store_encoder_destroy(struct store_encoder *e);

/* True when the ring has no room: take and put before the next submit. */
bool store_encoder_full(const struct store_encoder *e);

/* Encode @b as chunk @id; @b is the encoder's until its job was put. */
void store_encoder_submit(struct store_encoder *e, int64_t id, struct tape_batch *b);

/*
 * The oldest job, when it is done; @wait: wait for it.  NULL: none is in the ring, or not done.
 * Borrowed until store_encoder_put(), which takes no other than this one.
 */
struct store_encoded *store_encoder_take(struct store_encoder *e, bool wait);

/* Give the taken job's place back; returns its batch, which is the caller's again. */
struct tape_batch *store_encoder_put(struct store_encoder *e);

#endif
