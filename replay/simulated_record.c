/* SPDX-License-Identifier: MIT */
/*
 * The simulated engine and its recorder: which operation a virtual CPU is in, samples in virtual
 * time, the end.
 *
 * A row's ts is its event's time on the tape.  The streams keep only gaps, so the sum of a CPU's
 * gaps is carried along as far as somebody asks (struct simulated_seen).
 */
#include <errno.h>
#include <stdlib.h>

#include "replay/simulated_internal.h"

#define SAMPLE_NS 1000u /* first distance of two samples; it doubles */

/* The operation that @v is in: the one before v->next that is not a later row of a bulk call. */
static uint64_t current(const struct simulated_cpu *v)
{
	uint64_t i = v->next ? v->next - 1 : 0;

	while (i && !sim_op_sheaf(v->ops[i].op) && !v->ops[i].nr)
		i--;
	return i;
}

static void pass_gap(const struct simulated *m, struct simulated_seen *seen,
		     const struct sim_op *op)
{
	const struct replay_plan *p = m->o.plan;

	if (p->from_seq && op->seq >= p->from_seq && seen->ts < m->streams.window_ts)
		seen->ts = m->streams.window_ts;
	seen->ts += op->gap_ns;
}

static void moment(void *ctx, struct replay_moment *ret_moment)
{
	struct simulated *m = ctx;
	uint32_t cpu;
	struct simulated_seen *seen;
	uint64_t at;

	*ret_moment = (struct replay_moment){ .op = RECORDER_NO_OP, .seq = m->at_rest_seq,
					      .vts = m->at_rest_ps / SIM_PS_PER_NS };
	if (!m->running)
		return;
	cpu = sim_running(m->sim);
	seen = &m->seen[cpu];
	at = current(&m->vcpus[cpu]);
	if (at + 1 < seen->at)
		*seen = (struct simulated_seen){ .timer = seen->timer }; /* another lap */
	for (; seen->at <= at; seen->at++)
		pass_gap(m, seen, &m->vcpus[cpu].ops[seen->at]);
	ret_moment->seq = m->vcpus[cpu].ops[at].seq;
	ret_moment->ts = seen->ts;
	ret_moment->vts = sim_now_ps(m->sim, cpu) / SIM_PS_PER_NS;
	if (!seen->timer)
		ret_moment->op = m->vcpus[cpu].ops[at].op;
}

int simulated_record_init(struct simulated *m)
{
	if (!m->o.recorder)
		return 0;
	m->seen = calloc(m->cpus, sizeof(*m->seen));
	if (!m->seen)
		return -ENOMEM;
	replay_recorder_moments(m->o.recorder, moment, m);
	replay_recorder_sample_every(m->o.recorder, SAMPLE_NS);
	return 0;
}

void simulated_at_rest(struct simulated *m, uint64_t seq)
{
	m->running = false;
	m->at_rest_seq = seq;
	m->at_rest_ps = sim_meet_ps(m->sim);
}

/* Objects that are live at the end, by the operations that allocated them. */
static void pin_all(struct simulated *m)
{
	uint32_t index;

	for (uint32_t cpu = 0; cpu < m->cpus; cpu++) {
		const struct simulated_cpu *v = &m->vcpus[cpu];

		for (uint64_t i = 0; i < v->nr; i++) {
			void *obj;

			if (!tape_op_allocates(v->ops[i].op) || v->ops[i].object == SIM_NO_OBJECT)
				continue;
			obj = v->objects[v->ops[i].object].obj;
			if (obj && !((uintptr_t)obj & 7)) /* marks have low bits */
				replay_recorder_pin(m->o.recorder,
						    alloc_slab_of(m->o.machine, obj, &index),
						    v->ops[i].seq);
		}
	}
}

int simulated_record_finish(struct simulated *m, struct tape_err *reterr)
{
	const struct replay_plan *p = m->o.plan;
	const uint64_t end_ns = sim_end_ps(m->sim) / SIM_PS_PER_NS;

	if (!m->o.recorder)
		return 0;
	replay_recorder_sample(m->o.recorder, end_ns, end_ns);
	if (replay_recorder_wants_pins(m->o.recorder))
		pin_all(m);
	return replay_recorder_finish(m->o.recorder, p->totals.ts_max, reterr);
}
