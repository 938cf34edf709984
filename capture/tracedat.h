/* SPDX-License-Identifier: MIT */
/*
 * The trace.dat container (trace-cmd, versions 6 and 7): where things stand in the file.
 *
 * Own reader instead of libtracecmd (docs/decisions/0006-own-trace-dat-reader.md): every length is checked against the
 * file, errors name the offset, per-CPU data is decoded in place, and no library is needed.
 * Source of the layout: trace-cmd's manual pages trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5).
 *
 *	v6: magic, version, endian, long size, page size; header_page, header_event, ftrace
 *	    formats, event formats, kallsyms, printk, cmdlines one after the other; CPU count;
 *	    "options  ", "flyrecord" with an (offset, size) pair per CPU.
 *	v7: magic ..., compression, offset of a chain of option sections; the options point to
 *	    sections with the same contents, each maybe compressed; option BUFFER lists the CPUs.
 */
#ifndef SLABTAPE_CAPTURE_TRACEDAT_H
#define SLABTAPE_CAPTURE_TRACEDAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct capture_input;

#define TRACEDAT_TEXT_MAX (256u << 20)	/* limit of one metadata section, decompressed, bytes */
#define TRACEDAT_CHUNK_MAX (64u << 20)	/* limit of one chunk of events, decompressed, bytes */
#define TRACEDAT_FORMATS_MAX 100000u	/* limit of event formats */

struct tracedat_text {
	const char *data; /* borrowed from the file or from a decompressed section */
	size_t len;
};

struct tracedat_cpu {
	uint32_t cpu;
	uint64_t offset, size; /* in the file */
};

/* Losses a CPU's ring buffer counted itself (option CPUSTAT). */
struct tracedat_cpustat {
	int32_t cpu;
	uint64_t overrun, dropped;
};

struct tracedat {
	char *path;
	int fd; /* of the mapping; a deleted copy when the input could not be mapped */
	const uint8_t *map;
	uint64_t size;
	int version; /* 6 or 7 */
	uint32_t long_bytes, page_bytes;
	bool zlib;	   /* compression of this file: zlib instead of zstd */
	bool cpu_compressed; /* the per-CPU data is in compressed chunks */
	struct tracedat_text header_page;
	struct tracedat_text *formats; /* one per event; ftrace's own ones too */
	size_t formats_nr;
	struct tracedat_text kallsyms, printk, cmdlines;
	char *release, *clock; /* malloc'ed; NULL unknown */
	struct tracedat_cpu *cpus;
	size_t cpus_nr;
	struct tracedat_cpustat *stats;
	size_t stats_nr;
	uint32_t buffers; /* trace instances in the file; the one with most data is read */
	int64_t ts_offset_ns;
	uint32_t tsc_mult, tsc_shift; /* 0: stamps are ns already */
	uint64_t tsc_offset;
	void **blocks; /* decompressed sections */
	size_t blocks_nr;
};

/*
 * Map @in (spooled to a deleted temporary file when it is compressed or a pipe) and read all of
 * the metadata.  -TAPE_E_FORMAT, -TAPE_E_TRUNCATED, -TAPE_E_VERSION, -TAPE_E_LIMIT with file and
 * offset.  The caller releases *ret_td with tracedat_close().
 */
int tracedat_open(struct capture_input *in, struct tracedat **ret_td, struct tape_err *reterr)
	TAPE_MUST_CHECK;
/* The same for a directory of page copies (tracedat_raw.c). */
int tracedat_open_raw(const char *dir, struct tracedat **ret_td, struct tape_err *reterr)
	TAPE_MUST_CHECK;
void tracedat_close(struct tracedat *td); /* NULL is accepted */

/* Decompress @len bytes at @src, which must give exactly @out_len bytes at @out.  0 or -1. */
int tracedat_decompress(const struct tracedat *td, const void *src, size_t len, void *out,
			size_t out_len) TAPE_MUST_CHECK;

#endif
