/* SPDX-License-Identifier: MIT */
#include "replay/calibrate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "allocator/slab.h"
#include "replay/calibrate_internal.h"

#define LOOPS 20000u  /* per round */
#define OBJECTS 1024u /* of the slow-path measurement: many slabs */

/* The allocator whose paths are timed: the one most recordings come from. */
struct bench {
	const struct alloc_variant *v;
	struct alloc_machine *m;
	struct alloc_cache *small, *large; /* objects of 256 B and 4 KiB: slabs of two orders */
	void *objs[OBJECTS];
};

static void bench_close(struct bench *b)
{
	if (b->small)
		b->v->destroy(b->small);
	if (b->large)
		b->v->destroy(b->large);
	alloc_machine_destroy(b->m);
}

static int bench_open(struct bench *b)
{
	static const uint16_t cpu_node[1];
	/* No per-cpu partial list: a free to another slab is one compare-exchange. */
	static const struct alloc_knob_value no_list = { "cpu_partial", 0 };
	const struct alloc_machine_config mc = { .cpus = 1, .nodes = 1, .cpu_node = cpu_node,
						 .seed = 1, .sync = ALLOC_SYNC_NATIVE };
	struct alloc_cache_config cc = { .name = "calibrate", .object_size = 256,
					 .knobs = &no_list, .nr_knobs = 1 };
	int rc;

	*b = (struct bench){ .v = alloc_variant_find("slub-6.1", ALLOC_SYNC_NATIVE) };
	rc = alloc_machine_create(&mc, &b->m);
	if (rc >= 0)
		rc = b->v->create(b->m, &cc, &b->small);
	cc.object_size = 4096;
	if (rc >= 0)
		rc = b->v->create(b->m, &cc, &b->large);
	return rc;
}

/* ---- one round of each; ns of one step ---- */

static double time_atomic(struct bench *b)
{
	static uint64_t word;
	uint64_t value = word;
	double begin_ns = calibrate_now_ns();

	(void)b;
	for (uint32_t i = 0; i < LOOPS; i++)
		value += __sync_bool_compare_and_swap(&word, value, value + 1);
	return (calibrate_now_ns() - begin_ns) / LOOPS;
}

static double time_lock_pair(struct bench *b)
{
	static uint32_t word;
	double begin_ns = calibrate_now_ns();

	(void)b;
	for (uint32_t i = 0; i < LOOPS; i++) {
		uint32_t open = 0;

		__atomic_compare_exchange_n(&word, &open, 1, false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED);
		__atomic_store_n(&word, 0, __ATOMIC_RELEASE);
	}
	return (calibrate_now_ns() - begin_ns) / LOOPS;
}

static double time_line(struct bench *b)
{
	static uint64_t word;
	double begin_ns = calibrate_now_ns();

	(void)b;
	/* Each store waits for the load before it, and the next load for the store. */
	for (uint32_t i = 0; i < LOOPS; i++)
		__atomic_store_n(&word, __atomic_load_n(&word, __ATOMIC_RELAXED) + 1,
				 __ATOMIC_RELAXED);
	return (calibrate_now_ns() - begin_ns) / LOOPS;
}

static double time_fast(struct bench *b)
{
	double begin_ns = calibrate_now_ns();

	for (uint32_t i = 0; i < LOOPS; i++) {
		void *volatile obj = b->v->alloc(b->small, 0, ALLOC_NODE_ANY, ALLOC_GFP_MAY_BLOCK);

		b->v->free(b->small, 0, obj);
	}
	return (calibrate_now_ns() - begin_ns) / (2 * LOOPS);
}

/* Objects of many slabs, freed in turn: all but the last slab's take the slow path. */
static double time_slow_free(struct bench *b)
{
	double begin_ns;

	for (uint32_t i = 0; i < OBJECTS; i++)
		b->objs[i] = b->v->alloc(b->small, 0, ALLOC_NODE_ANY, ALLOC_GFP_MAY_BLOCK);
	begin_ns = calibrate_now_ns();
	for (uint32_t i = 0; i < OBJECTS - 64; i++)
		b->v->free(b->small, 0, b->objs[i]);
	begin_ns = calibrate_now_ns() - begin_ns;
	for (uint32_t i = OBJECTS - 64; i < OBJECTS; i++)
		b->v->free(b->small, 0, b->objs[i]);
	return begin_ns / (OBJECTS - 64);
}

static double time_bulk_object(struct bench *b)
{
	enum { BULK = 32 };
	double begin_ns = calibrate_now_ns();

	for (uint32_t i = 0; i < LOOPS / BULK; i++) {
		b->v->alloc_bulk(b->small, 0, ALLOC_GFP_MAY_BLOCK, BULK, b->objs);
		b->v->free_bulk(b->small, 0, BULK, b->objs);
	}
	return (calibrate_now_ns() - begin_ns) / (2.0 * (LOOPS / BULK * BULK));
}

static double time_pages(struct alloc_cache *c)
{
	const uint32_t loops = LOOPS / 10;
	double begin_ns = calibrate_now_ns();

	for (uint32_t i = 0; i < loops; i++) {
		struct alloc_slab *s = alloc_slab_create(c, 0, ALLOC_NODE_ANY, ALLOC_GFP_MAY_BLOCK,
							 true);

		if (s)
			alloc_slab_discard(c, 0, s);
	}
	return (calibrate_now_ns() - begin_ns) / (2.0 * loops);
}
static double time_small_pages(struct bench *b)
{
	return time_pages(b->small);
}
static double time_large_pages(struct bench *b)
{
	return time_pages(b->large);
}

static double best_of(struct bench *b, uint32_t rounds, double (*round)(struct bench *b))
{
	double best_ns = round(b);

	for (uint32_t i = 1; i < rounds; i++) {
		double ns = round(b);

		best_ns = ns < best_ns ? ns : best_ns;
	}
	return best_ns;
}

static uint32_t order_of(const struct alloc_cache *c)
{
	struct alloc_geometry geo;

	alloc_cache_geometry(c, &geo);
	return geo.order;
}

/* ---- the table ---- */

static void note(struct replay_calibration *r, uint64_t *value_ps, double ns, const char *fmt, ...)
	TAPE_PRINTF(4, 5);
static void note(struct replay_calibration *r, uint64_t *value_ps, double ns, const char *fmt, ...)
{
	size_t i = (size_t)(value_ps - (uint64_t *)(void *)&r->costs);
	va_list ap;

	*value_ps = (uint64_t)((ns > 0 ? ns : 0) * (double)SIM_PS_PER_NS + 0.5);
	va_start(ap, fmt);
	vsnprintf(r->how[i], sizeof(r->how[i]), fmt, ap);
	va_end(ap);
}

static void measure_alone(struct replay_calibration *r, struct bench *b, uint32_t rounds)
{
	struct replay_costs *c = &r->costs;
	const double atomic_ns = best_of(b, rounds, time_atomic);
	const double line_ns = best_of(b, rounds, time_line);
	const double fast_ns = best_of(b, rounds, time_fast);
	const double slow_ns = best_of(b, rounds, time_slow_free);
	r->lock_pair_ns = best_of(b, rounds, time_lock_pair);
	note(r, &c->atomic_ps, atomic_ns, "measured: compare-exchange of 8 bytes");
	note(r, &c->line_local_ps, line_ns, "measured: load and store of one word");
	note(r, &c->op_fast_ps, fast_ns, "measured: alloc and free of slub-6.1, halved");
	note(r, &c->op_slow_ps, slow_ns - fast_ns - atomic_ns - 2 * line_ns,
	     "measured: free to a full slab %.1f ns, less the parts", slow_ns);
	note(r, &c->refill_object_ps, best_of(b, rounds, time_bulk_object),
	     "measured: one of 32 objects of a bulk call");
}

/* Here every request takes the provider's one lock, and all its work is under it. */
static void measure_pages(struct replay_calibration *r, struct bench *b, uint32_t rounds)
{
	struct replay_costs *c = &r->costs;
	const uint32_t low = order_of(b->small), high = order_of(b->large);
	const double small_ns = best_of(b, rounds, time_small_pages);
	const double large_ns = best_of(b, rounds, time_large_pages);
	const double order_ns = high > low && large_ns > small_ns ?
					(large_ns - small_ns) / (high - low) : 0;

	note(r, &c->page_order_ps, order_ns, "measured: slabs of order %u %.1f ns, of order %u %.1f ns",
	     low, small_ns, high, large_ns);
	note(r, &c->page_get_ps, 0, "derived: zone_hold has it all");
	note(r, &c->zone_hold_ps, small_ns - low * order_ns - r->lock_pair_ns,
	     "measured: the same at order 0, less the lock");
	note(r, &c->page_batch, 0, "derived: every request takes the lock of this host's provider");
	c->page_batch = 1;
}

/* A figure of two CPUs, or the built-in one where there are none. */
static void measure_pair(struct replay_calibration *r, const struct calibrate_pair *p,
			 uint32_t rounds, uint64_t *line_ps, uint64_t *handover_ps)
{
	double line_ns = p->found ? calibrate_line_ns(p, rounds) : -1;
	double handover_ns = p->found ? calibrate_handover_ns(p, rounds) : -1;

	if (line_ns <= 0)
		return;
	note(r, line_ps, line_ns, "measured: CPU %d and %d in turn", p->cpu[0], p->cpu[1]);
	if (handover_ns > 0)
		note(r, handover_ps, handover_ns, "measured: FIFO lock, CPU %d and %d", p->cpu[0],
		     p->cpu[1]);
	else /* lost in the noise of a busy host */
		note(r, handover_ps, line_ns, "derived: one line of CPU %d and %d", p->cpu[0],
		     p->cpu[1]);
}

/* What no pair of CPUs showed keeps its ratio to what one did. */
static void fill_gaps(struct replay_calibration *r, const struct replay_costs *standard)
{
	struct replay_costs *c = &r->costs;
	const bool near = c->line_same_node_ps, far = c->line_other_node_ps;
	const double ratio = (double)standard->line_other_node_ps / (double)standard->line_same_node_ps;
	const double to_ns = 1.0 / (double)SIM_PS_PER_NS;

	if (!near) {
		note(r, &c->line_same_node_ps, far ? (double)c->line_other_node_ps * to_ns / ratio :
						     (double)standard->line_same_node_ps * to_ns,
		     far ? "derived: other node's by the built-in ratio" : "built-in: one CPU here");
		note(r, &c->handover_same_node_ps,
		     far ? (double)c->handover_other_node_ps * to_ns / ratio :
			   (double)standard->handover_same_node_ps * to_ns,
		     far ? "derived: other node's by the built-in ratio" : "built-in: one CPU here");
	}
	if (!far) {
		note(r, &c->line_other_node_ps, (double)c->line_same_node_ps * to_ns * ratio,
		     "derived: same node's by the built-in ratio, one node here");
		note(r, &c->handover_other_node_ps, (double)c->handover_same_node_ps * to_ns * ratio,
		     "derived: same node's by the built-in ratio, one node here");
	}
}

int replay_calibrate(uint32_t rounds, struct replay_calibration *ret_result, struct tape_err *reterr)
{
	struct replay_calibration r = { 0 };
	struct replay_costs standard;
	struct calibrate_host host;
	struct bench b;
	int rc;

	if (rounds < 1 || rounds > CALIBRATE_ROUNDS_MAX)
		return tape_err_set(reterr, -TAPE_E_USAGE, "%u rounds: want 1..%u", rounds,
				    CALIBRATE_ROUNDS_MAX);
	replay_costs_default(&standard);
	calibrate_host_get(&host);
	r.cpus = host.cpus;
	r.nodes = host.nodes;
	rc = bench_open(&b);
	if (rc >= 0)
		measure_alone(&r, &b, rounds);
	if (rc >= 0)
		measure_pages(&r, &b, rounds);
	bench_close(&b);
	if (rc < 0)
		return tape_err_set(reterr, rc, "no memory for the allocator under measurement");
	measure_pair(&r, &host.near, rounds, &r.costs.line_same_node_ps,
		     &r.costs.handover_same_node_ps);
	measure_pair(&r, &host.far, rounds, &r.costs.line_other_node_ps,
		     &r.costs.handover_other_node_ps);
	fill_gaps(&r, &standard);
	*ret_result = r;
	return 0;
}

int replay_calibration_write(const struct replay_calibration *r, FILE *out)
{
	fprintf(out, "# Cost table of one host, measured by `slabtape calibrate` on %u CPUs of %u "
		"nodes.\n# For `slabtape replay --mode simulated --costs FILE`.\n", r->cpus, r->nodes);
	for (size_t i = 0; replay_costs_key(i); i++)
		fprintf(out, "\n# %s\n%s = %.10g\n", r->how[i], replay_costs_key(i),
			replay_costs_value(&r->costs, i));
	return fflush(out) || ferror(out) ? -TAPE_E_IO : 0;
}
