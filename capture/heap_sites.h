/* SPDX-License-Identifier: MIT */
/*
 * Call sites of recorded programs: code address -> site id of the tape.
 *
 * The same place in the same file is one site in every process, wherever it is mapped.  Addresses
 * outside every known module are sites of their own.
 */
#ifndef SLABTAPE_CAPTURE_HEAP_SITES_H
#define SLABTAPE_CAPTURE_HEAP_SITES_H

#include "capture/intern.h"
#include "capture/map64.h"

struct tape;

struct heap_sites {
	struct tape *t;
	struct intern modules; /* paths */
	struct map64 sites;    /* (module + 1) << 48 | offset, or the address -> site */
	uint32_t next_site;
};

struct heap_mapping {
	uint64_t base, end;
	uint32_t module; /* number in heap_sites.modules */
};

/* The code of one program image; shared by the processes forked from it. */
struct heap_image {
	struct heap_mapping *mappings;
	uint32_t nr;
	struct map64 known; /* address -> site */
	struct heap_image *next;
};

void heap_sites_init(struct heap_sites *s, struct tape *t);
void heap_sites_fini(struct heap_sites *s);
void heap_image_destroy(struct heap_image *image);

/* A later mapping over the same range replaces the earlier one. */
int heap_sites_map(struct heap_sites *s, struct heap_image *image, uint64_t base, uint64_t bytes,
		   const char *path, struct tape_err *reterr) TAPE_MUST_CHECK;

/* Site of @ip (0: site 0), defined in the tape when new. */
int heap_sites_find(struct heap_sites *s, struct heap_image *image, uint64_t ip, uint32_t *ret_site,
		    struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
