/* SPDX-License-Identifier: MIT */
#include "replay/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void replay_plan_destroy(struct replay_plan *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->nr_caches; i++)
		for (size_t k = 0; k < p->caches[i].nr_knobs; k++)
			free((char *)(uintptr_t)p->caches[i].knobs[k].name);
	free(p->caches);
	free(p);
}

static void plan_destroyp(struct replay_plan **p)
{
	replay_plan_destroy(*p);
}

/* "kmalloc-512", "kmalloc-rcl-1k": the size a class name says; 0 when it says none. */
static uint64_t size_from_name(const char *name)
{
	const char *digits = strrchr(name, '-');
	char *end;
	uint64_t bytes;

	if (strncmp(name, "kmalloc-", 8) || !digits || digits[1] < '1' || digits[1] > '9')
		return 0;
	bytes = strtoull(digits + 1, &end, 10);
	if (*end == 'k')
		bytes <<= 10;
	else if (*end == 'M')
		bytes <<= 20;
	return bytes;
}

/* Largest request of each cache that no table row gives a size for. */
static int sizes_from_events(struct replay_plan *p, struct tape_err *reterr)
{
	const struct tape_range all = TAPE_RANGE_ALL;
	const struct tape_batch *b;
	struct tape_reader *r;
	TAPE_CLEANUP(tape_freep) uint64_t *largest = calloc(UINT16_MAX + 1u, sizeof(*largest));
	int rc;

	if (!largest)
		return tape_err_set(reterr, -ENOMEM, "sizes of caches: out of memory");
	rc = tape_reader_open(p->tape, &all, 1u << TAPE_COL_OP | 1u << TAPE_COL_CACHE |
			      1u << TAPE_COL_SIZE, &r, reterr);
	if (rc < 0)
		return rc;
	while ((rc = tape_reader_next(r, &b, reterr)) > 0)
		for (uint32_t i = 0; i < b->events; i++)
			if (tape_op_allocates(b->op[i]) && b->size[i] > largest[b->cache[i]])
				largest[b->cache[i]] = b->size[i];
	tape_reader_close(r);
	for (size_t i = 0; i < p->nr_caches; i++)
		if (!p->caches[i].row.object_size)
			p->caches[i].row.object_size = largest[p->caches[i].row.id];
	return rc;
}

static int plan_sizes(struct replay_plan *p, struct tape_err *reterr)
{
	bool missing = false;

	for (size_t i = 0; i < p->nr_caches; i++) {
		struct tape_cache *row = &p->caches[i].row;

		if (!row->object_size)
			row->object_size = size_from_name(row->name);
		missing |= !row->object_size && (row->id != TAPE_CACHE_UNKNOWN || p->script);
	}
	if (missing) {
		int rc = sizes_from_events(p, reterr);

		if (rc < 0)
			return rc;
	}
	for (size_t i = 0; i < p->nr_caches; i++) {
		struct replay_plan_cache *c = &p->caches[i];

		if (!p->script && c->row.id == TAPE_CACHE_UNKNOWN)
			c->left_out = REPLAY_OUT_UNNAMED;
		else if (!c->row.object_size || c->row.object_size > 4u << 20)
			c->left_out = REPLAY_OUT_NO_SIZE;
	}
	return 0;
}

/*
 * Caches with constructors or lookups under RCU keep the free pointer behind the object, unless
 * the kernel was told a place inside it: then the recorded size leaves no room behind.
 */
static void plan_free_pointer(struct replay_plan *p, struct tape_cache *row)
{
	TAPE_CLEANUP(tape_freep) char *text = NULL;
	const uint64_t behind = TAPE_CACHE_RCU | TAPE_CACHE_CTOR;

	if (!(row->flags & behind) ||
	    tape_knob_get(p->tape, row->id, "slab_size", &text, NULL) < 0 || !text)
		return;
	if (strtoull(text, NULL, 10) < row->object_size + sizeof(void *))
		row->flags &= ~behind;
}

static int plan_caches(struct replay_plan *p, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) struct tape_cache *rows = NULL;
	int rc = tape_caches_get(p->tape, &rows, &p->nr_caches, reterr);

	if (rc < 0)
		return rc;
	p->caches = calloc(p->nr_caches ? p->nr_caches : 1, sizeof(*p->caches));
	if (!p->caches) {
		p->nr_caches = 0;
		return tape_err_set(reterr, -ENOMEM, "caches: out of memory");
	}
	for (size_t i = 0; i < p->nr_caches; i++) {
		p->caches[i].row = rows[i];
		p->caches[i].from_seq = p->from_seq;
		plan_free_pointer(p, &p->caches[i].row);
		for (size_t f = 0; f < p->cfg->nr_from; f++)
			if (p->cfg->from[f].cache == rows[i].id)
				p->caches[i].from_seq = p->cfg->from[f].seq;
	}
	rc = plan_sizes(p, reterr);
	for (size_t i = 0; i < p->nr_caches && rc >= 0; i++)
		rc = replay_plan_knobs(p, &p->caches[i], reterr);
	return rc < 0 ? rc : 0;
}

/* The tape's machine, or the one asked for: --cpus N, --nodes M (equal blocks), --topology. */
static int plan_machine(struct replay_plan *p, struct tape_err *reterr)
{
	const struct replay_config *cfg = p->cfg;
	TAPE_CLEANUP(tape_freep) struct tape_machine *m = malloc(sizeof(*m));
	int rc = m ? tape_machine_get(p->tape, m, reterr) : -ENOMEM;

	if (rc < 0)
		return rc;
	p->cpus = cfg->cpus ? cfg->cpus : m->cpus ? m->cpus : 1;
	if (cfg->scale > 1) {
		if (cfg->cpus || cfg->cpu_node || (uint64_t)p->cpus * cfg->scale > ALLOC_CPU_MAX)
			return tape_err_set(reterr, -TAPE_E_USAGE, "--scale %u: makes the machine of "
					    "%u x %u CPUs itself (at most %u); --nodes may be given",
					    cfg->scale, cfg->scale, p->cpus, ALLOC_CPU_MAX);
		p->cpus *= cfg->scale;
	}
	p->nodes = cfg->nodes ? cfg->nodes : m->nodes ? m->nodes : 1;
	if (p->cpus > ALLOC_CPU_MAX || p->nodes > ALLOC_NODE_MAX || p->nodes > p->cpus)
		return tape_err_set(reterr, -TAPE_E_USAGE, "%u CPUs on %u nodes: at most %u CPUs and "
				    "%u nodes, and no node without a CPU", p->cpus, p->nodes,
				    ALLOC_CPU_MAX, ALLOC_NODE_MAX);
	for (uint32_t cpu = 0; cpu < p->cpus; cpu++) {
		if (cfg->cpu_node)
			p->cpu_node[cpu] = cfg->cpu_node[cpu];
		else if (cfg->nodes || (cpu >= m->cpus && cfg->scale < 2))
			p->cpu_node[cpu] = (uint16_t)((uint64_t)cpu * p->nodes / p->cpus);
		else
			p->cpu_node[cpu] = m->cpu_node[cpu % m->cpus];
	}
	return 0;
}

/* What a replay that begins in the middle of a tape cannot do. */
static int check_snapshot(const struct replay_config *cfg, struct tape_err *reterr)
{
	const char *with = cfg->follow || cfg->agreement ? "--follow" :
			   cfg->jitter_ns ? "--jitter" :
			   cfg->infer != REPLAY_INFER_LATE ? "--infer early or none" :
			   cfg->mode != REPLAY_ORDERED ? "--mode parallel or simulated" : NULL;

	return with ? tape_err_set(reterr, -TAPE_E_USAGE, "--warm snapshot cannot be combined with "
				   "%s", with) : 0;
}

static int plan_meta(struct replay_plan *p, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) char *source = NULL;
	int rc = tape_meta_get(p->tape, "source", &source, reterr);

	if (rc < 0)
		return rc;
	p->script = source && !strcmp(source, "ops");
	p->knobs_chosen = p->script || (source && !strcmp(source, "gen"));
	rc = tape_totals_get(p->tape, &p->totals, reterr);
	if (rc < 0)
		return rc;
	p->slots = p->totals.peak_live < UINT32_MAX ? (uint32_t)p->totals.peak_live : UINT32_MAX - 1;
	p->to_seq = UINT64_MAX;
	if (p->cfg->warm == REPLAY_WARM_SNAPSHOT && (rc = check_snapshot(p->cfg, reterr)) < 0)
		return rc;
	if (p->cfg->laps > 1 && (p->cfg->count_from || p->cfg->count_to))
		return tape_err_set(reterr, -TAPE_E_USAGE, "--laps counts whole laps: it cannot be "
				    "combined with --count-from or --count-to");
	if (p->cfg->count_from)
		rc = replay_window_seq(p->tape, p->cfg->count_from, &p->from_seq, reterr);
	if (rc >= 0 && p->cfg->count_to)
		rc = replay_window_seq(p->tape, p->cfg->count_to, &p->to_seq, reterr);
	if (p->cfg->warm == REPLAY_WARM_SNAPSHOT)
		p->first_seq = p->from_seq;
	if (rc >= 0 && p->to_seq < p->from_seq)
		rc = tape_err_set(reterr, -TAPE_E_USAGE, "--count-to %s comes before --count-from "
				  "%s in this tape", p->cfg->count_to, p->cfg->count_from);
	return rc < 0 ? rc : 0;
}

int replay_plan_create(struct tape *t, const struct replay_config *cfg, enum alloc_sync_kind sync,
		       struct replay_plan **ret_plan, struct tape_err *reterr)
{
	TAPE_CLEANUP(plan_destroyp) struct replay_plan *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return tape_err_set(reterr, -ENOMEM, "replay: out of memory");
	p->tape = t;
	p->cfg = cfg;
	p->rcu_delay_ns = REPLAY_RCU_DELAY_NS;
	p->sync = sync;
	p->variant = alloc_variant_find(cfg->variant, sync);
	if (!p->variant)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--variant %s: no such variant; "
				    "`slabtape variants` lists them", cfg->variant);
	rc = plan_meta(p, reterr);
	if (rc >= 0)
		rc = plan_machine(p, reterr);
	if (rc >= 0)
		rc = replay_check_knobs(p, reterr);
	if (rc >= 0)
		rc = plan_caches(p, reterr);
	if (rc < 0)
		return rc;
	*ret_plan = tape_steal(&p);
	return 0;
}
