/* SPDX-License-Identifier: MIT */
/*
 * An event's description, as tracefs prints it:
 *
 *	name: kfree
 *	ID: 241
 *	format:
 *		field:unsigned long call_site;	offset:8;	size:8;	signed:0;
 *	...
 *	print fmt: "call_site=%pS ptr=%p", ...
 */
#include "capture/tracedat_events.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	enum td_kind kind;
} kinds[] = {
	{ "kmalloc", TD_KMALLOC },
	{ "kmalloc_node", TD_KMALLOC },
	{ "kmem_cache_alloc", TD_CACHE_ALLOC },
	{ "kmem_cache_alloc_node", TD_CACHE_ALLOC },
	{ "kfree", TD_KFREE },
	{ "kmem_cache_free", TD_CACHE_FREE },
	{ "print", TD_PRINT },
	{ "bprint", TD_BPRINT },
	{ "bputs", TD_BPUTS },
};

static const struct {
	const char *name;
	enum td_field_name field;
} fields[] = {
	{ "common_flags", TD_FIELD_FLAGS },
	{ "common_pid", TD_FIELD_PID },
	{ "call_site", TD_FIELD_SITE },
	{ "ptr", TD_FIELD_PTR },
	{ "bytes_req", TD_FIELD_BYTES_REQ },
	{ "bytes_alloc", TD_FIELD_BYTES_ALLOC },
	{ "gfp_flags", TD_FIELD_GFP },
	{ "node", TD_FIELD_NODE },
	{ "name", TD_FIELD_NAME },
	{ "accounted", TD_FIELD_ACCOUNTED },
	{ "buf", TD_FIELD_BUF },
	{ "fmt", TD_FIELD_FMT },
	{ "str", TD_FIELD_FMT },
};

/* Fields without which an event of a kind cannot be used. */
static const uint32_t needed[TD_KIND_MAX] = {
	[TD_KMALLOC] = 1u << TD_FIELD_PTR | 1u << TD_FIELD_BYTES_ALLOC,
	[TD_CACHE_ALLOC] = 1u << TD_FIELD_PTR | 1u << TD_FIELD_BYTES_ALLOC,
	[TD_KFREE] = 1u << TD_FIELD_PTR,
	[TD_CACHE_FREE] = 1u << TD_FIELD_PTR,
	[TD_PRINT] = 1u << TD_FIELD_BUF,
	[TD_BPRINT] = 1u << TD_FIELD_FMT,
	[TD_BPUTS] = 1u << TD_FIELD_FMT,
};

/* The rest of the line behind @key in @text, or NULL.  *ret_len: up to the newline. */
static const char *line_value(const struct tracedat_text *text, const char *key, size_t *ret_len)
{
	const char *at = memmem(text->data, text->len, key, strlen(key));
	const char *end = text->data + text->len, *newline;

	if (!at)
		return NULL;
	at += strlen(key);
	newline = memchr(at, '\n', (size_t)(end - at));
	*ret_len = (size_t)((newline ? newline : end) - at);
	return at;
}

static bool same(const char *text, size_t len, const char *name)
{
	return strlen(name) == len && !memcmp(text, name, len);
}

/* A number behind @key in the @len bytes of @line, below 65536; -1. */
static long line_number(const char *line, size_t len, const char *key)
{
	const char *at = memmem(line, len, key, strlen(key));
	long value = 0;

	if (!at)
		return -1;
	for (at += strlen(key); at < line + len && *at >= '0' && *at <= '9'; at++) {
		value = value * 10 + (*at - '0');
		if (value > 65535)
			return -1;
	}
	return value;
}

/* One "field:" line, @line behind the colon. */
static void read_field(struct td_format *f, const char *line, size_t len)
{
	long offset = line_number(line, len, "offset:"), bytes = line_number(line, len, "size:");
	const char *semicolon = memchr(line, ';', len), *name;
	size_t name_len;

	if (!semicolon || offset < 0 || bytes < 0 || offset + bytes > 65535)
		return;
	for (name = semicolon; name > line && name[-1] != ' ' && name[-1] != '*'; name--)
		;
	name_len = (size_t)(semicolon - name);
	if (name_len > 2 && !memcmp(semicolon - 2, "[]", 2))
		name_len -= 2;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (!same(name, name_len, fields[i].name))
			continue;
		f->field[fields[i].field] = (struct td_field){ (uint16_t)offset, (uint16_t)bytes };
		if (fields[i].field == TD_FIELD_NAME)
			f->name_relative = memmem(line, len, "__rel_loc", 9) != NULL;
		if (f->min_bytes < (uint32_t)(offset + bytes))
			f->min_bytes = (uint32_t)(offset + bytes);
	}
}

static void read_fields(struct td_format *f, const struct tracedat_text *text)
{
	const char *at = text->data, *end = text->data + text->len;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		while (at < stop && (*at == '\t' || *at == ' '))
			at++;
		if (stop - at > 6 && !memcmp(at, "field:", 6))
			read_field(f, at + 6, (size_t)(stop - at - 6));
		at = stop + 1;
	}
}

static bool has_needed(const struct td_format *f)
{
	for (int i = 0; i < TD_FIELD_MAX; i++)
		if (needed[f->kind] & 1u << i && !f->field[i].offset)
			return false;
	return true;
}

static void read_print_fmt(struct td_format *f, const struct tracedat_text *text)
{
	size_t len;
	const char *fmt = line_value(text, "print fmt: ", &len);

	if (!fmt) {
		capture_gfp_map_default(&f->gfp);
		return;
	}
	capture_gfp_map_parse(&f->gfp, fmt, len);
	/* IS_ENABLED(CONFIG_MEMCG_KMEM) is printed as 0 or 1. */
	f->kmalloc_accounts = memmem(fmt, len, "(1 && (REC->gfp_flags", 21) != NULL;
}

static int read_format(const struct tracedat *td, const struct tracedat_text *text,
		       enum td_kind kind, struct td_events *ev, struct tape_err *reterr)
{
	struct td_format *f = &ev->format[ev->nr];
	size_t len;
	const char *id_text = line_value(text, "ID: ", &len);
	long id = id_text ? line_number(id_text - 4, len + 4, "ID: ") : -1;

	memset(f, 0, sizeof(*f));
	f->kind = kind;
	read_fields(f, text);
	if (id < 0 || !has_needed(f))
		return tape_err_set(reterr, -TAPE_E_FORMAT,
				    "trace.dat (%s): the description of event %.20s lacks its id "
				    "or a field that is needed",
				    td->path, kinds[kind == TD_OTHER ? 0 : kind - 1].name);
	if (kind == TD_KMALLOC || kind == TD_CACHE_ALLOC)
		read_print_fmt(f, text);
	if (kind == TD_CACHE_ALLOC && f->field[TD_FIELD_NAME].bytes)
		ev->names_in_allocs = true;
	ev->by_id[id] = ev->nr++;
	return 0;
}

int td_events_read(const struct tracedat *td, struct td_events *ret_events,
		   struct tape_err *reterr)
{
	bool any = false;

	memset(ret_events, 0, sizeof(*ret_events));
	ret_events->nr = 1;
	for (size_t i = 0; i < td->formats_nr; i++) {
		const struct tracedat_text *text = &td->formats[i];
		size_t len;
		const char *name = line_value(text, "name: ", &len);

		if (!name || name != text->data + 6)
			continue;
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
			int rc;

			if (!same(name, len, kinds[k].name) || ret_events->nr == TD_FORMATS_KEPT)
				continue;
			rc = read_format(td, text, kinds[k].kind, ret_events, reterr);
			if (rc < 0)
				return rc;
			any |= kinds[k].kind < TD_PRINT;
		}
	}
	if (!any)
		return tape_err_set(reterr, -TAPE_E_FORMAT,
				    "trace.dat (%s): describes no kmem event; record with "
				    "-e kmem:kmalloc -e kmem:kfree -e kmem:kmem_cache_alloc "
				    "-e kmem:kmem_cache_free",
				    td->path);
	return 0;
}
