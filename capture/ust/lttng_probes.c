/* SPDX-License-Identifier: MIT */
/* The library with the tracepoints of recorded programs; see lttng_api.h. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "capture/ust/lttng_tracepoints.h"

#include <lttng/urcu/urcu-ust.h>
#include <lttng/ust-fork.h>
#include <stddef.h>

static void (*end_hook)(void);

static void set_end_hook(void (*fn)(void))
{
	end_hook = fn;
}

/* Behind LTTng's own destructors in this file's list, which is run from its end. */
__attribute__((destructor)) static void end(void)
{
	if (end_hook)
		end_hook();
}

static bool enabled(void)
{
	return lttng_ust_tracepoint_enabled(slabtape, alloc) &&
	       lttng_ust_tracepoint_enabled(slabtape, free) &&
	       lttng_ust_tracepoint_enabled(slabtape, loss);
}

static void emit_alloc(const struct lttng_heap_event *e)
{
	lttng_ust_tracepoint(slabtape, alloc, e);
}

static void emit_free(const struct lttng_heap_event *e)
{
	lttng_ust_tracepoint(slabtape, free, e);
}

static void emit_exec(const struct lttng_process_event *e)
{
	lttng_ust_tracepoint(slabtape, exec, e);
}

static void emit_fork_begin(const struct lttng_process_event *e)
{
	lttng_ust_tracepoint(slabtape, fork_begin, e);
}

static void emit_fork(const struct lttng_process_event *e)
{
	lttng_ust_tracepoint(slabtape, fork, e);
}

static void emit_module(const struct lttng_process_event *e)
{
	lttng_ust_tracepoint(slabtape, module, e);
}

static void emit_loss(const struct lttng_process_event *e)
{
	lttng_ust_tracepoint(slabtape, loss, e);
}

/*
 * LTTng's own way for a child is to register it as a new program, which takes tens of
 * milliseconds.  The child writes on into the buffers it has (they are shared memory, and who
 * writes stands in each event) and needs only the locks to be free and no other threads to be
 * waited for.
 */
static void after_fork_child(sigset_t *mask)
{
	lttng_ust_after_fork_parent(mask);
	lttng_ust_urcu_before_fork();
	lttng_ust_urcu_after_fork_child();
}

extern const struct lttng_api slabtape_lttng_api;
__attribute__((visibility("default"))) const struct lttng_api slabtape_lttng_api = {
	.enabled = enabled,
	.at_end = set_end_hook,
	.alloc = emit_alloc,
	.free = emit_free,
	.exec = emit_exec,
	.fork_begin = emit_fork_begin,
	.fork = emit_fork,
	.module = emit_module,
	.loss = emit_loss,
	.before_fork = lttng_ust_before_fork,
	.after_fork_parent = lttng_ust_after_fork_parent,
	.after_fork_child = after_fork_child,
};
