/* SPDX-License-Identifier: MIT */
/*
 * slub-7.2 and slub-7.2-parking: worked examples, grace periods, prefilled sheaves, bulk calls,
 * parking, and what happens when another CPU comes between the read and the exchange of a slab.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/locks.h"
#include "allocator/slab.h"

#define GFP (ALLOC_GFP_MAY_BLOCK | ALLOC_GFP_MAY_SPIN)

struct rig {
	const struct alloc_variant *v;
	struct alloc_machine *m;
	struct alloc_cache *c;
};

static void rig_open(struct rig *r, const char *variant, enum alloc_sync_kind sync, uint32_t cpus,
		     uint32_t nodes, struct alloc_cache_config cfg)
{
	uint16_t cpu_node[16];
	struct alloc_machine_config mc = { .cpus = cpus, .nodes = nodes, .cpu_node = cpu_node,
					   .seed = 1, .sync = sync };

	for (uint32_t i = 0; i < cpus; i++)
		cpu_node[i] = (uint16_t)(i * nodes / cpus);
	cfg.name = "test";
	assert_int_equal(alloc_machine_create(&mc, &r->m), 0);
	r->v = alloc_variant_find(variant, sync);
	assert_non_null(r->v);
	assert_int_equal(r->v->create(r->m, &cfg, &r->c), 0);
}

static void rig_check(struct rig *r)
{
	char why[256] = "";

	if (r->v->check(r->c, why, sizeof(why)) < 0)
		fail_msg("%s: %s", r->v->name, why);
}

static void rig_close(struct rig *r)
{
	rig_check(r);
	r->v->destroy(r->c);
	assert_int_equal(alloc_machine_pages(r->m), 0);
	alloc_machine_destroy(r->m);
}

static int64_t wanted_sum;
static void add_counter(void *ctx, uint32_t cpu, const char *name, int64_t value)
{
	(void)cpu;
	if (!strcmp(name, ctx))
		wanted_sum += value;
}

static int64_t count(struct rig *r, const char *name)
{
	char copy[40];

	snprintf(copy, sizeof(copy), "%s", name);
	wanted_sum = 0;
	alloc_read_counters(r->c, add_counter, copy);
	return wanted_sum;
}

/* Worked examples (docs/allocator-model.md): 16 CPUs for the order, two of them used. */
struct live {
	void *objs[1024];
	uint32_t nr;
};

static void *take(struct rig *r, uint32_t cpu)
{
	void *obj = r->v->alloc(r->c, cpu, ALLOC_NODE_ANY, GFP);

	assert_non_null(obj);
	return obj;
}

static void script_1(struct rig *r)
{
	void *objs[100];

	for (int i = 0; i < 100; i++)
		objs[i] = take(r, 0);
	for (int i = 0; i < 100; i++)
		r->v->free(r->c, 0, objs[i]);
}

static void script_2(struct rig *r)
{
	static void *objs[1000];
	int oldest = 0;

	for (int i = 0; i < 1000; i++) {
		objs[i] = take(r, 0);
		if (i + 1 - oldest > 64)
			r->v->free(r->c, 1, objs[oldest++]);
	}
	while (oldest < 1000)
		r->v->free(r->c, 1, objs[oldest++]);
}

static void script_3(struct rig *r)
{
	static void *objs[600];

	for (int i = 0; i < 400; i++)
		objs[i] = take(r, 0);
	for (int i = 0; i < 400; i += 8) {
		r->v->free(r->c, 1, objs[i]);
		objs[i] = NULL;
	}
	for (int i = 400; i < 600; i++)
		objs[i] = take(r, 1);
	for (int i = 0; i < 600; i++)
		if (objs[i])
			r->v->free(r->c, 0, objs[i]);
}

static void script_4(struct rig *r)
{
	static struct live l;
	uint64_t x = 1;

	l.nr = 0;
	for (int i = 0; i < 20000; i++) {
		x = (x * 1103515245 + 12345) % (1ull << 31);
		uint64_t draw = x >> 8;
		uint32_t cpu = draw & 1, j;

		if (l.nr < 300 || ((draw >> 1) % 100 < 50 && l.nr < 900)) {
			l.objs[l.nr++] = take(r, cpu);
			continue;
		}
		j = (uint32_t)((draw >> 9) % l.nr);
		r->v->free(r->c, cpu, l.objs[j]);
		l.objs[j] = l.objs[--l.nr];
	}
}

static const struct {
	void (*script)(struct rig *r);
	uint32_t size;
	const char *want; /* counter=value, all that are not 0 */
} worked[] = {
	{ script_1, 256, "alloc_fastpath=100 alloc_slab=4 barn_get_fail=4 barn_put=2 "
			 "free_fastpath=100 sheaf_alloc=5 sheaf_refill=112 partial=1 slabs=4" },
	{ script_1, 2048, "alloc_fastpath=100 alloc_slab=7 barn_get_fail=9 barn_put=7 "
			  "free_fastpath=100 sheaf_alloc=10 sheaf_refill=108 partial=1 slabs=7" },
	{ script_2, 256, "alloc_fastpath=1000 alloc_slab=5 barn_get=31 barn_get_fail=5 barn_put=34 "
			 "free_fastpath=1000 sheaf_alloc=7 sheaf_refill=140 partial=1 slabs=5" },
	{ script_2, 2048, "alloc_fastpath=1000 alloc_slab=6 barn_get=76 barn_get_fail=8 barn_put=82 "
			  "free_fastpath=1000 sheaf_alloc=10 sheaf_refill=96 slabs=6" },
	{ script_3, 256, "alloc_fastpath=600 alloc_slab=19 barn_get_fail=21 barn_put=10 "
			 "barn_put_fail=9 free_add_partial=17 free_fastpath=600 "
			 "free_remove_partial=5 free_slab=5 sheaf_alloc=14 sheaf_flush=252 "
			 "sheaf_refill=588 partial=13 slabs=14" },
	{ script_3, 2048, "alloc_fastpath=600 alloc_slab=36 barn_get=3 barn_get_fail=47 barn_put=13 "
			  "barn_put_fail=35 free_add_partial=34 free_fastpath=600 "
			  "free_remove_partial=24 free_slab=24 sheaf_alloc=14 sheaf_flush=420 "
			  "sheaf_refill=564 partial=11 slabs=12" },
	{ script_4, 256, "alloc_fastpath=10290 alloc_slab=20 barn_get=7 barn_get_fail=22 barn_put=7 "
			 "free_fastpath=9710 sheaf_alloc=6 sheaf_refill=616 partial=1 slabs=20" },
	{ script_4, 2048, "alloc_fastpath=10290 alloc_slab=38 barn_get=39 barn_get_fail=50 "
			  "barn_put=40 free_fastpath=9710 sheaf_alloc=9 sheaf_refill=600 partial=1 "
			  "slabs=38" },
};

/* Appends "name=value " for nonzero values to the text at ctx; sums over CPUs. */
struct text {
	char out[1024];
	char name[40];
	int64_t sum;
};

static void append(struct text *t)
{
	size_t used = strlen(t->out);

	if (!strcmp(t->name, "sheaf_alloc"))
		t->sum -= 14; /* the examples have two possible CPUs, this machine 16 */
	if (t->sum)
		snprintf(t->out + used, sizeof(t->out) - used, "%s=%lld ", t->name,
			 (long long)t->sum);
}

static void collect(void *ctx, uint32_t cpu, const char *name, int64_t value)
{
	struct text *t = ctx;

	if (cpu == 0 && t->name[0])
		append(t);
	if (cpu == 0) {
		snprintf(t->name, sizeof(t->name), "%s", name);
		t->sum = 0;
	}
	t->sum += value;
}

static int word_order(const void *a, const void *b)
{
	const char *x, *y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return strcmp(x, y);
}

/* The same words, in any order. */
static void assert_same_words(const char *got, const char *want)
{
	char copies[2][1024], *words[2][64] = { { NULL } }, *save = NULL;
	size_t nr[2] = { 0, 0 };

	for (int i = 0; i < 2; i++) {
		snprintf(copies[i], sizeof(copies[i]), "%s", i ? want : got);
		for (char *w = strtok_r(copies[i], " ", &save); w; w = strtok_r(NULL, " ", &save))
			words[i][nr[i]++] = w;
		qsort(words[i], nr[i], sizeof(words[i][0]), word_order);
	}
	for (size_t i = 0; i < nr[0] || i < nr[1]; i++)
		assert_string_equal(i < nr[0] ? words[0][i] : "-", i < nr[1] ? words[1][i] : "-");
}

static void run_worked(const char *variant, enum alloc_sync_kind sync, size_t i)
{
	struct text t = { .out = "" };
	struct alloc_cache_state st;
	struct rig r;

	rig_open(&r, variant, sync, 16, 1,
		 (struct alloc_cache_config){ .object_size = worked[i].size,
					      .align = worked[i].size });
	worked[i].script(&r);
	alloc_read_counters(r.c, collect, &t);
	append(&t);
	r.v->state(r.c, &st);
	snprintf(t.name, sizeof(t.name), "partial");
	t.sum = (int64_t)st.partial;
	append(&t);
	snprintf(t.name, sizeof(t.name), "slabs");
	t.sum = (int64_t)st.slabs;
	append(&t);
	assert_same_words(t.out, worked[i].want);
	rig_close(&r);
}

/* Simulated hooks of a single thread. */
static uint32_t locks_held;
static bool try_fails;
static void (*between)(void); /* called where another CPU may come between */

static void sim_shared(uint32_t cpu, const void *address, enum alloc_sim_access access)
{
	(void)cpu;
	(void)address;
	if (between && !locks_held && access == ALLOC_SIM_CMPXCHG)
		between();
}

static void sim_lock(uint32_t cpu, struct alloc_lock *l, enum alloc_lock_path path)
{
	(void)path;
	assert_int_equal(l->held, 0);
	l->held = cpu + 1;
	locks_held++;
}

static bool sim_trylock(uint32_t cpu, struct alloc_lock *l, enum alloc_lock_path path)
{
	if (try_fails || l->held)
		return false;
	sim_lock(cpu, l, path);
	return true;
}

static void sim_unlock(uint32_t cpu, struct alloc_lock *l)
{
	assert_int_equal(l->held, cpu + 1);
	l->held = 0;
	locks_held--;
}

static void sim_page_work(uint32_t cpu, uint16_t node, uint32_t order, bool get)
{
	(void)cpu;
	(void)node;
	(void)order;
	(void)get;
}

static const struct alloc_sim_hooks hooks = { sim_shared, sim_lock, sim_trylock, sim_unlock,
					      sim_page_work };

static void test_worked_examples(void **state)
{
	(void)state;
	alloc_sim_set_hooks(&hooks);
	for (size_t i = 0; i < sizeof(worked) / sizeof(worked[0]); i++)
		for (int sync = 0; sync < ALLOC_SYNC_MAX; sync++) {
			run_worked("slub-7.2", (enum alloc_sync_kind)sync, i);
			run_worked("slub-7.2-parking", (enum alloc_sync_kind)sync, i);
		}
}

static void test_grace_period(void **state)
{
	struct alloc_cache_state st;
	struct rig r;
	void *objs[56];

	(void)state;
	rig_open(&r, "slub-7.2", ALLOC_SYNC_SERIAL, 4, 2,
		 (struct alloc_cache_config){ .object_size = 256 });
	for (int i = 0; i < 56; i++)
		objs[i] = take(&r, 0);
	r.v->tick(r.c, 0, 1000000);
	for (int i = 0; i < 28; i++)
		r.v->free_rcu(r.c, 0, objs[i]);
	assert_int_equal(count(&r, "free_rcu_sheaf"), 28);
	r.v->tick(r.c, 0, 20999999);
	assert_int_equal(count(&r, "barn_put"), 0);
	r.v->tick(r.c, 0, 21000000);
	assert_int_equal(count(&r, "barn_put"), 1);
	/* Freed from another node: no sheaf, one bulk free after the grace period of the first. */
	r.v->free_rcu(r.c, 2, objs[28]);
	r.v->free_rcu(r.c, 2, objs[29]);
	r.v->tick(r.c, 2, 21000000);
	assert_int_equal(count(&r, "free_slowpath"), 2);
	/* What still waits is flushed by a barrier; an incomplete sheaf never reaches the barn. */
	for (int i = 30; i < 56; i++)
		r.v->free_rcu(r.c, 0, objs[i]);
	r.v->rcu_barrier(r.c);
	assert_int_equal(count(&r, "barn_put"), 1);
	assert_int_equal(count(&r, "sheaf_flush"), 26);
	assert_int_equal(count(&r, "free_rcu_sheaf"), 54);
	r.v->state(r.c, &st);
	assert_int_equal(st.cached_objs, 28);
	rig_close(&r);
}

static void test_prefill_out_of_memory(void **state)
{
	struct alloc_sheaf *s;
	void *objs[64];
	struct rig r;

	(void)state;
	rig_open(&r, "slub-7.2", ALLOC_SYNC_SERIAL, 2, 1,
		 (struct alloc_cache_config){ .object_size = 1024 });
	s = r.v->prefill(r.c, 0, GFP, 12);
	assert_non_null(s);
	alloc_cache_page_limit(r.c, 2);
	assert_null(r.v->prefill(r.c, 0, GFP, 12));
	assert_null(r.v->prefill(r.c, 0, GFP, 40));
	assert_int_equal(r.v->sheaf_refill(r.c, 0, GFP, &s, 40), -12);
	assert_int_equal(r.v->alloc_bulk(r.c, 0, GFP, 64, objs), 0);
	rig_check(&r);
	r.v->sheaf_return(r.c, 0, s);
	alloc_cache_page_limit(r.c, 0);
	assert_int_equal(r.v->alloc_bulk(r.c, 0, GFP, 64, objs), 64);
	r.v->free_bulk(r.c, 1, 64, objs);
	r.v->shrink(r.c);
	rig_close(&r);
}

static void test_knobs(void **state)
{
	const struct alloc_knob_value knobs[] = { { "sheaf_capacity", 100 }, { "slub_min_order", 2 },
						  { "remote_node_defrag_ratio", 40 } };
	struct rig r;
	int64_t value;

	(void)state;
	rig_open(&r, "slub-7.2", ALLOC_SYNC_SERIAL, 2, 1,
		 (struct alloc_cache_config){ .object_size = 64, .knobs = knobs, .nr_knobs = 3 });
	assert_int_equal(r.c->geo.order, 2);
	assert_int_equal(r.v->get_knob(r.c, "sheaf_capacity", &value), 0);
	assert_int_equal(value, 100);
	assert_int_equal(r.v->get_knob(r.c, "defrag", &value), 0);
	assert_int_equal(value, 400);
	assert_int_equal(r.v->set_knob(r.c, "remote_node_defrag_ratio", 101), -22);
	assert_int_equal(r.v->set_knob(r.c, "cpu_partial", 1), -22);
	assert_int_equal(r.v->set_knob(r.c, "cpu_partial", 0), 0);
	assert_int_equal(r.v->set_knob(r.c, "sheaf_capacity", 50), -22);
	assert_int_equal(r.v->set_knob(r.c, "park_every", 2), -2);
	assert_int_equal(r.v->set_knob(r.c, "min_partial", 0), 0);
	rig_close(&r);
}

static void test_parking(void **state)
{
	struct rig r;
	void *objs[64];

	(void)state;
	alloc_sim_set_hooks(&hooks);
	rig_open(&r, "slub-7.2-parking", ALLOC_SYNC_SIM, 4, 2,
		 (struct alloc_cache_config){ .object_size = 4096 });
	for (int i = 0; i < 64; i++)
		objs[i] = take(&r, 0);
	r.v->tick(r.c, 2, 1000);
	try_fails = true;
	for (int i = 0; i < 64; i += 8) /* another node's CPU: straight to the slabs */
		r.v->free(r.c, 2, objs[i]);
	assert_int_equal(count(&r, "park_slab"), 8);
	assert_int_equal(count(&r, "free_add_partial"), 8);
	for (int i = 1; i < 8; i++) /* parked -> parked, down to empty */
		r.v->free(r.c, 2, objs[i]);
	assert_int_equal(count(&r, "free_slab"), 0);
	rig_check(&r);
	try_fails = false;
	r.v->tick(r.c, 2, 4000999);
	assert_int_equal(count(&r, "unpark_event"), 0);
	r.v->tick(r.c, 2, 4001000);
	assert_int_equal(count(&r, "unpark_event"), 1);
	assert_int_equal(count(&r, "unpark_slab"), 8);
	assert_int_equal(alloc_free_class(r.c, 1), 8);
	rig_check(&r);
	r.v->set_knob(r.c, "park_every", 1);
	r.v->free(r.c, 2, objs[9]); /* partial already */
	for (int i = 0; i < 40; i++)
		take(&r, 0); /* refills find the listed slabs */
	assert_int_equal(count(&r, "park_slab"), count(&r, "unpark_slab"));
	rig_close(&r);
}

/* Another CPU's operation between the read of a slab's word and its exchange. */
static struct {
	struct rig *r;
	struct live live;
	uint64_t x;
	bool inside;
	uint32_t busy_cpu;
} mixed;

static uint32_t draw(uint32_t below)
{
	mixed.x = mixed.x * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(mixed.x >> 33) % below;
}

static void mixed_op(uint32_t cpu)
{
	struct rig *r = mixed.r;
	struct live *l = &mixed.live;
	uint32_t what = draw(100), at = l->nr ? draw(l->nr) : 0;
	void *obj = l->nr ? l->objs[at] : NULL;

	if (l->nr < 40 || (what < 48 && l->nr < 900)) {
		int32_t node = what % 8 ? ALLOC_NODE_ANY : (int32_t)draw(2);

		obj = r->v->alloc(r->c, cpu, node, GFP);
		assert_non_null(obj);
		l->objs[l->nr++] = obj;
		return;
	}
	l->objs[at] = l->objs[--l->nr];
	if (what < 90)
		r->v->free(r->c, cpu, obj);
	else if (what < 97)
		r->v->free_rcu(r->c, cpu, obj);
	else {
		r->v->free(r->c, cpu, obj);
		r->v->flush_cpu(r->c, cpu);
	}
}

static void mixed_between(void)
{
	uint32_t cpu;

	if (mixed.inside || draw(3))
		return;
	cpu = draw(4);
	if (cpu == mixed.busy_cpu)
		return;
	mixed.inside = true;
	for (uint32_t n = draw(12); n; n--)
		mixed_op(cpu);
	mixed.inside = false;
}

static void run_mixed(const char *variant, uint64_t seed)
{
	const struct alloc_knob_value knobs[] = { { "defrag", 1023 } };
	struct rig r;

	memset(&mixed, 0, sizeof(mixed));
	mixed.r = &r;
	mixed.x = seed;
	rig_open(&r, variant, ALLOC_SYNC_SIM, 4, 2,
		 (struct alloc_cache_config){ .object_size = 700, .knobs = knobs, .nr_knobs = 1 });
	between = mixed_between;
	for (uint32_t i = 0; i < 20000; i++) {
		mixed.busy_cpu = draw(4);
		try_fails = !draw(5);
		mixed_op(mixed.busy_cpu);
		if (i % 256 == 0)
			rig_check(&r);
	}
	between = NULL;
	try_fails = false;
	assert_true(count(&r, "cmpxchg_double_fail") > 10);
	r.v->shrink(r.c);
	rig_close(&r);
}

static void test_races(void **state)
{
	(void)state;
	alloc_sim_set_hooks(&hooks);
	for (uint64_t seed = 1; seed <= 8; seed++) {
		run_mixed("slub-7.2", seed);
		run_mixed("slub-7.2-parking", seed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_worked_examples), cmocka_unit_test(test_grace_period),
		cmocka_unit_test(test_prefill_out_of_memory), cmocka_unit_test(test_knobs),
		cmocka_unit_test(test_parking), cmocka_unit_test(test_races),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
