/* SPDX-License-Identifier: MIT */
/*
 * A random but reproducible recording for the tests of store/: dense ids, smallest slots, some
 * objects that live for many chunks, orphans, inferred events, markers.
 */
#ifndef SLABTAPE_TESTS_STORE_FIXTURE_H
#define SLABTAPE_TESTS_STORE_FIXTURE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/tape.h"
#include "traces/objects.h"

#define FIXTURE_LIVE 3000u

struct fixture {
	uint64_t seed, seq, ts;
	struct tape_objects *map;
	struct tape_event event; /* the last one made */
	uint64_t address[FIXTURE_LIVE];
	uint32_t live_nr;
};

static inline uint64_t fixture_rnd(struct fixture *f)
{
	f->seed ^= f->seed << 13;
	f->seed ^= f->seed >> 7;
	f->seed ^= f->seed << 17;
	return f->seed;
}

static inline void fixture_init(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->seed = 88172645463325252u;
	f->map = tape_objects_create(false);
	if (!f->map)
		abort();
}

static inline void fixture_fini(struct fixture *f)
{
	tape_objects_destroy(f->map);
}

static inline void fixture_alloc(struct fixture *f, struct tape_event *ev)
{
	struct tape_live *live;
	uint64_t address = 0xffff888100000000u + (f->seq + 1) * 64;

	live = tape_objects_add(f->map, 0, address);
	if (!live)
		abort();
	live->cache = (uint16_t)(1 + fixture_rnd(f) % 7);
	f->address[f->live_nr++] = address;
	ev->op = TAPE_OP_ALLOC;
	ev->object = live->object;
	ev->slot = live->slot;
	ev->cache = live->cache;
	ev->address = address;
	ev->size = 1 + fixture_rnd(f) % 500;
	ev->flags = fixture_rnd(f) % 50 == 0 ? TAPE_F_INFERRED : 0;
}

static inline void fixture_free(struct fixture *f, struct tape_event *ev)
{
	/* mostly young objects; the first 200 places hold objects that get very old */
	uint32_t pick = (uint32_t)(fixture_rnd(f) % f->live_nr);
	struct tape_live *live;

	if (pick < 200 && fixture_rnd(f) % 64)
		pick = f->live_nr - 1;
	live = tape_objects_find(f->map, 0, f->address[pick]);
	ev->op = TAPE_OP_FREE;
	ev->object = live->object;
	ev->slot = live->slot;
	ev->cache = live->cache;
	ev->address = live->address;
	f->address[pick] = f->address[--f->live_nr];
	if (tape_objects_remove(f->map, live, ev->ts, f->seq) < 0)
		abort();
}

/* The next event; a marker is made by the caller from op TAPE_OP_MARKER ("mark <seq>"). */
static inline struct tape_event fixture_next(struct fixture *f)
{
	struct tape_event ev = tape_event_blank();
	uint64_t dice = fixture_rnd(f) % 1000;

	f->ts += fixture_rnd(f) % 3000;
	ev.ts = ev.ts_lo = ev.ts_hi = f->ts;
	ev.cpu = (uint16_t)(fixture_rnd(f) % 4);
	ev.tid = 100 + ev.cpu;
	ev.site = (uint32_t)(fixture_rnd(f) % 30);
	if (dice == 0) {
		ev.op = TAPE_OP_MARKER;
		ev.tid = 0;
		ev.site = 0;
	} else if (dice < 5) {
		ev.op = TAPE_OP_FREE;
		ev.object = tape_objects_orphan(f->map);
		ev.cache = 1;
		ev.flags = TAPE_F_ORPHAN;
		ev.address = 0x1000 * dice;
	} else if (f->live_nr < 1000 || (f->live_nr < FIXTURE_LIVE && fixture_rnd(f) % 2)) {
		fixture_alloc(f, &ev);
	} else {
		fixture_free(f, &ev);
	}
	f->seq++;
	f->event = ev;
	return ev;
}

/* Append the next @events events to @t; negative on failure. */
static inline int fixture_append(struct fixture *f, struct tape *t, uint64_t events,
				 struct tape_err *reterr)
{
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i < events; i++) {
		struct tape_event ev = fixture_next(f);

		rc = ev.op == TAPE_OP_MARKER ? tape_writer_marker(t, ev.ts, ev.cpu, "mark it", reterr) :
					       tape_writer_append(t, &ev, NULL, reterr);
	}
	return rc;
}

#endif
