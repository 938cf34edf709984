/* SPDX-License-Identifier: MIT */
/*
 * Recording a kernel: the kmem events of the running machine become a tape while they happen.
 *
 * A tracefs instance of our own holds the events in the kernel's ring buffers; its pages are read
 * as they are, decoded (tracedat_decode.h) and merged over the CPUs in order of time.  Memory is
 * the ring buffers and what the importer keeps (live objects).  Nothing outside the instance is
 * changed, and the instance goes however the recording ends; after SIGKILL the next recorder
 * removes it (tracefs.h).
 *
 * What is recorded:
 *	no command			everything, until SIGINT, SIGTERM or the duration
 *	-- COMMAND			its processes and their children, from its exec to its end
 *	-a -- COMMAND			everything while the command runs
 *	--filter-pid P			process P, its threads and their children from then on
 * and never the recorder itself.  "Its processes" means what runs while they do: interrupts that
 * hit them count, work that the kernel does for them elsewhere does not.
 */
#ifndef SLABTAPE_CAPTURE_RECORD_KERNEL_H
#define SLABTAPE_CAPTURE_RECORD_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/import.h"

struct record_kernel_options {
	const char *output; /* path of the tape */
	bool overwrite;
	const char *const *argv; /* program and arguments, NULL-terminated; NULL: none */
	bool all;		 /* with argv: not its processes alone */
	int32_t pid;		 /* this process alone; 0: no such filter */
	const char *cache;	 /* this cache alone; NULL: all */
	uint64_t buffer_bytes;	 /* ring buffers of all CPUs together; 0: the default */
	uint64_t max_bytes;	 /* stop when the tape is larger; 0: no limit */
	uint64_t duration_ns;	 /* stop after that time; 0: no limit */
	/* Called about once a second.  NULL: never. */
	void (*progress)(void *ctx, uint64_t events, uint64_t lost, uint64_t elapsed_ns);
	void *progress_ctx;
};

/* What one CPU's ring buffer says after the recording (its `stats` file). */
struct record_kernel_cpu {
	uint32_t cpu;
	uint64_t events; /* that we read */
	uint64_t read, entries, overrun, commit_overrun, dropped;
};

struct record_kernel_summary {
	struct capture_stats stats;
	struct record_kernel_cpu *cpus; /* malloc'ed */
	uint32_t cpus_nr;
	uint64_t elapsed_ns; /* of the recording */
	uint64_t finish_ns;  /* from its end until the tape was complete */
	uint64_t tape_bytes;
	unsigned int stale;  /* instances of dead recorders that were removed */
	const char *stopped; /* why recording ended: static text; NULL: the program did */
	int exit_status;     /* with a command: what the verb shall exit with (design section 9) */
};

/*
 * Record.  0: the tape is complete.  Negative: no tape is left; with a command exit_status is 127
 * (not found), 126 (not executable) or 125.  SIGINT, SIGTERM and SIGHUP end a recording without a
 * command and are passed on to a command; a second one ends the recording at once.  The caller
 * frees ret_summary->cpus, also on failure.
 */
int record_kernel(const struct record_kernel_options *options,
		  struct record_kernel_summary *ret_summary, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/* A POSIX shell script that records the same into a directory that import reads; static text. */
const char *record_kernel_script(void);

#endif
