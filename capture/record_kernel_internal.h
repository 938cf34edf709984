/* SPDX-License-Identifier: MIT */
/* What the files of record_kernel share. */
#ifndef SLABTAPE_CAPTURE_RECORD_KERNEL_INTERNAL_H
#define SLABTAPE_CAPTURE_RECORD_KERNEL_INTERNAL_H

#include <stdio.h>

#include "capture/record_kernel.h"
#include "capture/tracedat_decode.h"
#include "capture/tracedat_heap.h"
#include "capture/tracefs.h"

/* ---- record_kernel_setup.c: the instance ---- */

struct kernel_setup {
	struct tracefs_instance in;
	struct tracedat td; /* formats, symbols: what a trace.dat's metadata would say */
	char *cache_names;  /* names of the wanted cache, each NUL-terminated, then an empty one */
};

/* Instance, buffers, clock, filters, events; tracing stays off.  -TAPE_E_TRACER, -TAPE_E_USAGE. */
int kernel_setup(struct kernel_setup *ks, const struct record_kernel_options *o,
		 struct tape_err *reterr) TAPE_MUST_CHECK;
/* Record @pid and its children only; @threads: also its threads that exist already. */
int kernel_setup_pid(struct kernel_setup *ks, int32_t pid, bool threads, struct tape_err *reterr)
	TAPE_MUST_CHECK;
int kernel_setup_start(struct kernel_setup *ks, struct tape_err *reterr) TAPE_MUST_CHECK;
int kernel_setup_stop(struct kernel_setup *ks, struct tape_err *reterr) TAPE_MUST_CHECK;
void kernel_setup_fini(struct kernel_setup *ks);

/* ---- record_kernel_read.c: the CPUs' pages ---- */

/* Pages in memory; whole ones. */
struct kernel_pages {
	uint8_t *data;
	size_t len, capacity;
};

struct kernel_cpu {
	struct td_stream s; /* first: the heap knows streams */
	int fd;
	struct kernel_pages decoding, waiting; /* what the stream reads; what comes after it */
	uint64_t events;
	uint64_t quiet_ts; /* it had nothing then: what comes is younger */
	uint64_t told;	   /* lost, as pages say */
	/* Losses whose number had no room in the page. */
	uint64_t vague_begin, vague_end;
	bool vague;
};

struct kernel_reader {
	struct kernel_setup *ks;
	struct td_decoder *d;
	struct kernel_cpu *cpus;
	uint32_t cpus_nr;
	struct td_heap heap; /* streams with a current event */
	struct kernel_cpu **idle; /* the others */
	uint32_t idle_nr;
	size_t pages_max; /* limit of one kernel_pages, bytes */
	uint64_t started_ts, events, lost;
};

/* Open the pages of every CPU.  @d is borrowed; its ing may be set later. */
int kernel_reader_open(struct kernel_reader *r, struct kernel_setup *ks, struct td_decoder *d,
		       struct tape_err *reterr) TAPE_MUST_CHECK;
/*
 * Hand over what is in order by now.  @last: tracing is off and everything has to come.  1: there
 * may be more at once.
 */
int kernel_reader_poll(struct kernel_reader *r, bool last, struct tape_err *reterr)
	TAPE_MUST_CHECK;
/*
 * After the last poll: what the ring buffers counted, and losses that no page located.
 * *ret_cpus: malloc'ed.
 */
int kernel_reader_stats(struct kernel_reader *r, uint64_t end_ts,
			struct record_kernel_cpu **ret_cpus, uint32_t *ret_nr,
			struct tape_err *reterr) TAPE_MUST_CHECK;
void kernel_reader_close(struct kernel_reader *r);

/* ---- record_kernel_machine.c: what this machine says of itself ---- */

/*
 * A dump of /sys/kernel/slab, or a copy of /proc/slabinfo where there is none, in memory.
 * *ret_fd: read it as "/proc/self/fd/N"; the caller closes it.
 */
int kernel_slab_dump(int *ret_fd, struct tape_err *reterr) TAPE_MUST_CHECK;
/* "0:0,1:0": node of each CPU; malloc'ed. */
char *kernel_topology(void);
/* All names of the cache called @name, see kernel_setup.cache_names.  -TAPE_E_USAGE: no such. */
int kernel_cache_names(const char *name, char **ret_names, uint64_t *ret_object_bytes,
		       struct tape_err *reterr) TAPE_MUST_CHECK;
/* Names of the threads that are known now: saved_cmdlines, then /proc. */
int kernel_threads(struct td_decoder *d, const char *root) TAPE_MUST_CHECK;

#endif
