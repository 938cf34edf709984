/* SPDX-License-Identifier: MIT */
/* Function names of a recording's /proc/kallsyms. */
#ifndef SLABTAPE_CAPTURE_KALLSYMS_H
#define SLABTAPE_CAPTURE_KALLSYMS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kallsyms_symbol {
	uint64_t address;
	uint32_t line; /* for ties: the order in the file */
	uint16_t name_len, module_len;
	const char *name, *module; /* borrowed from the text */
};

struct kallsyms {
	struct kallsyms_symbol *symbols; /* ascending address */
	size_t nr;
};

/* Read "ADDRESS TYPE NAME [MODULE]" lines; others are skipped.  @text must outlive @k. */
int kallsyms_read(struct kallsyms *k, const char *text, size_t len, struct tape_err *reterr)
	TAPE_MUST_CHECK;
void kallsyms_fini(struct kallsyms *k);

/* The symbol @address lies in (the last one at or below it), or NULL. */
const struct kallsyms_symbol *kallsyms_find(const struct kallsyms *k, uint64_t address);

#endif
