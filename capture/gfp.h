/* SPDX-License-Identifier: MIT */
/*
 * gfp flags, normalised by name (enum tape_gfp): numeric values differ between kernels, names do
 * not.  Raw numbers are read with the table in the event's own `print fmt`.
 */
#ifndef SLABTAPE_CAPTURE_GFP_H
#define SLABTAPE_CAPTURE_GFP_H

#include <stddef.h>
#include <stdint.h>

#define CAPTURE_GFP_BITS 9

/* Masks of raw bits, in the order of the table in gfp.c. */
struct capture_gfp_map {
	uint64_t raw[CAPTURE_GFP_BITS]; /* 0: the kernel's table does not name it */
	uint64_t last_raw;		/* the last translation: recordings repeat few values */
	uint16_t last_bits;
};

/* The kernel's bits since 4.4 (include/linux/gfp.h), for sources that name none. */
void capture_gfp_map_default(struct capture_gfp_map *m);

/*
 * Read the `{ value, "NAME" }` list of @print_fmt (@len bytes).  Entries that cannot be evaluated
 * are left out; when none can, the default map stands.
 */
void capture_gfp_map_parse(struct capture_gfp_map *m, const char *print_fmt, size_t len);

/* enum tape_gfp bits of a raw number. */
uint16_t capture_gfp_bits(struct capture_gfp_map *m, uint64_t raw);

/* enum tape_gfp bits of "GFP_KERNEL|__GFP_ZERO" (@len bytes); unknown names say nothing. */
uint16_t capture_gfp_from_text(const char *text, size_t len);

#endif
