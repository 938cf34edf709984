/* SPDX-License-Identifier: MIT */
/*
 * What the interposer tells a back-end (native memory rings or LTTng-UST tracepoints).
 *
 * Every function is called with the thread's nesting guard held, so what a back-end allocates is
 * not recorded; none may change errno.  emit_*() before emit_ready() must keep or count events.
 */
#ifndef SLABTAPE_CAPTURE_UST_EMIT_H
#define SLABTAPE_CAPTURE_UST_EMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/ust/native_ring.h"

/* The back-end may start: libc is usable.  Called once by a constructor, single threaded. */
void emit_ready(void);
/* The program ends normally (destructor). */
void emit_finish(void);

/* One event.  @kind: RING_MALLOC .. RING_FREE_REALLOC.  @ip: return address of the call. */
void emit_event(enum ring_kind kind, const void *address, size_t size, const void *ip);

/* The tracer's own work (guard held) obtained @address. */
void emit_inner(const void *address, const void *ip);

/* @ip lies in the tracer's own code; asked only after interposer_end(). */
bool emit_is_own(const void *ip);

/* Around fork(), in the forking thread: before it; after it in the child; in the parent. */
void emit_fork_prepare(void);
void emit_fork_child(void);
void emit_fork_parent(void);

/* ---- offered by the interposer ---- */

/* This thread's guard is held: what it does now is the tracer's own work. */
bool interposer_guarded(void);
/* Hold it until released; for good in a thread of the tracer's own. */
void interposer_hold(void);
void interposer_release(void);
/* The process ends, and the tracer puts itself away outside the guard. */
void interposer_end(void);

#endif
