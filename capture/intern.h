/* SPDX-License-Identifier: MIT */
/* A set of texts with dense numbers 0, 1, 2, ... in the order in which they came. */
#ifndef SLABTAPE_CAPTURE_INTERN_H
#define SLABTAPE_CAPTURE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct intern_text {
	char *text; /* NUL-terminated, own memory */
	size_t len;
	uint64_t hash;
};

struct intern {
	struct intern_text *texts;
	uint32_t nr, capacity;
	uint32_t *table; /* number + 1; 0: empty */
	uint32_t mask;	 /* a zeroed struct is an empty set */
};

/* Number of @text (@len bytes), added when it is new.  -ENOMEM. */
int intern_get(struct intern *in, const char *text, size_t len, uint32_t *ret_nr, bool *ret_new)
	TAPE_MUST_CHECK;
/* Number of @text, or UINT32_MAX. */
uint32_t intern_find(const struct intern *in, const char *text, size_t len);
void intern_fini(struct intern *in);

#endif
