/* SPDX-License-Identifier: MIT */
#include "replay/sim_streams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "traces/event.h"

#define STREAM_COLUMNS                                                                         \
	(1u << TAPE_COL_TS | 1u << TAPE_COL_CPU | 1u << TAPE_COL_OP | 1u << TAPE_COL_CACHE |   \
	 1u << TAPE_COL_OBJECT | 1u << TAPE_COL_NODE_REQ | 1u << TAPE_COL_GFP |                \
	 1u << TAPE_COL_BULK | 1u << TAPE_COL_ARG | 1u << TAPE_COL_FLAGS)
/* Of loader.alloc_cpu; CPUs are below ALLOC_CPU_MAX. */
#define NEVER_ALLOCATED UINT16_MAX
#define FREED (UINT16_MAX - 1)

void *sim_array_create(size_t bytes)
{
	void *array = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (array == MAP_FAILED)
		return NULL;
	madvise(array, bytes, MADV_HUGEPAGE); /* a wish */
	return array;
}

void sim_array_free(void *array, size_t bytes)
{
	if (array)
		munmap(array, bytes + 1);
}

/* By cache id: whether it is replayed. */
static void note_replayed(const struct replay_plan *p, uint8_t *ret_replayed)
{
	for (size_t i = 0; i < p->nr_caches; i++)
		ret_replayed[p->caches[i].row.id] = p->caches[i].left_out == REPLAY_IN;
}

/* One stream while it is loaded. */
struct lane {
	struct sim_op *ops;
	uint64_t nr;		/* so far */
	uint64_t last_ts;	/* of its last event */
	uint32_t bulk, bulk_at; /* bulk id whose rows are being gathered, place of its first row */
};

struct loader {
	struct sim_streams *s;
	struct lane *lanes;	      /* [cpus] */
	const struct replay_plan *plan;
	uint8_t *replayed;	      /* [65536] */
	uint16_t *alloc_cpu;	      /* [objects_room] who allocated; NEVER_ALLOCATED, FREED */
	uint64_t objects_room;
	uint32_t *turns;	      /* [s->sheaves] operations so far on each sheaf */
	uint64_t window_ts;	      /* time of the first event of the window; UINT64_MAX: to come */
};

/* Whether row @i is an operation a virtual CPU executes. */
static bool wanted(const struct loader *l, const struct tape_batch *b, uint32_t i)
{
	switch (b->op[i]) {
	case TAPE_OP_MARKER:
	case TAPE_OP_CHECKPOINT:
	case TAPE_OP_FORK:
	case TAPE_OP_EXEC:
	case TAPE_OP_EXIT:
		return false;
	default:
		return b->cpu[i] < l->s->cpus && !(b->flags[i] & (TAPE_F_BIG | TAPE_F_INHERITED)) &&
		       l->replayed[b->cache[i]];
	}
}

/* Row @i as an operation; what needs more than the row is left to be filled in. */
static inline void set_op(struct sim_op *op, const struct loader *l, const struct tape_batch *b,
			  uint32_t i)
{
	const int32_t node = b->node_req[i];

	op->object = b->object[i] == TAPE_NO_OBJECT ? SIM_NO_OBJECT : (uint32_t)b->object[i];
	op->seq = (uint32_t)(b->first_seq + i);
	op->aux = (uint32_t)b->arg[i];
	op->nr = 1;
	op->cache = b->cache[i];
	op->gfp = b->gfp[i];
	op->node = (int16_t)(node >= 0 && (uint32_t)node < l->plan->nodes ? node : ALLOC_NODE_ANY);
	op->op = b->op[i];
	op->flags = 0;
}

/* A sheaf is one thing: what the recording did with it in turn stays in that order. */
static int take_turn(struct loader *l, struct sim_op *op, int64_t arg)
{
	uint32_t *grown;

	if (op->op == TAPE_OP_PREFILL || op->op == TAPE_OP_SHEAF_REFILL) {
		op->aux = tape_sheaf_slot(arg);
		op->object = tape_sheaf_objs(arg);
	}
	if (op->aux >= REPLAY_SHEAVES_MAX)
		return -ERANGE;
	if (op->aux >= l->s->sheaves) {
		grown = realloc(l->turns, (op->aux + 1ull) * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		memset(grown + l->s->sheaves, 0,
		       (op->aux + 1ull - l->s->sheaves) * sizeof(*grown));
		l->turns = grown;
		l->s->sheaves = op->aux + 1;
	}
	op->nr = l->turns[op->aux]++;
	return 0;
}

static __attribute__((noinline)) int object_grow(struct loader *l, uint64_t object)
{
	uint64_t want = object + 1 + object / 2;
	uint16_t *grown;

	grown = realloc(l->alloc_cpu, want * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + l->objects_room, 0xff, (want - l->objects_room) * sizeof(*grown));
	l->alloc_cpu = grown;
	l->objects_room = want;
	return 0;
}

static inline int object_room(struct loader *l, uint64_t object)
{
	return object < l->objects_room ? 0 : object_grow(l, object);
}

/* Who allocated the object, and what that says about its free. */
static int note_object(struct loader *l, uint32_t cpu, struct sim_op *op)
{
	uint16_t *by;

	if (op->object >= l->s->objects)
		l->s->objects = op->object + 1;
	if (object_room(l, op->object) < 0)
		return -ENOMEM;
	by = &l->alloc_cpu[op->object];
	if (tape_op_allocates(op->op)) {
		*by = (uint16_t)cpu;
	} else if (tape_op_frees(op->op)) {
		if (*by == cpu)
			op->flags |= SIM_OP_OWN;
		else if (*by == NEVER_ALLOCATED)
			op->flags |= SIM_OP_ORPHAN;
		l->s->orphans += *by == NEVER_ALLOCATED;
		l->s->freed_twice |= *by == FREED;
		*by = FREED;
	}
	return 0;
}

/* Rows of one bulk call follow one another in their stream; the first one executes them. */
static inline void gather(struct loader *l, struct lane *lane, uint32_t bulk, struct sim_op *op)
{
	struct sim_op *first = &lane->ops[lane->bulk_at];

	if (bulk && bulk == lane->bulk) {
		op->nr = 0;
		if (++first->nr > l->s->longest)
			l->s->longest = first->nr;
		return;
	}
	lane->bulk = bulk;
	lane->bulk_at = (uint32_t)lane->nr;
}

/* Think time: since the CPU's last event, or since the window began when that is later. */
static inline uint64_t gap_of(const struct loader *l, struct lane *lane, uint64_t ts)
{
	uint64_t since = lane->last_ts;

	if (l->plan->from_seq && l->window_ts != UINT64_MAX && since < l->window_ts)
		since = l->window_ts;
	lane->last_ts = ts;
	return ts - since;
}

static inline int load_row(struct loader *l, const struct tape_batch *b, uint32_t i)
{
	const uint32_t cpu = b->cpu[i];
	struct lane *lane;
	struct sim_op *op;
	int rc = 0;

	if (l->window_ts == UINT64_MAX && b->first_seq + i >= l->plan->from_seq)
		l->window_ts = l->s->window_ts = b->ts[i];
	if (!wanted(l, b, i)) {
		l->s->left_out++;
		return 0;
	}
	if (b->object[i] != TAPE_NO_OBJECT && b->object[i] >= SIM_NO_OBJECT)
		return -EOVERFLOW;
	lane = &l->lanes[cpu];
	op = &lane->ops[lane->nr];
	__builtin_prefetch(op + 4, 1);
	set_op(op, l, b, i);
	op->gap_ns = gap_of(l, lane, b->ts[i]);
	if (op->object != SIM_NO_OBJECT)
		rc = note_object(l, cpu, op);
	if (rc >= 0 && sim_op_sheaf(op->op))
		rc = take_turn(l, op, b->arg[i]);
	else
		gather(l, lane, b->bulk[i], op);
	lane->nr++;
	return rc;
}

static int load_error(int rc, struct tape_err *reterr)
{
	if (rc == -ERANGE)
		return tape_err_set(reterr, -TAPE_E_LIMIT, "a sheaf slot is beyond the limit of %u",
				    REPLAY_SHEAVES_MAX);
	if (rc == -EOVERFLOW)
		return tape_err_set(reterr, -TAPE_E_LIMIT, "more than 2^32 events or objects: cut "
				    "the tape for a simulated replay");
	return tape_err_set(reterr, rc, "streams: out of memory");
}

static int load(struct loader *l, struct tape_err *reterr)
{
	const struct tape_range all = TAPE_RANGE_ALL;
	const struct tape_batch *b;
	struct tape_reader *r;
	int rc = tape_reader_open(l->plan->tape, &all, STREAM_COLUMNS, &r, reterr);

	if (rc < 0)
		return rc;
	while ((rc = tape_reader_next(r, &b, reterr)) > 0) {
		int bad = b->first_seq + b->events > UINT32_MAX ? -EOVERFLOW : 0;

		for (uint32_t i = 0; i < b->events && bad >= 0; i++) {
			const uint32_t later = i + 16 < b->events ? i + 16 : i;

			if (b->object[later] < l->objects_room)
				__builtin_prefetch(&l->alloc_cpu[b->object[later]], 1);
			bad = load_row(l, b, i);
		}
		if (bad < 0) {
			rc = load_error(bad, reterr);
			break;
		}
	}
	tape_reader_close(r);
	return rc;
}

/* Events of each CPU, so that the streams fit exactly. */
static int count(struct loader *l, struct tape_err *reterr)
{
	const struct tape_range all = TAPE_RANGE_ALL;
	const struct tape_batch *b;
	struct tape_reader *r;
	int rc = tape_reader_open(l->plan->tape, &all, 1u << TAPE_COL_CPU, &r, reterr);

	if (rc < 0)
		return rc;
	while ((rc = tape_reader_next(r, &b, reterr)) > 0)
		for (uint32_t i = 0; i < b->events; i++)
			if (b->cpu[i] < l->s->cpus)
				l->s->nr[b->cpu[i]]++;
	tape_reader_close(r);
	return rc;
}

static int make_room(struct loader *l)
{
	struct sim_streams *s = l->s;
	uint64_t total = 0;
	struct sim_op *at;

	for (uint32_t cpu = 0; cpu < s->cpus; cpu++)
		total += s->nr[cpu] + SIM_LOOK_AHEAD;
	s->block_bytes = total * sizeof(*at);
	s->block = at = sim_array_create(s->block_bytes);
	if (!at)
		return -ENOMEM;
	for (uint32_t cpu = 0; cpu < s->cpus; cpu++) {
		s->ops[cpu] = l->lanes[cpu].ops = at;
		at += s->nr[cpu] + SIM_LOOK_AHEAD;
	}
	return 0;
}

/* The idle ops behind each stream (its end may lie before the room's: events were left out). */
static void close_streams(struct loader *l)
{
	struct sim_streams *s = l->s;

	for (uint32_t cpu = 0; cpu < s->cpus; cpu++) {
		s->nr[cpu] = l->lanes[cpu].nr;
		for (uint32_t i = 0; i < SIM_LOOK_AHEAD; i++)
			s->ops[cpu][s->nr[cpu] + i] = (struct sim_op){
				.object = SIM_NO_OBJECT, .seq = UINT32_MAX, .nr = 1,
				.op = TAPE_OP_MARKER };
	}
}

static int prepare(struct loader *l)
{
	struct sim_streams *s = l->s;

	s->ops = calloc(s->cpus, sizeof(*s->ops));
	s->nr = calloc(s->cpus, sizeof(*s->nr));
	l->replayed = calloc(UINT16_MAX + 1u, 1);
	l->lanes = calloc(s->cpus, sizeof(*l->lanes));
	if (!s->ops || !s->nr || !l->replayed || !l->lanes)
		return -ENOMEM;
	note_replayed(l->plan, l->replayed);
	return object_room(l, l->plan->totals.objects);
}

int sim_streams_load(const struct replay_plan *p, uint32_t cpus, struct sim_streams *ret_streams,
		     struct tape_err *reterr)
{
	struct sim_streams s = { .cpus = cpus };
	struct loader l = { .s = &s, .plan = p, .window_ts = UINT64_MAX };
	int rc = prepare(&l);

	if (rc < 0)
		rc = load_error(rc, reterr);
	if (rc >= 0)
		rc = count(&l, reterr);
	if (rc >= 0 && (rc = make_room(&l)) < 0)
		rc = load_error(rc, reterr);
	if (rc >= 0)
		rc = load(&l, reterr);
	if (rc >= 0)
		close_streams(&l);
	free(l.replayed);
	free(l.alloc_cpu);
	free(l.turns);
	free(l.lanes);
	if (rc < 0)
		sim_streams_fini(&s);
	else
		*ret_streams = s;
	return rc < 0 ? rc : 0;
}

void sim_streams_fini(struct sim_streams *s)
{
	sim_array_free(s->block, s->block_bytes);
	free(s->ops);
	free(s->nr);
	*s = (struct sim_streams){ 0 };
}
