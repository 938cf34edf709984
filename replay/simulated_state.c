/* SPDX-License-Identifier: MIT */
#include "replay/simulated_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A CPU's frees of objects from before the recording, in the order of its stream. */
static void warm_cpu(struct simulated *m, uint32_t cpu)
{
	const struct simulated_cpu *v = &m->vcpus[cpu];

	for (uint64_t i = 0; i < v->nr; i++) {
		const struct sim_op *op = &v->ops[i];
		struct simulated_object *at;

		if (!(op->flags & SIM_OP_ORPHAN))
			continue;
		at = &v->objects[op->object];
		at->obj = m->o.v->alloc(m->o.cache_of[op->cache], cpu, ALLOC_NODE_ANY,
					ALLOC_GFP_MAY_BLOCK);
		m->o.warmed += at->obj != NULL;
	}
}

void simulated_warm(struct simulated *m)
{
	if (m->o.plan->cfg->warm == REPLAY_WARM_NONE || !m->streams.orphans)
		return;
	for (uint32_t cpu = 0; cpu < m->cpus; cpu++)
		warm_cpu(m, cpu);
}

int simulated_begin_counting(struct simulated *m, struct tape_err *reterr)
{
	for (size_t i = 0; m->o.warmed && i < m->o.nr_caches; i++) {
		struct ordered_cache *run = m->o.caches[i];

		if (run->plan->from_seq)
			continue; /* its window begins later */
		if (replay_snapshot_take(&run->begin, run->cache, m->o.v, m->cpus) < 0)
			return tape_err_set(reterr, -ENOMEM, "counters: out of memory");
		run->begun = true;
	}
	return 0;
}

void simulated_rewind(struct simulated *m)
{
	const uint64_t nr = (uint64_t)(m->cpus / m->streams.cpus) * m->streams.objects;
	const uint64_t sheaves = (uint64_t)(m->cpus / m->streams.cpus) * m->streams.sheaves;

	for (uint64_t i = 0; i < nr; i++) {
		void *obj = m->objects[i].obj;

		if (obj && obj != OBJECT_FAILED && obj != OBJECT_GONE)
			m->left[i] = obj;
		m->objects[i] = (struct simulated_object){ 0 };
	}
	for (uint64_t i = 0; i < sheaves; i++)
		m->sheaves[i].turn = 0;
	for (uint32_t cpu = 0; cpu < m->cpus; cpu++)
		m->vcpus[cpu].next = 0;
	if (m->serial)
		simulated_first_turn(m);
}

static int create_cache(struct simulated *m, uint16_t id)
{
	struct ordered_cache *run;
	struct alloc_geometry geo;
	int rc;

	if (m->o.cache_of[id])
		return 0;
	rc = ordered_cache_get(&m->o, id, &run);
	if (rc < 0 || !run)
		return rc;
	alloc_cache_geometry(run->cache, &geo);
	m->own_line[id] = geo.size >= 1u << SIM_LINE_SHIFT;
	return 0;
}

static int create_caches(struct simulated *m)
{
	int rc = 0;

	for (uint32_t cpu = 0; cpu < m->streams.cpus && rc >= 0; cpu++) {
		const struct sim_op *ops = m->streams.ops[cpu];
		uint32_t last = UINT32_MAX;

		for (uint64_t i = 0; i < m->streams.nr[cpu] && rc >= 0; i++)
			if (ops[i].cache != last)
				rc = create_cache(m, (uint16_t)(last = ops[i].cache));
	}
	return rc;
}

void simulated_first_turn(struct simulated *m)
{
	m->turn_seq = 0;
	while (m->turn_seq < m->turns && m->cpu_of_seq[m->turn_seq] == UINT16_MAX)
		m->turn_seq++;
}

static int init_turns(struct simulated *m)
{
	const struct sim_streams *s = &m->streams;

	for (uint32_t cpu = 0; cpu < s->cpus; cpu++)
		if (s->nr[cpu] && s->ops[cpu][s->nr[cpu] - 1].seq >= m->turns)
			m->turns = s->ops[cpu][s->nr[cpu] - 1].seq + 1;
	m->cpu_of_seq = malloc((m->turns + 1) * sizeof(*m->cpu_of_seq));
	if (!m->cpu_of_seq)
		return -ENOMEM;
	memset(m->cpu_of_seq, 0xff, (m->turns + 1) * sizeof(*m->cpu_of_seq));
	for (uint32_t cpu = 0; cpu < s->cpus; cpu++)
		for (uint64_t i = 0; i < s->nr[cpu]; i += sim_op_rows(&s->ops[cpu][i]))
			m->cpu_of_seq[s->ops[cpu][i].seq] = (uint16_t)cpu;
	simulated_first_turn(m);
	return 0;
}

static int init_vcpu(struct simulated *m, uint32_t cpu)
{
	const struct sim_streams *s = &m->streams;
	const uint64_t copy = cpu / s->cpus;
	struct simulated_cpu *v = &m->vcpus[cpu];

	*v = (struct simulated_cpu){
		.ops = s->ops[cpu % s->cpus],
		.nr = s->nr[cpu % s->cpus],
		.objects = m->objects + copy * s->objects,
		.left = m->left ? m->left + copy * s->objects : NULL,
		.sheaves = m->sheaves + copy * s->sheaves,
		.bulk = malloc(SIMULATED_BULK_MAX * sizeof(void *)),
		.next_tick_ps = m->o.plan->script || !m->o.v->tick ? SIM_NEVER : 0,
		/* Any odd number will do; CPUs and seeds must differ. */
		.random = (m->o.plan->cfg->seed * 0x9E3779B97F4A7C15u + cpu) * 2 + 1,
	};
	return v->bulk ? 0 : -ENOMEM;
}

static int init_arrays(struct simulated *m)
{
	const uint64_t copies = m->cpus / m->streams.cpus;

	m->objects_bytes = copies * (m->streams.objects + 1ull) * sizeof(*m->objects);
	m->objects = sim_array_create(m->objects_bytes);
	m->sheaves = calloc(copies * m->streams.sheaves + 1, sizeof(*m->sheaves));
	m->vcpus = aligned_alloc(64, m->cpus * sizeof(*m->vcpus));
	if (m->vcpus)
		memset(m->vcpus, 0, m->cpus * sizeof(*m->vcpus));
	if (m->o.laps > 1)
		m->left = calloc(copies * m->streams.objects + 1, sizeof(*m->left));
	if (!m->objects || !m->sheaves || !m->vcpus || (m->o.laps > 1 && !m->left))
		return -ENOMEM;
	for (uint32_t cpu = 0; cpu < m->cpus; cpu++)
		if (init_vcpu(m, cpu) < 0)
			return -ENOMEM;
	return m->serial ? init_turns(m) : 0;
}

/* What this engine cannot do is refused, not ignored. */
static int check(const struct replay_config *cfg, const struct sim_streams *s, struct tape_err *reterr)
{
	const char *other = cfg->follow || cfg->agreement ? "--follow" :
			    cfg->paths ? "--paths" :
			    cfg->warm == REPLAY_WARM_ADDRESS ? "--warm address" :
			    cfg->infer != REPLAY_INFER_LATE ? "--infer early or none" : NULL;

	if (other)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--mode simulated: %s belongs to "
				    "--mode ordered", other);
	if (cfg->scale > 1 && cfg->pace == REPLAY_PACE_SERIAL)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--pace serial has one order, --scale "
				    "more than one recording");
	if (cfg->jitter_ns && cfg->pace == REPLAY_PACE_SERIAL)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--pace serial keeps the recorded order, "
				    "which --jitter would not change");
	if (s->longest > SIMULATED_BULK_MAX)
		return tape_err_set(reterr, -TAPE_E_LIMIT, "a bulk call of %u objects, at most %u",
				    s->longest, SIMULATED_BULK_MAX);
	return 0;
}

static int init_machine(struct simulated *m, struct replay_plan *p, struct tape_err *reterr)
{
	struct sim_costs core = replay_costs_core(&m->costs);
	int rc;

	m->sim = sim_create(m->cpus, p->cpu_node, &core);
	if (!m->sim || sim_hooks_attach(m->sim, &m->costs, m->cpus, p->cpu_node, p->nodes) < 0)
		return tape_err_set(reterr, -ENOMEM, "%u virtual CPUs: out of memory", m->cpus);
	m->attached = true;
	rc = ordered_init(&m->o, p, reterr);
	if (rc >= 0 && !(m->own_line = calloc(UINT16_MAX + 1u, 1)))
		rc = tape_err_set(reterr, -ENOMEM, "caches: out of memory");
	if (rc >= 0)
		rc = create_caches(m);
	if (rc >= 0 && init_arrays(m) < 0)
		rc = tape_err_set(reterr, -ENOMEM, "objects: out of memory");
	if (rc >= 0 && simulated_record_init(m) < 0)
		rc = tape_err_set(reterr, -ENOMEM, "--record: out of memory");
	m->run_ahead = !m->serial && !m->streams.freed_twice && !m->o.numbered;
	return rc < 0 ? rc : 0;
}

int simulated_init(struct simulated *m, struct replay_plan *p, struct tape_err *reterr)
{
	const struct replay_config *cfg = p->cfg;
	uint32_t scale = cfg->scale ? cfg->scale : 1, tape_cpus = p->cpus / scale;
	int rc = 0;

	*m = (struct simulated){ .pace = cfg->pace, .serial = cfg->pace == REPLAY_PACE_SERIAL,
				 .cpus = p->cpus, .jitter_ps = cfg->jitter_ns * SIM_PS_PER_NS };
	if (cfg->costs)
		rc = replay_costs_read(cfg->costs, &m->costs, reterr);
	else
		replay_costs_default(&m->costs);
	if (rc >= 0)
		rc = sim_streams_load(p, tape_cpus, &m->streams, reterr);
	if (rc >= 0)
		rc = check(cfg, &m->streams, reterr);
	return rc < 0 ? rc : init_machine(m, p, reterr);
}

static const struct ordered_cache *run_of(const struct simulated *m, const struct alloc_cache *c)
{
	for (size_t i = 0; i < m->o.nr_caches; i++)
		if (m->o.caches[i]->cache == c)
			return m->o.caches[i];
	return NULL;
}

static struct replay_lock lock_of(const struct simulated *m, const struct sim_lock_record *r,
				  enum alloc_lock_path path, double cpu_time_ps)
{
	const struct sim_path_stats *p = &r->paths[path];
	const struct ordered_cache *run = run_of(m, r->cache);
	struct replay_lock l = {
		.cache = run ? run->plan->row.id : TAPE_NO_CACHE,
		.node = r->node,
		.lock = alloc_lock_kind_name(r->kind),
		.path = alloc_lock_path_name(path),
		.acquisitions = p->acquisitions,
		.contended = p->contended,
		.try_failed = p->try_failed,
		.wait_ns = p->wait_ps / SIM_PS_PER_NS,
		.hold_ns = p->hold_ps / SIM_PS_PER_NS,
		.max_wait_ns = p->max_wait_ps / SIM_PS_PER_NS,
		.handover_same_node = p->handover_same_node,
		.handover_remote = p->handover_remote,
		.max_queue = sim_lock_stats(r->lock)->max_queue,
		.share = cpu_time_ps > 0 ? (double)p->wait_ps / cpu_time_ps : 0,
	};

	if (run)
		memcpy(l.cache_name, run->plan->row.name, sizeof(l.cache_name));
	return l;
}

static int result_locks(const struct simulated *m, struct replay_sim *s)
{
	double cpu_time_ps = (double)(sim_end_ps(m->sim) - m->counted_from_ps) * m->cpus;
	size_t nr = 0;

	for (const struct sim_lock_record *r = sim_hooks_locks(); r; r = r->next)
		nr += ALLOC_PATH_MAX;
	s->locks = calloc(nr ? nr : 1, sizeof(*s->locks));
	if (!s->locks)
		return -ENOMEM;
	for (const struct sim_lock_record *r = sim_hooks_locks(); r; r = r->next)
		for (int path = 0; path < ALLOC_PATH_MAX; path++)
			if (r->paths[path].acquisitions || r->paths[path].try_failed)
				s->locks[s->nr_locks++] = lock_of(m, r, (enum alloc_lock_path)path,
								  cpu_time_ps);
	return 0;
}

int simulated_result(struct simulated *m, struct replay_result *r, struct tape_err *reterr)
{
	struct replay_sim *s = r->sim = calloc(1, sizeof(*s));
	uint32_t scale = m->cpus / m->streams.cpus;

	if (!s || result_locks(m, s) < 0 || !(s->costs = replay_costs_json(&m->costs)))
		return tape_err_set(reterr, -ENOMEM, "result: out of memory");
	s->virtual_ns = (sim_end_ps(m->sim) - m->counted_from_ps) / SIM_PS_PER_NS;
	s->dependency_wait_ns = m->dependency_ps / SIM_PS_PER_NS;
	s->think_ns = m->think_ps / SIM_PS_PER_NS;
	s->ops_per_s = s->virtual_ns ? (double)(r->ops - m->counted_ops) * 1e9 / (double)s->virtual_ns : 0;
	s->pace = m->pace;
	s->scale = scale;
	r->left_out = m->streams.left_out * scale;
	if (r->recorder && replay_recorder_locks(r->recorder, s->locks, s->nr_locks) < 0)
		return tape_err_set(reterr, -ENOMEM, "locks: out of memory");
	return 0;
}

void simulated_fini(struct simulated *m)
{
	if (m->attached)
		ordered_fini(&m->o);
	for (uint32_t cpu = 0; m->vcpus && cpu < m->cpus; cpu++) {
		free(m->vcpus[cpu].rcu.entries);
		free(m->vcpus[cpu].bulk);
	}
	if (m->attached)
		sim_hooks_detach();
	sim_destroy(m->sim);
	sim_streams_fini(&m->streams);
	sim_array_free(m->objects, m->objects_bytes);
	free(m->left);
	free(m->sheaves);
	free(m->vcpus);
	free(m->own_line);
	free(m->seen);
	free(m->cpu_of_seq);
}
