/* SPDX-License-Identifier: MIT */
/* What record.c asks of a way to get events out of a program. */
#ifndef SLABTAPE_CAPTURE_RECORD_BACKEND_H
#define SLABTAPE_CAPTURE_RECORD_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/heap.h"
#include "capture/record_child.h"

struct record_options;

/* One back-end.  @self is what start() made; every function but destroy may fail. */
struct record_backend {
	const char *name;
	/* Ready to record; adds to @env what the program needs.  Runs before the program. */
	int (*start)(const struct record_options *options, struct record_env *env, void **ret_self,
		     struct tape_err *reterr);
	/*
	 * Hand over what is in order by now; *ret_events grows by the events seen.  @last: the
	 * recording ends, everything has to come.
	 */
	int (*poll)(void *self, struct heap *h, bool last, uint64_t *ret_events,
		    struct tape_err *reterr);
	uint32_t (*attached)(const void *self); /* programs that loaded the library */
	double (*overhead_ns)(const void *self);
	void (*destroy)(void *self); /* NULL is accepted; leaves nothing behind */
	uint32_t poll_ms;
	const char *clock; /* meta.clock */
};

extern const struct record_backend record_native;
/* NULL when this build has no LTTng. */
const struct record_backend *record_lttng_backend(void);

/*
 * Path of an interposer ("libslabtape-native.so"): beside the running program, where it was
 * installed, or in $SLABTAPE_LIBDIR.  malloc'ed.
 */
int record_find_library(const char *name, char **ret_path, struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
