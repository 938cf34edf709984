/* SPDX-License-Identifier: MIT */
/*
 * Every request for pages of a fixed workload fails once, alone and together with its fallback, on
 * every variant (native build: together only): nothing is lost, nothing is left, the caller sees a failure
 * only when it must, and the counters say what happened.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "allocator/machine.h"
#include "tests/model/census.h"

enum { CPUS = 4, NODES = 2, OUT_MAX = 700, BULK = 25, STEPS = 600 };

struct fault {
	const struct alloc_variant *v;
	enum alloc_sync_kind sync;
	uint64_t first, nr; /* alloc_pages_fail() */
	struct alloc_machine *m;
	struct alloc_cache *c;
	struct census census;
	void *out[OUT_MAX];
	uint32_t nr_out, failed;
	uint64_t shrunk; /* slabs that shrink gave back, which no counter counts */
};

static _Noreturn void broken(const struct fault *f, const char *what)
{
	fprintf(stderr, "not ok - %s (%s), requests %" PRIu64 "..%" PRIu64 " fail: %s\n", f->v->name,
		f->sync == ALLOC_SYNC_NATIVE ? "native" : "serial", f->first,
		f->first + f->nr - 1, what);
	exit(1);
}

struct sum {
	const char *name;
	int64_t value;
	bool found;
};

static void add_counter(void *ctx, uint32_t cpu, const char *name, int64_t value)
{
	struct sum *s = ctx;

	(void)cpu;
	if (strcmp(name, s->name))
		return;
	s->value += value;
	s->found = true;
}

static struct sum counter(const struct fault *f, const char *name)
{
	struct sum s = { .name = name };

	(f->v->read_counters ? f->v->read_counters : alloc_read_counters)(f->c, add_counter, &s);
	return s;
}

static void check(struct fault *f)
{
	struct sum births = counter(f, "alloc_slab"), deaths = counter(f, "free_slab");
	char why[256];
	const char *what;

	if (f->v->check(f->c, why, sizeof(why)) < 0)
		broken(f, why);
	census_begin(&f->census, f->v, f->m, f->c);
	for (uint32_t i = 0; i < f->nr_out; i++)
		census_out(&f->census, f->out[i]);
	if ((what = census_end(&f->census, 0, true)))
		broken(f, what);
	if (births.found && deaths.found &&
	    (uint64_t)(births.value - deaths.value) != f->census.slabs + f->shrunk)
		broken(f, "alloc_slab - free_slab is not the number of slabs");
}

/* ---- the workload ---- */

static void take(struct fault *f, uint32_t cpu, int32_t node)
{
	void *obj = f->v->alloc(f->c, cpu, node, ALLOC_GFP_MAY_BLOCK);

	if (obj)
		f->out[f->nr_out++] = obj;
	f->failed += !obj;
}

static void take_bulk(struct fault *f, uint32_t cpu)
{
	uint32_t got = f->v->alloc_bulk(f->c, cpu, ALLOC_GFP_MAY_BLOCK, BULK, f->out + f->nr_out);

	f->nr_out += got;
	f->failed += !got;
}

static void take_from_sheaf(struct fault *f, uint32_t cpu)
{
	struct alloc_sheaf *s;

	if (!f->v->prefill)
		return;
	s = f->v->prefill(f->c, cpu, ALLOC_GFP_MAY_BLOCK, 2 * BULK);
	f->failed += !s;
	if (!s)
		return;
	for (int i = 0; i < 3; i++)
		if (!(f->out[f->nr_out] = f->v->sheaf_alloc(f->c, cpu, s)))
			broken(f, "a prefilled sheaf was short");
		else
			f->nr_out++;
	if (f->v->sheaf_refill(f->c, cpu, ALLOC_GFP_MAY_BLOCK, &s, 3 * BULK) < 0)
		f->failed++;
	f->v->sheaf_return(f->c, cpu, s);
}

static void give(struct fault *f, uint32_t cpu, uint32_t at, bool rcu)
{
	void *obj = f->out[at];

	f->out[at] = f->out[--f->nr_out];
	if (rcu && f->v->free_rcu)
		f->v->free_rcu(f->c, cpu, obj);
	else
		f->v->free(f->c, cpu, obj);
}

static void shrink(struct fault *f)
{
	struct alloc_cache_state before, after;
	int64_t counted = counter(f, "free_slab").value;

	f->v->state(f->c, &before);
	f->v->shrink(f->c);
	f->v->state(f->c, &after);
	counted = counter(f, "free_slab").value - counted;
	f->shrunk += before.slabs - after.slabs - (uint64_t)counted;
}

/* Grows and shrinks; the same calls whatever fails, as long as objects are there. */
static void work(struct fault *f)
{
	for (uint32_t step = 0; step < STEPS; step++) {
		uint32_t cpu = step * 7 % CPUS, phase = step / 150 % 2;

		if (step % 100 == 99)
			f->v->flush_cpu(f->c, cpu);
		else if (step % 300 == 250)
			shrink(f);
		else if (step % 40 == 5 && f->nr_out + BULK < OUT_MAX)
			take_bulk(f, cpu);
		else if (step % 90 == 45 && f->nr_out + 3 < OUT_MAX)
			take_from_sheaf(f, cpu);
		else if (f->nr_out < OUT_MAX && (step % 5 < (phase ? 1 : 4) || !f->nr_out))
			take(f, cpu, step % 11 ? ALLOC_NODE_ANY : (int32_t)(step % NODES));
		else if (f->nr_out)
			give(f, cpu, step * 31 % f->nr_out, step % 13 == 0);
		if (step % 60 == 0)
			check(f);
	}
}

/* How many requests for pages there were. */
static uint64_t run(struct fault *f)
{
	static const uint16_t cpu_node[CPUS] = { 0, 0, 1, 1 };
	struct alloc_machine_config mc = { .cpus = CPUS, .nodes = NODES, .cpu_node = cpu_node,
					   .seed = 1, .sync = f->sync };
	struct alloc_cache_config cc = { .name = "faults", .object_size = 1000 };
	uint64_t requests;

	f->nr_out = f->failed = 0;
	f->shrunk = 0;
	if (alloc_machine_create(&mc, &f->m) < 0 || f->v->create(f->m, &cc, &f->c) < 0)
		broken(f, "cannot be created");
	alloc_pages_fail(f->m, f->first, f->nr);
	work(f);
	requests = alloc_pages_requests(f->m);
	check(f);
	return requests;
}

static void judge(struct fault *f)
{
	struct sum fallback = counter(f, "order_fallback");

	if (f->nr < 2 && f->failed)
		broken(f, "an operation failed though the fallback shape was there");
	if (f->nr == 2 && f->failed > 1)
		broken(f, "more than one operation failed");
	/* The fallback succeeded: once after one failure, never after two. */
	if (fallback.found && fallback.value != (f->nr == 1))
		broken(f, "order_fallback does not count the fallback");
}

static void close_run(struct fault *f)
{
	while (f->nr_out > OUT_MAX / 20)
		give(f, f->nr_out % CPUS, 0, false);
	f->v->destroy(f->c);
	if (alloc_machine_pages(f->m))
		broken(f, "pages left after destroy");
	alloc_machine_destroy(f->m);
	census_fini(&f->census);
}

static void fail_each(const struct alloc_variant *v, enum alloc_sync_kind sync)
{
	struct fault f = { .v = v, .sync = sync };
	uint64_t requests = run(&f), failures = 0;

	judge(&f);
	close_run(&f);
	if (requests < 20)
		broken(&f, "the workload asks for too few pages to mean something");
	for (uint64_t first = 1; first <= requests; first++)
		for (uint64_t nr = sync == ALLOC_SYNC_NATIVE ? 2 : 1; nr <= 2; nr++) {
			f.first = first;
			f.nr = nr;
			run(&f);
			judge(&f);
			failures += f.failed;
			close_run(&f);
		}
	printf("ok - %s (%s): %" PRIu64 " requests failed in turn, %" PRIu64 " operations with them\n",
	       v->name, sync == ALLOC_SYNC_NATIVE ? "native" : "serial", requests, failures);
}

int main(void)
{
	const struct alloc_variant *v;

	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* many short-lived machines, small each */
	for (uint32_t i = 0; (v = alloc_variant_at(i, ALLOC_SYNC_SERIAL)); i++) {
		fail_each(v, ALLOC_SYNC_SERIAL);
		fail_each(alloc_variant_at(i, ALLOC_SYNC_NATIVE), ALLOC_SYNC_NATIVE);
	}
	return 0;
}
