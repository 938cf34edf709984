/* SPDX-License-Identifier: MIT */
/*
 * What an observer hears of objects: every one that goes out or comes in, whatever call moved it,
 * once, and in an order in which no object is out twice; on every variant, serial and native.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "allocator/hooks.h"
#include "allocator/variant.h"

enum { CPUS = 4, NODES = 2, OUT_MAX = 4000, BULK = 20, STEPS = 6000 };

struct heard {
	struct alloc_cache *c;
	const char *variant;
	void *out[OUT_MAX];
	uint32_t nr, cpu;
	uint64_t allocs, frees;
};

static uint32_t find(const struct heard *h, const void *obj)
{
	uint32_t at = 0;

	while (at < h->nr && h->out[at] != obj)
		at++;
	return at;
}

static void on_alloc(void *ctx, const struct alloc_cache *c, uint32_t cpu, void *obj)
{
	struct heard *h = ctx;

	if (find(h, obj) < h->nr || c != h->c || cpu != h->cpu || h->nr == OUT_MAX)
		fail_msg("%s: an object was told allocated twice or wrongly", h->variant);
	h->out[h->nr++] = obj;
	h->allocs++;
}

static void on_free(void *ctx, const struct alloc_cache *c, uint32_t cpu, void *obj)
{
	struct heard *h = ctx;
	uint32_t at = find(h, obj);

	if (at == h->nr || c != h->c || cpu != h->cpu)
		fail_msg("%s: an object was told free that is not out", h->variant);
	h->out[at] = h->out[--h->nr];
	h->frees++;
}

static uint32_t draw(uint64_t *random, uint32_t below)
{
	*random = *random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*random >> 33) % below;
}

/* An object that is out now, or NULL. */
static void *some(const struct heard *h, uint64_t *random)
{
	return h->nr ? h->out[draw(random, h->nr)] : NULL;
}

static void use_sheaf(const struct alloc_variant *v, struct alloc_cache *c, struct heard *h)
{
	struct alloc_sheaf *s = v->prefill ? v->prefill(c, h->cpu, ALLOC_GFP_MAY_BLOCK, BULK) : NULL;
	uint64_t before = h->allocs;

	if (!v->prefill)
		return;
	assert_non_null(s);
	assert_non_null(v->sheaf_alloc(c, h->cpu, s));
	assert_non_null(v->sheaf_alloc(c, h->cpu, s));
	v->sheaf_return(c, h->cpu, s);
	assert_int_equal(h->allocs, before + 2);
}

/* One call; the number of objects out, as the caller knows it, changes by the result. */
static int step(const struct alloc_variant *v, struct alloc_cache *c, struct heard *h,
		uint64_t *random)
{
	void *objs[BULK], *obj = some(h, random);
	uint32_t what = draw(random, 100), nr = 0;

	h->cpu = draw(random, CPUS);
	if (what < 5 && h->nr < OUT_MAX / 2)
		return (int)v->alloc_bulk(c, h->cpu, ALLOC_GFP_MAY_BLOCK, BULK, objs);
	if (what < 10 && h->nr >= BULK) {
		for (; nr < BULK; nr++)
			objs[nr] = h->out[nr * (h->nr / BULK)];
		v->free_bulk(c, h->cpu, BULK, objs);
		return -BULK;
	}
	if (what < 12 && v->prefill) {
		use_sheaf(v, c, h);
		return 2;
	}
	if ((what < 55 && h->nr < OUT_MAX / 2) || !obj)
		return v->alloc(c, h->cpu, ALLOC_NODE_ANY, ALLOC_GFP_MAY_BLOCK) ? 1 : 0;
	if (what < 65 && v->free_rcu)
		v->free_rcu(c, h->cpu, obj);
	else
		v->free(c, h->cpu, obj);
	return -1;
}

static void listen_to(const struct alloc_variant *v, enum alloc_sync_kind sync)
{
	static const uint16_t cpu_node[CPUS] = { 0, 0, 1, 1 };
	static struct heard heard;
	struct alloc_observer o = { .ctx = &heard, .alloc = on_alloc, .free = on_free };
	struct alloc_machine_config mc = { .cpus = CPUS, .nodes = NODES, .cpu_node = cpu_node,
					   .seed = 1, .sync = sync, .observer = &o };
	struct alloc_cache_config cc = { .name = "heard", .object_size = 192 };
	struct alloc_machine *m;
	struct alloc_cache *c;
	uint64_t random = 3, out = 0;

	assert_int_equal(alloc_machine_create(&mc, &m), 0);
	assert_int_equal(v->create(m, &cc, &c), 0);
	heard = (struct heard){ .c = c, .variant = v->name };
	for (uint32_t i = 0; i < STEPS; i++) {
		out += (uint64_t)step(v, c, &heard, &random);
		if (heard.nr != out || heard.allocs - heard.frees != out)
			fail_msg("%s: step %u: %u objects told, %llu out", v->name, i, heard.nr,
				 (unsigned long long)out);
	}
	assert_true(heard.frees > STEPS / 4);
	/* A bulk allocation that fails in the middle hands nothing out and tells nothing. */
	alloc_cache_page_limit(c, 2);
	out = heard.allocs;
	while (v->alloc_bulk(c, heard.cpu, ALLOC_GFP_MAY_BLOCK, BULK, (void *[BULK]){ NULL }))
		out += BULK;
	assert_int_equal(heard.allocs, out);
	v->destroy(c);
	alloc_machine_destroy(m);
}

static void test_every_object_once(void **state)
{
	const struct alloc_variant *v;

	(void)state;
	for (uint32_t i = 0; (v = alloc_variant_at(i, ALLOC_SYNC_SERIAL)); i++) {
		listen_to(v, ALLOC_SYNC_SERIAL);
		listen_to(alloc_variant_at(i, ALLOC_SYNC_NATIVE), ALLOC_SYNC_NATIVE);
	}
}

/* The recorded placement is one more way out. */
static void test_placed(void **state)
{
	static const uint16_t cpu_node[1];
	static struct heard heard;
	struct alloc_observer o = { .ctx = &heard, .alloc = on_alloc, .free = on_free };
	struct alloc_machine_config mc = { .cpus = 1, .nodes = 1, .cpu_node = cpu_node, .seed = 1,
					   .observer = &o };
	struct alloc_cache_config cc = { .name = "heard", .object_size = 192 };
	const struct alloc_variant *v = alloc_variant_find("slub-6.1", ALLOC_SYNC_SERIAL);
	struct alloc_place nowhere = { NULL, 0, 0 };
	struct alloc_machine *m;
	void *obj;

	(void)state;
	assert_int_equal(alloc_machine_create(&mc, &m), 0);
	heard = (struct heard){ .variant = v->name };
	assert_int_equal(v->create(m, &cc, &heard.c), 0);
	obj = v->alloc_placed(heard.c, 0, ALLOC_NODE_ANY,
			      ALLOC_GFP_MAY_BLOCK, &nowhere);
	assert_int_equal(heard.allocs, 1);
	assert_ptr_equal(heard.out[0], obj);
	v->destroy(heard.c);
	alloc_machine_destroy(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_object_once),
		cmocka_unit_test(test_placed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
