/* SPDX-License-Identifier: MIT */
#include "replay/sim_streams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traces/event.h"

#define STREAM_COLUMNS TAPE_COLS_REPLAY

static bool replayed(const struct replay_plan *p, uint16_t cache)
{
	for (size_t i = 0; i < p->nr_caches; i++)
		if (p->caches[i].row.id == cache)
			return p->caches[i].left_out == REPLAY_IN;
	return false;
}

/* Whether row @i is an operation a virtual CPU executes. */
static bool wanted(const struct replay_plan *p, uint32_t cpus, const struct tape_batch *b, uint32_t i)
{
	switch (b->op[i]) {
	case TAPE_OP_MARKER:
	case TAPE_OP_CHECKPOINT:
	case TAPE_OP_FORK:
	case TAPE_OP_EXEC:
	case TAPE_OP_EXIT:
		return false;
	default:
		return b->cpu[i] < cpus && !(b->flags[i] & (TAPE_F_BIG | TAPE_F_INHERITED)) &&
		       replayed(p, b->cache[i]);
	}
}

static int append(struct sim_streams *s, uint64_t *capacity, uint32_t cpu, const struct sim_op *op)
{
	if (s->nr[cpu] == capacity[cpu]) {
		uint64_t want = capacity[cpu] ? capacity[cpu] * 2 : 1024;
		struct sim_op *grown = realloc(s->ops[cpu], want * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		s->ops[cpu] = grown;
		capacity[cpu] = want;
	}
	s->ops[cpu][s->nr[cpu]++] = *op;
	return 0;
}

static struct sim_op op_of(const struct tape_batch *b, uint32_t i, uint64_t gap_ns)
{
	return (struct sim_op){
		.object = b->object[i],
		.arg = (uint64_t)b->arg[i],
		.seq = (uint32_t)(b->first_seq + i),
		.gap_ns = gap_ns < UINT32_MAX ? (uint32_t)gap_ns : UINT32_MAX,
		.rows = 1,
		.cache = b->cache[i],
		.gfp = b->gfp[i],
		.node = b->node_req[i],
		.op = b->op[i],
	};
}

bool sim_op_sheaf(const struct sim_op *op, uint32_t *ret_sheaf)
{
	switch (op->op) {
	case TAPE_OP_PREFILL:
	case TAPE_OP_SHEAF_REFILL:
		*ret_sheaf = tape_sheaf_slot((int64_t)op->arg);
		return true;
	case TAPE_OP_SHEAF_ALLOC:
	case TAPE_OP_SHEAF_RETURN:
		*ret_sheaf = (uint32_t)op->arg;
		return true;
	default:
		return false;
	}
}

struct loader {
	struct sim_streams *s;
	uint32_t *turns; /* [s->sheaves] operations so far on each sheaf */
	uint64_t *capacity, *last_ts; /* [cpus] */
	uint32_t *bulk, *bulk_at;     /* [cpus] bulk id whose rows are being gathered, and its first row */
};

/* A sheaf is one thing: what the recording did with it in turn stays in that order. */
static int take_turn(struct loader *l, struct sim_op *op)
{
	uint32_t sheaf, *grown;

	if (!sim_op_sheaf(op, &sheaf))
		return 0;
	if (sheaf >= REPLAY_SHEAVES_MAX)
		return -ERANGE;
	if (sheaf >= l->s->sheaves) {
		grown = realloc(l->turns, (sheaf + 1ull) * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		memset(grown + l->s->sheaves, 0, (sheaf + 1ull - l->s->sheaves) * sizeof(*grown));
		l->turns = grown;
		l->s->sheaves = sheaf + 1;
	}
	op->turn = l->turns[sheaf]++;
	return 0;
}

static int load_row(struct loader *l, const struct replay_plan *p, const struct tape_batch *b,
		    uint32_t i)
{
	struct sim_streams *s = l->s;
	uint32_t cpu = b->cpu[i];
	struct sim_op op;
	int rc;

	if (!wanted(p, s->cpus, b, i)) {
		s->left_out++;
		return 0;
	}
	op = op_of(b, i, b->ts[i] - l->last_ts[cpu]);
	l->last_ts[cpu] = b->ts[i];
	if ((rc = take_turn(l, &op)) < 0)
		return rc;
	if (op.object != TAPE_NO_OBJECT && op.object >= s->objects)
		s->objects = op.object + 1;
	if (b->bulk[i] && b->bulk[i] == l->bulk[cpu]) {
		s->ops[cpu][l->bulk_at[cpu]].rows++;
		op.rows = 0; /* executed with the call's first row */
	} else {
		l->bulk[cpu] = b->bulk[i];
		l->bulk_at[cpu] = (uint32_t)s->nr[cpu];
	}
	s->total++;
	return append(s, l->capacity, cpu, &op);
}

static int load(struct loader *l, const struct replay_plan *p, struct tape_err *reterr)
{
	const struct tape_range all = TAPE_RANGE_ALL;
	const struct tape_batch *b;
	struct tape_reader *r;
	int rc = tape_reader_open(p->tape, &all, STREAM_COLUMNS, &r, reterr);

	if (rc < 0)
		return rc;
	while ((rc = tape_reader_next(r, &b, reterr)) > 0) {
		if (b->first_seq + b->events > UINT32_MAX) {
			rc = tape_err_set(reterr, -TAPE_E_LIMIT, "more than 2^32 events: cut the "
					  "tape for a simulated replay");
			break;
		}
		for (uint32_t i = 0; i < b->events && rc >= 0; i++)
			rc = load_row(l, p, b, i);
		if (rc < 0) {
			rc = tape_err_set(reterr, rc == -ERANGE ? -TAPE_E_LIMIT : rc, rc == -ERANGE ?
					  "a sheaf slot is beyond the limit" : "streams: out of memory");
			break;
		}
	}
	tape_reader_close(r);
	return rc;
}

int sim_streams_load(const struct replay_plan *p, uint32_t cpus, struct sim_streams *ret_streams,
		     struct tape_err *reterr)
{
	struct sim_streams s = { .cpus = cpus };
	struct loader l = { .s = &s };
	int rc = -ENOMEM;

	s.ops = calloc(cpus, sizeof(*s.ops));
	s.nr = calloc(cpus, sizeof(*s.nr));
	l.capacity = calloc(cpus, sizeof(*l.capacity));
	l.last_ts = calloc(cpus, sizeof(*l.last_ts));
	l.bulk = calloc(cpus, sizeof(*l.bulk));
	l.bulk_at = calloc(cpus, sizeof(*l.bulk_at));
	if (s.ops && s.nr && l.capacity && l.last_ts && l.bulk && l.bulk_at)
		rc = load(&l, p, reterr);
	else
		tape_err_set(reterr, rc, "streams: out of memory");
	free(l.turns);
	free(l.capacity);
	free(l.last_ts);
	free(l.bulk);
	free(l.bulk_at);
	if (rc < 0)
		sim_streams_fini(&s);
	else
		*ret_streams = s;
	return rc < 0 ? rc : 0;
}

void sim_streams_fini(struct sim_streams *s)
{
	for (uint32_t cpu = 0; s->ops && cpu < s->cpus; cpu++)
		free(s->ops[cpu]);
	free(s->ops);
	free(s->nr);
	*s = (struct sim_streams){ 0 };
}
