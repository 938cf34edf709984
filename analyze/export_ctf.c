/* SPDX-License-Identifier: MIT */
/*
 * CTF 1.8: metadata and one stream per CPU, events packed in bytes, little endian.
 *
 *	packet	magic u32, stream u32; begin, end, content bits, packet bits, discarded u64; cpu u32
 *	event	id u16 (op), timestamp u64; the numbers of CTF_FIELDS; cache, site: strings ("-": none)
 *
 * Losses of the tape are events_discarded of the CPU's stream, so that every CTF reader warns.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/export_internal.h"
#include "base/cleanup.h"
#include "store/tape.h"

#define CTF_MAGIC 0xC1FC1FC1u
enum { PACKET_HEAD = 8 + 5 * 8 + 4, PACKET_BYTES = 64 << 10, EVENT_FIXED = 2 + 8 };

/* The numbers of an event, in order; X(type, field, expression). */
#define CTF_FIELDS(X)                                                                       \
	X(uint64_t, seq, seq) X(uint64_t, object, ev->object) X(uint64_t, address, ev->address) \
	X(uint64_t, size, ev->size) X(int64_t, arg, ev->arg) X(uint64_t, ts_lo, ev->ts_lo)     \
	X(uint64_t, ts_hi, ev->ts_hi) X(uint32_t, slot, ev->slot) X(uint32_t, bulk, ev->bulk)  \
	X(int32_t, tid, ev->tid) X(int16_t, node_req, ev->node_req)                            \
	X(int16_t, mem_node, ev->mem_node) X(uint16_t, gfp, ev->gfp)                           \
	X(uint16_t, flags, ev->flags) X(uint8_t, ctx, ev->ctx)

#define CTF_SIZE(type, field, expression) + sizeof(type)
enum { FIELDS_BYTES = 0 CTF_FIELDS(CTF_SIZE) };

struct ctf_stream {
	FILE *file;
	uint8_t *packet; /* PACKET_BYTES, then room for one event */
	size_t used;	 /* bytes; 0: no packet is open */
	uint64_t begin_ns, end_ns;
};

struct ctf {
	const char *dir;
	struct export_names names;
	struct ctf_stream streams[TAPE_CPU_MAX];
	json_t *losses; /* cpu, ts_begin, ts_end, events; in ts order */
	struct export_sums sums;
	struct tape_err *reterr;
};

static int failed(const char *dir, const char *name, struct tape_err *reterr)
{
	return tape_err_set(reterr, -TAPE_E_IO, "ctf (%s/%s): %s", dir, name, strerror(errno));
}

/* ---- metadata ---- */

static const char metadata_head[] =
	"/* CTF 1.8 */\n"
	"typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
	"typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n"
	"typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
	"typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
	"typealias integer { size = 16; align = 8; signed = true; } := int16_t;\n"
	"typealias integer { size = 32; align = 8; signed = true; } := int32_t;\n"
	"typealias integer { size = 64; align = 8; signed = true; } := int64_t;\n"
	"trace {\n"
	"\tmajor = 1;\n\tminor = 8;\n\tbyte_order = le;\n"
	"\tpacket.header := struct { uint32_t magic; uint32_t stream_id; };\n"
	"};\n"
	"env { domain = \"slabtape\"; tracer_name = \"slabtape\"; };\n"
	"clock {\n"
	"\tname = \"tape\";\n\tdescription = \"ns since the start of the tape\";\n"
	"\tfreq = 1000000000;\n\toffset = 0;\n"
	"};\n"
	"typealias integer { size = 64; align = 8; signed = false; map = clock.tape.value; } := tape_ns;\n"
	"stream {\n"
	"\tid = 0;\n"
	"\tpacket.context := struct {\n"
	"\t\ttape_ns timestamp_begin;\n\t\ttape_ns timestamp_end;\n"
	"\t\tuint64_t content_size;\n\t\tuint64_t packet_size;\n"
	"\t\tuint64_t events_discarded;\n\t\tuint32_t cpu_id;\n"
	"\t};\n"
	"\tevent.header := struct { uint16_t id; tape_ns timestamp; };\n"
	"};\n";

static int write_metadata(const char *dir, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) char *path = NULL;
	TAPE_CLEANUP(tape_fclosep) FILE *out = NULL;

	if (asprintf(&path, "%s/metadata", dir) < 0)
		return -ENOMEM;
	out = fopen(path, "we");
	if (!out)
		return failed(dir, "metadata", reterr);
	fputs(metadata_head, out);
	for (int op = 0; op < TAPE_OP_MAX; op++) {
		fprintf(out, "event {\n\tid = %d;\n\tname = \"slabtape:%s\";\n\tstream_id = 0;\n"
			"\tfields := struct {\n", op, tape_op_name((uint8_t)op));
#define CTF_DECLARE(type, field, expression) fputs("\t\t" #type " " #field ";\n", out);
		CTF_FIELDS(CTF_DECLARE)
		fputs("\t\tstring cache;\n\t\tstring site;\n\t};\n};\n", out);
	}
	return fflush(out) || ferror(out) ? failed(dir, "metadata", reterr) : 0;
}

/* ---- streams ---- */

static uint8_t *put(uint8_t *at, const void *value, size_t bytes)
{
	memcpy(at, value, bytes); /* hosts are little endian: x86-64, aarch64 */
	return at + bytes;
}

/* Events lost on @cpu up to @ts; losses of no CPU count on CPU 0. */
static uint64_t discarded(const struct ctf *x, uint32_t cpu, uint64_t ts)
{
	uint64_t n = 0;
	json_t *row;
	size_t i;

	json_array_foreach(x->losses, i, row)
		if (analyze_int(row, "cpu") == (int64_t)cpu && (uint64_t)analyze_int(row, "ts_end") <= ts)
			n += (uint64_t)analyze_int(row, "events");
	return n;
}

/* @until_ns: losses up to then are in its count. */
static int flush_packet(struct ctf *x, uint32_t cpu, uint64_t until_ns)
{
	struct ctf_stream *s = &x->streams[cpu];
	const uint32_t head[] = { CTF_MAGIC, 0 };
	const uint64_t context[] = { s->begin_ns, s->end_ns, 8 * s->used, 8 * s->used,
				     discarded(x, cpu, until_ns) };
	uint8_t *at = put(s->packet, head, sizeof(head));

	at = put(at, context, sizeof(context));
	put(at, &cpu, sizeof(cpu));
	if (fwrite(s->packet, 1, s->used, s->file) != s->used)
		return failed(x->dir, "stream", x->reterr);
	x->sums.records++;
	s->used = 0;
	return 0;
}

static void begin_packet(struct ctf_stream *s, uint64_t ts)
{
	if (s->used)
		return;
	s->used = PACKET_HEAD;
	s->begin_ns = s->end_ns = ts;
}

/*
 * Readers take the difference of two packets' counts: where events were lost, a packet without
 * events says that none were before.  @first_ns: when the stream begins.
 */
static int write_first_packet(struct ctf *x, uint32_t cpu, uint64_t first_ns)
{
	bool lost = false;
	json_t *row;
	size_t i;

	json_array_foreach(x->losses, i, row) {
		uint64_t ts = (uint64_t)analyze_int(row, "ts_begin");

		if (analyze_int(row, "cpu") != (int64_t)cpu)
			continue;
		lost = true;
		first_ns = ts < first_ns ? ts : first_ns;
	}
	if (!lost)
		return 0;
	begin_packet(&x->streams[cpu], first_ns ? first_ns - 1 : 0);
	return flush_packet(x, cpu, 0);
}

static int open_stream(struct ctf *x, uint32_t cpu, uint64_t first_ns)
{
	struct ctf_stream *s = &x->streams[cpu];
	TAPE_CLEANUP(tape_freep) char *path = NULL;

	if (s->file)
		return 0;
	if (asprintf(&path, "%s/cpu_%u", x->dir, cpu) < 0)
		return -ENOMEM;
	s->packet = malloc(PACKET_BYTES);
	s->file = fopen(path, "we");
	if (!s->packet)
		return -ENOMEM;
	return s->file ? write_first_packet(x, cpu, first_ns) : failed(x->dir, "stream", x->reterr);
}

/* babeltrace2 2.0.4 shows the string of an earlier event in place of an empty one. */
static const char *name_or_dash(const char *text)
{
	return *text ? text : "-";
}

static int write_event(void *ctx, uint64_t seq, const struct tape_event *ev)
{
	struct ctf *x = ctx;
	struct ctf_stream *s = &x->streams[ev->cpu];
	const char *cache = name_or_dash(export_cache_name(&x->names, ev->cache));
	const char *site = name_or_dash(export_site_name(&x->names, ev->site));
	size_t bytes = EVENT_FIXED + FIELDS_BYTES + strlen(cache) + strlen(site) + 2;
	const uint16_t id = ev->op;
	uint8_t *at;
	int rc = open_stream(x, ev->cpu, ev->ts);

	if (bytes > PACKET_BYTES - PACKET_HEAD)
		return tape_err_set(x->reterr, -TAPE_E_LIMIT, "ctf: event %" PRIu64 ": a name of %zu bytes",
				    seq, bytes);
	if (rc == 0 && s->used && s->used + bytes > PACKET_BYTES)
		rc = flush_packet(x, ev->cpu, s->end_ns);
	if (rc < 0)
		return rc;
	begin_packet(s, ev->ts);
	at = s->packet + s->used;
	at = put(at, &id, sizeof(id));
	at = put(at, &ev->ts, sizeof(ev->ts));
#define CTF_PUT(type, field, expression) at = put(at, &(const type){ expression }, sizeof(type));
	CTF_FIELDS(CTF_PUT)
	at = put(at, cache, strlen(cache) + 1);
	put(at, site, strlen(site) + 1);
	s->used += bytes;
	s->end_ns = ev->ts;
	x->sums.events++;
	return 0;
}

/* The last packets; a CPU that only lost events gets one without events. */
static int finish_streams(struct ctf *x)
{
	json_t *row;
	size_t i;
	int rc = 0;

	json_array_foreach(x->losses, i, row) {
		int64_t cpu = analyze_int(row, "cpu");

		if (rc < 0 || cpu < 0 || cpu >= TAPE_CPU_MAX)
			continue;
		rc = open_stream(x, (uint32_t)cpu, (uint64_t)analyze_int(row, "ts_begin"));
		if (rc == 0)
			begin_packet(&x->streams[cpu], (uint64_t)analyze_int(row, "ts_end"));
	}
	for (uint32_t cpu = 0; cpu < TAPE_CPU_MAX && rc == 0; cpu++) {
		struct ctf_stream *s = &x->streams[cpu];

		if (s->used)
			rc = flush_packet(x, cpu, UINT64_MAX);
		if (rc == 0 && s->file && fflush(s->file))
			rc = failed(x->dir, "stream", x->reterr);
	}
	return rc;
}

static void streams_fini(struct ctf *x)
{
	for (uint32_t cpu = 0; cpu < TAPE_CPU_MAX; cpu++) {
		if (x->streams[cpu].file)
			fclose(x->streams[cpu].file);
		free(x->streams[cpu].packet);
	}
	json_decref(x->losses);
	export_names_fini(&x->names);
}

/* ---- reading back ---- */

/* The events of one packet of @bytes, which are walked field by field; -1: it is not sound. */
static int64_t count_events(const uint8_t *packet, size_t bytes)
{
	size_t at = PACKET_HEAD;
	int64_t events = 0;

	while (at < bytes) {
		at += EVENT_FIXED + FIELDS_BYTES;
		for (int text = 0; text < 2; text++) {
			const uint8_t *end = at < bytes ? memchr(packet + at, 0, bytes - at) : NULL;

			if (!end)
				return -1;
			at = (size_t)(end - packet) + 1;
		}
		events++;
	}
	return at == bytes ? events : -1;
}

static int check_stream(FILE *in, uint8_t *packet, struct export_sums *sums)
{
	uint64_t bits;
	int64_t events;
	uint32_t magic;

	while (fread(packet, 1, PACKET_HEAD, in) == PACKET_HEAD) {
		memcpy(&magic, packet, sizeof(magic));
		memcpy(&bits, packet + 24, sizeof(bits));
		if (magic != CTF_MAGIC || bits % 8 || bits / 8 > PACKET_BYTES || bits / 8 < PACKET_HEAD)
			return -1;
		if (fread(packet + PACKET_HEAD, 1, bits / 8 - PACKET_HEAD, in) != bits / 8 - PACKET_HEAD)
			return -1;
		events = count_events(packet, bits / 8);
		if (events < 0)
			return -1;
		sums->records++;
		sums->events += (uint64_t)events;
	}
	return ferror(in) ? -1 : 0;
}

static int check_streams(const struct ctf *x, struct export_sums *ret_sums, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) uint8_t *packet = malloc(PACKET_BYTES);

	for (uint32_t cpu = 0; packet && cpu < TAPE_CPU_MAX; cpu++) {
		TAPE_CLEANUP(tape_freep) char *path = NULL;
		TAPE_CLEANUP(tape_fclosep) FILE *in = NULL;

		if (!x->streams[cpu].file)
			continue;
		if (asprintf(&path, "%s/cpu_%u", x->dir, cpu) < 0)
			return -ENOMEM;
		in = fopen(path, "re");
		if (!in)
			return failed(x->dir, "stream", reterr);
		if (check_stream(in, packet, ret_sums) < 0)
			return tape_err_set(reterr, -TAPE_E_IO, "ctf (%s): read back, a packet is not what "
					    "was written; is the disk full?", path);
	}
	return packet ? 0 : -ENOMEM;
}

/* ---- the directory ---- */

static int fill(struct ctf *x, struct tape *t, const struct export_config *cfg,
		struct tape_err *reterr)
{
	int rc = export_names_load(t, &x->names, reterr);

	if (rc == 0)
		rc = analyze_ask(tape_db(t), "SELECT coalesce(cpu, 0) AS cpu, ts_begin, ts_end, events FROM"
				 " loss ORDER BY ts_end", NULL, &x->losses, reterr);
	if (rc == 0)
		rc = write_metadata(x->dir, reterr);
	if (rc == 0)
		rc = export_each(t, cfg, write_event, x, reterr);
	return rc < 0 ? rc : finish_streams(x);
}

static void remove_dir(const struct ctf *x)
{
	TAPE_CLEANUP(tape_freep) char *path = NULL;

	for (uint32_t cpu = 0; cpu < TAPE_CPU_MAX; cpu++) {
		free(path);
		path = NULL;
		if (x->streams[cpu].file && asprintf(&path, "%s/cpu_%u", x->dir, cpu) > 0)
			remove(path);
	}
	free(path);
	path = NULL;
	if (asprintf(&path, "%s/metadata", x->dir) > 0)
		remove(path);
	rmdir(x->dir);
}

static int write_checked(struct ctf *x, struct tape *t, const struct export_config *cfg,
			 struct export_sums *ret_sums, struct tape_err *reterr)
{
	struct export_sums found = { 0 };
	uint64_t expected = 0;
	int rc = fill(x, t, cfg, reterr);

	if (rc == 0)
		rc = check_streams(x, &found, reterr);
	if (rc == 0)
		rc = export_expect_events(t, cfg, &expected, reterr);
	if (rc == 0)
		rc = export_compare(&export_ctf, &x->sums, &found, expected, reterr);
	if (rc == 0)
		*ret_sums = found;
	return rc;
}

static int export_dir(struct tape *t, const struct export_config *cfg, const char *path,
		      struct export_sums *ret_sums, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) struct ctf *x = calloc(1, sizeof(*x));
	TAPE_CLEANUP(tape_freep) char *part = NULL;
	int rc;

	if (!x || asprintf(&part, "%s.part", path) < 0)
		return -ENOMEM;
	if (!access(path, F_OK))
		return tape_err_set(reterr, -TAPE_E_IO, "ctf (%s): exists already; remove it or choose "
				    "another directory", path);
	if (mkdir(part, 0777))
		return tape_err_set(reterr, -TAPE_E_IO, "make a directory (%s): %s", part, strerror(errno));
	x->dir = part;
	x->reterr = reterr;
	rc = write_checked(x, t, cfg, ret_sums, reterr);
	if (rc == 0 && rename(part, path))
		rc = tape_err_set(reterr, -TAPE_E_IO, "rename (%s): %s", part, strerror(errno));
	if (rc < 0)
		remove_dir(x);
	streams_fini(x);
	return rc;
}

const struct export_format export_ctf = { .name = "ctf", .dir = export_dir };
