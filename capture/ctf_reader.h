/* SPDX-License-Identifier: MIT */
/*
 * The fast reader: all streams of a recording of our own layout in one order, by (time, stream).
 *
 * A recording may come in pieces, one folder tree per rotation.  Events of a stream's last packet
 * are kept back until the next piece is there, since other streams may still bring earlier ones
 * and since only the next packet tells what was lost.
 */
#ifndef SLABTAPE_CAPTURE_CTF_READER_H
#define SLABTAPE_CAPTURE_CTF_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/ctf_record.h"

struct ctf_reader;

int ctf_reader_create(struct ctf_reader **ret_reader, struct tape_err *reterr) TAPE_MUST_CHECK;
void ctf_reader_destroy(struct ctf_reader *r); /* NULL is accepted */

/*
 * All folders with metadata at or below @path (in it: archives come in order of their names)
 * continue what is there.  Files are mapped; the tree may be deleted afterwards.  1: done.  0: one
 * of them is not of our layout, @why says so; nothing was added.
 */
int ctf_reader_add(struct ctf_reader *r, const char *path, char *why, size_t why_bytes,
		   struct tape_err *reterr) TAPE_MUST_CHECK;

/*
 * Hand over at most about @max records that are safely in order; @last: everything.  1: there is
 * more to hand over now, 0: there is not.
 */
int ctf_reader_merge(struct ctf_reader *r, bool last, uint64_t max, ctf_record_fn fn, void *ctx,
		     struct tape_err *reterr) TAPE_MUST_CHECK;

uint64_t ctf_reader_begin(const struct ctf_reader *r);	 /* time of the first packet; 0: none */
uint64_t ctf_reader_packets(const struct ctf_reader *r); /* read so far */

/* Folders with a file "metadata" at or below @path, sorted by name; malloc'ed paths. */
struct ctf_folders {
	char **paths;
	size_t nr;
};
int ctf_folders_find(const char *path, struct ctf_folders *ret_folders,
		     struct tape_err *reterr) TAPE_MUST_CHECK;
void ctf_folders_fini(struct ctf_folders *f);

#endif
