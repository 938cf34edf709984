/* SPDX-License-Identifier: MIT */
#include "capture/ctf_layout.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "capture/ctf_record.h"
#include "capture/input.h"

#define METADATA_MAX (4u << 20) /* limit of a metadata file, bytes */
#define PACKET_MAGIC 0x75d11d57u
#define PACKET_HEADER_BYTES 37u
#define HEX(name) "integer{size=64;align=8;signed=0;encoding=none;base=16;}_" name ";"
#define U64(name) "integer{size=64;align=8;signed=0;encoding=none;base=10;}_" name ";"
#define U32(name) "integer{size=32;align=8;signed=0;encoding=none;base=10;}_" name ";"
#define S32(name) "integer{size=32;align=8;signed=1;encoding=none;base=10;}_" name ";"
#define U16(name) "integer{size=16;align=8;signed=0;encoding=none;base=10;}_" name ";"
#define U8(name) "integer{size=8;align=8;signed=0;encoding=none;base=10;}_" name ";"
#define TEXT(name) "string _" name ";"
#define WHO S32("pid") S32("tid")
#define WHERE WHO U16("cpu") U8("node")

/* All in the canonical form that canonical() makes. */
static const struct {
	const char *name, *fields;
} events[CTF_WHAT_MAX] = {
	[CTF_ALLOC] = {"slabtape:alloc", HEX("address") HEX("ip") U64("size") WHERE U8("kind")},
	[CTF_FREE] = {"slabtape:free", HEX("address") HEX("ip") WHERE U8("kind")},
	[CTF_EXEC] = {"slabtape:exec", WHO S32("parent") TEXT("text")},
	[CTF_FORK_BEGIN] = {"slabtape:fork_begin", WHO U32("serial")},
	[CTF_FORK] = {"slabtape:fork", WHO S32("parent") U32("serial")},
	[CTF_MODULE] = {"slabtape:module", S32("pid") HEX("base") U64("size") TEXT("text")},
	[CTF_LOST] = {"slabtape:loss", WHO U64("size")},
	[CTF_SLAB_ALLOC] = {"slabtape:slab_alloc", HEX("address") U64("size") WHERE TEXT("cache")},
	[CTF_SLAB_FREE] = {"slabtape:slab_free", HEX("address") WHERE TEXT("cache")},
	[CTF_SLAB_TRANSITION] = {"slabtape:slab_transition",
				 U64("slab") WHERE U8("from") U8("to") U32("inuse") U32("objects")
					 TEXT("cache")},
};

#define CLOCK "map=clock.monotonic.value;"
#define ID_VARIANT(type)                                                                          \
	"variant<id>{struct{" type "timestamp;}compact;"                                          \
	"struct{uint32_t id;uint64_clock_monotonic_t timestamp;}extended;}v;}align(8);"

static const char *const types[] = {
	"typealias integer{size=8;align=8;signed=false;}:=uint8_t;",
	"typealias integer{size=16;align=8;signed=false;}:=uint16_t;",
	"typealias integer{size=32;align=8;signed=false;}:=uint32_t;",
	"typealias integer{size=64;align=8;signed=false;}:=uint64_t;",
	"typealias integer{size=64;align=8;signed=false;}:=unsigned long;",
	"typealias integer{size=5;align=1;signed=false;}:=uint5_t;",
	"typealias integer{size=27;align=1;signed=false;}:=uint27_t;",
	"typealias integer{size=27;align=1;signed=false;" CLOCK "}:=uint27_clock_monotonic_t;",
	"typealias integer{size=32;align=8;signed=false;" CLOCK "}:=uint32_clock_monotonic_t;",
	"typealias integer{size=64;align=8;signed=false;" CLOCK "}:=uint64_clock_monotonic_t;",
	"struct packet_context{uint64_clock_monotonic_t timestamp_begin;"
	"uint64_clock_monotonic_t timestamp_end;uint64_t content_size;uint64_t packet_size;"
	"uint64_t packet_seq_num;unsigned long events_discarded;uint32_t cpu_id;};",
	"struct event_header_compact{enum:uint5_t{compact=0...30,extended=31}id;" ID_VARIANT(
		"uint27_clock_monotonic_t "),
	"struct event_header_large{enum:uint16_t{compact=0...65534,extended=65535}id;" ID_VARIANT(
		"uint32_clock_monotonic_t "),
};

static const char trace_header[] = "packet.header:=struct{uint32_t magic;uint8_t uuid[16];"
				   "uint32_t stream_id;uint64_t stream_instance_id;};};";

/* ---- text ---- */

/* The text of packetized metadata, in place; its length. */
static size_t unpack(char *data, size_t bytes)
{
	size_t from = 0, to = 0;
	uint32_t magic;

	memcpy(&magic, data, bytes < sizeof(magic) ? bytes : sizeof(magic));
	if (bytes < PACKET_HEADER_BYTES || magic != PACKET_MAGIC)
		return bytes;
	while (bytes - from >= PACKET_HEADER_BYTES) {
		uint32_t content, packet;

		memcpy(&content, data + from + 24, sizeof(content));
		memcpy(&packet, data + from + 28, sizeof(packet));
		content /= 8;
		packet /= 8;
		if (content < PACKET_HEADER_BYTES || packet < content || packet > bytes - from)
			break;
		memmove(data + to, data + from + PACKET_HEADER_BYTES,
			content - PACKET_HEADER_BYTES);
		to += content - PACKET_HEADER_BYTES;
		from += packet;
	}
	return to;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Comments go; of blanks one stays between words; quoted text is left as it is. */
static void canonical(char *text)
{
	bool blank = false, quoted = false;
	char *to = text, last = '\0';

	for (const char *p = text; *p; p++) {
		if (!quoted && p[0] == '/' && p[1] == '*') {
			const char *end = strstr(p + 2, "*/");

			blank = true;
			if (!end)
				break;
			p = end + 1;
		} else if (!quoted && isspace((unsigned char)*p)) {
			blank = true;
		} else {
			if (blank && is_word(last) && is_word(*p))
				*to++ = ' ';
			blank = false;
			*to++ = last = *p;
			quoted ^= *p == '"';
		}
	}
	*to = '\0';
}

/* End of the statement at @p: behind the ';' outside braces and quotes; NULL: there is none. */
static char *statement_end(char *p)
{
	bool quoted = false;
	int depth = 0;

	for (; *p; p++) {
		if (*p == '"')
			quoted = !quoted;
		else if (!quoted && (*p == '{' || *p == '}'))
			depth += *p == '{' ? 1 : -1;
		else if (!quoted && *p == ';' && !depth)
			return p + 1;
	}
	return NULL;
}

/* ---- statements ---- */

static bool skip(const char **at, const char *text)
{
	size_t len = strlen(text);

	if (strncmp(*at, text, len))
		return false;
	*at += len;
	return true;
}

static bool read_number(const char **at, uint64_t *ret_value)
{
	char *end;

	if (!isdigit((unsigned char)**at))
		return false;
	*ret_value = strtoull(*at, &end, 10);
	*at = end;
	return true;
}

static bool read_uuid(const char **at, uint8_t *ret_uuid)
{
	for (int i = 0; i < 16; i++) {
		unsigned int byte;

		if (**at == '-')
			(*at)++;
		if (sscanf(*at, "%2x", &byte) != 1)
			return false;
		ret_uuid[i] = (uint8_t)byte;
		*at += 2;
	}
	return true;
}

static bool is_trace(const char *p, struct ctf_layout *layout)
{
	return skip(&p, "trace{major=1;minor=8;uuid=\"") && read_uuid(&p, layout->uuid) &&
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	       skip(&p, "\";byte_order=le;") &&
#else
	       skip(&p, "\";byte_order=be;") &&
#endif
	       !strcmp(p, trace_header);
}

static bool is_clock(const char *p)
{
	return skip(&p, "clock{name=\"monotonic\";") && strstr(p, "freq=1000000000;");
}

static bool is_stream(const char *p)
{
	uint64_t id;

	return skip(&p, "stream{id=") && read_number(&p, &id) && id < CTF_STREAM_CLASSES &&
	       !strcmp(p, ";event.header:=struct event_header_large;"
			  "packet.context:=struct packet_context;};");
}

static bool is_event(const char *p, struct ctf_layout *layout)
{
	uint64_t id, stream, level;
	const char *name;
	size_t len;

	if (!skip(&p, "event{name=\""))
		return false;
	name = p;
	len = strcspn(p, "\"");
	p += len;
	if (!skip(&p, "\";id=") || !read_number(&p, &id) || !skip(&p, ";stream_id=") ||
	    !read_number(&p, &stream) || !skip(&p, ";loglevel=") || !read_number(&p, &level) ||
	    !skip(&p, ";fields:=struct{") || id >= CTF_EVENT_CLASSES ||
	    stream >= CTF_STREAM_CLASSES)
		return false;
	for (uint8_t i = 0; i < CTF_WHAT_MAX; i++) {
		if (strlen(events[i].name) != len || memcmp(events[i].name, name, len))
			continue;
		layout->what[stream][id] = i;
		return skip(&p, events[i].fields) && !strcmp(p, "};};");
	}
	return false;
}

static bool is_type(const char *p)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(p, types[i]))
			return true;
	return false;
}

/* Every statement is one of ours; else *ret_odd is the first that is not. */
static bool check(char *text, struct ctf_layout *layout, const char **ret_odd)
{
	bool trace = false;

	for (char *p = text, *end; *p; p = end) {
		char next;
		bool ours;

		*ret_odd = p;
		end = statement_end(p);
		if (!end)
			return false;
		next = *end;
		*end = '\0';
		ours = is_type(p) || is_clock(p) || is_stream(p) || is_event(p, layout) ||
		       !strncmp(p, "env{", 4);
		if (!ours && !trace)
			ours = trace = is_trace(p, layout);
		if (!ours)
			return false;
		*end = next;
	}
	*ret_odd = "the statement trace";
	return trace;
}

int ctf_layout_read(const char *dir, struct ctf_layout *ret_layout, char *why, size_t why_bytes,
		    struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) char *path = NULL;
	TAPE_CLEANUP(tape_freep) char *text = NULL;
	const char *odd = "";
	size_t bytes;
	int rc;

	if (asprintf(&path, "%s/metadata", dir) < 0) {
		path = NULL;
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	}
	rc = capture_input_slurp(path, METADATA_MAX, &text, &bytes, reterr);
	if (rc < 0)
		return rc;
	text[unpack(text, bytes)] = '\0';
	canonical(text);
	memset(ret_layout->what, 0xff, sizeof(ret_layout->what));
	if (check(text, ret_layout, &odd))
		return 1;
	snprintf(why, why_bytes, "%.60s", odd);
	return 0;
}
