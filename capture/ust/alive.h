/* SPDX-License-Identifier: MIT */
/* A word that tells a process from the children it makes, however it makes them. */
#ifndef SLABTAPE_CAPTURE_UST_ALIVE_H
#define SLABTAPE_CAPTURE_UST_ALIVE_H

#include <stdint.h>
#include <sys/mman.h>

/*
 * 1 in this process, 0 in every child that gets memory of its own.  NULL: no memory.  Never freed.
 * Before Linux 4.14 the kernel does not wipe it: only fork() is safe, which tells us by itself.
 */
static inline uint32_t *alive_page(void)
{
	uint32_t *page =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	(void)madvise(page, 4096, MADV_WIPEONFORK);
	*page = 1;
	return page;
}

#endif
