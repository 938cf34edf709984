/* SPDX-License-Identifier: MIT */
/*
 * Scope-bound release of locals.
 *
 *	TAPE_CLEANUP(tape_freep) char *text = NULL;	freed when `text` leaves its scope
 *	*ret_text = tape_steal(&text);			hands the memory over instead
 *
 * A cleanup function takes a pointer to the variable and must accept NULL contents.
 */
#ifndef SLABTAPE_BASE_CLEANUP_H
#define SLABTAPE_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TAPE_CLEANUP(fn) __attribute__((cleanup(fn)))

/* Take the pointer out of *(@pp) and leave NULL there. */
#define tape_steal(pp)                     \
	__extension__({                    \
		__typeof__(pp) _pp = (pp); \
		__typeof__(*_pp) _p = *_pp; \
		*_pp = NULL;               \
		_p;                        \
	})

static inline void tape_freep(void *pp)
{
	void **p = pp;

	free(*p);
	*p = NULL;
}

static inline void tape_fclosep(FILE **fp)
{
	if (*fp)
		fclose(*fp);
	*fp = NULL;
}

static inline void tape_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

#endif
