/* SPDX-License-Identifier: MIT */
#include "capture/inflate.h"

#include <stdlib.h>
#include <string.h>

#include <zstd.h>
#ifdef CAPTURE_ZLIB
#include <zlib.h>
#endif
#ifdef CAPTURE_LZMA
#include <lzma.h>
#endif

enum inflate_kind { INFLATE_ZSTD, INFLATE_GZIP, INFLATE_XZ, INFLATE_KIND_MAX };

static const struct {
	const char *name;
	unsigned char magic[6];
	unsigned char magic_len;
} kinds[INFLATE_KIND_MAX] = {
	[INFLATE_ZSTD] = { "zstd", { 0x28, 0xb5, 0x2f, 0xfd }, 4 },
	[INFLATE_GZIP] = { "gzip", { 0x1f, 0x8b }, 2 },
	[INFLATE_XZ] = { "xz", { 0xfd, '7', 'z', 'X', 'Z', 0 }, 6 },
};

struct capture_inflate {
	enum inflate_kind kind;
	bool at_end;
	ZSTD_DStream *zstd;
#ifdef CAPTURE_ZLIB
	z_stream gzip;
	bool gzip_open;
#endif
#ifdef CAPTURE_LZMA
	lzma_stream xz;
#endif
};

static int start(struct capture_inflate *inf)
{
	switch (inf->kind) {
	case INFLATE_ZSTD:
		inf->zstd = ZSTD_createDStream();
		return inf->zstd ? 0 : -1;
#ifdef CAPTURE_ZLIB
	case INFLATE_GZIP:
		inf->gzip_open = inflateInit2(&inf->gzip, 15 + 16) == Z_OK;
		return inf->gzip_open ? 0 : -1;
#endif
#ifdef CAPTURE_LZMA
	case INFLATE_XZ:
		return lzma_stream_decoder(&inf->xz, 256u << 20, LZMA_CONCATENATED) == LZMA_OK
			       ? 0
			       : -1;
#endif
	default:
		return -1;
	}
}

int capture_inflate_create(const unsigned char *magic, size_t len,
			   struct capture_inflate **ret_inf, struct tape_err *reterr)
{
	struct capture_inflate *inf;
	int kind;

	*ret_inf = NULL;
	for (kind = 0; kind < INFLATE_KIND_MAX; kind++)
		if (len >= kinds[kind].magic_len &&
		    !memcmp(magic, kinds[kind].magic, kinds[kind].magic_len))
			break;
	if (kind == INFLATE_KIND_MAX)
		return 0;
	inf = calloc(1, sizeof(*inf));
	if (!inf)
		return tape_err_set(reterr, -TAPE_E_IO, "out of memory");
	inf->kind = (enum inflate_kind)kind;
	if (start(inf) < 0) {
		capture_inflate_destroy(inf);
		return tape_err_set(reterr, -TAPE_E_VERSION,
				    "this build cannot read %s; decompress it first",
				    kinds[kind].name);
	}
	*ret_inf = inf;
	return 0;
}

void capture_inflate_destroy(struct capture_inflate *inf)
{
	if (!inf)
		return;
	ZSTD_freeDStream(inf->zstd);
#ifdef CAPTURE_ZLIB
	if (inf->gzip_open)
		inflateEnd(&inf->gzip);
#endif
#ifdef CAPTURE_LZMA
	lzma_end(&inf->xz);
#endif
	free(inf);
}

static int run_zstd(struct capture_inflate *inf, const void *in, size_t in_len, size_t *in_used,
		    void *out, size_t out_len, struct tape_err *reterr)
{
	ZSTD_inBuffer src = { in, in_len, 0 };
	ZSTD_outBuffer dst = { out, out_len, 0 };
	size_t rc = ZSTD_decompressStream(inf->zstd, &dst, &src);

	if (ZSTD_isError(rc))
		return tape_err_set(reterr, -TAPE_E_FORMAT, "zstd: %s", ZSTD_getErrorName(rc));
	*in_used = src.pos;
	inf->at_end = rc == 0;
	return (int)dst.pos;
}

#ifdef CAPTURE_ZLIB
static int run_gzip(struct capture_inflate *inf, const void *in, size_t in_len, size_t *in_used,
		    void *out, size_t out_len, struct tape_err *reterr)
{
	int rc;

	if (inf->at_end && in_len && inflateReset(&inf->gzip) != Z_OK)
		return tape_err_set(reterr, -TAPE_E_FORMAT, "gzip: cannot restart");
	/* zlib's old interface takes a pointer to bytes it does not change. */
	inf->gzip.next_in = (Bytef *)(uintptr_t)in;
	inf->gzip.avail_in = (uInt)in_len;
	inf->gzip.next_out = out;
	inf->gzip.avail_out = (uInt)out_len;
	rc = inflate(&inf->gzip, Z_NO_FLUSH);
	if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
		return tape_err_set(reterr, -TAPE_E_FORMAT, "gzip: %s",
				    inf->gzip.msg ? inf->gzip.msg : "corrupt data");
	*in_used = in_len - inf->gzip.avail_in;
	inf->at_end = rc == Z_STREAM_END;
	return (int)(out_len - inf->gzip.avail_out);
}
#endif

#ifdef CAPTURE_LZMA
static int run_xz(struct capture_inflate *inf, const void *in, size_t in_len, size_t *in_used,
		  void *out, size_t out_len, struct tape_err *reterr)
{
	lzma_ret rc;

	inf->xz.next_in = in;
	inf->xz.avail_in = in_len;
	inf->xz.next_out = out;
	inf->xz.avail_out = out_len;
	rc = lzma_code(&inf->xz, in_len ? LZMA_RUN : LZMA_FINISH);
	if (rc != LZMA_OK && rc != LZMA_STREAM_END && rc != LZMA_BUF_ERROR)
		return tape_err_set(reterr, -TAPE_E_FORMAT, "xz: corrupt data (%d)", (int)rc);
	*in_used = in_len - inf->xz.avail_in;
	inf->at_end = rc == LZMA_STREAM_END;
	return (int)(out_len - inf->xz.avail_out);
}
#endif

int capture_inflate_run(struct capture_inflate *inf, const void *in, size_t in_len,
			size_t *in_used, void *out, size_t out_len, struct tape_err *reterr)
{
	switch (inf->kind) {
#ifdef CAPTURE_ZLIB
	case INFLATE_GZIP:
		return run_gzip(inf, in, in_len, in_used, out, out_len, reterr);
#endif
#ifdef CAPTURE_LZMA
	case INFLATE_XZ:
		return run_xz(inf, in, in_len, in_used, out, out_len, reterr);
#endif
	default:
		return run_zstd(inf, in, in_len, in_used, out, out_len, reterr);
	}
}

bool capture_inflate_at_end(const struct capture_inflate *inf)
{
	return inf->at_end;
}
