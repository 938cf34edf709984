/* SPDX-License-Identifier: MIT */
/*
 * Layout of the text buffer:
 *
 *	text  [ consumed | begin ... end | room ]   capacity bytes, plus one for a NUL
 *	offset = decompressed offset of text[begin]
 *
 * The raw buffer holds undecoded bytes and is used by compressed inputs only.
 */
#include "capture/input.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/inflate.h"

#define RAW_BYTES (128u << 10)
#define TEXT_BYTES (256u << 10)

struct capture_input {
	char *path;
	int fd;
	bool eof; /* no more bytes will come */
	bool is_file;
	bool line_cut; /* the last line had no newline */
	struct capture_inflate *inflate; /* NULL: plain */
	unsigned char *raw;
	size_t raw_begin, raw_end;
	bool raw_eof;
	char *text;
	size_t begin, end, capacity;
	uint64_t offset, lineno, line_offset;
	uint64_t raw_done, raw_total;
};

static int read_raw(struct capture_input *in, void *buf, size_t len, size_t *ret_got,
		    struct tape_err *reterr)
{
	ssize_t got;

	do
		got = read(in->fd, buf, len);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return tape_err_set(reterr, -TAPE_E_IO, "read (%s, offset %llu): %s", in->path,
				    (unsigned long long)in->raw_done, strerror(errno));
	in->raw_done += (uint64_t)got;
	*ret_got = (size_t)got;
	return 0;
}

static int refill_raw(struct capture_input *in, struct tape_err *reterr)
{
	size_t got;
	int rc;

	if (in->raw_begin < in->raw_end || in->raw_eof)
		return 0;
	in->raw_begin = in->raw_end = 0;
	rc = read_raw(in, in->raw, RAW_BYTES, &got, reterr);
	if (rc < 0)
		return rc;
	in->raw_end = got;
	in->raw_eof = got == 0;
	return 0;
}

/* Decompress at least one byte into the room behind end, or find the end of the input. */
static int fill_inflate(struct capture_input *in, struct tape_err *reterr)
{
	struct tape_err why = { 0 };

	for (;;) {
		size_t used = 0;
		int rc = refill_raw(in, reterr);

		if (rc < 0)
			return rc;
		if (in->raw_eof && capture_inflate_at_end(in->inflate)) {
			in->eof = true;
			return 0;
		}
		rc = capture_inflate_run(in->inflate, in->raw + in->raw_begin,
					 in->raw_end - in->raw_begin, &used, in->text + in->end,
					 in->capacity - in->end, &why);
		if (rc < 0)
			return tape_err_set(reterr, rc, "decompress (%s, offset %llu): %s",
					    in->path, (unsigned long long)in->raw_done, why.text);
		in->raw_begin += used;
		in->end += (size_t)rc;
		if (rc > 0)
			return 0;
		if (in->raw_eof && !used && !capture_inflate_at_end(in->inflate))
			return tape_err_set(reterr, -TAPE_E_TRUNCATED,
					    "decompress (%s, offset %llu): the compressed stream "
					    "ends early; the file is truncated",
					    in->path, (unsigned long long)in->raw_done);
	}
}

/* Make room behind end by moving the text to the front, or by growing up to the limit. */
static int make_room(struct capture_input *in, struct tape_err *reterr)
{
	size_t capacity;
	char *text;

	if (in->begin) {
		memmove(in->text, in->text + in->begin, in->end - in->begin);
		in->end -= in->begin;
		in->begin = 0;
	}
	if (in->end < in->capacity)
		return 0;
	if (in->capacity >= CAPTURE_LINE_MAX)
		return tape_err_set(reterr, -TAPE_E_LIMIT,
				    "read (%s, offset %llu): line longer than %u bytes", in->path,
				    (unsigned long long)in->offset, CAPTURE_LINE_MAX);
	capacity = in->capacity * 2;
	text = realloc(in->text, capacity + 1);
	if (!text)
		return tape_err_set(reterr, -TAPE_E_IO, "out of memory");
	in->text = text;
	in->capacity = capacity;
	return 0;
}

static int fill(struct capture_input *in, struct tape_err *reterr)
{
	size_t got = 0;
	int rc = make_room(in, reterr);

	if (rc < 0)
		return rc;
	if (in->inflate)
		return fill_inflate(in, reterr);
	rc = read_raw(in, in->text + in->end, in->capacity - in->end, &got, reterr);
	if (rc < 0)
		return rc;
	in->end += got;
	in->eof = got == 0;
	return 0;
}

/* The first bytes decide on the decompressor; what was read stays in the buffers. */
static int sniff(struct capture_input *in, struct tape_err *reterr)
{
	struct tape_err why = { 0 };
	int rc;

	while (in->raw_end < 6 && !in->raw_eof) {
		size_t got;

		rc = read_raw(in, in->raw + in->raw_end, RAW_BYTES - in->raw_end, &got, reterr);
		if (rc < 0)
			return rc;
		in->raw_end += got;
		in->raw_eof = got == 0;
	}
	rc = capture_inflate_create(in->raw, in->raw_end, &in->inflate, &why);
	if (rc < 0)
		return tape_err_set(reterr, rc, "open (%s): %s", in->path, why.text);
	if (in->inflate) {
		in->raw_eof = false;
		return 0;
	}
	memcpy(in->text, in->raw, in->raw_end);
	in->end = in->raw_end;
	in->eof = in->raw_eof;
	in->raw_begin = in->raw_end = 0;
	return 0;
}

int capture_input_open(const char *path, struct capture_input **ret_in, struct tape_err *reterr)
{
	TAPE_CLEANUP(capture_input_closep) struct capture_input *in = calloc(1, sizeof(*in));
	struct stat st;
	int rc;

	if (!in)
		return tape_err_set(reterr, -TAPE_E_IO, "out of memory");
	in->fd = -1;
	in->path = strdup(strcmp(path, "-") ? path : "standard input");
	in->raw = malloc(RAW_BYTES);
	in->text = malloc(TEXT_BYTES + 1);
	in->capacity = TEXT_BYTES;
	if (!in->path || !in->raw || !in->text)
		return tape_err_set(reterr, -TAPE_E_IO, "out of memory");
	in->fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);
	if (in->fd < 0 || fstat(in->fd, &st) < 0)
		return tape_err_set(reterr, -errno, "open (%s): %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return tape_err_set(reterr, -TAPE_E_FORMAT, "open (%s): is a directory", path);
	in->is_file = S_ISREG(st.st_mode);
	in->raw_total = in->is_file ? (uint64_t)st.st_size : 0;
	rc = sniff(in, reterr);
	if (rc < 0)
		return rc;
	*ret_in = tape_steal(&in);
	return 0;
}

void capture_input_close(struct capture_input *in)
{
	if (!in)
		return;
	capture_inflate_destroy(in->inflate);
	if (in->fd >= 0)
		close(in->fd);
	free(in->path);
	free(in->raw);
	free(in->text);
	free(in);
}

const char *capture_input_path(const struct capture_input *in)
{
	return in->path;
}

uint64_t capture_input_lineno(const struct capture_input *in)
{
	return in->lineno;
}

uint64_t capture_input_offset(const struct capture_input *in)
{
	return in->line_offset;
}

void capture_input_progress(const struct capture_input *in, uint64_t *ret_done,
			    uint64_t *ret_total)
{
	*ret_done = in->raw_done;
	*ret_total = in->raw_total;
}

bool capture_input_must_spool(const struct capture_input *in)
{
	return in->inflate || !in->is_file;
}

bool capture_input_line_cut(const struct capture_input *in)
{
	return in->line_cut;
}

int capture_input_peek(struct capture_input *in, size_t want, const char **ret_data,
		       struct tape_err *reterr)
{
	assert(want <= CAPTURE_LINE_MAX);
	while (in->end - in->begin < want && !in->eof) {
		int rc = fill(in, reterr);

		if (rc < 0)
			return rc;
	}
	*ret_data = in->text + in->begin;
	return (int)(in->end - in->begin < want ? in->end - in->begin : want);
}

int capture_input_line(struct capture_input *in, char **ret_line, size_t *ret_len,
		       struct tape_err *reterr)
{
	size_t seen = 0, len;
	char *newline;
	int rc;

	while (!(newline = memchr(in->text + in->begin + seen, '\n',
				  in->end - in->begin - seen))) {
		seen = in->end - in->begin;
		if (in->eof) {
			if (!seen)
				return 0;
			newline = in->text + in->end;
			break;
		}
		rc = fill(in, reterr);
		if (rc < 0)
			return rc;
	}
	*newline = '\0';
	len = (size_t)(newline - (in->text + in->begin));
	*ret_line = in->text + in->begin;
	*ret_len = len;
	in->line_offset = in->offset;
	in->lineno++;
	in->line_cut = newline == in->text + in->end;
	len += !in->line_cut;
	in->begin += len;
	in->offset += len;
	return 1;
}

int capture_input_spool(struct capture_input *in, int fd, uint64_t *ret_bytes,
			struct tape_err *reterr)
{
	uint64_t bytes = 0;

	do {
		int rc;

		while (in->begin < in->end) {
			ssize_t put = write(fd, in->text + in->begin, in->end - in->begin);

			if (put < 0 && errno != EINTR)
				return tape_err_set(reterr, -TAPE_E_IO, "write (copy of %s): %s",
						    in->path, strerror(errno));
			in->begin += put > 0 ? (size_t)put : 0;
			bytes += put > 0 ? (uint64_t)put : 0;
		}
		in->begin = in->end = 0;
		rc = in->eof ? 0 : fill(in, reterr);
		if (rc < 0)
			return rc;
	} while (!in->eof || in->begin < in->end);
	*ret_bytes = bytes;
	return 0;
}

int capture_input_slurp(const char *path, size_t limit_bytes, char **ret_text, size_t *ret_len,
			struct tape_err *reterr)
{
	TAPE_CLEANUP(capture_input_closep) struct capture_input *in = NULL;
	TAPE_CLEANUP(tape_freep) char *text = NULL;
	size_t len = 0;
	int rc = capture_input_open(path, &in, reterr);

	while (rc >= 0 && (in->begin < in->end || !in->eof)) {
		size_t part = in->end - in->begin;
		char *grown = realloc(text, len + part + 1);

		if (!grown || len + part > limit_bytes) {
			text = grown ? grown : text;
			return tape_err_set(reterr, -TAPE_E_LIMIT,
					    "read (%s): larger than the limit of %zu bytes", path,
					    limit_bytes);
		}
		text = grown;
		memcpy(text + len, in->text + in->begin, part);
		len += part;
		in->begin = in->end = 0;
		rc = in->eof ? 0 : fill(in, reterr);
	}
	if (rc < 0)
		return rc;
	if (!text && !(text = calloc(1, 1)))
		return tape_err_set(reterr, -TAPE_E_IO, "out of memory");
	text[len] = '\0';
	*ret_text = tape_steal(&text);
	*ret_len = len;
	return 0;
}
