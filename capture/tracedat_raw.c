/* SPDX-License-Identifier: MIT */
/*
 * A directory with copies of the ring buffers' pages, as the script of record_kernel.sh leaves it:
 *
 *	cpuN.raw	pages of one CPU, as trace_pipe_raw gives them
 *	cpuN.stats	that CPU's `stats` when all was read
 *	formats		the events' `format` files, one after the other
 *	header_page, page_bytes, clock, kallsyms, saved_cmdlines
 *
 * Any of them may be compressed.  The pages of all CPUs are put behind each other in a deleted
 * temporary file, which then reads like the part of a trace.dat that holds them.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/input.h"
#include "capture/source.h"
#include "capture/tracedat_internal.h"
#include "traces/event.h"

static void closep(struct tracedat **td)
{
	tracedat_close(*td);
}

/* Keep @text for the life of @td. */
static int keep(struct tracedat *td, char *text, struct tape_err *reterr)
{
	void **blocks = realloc(td->blocks, (td->blocks_nr + 1) * sizeof(*blocks));

	if (!blocks) {
		free(text);
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	}
	td->blocks = blocks;
	td->blocks[td->blocks_nr++] = text;
	return 0;
}

/* Text of @name in the directory; *ret stays empty when it is missing and not @needed. */
static int read_text(struct tracedat *td, const char *name, bool needed, struct tracedat_text *ret,
		     struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) char *path = capture_source_file(td->path, name);
	char *text;
	int rc;

	if (!path)
		return needed ? tape_err_set(reterr, -TAPE_E_FORMAT,
					     "open (%s): pages of ring buffers, but no file %s that "
					     "says how to read them",
					     td->path, name)
			      : 0;
	rc = capture_input_slurp(path, TRACEDAT_TEXT_MAX, &text, &ret->len, reterr);
	ret->data = text;
	return rc < 0 ? rc : keep(td, text, reterr);
}

/* `formats` at each line that begins with "name: ". */
static int split_formats(struct tracedat *td, const struct tracedat_text *all,
			 struct tape_err *reterr)
{
	static const char start[] = "\nname: ";
	const char *at = all->data, *end = all->data + all->len;

	while (at < end) {
		const char *next = memmem(at, (size_t)(end - at), start, strlen(start));
		struct tracedat_text *grown =
			realloc(td->formats, (td->formats_nr + 1) * sizeof(*grown));

		if (!grown)
			return tape_err_set(reterr, -ENOMEM, "out of memory");
		td->formats = grown;
		next = next ? next + 1 : end;
		grown[td->formats_nr++] =
			(struct tracedat_text){.data = at, .len = (size_t)(next - at)};
		if (td->formats_nr > TRACEDAT_FORMATS_MAX)
			return tape_err_set(reterr, -TAPE_E_LIMIT, "%s/formats: more than %u",
					    td->path, TRACEDAT_FORMATS_MAX);
		at = next;
	}
	return 0;
}

/* Size of a long: that of the page's field `commit`. */
static int read_sizes(struct tracedat *td, struct tape_err *reterr)
{
	struct tracedat_text header, bytes;
	const char *commit, *size;
	int rc = read_text(td, "header_page", true, &header, reterr);

	if (rc >= 0)
		rc = read_text(td, "page_bytes", true, &bytes, reterr);
	if (rc < 0)
		return rc;
	commit = strstr(header.data, " commit;");
	size = commit ? strstr(commit, "size:") : NULL;
	td->long_bytes = size ? (uint32_t)strtoul(size + 5, NULL, 10) : 0;
	td->page_bytes = (uint32_t)strtoul(bytes.data, NULL, 10);
	if ((td->long_bytes != 4 && td->long_bytes != 8) || td->page_bytes < 256 ||
	    td->page_bytes > TRACEDAT_CHUNK_MAX)
		return tape_err_set(reterr, -TAPE_E_FORMAT,
				    "%s: header_page and page_bytes do not tell the size of a long "
				    "or of a page",
				    td->path);
	return 0;
}

static int read_metadata(struct tracedat *td, struct tape_err *reterr)
{
	struct tracedat_text formats = {0}, clock = {0};
	int rc = read_sizes(td, reterr);

	if (rc >= 0)
		rc = read_text(td, "formats", true, &formats, reterr);
	if (rc >= 0)
		rc = split_formats(td, &formats, reterr);
	if (rc >= 0)
		rc = read_text(td, "kallsyms", false, &td->kallsyms, reterr);
	if (rc >= 0)
		rc = read_text(td, "saved_cmdlines", false, &td->cmdlines, reterr);
	if (rc >= 0)
		rc = read_text(td, "clock", false, &clock, reterr);
	if (rc >= 0 && clock.len)
		td->clock = strndup(clock.data, strcspn(clock.data, "\n"));
	return rc;
}

static int read_stats(struct tracedat *td, uint32_t cpu, struct tape_err *reterr)
{
	struct tracedat_cpustat *stat;
	struct tracedat_text text = {0};
	char name[32];
	const char *overrun, *dropped;
	int rc;

	snprintf(name, sizeof(name), "cpu%u.stats", cpu);
	rc = read_text(td, name, false, &text, reterr);
	if (rc < 0 || !text.len)
		return rc;
	stat = realloc(td->stats, (td->stats_nr + 1) * sizeof(*stat));
	if (!stat)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	td->stats = stat;
	overrun = strstr(text.data, "\noverrun: ");
	dropped = strstr(text.data, "\ndropped events: ");
	stat[td->stats_nr++] = (struct tracedat_cpustat){
		.cpu = (int32_t)cpu,
		.overrun = overrun ? strtoull(overrun + 10, NULL, 10) : 0,
		.dropped = dropped ? strtoull(dropped + 17, NULL, 10) : 0,
	};
	return 0;
}

/* Append the pages of @cpu to the temporary file. */
static int add_pages(struct tracedat *td, uint32_t cpu, struct tape_err *reterr)
{
	TAPE_CLEANUP(capture_input_closep) struct capture_input *in = NULL;
	TAPE_CLEANUP(tape_freep) char *path = NULL;
	struct tracedat_cpu row = {.cpu = cpu, .offset = td->size};
	char name[32];
	int rc;

	snprintf(name, sizeof(name), "cpu%u.raw", cpu);
	path = capture_source_file(td->path, name);
	if (!path)
		return tape_err_set(reterr, -TAPE_E_FORMAT, "open (%s/%s): missing", td->path,
				    name);
	rc = capture_input_open(path, &in, reterr);
	if (rc >= 0)
		rc = capture_input_spool(in, td->fd, &row.size, reterr);
	if (rc < 0)
		return rc;
	td->size += row.size;
	rc = td_add_cpu(td, &row, reterr);
	return rc < 0 ? rc : read_stats(td, cpu, reterr);
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* CPUs with a file cpuN.raw, with whatever suffix; ascending. */
static uint32_t list_cpus(const char *path, uint32_t *cpus)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	uint32_t nr = 0;

	while (dir && nr < TAPE_CPU_MAX && (entry = readdir(dir))) {
		char *end;

		if (strncmp(entry->d_name, "cpu", 3) || !isdigit((unsigned char)entry->d_name[3]))
			continue;
		cpus[nr] = (uint32_t)strtoul(entry->d_name + 3, &end, 10);
		nr += !strncmp(end, ".raw", 4);
	}
	if (dir)
		closedir(dir);
	qsort(cpus, nr, sizeof(*cpus), by_number);
	return nr;
}

static int read_pages(struct tracedat *td, struct tape_err *reterr)
{
	uint32_t cpus[TAPE_CPU_MAX], nr = list_cpus(td->path, cpus);
	void *map;
	int rc = 0;

	td->fd = td_open_temporary();
	if (td->fd < 0)
		return tape_err_set(reterr, -errno, "open (temporary copy): %s", strerror(errno));
	for (uint32_t i = 0; rc >= 0 && i < nr; i++)
		rc = add_pages(td, cpus[i], reterr);
	if (rc < 0)
		return rc;
	map = mmap(NULL, td->size ? td->size : 1, PROT_READ, MAP_PRIVATE, td->fd, 0);
	if (map == MAP_FAILED)
		return tape_err_set(reterr, -TAPE_E_IO, "map (%s): %s", td->path, strerror(errno));
	td->map = map;
	td->buffers = 1;
	return 0;
}

int tracedat_open_raw(const char *dir, struct tracedat **ret_td, struct tape_err *reterr)
{
	TAPE_CLEANUP(closep) struct tracedat *td = calloc(1, sizeof(*td));
	int rc;

	if (!td)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	td->fd = -1;
	td->path = strdup(dir);
	if (!td->path)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	rc = read_metadata(td, reterr);
	if (rc >= 0)
		rc = read_pages(td, reterr);
	if (rc < 0)
		return rc;
	*ret_td = tape_steal(&td);
	return 0;
}
