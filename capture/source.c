/* SPDX-License-Identifier: MIT */
#include "capture/source.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "capture/input.h"

#define SNIFF_BYTES (64u << 10)

static const char *const event_files[] = { "trace.dat", "trace.txt", "trace",
					   "trace-cmd-report.txt" };
static const char *const suffixes[] = { "", ".zst", ".gz", ".xz" };

char *capture_source_file(const char *dir, const char *name)
{
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		struct stat st;
		char *path;

		if (asprintf(&path, "%s/%s%s", dir, name, suffixes[i]) < 0)
			return NULL;
		if (!stat(path, &st) && S_ISREG(st.st_mode))
			return path;
		free(path);
	}
	return NULL;
}

/* First line of @dir/@name, malloc'ed; NULL when there is no such file. */
static char *first_line_in(const char *dir, const char *name)
{
	TAPE_CLEANUP(tape_freep) char *path = capture_source_file(dir, name);
	char *text = NULL;
	size_t len;

	if (!path || capture_input_slurp(path, 1u << 20, &text, &len, NULL) < 0)
		return NULL;
	text[strcspn(text, "\n")] = '\0';
	return text;
}

/* The release named in a `result` line, "... kernel=6.1.192". */
static char *release_from_result(const char *dir)
{
	TAPE_CLEANUP(tape_freep) char *line = first_line_in(dir, "result");
	char *at = line ? strstr(line, "kernel=") : NULL;

	if (!at)
		return NULL;
	at += strlen("kernel=");
	return strndup(at, strcspn(at, " \t"));
}

static void find_companions(const char *dir, struct capture_source *s)
{
	s->slab_before = capture_source_file(dir, "slab.before");
	s->slab_after = capture_source_file(dir, "slab.after");
	if (!s->slab_before)
		s->slab_before = capture_source_file(dir, "slabinfo.before");
	if (!s->slab_after)
		s->slab_after = capture_source_file(dir, "slabinfo.after");
	s->zoneinfo = capture_source_file(dir, "zoneinfo");
	s->kcore = capture_source_file(dir, "kcore");
	s->topology = first_line_in(dir, "topology");
	s->release = first_line_in(dir, "release");
	if (!s->release)
		s->release = release_from_result(dir);
}

static int override(char **field, const char *option)
{
	if (!option)
		return 0;
	free(*field);
	*field = strdup(option);
	return *field ? 0 : -1;
}

/* A folder with pages of ring buffers: @path itself, malloc'ed; NULL when it is none. */
static char *find_raw(const char *path)
{
	TAPE_CLEANUP(tape_freep) char *first = capture_source_file(path, "cpu0.raw");

	return first ? strdup(path) : NULL;
}

/* The folder of a CTF recording at or below @path, malloc'ed; NULL when there is none. */
static char *find_ctf(const char *path)
{
	static const char *const below[] = { "", "/kernel" };

	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		TAPE_CLEANUP(tape_freep) char *metadata = NULL;
		char *folder;

		if (asprintf(&folder, "%s%s", path, below[i]) < 0)
			return NULL;
		metadata = capture_source_file(folder, "metadata");
		if (metadata)
			return folder;
		free(folder);
	}
	return NULL;
}

static int find_directory(const char *path, struct capture_source *s, struct tape_err *reterr)
{
	for (size_t i = 0; !s->events && i < sizeof(event_files) / sizeof(event_files[0]); i++)
		s->events = capture_source_file(path, event_files[i]);
	if (!s->events) {
		s->events = find_raw(path);
		s->is_raw = s->events != NULL;
	}
	if (!s->events) {
		s->events = find_ctf(path);
		s->is_ctf = s->events != NULL;
	}
	if (!s->events)
		return tape_err_set(reterr, -TAPE_E_FORMAT,
				    "open (%s): the directory holds no trace.dat, trace.txt, trace, "
				    "trace-cmd-report.txt, cpu0.raw or CTF metadata",
				    path);
	find_companions(path, s);
	return 0;
}

int capture_source_find(const char *path, const struct capture_options *options,
			struct capture_source *ret_s, struct tape_err *reterr)
{
	struct capture_source s = { 0 };
	struct stat st;
	int rc = 0;

	if (strcmp(path, "-") && stat(path, &st) < 0)
		return tape_err_set(reterr, -errno, "open (%s): %s", path, strerror(errno));
	if (strcmp(path, "-") && S_ISDIR(st.st_mode))
		rc = find_directory(path, &s, reterr);
	else
		s.events = strdup(path);
	if (rc >= 0 && (!s.events ||
			(options && (override(&s.slab_before, options->slab_before) < 0 ||
				     override(&s.slab_after, options->slab_after) < 0 ||
				     override(&s.zoneinfo, options->zoneinfo) < 0 ||
				     override(&s.topology, options->topology) < 0 ||
				     override(&s.release, options->release) < 0))))
		rc = tape_err_set(reterr, -ENOMEM, "out of memory");
	if (rc < 0) {
		capture_source_fini(&s);
		return rc;
	}
	*ret_s = s;
	return 0;
}

void capture_source_fini(struct capture_source *s)
{
	free(s->events);
	free(s->slab_before);
	free(s->slab_after);
	free(s->zoneinfo);
	free(s->kcore);
	free(s->topology);
	free(s->release);
}

/* First line of @text that is neither blank nor starts with '#', or the end. */
static const char *first_content(const char *text, const char *end)
{
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		while (text < end && (*text == ' ' || *text == '\t' || *text == '\r'))
			text++;
		if (text < end && *text != '\n' && *text != '#')
			return text;
		if (!newline)
			return end;
		text = newline + 1;
	}
	return end;
}

static bool starts(const char *text, const char *end, const char *with)
{
	size_t len = strlen(with);

	return (size_t)(end - text) >= len && !memcmp(text, with, len);
}

/* Ftrace text says so in its first line, or has "[cpu]" and "name:" in its first content line. */
static bool looks_like_trace_text(const char *text, const char *content, const char *end)
{
	const char *newline, *bracket, *colon;

	if (starts(text, end, "# tracer:") || starts(text, end, "cpus=") ||
	    starts(content, end, "cpus="))
		return true;
	newline = memchr(content, '\n', (size_t)(end - content));
	newline = newline ? newline : end;
	bracket = memchr(content, '[', (size_t)(newline - content));
	colon = bracket ? memchr(bracket, ':', (size_t)(newline - bracket)) : NULL;
	return colon && bracket + 1 < newline && isdigit((unsigned char)bracket[1]);
}

int capture_source_detect(struct capture_input *in, enum capture_format *ret_format,
			  struct tape_err *reterr)
{
	const char *text, *end, *content;
	int rc = capture_input_peek(in, SNIFF_BYTES, &text, reterr);

	if (rc < 0)
		return rc;
	if (!rc)
		return tape_err_set(reterr, -TAPE_E_TRUNCATED, "open (%s): the file is empty",
				    capture_input_path(in));
	end = text + rc;
	content = first_content(text, end);
	if (starts(text, end, "\x17\x08\x44tracing"))
		*ret_format = CAPTURE_FORMAT_TRACEDAT;
	else if (starts(text, end, "SQLite format 3"))
		*ret_format = CAPTURE_FORMAT_TAPE;
	else if (starts(content, end, "slabops"))
		*ret_format = CAPTURE_FORMAT_OPS;
	else if (!memchr(text, '\0', (size_t)rc) && looks_like_trace_text(text, content, end))
		*ret_format = CAPTURE_FORMAT_TEXT;
	else
		return tape_err_set(reterr, -TAPE_E_FORMAT,
				    "open (%s, offset 0): no format this build can import; known "
				    "are trace.dat, ftrace and perf script text, .ops scripts",
				    capture_input_path(in));
	return 0;
}
