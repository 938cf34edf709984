/* SPDX-License-Identifier: MIT */
/* One event of a user-space CTF recording, whoever read it. */
#ifndef SLABTAPE_CAPTURE_CTF_RECORD_H
#define SLABTAPE_CAPTURE_CTF_RECORD_H

#include <stdint.h>

#include "base/error.h"

enum ctf_what {
	CTF_ALLOC = 0,	/* address, ip, size, kind */
	CTF_FREE,	/* address, ip, kind */
	CTF_EXEC,	/* parent, text: the program */
	CTF_FORK_BEGIN, /* serial */
	CTF_FORK,	/* parent, serial */
	CTF_MODULE,	/* address: base, size, text: path; tid 0 */
	CTF_LOST,	/* size: events lost before the recording */
	CTF_SLAB_ALLOC,	/* address, size: of the object, text: cache */
	CTF_SLAB_FREE,	/* address, text: cache */
	CTF_SLAB_TRANSITION, /* address: of the slab, size: its id, from, to, inuse, objects, text */
	CTF_WHAT_MAX,
	CTF_DISCARDED,	/* not an event: size events are missing, in [ts, ts_end] */
};

struct ctf_record {
	uint64_t ts; /* the tracer's clock, ns */
	uint64_t address, size, ip;
	int32_t pid, tid, parent; /* pid and tid in all events */
	uint32_t serial;
	const char *text; /* borrowed until the next record */
	uint64_t ts_end;
	uint32_t inuse, objects;
	uint16_t cpu;  /* alloc, free, slab_*: as in the event; else of the stream */
	uint8_t what;  /* enum ctf_what */
	uint8_t node;
	uint8_t kind;  /* enum ring_kind of ust/native_ring.h */
	uint8_t from, to; /* enum alloc_state of libslab */
};

/* Receiver of records; negative ends the reading. */
typedef int (*ctf_record_fn)(void *ctx, const struct ctf_record *r, struct tape_err *reterr);

#endif
