/* SPDX-License-Identifier: MIT */
#include "capture/gen.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/gen_internal.h"
#include "store/tape.h"

#define GEN_GAP_NS 400u /* mean time between a CPU's steps: a CPU of a busy machine */

static const struct gen_ops *const all_patterns[] = {
	&gen_tcp_rr, &gen_mmap1, &gen_hackbench, &gen_thrash, &gen_uniform,
};
#define NR_PATTERNS (sizeof(all_patterns) / sizeof(*all_patterns))

const struct gen_pattern *gen_pattern_at(uint32_t i)
{
	return i < NR_PATTERNS ? &all_patterns[i]->pattern : NULL;
}

/* SplitMix64. */
uint64_t gen_random(struct gen *g)
{
	uint64_t z = (g->random += 0x9E3779B97F4A7C15ull);

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
	return z ^ (z >> 31);
}

uint32_t gen_other_cpu(struct gen *g, uint32_t cpu)
{
	uint32_t cpus = g->cfg->cpus;

	if (cpus == 1)
		return cpu;
	return (uint32_t)((cpu + 1 + gen_below(g, cpus - 1)) % cpus);
}

void *gen_zeroed(struct gen *g, uint64_t nr, size_t bytes)
{
	void *memory = calloc(nr, bytes);

	if (!memory)
		g->error = -ENOMEM;
	return memory;
}

struct gen_object *gen_objects(struct gen *g, uint64_t nr)
{
	struct gen_object *objs = gen_zeroed(g, nr, sizeof(*objs));

	for (uint64_t i = 0; objs && i < nr; i++)
		objs[i] = GEN_NO_OBJECT;
	return objs;
}

static void emit(struct gen *g, struct tape_event *ev)
{
	if (g->error)
		return;
	ev->ts = ev->ts_lo = ev->ts_hi = ++g->ts;
	ev->tid = ev->cpu + 1;
	ev->ctx = TAPE_CTX_TASK;
	g->error = tape_writer_append(g->tape, ev, NULL, g->reterr);
	g->events++;
}

static struct tape_event event_of(uint32_t cpu, uint8_t op, uint16_t cache)
{
	struct tape_event ev = tape_event_blank();

	ev.cpu = (uint16_t)cpu;
	ev.op = op;
	ev.cache = cache;
	return ev;
}

void gen_cache(struct gen *g, uint16_t cache, const char *name, uint64_t object_size)
{
	struct tape_cache c = { .id = cache, .object_size = object_size, .coverage = 1 };

	if (g->error)
		return;
	snprintf(c.name, sizeof(c.name), "%s", name);
	if (!strncmp(name, "kmalloc-", 8))
		c.flags = TAPE_CACHE_KMALLOC;
	g->error = tape_define_cache(g->tape, &c, g->reterr);
}

void gen_knob(struct gen *g, uint16_t cache, const char *knob, const char *value)
{
	if (!g->error)
		g->error = tape_define_knob(g->tape, cache, knob, value, g->reterr);
}

static uint32_t take_slot(struct gen *g)
{
	uint32_t slot;

	if (g->free_slots.members) {
		slot = (uint32_t)tape_freeset_min(&g->free_slots);
		tape_freeset_remove(&g->free_slots, slot);
		return slot;
	}
	if (g->slots == g->free_slots.capacity && !g->error)
		g->error = tape_freeset_grow(&g->free_slots, (uint64_t)g->slots * 2);
	return g->slots++;
}

static struct gen_object new_object(struct gen *g, struct tape_event *ev, uint64_t size)
{
	struct gen_object o = { g->next_object++, take_slot(g), ev->cache };

	ev->object = o.object;
	ev->slot = o.slot;
	ev->size = size;
	ev->gfp = TAPE_GFP_KERNEL;
	emit(g, ev);
	return o;
}

struct gen_object gen_alloc(struct gen *g, uint32_t cpu, uint16_t cache, uint64_t size,
			    uint32_t site)
{
	struct tape_event ev = event_of(cpu, TAPE_OP_ALLOC, cache);

	ev.site = site;
	return new_object(g, &ev, size);
}

void gen_free(struct gen *g, uint32_t cpu, struct gen_object *o, uint8_t op, uint32_t site)
{
	struct tape_event ev = event_of(cpu, op, o->cache);

	if (o->object == TAPE_NO_OBJECT)
		return;
	ev.object = o->object;
	ev.slot = o->slot;
	ev.site = site;
	emit(g, &ev);
	if (!g->error)
		tape_freeset_add(&g->free_slots, o->slot);
	*o = GEN_NO_OBJECT;
}

void gen_sheaf(struct gen *g, uint32_t cpu, uint16_t cache, uint8_t op, uint32_t sheaf,
	       uint32_t objs)
{
	struct tape_event ev = event_of(cpu, op, cache);

	ev.arg = op == TAPE_OP_SHEAF_RETURN ? (int64_t)sheaf : tape_sheaf_arg(sheaf, objs);
	ev.gfp = TAPE_GFP_KERNEL;
	emit(g, &ev);
}

struct gen_object gen_sheaf_alloc(struct gen *g, uint32_t cpu, uint16_t cache, uint64_t size,
				  uint32_t sheaf)
{
	struct tape_event ev = event_of(cpu, TAPE_OP_SHEAF_ALLOC, cache);

	ev.arg = (int64_t)sheaf;
	return new_object(g, &ev, size);
}

static int apply_setting(struct gen *g, const struct gen_setting *s)
{
	const struct gen_param *p = g->pattern->params;

	for (int i = 0; i < GEN_PARAMS_MAX && p[i].name; i++) {
		if (strcmp(p[i].name, s->name))
			continue;
		if (s->value < p[i].min || s->value > p[i].max)
			return tape_err_set(g->reterr, -TAPE_E_USAGE,
					    "parameter %s: %lld is outside %lld..%lld", s->name,
					    (long long)s->value, (long long)p[i].min,
					    (long long)p[i].max);
		g->param[i] = s->value;
		return 0;
	}
	return tape_err_set(g->reterr, -TAPE_E_USAGE, "pattern %s has no parameter %s",
			    g->pattern->name, s->name);
}

static int check_machine(const struct gen_config *cfg, struct tape_err *reterr)
{
	uint32_t most = cfg->cpus < TAPE_NODE_MAX ? cfg->cpus : TAPE_NODE_MAX;

	if (!cfg->cpus || cfg->cpus > TAPE_CPU_MAX)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--cpus %u: must be 1..%d", cfg->cpus,
				    TAPE_CPU_MAX);
	if (!cfg->nodes || cfg->nodes > most)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--nodes %u: must be 1..%u", cfg->nodes,
				    most);
	return 0;
}

static int write_head(struct gen *g)
{
	const struct gen_config *cfg = g->cfg;
	char key[64];
	int rc = 0;

	for (uint32_t cpu = 0; cpu < cfg->cpus && rc >= 0; cpu++)
		rc = tape_define_cpu(g->tape, (uint16_t)cpu,
				     (int16_t)((uint64_t)cpu * cfg->nodes / cfg->cpus), g->reterr);
	for (int i = 0; i < GEN_PARAMS_MAX && g->pattern->params[i].name && rc >= 0; i++) {
		snprintf(key, sizeof(key), "gen.%s", g->pattern->params[i].name);
		rc = tape_meta_set_int(g->tape, key, g->param[i], g->reterr);
	}
	if (rc >= 0)
		rc = tape_meta_set(g->tape, "source", "gen", g->reterr);
	if (rc >= 0)
		rc = tape_meta_set(g->tape, "gen.pattern", g->pattern->name, g->reterr);
	if (rc >= 0)
		rc = tape_meta_set_int(g->tape, "gen.seed", (int64_t)cfg->seed, g->reterr);
	return rc;
}

static void run_steps(struct gen *g, const struct gen_ops *ops)
{
	const struct gen_config *cfg = g->cfg;
	uint64_t spread_ns = 2 * GEN_GAP_NS / cfg->cpus + 1, next_report = 0;

	while (g->events < cfg->events && !g->error) {
		g->ts += gen_below(g, spread_ns);
		ops->step(g, (uint32_t)gen_below(g, cfg->cpus));
		if (cfg->progress && g->events >= next_report) {
			cfg->progress(cfg->progress_ctx, g->events, cfg->events);
			next_report = g->events + (1u << 20);
		}
	}
}

static const struct gen_ops *find_pattern(const char *name)
{
	for (size_t i = 0; i < NR_PATTERNS; i++)
		if (!strcmp(all_patterns[i]->pattern.name, name))
			return all_patterns[i];
	return NULL;
}

int gen_run(struct tape *t, const struct gen_config *cfg, struct tape_err *reterr)
{
	struct gen g = { .tape = t, .cfg = cfg, .random = cfg->seed, .reterr = reterr };
	const struct gen_ops *ops = find_pattern(cfg->pattern);
	int rc = check_machine(cfg, reterr);

	if (rc < 0)
		return rc;
	if (!ops)
		return tape_err_set(reterr, -TAPE_E_USAGE, "no pattern %s; gen --list names them",
				    cfg->pattern);
	g.pattern = &ops->pattern;
	for (int i = 0; i < GEN_PARAMS_MAX; i++)
		g.param[i] = g.pattern->params[i].value;
	for (size_t i = 0; i < cfg->nr_settings; i++)
		if ((rc = apply_setting(&g, &cfg->settings[i])) < 0)
			return rc;
	if ((rc = write_head(&g)) < 0 || (rc = tape_freeset_init(&g.free_slots, 4096)) < 0)
		return rc;
	rc = ops->init(&g);
	if (!g.error)
		g.error = rc;
	run_steps(&g, ops);
	if (g.state)
		ops->fini(&g);
	tape_freeset_fini(&g.free_slots);
	return g.error < 0 ? g.error : tape_writer_finish(t, reterr);
}
