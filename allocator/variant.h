/* SPDX-License-Identifier: MIT */
/*
 * The variant interface: what an allocator under study offers and what an engine may ask of it.
 *
 * A machine (struct alloc_machine) is a set of CPUs and nodes with a page provider; caches live
 * on it.  One variant = one file (family) that fills one struct alloc_variant, registered in one
 * line of variants.c.  There are no globals and no clocks: CPU, node and time come as arguments.
 *
 * Threads: an operation names the CPU it runs on; at any moment at most one thread may be inside
 * an operation with a given CPU number (on all caches together).  Different CPUs run in parallel.
 * create, destroy, set_knob, shrink, rcu_barrier, dump, check and read_counters need every CPU to
 * be idle.
 *
 * Every variant is compiled once per way of synchronising (allocator/sync.h): serial (one thread
 * for all CPUs), native (real locks and atomics) and sim (simulated clock).
 */
#ifndef SLABTAPE_ALLOCATOR_VARIANT_H
#define SLABTAPE_ALLOCATOR_VARIANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/counters.h"

#pragma GCC visibility push(default) /* libslab's public functions */

struct alloc_cache;
struct alloc_machine;
struct alloc_observer;
struct alloc_sheaf; /* a prefilled sheaf, opaque, owned by the variant */
struct alloc_slab;

#define ALLOC_NODE_ANY (-1)
#define ALLOC_CPU_MAX 4096
#define ALLOC_NODE_MAX 256

/* Request flags; same values as enum tape_gfp (asserted where both are seen). */
enum alloc_gfp {
	ALLOC_GFP_MAY_BLOCK = 1 << 0,
	ALLOC_GFP_MAY_SPIN = 1 << 1,
	ALLOC_GFP_THISNODE = 1 << 5,
	ALLOC_GFP_NOFAIL = 1 << 6,
};

enum alloc_sync_kind { ALLOC_SYNC_SERIAL = 0, ALLOC_SYNC_NATIVE, ALLOC_SYNC_SIM, ALLOC_SYNC_MAX };

struct alloc_machine_config {
	uint32_t cpus;		  /* present (= possible) CPUs, ids 0..cpus-1 */
	uint32_t nodes;		  /* memory nodes, ids 0..nodes-1 */
	const uint16_t *cpu_node; /* @cpus entries, each < @nodes */
	const uint8_t *distance;  /* @nodes x @nodes, row = from; NULL: node i sees i, i+1, ... mod N */
	uint64_t seed;		  /* remote_node_defrag_ratio draws and the fragmentation model */
	uint64_t node_pages;	  /* pages a node may hand out; 0 = as many as fit the arena */
	uint32_t high_order_fail_permille; /* share of order > 0 requests that fail at random */
	enum alloc_sync_kind sync;
	const struct alloc_observer *observer; /* NULL: nobody listens; borrowed */
};

/* Errors are -errno (-EINVAL, -ENOMEM).  The caller destroys the machine after its caches. */
int alloc_machine_create(const struct alloc_machine_config *cfg, struct alloc_machine **ret_m);
void alloc_machine_destroy(struct alloc_machine *m); /* NULL is accepted */
/* Pages now held by caches, all nodes.  0 after every cache was destroyed. */
uint64_t alloc_machine_pages(const struct alloc_machine *m);

struct alloc_knob_value {
	const char *name; /* sysfs spelling, or a name the variant documents */
	int64_t value;
};

enum alloc_cache_flag { ALLOC_F_HWCACHE_ALIGN = 1, ALLOC_F_RCU = 2, ALLOC_F_CTOR = 4 };

struct alloc_cache_config {
	const char *name;     /* copied */
	uint32_t object_size; /* bytes, 1..4 MiB */
	uint32_t align;	      /* bytes, 0 or a power of two */
	uint32_t flags;	      /* enum alloc_cache_flag */
	const struct alloc_knob_value *knobs; /* applied at creation; unknown name: -EINVAL */
	size_t nr_knobs;
};

/* How one knob of a variant behaves; `variants` prints these. */
struct alloc_knob {
	const char *name;
	const char *what;  /* one line, with the unit */
	int64_t min, max;  /* accepted range, inclusive */
	const char *value; /* default, as text: a number or a formula's name */
	bool at_create;	   /* true: only before the first operation */
};

/* Where the recording says an allocation came from (replay --warm address, --follow). */
struct alloc_place {
	struct alloc_slab *slab; /* the variant's slab for that page, or NULL: none known yet */
	uint32_t slab_id;	 /* id of *slab when it was last seen; another id: the slab is gone */
	uint32_t index;		 /* position of the object in the slab */
};

/* Receiver of a state dump in the form of a golden's "final"; see allocator/dump.h. */
struct alloc_dump;

/* Receiver of counters: @cpu is the CPU charged, @value may be negative only for state values. */
typedef void (*alloc_counter_fn)(void *ctx, uint32_t cpu, const char *name, int64_t value);

/* Derived values as sysfs shows them (specification 1.12). */
struct alloc_cache_state {
	uint64_t slabs, total_objects, objects, partial, objects_partial;
	uint64_t cpu_slabs, slabs_cpu_partial;	/* in slabs */
	uint64_t cached_objs;			/* in cpu freelists, sheaves, barns, array caches */
	uint64_t full_sheaves, empty_sheaves;
};

/* What a node's CPUs and the node itself keep for later allocations. */
struct alloc_cached {
	uint64_t objs; /* in cpu freelists, sheaves, barns, array caches, queues */
	uint64_t full_sheaves, empty_sheaves; /* of its barn */
};

/* Receiver of objects. */
typedef void (*alloc_obj_fn)(void *ctx, void *obj);

struct alloc_variant {
	uint32_t struct_size;	/* bytes; fields may only be added at the end */
	const char *name;	/* CLI spelling, unique */
	const char *era;	/* kernel versions or year */
	const char *origin;	/* kernel tag + path, or mailing-list thread */
	const char *what;	/* one line */
	const uint8_t *counters;/* enum alloc_counter values it has, the kernel's order */
	uint32_t nr_counters;
	const struct alloc_knob *knobs;
	uint32_t nr_knobs;

	/* mandatory */
	int (*create)(struct alloc_machine *m, const struct alloc_cache_config *cfg,
		      struct alloc_cache **ret_cache);
	void (*destroy)(struct alloc_cache *c); /* objects still out are given up with their slabs */
	/* One object, or NULL.  @node: ALLOC_NODE_ANY or the node asked for.  @gfp: enum alloc_gfp. */
	void *(*alloc)(struct alloc_cache *c, uint32_t cpu, int32_t node, uint32_t gfp);
	void (*free)(struct alloc_cache *c, uint32_t cpu, void *obj);
	/* @objs: @nr results in the kernel's array order.  Returns @nr, or 0 and nothing allocated. */
	uint32_t (*alloc_bulk)(struct alloc_cache *c, uint32_t cpu, uint32_t gfp, uint32_t nr,
			       void **objs);
	void (*free_bulk)(struct alloc_cache *c, uint32_t cpu, uint32_t nr, void **objs);
	void (*flush_cpu)(struct alloc_cache *c, uint32_t cpu);
	void (*shrink)(struct alloc_cache *c);
	/* sysfs value; 0, -ENOENT (no such knob) or -EINVAL (outside the kernel's rules). */
	int (*set_knob)(struct alloc_cache *c, const char *name, int64_t value);
	int (*get_knob)(const struct alloc_cache *c, const char *name, int64_t *ret_value);
	void (*state)(const struct alloc_cache *c, struct alloc_cache_state *ret_state);
	/* 0, or -1 with @why filled: which invariant of which slab is broken. */
	int (*check)(const struct alloc_cache *c, char *why, size_t why_bytes);

	/* optional: NULL when the variant has no such thing */
	/*
	 * Free @obj after a grace period: the knob rcu_delay_ns, counted from the CPU's last tick().
	 * A variant with free_rcu has that knob; 0 ends a grace period inside the operation that
	 * began it, which is how time stands still in .ops scripts.  NULL: engines queue.
	 */
	void (*free_rcu)(struct alloc_cache *c, uint32_t cpu, void *obj);
	void (*rcu_barrier)(struct alloc_cache *c); /* all that waits is freed, CPUs in order */
	struct alloc_sheaf *(*prefill)(struct alloc_cache *c, uint32_t cpu, uint32_t gfp,
				       uint32_t objs);
	void *(*sheaf_alloc)(struct alloc_cache *c, uint32_t cpu, struct alloc_sheaf *s);
	/* Sheaves are returned before the cache is destroyed.  0 or -ENOMEM; *s may be replaced. */
	int (*sheaf_refill)(struct alloc_cache *c, uint32_t cpu, uint32_t gfp,
			    struct alloc_sheaf **s, uint32_t objs);
	void (*sheaf_return)(struct alloc_cache *c, uint32_t cpu, struct alloc_sheaf *s);
	/* Timer work of @cpu that is due at @now_ns (reap, trim, unpark, grace periods). */
	void (*tick)(struct alloc_cache *c, uint32_t cpu, uint64_t now_ns);
	/* alloc() with the recorded placement forced; see docs/allocator-model.md "by address". */
	void *(*alloc_placed)(struct alloc_cache *c, uint32_t cpu, int32_t node, uint32_t gfp,
			      const struct alloc_place *want);
	/* NULL: alloc_read_counters() over `counters`. */
	void (*read_counters)(const struct alloc_cache *c, alloc_counter_fn fn, void *ctx);
	/* State at a checkpoint (@full false) or at the end (@full true), as in the goldens. */
	void (*dump)(const struct alloc_cache *c, struct alloc_dump *d, bool full);
	/* Adds to by_node[nodes]; what state() sums up.  NULL: the variant caches nothing. */
	void (*cached)(const struct alloc_cache *c, struct alloc_cached *by_node);
	/*
	 * Mandatory too: every object that is not out, once, wherever it rests; those that wait
	 * for a grace period are included, those of prefilled sheaves not.  Every CPU idle.
	 */
	void (*each_free)(const struct alloc_cache *c, alloc_obj_fn fn, void *ctx);
};

/* The registry: variants by name ("slub" = the newest) for one way of synchronising. */
const struct alloc_variant *alloc_variant_find(const char *name, enum alloc_sync_kind sync);
/* The @i-th variant, or NULL past the end. */
const struct alloc_variant *alloc_variant_at(uint32_t i, enum alloc_sync_kind sync);

/* Every counter the variant has, every CPU, in order: fn(ctx, cpu, name, value). */
void alloc_read_counters(const struct alloc_cache *c, alloc_counter_fn fn, void *ctx);
/* free_class: how often calls of the free-to-slab slow path fell in class 0..3, all CPUs. */
uint64_t alloc_free_class(const struct alloc_cache *c, uint32_t class_index);
const char *alloc_free_class_name(uint32_t class_index);
#define ALLOC_FREE_CLASSES 4u

/* Slab and index of an object of this machine.  @obj must be live (asserted in debug builds). */
struct alloc_slab *alloc_slab_of(const struct alloc_machine *m, const void *obj, uint32_t *ret_index);
/* Identity and size of a slab; id = birth number in its cache, from 0. */
struct alloc_slab_info {
	uint32_t id, inuse, objects;
	uint16_t node;
	uint8_t order, state; /* state: enum alloc_state */
};
void alloc_slab_info(const struct alloc_slab *s, struct alloc_slab_info *ret_info);

/* Cache of a slab, machine of a cache. */
const struct alloc_cache *alloc_slab_cache(const struct alloc_slab *s);
const struct alloc_machine *alloc_cache_machine(const struct alloc_cache *c);

/*
 * Call @fn for every living slab of every cache, in address order.  No CPU may be inside the page
 * provider; @fn must not change anything.
 */
typedef void (*alloc_slab_fn)(void *ctx, struct alloc_slab *s);
void alloc_machine_slabs_each(const struct alloc_machine *m, alloc_slab_fn fn, void *ctx);

/* Geometry of a cache, for results and `explain`. */
struct alloc_geometry {
	uint32_t object_size, size, align, offset; /* bytes */
	uint32_t order, objects;		   /* preferred shape */
	uint32_t min_order, min_objects;	   /* fallback shape */
};
void alloc_cache_geometry(const struct alloc_cache *c, struct alloc_geometry *ret_geometry);

/* Make the pages of this cache fail from now on: 0 none, 1 the preferred order, 2 every order. */
void alloc_cache_page_limit(struct alloc_cache *c, uint32_t level);

/* Refill sizes: calls that obtained @objs usable objects at once; index 0 unused. */
const uint64_t *alloc_refill_hist(const struct alloc_cache *c, uint32_t *ret_entries);

#pragma GCC visibility pop

#endif
