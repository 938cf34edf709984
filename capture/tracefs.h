/* SPDX-License-Identifier: MIT */
/*
 * The kernel's tracing files: where they are, and an instance (buffers and events of its own) for
 * one recorder.
 *
 * Own code instead of libtracefs: the files are a stable interface, what is needed of them is
 * small, and errors have to name the file and the command that mends it.
 *
 * An instance is named slabtape.PID.START, START being the time at which its recorder began as
 * /proc/PID/stat counts it.  So the next recorder can tell a dead one's instance from a live
 * one's and removes it.
 */
#ifndef SLABTAPE_CAPTURE_TRACEFS_H
#define SLABTAPE_CAPTURE_TRACEFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define TRACEFS_FILE_MAX (64u << 20) /* limit of a file that is read whole, bytes */

/*
 * Path of the mounted tracefs, static memory.  -TAPE_E_TRACER: not mounted, or not ours to use;
 * the text says which command mends it.
 */
int tracefs_find(const char **ret_root, struct tape_err *reterr) TAPE_MUST_CHECK;

struct tracefs_instance {
	const char *root;
	char dir[256]; /* "": none */
};

/* An instance of this process with tracing off.  -TAPE_E_TRACER. */
int tracefs_create(const char *root, struct tracefs_instance *ret_in, struct tape_err *reterr)
	TAPE_MUST_CHECK;
/* Remove it; files in it must be closed.  Once more does nothing. */
void tracefs_remove(struct tracefs_instance *in);
/* Remove the instances of recorders that are gone.  Returns how many. */
unsigned int tracefs_remove_stale(const char *root);

bool tracefs_has(const char *dir, const char *file);
/* -TAPE_E_TRACER names the file, the text and the reason. */
int tracefs_write(const char *dir, const char *file, const char *text, struct tape_err *reterr)
	TAPE_MUST_CHECK;
/* The whole file, NUL-terminated, malloc'ed.  @dir NULL: @file is a path. */
int tracefs_read(const char *dir, const char *file, char **ret_text, size_t *ret_len,
		 struct tape_err *reterr) TAPE_MUST_CHECK;

/* START of process @pid; 0: there is none, or it has ended. */
uint64_t tracefs_process_start(int32_t pid);

#endif
