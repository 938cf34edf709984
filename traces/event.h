/* SPDX-License-Identifier: MIT */
/*
 * One event of a tape: the vocabulary every other module speaks.
 *
 * Events stand in one total order, their sequence number seq (0, 1, 2, ... without gaps over all
 * CPUs).  An event says that one operation of an allocator's interface happened on one CPU; rows
 * that belong to one call (bulk operations) share `bulk`.
 */
#ifndef SLABTAPE_TRACES_EVENT_H
#define SLABTAPE_TRACES_EVENT_H

#include <stdbool.h>
#include <stdint.h>

/* Operations.  The values are part of the file format: add at the end, never renumber. */
enum tape_op {
	TAPE_OP_ALLOC = 0,
	TAPE_OP_FREE,
	TAPE_OP_FREE_RCU,     /* freed after a grace period */
	TAPE_OP_ALLOC_BULK,   /* one row per object, rows of a call share `bulk`, array order */
	TAPE_OP_FREE_BULK,    /* one row per object, rows of a call share `bulk`, array order */
	TAPE_OP_PREFILL,      /* arg: tape_sheaf_arg(slot, objects) */
	TAPE_OP_SHEAF_ALLOC,  /* object taken from sheaf arg */
	TAPE_OP_SHEAF_REFILL, /* arg: tape_sheaf_arg(slot, objects) */
	TAPE_OP_SHEAF_RETURN, /* arg: sheaf slot */
	TAPE_OP_FLUSH,	      /* flush this CPU's caches of one cache */
	TAPE_OP_SHRINK,
	TAPE_OP_RCU_BARRIER,
	TAPE_OP_PAGE_LIMIT,   /* arg: 0 normal, 1 preferred order fails, 2 every order fails */
	TAPE_OP_CHECKPOINT,
	TAPE_OP_MARKER,	      /* arg: index in the marker table's order */
	TAPE_OP_FORK,	      /* arg: pid of the child; tid: the caller */
	TAPE_OP_EXEC,
	TAPE_OP_EXIT,
	TAPE_OP_MAX
};

/* gfp, normalised by name.  Part of the file format. */
enum tape_gfp {
	TAPE_GFP_MAY_BLOCK = 1 << 0, /* may sleep and reclaim */
	TAPE_GFP_MAY_SPIN = 1 << 1,
	TAPE_GFP_ACCOUNT = 1 << 2,
	TAPE_GFP_RECLAIMABLE = 1 << 3,
	TAPE_GFP_DMA = 1 << 4,
	TAPE_GFP_THISNODE = 1 << 5,
	TAPE_GFP_NOFAIL = 1 << 6,
	TAPE_GFP_ZERO = 1 << 7,
};
#define TAPE_GFP_KERNEL (TAPE_GFP_MAY_BLOCK | TAPE_GFP_MAY_SPIN) /* an ordinary request */
#define TAPE_GFP_NOWAIT TAPE_GFP_MAY_SPIN			 /* may not block */

enum tape_ctx { TAPE_CTX_UNKNOWN = 0, TAPE_CTX_TASK, TAPE_CTX_SOFTIRQ, TAPE_CTX_HARDIRQ, TAPE_CTX_NMI,
	TAPE_CTX_MAX };

/* Flags of one event.  Part of the file format. */
enum tape_flag {
	TAPE_F_INFERRED = 1 << 0,  /* not seen by the tracer; true time within [ts_lo, ts_hi] */
	TAPE_F_ORPHAN = 1 << 1,	   /* free of an object allocated before the recording */
	TAPE_F_UNKNOWN = 1 << 2,   /* inside or across a window of declared loss */
	TAPE_F_INHERITED = 1 << 3, /* object came to this address space by fork */
	TAPE_F_FAILED = 1 << 4,	   /* the recorded allocation returned NULL */
	TAPE_F_UNNAMED = 1 << 5,   /* cache guessed from the neighbours on its page, or unknown */
	TAPE_F_BIG = 1 << 6,	   /* kmalloc above the largest class: pages, not a slab object */
};

#define TAPE_NO_OBJECT UINT64_MAX /* object of rows that name none */
#define TAPE_NO_SLOT UINT32_MAX
#define TAPE_NO_CACHE UINT16_MAX  /* cache of rows that name none (SQL: NULL) */
#define TAPE_CACHE_UNKNOWN 0	  /* cache id 0: an object whose cache nobody named */
#define TAPE_NODE_NONE (-1)
#define TAPE_CPU_MAX 4096	  /* limits: a value beyond is TAPE_E_LIMIT */
#define TAPE_NODE_MAX 256
#define TAPE_CACHE_MAX 65000

/*
 * One event as a row.  Rows are for building and looking at single events; loops use
 * struct tape_batch (columns).  Times are ns since the start of the tape.
 */
struct tape_event {
	uint64_t ts;	   /* ns since tape start, never decreasing with seq */
	uint64_t ts_lo;	   /* inferred events: window of the true time; else equal to ts */
	uint64_t ts_hi;
	uint64_t object;   /* dense id, new for each allocation; TAPE_NO_OBJECT */
	uint64_t address;  /* as recorded; 0 unknown */
	uint64_t size;	   /* requested bytes; 0 unknown or not an allocation */
	int64_t arg;	   /* meaning by op, see enum tape_op */
	uint32_t slot;	   /* smallest number that was free at the alloc; reused after the free */
	uint32_t site;	   /* id in the site table; 0 unknown */
	uint32_t bulk;	   /* id of the call, from 1; 0 single */
	int32_t tid;	   /* 0 unknown */
	uint16_t cpu;
	uint16_t cache;	   /* id in the cache table */
	int16_t node_req;  /* node asked for; TAPE_NODE_NONE */
	int16_t mem_node;  /* node of the memory; TAPE_NODE_NONE unknown */
	uint16_t gfp;	   /* enum tape_gfp */
	uint16_t flags;	   /* enum tape_flag */
	uint8_t op;	   /* enum tape_op */
	uint8_t ctx;	   /* enum tape_ctx */
};

/* A sheaf op's two numbers in one arg: the slot (global, not per CPU) and an object count. */
static inline int64_t tape_sheaf_arg(uint32_t sheaf, uint32_t objs)
{
	return (int64_t)((uint64_t)sheaf << 32 | objs);
}
static inline uint32_t tape_sheaf_slot(int64_t arg)
{
	return (uint32_t)((uint64_t)arg >> 32);
}
static inline uint32_t tape_sheaf_objs(int64_t arg)
{
	return (uint32_t)arg;
}

/* True for ops that create an object (alloc, alloc_bulk, sheaf_alloc) or end one. */
static inline bool tape_op_allocates(uint8_t op)
{
	return op == TAPE_OP_ALLOC || op == TAPE_OP_ALLOC_BULK || op == TAPE_OP_SHEAF_ALLOC;
}
static inline bool tape_op_frees(uint8_t op)
{
	return op == TAPE_OP_FREE || op == TAPE_OP_FREE_RCU || op == TAPE_OP_FREE_BULK;
}

/* An event with every field at its "nothing said" value (the value absent columns read as). */
struct tape_event tape_event_blank(void);

/* SQL spelling of an op ("alloc", "free_rcu", ...), and back.  -1 when @name is no op. */
const char *tape_op_name(uint8_t op);
int tape_op_parse(const char *name);
const char *tape_ctx_name(uint8_t ctx);

#endif
