/* SPDX-License-Identifier: MIT */
/*
 * What the virtual tables read: the chunks of one tape, reached through a database connection
 * and a schema name ("main", or the name given to ATTACH) of any SQLite host.
 *
 * A source keeps the list of chunks in memory (about 100 bytes each) and at most
 * VTAB_PAGES_IDLE decoded chunks that nobody uses at the moment; a cursor holds one at a time.
 * Not thread safe: a source belongs to its connection.
 */
#ifndef SLABTAPE_STORE_VTAB_SOURCE_H
#define SLABTAPE_STORE_VTAB_SOURCE_H

#include <stddef.h>

#include "store/sqlite_api.h"
#include "store/store_internal.h"

#define VTAB_PAGES_IDLE 6

/* One decoded chunk.  Valid until vtab_page_put(). */
struct vtab_page {
	struct tape_batch *batch;
	size_t chunk; /* index in the list */
	unsigned int users;
	uint64_t last_use;
};

struct vtab_source {
	struct tape tape; /* borrows the connection */
	struct store_chunk *chunks;
	size_t chunks_nr;
	uint64_t events;
	bool complete; /* meta.complete: frees far behind their alloc are all at hand */
	struct tape_codec *codec;
	struct vtab_page **pages;
	size_t pages_nr;
	uint64_t uses;
	uint64_t state; /* counts the times that `chunks` was read */
	int64_t data_version, own_changes; /* state of the file that `chunks` shows */
	int16_t cpu_node[TAPE_CPU_MAX];	   /* -1: the tape does not say */
};

/*
 * Open schema @schema of @db.  On failure returns an SQLite code and sets *ret_message
 * (sqlite3_malloc'ed): SQLITE_NOTADB when it is no tape, or when its version or its schema text
 * is not ours.
 */
int vtab_source_open(sqlite3 *db, const char *schema, struct vtab_source **ret_source,
		     char **ret_message);
void vtab_source_close(struct vtab_source *s); /* NULL is accepted */

/* Re-read the list of chunks when the file has changed.  Idle pages are dropped then. */
int vtab_source_refresh(struct vtab_source *s, char **ret_message);

/* Chunk number @chunk with at least @columns decoded; *ret_page is released with vtab_page_put. */
int vtab_source_page(struct vtab_source *s, size_t chunk, uint32_t columns,
		     struct vtab_page **ret_page, char **ret_message);
void vtab_page_put(struct vtab_page *page); /* NULL is accepted */

/* The SQLite code and message ("slabtape: tape ...") for a failure of store/. */
int vtab_source_failed(int rc, const struct tape_err *err, char **ret_message);

#endif
