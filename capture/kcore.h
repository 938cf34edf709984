/* SPDX-License-Identifier: MIT */
/* Where the kernel maps all of physical memory, read from the headers of /proc/kcore. */
#ifndef SLABTAPE_CAPTURE_KCORE_H
#define SLABTAPE_CAPTURE_KCORE_H

#include <stdint.h>

/*
 * Virtual address of physical address 0, from a segment of the core file at @path (its first 4
 * KiB are enough).  0: no such file, no permission, or no segment that says its physical address.
 */
uint64_t kcore_direct_map(const char *path);

#endif
