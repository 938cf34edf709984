/* SPDX-License-Identifier: MIT */
/*
 * Fast path of a variant against general allocators: ns of one alloc + free pair, one thread.
 *
 * usage: bench_alloc [VARIANT [ROUNDS]]        (slub-6.1, 15)
 *
 * Every round runs every contender once, in turn, so that a slow moment of the machine hits all of
 * them; printed are the median, the smallest and the largest round in CPU time.  "call" is the cost
 * of two indirect calls and the loop, contained in every other line.
 *
 * The verdict compares the native build with tcmalloc round by round: the median of the ratios and
 * the interval between those order statistics that hold the median with 95 % probability or more.
 * An interval around 1.0 decides nothing.  It is about the fast path: 1 and 8 objects of every size
 * lie in one slab; 64 of the larger ones do not and tell what changing slabs costs.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "allocator/variant.h"

enum { PAIRS = 400000, ROUNDS_MAX = 101, DEPTH_MAX = 64 };

/* One contender; either @malloc_fn and @free_fn or a cache. */
struct contender {
	const char *name;
	void *(*malloc_fn)(size_t bytes);
	void (*free_fn)(void *obj);
	const struct alloc_variant *v;
	struct alloc_machine *m;
	struct alloc_cache *c;
	double ns[ROUNDS_MAX]; /* in the order of the rounds */
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *empty_malloc(size_t bytes)
{
	static char byte;

	(void)bytes;
	return &byte;
}

static void empty_free(void *obj)
{
	(void)obj;
}

/* @depth objects out, then back, last in first out. */
static double run_malloc(struct contender *x, size_t bytes, int depth)
{
	void *(*volatile take)(size_t) = x->malloc_fn;
	void (*volatile give)(void *) = x->free_fn;
	void *objs[DEPTH_MAX];
	uint64_t start = cpu_ns();

	for (int i = 0; i < PAIRS / depth; i++) {
		for (int k = 0; k < depth; k++)
			objs[k] = take(bytes);
		for (int k = depth; k--;)
			give(objs[k]);
	}
	return (double)(cpu_ns() - start) / PAIRS;
}

static double run_cache(struct contender *x, int depth)
{
	const struct alloc_variant *v = x->v;
	void *objs[DEPTH_MAX];
	uint64_t start = cpu_ns();

	for (int i = 0; i < PAIRS / depth; i++) {
		for (int k = 0; k < depth; k++)
			objs[k] = v->alloc(x->c, 0, ALLOC_NODE_ANY, ALLOC_GFP_MAY_BLOCK);
		for (int k = depth; k--;)
			v->free(x->c, 0, objs[k]);
	}
	return (double)(cpu_ns() - start) / PAIRS;
}

static int open_cache(struct contender *x, const char *variant, enum alloc_sync_kind sync,
		      uint32_t size)
{
	static const uint16_t cpu_node[1];
	struct alloc_machine_config mc = { .cpus = 1, .nodes = 1, .cpu_node = cpu_node, .seed = 1,
					   .sync = sync };
	struct alloc_cache_config cc = { .name = "bench", .object_size = size };

	x->v = alloc_variant_find(variant, sync);
	if (!x->v || alloc_machine_create(&mc, &x->m) < 0)
		return -1;
	return x->v->create(x->m, &cc, &x->c);
}

static void close_cache(struct contender *x)
{
	if (x->v)
		x->v->destroy(x->c);
	alloc_machine_destroy(x->m);
}

/* The malloc of a shared library, loaded beside ours; an absent library is left out. */
static size_t open_library(struct contender *x, const char *name, const char *file)
{
	void *lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	void *take = lib ? dlsym(lib, "malloc") : NULL, *give = lib ? dlsym(lib, "free") : NULL;

	if (!take || !give) {
		printf("%-18s not available: %s\n", name, dlerror());
		return 0;
	}
	x->name = name;
	memcpy(&x->malloc_fn, &take, sizeof(take));
	memcpy(&x->free_fn, &give, sizeof(give));
	return 1;
}

static int compare(const void *a, const void *b)
{
	double x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x < y ? -1 : x > y;
}

static void print_result(const struct contender *x, int rounds)
{
	double ns[ROUNDS_MAX];

	memcpy(ns, x->ns, (size_t)rounds * sizeof(*ns));
	qsort(ns, (size_t)rounds, sizeof(*ns), compare);
	printf("  %-24s %7.2f %7.2f %7.2f   %6.1f\n", x->name, ns[rounds / 2], ns[0],
	       ns[rounds - 1], 2e3 / ns[rounds / 2]);
}

/*
 * How many of @rounds sorted values lie outside, at each end, of the interval that holds the median
 * with a probability of at least 95 %: the binomial tail below 2.5 %.
 */
static int outside(int rounds)
{
	double term = 1, tail = 0;
	int k = 0;

	for (int i = 0; i < rounds; i++)
		term /= 2;
	for (; k < rounds / 2 && tail + term <= 0.025; k++) {
		tail += term;
		term = term * (rounds - k) / (k + 1);
	}
	return k ? k - 1 : 0;
}

static void print_verdict(const struct contender *x, const struct contender *other, int rounds)
{
	double ratio[ROUNDS_MAX], low, high;
	int out = outside(rounds);

	for (int i = 0; i < rounds; i++)
		ratio[i] = x->ns[i] / other->ns[i];
	qsort(ratio, (size_t)rounds, sizeof(*ratio), compare);
	low = ratio[out];
	high = ratio[rounds - 1 - out];
	printf("  native / tcmalloc %.2f (%.2f .. %.2f): %s\n", ratio[rounds / 2], low, high,
	       high <= 1 ? "not slower" : low > 1 ? "slower" : "not decided");
}

static void run_size(struct contender *list, size_t nr, uint32_t size, int depth, int rounds)
{
	const struct contender *tcmalloc = NULL;

	for (int round = 0; round < rounds; round++)
		for (size_t i = 0; i < nr; i++)
			list[i].ns[round] = list[i].v ? run_cache(&list[i], depth)
						      : run_malloc(&list[i], size, depth);
	printf("size %u, LIFO %d\n  %-24s %7s %7s %7s   %6s\n", size, depth, "ns per pair", "median",
	       "least", "most", "Mops/s");
	for (size_t i = 0; i < nr; i++) {
		print_result(&list[i], rounds);
		if (!strcmp(list[i].name, "malloc-tcmalloc"))
			tcmalloc = &list[i];
	}
	if (tcmalloc && depth <= 8)
		print_verdict(&list[nr - 1], tcmalloc, rounds);
}

/* Libraries loaded late need room for their thread-local data; it is set aside at start only. */
static void start_again_with_room(char **argv)
{
	if (getenv("GLIBC_TUNABLES"))
		return;
	setenv("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=16384", 1);
	execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = { 64, 256, 2048 };
	static struct contender list[8];
	const char *variant = argc > 1 ? argv[1] : "slub-6.1";
	long rounds_asked = argc > 2 ? strtol(argv[2], NULL, 10) : 15;
	int rounds = rounds_asked < 1 || rounds_asked > ROUNDS_MAX ? 15 : (int)rounds_asked;
	size_t nr = 0;

	start_again_with_room(argv);
	list[nr++] = (struct contender){ .name = "call", .malloc_fn = empty_malloc,
					 .free_fn = empty_free };
	list[nr++] = (struct contender){ .name = "malloc-glibc", .malloc_fn = malloc,
					 .free_fn = free };
	nr += open_library(&list[nr], "malloc-tcmalloc", "libtcmalloc_minimal.so.4");
	nr += open_library(&list[nr], "malloc-mimalloc", "libmimalloc.so.2");
	nr += open_library(&list[nr], "malloc-jemalloc", "libjemalloc.so.2");
	printf("%d pairs a round, %d rounds, CPU time\n", PAIRS, rounds);
	for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
		struct contender *serial = &list[nr], *native = &list[nr + 1];

		*serial = (struct contender){ .name = "variant, serial build" };
		*native = (struct contender){ .name = "variant, native build" };
		if (open_cache(serial, variant, ALLOC_SYNC_SERIAL, sizes[s]) < 0 ||
		    open_cache(native, variant, ALLOC_SYNC_NATIVE, sizes[s]) < 0) {
			fprintf(stderr, "bench_alloc: %s: cannot be created\n", variant);
			return 2;
		}
		run_size(list, nr + 2, sizes[s], 1, rounds);
		run_size(list, nr + 2, sizes[s], 8, rounds);
		run_size(list, nr + 2, sizes[s], DEPTH_MAX, rounds);
		close_cache(serial);
		close_cache(native);
	}
	return 0;
}
