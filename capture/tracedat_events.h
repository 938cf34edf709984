/* SPDX-License-Identifier: MIT */
/*
 * The events of a trace.dat that matter to a tape: which ids they have and where their fields
 * stand, read once from the file's own format descriptions.
 */
#ifndef SLABTAPE_CAPTURE_TRACEDAT_EVENTS_H
#define SLABTAPE_CAPTURE_TRACEDAT_EVENTS_H

#include "capture/gfp.h"
#include "capture/tracedat.h"

enum td_kind {
	TD_OTHER = 0,
	TD_KMALLOC, /* and kmalloc_node */
	TD_CACHE_ALLOC, /* and kmem_cache_alloc_node */
	TD_KFREE,
	TD_CACHE_FREE,
	TD_PRINT,  /* text in the event */
	TD_BPRINT, /* address of a format */
	TD_BPUTS,  /* address of a text */
	TD_KIND_MAX
};

enum td_field_name {
	TD_FIELD_FLAGS = 0, /* common_flags */
	TD_FIELD_PID,	    /* common_pid */
	TD_FIELD_SITE,
	TD_FIELD_PTR,
	TD_FIELD_BYTES_REQ,
	TD_FIELD_BYTES_ALLOC,
	TD_FIELD_GFP,
	TD_FIELD_NODE,
	TD_FIELD_NAME, /* __data_loc: offset | length << 16 */
	TD_FIELD_ACCOUNTED,
	TD_FIELD_BUF,
	TD_FIELD_FMT, /* bprint: fmt, bputs: str */
	TD_FIELD_MAX
};

struct td_field {
	uint16_t offset, bytes; /* bytes 0 and offset 0: the event has no such field */
};

struct td_format {
	enum td_kind kind;
	struct td_field field[TD_FIELD_MAX];
	uint32_t min_bytes;	  /* an event shorter than this is corrupt */
	bool name_relative;	  /* __rel_loc: offset counts from the end of the field */
	bool kmalloc_accounts;	  /* __GFP_ACCOUNT picks the kmalloc-cg caches */
	struct capture_gfp_map gfp;
};

#define TD_FORMATS_KEPT 16

struct td_events {
	struct td_format format[TD_FORMATS_KEPT]; /* [0]: every event of no interest */
	uint8_t nr;
	uint8_t by_id[65536]; /* event id -> index in format */
	bool names_in_allocs; /* kmem_cache_alloc says its cache */
};

/*
 * Read the formats of @td.  -TAPE_E_FORMAT when a kmem event lacks a field that a tape needs, or
 * when the file describes none of them.
 */
int td_events_read(const struct tracedat *td, struct td_events *ret_events,
		   struct tape_err *reterr) TAPE_MUST_CHECK;

/* Value of a numeric field of an event whose length was checked against min_bytes. */
static inline uint64_t td_field_get(const struct td_format *f, enum td_field_name name,
				    const uint8_t *event)
{
	const uint8_t *at = event + f->field[name].offset;
	uint64_t value = 0;
	uint32_t word;
	uint16_t half;

	switch (f->field[name].bytes) {
	case 8:
		__builtin_memcpy(&value, at, 8);
		return value;
	case 4:
		__builtin_memcpy(&word, at, 4);
		return word;
	case 2:
		__builtin_memcpy(&half, at, 2);
		return half;
	case 1:
		return *at;
	default:
		return 0;
	}
}

#endif
