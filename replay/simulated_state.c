/* SPDX-License-Identifier: MIT */
#include "replay/simulated_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Objects that are freed but never allocated in the recording exist before it. */
static int warm(struct simulated *m, struct tape_err *reterr)
{
	const struct sim_streams *s = &m->streams;
	uint8_t *allocated = calloc(s->objects + 1, 1);

	if (!allocated)
		return tape_err_set(reterr, -ENOMEM, "warm: out of memory");
	for (uint32_t cpu = 0; cpu < s->cpus; cpu++)
		for (uint64_t i = 0; i < s->nr[cpu]; i++)
			if (tape_op_allocates(s->ops[cpu][i].op))
				allocated[s->ops[cpu][i].object] = 1;
	for (uint32_t cpu = 0; cpu < m->cpus; cpu++) {
		const struct sim_op *ops = s->ops[cpu % s->cpus];

		for (uint64_t i = 0; i < s->nr[cpu % s->cpus]; i++) {
			void **at = &m->objects[cpu / s->cpus * s->objects + ops[i].object];

			if (!tape_op_frees(ops[i].op) || ops[i].object == TAPE_NO_OBJECT ||
			    allocated[ops[i].object] || *at)
				continue;
			*at = m->o.v->alloc(m->o.cache_of[ops[i].cache], cpu, ALLOC_NODE_ANY,
					    ALLOC_GFP_MAY_BLOCK);
			m->o.warmed += *at != NULL;
		}
	}
	free(allocated);
	return 0;
}

/* What creation and warming counted is no part of the result. */
static int begin_counting(struct simulated *m, struct tape_err *reterr)
{
	for (size_t i = 0; m->o.warmed && i < m->o.nr_caches; i++) {
		struct ordered_cache *run = m->o.caches[i];

		if (replay_snapshot_take(&run->begin, run->cache, m->o.v, m->cpus) < 0)
			return tape_err_set(reterr, -ENOMEM, "counters: out of memory");
		run->begun = true;
	}
	return 0;
}

static int create_caches(struct simulated *m)
{
	struct ordered_cache *run;
	int rc = 0;

	for (uint32_t cpu = 0; cpu < m->streams.cpus && rc >= 0; cpu++)
		for (uint64_t i = 0; i < m->streams.nr[cpu] && rc >= 0; i++)
			if (!m->o.cache_of[m->streams.ops[cpu][i].cache])
				rc = ordered_cache_get(&m->o, m->streams.ops[cpu][i].cache, &run);
	return rc;
}

static int init_turns(struct simulated *m)
{
	const struct sim_streams *s = &m->streams;

	for (uint32_t cpu = 0; cpu < s->cpus; cpu++)
		if (s->nr[cpu] && s->ops[cpu][s->nr[cpu] - 1].seq >= m->turns)
			m->turns = s->ops[cpu][s->nr[cpu] - 1].seq + 1;
	m->cpu_of_seq = malloc((m->turns + 1) * sizeof(*m->cpu_of_seq));
	m->waits_turn = calloc(m->cpus, sizeof(*m->waits_turn));
	if (!m->cpu_of_seq || !m->waits_turn)
		return -ENOMEM;
	memset(m->cpu_of_seq, 0xff, (m->turns + 1) * sizeof(*m->cpu_of_seq));
	for (uint32_t cpu = 0; cpu < s->cpus; cpu++)
		for (uint64_t i = 0; i < s->nr[cpu]; i += s->ops[cpu][i].rows)
			m->cpu_of_seq[s->ops[cpu][i].seq] = (uint16_t)cpu;
	while (m->turn_seq < m->turns && m->cpu_of_seq[m->turn_seq] == UINT16_MAX)
		m->turn_seq++;
	return 0;
}

static int init_arrays(struct simulated *m)
{
	uint32_t scale = m->cpus / m->streams.cpus;

	m->objects = calloc(scale * m->streams.objects + 1, sizeof(*m->objects));
	m->sheaves = calloc((uint64_t)scale * m->streams.sheaves + 1, sizeof(*m->sheaves));
	m->waits_sheaf = calloc(m->cpus, sizeof(*m->waits_sheaf));
	m->waits_for = calloc(m->cpus, sizeof(*m->waits_for));
	m->rcu = calloc(m->cpus, sizeof(*m->rcu));
	m->bulk = calloc(m->cpus, sizeof(*m->bulk));
	m->next_tick_ps = calloc(m->cpus, sizeof(*m->next_tick_ps));
	if (!m->objects || !m->sheaves || !m->waits_sheaf || !m->waits_for || !m->rcu || !m->bulk || !m->next_tick_ps)
		return -ENOMEM;
	for (uint32_t cpu = 0; cpu < m->cpus; cpu++)
		if (!(m->bulk[cpu] = malloc(SIMULATED_BULK_MAX * sizeof(void *))))
			return -ENOMEM;
	return m->serial ? init_turns(m) : 0;
}

/* What this engine cannot do is refused, not ignored. */
static int check(const struct replay_config *cfg, const struct sim_streams *s, struct tape_err *reterr)
{
	if (cfg->count_from || cfg->count_to || cfg->laps > 1 || cfg->jitter_ns || cfg->follow ||
	    cfg->paths || cfg->warm == REPLAY_WARM_ADDRESS || cfg->warm == REPLAY_WARM_SNAPSHOT)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--mode simulated: counting windows, laps, "
				    "jitter, paths and recorded placement belong to --mode ordered");
	if (cfg->scale > 1 && cfg->pace == REPLAY_PACE_SERIAL)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--pace serial has one order, --scale "
				    "more than one recording");
	for (uint32_t cpu = 0; cpu < s->cpus; cpu++)
		for (uint64_t i = 0; i < s->nr[cpu]; i++)
			if (s->ops[cpu][i].rows > SIMULATED_BULK_MAX)
				return tape_err_set(reterr, -TAPE_E_LIMIT, "event seq %u: a bulk call "
						    "of %u objects, at most %u", s->ops[cpu][i].seq,
						    s->ops[cpu][i].rows, SIMULATED_BULK_MAX);
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
	if (rc >= 0)
		rc = create_caches(m);
	if (rc >= 0 && init_arrays(m) < 0)
		rc = tape_err_set(reterr, -ENOMEM, "objects: out of memory");
	if (rc >= 0 && p->cfg->warm != REPLAY_WARM_NONE)
		rc = warm(m, reterr);
	return rc < 0 ? rc : begin_counting(m, reterr);
}

int simulated_init(struct simulated *m, struct replay_plan *p, struct tape_err *reterr)
{
	const struct replay_config *cfg = p->cfg;
	uint32_t scale = cfg->scale ? cfg->scale : 1, tape_cpus = p->cpus / scale;
	int rc = 0;

	*m = (struct simulated){ .pace = cfg->pace, .serial = cfg->pace == REPLAY_PACE_SERIAL,
				 .cpus = p->cpus };
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
	double cpu_time_ps = (double)sim_end_ps(m->sim) * m->cpus;
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
	s->virtual_ns = sim_end_ps(m->sim) / SIM_PS_PER_NS;
	s->dependency_wait_ns = m->dependency_ps / SIM_PS_PER_NS;
	s->think_ns = m->think_ps / SIM_PS_PER_NS;
	s->ops_per_s = s->virtual_ns ? (double)r->ops * 1e9 / (double)s->virtual_ns : 0;
	s->pace = m->pace;
	s->scale = scale;
	r->left_out = m->streams.left_out * scale;
	return 0;
}

void simulated_fini(struct simulated *m)
{
	if (m->attached)
		ordered_fini(&m->o);
	for (uint32_t cpu = 0; cpu < m->cpus; cpu++) {
		if (m->rcu)
			free(m->rcu[cpu].entries);
		if (m->bulk)
			free(m->bulk[cpu]);
	}
	if (m->attached)
		sim_hooks_detach();
	sim_destroy(m->sim);
	sim_streams_fini(&m->streams);
	free(m->objects);
	free(m->sheaves);
	free(m->waits_sheaf);
	free(m->waits_for);
	free(m->rcu);
	free(m->bulk);
	free(m->next_tick_ps);
	free(m->cpu_of_seq);
	free(m->waits_turn);
}
