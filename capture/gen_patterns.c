/* SPDX-License-Identifier: MIT */
/*
 * The patterns: what one CPU does in one step.  The source of each shape stands in its table.
 */
#include <errno.h>
#include <stdlib.h>

#include "capture/gen_internal.h"

/* ---- tcp-rr: request/response over many connections ---- */

/*
 * A connection's process runs on one CPU, its interrupts on another.  Received data is allocated
 * on the interrupt CPU and freed by the process; sent data the other way round.  One buffer
 * (kmalloc-256 head, kmalloc-2k data) is under way per connection.
 */
struct tcp_rr {
	struct gen_object *head, *data; /* [connections] */
	uint8_t *received;		/* [connections] who holds what is under way */
	uint64_t connections;
};
enum { TCP_CONNECTIONS };
enum { TCP_SITE_RX = 1, TCP_SITE_TX, TCP_SITE_FREE };

static int tcp_rr_init(struct gen *g)
{
	struct tcp_rr *t = g->state = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->connections = (uint64_t)g->param[TCP_CONNECTIONS];
	if (!t->connections)
		t->connections = 12ull * g->cfg->cpus;
	t->head = gen_objects(g, t->connections);
	t->data = gen_objects(g, t->connections);
	t->received = gen_zeroed(g, t->connections, 1);
	gen_cache(g, 1, "kmalloc-256", 256);
	gen_cache(g, 2, "kmalloc-2k", 2048);
	return g->error;
}

static void tcp_rr_step(struct gen *g, uint32_t cpu)
{
	struct tcp_rr *t = g->state;
	uint64_t i = gen_below(g, t->connections);
	uint32_t cpus = g->cfg->cpus, others = cpus > 1 ? cpus - 1 : 1;
	uint32_t process = (uint32_t)(i % cpus);
	uint32_t irq = (uint32_t)((process + 1 + i / cpus % others) % cpus);
	uint32_t here = t->received[i] ? process : irq;
	uint32_t site = t->received[i] ? TCP_SITE_TX : TCP_SITE_RX;

	(void)cpu; /* the connection decides where it runs */
	gen_free(g, here, &t->data[i], TAPE_OP_FREE, TCP_SITE_FREE);
	gen_free(g, here, &t->head[i], TAPE_OP_FREE, TCP_SITE_FREE);
	t->head[i] = gen_alloc(g, here, 1, 232, site);
	t->data[i] = gen_alloc(g, here, 2, 1700, site);
	t->received[i] = !t->received[i];
}

static void tcp_rr_fini(struct gen *g)
{
	struct tcp_rr *t = g->state;

	free(t->head);
	free(t->data);
	free(t->received);
	free(t);
}

const struct gen_ops gen_tcp_rr = {
	.pattern = { "tcp-rr", "request/response: buffers allocated on one CPU, freed on another",
		     "netperf TCP_RR, Rientjes 2009 (SLUB partial list thrashing)",
		     { { "connections", "connections; 0: 12 per CPU", 0, 0, 1000000 } } },
	.init = tcp_rr_init,
	.step = tcp_rr_step,
	.fini = tcp_rr_fini,
};

/* ---- mmap1: prefilled sheaves and kfree_rcu ---- */

/*
 * One step is one change of the tree: a sheaf is prefilled, two or three nodes are taken from it,
 * the sheaf is returned; as many older nodes go to kfree_rcu.  (2026 thread: 2.49 objects a
 * prefill, every object freed by kfree_rcu.)
 */
struct mmap1 {
	struct gen_object *nodes; /* [cpus][MMAP1_LIVE] ring of live nodes */
	uint32_t *at;		  /* [cpus] */
};
enum { MMAP1_LIVE = 64 };
enum { MMAP1_PREFILL };

static int mmap1_init(struct gen *g)
{
	struct mmap1 *m = g->state = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->nodes = gen_objects(g, (uint64_t)g->cfg->cpus * MMAP1_LIVE);
	m->at = gen_zeroed(g, g->cfg->cpus, sizeof(*m->at));
	gen_cache(g, 1, "maple_node", 256);
	gen_knob(g, 1, "sheaf_capacity", "32"); /* what maple_node asks for */
	return g->error;
}

static void mmap1_step(struct gen *g, uint32_t cpu)
{
	struct mmap1 *m = g->state;
	struct gen_object *ring = m->nodes + (size_t)cpu * MMAP1_LIVE;
	uint32_t objs = 2 + (uint32_t)(gen_random(g) & 1);

	gen_sheaf(g, cpu, 1, TAPE_OP_PREFILL, cpu, (uint32_t)g->param[MMAP1_PREFILL]);
	for (uint32_t i = 0; i < objs; i++) {
		struct gen_object *o = &ring[m->at[cpu]++ % MMAP1_LIVE];

		gen_free(g, cpu, o, TAPE_OP_FREE_RCU, 1);
		*o = gen_sheaf_alloc(g, cpu, 1, 256, cpu);
	}
	gen_sheaf(g, cpu, 1, TAPE_OP_SHEAF_RETURN, cpu, 0);
}

static void mmap1_fini(struct gen *g)
{
	struct mmap1 *m = g->state;

	free(m->nodes);
	free(m->at);
	free(m);
}

const struct gen_ops gen_mmap1 = {
	.pattern = { "mmap1", "maple nodes from prefilled sheaves, freed by kfree_rcu",
		     "will-it-scale mmap1 on 192 CPUs, Li 2026 (slab parking)",
		     { { "prefill", "objects asked for per prefill", 10, 3, 32 } } },
	.init = mmap1_init,
	.step = mmap1_step,
	.fini = mmap1_fini,
};

/* ---- hackbench: bursts of messages from senders to receivers ---- */

struct hackbench {
	struct gen_object *head, *data; /* [pipes][depth] rings */
	uint32_t *sent, *read;		/* [pipes] messages so far */
};
enum { HACK_GROUPS, HACK_DEPTH, HACK_BURST };
enum { HACK_PIPES_PER_GROUP = 20 };

static int hackbench_init(struct gen *g)
{
	struct hackbench *h = g->state = calloc(1, sizeof(*h));
	uint64_t pipes = (uint64_t)g->param[HACK_GROUPS] * HACK_PIPES_PER_GROUP;
	uint64_t depth = (uint64_t)g->param[HACK_DEPTH];

	if (!h)
		return -ENOMEM;
	h->head = gen_objects(g, pipes * depth);
	h->data = gen_objects(g, pipes * depth);
	h->sent = gen_zeroed(g, pipes, sizeof(*h->sent));
	h->read = gen_zeroed(g, pipes, sizeof(*h->read));
	gen_cache(g, 1, "skbuff_head_cache", 232);
	gen_cache(g, 2, "kmalloc-1k", 1024);
	return g->error;
}

static bool hackbench_blocked(const struct hackbench *h, uint64_t pipe, uint32_t depth, bool send)
{
	uint32_t queued = h->sent[pipe] - h->read[pipe];

	return send ? queued == depth : queued == 0;
}

/* A task that runs on @cpu sends or receives a burst on one pipe, until it would block. */
static void hackbench_step(struct gen *g, uint32_t cpu)
{
	struct hackbench *h = g->state;
	uint32_t depth = (uint32_t)g->param[HACK_DEPTH], at;
	uint64_t pipe = gen_below(g, (uint64_t)g->param[HACK_GROUPS] * HACK_PIPES_PER_GROUP);
	struct gen_object *head = h->head + pipe * depth, *data = h->data + pipe * depth;
	uint32_t burst = 1 + (uint32_t)gen_below(g, (uint64_t)g->param[HACK_BURST]);
	bool send = gen_random(g) & 1;

	for (; burst && !hackbench_blocked(h, pipe, depth, send); burst--) {
		if (send) {
			at = h->sent[pipe]++ % depth;
			head[at] = gen_alloc(g, cpu, 1, 232, 1);
			data[at] = gen_alloc(g, cpu, 2, 704, 1);
		} else {
			at = h->read[pipe]++ % depth;
			gen_free(g, cpu, &data[at], TAPE_OP_FREE, 2);
			gen_free(g, cpu, &head[at], TAPE_OP_FREE, 2);
		}
	}
}

static void hackbench_fini(struct gen *g)
{
	struct hackbench *h = g->state;

	free(h->head);
	free(h->data);
	free(h->sent);
	free(h->read);
	free(h);
}

const struct gen_ops gen_hackbench = {
	.pattern = { "hackbench", "bursts of messages between tasks that run anywhere",
		     "hackbench over sockets; 2011 per-cpu partial lists, 2023 object accounting",
		     { { "groups", "groups of 20 senders and 20 receivers", 4, 1, 1000 },
		       { "depth", "messages a pipe holds", 64, 1, 4096 },
		       { "burst", "longest burst, in messages", 32, 1, 4096 } } },
	.init = hackbench_init,
	.step = hackbench_step,
	.fini = hackbench_fini,
};

/* ---- thrash: one free per slab, round robin ---- */

/*
 * Every CPU owns a window of objects, filled once; from then on another CPU frees one object of
 * each slab in turn and the owner allocates one: each slab on a partial list has one object free.
 */
struct thrash {
	struct gen_object *objs; /* [cpus][slabs * objs] */
	uint64_t *filled;	 /* [cpus] */
	uint64_t *turn;		 /* [cpus] */
};
enum { THRASH_SIZE, THRASH_SLABS, THRASH_OBJS };

static int thrash_init(struct gen *g)
{
	struct thrash *t = g->state = calloc(1, sizeof(*t));
	uint64_t window = (uint64_t)g->param[THRASH_SLABS] * (uint64_t)g->param[THRASH_OBJS];

	if (!t)
		return -ENOMEM;
	t->objs = gen_objects(g, g->cfg->cpus * window);
	t->filled = gen_zeroed(g, g->cfg->cpus, sizeof(*t->filled));
	t->turn = gen_zeroed(g, g->cfg->cpus, sizeof(*t->turn));
	gen_cache(g, 1, "thrash", (uint64_t)g->param[THRASH_SIZE]);
	return g->error;
}

static void thrash_step(struct gen *g, uint32_t cpu)
{
	struct thrash *t = g->state;
	uint64_t objs = (uint64_t)g->param[THRASH_OBJS], slabs = (uint64_t)g->param[THRASH_SLABS];
	uint64_t size = (uint64_t)g->param[THRASH_SIZE], turn;
	struct gen_object *window = t->objs + cpu * slabs * objs, *o;

	if (t->filled[cpu] < slabs * objs) {
		window[t->filled[cpu]++] = gen_alloc(g, cpu, 1, size, 1);
		return;
	}
	turn = t->turn[cpu]++;
	o = &window[turn % slabs * objs + turn / slabs % objs];
	gen_free(g, gen_other_cpu(g, cpu), o, TAPE_OP_FREE, 2);
	*o = gen_alloc(g, cpu, 1, size, 1);
}

static void thrash_fini(struct gen *g)
{
	struct thrash *t = g->state;

	free(t->objs);
	free(t->filled);
	free(t->turn);
	free(t);
}

const struct gen_ops gen_thrash = {
	.pattern = { "thrash", "one free per slab, round robin, on another CPU",
		     "the diagnosis of Rientjes 2009: one or two objects per refill",
		     { { "size", "object size in bytes", 256, 8, 8192 },
		       { "slabs", "slabs per CPU", 64, 1, 100000 },
		       { "objs", "objects per slab of the variant in mind", 32, 1, 4096 } } },
	.init = thrash_init,
	.step = thrash_step,
	.fini = thrash_fini,
};

/* ---- uniform: random sizes and lifetimes ---- */

struct uniform {
	struct gen_object *objs; /* [cpus][live] */
};
enum { UNI_LIVE, UNI_REMOTE };
static const struct {
	const char *name;
	uint16_t bytes;
} uniform_classes[] = {
	{ "kmalloc-16", 16 },	{ "kmalloc-32", 32 },	{ "kmalloc-64", 64 },  { "kmalloc-128", 128 },
	{ "kmalloc-256", 256 }, { "kmalloc-512", 512 }, { "kmalloc-1k", 1024 }, { "kmalloc-2k", 2048 },
};
#define UNIFORM_CLASSES (sizeof(uniform_classes) / sizeof(*uniform_classes))

static int uniform_init(struct gen *g)
{
	struct uniform *u = g->state = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->objs = gen_objects(g, (uint64_t)g->cfg->cpus * (uint64_t)g->param[UNI_LIVE]);
	for (uint16_t i = 0; i < UNIFORM_CLASSES; i++)
		gen_cache(g, (uint16_t)(i + 1), uniform_classes[i].name, uniform_classes[i].bytes);
	return g->error;
}

static void uniform_step(struct gen *g, uint32_t cpu)
{
	struct uniform *u = g->state;
	uint64_t live = (uint64_t)g->param[UNI_LIVE];
	struct gen_object *o = &u->objs[cpu * live + gen_below(g, live)];
	uint64_t draw = gen_random(g);
	uint16_t class = (uint16_t)(draw % UNIFORM_CLASSES);
	bool remote = (draw >> 32) % 100 < (uint64_t)g->param[UNI_REMOTE];

	if (o->object != TAPE_NO_OBJECT)
		gen_free(g, remote ? gen_other_cpu(g, cpu) : cpu, o, TAPE_OP_FREE, 2);
	else
		*o = gen_alloc(g, cpu, (uint16_t)(class + 1), uniform_classes[class].bytes - (draw >> 8) % 8,
			       1);
}

static void uniform_fini(struct gen *g)
{
	struct uniform *u = g->state;

	free(u->objs);
	free(u);
}

const struct gen_ops gen_uniform = {
	.pattern = { "uniform", "random sizes, lifetimes and CPUs", "none: a neutral load for benches",
		     { { "live", "objects alive per CPU, twice the mean", 4096, 1, 10000000 },
		       { "remote", "frees on another CPU, percent", 20, 0, 100 } } },
	.init = uniform_init,
	.step = uniform_step,
	.fini = uniform_fini,
};
