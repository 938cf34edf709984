/* SPDX-License-Identifier: MIT */
/* What the files of the LTTng back-end share. */
#ifndef SLABTAPE_CAPTURE_UST_LTTNG_WRITER_INTERNAL_H
#define SLABTAPE_CAPTURE_UST_LTTNG_WRITER_INTERNAL_H

#include <stdbool.h>

/* ---- lttng_guard.c: the program and LTTng's file descriptors and threads ---- */

/*
 * Take the low file descriptors, so that LTTng's own lie above those a program names itself
 * (redirections of shells, for example).
 */
void guard_reserve_low(void);
/* Give them back, and protect those that LTTng has by now from the program's close(). */
void guard_release_low(void);
/*
 * In a child: let go of LTTng's connections, so that the daemon sees the parent end when it does.
 * From then on LTTng's threads are missing, and cancelling them does nothing.
 */
void guard_child(void);

/*
 * The dynamic linker allocates a thread's variables of LTTng inside the tracer's first event and
 * frees them, unseen by the guard, when the thread's stack goes.  What it allocated so is kept in
 * a set: foreign_add() from guarded calls, foreign_remove() true when @address was in it.
 */
void foreign_init(void);
void foreign_add(const void *address, const void *ip);
bool foreign_remove(const void *address, const void *ip);

/* @address lies in code of LTTng-UST. */
bool guard_is_lttng(const void *address);

#endif
