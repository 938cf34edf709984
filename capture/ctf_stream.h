/* SPDX-License-Identifier: MIT */
/*
 * The fast reader: one stream (a channel's buffer of one CPU) of our own layout, over any number
 * of files that continue each other (one per rotation).
 *
 * Packets are used where they are mapped.  Layout of a packet, all little or all big endian as the
 * machine, no padding:
 *
 *	0 magic u32 | 4 uuid | 20 stream class u32 | 24 instance u64
 *	32 begin u64 | 40 end u64 | 48 content bits u64 | 56 packet bits u64
 *	64 sequence u64 | 72 discarded u64 | 80 cpu u32 | 84 events ...
 *	event: id u16, clock u32 (low bits); id 0xffff: id u32, clock u64; then the fields
 */
#ifndef SLABTAPE_CAPTURE_CTF_STREAM_H
#define SLABTAPE_CAPTURE_CTF_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/ctf_layout.h"
#include "capture/ctf_record.h"

struct ctf_file;

/* A window in which the tracer had no room. */
struct ctf_loss {
	uint64_t ts_begin, ts_end;
	uint64_t events; /* 0: number unknown */
	uint16_t cpu;
};

struct ctf_stream {
	char *name; /* of its files, within the folder; owned */
	uint8_t uuid[16];
	const struct ctf_layout *layout; /* borrowed */
	struct ctf_file *first, *last;	 /* mapped, unread; owned */
	/* Place: the next event is at `at`, of the packet that ends at `end`. */
	const uint8_t *at, *end, *packet_end;
	const uint8_t *what; /* layout->what of its stream class */
	uint64_t clock;	     /* of the last event or packet */
	uint16_t cpu;
	/* What all packets so far said; hold_ts: begin of the last one, start_ts of the first. */
	uint64_t packets, next_sequence, discarded, hold_ts, start_ts;
	struct ctf_record head; /* the next record, when has_head */
	bool has_head;
};

/*
 * A file that continues @s: mapped, its packets checked.  @loss is told of each window of loss in
 * it.  -TAPE_E_FORMAT or -TAPE_E_TRUNCATED with file and offset; the file may be deleted then.
 */
int ctf_stream_add(struct ctf_stream *s, const char *path,
		   int (*loss)(void *ctx, const struct ctf_loss *l, struct tape_err *reterr),
		   void *ctx, struct tape_err *reterr) TAPE_MUST_CHECK;

/* Make s->head the next record; has_head becomes false when there is none yet. */
int ctf_stream_next(struct ctf_stream *s, struct tape_err *reterr) TAPE_MUST_CHECK;

void ctf_stream_fini(struct ctf_stream *s);

#endif
