/* SPDX-License-Identifier: MIT */
#include "traces/event.h"

#include <assert.h>
#include <string.h>

static const char *const op_names[TAPE_OP_MAX] = {
	[TAPE_OP_ALLOC] = "alloc",
	[TAPE_OP_FREE] = "free",
	[TAPE_OP_FREE_RCU] = "free_rcu",
	[TAPE_OP_ALLOC_BULK] = "alloc_bulk",
	[TAPE_OP_FREE_BULK] = "free_bulk",
	[TAPE_OP_PREFILL] = "prefill",
	[TAPE_OP_SHEAF_ALLOC] = "sheaf_alloc",
	[TAPE_OP_SHEAF_REFILL] = "sheaf_refill",
	[TAPE_OP_SHEAF_RETURN] = "sheaf_return",
	[TAPE_OP_FLUSH] = "flush",
	[TAPE_OP_SHRINK] = "shrink",
	[TAPE_OP_RCU_BARRIER] = "rcu_barrier",
	[TAPE_OP_PAGE_LIMIT] = "page_limit",
	[TAPE_OP_CHECKPOINT] = "checkpoint",
	[TAPE_OP_MARKER] = "marker",
	[TAPE_OP_FORK] = "fork",
	[TAPE_OP_EXEC] = "exec",
	[TAPE_OP_EXIT] = "exit",
};

static const char *const ctx_names[TAPE_CTX_MAX] = { "", "task", "softirq", "hardirq", "nmi" };

const char *tape_op_name(uint8_t op)
{
	assert(op < TAPE_OP_MAX);
	return op_names[op];
}

int tape_op_parse(const char *name)
{
	for (int op = 0; op < TAPE_OP_MAX; op++)
		if (!strcmp(op_names[op], name))
			return op;
	return -1;
}

const char *tape_ctx_name(uint8_t ctx)
{
	assert(ctx < TAPE_CTX_MAX);
	return ctx_names[ctx];
}

struct tape_event tape_event_blank(void)
{
	return (struct tape_event){
		.object = TAPE_NO_OBJECT,
		.slot = TAPE_NO_SLOT,
		.cache = TAPE_NO_CACHE,
		.node_req = TAPE_NODE_NONE,
		.mem_node = TAPE_NODE_NONE,
	};
}
