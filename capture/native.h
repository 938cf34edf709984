/* SPDX-License-Identifier: MIT */
/*
 * The recorder's side of native recording: the ring file of ust/native_ring.h and the merge of
 * its threads into one order.
 */
#ifndef SLABTAPE_CAPTURE_NATIVE_H
#define SLABTAPE_CAPTURE_NATIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct heap;
struct native;

struct native_options {
	uint64_t buffer_bytes; /* most shared memory used; 0: 256 MiB */
	bool lossless;	       /* threads wait for free memory instead of dropping events */
};

/*
 * Create the shared file in a private folder of /dev/shm (else $TMPDIR, else /tmp) and remove
 * those that killed recorders of this user left.  *ret_native is owned by the caller.
 */
int native_create(const struct native_options *options, struct native **ret_native,
		  struct tape_err *reterr) TAPE_MUST_CHECK;
void native_destroy(struct native *n); /* removes the file; NULL is accepted */

const char *native_path(const struct native *n);  /* borrowed: value for RING_ENV */
uint32_t native_attached(const struct native *n); /* programs that came so far */

/*
 * Hand everything that is safely in order to @h.  @last: recording ends; everything is handed
 * over, nothing more is accepted.  Call it every few ms.  *ret_events (may be NULL) grows by the
 * number of records handled.
 */
int native_poll(struct native *n, struct heap *h, bool last, uint64_t *ret_events,
		struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
