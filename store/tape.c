/* SPDX-License-Identifier: MIT */
/*
 * Creating, opening and closing a tape.
 *
 * A new tape gets its schema under a temporary name and is then renamed, so that a file with the
 * tape's name is a tape at every moment.  While it is written it is in WAL mode: a killed writer
 * leaves the last committed transaction, readers may look on.  tape_writer_finish() returns it
 * to one file without a journal.
 *
 * A tape that replaces another is written beside it ("PATH.PID-new") and takes its name when it is
 * finished: until then the old one stays whole.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "store/store_internal.h"

#define HEADER_BYTES 100

static const char first_rows[] =
	"INSERT INTO meta VALUES('format', 1), ('complete', 0), ('tool_version', '" SLABTAPE_VERSION
	"'), ('created', strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))";

static uint32_t be32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Open the connection; the handle is freed on failure. */
static int tape_connect(struct tape *t, const char *file, int flags, struct tape_err *reterr)
{
	int code = sqlite3_open_v2(file, &t->db, flags | SQLITE_OPEN_EXRESCODE, NULL);

	if (code != SQLITE_OK)
		return store_fail(t, "opening the tape", reterr);
	sqlite3_busy_timeout(t->db, STORE_BUSY_MS);
	sqlite3_db_config(t->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(t->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	if (store_modules_register(t->db) != SQLITE_OK)
		return store_fail(t, "registering the virtual tables", reterr);
	return 0;
}

static struct tape *tape_new(const char *path)
{
	struct tape *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->path = strdup(path);
	if (!t->path) {
		free(t);
		return NULL;
	}
	return t;
}

static void unlink_beside(const char *path, const char *suffix)
{
	char *name = NULL;

	if (asprintf(&name, "%s%s", path, suffix) > 0)
		unlink(name);
	free(name);
}

/* Write the schema into @draft; no connection stays open. */
static int draft_make(struct tape *t, const char *draft, struct tape_err *reterr)
{
	int rc = tape_connect(t, draft, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, reterr);

	if (rc == 0)
		rc = store_exec(t, "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN",
				"creating the tape", reterr);
	if (rc == 0)
		rc = store_schema_create(t, reterr);
	if (rc == 0)
		rc = store_exec(t, first_rows, "creating the tape", reterr);
	if (rc == 0)
		rc = store_exec(t, "COMMIT", "creating the tape", reterr);
	sqlite3_close(t->db);
	t->db = NULL;
	return rc;
}

/* Give the draft the tape's name, or keep it as the file to write while an old tape has it. */
static int draft_place(struct tape *t, char **draft, bool overwrite, struct tape_err *reterr)
{
	struct stat st;

	if (!link(*draft, t->path)) {
		unlink(*draft);
		return 0;
	}
	/* an empty file (mktemp) holds nothing that could be lost */
	if (errno == EEXIST && overwrite && !stat(t->path, &st) && S_ISREG(st.st_mode) &&
	    !st.st_size && !rename(*draft, t->path))
		return 0;
	if (errno != EEXIST || !overwrite)
		return tape_err_set(reterr, errno == EEXIST ? -EEXIST : -TAPE_E_IO, "creating %s: %s",
				    t->path, strerror(errno));
	t->beside = tape_steal(draft);
	return 0;
}

static int tape_create_file(struct tape *t, bool overwrite, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) char *draft = NULL;
	int rc;

	if (!overwrite && access(t->path, F_OK) == 0)
		return tape_err_set(reterr, -EEXIST, "%s exists already; -f replaces it", t->path);
	if (asprintf(&draft, "%s.%ld-new", t->path, (long)getpid()) < 0)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	unlink(draft);
	rc = draft_make(t, draft, reterr);
	if (rc == 0)
		rc = draft_place(t, &draft, overwrite, reterr);
	if (draft)
		unlink(draft);
	if (rc == 0)
		rc = tape_connect(t, tape_file(t), SQLITE_OPEN_READWRITE, reterr);
	if (rc == 0)
		rc = store_exec(t, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
				   "PRAGMA wal_autocheckpoint = 4000", "creating the tape", reterr);
	return rc;
}

int store_replace(struct tape *t, struct tape_err *reterr)
{
	int rc;

	if (!t->beside)
		return 0;
	store_statements_drop(t);
	sqlite3_close(t->db);
	t->db = NULL;
	/* the old tape's journals first: beside the new one they would be taken for its own */
	unlink_beside(t->path, "-wal");
	unlink_beside(t->path, "-shm");
	unlink_beside(t->path, "-journal");
	rc = rename(t->beside, t->path) ? tape_err_set(reterr, -TAPE_E_IO, "replacing %s: %s", t->path,
						       strerror(errno)) : 0;
	if (rc == 0) {
		free(t->beside);
		t->beside = NULL;
		rc = tape_connect(t, t->path, SQLITE_OPEN_READWRITE, reterr);
	}
	return rc;
}

/* A database without a name is private and vanishes with its connection. */
static int tape_create_temporary(struct tape *t, struct tape_err *reterr)
{
	int rc = tape_connect(t, "", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, reterr);

	if (rc == 0)
		rc = store_exec(t, "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF",
				"creating a temporary tape", reterr);
	if (rc == 0)
		rc = store_schema_create(t, reterr);
	if (rc == 0)
		rc = store_exec(t, first_rows, "creating a temporary tape", reterr);
	return rc;
}

int tape_create(const char *path, bool overwrite, struct tape **ret_tape, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_closep_tape) struct tape *t = tape_new(path ? path : "");
	int rc;

	if (!t)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	rc = path ? tape_create_file(t, overwrite, reterr) : tape_create_temporary(t, reterr);
	if (rc == 0)
		rc = store_writer_create(t, reterr);
	if (rc < 0)
		return rc;
	*ret_tape = tape_steal(&t);
	return 0;
}

/* The first bytes of @path; *ret_bytes is short for a short file. */
static int header_read(const char *path, uint8_t header[HEADER_BYTES], size_t *ret_bytes,
		       uint64_t *ret_file_bytes, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_fclosep) FILE *f = fopen(path, "rbe");
	struct stat st;

	if (!f || fstat(fileno(f), &st) < 0)
		return tape_err_set(reterr, -errno, "opening %s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return tape_err_set(reterr, -EISDIR, "opening %s: it is a directory", path);
	*ret_bytes = fread(header, 1, HEADER_BYTES, f);
	*ret_file_bytes = (uint64_t)st.st_size;
	return 0;
}

static bool exists_beside(const char *path, const char *suffix)
{
	TAPE_CLEANUP(tape_freep) char *name = NULL;

	return asprintf(&name, "%s%s", path, suffix) > 0 && access(name, F_OK) == 0;
}

/* What can be told before SQLite sees the file, so that the message fits. */
static int header_check(const char *path, struct tape_err *reterr)
{
	uint8_t header[HEADER_BYTES];
	size_t bytes;
	uint64_t file_bytes, page_bytes;
	int rc = header_read(path, header, &bytes, &file_bytes, reterr);

	if (rc < 0)
		return rc;
	if (!bytes)
		return tape_err_set(reterr, -TAPE_E_TRUNCATED, "%s: the file is empty", path);
	if (memcmp(header, "SQLite format 3", bytes < 16 ? bytes : 16))
		return tape_err_set(reterr, -TAPE_E_FORMAT, "%s: not a tape (no SQLite database)", path);
	if (bytes < HEADER_BYTES)
		return tape_err_set(reterr, -TAPE_E_TRUNCATED, "%s: the file ends in its header", path);
	page_bytes = (uint64_t)header[16] << 8 | header[17];
	page_bytes = page_bytes == 1 ? 65536 : page_bytes;
	/* the page count holds when both change counters agree and no journal has more */
	if (be32(header + 24) == be32(header + 92) && !exists_beside(path, "-wal") &&
	    !exists_beside(path, "-journal") && page_bytes * be32(header + 28) > file_bytes)
		return tape_err_set(reterr, -TAPE_E_TRUNCATED,
				    "%s: the file ends too early (%llu of %llu bytes)", path,
				    (unsigned long long)file_bytes,
				    (unsigned long long)(page_bytes * be32(header + 28)));
	return 0;
}

/* A left-over journal needs write access to be undone; without it try as it is. */
static int tape_connect_best(struct tape *t, enum tape_open_mode mode, struct tape_err *reterr)
{
	bool journal = exists_beside(t->path, "-wal") || exists_beside(t->path, "-journal");
	bool write = mode == TAPE_READ_WRITE || (journal && access(t->path, W_OK) == 0);

	if (mode == TAPE_READ_WRITE && access(t->path, W_OK) < 0)
		return tape_err_set(reterr, -errno, "opening %s for writing: %s", t->path,
				    strerror(errno));
	return tape_connect(t, t->path, write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY, reterr);
}

int tape_open(const char *path, enum tape_open_mode mode, struct tape **ret_tape,
	      struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_closep_tape) struct tape *t = tape_new(path);
	int rc;

	if (!t)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	rc = header_check(path, reterr);
	if (rc == 0)
		rc = tape_connect_best(t, mode, reterr);
	if (rc == 0)
		rc = store_schema_check(t, reterr);
	if (rc == 0 && mode == TAPE_READ)
		rc = store_exec(t, "PRAGMA query_only = 1", "opening the tape", reterr);
	if (rc < 0)
		return rc;
	*ret_tape = tape_steal(&t);
	return 0;
}

bool tape_is_tape(const char *path)
{
	uint8_t header[HEADER_BYTES];
	size_t bytes;
	uint64_t file_bytes;

	return header_read(path, header, &bytes, &file_bytes, NULL) == 0 && bytes == HEADER_BYTES &&
	       !memcmp(header, "SQLite format 3", 16) && be32(header + 68) == TAPE_APPLICATION_ID;
}

void tape_close(struct tape *t)
{
	if (!t)
		return;
	store_writer_destroy(t->writer);
	store_rollback(t);
	store_statements_drop(t);
	sqlite3_close(t->db);
	free(t->beside);
	free(t->path);
	free(t);
}

void tape_discard(struct tape *t)
{
	TAPE_CLEANUP(tape_freep) char *file = NULL;

	if (!t)
		return;
	file = strdup(tape_file(t));
	tape_close(t);
	if (!file || !*file)
		return;
	unlink(file);
	unlink_beside(file, "-wal");
	unlink_beside(file, "-shm");
	unlink_beside(file, "-journal");
}

const char *tape_path(const struct tape *t)
{
	return t->path;
}

const char *tape_file(const struct tape *t)
{
	return t->beside ? t->beside : t->path;
}

struct sqlite3 *tape_db(struct tape *t)
{
	return t->db;
}
