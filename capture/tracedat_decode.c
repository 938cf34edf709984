/* SPDX-License-Identifier: MIT */
#include "capture/tracedat_decode.h"

#include <stdlib.h>
#include <string.h>

#include "capture/import_internal.h"

#define MARKER_PREFIX "slabtape:"

/* struct trace_entry's flags: Linux include/linux/trace_events.h */
enum { ENTRY_HARDIRQ = 0x08, ENTRY_SOFTIRQ = 0x10, ENTRY_NMI = 0x40 };

static int site_of(struct td_decoder *d, uint64_t address, uint32_t *ret_site)
{
	const struct kallsyms_symbol *found;
	struct ingest_symbol symbol = { .address = address };
	bool is_new;
	int rc = ingest_site_by_address(d->ing, address, ret_site, &is_new, d->reterr);

	if (rc < 0 || !is_new)
		return rc;
	found = kallsyms_find(&d->symbols, address);
	if (found) {
		symbol.symbol = found->name;
		symbol.symbol_len = found->name_len;
		symbol.module = found->module;
		symbol.module_len = found->module_len;
		symbol.offset = address - found->address;
	}
	return ingest_site_define(d->ing, *ret_site, &symbol, d->reterr);
}

static uint8_t context_of(uint64_t flags)
{
	if (flags & ENTRY_NMI)
		return TAPE_CTX_NMI;
	if (flags & ENTRY_HARDIRQ)
		return TAPE_CTX_HARDIRQ;
	return flags & ENTRY_SOFTIRQ ? TAPE_CTX_SOFTIRQ : TAPE_CTX_TASK;
}

static int corrupt_event(const struct td_decoder *d, const struct td_stream *s,
			 const char *what)
{
	return tape_err_set(d->reterr, -TAPE_E_FORMAT,
			    "trace.dat (%s, CPU %u, offset %llu): %s: the file is corrupt",
			    d->td->path, s->cpu, (unsigned long long)s->page_offset, what);
}

/* The cache's name in an event: a data_loc field, offset | length << 16. */
static int name_of(const struct td_decoder *d, const struct td_stream *s,
		   const struct td_format *f, struct capture_raw *raw)
{
	uint32_t loc, offset, len;

	if (!f->field[TD_FIELD_NAME].bytes)
		return 0;
	loc = (uint32_t)td_field_get(f, TD_FIELD_NAME, s->event);
	offset = loc & 0xffff;
	len = loc >> 16;
	if (f->name_relative)
		offset += f->field[TD_FIELD_NAME].offset + f->field[TD_FIELD_NAME].bytes;
	if (!len || len > s->event_bytes || offset > s->event_bytes - len)
		return corrupt_event(d, s, "a cache name lies outside its event");
	raw->cache = (const char *)s->event + offset;
	raw->cache_len = (uint32_t)strnlen(raw->cache, len);
	if (!raw->cache_len)
		raw->cache = NULL;
	return 0;
}

static int kmem_event(struct td_decoder *d, const struct td_stream *s, struct td_format *f)
{
	const uint8_t *event = s->event;
	struct capture_raw raw = {
		.ts = s->ts,
		.address = td_field_get(f, TD_FIELD_PTR, event),
		.tid = (int32_t)td_field_get(f, TD_FIELD_PID, event),
		.cpu = (uint16_t)s->cpu,
		.node_req = TAPE_NODE_NONE,
		.is_free = f->kind == TD_KFREE || f->kind == TD_CACHE_FREE,
		.is_kmalloc = f->kind == TD_KMALLOC || f->kind == TD_KFREE,
		.ctx = context_of(td_field_get(f, TD_FIELD_FLAGS, event)),
	};
	int rc = site_of(d, td_field_get(f, TD_FIELD_SITE, event), &raw.site);

	if (rc >= 0)
		rc = name_of(d, s, f, &raw);
	if (rc < 0)
		return rc;
	if (!raw.is_free) {
		raw.bytes_req = td_field_get(f, TD_FIELD_BYTES_REQ, event);
		raw.bytes_alloc = td_field_get(f, TD_FIELD_BYTES_ALLOC, event);
		raw.gfp = capture_gfp_bits(&f->gfp, td_field_get(f, TD_FIELD_GFP, event));
		raw.accounted = f->kmalloc_accounts && raw.gfp & TAPE_GFP_ACCOUNT;
		if (f->field[TD_FIELD_NODE].bytes)
			raw.node_req = (int16_t)td_field_get(f, TD_FIELD_NODE, event);
		if (raw.node_req < 0 || raw.node_req >= TAPE_NODE_MAX)
			raw.node_req = TAPE_NODE_NONE;
	}
	return ingest_event(d->ing, &raw, d->reterr);
}

/* Text of a trace_printk format or string at @address: `0xADDRESS : "text"` lines. */
static const char *printk_at(const struct tracedat *td, uint64_t address, size_t *ret_len)
{
	const char *at = td->printk.data, *end = at + td->printk.len;

	while (at && at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		const char *open = memchr(at, '"', (size_t)(stop - at));

		if (open && strtoull(at, NULL, 16) == address) {
			const char *close = memrchr(open + 1, '"', (size_t)(stop - open - 1));

			*ret_len = (size_t)((close ? close : stop) - open - 1);
			return open + 1;
		}
		at = stop + 1;
	}
	return NULL;
}

/* Texts that begin with "slabtape:" are markers; other prints are not kept. */
static int print_event(struct td_decoder *d, const struct td_stream *s, const struct td_format *f)
{
	char text[512];
	const char *at;
	size_t len;

	if (f->kind == TD_PRINT) {
		at = (const char *)s->event + f->field[TD_FIELD_BUF].offset;
		len = strnlen(at, s->event_bytes - f->field[TD_FIELD_BUF].offset);
	} else {
		at = printk_at(d->td, td_field_get(f, TD_FIELD_FMT, s->event), &len);
	}
	if (!at || len < strlen(MARKER_PREFIX) || memcmp(at, MARKER_PREFIX, strlen(MARKER_PREFIX))) {
		d->stats->other++;
		return 0;
	}
	len = len < sizeof(text) - 1 ? len : sizeof(text) - 1;
	memcpy(text, at, len);
	while (len && (text[len - 1] == '\n' || text[len - 1] == ' '))
		len--;
	text[len] = '\0';
	return ingest_marker(d->ing, s->ts, s->cpu, text, d->reterr);
}

int td_decode_event(struct td_decoder *d, const struct td_stream *s)
{
	struct td_format *f;
	uint16_t id;

	memcpy(&id, s->event, sizeof(id));
	f = &d->events.format[d->events.by_id[id]];
	if (s->event_bytes < f->min_bytes)
		return corrupt_event(d, s, "an event is too short");
	switch (f->kind) {
	case TD_OTHER:
		d->stats->other++;
		return 0;
	case TD_PRINT:
	case TD_BPRINT:
	case TD_BPUTS:
		return print_event(d, s, f);
	default:
		return kmem_event(d, s, f);
	}
}

/* "PID NAME" lines of the saved command lines. */
int td_decode_threads(struct td_decoder *d, const char *text, size_t len)
{
	const char *at = text, *end = text + len;
	int rc = ingest_thread(d->ing, 0, "<idle>", 6, d->reterr);

	while (rc >= 0 && at && at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		const char *space = memchr(at, ' ', (size_t)(stop - at));

		if (space)
			rc = ingest_thread(d->ing, (int32_t)strtol(at, NULL, 10), space + 1,
					   (size_t)(stop - space - 1), d->reterr);
		at = stop + 1;
	}
	return rc;
}

int td_decoder_init(struct td_decoder *d, const struct tracedat *td, struct tape_err *reterr)
{
	int rc;

	memset(d, 0, sizeof(*d));
	d->td = td;
	d->reterr = reterr;
	rc = td_events_read(td, &d->events, reterr);
	if (rc >= 0 && td->kallsyms.len)
		rc = kallsyms_read(&d->symbols, td->kallsyms.data, td->kallsyms.len, reterr);
	return rc;
}

void td_decoder_fini(struct td_decoder *d)
{
	kallsyms_fini(&d->symbols);
}
