/* SPDX-License-Identifier: MIT */
/* What patterns use: random numbers, and events with objects, slots and time filled in. */
#ifndef SLABTAPE_CAPTURE_GEN_INTERNAL_H
#define SLABTAPE_CAPTURE_GEN_INTERNAL_H

#include <stdint.h>

#include "capture/gen.h"
#include "traces/event.h"
#include "traces/freeset.h"

/* A live object of the generator; object TAPE_NO_OBJECT: none. */
struct gen_object {
	uint64_t object;
	uint32_t slot;
	uint16_t cache;
};
#define GEN_NO_OBJECT ((struct gen_object){ TAPE_NO_OBJECT, TAPE_NO_SLOT, 0 })

struct gen {
	struct tape *tape;
	const struct gen_config *cfg;
	const struct gen_pattern *pattern;
	int64_t param[GEN_PARAMS_MAX]; /* in the order of pattern->params */
	uint64_t random, ts, events, next_object;
	uint32_t slots; /* slots ever used */
	struct tape_freeset free_slots;
	struct tape_err *reterr;
	int error; /* first failure; from then on nothing is written */
	void *state;
};

/* One kind of pattern: make the state, do one step of @cpu, free the state. */
struct gen_ops {
	struct gen_pattern pattern;
	int (*init)(struct gen *g);
	void (*step)(struct gen *g, uint32_t cpu);
	void (*fini)(struct gen *g); /* also after a failed init */
};
extern const struct gen_ops gen_tcp_rr, gen_mmap1, gen_hackbench, gen_thrash, gen_uniform;

uint64_t gen_random(struct gen *g);
/* Uniform in [0, @n). */
static inline uint64_t gen_below(struct gen *g, uint64_t n)
{
	return ((gen_random(g) >> 32) * n) >> 32;
}
/* A CPU other than @cpu; @cpu itself when there is only one. */
uint32_t gen_other_cpu(struct gen *g, uint32_t cpu);

/* Name a cache; ids from 1. */
void gen_cache(struct gen *g, uint16_t cache, const char *name, uint64_t object_size);
void gen_knob(struct gen *g, uint16_t cache, const char *knob, const char *value);
/* @site is a small number of the pattern, from 1. */
struct gen_object gen_alloc(struct gen *g, uint32_t cpu, uint16_t cache, uint64_t size,
			    uint32_t site);
/* @op: TAPE_OP_FREE or TAPE_OP_FREE_RCU.  *@o becomes GEN_NO_OBJECT; none: no event. */
void gen_free(struct gen *g, uint32_t cpu, struct gen_object *o, uint8_t op, uint32_t site);
/* Sheaf operations of @cpu on sheaf slot @sheaf. */
void gen_sheaf(struct gen *g, uint32_t cpu, uint16_t cache, uint8_t op, uint32_t sheaf,
	       uint32_t objs);
struct gen_object gen_sheaf_alloc(struct gen *g, uint32_t cpu, uint16_t cache, uint64_t size,
				  uint32_t sheaf);
/* malloc'ed array of @nr objects, all GEN_NO_OBJECT; NULL sets g->error. */
struct gen_object *gen_objects(struct gen *g, uint64_t nr);
/* calloc; NULL sets g->error. */
void *gen_zeroed(struct gen *g, uint64_t nr, size_t bytes);

#endif
