/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "replay/calibrate_internal.h"

#define EXCHANGES 200u	 /* per round: short, so that some rounds are not interrupted */
#define ROUNDS_FACTOR 8u /* and so many more of them */

double calibrate_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static bool pin(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	return !sched_setaffinity(0, sizeof(one), &one);
}

/* A CPU of node @node, seen before as the first of its node or of another. */
static void note_cpu(struct calibrate_host *h, int cpu, unsigned int node, int *first_of_node)
{
	h->cpus++;
	if (first_of_node[node] < 0) {
		first_of_node[node] = cpu;
		h->nodes++;
	} else if (!h->near.found) {
		h->near = (struct calibrate_pair){ { first_of_node[node], cpu }, true };
	}
	for (unsigned int other = 0; other < 64 && !h->far.found; other++)
		if (other != node && first_of_node[other] >= 0)
			h->far = (struct calibrate_pair){ { first_of_node[other], cpu }, true };
}

void calibrate_host_get(struct calibrate_host *ret_host)
{
	struct calibrate_host h = { 0 };
	int first_of_node[64];
	cpu_set_t may;

	for (int i = 0; i < 64; i++)
		first_of_node[i] = -1;
	if (sched_getaffinity(0, sizeof(may), &may)) {
		CPU_ZERO(&may);
		CPU_SET(0, &may);
	}
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		unsigned int here, node;

		if (CPU_ISSET((size_t)cpu, &may) && pin(cpu) && !getcpu(&here, &node))
			note_cpu(&h, cpu, node % 64, first_of_node);
	}
	sched_setaffinity(0, sizeof(may), &may);
	*ret_host = h;
}

/*
 * Two threads that meet at the start of every round.  A round is one exchange, or two of which the
 * difference counts: taken next to each other they see the same neighbours on the machine.
 */
struct duel {
	const struct calibrate_pair *pair;
	uint32_t rounds;
	void (*exchange)(struct duel *d, uint32_t side);
	void (*less)(struct duel *d, uint32_t side); /* NULL: nothing is subtracted */
	double *ns;				     /* [rounds] of one exchange */
	pthread_barrier_t meet;
	/* Sync: atomic; each in a line of its own. */
	uint64_t turn __attribute__((aligned(64)));
	uint64_t next_ticket __attribute__((aligned(64)));
	uint64_t ready __attribute__((aligned(64)));
};

struct side {
	struct duel *d;
	uint32_t number;
};

static void spin_until(const uint64_t *word, uint64_t value)
{
	/* Acquire pairs with the release of the other side's store. */
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
		;
}

/* The line goes back and forth. */
static void exchange_line(struct duel *d, uint32_t side)
{
	for (uint64_t i = side; i < EXCHANGES; i += 2) {
		spin_until(&d->turn, i);
		__atomic_store_n(&d->turn, i + 1, __ATOMIC_RELEASE);
	}
}

/* Work under the lock, long enough for the other to ask meanwhile. */
static void hold(void)
{
	for (volatile uint32_t i = 0; i < 300;)
		i = i + 1;
}

/* A ticket lock that is always wanted by both. */
static void exchange_lock(struct duel *d, uint32_t side)
{
	(void)side;
	for (uint32_t i = 0; i < EXCHANGES / 2; i++) {
		/* Relaxed: only the order of `turn` publishes anything. */
		uint64_t ticket = __atomic_fetch_add(&d->next_ticket, 1, __ATOMIC_RELAXED);

		spin_until(&d->turn, ticket);
		hold();
		__atomic_store_n(&d->turn, ticket + 1, __ATOMIC_RELEASE);
	}
}

/* The same work without the lock, beside a CPU that spins: the two may share a core. */
static void hold_alone(struct duel *d, uint32_t side)
{
	if (side) {
		spin_until(&d->turn, 1);
		return;
	}
	for (uint32_t i = 0; i < EXCHANGES; i++)
		hold();
	__atomic_store_n(&d->turn, 1, __ATOMIC_RELEASE); /* pairs with spin_until() */
}

/* Both begin within one line transfer: a barrier that sleeps would let one finish alone. */
static void start_together(struct duel *d)
{
	pthread_barrier_wait(&d->meet);
	/* Full order: each adds itself and waits for both. */
	__atomic_add_fetch(&d->ready, 1, __ATOMIC_SEQ_CST);
	spin_until(&d->ready, 2);
}

static double one_exchange(struct side *s, void (*exchange)(struct duel *d, uint32_t side))
{
	struct duel *d = s->d;
	double begin_ns;

	if (!s->number)
		d->turn = d->next_ticket = d->ready = 0;
	start_together(d);
	begin_ns = calibrate_now_ns();
	exchange(d, s->number);
	pthread_barrier_wait(&d->meet);
	return (calibrate_now_ns() - begin_ns) / EXCHANGES;
}

static void *fight(void *arg)
{
	struct side *s = arg;
	struct duel *d = s->d;

	pin(d->pair->cpu[s->number]);
	for (uint32_t round = 0; round < d->rounds; round++) {
		double ns = one_exchange(s, d->exchange);

		if (d->less)
			ns -= one_exchange(s, d->less);
		if (!s->number)
			d->ns[round] = ns;
	}
	return NULL;
}

/* Both sides, one of them on the calling thread, whose affinity is as before afterwards. */
static int fight_both(struct duel *d)
{
	struct side sides[2] = { { d, 0 }, { d, 1 } };
	pthread_t other;
	cpu_set_t before;
	int rc;

	if (sched_getaffinity(0, sizeof(before), &before) ||
	    pthread_barrier_init(&d->meet, NULL, 2))
		return -1;
	rc = pthread_create(&other, NULL, fight, &sides[1]);
	if (!rc) {
		fight(&sides[0]);
		pthread_join(other, NULL);
	}
	pthread_barrier_destroy(&d->meet);
	sched_setaffinity(0, sizeof(before), &before);
	return rc ? -1 : 0;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The smallest round, or the middle one of differences.  < 0: no thread, no memory. */
static double duel(const struct calibrate_pair *p, uint32_t rounds,
		   void (*exchange)(struct duel *d, uint32_t side),
		   void (*less)(struct duel *d, uint32_t side))
{
	struct duel d = { .pair = p, .rounds = rounds * ROUNDS_FACTOR, .exchange = exchange,
			  .less = less, .ns = calloc(rounds * ROUNDS_FACTOR, sizeof(double)) };
	double ns = -1;

	if (d.ns && !fight_both(&d)) {
		qsort(d.ns, d.rounds, sizeof(double), by_value);
		ns = less ? d.ns[d.rounds / 2] : d.ns[0];
	}
	free(d.ns);
	return ns;
}

double calibrate_line_ns(const struct calibrate_pair *p, uint32_t rounds)
{
	return duel(p, rounds, exchange_line, NULL);
}

double calibrate_handover_ns(const struct calibrate_pair *p, uint32_t rounds)
{
	return duel(p, rounds, exchange_lock, hold_alone);
}
