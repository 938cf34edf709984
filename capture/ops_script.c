/* SPDX-License-Identifier: MIT */
#include "capture/ops_script.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/input.h"
#include "store/tape.h"

int ops_script_bad(const struct capture_input *in, struct tape_err *reterr, const char *fmt, ...)
{
	char what[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return tape_err_set(reterr, -TAPE_E_FORMAT, "%s:%llu: %s", capture_input_path(in),
			    (unsigned long long)capture_input_lineno(in), what);
}

int ops_script_line(struct capture_input *in, char **ret_line, struct tape_err *reterr)
{
	char *line;
	size_t len;
	int rc;

	while ((rc = capture_input_line(in, &line, &len, reterr)) > 0) {
		if (memchr(line, '\0', len))
			return ops_script_bad(in, reterr, "a NUL byte in the line");
		while (len && (line[len - 1] == ' ' || line[len - 1] == '\t' ||
			       line[len - 1] == '\r'))
			line[--len] = '\0';
		while (*line == ' ' || *line == '\t')
			line++;
		if (*line && *line != '#') {
			*ret_line = line;
			return 1;
		}
	}
	return rc;
}

/* What follows @key and a blank, or NULL when @line is another key's. */
static const char *after_key(const char *line, const char *key)
{
	size_t len = strlen(key);

	if (strncmp(line, key, len) || (line[len] && line[len] != ' '))
		return NULL;
	return line[len] ? line + len + 1 : line + len;
}

/* Parse all of @text as a number <= @max.  False when it is none. */
static bool parse_number(const char *text, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		value = value * 10 + (uint64_t)(*text - '0');
		if (value > max)
			return false;
	}
	*ret = value;
	return true;
}

static bool parse_cpu_nodes(struct ops_header *h, const char *text, uint32_t *ret_nr)
{
	uint32_t nr = 0;

	while (nr < TAPE_CPU_MAX) {
		char *end;
		unsigned long node;

		if (*text < '0' || *text > '9')
			return false;
		node = strtoul(text, &end, 10);
		if (node >= TAPE_NODE_MAX)
			return false;
		h->cpu_node[nr++] = (uint16_t)node;
		if (!*end) {
			*ret_nr = nr;
			return true;
		}
		if (*end != ',')
			return false;
		text = end + 1;
	}
	return false;
}

/*
 * Split the next "key=value" off *@at (both NUL-terminated in @pair).  1, 0 at the end of the
 * line, -1 when it is none.
 */
static int next_pair(const char **at, struct ops_knob *pair, const char **ret_long_value,
		     char *buf, size_t buf_bytes)
{
	const char *p = *at;
	size_t len, key;

	while (*p == ' ')
		p++;
	if (!*p)
		return 0;
	len = strcspn(p, " ");
	key = strcspn(p, "= ");
	if (len >= buf_bytes || key >= sizeof(pair->name) || p[key] != '=' || !key)
		return -1;
	memcpy(buf, p, len);
	buf[len] = '\0';
	memcpy(pair->name, p, key);
	pair->name[key] = '\0';
	*ret_long_value = buf + key + 1;
	*at = p + len;
	return 1;
}

static int read_machine(struct capture_input *in, struct ops_header *h, const char *text,
			struct tape_err *reterr)
{
	char buf[8 * TAPE_CPU_MAX];
	uint32_t cpu_nodes = 0;
	struct ops_knob pair;
	const char *value;
	uint64_t number;
	int rc;

	h->machine_line = strdup(text);
	while ((rc = next_pair(&text, &pair, &value, buf, sizeof(buf))) > 0) {
		if (!strcmp(pair.name, "cpus") && parse_number(value, TAPE_CPU_MAX, &number))
			h->cpus = (uint32_t)number;
		else if (!strcmp(pair.name, "nodes") && parse_number(value, TAPE_NODE_MAX, &number))
			h->nodes = (uint32_t)number;
		else if (strcmp(pair.name, "cpu_node") || !parse_cpu_nodes(h, value, &cpu_nodes))
			return ops_script_bad(in, reterr, "machine: bad %s=%.60s", pair.name, value);
	}
	if (rc < 0 || !h->cpus || !h->nodes || cpu_nodes != h->cpus)
		return ops_script_bad(in, reterr,
				      "machine: cpus=N nodes=M cpu_node=... with N entries expected");
	for (uint32_t i = 0; i < h->cpus; i++)
		if (h->cpu_node[i] >= h->nodes)
			return ops_script_bad(in, reterr, "machine: CPU %u is on node %u of %u", i,
					      h->cpu_node[i], h->nodes);
	return h->machine_line ? 0 : tape_err_set(reterr, -ENOMEM, "out of memory");
}

/* One setting of the cache line.  False when its value is not allowed. */
static bool cache_setting(struct ops_header *h, struct ops_knob *pair, const char *value)
{
	uint64_t number = 0;

	if (strlen(value) >= sizeof(pair->value))
		return false;
	memcpy(pair->value, value, strlen(value) + 1);
	if (!strcmp(pair->name, "gfp")) {
		if (strcmp(value, "kernel") && strcmp(value, "nowait"))
			return false;
		h->gfp = strcmp(value, "kernel") ? TAPE_GFP_NOWAIT : TAPE_GFP_KERNEL;
		return true;
	}
	if (!strcmp(value, "-"))
		return strcmp(pair->name, "size") != 0;
	if (!parse_number(value, OPS_SIZE_MAX, &number))
		return false;
	if (!strcmp(pair->name, "size"))
		h->size = number;
	else if (!strcmp(pair->name, "align"))
		h->align = number;
	else if (!strcmp(pair->name, "hwalign"))
		h->hwalign = number != 0;
	return true;
}

static int read_cache(struct capture_input *in, struct ops_header *h, const char *text,
		      struct tape_err *reterr)
{
	const char *value;
	char buf[80];
	int rc = 0;

	h->cache_line = strdup(text);
	h->gfp = TAPE_GFP_KERNEL;
	while (h->knobs_nr < OPS_KNOBS_MAX &&
	       (rc = next_pair(&text, &h->knobs[h->knobs_nr], &value, buf, sizeof(buf))) > 0) {
		struct ops_knob *pair = &h->knobs[h->knobs_nr];

		if (!cache_setting(h, pair, value))
			return ops_script_bad(in, reterr, "cache: bad %s=%.60s", pair->name, value);
		h->knobs_nr += strcmp(value, "-") && strcmp(pair->name, "size") &&
			       strcmp(pair->name, "align");
	}
	if (h->knobs_nr == OPS_KNOBS_MAX || rc < 0 || !h->size)
		return ops_script_bad(in, reterr, "cache: size=BYTES and KNOB=VALUE pairs expected");
	return h->cache_line ? 0 : tape_err_set(reterr, -ENOMEM, "out of memory");
}

static int read_ids(struct capture_input *in, struct ops_header *h, const char *text,
		    struct tape_err *reterr)
{
	uint64_t number;

	if (!parse_number(text, OPS_IDS_MAX, &number))
		return ops_script_bad(in, reterr, "ids: a number up to %u expected", OPS_IDS_MAX);
	h->ids = (uint32_t)number;
	return 0;
}

static int read_case(struct capture_input *in, struct ops_header *h, const char *text,
		     struct tape_err *reterr)
{
	size_t len = strlen(text);

	if (!len || len >= sizeof(h->case_name))
		return ops_script_bad(in, reterr, "case: a name shorter than %zu bytes expected",
				      sizeof(h->case_name));
	memcpy(h->case_name, text, len + 1);
	return 0;
}

static int read_note(struct capture_input *in, struct ops_header *h, const char *text,
		     struct tape_err *reterr)
{
	(void)in;
	h->note = strdup(text);
	return h->note ? 0 : tape_err_set(reterr, -ENOMEM, "out of memory");
}

static const struct {
	const char *key;
	int (*read)(struct capture_input *in, struct ops_header *h, const char *text,
		    struct tape_err *reterr);
	bool needed;
} keys[] = {
	{ "case", read_case, true },	   { "note", read_note, false },
	{ "machine", read_machine, true }, { "cache", read_cache, true },
	{ "ids", read_ids, true },
};
#define KEYS_NR (sizeof(keys) / sizeof(keys[0]))

static int keep_text(struct ops_header *h, const char *line, struct tape_err *reterr)
{
	size_t len = strlen(line);
	char *text = realloc(h->text, h->text_len + len + 2);

	if (!text)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	memcpy(text + h->text_len, line, len);
	h->text = text;
	h->text_len += len + 1;
	text[h->text_len - 1] = '\n';
	text[h->text_len] = '\0';
	return 0;
}

static int read_header_line(struct capture_input *in, struct ops_header *h, const char *line,
			    struct tape_err *reterr)
{
	for (size_t i = 0; i < KEYS_NR; i++) {
		const char *text = after_key(line, keys[i].key);

		if (!text)
			continue;
		if (h->seen & 1u << i)
			return ops_script_bad(in, reterr, "a second %s line", keys[i].key);
		h->seen |= 1u << i;
		return keys[i].read(in, h, text, reterr);
	}
	return ops_script_bad(in, reterr, "no such header line: \"%.60s\"", line);
}

static int read_version(struct capture_input *in, struct ops_header *h, struct tape_err *reterr)
{
	const char *text;
	char *line;
	int rc = ops_script_line(in, &line, reterr);

	if (rc < 0)
		return rc;
	text = rc ? after_key(line, "slabops") : NULL;
	if (!text)
		return tape_err_set(reterr, -TAPE_E_FORMAT,
				    "%s:%llu: not an .ops script, `slabops 1` expected",
				    capture_input_path(in),
				    (unsigned long long)capture_input_lineno(in));
	if (strcmp(text, "1"))
		return tape_err_set(reterr, -TAPE_E_VERSION,
				    "%s:%llu: .ops format %.20s; this build reads format 1",
				    capture_input_path(in),
				    (unsigned long long)capture_input_lineno(in), text);
	return keep_text(h, line, reterr);
}

int ops_header_read(struct capture_input *in, struct ops_header *h, struct tape_err *reterr)
{
	char *line;
	int rc = read_version(in, h, reterr);

	while (rc >= 0 && (rc = ops_script_line(in, &line, reterr)) > 0) {
		if (!strcmp(line, "ops"))
			break;
		rc = keep_text(h, line, reterr);
		if (rc >= 0)
			rc = read_header_line(in, h, line, reterr);
	}
	if (rc < 0)
		return rc;
	if (!rc)
		return tape_err_set(reterr, -TAPE_E_TRUNCATED,
				    "%s:%llu: the script ends in its header",
				    capture_input_path(in),
				    (unsigned long long)capture_input_lineno(in) + 1);
	for (size_t i = 0; i < KEYS_NR; i++)
		if (keys[i].needed && !(h->seen & 1u << i))
			return ops_script_bad(in, reterr, "no %s line before `ops`", keys[i].key);
	return 0;
}

void ops_header_fini(struct ops_header *h)
{
	free(h->text);
	free(h->note);
	free(h->machine_line);
	free(h->cache_line);
}

static int store_meta(const struct ops_header *h, struct tape *t, struct tape_err *reterr)
{
	const struct {
		const char *key, *value;
	} rows[] = {
		{ "source", "ops" },
		{ "clock", "ops" }, /* one tick an operation */
		{ "ops.header", h->text },
		{ "ops.case", h->case_name },
		{ "ops.note", h->note ? h->note : "" },
		{ "ops.machine", h->machine_line },
		{ "ops.cache", h->cache_line },
	};

	int rc = tape_meta_set_int(t, "ops.ids", h->ids, reterr);

	if (rc >= 0)
		rc = tape_meta_set_int(t, "ops.id_unit", (int64_t)OPS_ID_UNIT, reterr);
	for (size_t i = 0; rc >= 0 && i < sizeof(rows) / sizeof(rows[0]); i++)
		rc = tape_meta_set(t, rows[i].key, rows[i].value, reterr);
	return rc;
}

int ops_header_store(const struct ops_header *h, struct tape *t, struct tape_err *reterr)
{
	struct tape_cache cache = { .id = OPS_CACHE, .object_size = h->size, .align = h->align,
				    .coverage = 1 };
	int rc = store_meta(h, t, reterr);

	memcpy(cache.name, h->case_name, sizeof(cache.name));
	cache.flags = h->hwalign ? TAPE_CACHE_HWALIGN : 0;
	for (uint32_t i = 0; rc >= 0 && i < h->cpus; i++)
		rc = tape_define_cpu(t, (uint16_t)i, (int16_t)h->cpu_node[i], reterr);
	if (rc >= 0)
		rc = tape_define_cache(t, &cache, reterr);
	for (uint32_t i = 0; rc >= 0 && i < h->knobs_nr; i++)
		rc = tape_define_knob(t, OPS_CACHE, h->knobs[i].name, h->knobs[i].value, reterr);
	return rc;
}
