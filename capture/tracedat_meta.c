/* SPDX-License-Identifier: MIT */
/* Metadata parts that versions 6 and 7 of trace.dat share. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/tracedat_internal.h"

static int add_format(struct tracedat *td, struct tracedat_text text, struct tape_err *reterr)
{
	if (td->formats_nr == TRACEDAT_FORMATS_MAX)
		return tape_err_set(reterr, -TAPE_E_LIMIT, "trace.dat (%s): more than %u events",
				    td->path, TRACEDAT_FORMATS_MAX);
	if (td->formats_nr % 64 == 0) {
		struct tracedat_text *grown =
			realloc(td->formats, (td->formats_nr + 64) * sizeof(*grown));

		if (!grown)
			return tape_err_set(reterr, -ENOMEM, "out of memory");
		td->formats = grown;
	}
	td->formats[td->formats_nr++] = text;
	return 0;
}

int td_read_text32(struct tracedat *td, struct td_cursor *c, struct tracedat_text *ret,
		   struct tape_err *reterr)
{
	uint64_t len = td_number(c, 4);

	ret->data = (const char *)td_bytes(c, len);
	ret->len = ret->data ? (size_t)len : 0;
	return c->failed ? td_bad(td, c, reterr, "metadata text") : 0;
}

int td_read_text64(struct tracedat *td, struct td_cursor *c, struct tracedat_text *ret,
		   struct tape_err *reterr)
{
	uint64_t len = td_number(c, 8);

	ret->data = (const char *)td_bytes(c, len);
	ret->len = ret->data ? (size_t)len : 0;
	return c->failed ? td_bad(td, c, reterr, "metadata text") : 0;
}

int td_read_header_info(struct tracedat *td, struct td_cursor *c, struct tape_err *reterr)
{
	struct tracedat_text event;
	const char *name = td_string(c);
	int rc;

	if (!name || strcmp(name, "header_page"))
		return td_bad(td, c, reterr, "header_page");
	rc = td_read_text64(td, c, &td->header_page, reterr);
	if (rc < 0)
		return rc;
	name = td_string(c);
	if (!name || strcmp(name, "header_event"))
		return td_bad(td, c, reterr, "header_event");
	return td_read_text64(td, c, &event, reterr);
}

static int read_formats(struct tracedat *td, struct td_cursor *c, struct tape_err *reterr)
{
	uint64_t nr = td_number(c, 4);

	for (uint64_t i = 0; i < nr && !c->failed; i++) {
		struct tracedat_text text;
		int rc = td_read_text64(td, c, &text, reterr);

		if (rc >= 0)
			rc = add_format(td, text, reterr);
		if (rc < 0)
			return rc;
	}
	return c->failed ? td_bad(td, c, reterr, "event formats") : 0;
}

int td_read_ftrace_formats(struct tracedat *td, struct td_cursor *c, struct tape_err *reterr)
{
	return read_formats(td, c, reterr);
}

int td_read_event_formats(struct tracedat *td, struct td_cursor *c, struct tape_err *reterr)
{
	uint64_t systems = td_number(c, 4);

	for (uint64_t i = 0; i < systems && !c->failed; i++) {
		int rc;

		if (!td_string(c))
			break;
		rc = read_formats(td, c, reterr);
		if (rc < 0)
			return rc;
	}
	return c->failed ? td_bad(td, c, reterr, "event formats") : 0;
}

int td_add_cpu(struct tracedat *td, const struct tracedat_cpu *cpu, struct tape_err *reterr)
{
	struct tracedat_cpu *grown;

	if (cpu->size && (cpu->offset > td->size || cpu->size > td->size - cpu->offset))
		return tape_err_set(reterr, -TAPE_E_TRUNCATED,
				    "trace.dat (%s, offset %llu): the data of CPU %u ends beyond "
				    "the file; the file is truncated",
				    td->path, (unsigned long long)cpu->offset, cpu->cpu);
	grown = realloc(td->cpus, (td->cpus_nr + 1) * sizeof(*grown));
	if (!grown)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	td->cpus = grown;
	td->cpus[td->cpus_nr++] = *cpu;
	return 0;
}

/* Number behind "@key:" in the text of a CPUSTAT option; 0 when it is not there. */
static uint64_t stat_value(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static int read_cpustat(struct tracedat *td, const char *text, struct tape_err *reterr)
{
	struct tracedat_cpustat *grown = realloc(td->stats, (td->stats_nr + 1) * sizeof(*grown));

	if (!grown)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	td->stats = grown;
	td->stats[td->stats_nr++] = (struct tracedat_cpustat){
		.cpu = (int32_t)stat_value(text, "CPU: "),
		/* "\noverrun", as "commit overrun" is something else. */
		.overrun = stat_value(text, "\noverrun: "),
		.dropped = stat_value(text, "\ndropped events: "),
	};
	return 0;
}

/* The clock in brackets of "local [mono] boot", or the whole text. */
static char *current_clock(const char *text)
{
	const char *open = strchr(text, '[');
	size_t len = open ? strcspn(open + 1, "]") : strcspn(text, "\n");

	return strndup(open ? open + 1 : text, len);
}

/* "Linux host 6.1.192 x86_64" -> "6.1.192" */
static char *release_of(const char *uname)
{
	for (int i = 0; i < 2; i++) {
		uname += strcspn(uname, " ");
		uname += *uname == ' ';
	}
	return *uname ? strndup(uname, strcspn(uname, " \n")) : NULL;
}

static void read_tsc(struct tracedat *td, const uint8_t *data, size_t len)
{
	struct td_cursor c = td_cursor_make(data, len, 0);

	td->tsc_mult = (uint32_t)td_number(&c, 4);
	td->tsc_shift = (uint32_t)td_number(&c, 4);
	td->tsc_offset = td_number(&c, 8);
	if (c.failed || td->tsc_shift > 63)
		td->tsc_mult = 0;
}

int td_read_option(struct tracedat *td, unsigned id, const uint8_t *data, size_t len,
		   struct tape_err *reterr)
{
	char *text = strndup((const char *)data, len);
	int rc = 0;

	if (!text)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	switch (id) {
	case TD_OPTION_CPUSTAT:
		rc = read_cpustat(td, text, reterr);
		break;
	case TD_OPTION_TRACECLOCK:
		free(td->clock);
		td->clock = current_clock(text);
		break;
	case TD_OPTION_UNAME:
		free(td->release);
		td->release = release_of(text);
		break;
	case TD_OPTION_OFFSET:
		td->ts_offset_ns = strtoll(text, NULL, 0);
		break;
	case TD_OPTION_TSC2NSEC:
		read_tsc(td, data, len);
		break;
	default:
		break;
	}
	free(text);
	return rc;
}
