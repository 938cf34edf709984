/* SPDX-License-Identifier: MIT */
/*
 * Frees of another thread's objects: a producer allocates a batch, a consumer frees it, in turn.
 * One contender per process, so that callgrind can count the frees alone: bench/remote_free.sh
 * does that and prints ratios.
 *
 * usage: bench_remote VARIANT|glibc|mimalloc|tcmalloc|jemalloc SIZE [BATCH [ROUNDS]]
 *
 * Prints frees and ns of CPU time per free.  The function to count is remote_frees_*; it contains
 * the loop and one indirect call per free, the same for all.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "allocator/variant.h"

enum { BATCH_MAX = 100000, WARM_ROUNDS = 10 };

static struct {
	void *(*malloc_fn)(size_t bytes);
	void (*free_fn)(void *obj);
	const struct alloc_variant *v;
	struct alloc_machine *m;
	struct alloc_cache *c;
	size_t size;
	uint32_t batch, rounds;
	void **objs;	       /* Sync: handed over by the semaphores */
	sem_t produced, freed;
	uint64_t ns;
} b;

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static __attribute__((noinline)) void remote_frees_variant(void)
{
	for (uint32_t i = 0; i < b.batch; i++)
		b.v->free(b.c, 1, b.objs[i]);
}

static __attribute__((noinline)) void remote_frees_malloc(void)
{
	for (uint32_t i = 0; i < b.batch; i++)
		b.free_fn(b.objs[i]);
}

/* The same under a name that is not counted: first rounds fault memory in and size the lists. */
static void warm_frees(void)
{
	for (uint32_t i = 0; i < b.batch; i++)
		if (b.v)
			b.v->free(b.c, 1, b.objs[i]);
		else
			b.free_fn(b.objs[i]);
}

static void *consume(void *arg)
{
	for (uint32_t round = 0; round < WARM_ROUNDS + b.rounds; round++) {
		uint64_t start;

		sem_wait(&b.produced);
		start = cpu_ns();
		if (round < WARM_ROUNDS)
			warm_frees();
		else if (b.v)
			remote_frees_variant();
		else
			remote_frees_malloc();
		b.ns += round < WARM_ROUNDS ? 0 : cpu_ns() - start;
		sem_post(&b.freed);
	}
	return arg;
}

static void produce(void)
{
	for (uint32_t round = 0; round < WARM_ROUNDS + b.rounds; round++) {
		for (uint32_t i = 0; i < b.batch; i++) {
			b.objs[i] = b.v ? b.v->alloc(b.c, 0, ALLOC_NODE_ANY, ALLOC_GFP_MAY_BLOCK)
					: b.malloc_fn(b.size);
			if (!b.objs[i]) {
				fprintf(stderr, "bench_remote: out of memory\n");
				exit(2);
			}
			memset(b.objs[i], 1, sizeof(uint64_t));
		}
		sem_post(&b.produced);
		sem_wait(&b.freed);
	}
}

static int open_variant(const char *name)
{
	static const uint16_t cpu_node[2];
	struct alloc_machine_config mc = { .cpus = 2, .nodes = 1, .cpu_node = cpu_node, .seed = 1,
					   .sync = ALLOC_SYNC_NATIVE };
	struct alloc_cache_config cc = { .name = "remote", .object_size = (uint32_t)b.size };

	b.v = alloc_variant_find(name, ALLOC_SYNC_NATIVE);
	if (!b.v || alloc_machine_create(&mc, &b.m) < 0)
		return -1;
	return b.v->create(b.m, &cc, &b.c);
}

/* 1: opened; 0: no such library here; -1: not the name of one. */
static int open_library(const char *name)
{
	static const char *const files[][2] = { { "glibc", "libc.so.6" },
		{ "mimalloc", "libmimalloc.so.2" }, { "tcmalloc", "libtcmalloc_minimal.so.4" },
		{ "jemalloc", "libjemalloc.so.2" } };
	void *lib, *take, *give;

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		if (strcmp(name, files[i][0]))
			continue;
		lib = dlopen(files[i][1], RTLD_NOW | RTLD_LOCAL);
		take = lib ? dlsym(lib, "malloc") : NULL;
		give = lib ? dlsym(lib, "free") : NULL;
		if (!take || !give)
			return 0;
		memcpy(&b.malloc_fn, &take, sizeof(take));
		memcpy(&b.free_fn, &give, sizeof(give));
		return 1;
	}
	return -1;
}

static uint32_t number(int argc, char **argv, int at, uint32_t otherwise)
{
	unsigned long value = argc > at ? strtoul(argv[at], NULL, 10) : otherwise;

	return value && value <= BATCH_MAX ? (uint32_t)value : otherwise;
}

int main(int argc, char **argv)
{
	pthread_t consumer;
	int opened;

	if (argc < 3) {
		fprintf(stderr, "usage: bench_remote VARIANT|LIBRARY SIZE [BATCH [ROUNDS]]\n");
		return 2;
	}
	b.size = number(argc, argv, 2, 64);
	b.batch = number(argc, argv, 3, 1000);
	b.rounds = number(argc, argv, 4, 100);
	b.objs = calloc(b.batch, sizeof(*b.objs));
	opened = open_library(argv[1]);
	if (!b.objs || !opened || (opened < 0 && open_variant(argv[1]) < 0)) {
		fprintf(stderr, "bench_remote: %s: no such variant, or its library is not installed\n",
			argv[1]);
		return 2;
	}
	sem_init(&b.produced, 0, 0);
	sem_init(&b.freed, 0, 0);
	if (pthread_create(&consumer, NULL, consume, NULL))
		return 2;
	produce();
	pthread_join(consumer, NULL);
	printf("%s size %zu: %" PRIu64 " frees, %.2f ns each\n", argv[1], b.size,
	       (uint64_t)b.batch * b.rounds, (double)b.ns / ((double)b.batch * b.rounds));
	if (b.v)
		b.v->destroy(b.c);
	alloc_machine_destroy(b.m);
	free(b.objs);
	return 0;
}
