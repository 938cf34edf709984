/* SPDX-License-Identifier: MIT */
/* Shared by the files of the trace.dat container reader. */
#ifndef SLABTAPE_CAPTURE_TRACEDAT_INTERNAL_H
#define SLABTAPE_CAPTURE_TRACEDAT_INTERNAL_H

#include "capture/tracedat.h"
#include "capture/tracedat_cursor.h"

/* "FILE, offset N: what" with -TAPE_E_TRUNCATED when @c ran out of bytes, else -TAPE_E_FORMAT. */
int td_bad(const struct tracedat *td, const struct td_cursor *c, struct tape_err *reterr,
	   const char *what);

/* An open file descriptor of a deleted file in $TMPDIR, or -1. */
int td_open_temporary(void);

/* The parts both versions share; each reads one part and leaves @c behind it. */
int td_read_header_info(struct tracedat *td, struct td_cursor *c, struct tape_err *reterr)
	TAPE_MUST_CHECK;
int td_read_ftrace_formats(struct tracedat *td, struct td_cursor *c, struct tape_err *reterr)
	TAPE_MUST_CHECK;
int td_read_event_formats(struct tracedat *td, struct td_cursor *c, struct tape_err *reterr)
	TAPE_MUST_CHECK;
int td_read_text32(struct tracedat *td, struct td_cursor *c, struct tracedat_text *ret,
		   struct tape_err *reterr) TAPE_MUST_CHECK;
int td_read_text64(struct tracedat *td, struct td_cursor *c, struct tracedat_text *ret,
		   struct tape_err *reterr) TAPE_MUST_CHECK;
int td_add_cpu(struct tracedat *td, const struct tracedat_cpu *cpu, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/* Option ids, the same in both versions. */
enum td_option {
	TD_OPTION_DONE = 0,
	TD_OPTION_CPUSTAT = 2,
	TD_OPTION_BUFFER = 3,
	TD_OPTION_TRACECLOCK = 4,
	TD_OPTION_UNAME = 5,
	TD_OPTION_OFFSET = 7,
	TD_OPTION_TSC2NSEC = 14,
	TD_OPTION_HEADER_INFO = 16,
	TD_OPTION_FTRACE_EVENTS = 17,
	TD_OPTION_EVENT_FORMATS = 18,
	TD_OPTION_KALLSYMS = 19,
	TD_OPTION_PRINTK = 20,
	TD_OPTION_CMDLINES = 21,
};

/* Options that mean the same in both versions; others are ignored. */
int td_read_option(struct tracedat *td, unsigned id, const uint8_t *data, size_t len,
		   struct tape_err *reterr) TAPE_MUST_CHECK;

/* Everything behind the common start of the file. */
int td_read_v6(struct tracedat *td, struct td_cursor *c, struct tape_err *reterr) TAPE_MUST_CHECK;
int td_read_v7(struct tracedat *td, struct td_cursor *c, struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
