/* SPDX-License-Identifier: MIT */
/* The formats, and what makes each export whole: written aside, read back, counted, named. */
#include "analyze/export.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/export_internal.h"
#include "analyze/export_ops.h"
#include "base/cleanup.h"
#include "store/tape.h"

static const struct export_format *const formats[] = {
	&export_csv, &export_json, &export_folded, &export_speedscope, &export_perfetto, &export_ctf,
};
const char export_formats[] = "ops, csv, json, folded, speedscope, perfetto, ctf";

static const struct export_format *find(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(formats[i]->name, name))
			return formats[i];
	return NULL;
}

/* ---- shared with the formats ---- */

static int load_column(struct tape *t, const char *sql, char ***ret_names, size_t *ret_nr,
		       struct tape_err *reterr)
{
	json_t *rows, *row;
	size_t i, nr = 0;
	char **names;
	int rc = analyze_ask(tape_db(t), sql, NULL, &rows, reterr);

	if (rc < 0)
		return rc;
	json_array_foreach(rows, i, row)
		if ((size_t)analyze_int(row, "id") >= nr)
			nr = (size_t)analyze_int(row, "id") + 1;
	names = calloc(nr + 1, sizeof(*names));
	json_array_foreach(rows, i, row)
		if (names && json_is_string(json_object_get(row, "name")))
			names[analyze_int(row, "id")] = strdup(analyze_text(row, "name"));
	json_decref(rows);
	*ret_names = names;
	*ret_nr = nr;
	return names ? 0 : -ENOMEM;
}

int export_names_load(struct tape *t, struct export_names *ret_names, struct tape_err *reterr)
{
	struct export_names n = { .cache = NULL };
	int rc = load_column(t, "SELECT cache AS id, name FROM cache WHERE cache BETWEEN 0 AND 65535",
			     &n.cache, &n.nr_caches, reterr);

	if (rc == 0)
		rc = load_column(t, "SELECT site AS id, coalesce(symbol || printf('+0x%x', offset),"
				 " nullif(module || printf('+0x%x', offset), '+0x0'),"
				 " printf('0x%x', address)) AS name FROM site"
				 " WHERE site BETWEEN 0 AND 100000000", &n.site, &n.nr_sites, reterr);
	if (rc < 0) {
		export_names_fini(&n);
		return rc;
	}
	*ret_names = n;
	return 0;
}

static void free_names(char **names, size_t nr)
{
	for (size_t i = 0; names && i < nr; i++)
		free(names[i]);
	free(names);
}

void export_names_fini(struct export_names *n)
{
	free_names(n->cache, n->nr_caches);
	free_names(n->site, n->nr_sites);
}

const char *export_cache_name(const struct export_names *n, uint16_t cache)
{
	return cache < n->nr_caches && n->cache[cache] ? n->cache[cache] : "";
}

const char *export_site_name(const struct export_names *n, uint32_t site)
{
	return site < n->nr_sites && n->site[site] ? n->site[site] : "";
}

int export_each(struct tape *t, const struct export_config *cfg,
		int (*each)(void *ctx, uint64_t seq, const struct tape_event *ev), void *ctx,
		struct tape_err *reterr)
{
	const struct tape_range range = { 0, UINT64_MAX, cfg->begin_ns, cfg->end_ns };
	const struct tape_batch *b;
	struct tape_reader *r;
	struct tape_event ev;
	int rc = tape_reader_open(t, &range, TAPE_COLS_ALL, &r, reterr), stop = 0;

	if (rc < 0)
		return rc;
	while (!stop && (rc = tape_reader_next(r, &b, reterr)) > 0) {
		for (uint32_t i = 0; i < b->events && !stop; i++) {
			if (cfg->cache >= 0 && b->cache[i] != cfg->cache)
				continue;
			tape_batch_get(b, i, &ev);
			stop = each(ctx, b->first_seq + i, &ev);
		}
	}
	tape_reader_close(r);
	return rc < 0 ? rc : stop;
}

void export_binds(const struct export_config *cfg, struct analyze_bind ret_binds[EXPORT_BINDS])
{
	const struct analyze_bind binds[EXPORT_BINDS] = {
		{ .name = "run", .kind = cfg->run < 0 ? ANALYZE_NULL : ANALYZE_INT, .number = cfg->run },
		{ .name = "begin", .kind = ANALYZE_INT, .number = (int64_t)cfg->begin_ns },
		{ .name = "end", .kind = ANALYZE_INT,
		  .number = cfg->end_ns > INT64_MAX ? INT64_MAX : (int64_t)cfg->end_ns },
		{ .name = "cache", .kind = cfg->cache < 0 ? ANALYZE_NULL : ANALYZE_INT,
		  .number = cfg->cache },
		{ .name = NULL },
	};

	memcpy(ret_binds, binds, sizeof(binds));
}

int export_count(struct tape *t, const struct export_config *cfg, const char *sql,
		 uint64_t *ret_number, struct tape_err *reterr)
{
	struct analyze_bind binds[EXPORT_BINDS];
	json_t *rows;
	int rc;

	export_binds(cfg, binds);
	rc = analyze_ask(tape_db(t), sql, binds, &rows, reterr);
	if (rc < 0)
		return rc;
	*ret_number = (uint64_t)analyze_int(json_array_get(rows, 0), "n");
	json_decref(rows);
	return 0;
}

int export_expect_events(struct tape *t, const struct export_config *cfg, uint64_t *ret_events,
			 struct tape_err *reterr)
{
	return export_count(t, cfg, "SELECT coalesce(sum(events), 0) AS n FROM event_agg WHERE"
			    " ts >= :begin AND ts < :end AND (:cache IS NULL OR cache = :cache)",
			    ret_events, reterr);
}

/* Nothing in @text has to be escaped. */
static bool is_plain(const char *text)
{
	while (*text >= ' ' && *text < 0x7f && *text != '"' && *text != '\\')
		text++;
	return !*text;
}

void export_json_text(FILE *out, const char *text)
{
	json_t *s;
	char *literal;

	if (is_plain(text)) {
		fprintf(out, "\"%s\"", text);
		return;
	}
	s = json_stringn_nocheck(text, strlen(text));
	literal = json_dumps(s, JSON_ENCODE_ANY);
	/* Names of a recording may hold bytes that are no UTF-8. */
	fputs(literal ? literal : "\"?\"", out);
	free(literal);
	json_decref(s);
}

/* ---- written aside, read back, named ---- */

static int io_failed(const char *what, const char *path, struct tape_err *reterr)
{
	return tape_err_set(reterr, -TAPE_E_IO, "%s (%s): %s", what, path, strerror(errno));
}

int export_compare(const struct export_format *f, const struct export_sums *written,
		   const struct export_sums *found, uint64_t expected, struct tape_err *reterr)
{
	if (written->records != found->records || written->events != found->events)
		return tape_err_set(reterr, -TAPE_E_IO, "%s: read back %" PRIu64 " records with %"
				    PRIu64 " events where %" PRIu64 " with %" PRIu64
				    " were written; is the disk full?", f->name, found->records,
				    found->events, written->records, written->events);
	if (found->events != expected)
		return tape_err_set(reterr, -TAPE_E_FORMAT, "%s: %" PRIu64 " events were written, the "
				    "tape's counts say %" PRIu64 "; slabtape verify says more", f->name,
				    found->events, expected);
	return 0;
}

static int write_and_check(struct tape *t, const struct export_format *f,
			   const struct export_config *cfg, FILE *file, const char *path,
			   struct export_sums *ret_sums, struct tape_err *reterr)
{
	struct export_sums written = { 0 }, found = { 0 };
	uint64_t expected = 0;
	int rc;

	errno = 0;
	rc = f->write(t, cfg, file, &written, reterr);
	if (ferror(file) || (rc == 0 && fflush(file)))
		return io_failed("write", path, reterr);
	if (rc < 0)
		return rc;
	rewind(file);
	rc = f->check(file, &found, reterr);
	if (rc == 0)
		rc = f->expect(t, cfg, &expected, reterr);
	if (rc == 0)
		rc = export_compare(f, &written, &found, expected, reterr);
	if (rc == 0)
		*ret_sums = found;
	return rc;
}

static int copy(FILE *from, const char *path, struct tape_err *reterr)
{
	static char block[1 << 16];
	TAPE_CLEANUP(tape_fclosep) FILE *named = path ? fopen(path, "we") : NULL;
	FILE *to = path ? named : stdout;
	size_t n;

	if (!to)
		return io_failed("open", path, reterr);
	rewind(from);
	while ((n = fread(block, 1, sizeof(block), from)) > 0)
		if (fwrite(block, 1, n, to) != n)
			break;
	if (ferror(from) || ferror(to) || fflush(to))
		return io_failed("write", path ? path : "stdout", reterr);
	return 0;
}

/* A pipe, a device, standard output: checked in a file without a name, then copied. */
static int export_through(struct tape *t, const struct export_format *f,
			  const struct export_config *cfg, const char *path,
			  struct export_sums *ret_sums, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_fclosep) FILE *file = tmpfile();
	int rc;

	if (!file)
		return io_failed("open", "a temporary file", reterr);
	rc = write_and_check(t, f, cfg, file, "a temporary file", ret_sums, reterr);
	return rc < 0 ? rc : copy(file, path, reterr);
}

static int export_file(struct tape *t, const struct export_format *f,
		       const struct export_config *cfg, const char *path,
		       struct export_sums *ret_sums, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) char *part = NULL;
	FILE *file;
	int rc;

	if (asprintf(&part, "%s.part", path) < 0)
		return -ENOMEM;
	file = fopen(part, "w+e");
	if (!file)
		return io_failed("open", part, reterr);
	rc = write_and_check(t, f, cfg, file, part, ret_sums, reterr);
	if (fclose(file) && rc == 0)
		rc = io_failed("write", part, reterr);
	if (rc == 0 && rename(part, path))
		rc = io_failed("rename", part, reterr);
	if (rc < 0)
		remove(part);
	return rc;
}

static int export_script(struct tape *t, const struct export_config *cfg, const char *path,
			 struct export_sums *ret_sums, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_fclosep) FILE *file = tmpfile();
	int rc;

	if (cfg->begin_ns || cfg->end_ns != UINT64_MAX || cfg->cache >= 0 || cfg->run >= 0)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--to ops gives the whole script: no --time, "
				    "--cache or --run; slabtape cut makes a part");
	if (!file)
		return io_failed("open", "a temporary file", reterr);
	rc = export_ops(t, file, reterr);
	if (rc == 0)
		rc = export_expect_events(t, cfg, &ret_sums->events, reterr);
	ret_sums->records = ret_sums->events;
	return rc < 0 ? rc : copy(file, path, reterr);
}

int export_tape(struct tape *t, const char *format, const struct export_config *cfg,
		const char *path, struct export_sums *ret_sums, struct tape_err *reterr)
{
	const struct export_format *f = find(format);
	struct stat st;

	if (path && !strcmp(path, "-"))
		path = NULL;
	if (!strcmp(format, "ops"))
		return export_script(t, cfg, path, ret_sums, reterr);
	if (!f)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--to %s: no such format; there are %s",
				    format, export_formats);
	if (cfg->run >= 0 && !f->runs)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--to %s shows events; --run goes with csv, "
				    "json and perfetto", format);
	if (f->dir && !path)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--to %s writes a directory: -o DIR is needed",
				    format);
	if (f->dir)
		return f->dir(t, cfg, path, ret_sums, reterr);
	if (!path || (!stat(path, &st) && !S_ISREG(st.st_mode)))
		return export_through(t, f, cfg, path, ret_sums, reterr);
	return export_file(t, f, cfg, path, ret_sums, reterr);
}
