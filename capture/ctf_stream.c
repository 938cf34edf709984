/* SPDX-License-Identifier: MIT */
#include "capture/ctf_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PACKET_MAGIC 0xc1fc1fc1u
#define PACKET_HEADER_BYTES 84u
#define ID_EXTENDED 0xffffu
#define CPU_MAX 4096u

struct ctf_file {
	struct ctf_file *next;
	char *path;
	uint8_t *data;
	size_t bytes;
};

struct packet {
	uint32_t magic, stream_class, cpu;
	uint64_t begin, end, content_bytes, bytes, sequence, discarded;
};

#define LOAD(name, type)                                                                          \
	static inline type name(const uint8_t *p)                                                 \
	{                                                                                         \
		type value;                                                                       \
                                                                                                  \
		memcpy(&value, p, sizeof(value));                                                 \
		return value;                                                                     \
	}
LOAD(load16, uint16_t)
LOAD(load32, uint32_t)
LOAD(load64, uint64_t)
LOAD(load_s32, int32_t)

static struct packet read_packet(const uint8_t *p)
{
	return (struct packet){
		.magic = load32(p),
		.stream_class = load32(p + 20),
		.begin = load64(p + 32),
		.end = load64(p + 40),
		.content_bytes = load64(p + 48) / 8,
		.bytes = load64(p + 56) / 8,
		.sequence = load64(p + 64),
		.discarded = load64(p + 72),
		.cpu = load32(p + 80),
	};
}

/* ---- adding a file ---- */

static void file_destroy(struct ctf_file *f)
{
	if (!f)
		return;
	if (f->data)
		munmap(f->data, f->bytes);
	free(f->path);
	free(f);
}

static int file_map(const char *path, struct ctf_file **ret_file, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct ctf_file *f = calloc(1, sizeof(*f));
	struct stat st;

	if (!f || !(f->path = strdup(path))) {
		file_destroy(f);
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	}
	if (fd < 0 || fstat(fd, &st)) {
		file_destroy(f);
		return tape_err_set(reterr, -errno, "CTF (%s): %s", path, strerror(errno));
	}
	f->bytes = (size_t)st.st_size;
	if (f->bytes) {
		void *p = mmap(NULL, f->bytes, PROT_READ, MAP_PRIVATE, fd, 0);

		if (p == MAP_FAILED) {
			file_destroy(f);
			return tape_err_set(reterr, -errno, "CTF (%s): %s", path, strerror(errno));
		}
		f->data = p;
		madvise(p, f->bytes, MADV_SEQUENTIAL);
	}
	*ret_file = f;
	return 0;
}

static int check_packet(const struct ctf_stream *s, const struct ctf_file *f, size_t offset,
			const struct packet *p, struct tape_err *reterr)
{
	const char *why = NULL;

	if (p->magic != PACKET_MAGIC || memcmp(f->data + offset + 4, s->uuid, sizeof(s->uuid)))
		why = "no packet of this recording";
	else if (p->content_bytes < PACKET_HEADER_BYTES || p->bytes < p->content_bytes)
		why = "packet sizes that cannot be";
	else if (p->stream_class >= CTF_STREAM_CLASSES || p->cpu >= CPU_MAX || p->end < p->begin)
		why = "stream class, CPU or times that cannot be";
	if (why)
		return tape_err_set(reterr, -TAPE_E_FORMAT, "CTF (%s, offset %zu): %s", f->path,
				    offset, why);
	if (p->bytes > f->bytes - offset)
		return tape_err_set(reterr, -TAPE_E_TRUNCATED,
				    "CTF (%s, offset %zu): the packet goes on behind the end of "
				    "the file",
				    f->path, offset);
	return 0;
}

/*
 * What @p says about loss.  A packet that was closed by a rotation may carry an old count, so the
 * largest so far counts, and the window begins one packet early.
 */
static int take_counts(struct ctf_stream *s, const struct packet *p,
		       int (*loss)(void *, const struct ctf_loss *, struct tape_err *), void *ctx,
		       struct tape_err *reterr)
{
	struct ctf_loss l = {.ts_begin = s->packets ? s->hold_ts : p->begin,
			     .ts_end = p->end,
			     .cpu = (uint16_t)p->cpu};
	bool gap = p->sequence != s->next_sequence;
	int rc = 0;

	if (p->discarded > s->discarded) {
		l.events = p->discarded - s->discarded;
		s->discarded = p->discarded;
		rc = loss(ctx, &l, reterr);
	}
	if (rc >= 0 && gap) {
		l.events = 0;
		if (!s->packets) { /* what came before the first one is not here */
			l.ts_begin = 0;
			l.ts_end = p->begin;
		}
		rc = loss(ctx, &l, reterr);
	}
	s->next_sequence = p->sequence + 1;
	if (!s->packets)
		s->start_ts = p->begin;
	s->hold_ts = p->begin;
	s->cpu = (uint16_t)p->cpu;
	s->packets++;
	return rc;
}

int ctf_stream_add(struct ctf_stream *s, const char *path,
		   int (*loss)(void *ctx, const struct ctf_loss *l, struct tape_err *reterr),
		   void *ctx, struct tape_err *reterr)
{
	struct ctf_file *f = NULL;
	int rc = file_map(path, &f, reterr);

	if (rc < 0)
		return rc;
	for (size_t at = 0; rc >= 0 && at < f->bytes;) {
		struct packet p;

		if (f->bytes - at < PACKET_HEADER_BYTES) {
			rc = tape_err_set(reterr, -TAPE_E_TRUNCATED,
					  "CTF (%s, offset %zu): the file ends within a packet",
					  path, at);
			break;
		}
		p = read_packet(f->data + at);
		rc = check_packet(s, f, at, &p, reterr);
		if (rc >= 0)
			rc = take_counts(s, &p, loss, ctx, reterr);
		at += p.bytes;
	}
	if (rc < 0 || !f->bytes) {
		file_destroy(f);
		return rc;
	}
	if (s->last)
		s->last->next = f;
	else
		s->first = f;
	s->last = f;
	return 0;
}

/* ---- events ---- */

static int bad_event(const struct ctf_stream *s, const char *why, struct tape_err *reterr)
{
	return tape_err_set(reterr, -TAPE_E_FORMAT, "CTF (%s, offset %zu): %s", s->first->path,
			    (size_t)(s->at - s->first->data), why);
}

/* The text at @*p, which ends before @end; moves behind it.  NULL: it has no end. */
static const char *take_text(const uint8_t **p, const uint8_t *end)
{
	const uint8_t *nul = memchr(*p, '\0', (size_t)(end - *p));
	const char *text = (const char *)*p;

	if (!nul)
		return NULL;
	*p = nul + 1;
	return text;
}

static const uint8_t *take_where(const uint8_t *p, struct ctf_record *r)
{
	r->pid = load_s32(p);
	r->tid = load_s32(p + 4);
	r->cpu = load16(p + 8);
	r->node = p[10];
	return p + 11;
}

static inline const uint8_t *decode_alloc(const uint8_t *p, struct ctf_record *r)
{
	r->address = load64(p);
	r->ip = load64(p + 8);
	r->size = load64(p + 16);
	p = take_where(p + 24, r);
	r->kind = *p;
	return p + 1;
}

static inline const uint8_t *decode_free(const uint8_t *p, struct ctf_record *r)
{
	r->address = load64(p);
	r->ip = load64(p + 8);
	r->size = 0;
	p = take_where(p + 16, r);
	r->kind = *p;
	return p + 1;
}

/* Bytes of the fields before a text, by enum ctf_what. */
static const uint8_t fixed_bytes[CTF_WHAT_MAX] = {
	[CTF_ALLOC] = 36,     [CTF_FREE] = 28,	    [CTF_EXEC] = 12,
	[CTF_FORK_BEGIN] = 12, [CTF_FORK] = 16,	    [CTF_MODULE] = 20,
	[CTF_LOST] = 16,      [CTF_SLAB_ALLOC] = 27, [CTF_SLAB_FREE] = 19,
	[CTF_SLAB_TRANSITION] = 29,
};

/* The fixed part of the rarer events. */
static void decode_other(const uint8_t *p, struct ctf_record *r)
{
	switch (r->what) {
	case CTF_MODULE:
		r->pid = load_s32(p);
		r->address = load64(p + 4);
		r->size = load64(p + 12);
		break;
	case CTF_SLAB_ALLOC:
		r->address = load64(p);
		r->size = load64(p + 8);
		take_where(p + 16, r);
		break;
	case CTF_SLAB_FREE:
		r->address = load64(p);
		take_where(p + 8, r);
		break;
	case CTF_SLAB_TRANSITION:
		r->size = load64(p);
		p = take_where(p + 8, r);
		r->from = p[0];
		r->to = p[1];
		r->inuse = load32(p + 2);
		r->objects = load32(p + 6);
		break;
	default:
		r->pid = load_s32(p);
		r->tid = load_s32(p + 4);
		if (r->what == CTF_LOST)
			r->size = load64(p + 8);
		else if (r->what == CTF_FORK_BEGIN)
			r->serial = load32(p + 8);
		else
			r->parent = load_s32(p + 8);
		if (r->what == CTF_FORK)
			r->serial = load32(p + 12);
	}
}

static bool has_text(uint8_t what)
{
	return what == CTF_EXEC || what == CTF_MODULE || what >= CTF_SLAB_ALLOC;
}

static int decode_rare(struct ctf_stream *s, const uint8_t *p, struct tape_err *reterr)
{
	struct ctf_record *r = &s->head;
	uint8_t what = r->what;
	uint64_t ts = r->ts;

	memset(r, 0, sizeof(*r));
	r->what = what;
	r->ts = ts;
	r->cpu = s->cpu;
	decode_other(p, r);
	p += fixed_bytes[what];
	if (has_text(what)) {
		r->text = take_text(&p, s->end);
		if (!r->text)
			return bad_event(s, "a text without end", reterr);
	}
	s->at = p;
	return 0;
}

/* Id and time of the event at s->at; the place of its fields, NULL: the packet ends in it. */
static const uint8_t *take_header(struct ctf_stream *s, uint32_t *ret_id)
{
	const uint8_t *p = s->at;
	size_t left = (size_t)(s->end - p);
	uint32_t id, low;

	if (left < 6)
		return NULL;
	id = load16(p);
	if (__builtin_expect(id != ID_EXTENDED, 1)) {
		/* The low 32 bits; they ran over when they are smaller than the last ones. */
		low = load32(p + 2);
		s->clock += (uint32_t)(low - (uint32_t)s->clock);
		*ret_id = id;
		return p + 6;
	}
	if (left < 14)
		return NULL;
	*ret_id = load32(p + 2);
	s->clock = load64(p + 6);
	return p + 14;
}

/* Go to the next packet that holds events; false: there is none yet. */
static bool next_packet(struct ctf_stream *s)
{
	while (s->first) {
		const uint8_t *at = s->packet_end ? s->packet_end : s->first->data;
		struct packet p;

		if (at == s->first->data + s->first->bytes) {
			struct ctf_file *done = s->first;

			s->first = done->next;
			if (!s->first)
				s->last = NULL;
			file_destroy(done);
			s->packet_end = NULL;
			continue;
		}
		p = read_packet(at);
		s->at = at + PACKET_HEADER_BYTES;
		s->end = at + p.content_bytes;
		s->packet_end = at + p.bytes;
		s->what = s->layout->what[p.stream_class];
		s->clock = p.begin;
		s->cpu = (uint16_t)p.cpu;
		if (s->at < s->end)
			return true;
	}
	s->at = s->end = NULL;
	return false;
}

int ctf_stream_next(struct ctf_stream *s, struct tape_err *reterr)
{
	struct ctf_record *r = &s->head;
	const uint8_t *p;
	uint32_t id;

	s->has_head = s->at != s->end || next_packet(s);
	if (!s->has_head)
		return 0;
	p = take_header(s, &id);
	if (!p || id >= CTF_EVENT_CLASSES || s->what[id] >= CTF_WHAT_MAX)
		return bad_event(s, p ? "an event of no known class" : "a cut event", reterr);
	r->what = s->what[id];
	r->ts = s->clock;
	if ((size_t)(s->end - p) < fixed_bytes[r->what])
		return bad_event(s, "a cut event", reterr);
	if (__builtin_expect(r->what > CTF_FREE, 0))
		return decode_rare(s, p, reterr);
	s->at = r->what == CTF_ALLOC ? decode_alloc(p, r) : decode_free(p, r);
	return 0;
}

void ctf_stream_fini(struct ctf_stream *s)
{
	while (s->first) {
		struct ctf_file *f = s->first;

		s->first = f->next;
		file_destroy(f);
	}
	free(s->name);
}
