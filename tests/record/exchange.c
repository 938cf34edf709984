/* SPDX-License-Identifier: MIT */
/*
 * Threads that hand each other what they allocate: each swaps a fresh object into a random place
 * of a shared table and frees what stood there, so that most frees are of another thread's
 * object and addresses change hands as fast as the allocator gives them out again.
 *
 * usage: exchange THREADS ROUNDS [LIVES]	(LIVES > 1: that many generations of threads)
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 64
#define THREADS_MAX 64

static _Atomic(void *) places[PLACES];
static long rounds;

static void *work(void *argument)
{
	uint64_t x = (uintptr_t)argument * 0x9e3779b97f4a7c15u + 1;
	unsigned char *last = NULL;

	for (long i = 0; i < rounds; i++) {
		size_t size;
		void *p;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		size = 16 + x % 500;
		switch (x >> 20 & 15) {
		case 0:
			p = calloc(1, size);
			break;
		case 1:
			p = aligned_alloc(64, size & ~(size_t)63 ? size & ~(size_t)63 : 64);
			break;
		case 2:
			p = realloc(malloc(8), size);
			break;
		default:
			p = malloc(size);
		}
		if (!p)
			abort();
		memset(p, 1, 8);
		free(atomic_exchange(&places[x >> 40 & (PLACES - 1)], p));
	}
	free(last);
	return NULL;
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? strtol(argv[1], NULL, 10) : 4;
	long lives = argc > 3 ? strtol(argv[3], NULL, 10) : 1;
	pthread_t ids[THREADS_MAX];

	rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 100000;
	if (threads < 1 || threads > THREADS_MAX)
		return 2;
	for (long life = 0; life < lives; life++) {
		for (long i = 0; i < threads; i++)
			if (pthread_create(&ids[i], NULL, work, (void *)(uintptr_t)(i + 1)))
				return 1;
		for (long i = 0; i < threads; i++)
			pthread_join(ids[i], NULL);
	}
	for (int i = 0; i < PLACES; i++)
		free(places[i]);
	printf("%ld threads, %ld rounds, %ld lives\n", threads, rounds, lives);
	return 0;
}
