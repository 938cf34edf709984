/* SPDX-License-Identifier: MIT */
/* Header of an .ops script: reading it and keeping it in a tape.  Internal to import_ops.c. */
#ifndef SLABTAPE_CAPTURE_OPS_SCRIPT_H
#define SLABTAPE_CAPTURE_OPS_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "traces/event.h"

struct capture_input;
struct tape;

#define OPS_CACHE 1		   /* id of the script's cache */
#define OPS_ID_UNIT UINT64_C(16)   /* address of id i: (i + 1) * OPS_ID_UNIT */
#define OPS_IDS_MAX (1u << 30)	   /* limit of `ids` */
#define OPS_SHEAF_MAX (1u << 20)   /* limit of a sheaf SLOT */
#define OPS_SIZE_MAX (1u << 26)	   /* limit of a cache's object size, bytes */
#define OPS_KNOBS_MAX 16

struct ops_knob {
	char name[32], value[32];
};

struct ops_header {
	char *text; /* the header lines as they were, each with its newline */
	size_t text_len;
	char case_name[64];
	char *note;
	char *machine_line, *cache_line; /* what follows the keyword */
	uint32_t cpus, nodes;
	uint16_t cpu_node[TAPE_CPU_MAX];
	uint32_t ids;
	uint64_t size, align;
	uint16_t gfp;	 /* enum tape_gfp */
	uint16_t hwalign;
	struct ops_knob knobs[OPS_KNOBS_MAX];
	uint32_t knobs_nr;
	unsigned seen; /* bit per header keyword */
};

/* "FILE:LINE: text" into @reterr; returns -TAPE_E_FORMAT. */
int ops_script_bad(const struct capture_input *in, struct tape_err *reterr, const char *fmt, ...)
	TAPE_PRINTF(3, 4);

/* Next line that is neither blank nor a comment, leading and trailing blanks cut.  1, 0, error. */
int ops_script_line(struct capture_input *in, char **ret_line, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/* Read up to and with `ops`.  @h is zeroed by the caller and released with ops_header_fini(). */
int ops_header_read(struct capture_input *in, struct ops_header *h, struct tape_err *reterr)
	TAPE_MUST_CHECK;
void ops_header_fini(struct ops_header *h);

/* cpu, cache and cache_knob rows and the meta rows from which the script can be printed again. */
int ops_header_store(const struct ops_header *h, struct tape *t, struct tape_err *reterr)
	TAPE_MUST_CHECK;

#endif
