/* SPDX-License-Identifier: MIT */
/* Where the parts stand in versions 6 and 7 of trace.dat. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/tracedat_internal.h"

#define OPTION_SECTIONS_MAX 1000 /* limit: a chain longer than this is a loop */

/* ---- version 6: one part after the other ---- */

static int read_options_v6(struct tracedat *td, struct td_cursor *c, struct tape_err *reterr)
{
	for (;;) {
		unsigned id = (unsigned)td_number(c, 2);
		const uint8_t *data;
		uint64_t len;
		int rc;

		if (c->failed)
			return td_bad(td, c, reterr, "options");
		if (id == TD_OPTION_DONE)
			return 0;
		len = td_number(c, 4);
		data = td_bytes(c, len);
		if (!data)
			return td_bad(td, c, reterr, "options");
		rc = td_read_option(td, id, data, (size_t)len, reterr);
		if (rc < 0)
			return rc;
	}
}

static int read_cpus_v6(struct tracedat *td, struct td_cursor *c, uint64_t cpus,
			struct tape_err *reterr)
{
	const uint8_t *word = td_bytes(c, 10);
	int rc;

	if (word && !memcmp(word, "options  ", 10)) {
		rc = read_options_v6(td, c, reterr);
		if (rc < 0)
			return rc;
		word = td_bytes(c, 10);
	}
	if (!word || memcmp(word, "flyrecord", 10))
		return td_bad(td, c, reterr, "\"flyrecord\"");
	for (uint64_t i = 0; i < cpus && !c->failed; i++) {
		struct tracedat_cpu cpu = { .cpu = (uint32_t)i };

		cpu.offset = td_number(c, 8);
		cpu.size = td_number(c, 8);
		rc = c->failed ? 0 : td_add_cpu(td, &cpu, reterr);
		if (rc < 0)
			return rc;
	}
	td->buffers = 1;
	return c->failed ? td_bad(td, c, reterr, "table of CPUs") : 0;
}

int td_read_v6(struct tracedat *td, struct td_cursor *c, struct tape_err *reterr)
{
	uint64_t cpus;
	int rc = td_read_header_info(td, c, reterr);

	if (rc >= 0)
		rc = td_read_ftrace_formats(td, c, reterr);
	if (rc >= 0)
		rc = td_read_event_formats(td, c, reterr);
	if (rc >= 0)
		rc = td_read_text32(td, c, &td->kallsyms, reterr);
	if (rc >= 0)
		rc = td_read_text32(td, c, &td->printk, reterr);
	if (rc >= 0)
		rc = td_read_text64(td, c, &td->cmdlines, reterr);
	if (rc < 0)
		return rc;
	cpus = td_number(c, 4);
	return read_cpus_v6(td, c, cpus, reterr);
}

/* ---- version 7: a chain of option sections points to everything else ---- */

/* The compressed contents of a section: u32 size, u32 size when decompressed, data. */
static int inflate_section(struct tracedat *td, struct td_cursor *c, struct tape_err *reterr)
{
	uint64_t len = td_number(c, 4), out_len = td_number(c, 4), at = td_offset(c);
	const uint8_t *data = td_bytes(c, len);
	void **blocks, *out;

	if (!data)
		return td_bad(td, c, reterr, "compressed section");
	if (out_len > TRACEDAT_TEXT_MAX)
		return tape_err_set(reterr, -TAPE_E_LIMIT,
				    "trace.dat (%s, offset %llu): section of %llu bytes, limit %u",
				    td->path, (unsigned long long)at, (unsigned long long)out_len,
				    TRACEDAT_TEXT_MAX);
	blocks = realloc(td->blocks, (td->blocks_nr + 1) * sizeof(*blocks));
	if (!blocks)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	td->blocks = blocks;
	out = malloc(out_len + 1);
	if (!out)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	td->blocks[td->blocks_nr++] = out;
	if (tracedat_decompress(td, data, (size_t)len, out, (size_t)out_len) < 0)
		return tape_err_set(reterr, -TAPE_E_FORMAT,
				    "trace.dat (%s, offset %llu): a section does not decompress; "
				    "the file is corrupt",
				    td->path, (unsigned long long)at);
	*c = td_cursor_make(out, (size_t)out_len, at);
	return 0;
}

/* Open the section at @offset; it must have @id.  *ret_compressed as its header says. */
static int open_section(struct tracedat *td, uint64_t offset, unsigned id, bool inflate,
			struct td_cursor *ret_c, bool *ret_compressed, struct tape_err *reterr)
{
	struct td_cursor c = td_cursor_make(td->map, td->size, 0);
	unsigned found, flags;
	uint64_t len;

	if (!td_bytes(&c, offset))
		return tape_err_set(reterr, -TAPE_E_TRUNCATED,
				    "trace.dat (%s, offset %llu): a section should start here, but "
				    "the file has %llu bytes; it is truncated",
				    td->path, (unsigned long long)offset,
				    (unsigned long long)td->size);
	found = (unsigned)td_number(&c, 2);
	flags = (unsigned)td_number(&c, 2);
	td_number(&c, 4); /* description, in the strings section */
	len = td_number(&c, 8);
	if (c.failed || found != id)
		return td_bad(td, &c, reterr, "section header");
	*ret_compressed = flags & 1;
	if (inflate) {
		c = td_cursor_make(c.at, len < td_left(&c) ? (size_t)len : td_left(&c),
				   td_offset(&c));
		if (*ret_compressed) {
			int rc = inflate_section(td, &c, reterr);

			if (rc < 0)
				return rc;
		}
	}
	*ret_c = c;
	return 0;
}

/* A metadata section named by an option: its 8 bytes are the offset. */
static int read_section(struct tracedat *td, unsigned id, uint64_t offset, struct tape_err *reterr)
{
	struct td_cursor c;
	bool compressed;
	int rc = open_section(td, offset, id, true, &c, &compressed, reterr);

	if (rc < 0)
		return rc;
	switch (id) {
	case TD_OPTION_HEADER_INFO:
		return td_read_header_info(td, &c, reterr);
	case TD_OPTION_FTRACE_EVENTS:
		return td_read_ftrace_formats(td, &c, reterr);
	case TD_OPTION_EVENT_FORMATS:
		return td_read_event_formats(td, &c, reterr);
	case TD_OPTION_KALLSYMS:
		return td_read_text32(td, &c, &td->kallsyms, reterr);
	case TD_OPTION_PRINTK:
		return td_read_text32(td, &c, &td->printk, reterr);
	default:
		return td_read_text64(td, &c, &td->cmdlines, reterr);
	}
}

static uint64_t data_of(const struct tracedat_cpu *cpus, size_t nr)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < nr; i++)
		bytes += cpus[i].size;
	return bytes;
}

/* Option BUFFER: the trace instance with the most data is the one that is read. */
static int read_buffer(struct tracedat *td, const uint8_t *data, size_t len, uint64_t at,
		       struct tape_err *reterr)
{
	struct td_cursor c = td_cursor_make(data, len, at), section;
	struct tracedat_cpu *others = td->cpus;
	uint64_t others_nr = td->cpus_nr, offset = td_number(&c, 8), nr;
	bool compressed = false;
	int rc;

	td_string(&c); /* name */
	td_string(&c); /* clock */
	td_number(&c, 4); /* page size: the file's */
	nr = td_number(&c, 4);
	if (c.failed)
		return td_bad(td, &c, reterr, "buffer option");
	rc = open_section(td, offset, TD_OPTION_BUFFER, false, &section, &compressed, reterr);
	td->cpus = NULL;
	td->cpus_nr = 0;
	for (uint64_t i = 0; rc >= 0 && i < nr && !c.failed; i++) {
		struct tracedat_cpu cpu = { .cpu = (uint32_t)td_number(&c, 4) };

		cpu.offset = td_number(&c, 8);
		cpu.size = td_number(&c, 8);
		rc = c.failed ? td_bad(td, &c, reterr, "buffer option")
			      : td_add_cpu(td, &cpu, reterr);
	}
	td->buffers++;
	if (rc >= 0 && others && data_of(others, others_nr) >= data_of(td->cpus, td->cpus_nr)) {
		free(td->cpus);
		td->cpus = others;
		td->cpus_nr = others_nr;
	} else {
		free(others);
		td->cpu_compressed = compressed;
	}
	return rc;
}

static int read_option_v7(struct tracedat *td, unsigned id, const uint8_t *data, size_t len,
			  uint64_t at, struct tape_err *reterr)
{
	struct td_cursor c = td_cursor_make(data, len, at);
	uint64_t offset;

	if (id == TD_OPTION_BUFFER)
		return read_buffer(td, data, len, at, reterr);
	if (id < TD_OPTION_HEADER_INFO || id > TD_OPTION_CMDLINES)
		return td_read_option(td, id, data, len, reterr);
	offset = td_number(&c, 8);
	return c.failed ? td_bad(td, &c, reterr, "option") : read_section(td, id, offset, reterr);
}

/* One section of options.  *ret_next: offset of the next one, 0 at the end of the chain. */
static int read_options_v7(struct tracedat *td, uint64_t offset, uint64_t *ret_next,
			   struct tape_err *reterr)
{
	struct td_cursor c;
	bool compressed;
	int rc = open_section(td, offset, TD_OPTION_DONE, true, &c, &compressed, reterr);

	if (rc < 0)
		return rc;
	*ret_next = 0;
	while (td_left(&c)) {
		unsigned id = (unsigned)td_number(&c, 2);
		uint64_t len = td_number(&c, 4), at = td_offset(&c);
		const uint8_t *data = td_bytes(&c, len);

		if (!data)
			return td_bad(td, &c, reterr, "options");
		if (id == TD_OPTION_DONE) {
			struct td_cursor next = td_cursor_make(data, (size_t)len, at);

			*ret_next = td_number(&next, 8);
			return 0;
		}
		rc = read_option_v7(td, id, data, (size_t)len, at, reterr);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int td_read_v7(struct tracedat *td, struct td_cursor *c, struct tape_err *reterr)
{
	const char *algorithm = td_string(c);
	uint64_t offset;

	if (!algorithm || !td_string(c))
		return td_bad(td, c, reterr, "name of the compression");
	td->zlib = !strcmp(algorithm, "zlib");
	if (strcmp(algorithm, "zlib") && strcmp(algorithm, "zstd") && strcmp(algorithm, "none"))
		return tape_err_set(reterr, -TAPE_E_VERSION,
				    "trace.dat (%s, offset %llu): compression %.20s; this build "
				    "reads zstd and zlib",
				    td->path, (unsigned long long)td_offset(c), algorithm);
	offset = td_number(c, 8);
	if (c->failed)
		return td_bad(td, c, reterr, "offset of the options");
	for (int i = 0; offset; i++) {
		int rc = i == OPTION_SECTIONS_MAX ? td_bad(td, c, reterr, "chain of options")
						  : read_options_v7(td, offset, &offset, reterr);

		if (rc < 0)
			return rc;
	}
	return 0;
}
