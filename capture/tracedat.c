/* SPDX-License-Identifier: MIT */
/* Opening a trace.dat: mapping, the first bytes, decompression. */
#include "capture/tracedat.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>
#ifdef CAPTURE_ZLIB
#include <zlib.h>
#endif

#include "base/cleanup.h"
#include "capture/input.h"
#include "capture/tracedat_internal.h"

static void closep(struct tracedat **td)
{
	tracedat_close(*td);
}

int td_bad(const struct tracedat *td, const struct td_cursor *c, struct tape_err *reterr,
	   const char *what)
{
	if (c->failed)
		return tape_err_set(reterr, -TAPE_E_TRUNCATED,
				    "trace.dat (%s, offset %llu): %s: the data ends here; the file "
				    "is truncated or corrupt",
				    td->path, (unsigned long long)td_offset(c), what);
	return tape_err_set(reterr, -TAPE_E_FORMAT, "trace.dat (%s, offset %llu): %s: corrupt",
			    td->path, (unsigned long long)td_offset(c), what);
}

int tracedat_decompress(const struct tracedat *td, const void *src, size_t len, void *out,
			size_t out_len)
{
#ifdef CAPTURE_ZLIB
	if (td->zlib) {
		uLongf got = out_len;

		return uncompress(out, &got, src, len) == Z_OK && got == out_len ? 0 : -1;
	}
#endif
	return !td->zlib && ZSTD_decompress(out, out_len, src, len) == out_len ? 0 : -1;
}

int td_open_temporary(void)
{
	const char *dir = getenv("TMPDIR");

	return open(dir && *dir ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

static int map_file(struct tracedat *td, struct capture_input *in, struct tape_err *reterr)
{
	bool spool = capture_input_must_spool(in);
	struct stat st;
	void *map;

	td->fd = spool ? td_open_temporary() : open(td->path, O_RDONLY | O_CLOEXEC);
	if (td->fd < 0)
		return tape_err_set(reterr, -errno, "open (%s): %s",
				    spool ? "temporary copy" : td->path, strerror(errno));
	if (spool) {
		int rc = capture_input_spool(in, td->fd, &td->size, reterr);

		if (rc < 0)
			return rc;
	} else if (fstat(td->fd, &st) < 0) {
		return tape_err_set(reterr, -TAPE_E_IO, "stat (%s): %s", td->path,
				    strerror(errno));
	} else {
		td->size = (uint64_t)st.st_size;
	}
	map = mmap(NULL, td->size ? td->size : 1, PROT_READ, MAP_PRIVATE, td->fd, 0);
	if (map == MAP_FAILED)
		return tape_err_set(reterr, -TAPE_E_IO, "map (%s): %s", td->path, strerror(errno));
	td->map = map;
	return 0;
}

static int read_start(struct tracedat *td, struct td_cursor *c, struct tape_err *reterr)
{
	const uint8_t *magic = td_bytes(c, 10);
	const char *version = td_string(c);
	uint64_t endian, host_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	const uint8_t *byte;

	if (!magic || memcmp(magic, "\x17\x08\x44tracing", 10) || !version)
		return td_bad(td, c, reterr, "start of the file");
	if (strcmp(version, "6") && strcmp(version, "7"))
		return tape_err_set(reterr, -TAPE_E_VERSION,
				    "trace.dat (%s, offset 10): format version %.10s; this build "
				    "reads 6 and 7",
				    td->path, version);
	td->version = version[0] - '0';
	byte = td_bytes(c, 2);
	if (!byte)
		return td_bad(td, c, reterr, "start of the file");
	endian = byte[0];
	td->long_bytes = byte[1];
	td->page_bytes = (uint32_t)td_number(c, 4);
	if (endian != host_endian)
		return tape_err_set(reterr, -TAPE_E_VERSION,
				    "trace.dat (%s): recorded on a machine of other byte order",
				    td->path);
	if (c->failed || (td->long_bytes != 4 && td->long_bytes != 8) || td->page_bytes < 256 ||
	    td->page_bytes > TRACEDAT_CHUNK_MAX)
		return td_bad(td, c, reterr, "size of a long or of a page");
	return 0;
}

int tracedat_open(struct capture_input *in, struct tracedat **ret_td, struct tape_err *reterr)
{
	TAPE_CLEANUP(closep) struct tracedat *td = calloc(1, sizeof(*td));
	struct td_cursor c;
	int rc;

	if (!td)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	td->fd = -1;
	td->path = strdup(capture_input_path(in));
	if (!td->path)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	rc = map_file(td, in, reterr);
	if (rc < 0)
		return rc;
	c = td_cursor_make(td->map, td->size, 0);
	rc = read_start(td, &c, reterr);
	if (rc >= 0)
		rc = td->version == 6 ? td_read_v6(td, &c, reterr) : td_read_v7(td, &c, reterr);
	if (rc < 0)
		return rc;
	if (!td->cpus_nr)
		return td_bad(td, &c, reterr, "no CPU has data");
	*ret_td = tape_steal(&td);
	return 0;
}

void tracedat_close(struct tracedat *td)
{
	if (!td)
		return;
	if (td->map)
		munmap((void *)(uintptr_t)td->map, td->size ? td->size : 1);
	if (td->fd >= 0)
		close(td->fd);
	for (size_t i = 0; i < td->blocks_nr; i++)
		free(td->blocks[i]);
	free(td->blocks);
	free(td->path);
	free(td->formats);
	free(td->release);
	free(td->clock);
	free(td->cpus);
	free(td->stats);
	free(td);
}
