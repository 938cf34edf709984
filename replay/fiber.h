/* SPDX-License-Identifier: MIT */
/*
 * Fibers: execution contexts on stacks of their own, switched by hand, all on one thread.
 *
 * The simulated engine gives one to each virtual CPU, so that ordinary variant code can be
 * stopped in the middle of an operation.  x86-64 and aarch64 switch in a few instructions,
 * other machines through ucontext.  AddressSanitizer and ThreadSanitizer are told of each switch.
 */
#ifndef SLABTAPE_REPLAY_FIBER_H
#define SLABTAPE_REPLAY_FIBER_H

#include <stddef.h>

struct fiber;

#define FIBER_STACK_BYTES (64u * 1024) /* a guard page below each stack catches overruns */

/* The context of the calling thread, to switch away from and back to.  NULL: out of memory. */
struct fiber *fiber_create_main(void);

/*
 * A fiber that runs @fn(@arg) when it is first switched to.  @fn must not return: it ends by
 * switching away for good.  @stack_bytes is rounded up to whole pages.  NULL: out of memory.
 */
struct fiber *fiber_create(size_t stack_bytes, void (*fn)(void *arg), void *arg);

/* Not while it runs.  NULL is accepted. */
void fiber_destroy(struct fiber *f);

/* @f will be switched to soon: what it needs of its stack first comes nearer. */
void fiber_prefetch(const struct fiber *f);

/* Stop @from, which is the running fiber, and continue @to. */
void fiber_switch(struct fiber *from, struct fiber *to);

#endif
