/* SPDX-License-Identifier: MIT */
/*
 * A dump of /sys/kernel/slab: one line per file,
 *
 *	cache/file:value C0=1 C2=5 N1=3
 *
 * value as the file prints it, then its parts per CPU (counters) and per node (slab counts).
 * A copy of /proc/slabinfo (version 2.x) is read as well: its columns become objects,
 * total_objects, slab_size, objs_per_slab, order and slabs.
 */
#ifndef SLABTAPE_CAPTURE_SYSFS_SNAPSHOT_H
#define SLABTAPE_CAPTURE_SYSFS_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/intern.h"

struct map64;

#define SNAPSHOT_BYTES_MAX (256u << 20) /* limit of a dump, bytes */

struct snapshot_part {
	char kind; /* 'C' or 'N' */
	uint16_t number;
	int64_t value;
};

struct snapshot_value {
	uint32_t cache, file; /* numbers in snapshot.caches and snapshot.files */
	bool numeric;
	int64_t value;
	uint32_t first_part, parts_nr; /* in snapshot.parts */
};

struct snapshot {
	struct intern caches, files;
	struct snapshot_value *values;
	size_t values_nr;
	struct snapshot_part *parts;
	size_t parts_nr;
	struct map64 *index; /* (cache, file) -> number of the value + 1 */
};

/* -TAPE_E_FORMAT with file and line.  The caller releases *ret_s. */
int snapshot_read(const char *path, struct snapshot **ret_s, struct tape_err *reterr)
	TAPE_MUST_CHECK;
void snapshot_destroy(struct snapshot *s); /* NULL is accepted */

/* The value of @cache/@file (numbers of this snapshot), or NULL. */
const struct snapshot_value *snapshot_at(const struct snapshot *s, uint32_t cache, uint32_t file);
/* The same by name; @fallback when it is missing or not a number. */
int64_t snapshot_number(const struct snapshot *s, const char *cache, const char *file,
			int64_t fallback);
/* Does the snapshot have this file, whatever it holds (`ctor` names a function)? */
bool snapshot_has(const struct snapshot *s, const char *cache, const char *file);

#endif
