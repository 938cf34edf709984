/* SPDX-License-Identifier: MIT */
/* Lines of CSV or JSON: one per event of a tape, or per transition of a run. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/export_internal.h"
#include "base/cleanup.h"
#include "store/tape.h"

struct rows_export {
	FILE *out;
	bool json;
	struct export_names names;
	uint64_t rows;
	const char *between; /* before the next cell */
};

static void csv_text(FILE *out, const char *text)
{
	if (!strpbrk(text, "\",\n\r")) {
		fputs(text, out);
		return;
	}
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text == '\n' ? ' ' : *text, out); /* a line is a row */
	}
	fputc('"', out);
}

static void begin_cell(struct rows_export *x, const char *key)
{
	fputs(x->between, x->out);
	if (x->json)
		fprintf(x->out, "\"%s\":", key);
	x->between = ",";
}

static void cell_number(struct rows_export *x, const char *key, int64_t value)
{
	begin_cell(x, key);
	fprintf(x->out, "%" PRId64, value);
}

/* No text: null, an empty cell. */
static void cell_text(struct rows_export *x, const char *key, const char *text)
{
	begin_cell(x, key);
	if (x->json && (!text || !*text))
		fputs("null", x->out);
	else if (x->json)
		export_json_text(x->out, text);
	else if (text)
		csv_text(x->out, text);
}

static void begin_row(struct rows_export *x)
{
	x->between = "";
	if (x->json)
		fputc('{', x->out);
}

static int end_row(struct rows_export *x)
{
	fputs(x->json ? "}\n" : "\n", x->out);
	x->rows++;
	return ferror(x->out) ? -TAPE_E_IO : 0;
}

static const char event_header[] = "seq,ts,cpu,op,cache,object,size,node_req,mem_node,site,tid,gfp,ctx,"
				   "bulk,arg,flags,address,ts_lo,ts_hi\n";

static int print_event(void *ctx, uint64_t seq, const struct tape_event *ev)
{
	struct rows_export *x = ctx;
	bool object = ev->object != TAPE_NO_OBJECT;

	begin_row(x);
	cell_number(x, "seq", (int64_t)seq);
	cell_number(x, "ts", (int64_t)ev->ts);
	cell_number(x, "cpu", ev->cpu);
	cell_text(x, "op", tape_op_name(ev->op));
	cell_text(x, "cache", export_cache_name(&x->names, ev->cache));
	if (object)
		cell_number(x, "object", (int64_t)ev->object);
	else
		cell_text(x, "object", NULL);
	cell_number(x, "size", (int64_t)ev->size);
	cell_number(x, "node_req", ev->node_req);
	cell_number(x, "mem_node", ev->mem_node);
	cell_text(x, "site", export_site_name(&x->names, ev->site));
	cell_number(x, "tid", ev->tid);
	cell_number(x, "gfp", ev->gfp);
	cell_text(x, "ctx", ev->ctx == TAPE_CTX_UNKNOWN ? NULL : tape_ctx_name(ev->ctx));
	cell_number(x, "bulk", ev->bulk);
	cell_number(x, "arg", ev->arg);
	cell_number(x, "flags", ev->flags);
	cell_number(x, "address", (int64_t)ev->address);
	cell_number(x, "ts_lo", (int64_t)ev->ts_lo);
	cell_number(x, "ts_hi", (int64_t)ev->ts_hi);
	return end_row(x);
}

/* ---- transitions of a run ---- */

static const char run_sql[] =
	"SELECT t.seq, t.ts, t.vts, t.cpu, t.node, c.name AS cache, t.slab, t.from_state, t.to_state,"
	" t.inuse, t.objects, t.op FROM transition t LEFT JOIN cache c ON c.cache = t.cache"
	" WHERE t.run = :run AND t.ts >= :begin AND t.ts < :end"
	" AND (:cache IS NULL OR t.cache = :cache)";

static int print_transitions(struct rows_export *x, sqlite3_stmt *s)
{
	int columns = sqlite3_column_count(s), step, rc = 0;

	for (int i = 0; !x->json && i < columns; i++)
		fprintf(x->out, "%s%s", i ? "," : "", sqlite3_column_name(s, i));
	if (!x->json)
		fputc('\n', x->out);
	while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
		begin_row(x);
		for (int i = 0; i < columns; i++) {
			const char *key = sqlite3_column_name(s, i);

			if (sqlite3_column_type(s, i) == SQLITE_INTEGER)
				cell_number(x, key, sqlite3_column_int64(s, i));
			else
				cell_text(x, key, (const char *)sqlite3_column_text(s, i));
		}
		rc = end_row(x);
	}
	return rc < 0 || step == SQLITE_DONE ? rc : -TAPE_E_FORMAT;
}

static int write_run(struct tape *t, const struct export_config *cfg, struct rows_export *x,
		     struct tape_err *reterr)
{
	struct analyze_bind binds[EXPORT_BINDS];
	sqlite3_stmt *s;
	int rc;

	export_binds(cfg, binds);
	rc = analyze_prepare(tape_db(t), run_sql, binds, &s, reterr);
	if (rc < 0)
		return rc;
	rc = print_transitions(x, s);
	sqlite3_finalize(s);
	return rc == -TAPE_E_FORMAT ? tape_err_set(reterr, rc, "reading the tape: %s",
						   sqlite3_errmsg(tape_db(t))) : rc;
}

static int write_rows(struct tape *t, const struct export_config *cfg, FILE *out, bool json,
		      struct export_sums *ret_sums, struct tape_err *reterr)
{
	struct rows_export x = { .out = out, .json = json };
	int rc = export_names_load(t, &x.names, reterr);

	if (rc < 0)
		return rc;
	if (cfg->run >= 0) {
		rc = write_run(t, cfg, &x, reterr);
	} else {
		if (!json)
			fputs(event_header, out);
		rc = export_each(t, cfg, print_event, &x, reterr);
	}
	export_names_fini(&x.names);
	*ret_sums = (struct export_sums){ x.rows, x.rows };
	return rc;
}

static int write_csv(struct tape *t, const struct export_config *cfg, FILE *out,
		     struct export_sums *ret_sums, struct tape_err *reterr)
{
	return write_rows(t, cfg, out, false, ret_sums, reterr);
}

static int write_json(struct tape *t, const struct export_config *cfg, FILE *out,
		      struct export_sums *ret_sums, struct tape_err *reterr)
{
	return write_rows(t, cfg, out, true, ret_sums, reterr);
}

/* Whole lines; those of JSON in braces. */
static int check_lines(FILE *in, bool json, struct export_sums *ret_sums)
{
	TAPE_CLEANUP(tape_freep) char *line = NULL;
	uint64_t rows = 0;
	size_t room = 0;
	ssize_t n;

	while ((n = getline(&line, &room, in)) > 0) {
		if (line[n - 1] != '\n' || (json && (n < 3 || line[0] != '{' || line[n - 2] != '}')))
			break;
		rows++;
	}
	if (!json && rows)
		rows--; /* the header */
	*ret_sums = (struct export_sums){ rows, rows };
	return 0;
}

static int check_csv(FILE *in, struct export_sums *ret_sums, struct tape_err *reterr)
{
	(void)reterr;
	return check_lines(in, false, ret_sums);
}

static int check_json(FILE *in, struct export_sums *ret_sums, struct tape_err *reterr)
{
	(void)reterr;
	return check_lines(in, true, ret_sums);
}

static int expect_rows(struct tape *t, const struct export_config *cfg, uint64_t *ret_events,
		       struct tape_err *reterr)
{
	if (cfg->run < 0)
		return export_expect_events(t, cfg, ret_events, reterr);
	return export_count(t, cfg, "SELECT coalesce(sum(transitions), 0) AS n FROM transition_agg WHERE"
			    " run = :run AND ts >= :begin AND ts < :end"
			    " AND (:cache IS NULL OR cache = :cache)", ret_events, reterr);
}

const struct export_format export_csv = { .name = "csv", .write = write_csv, .check = check_csv,
					  .expect = expect_rows, .runs = true };
const struct export_format export_json = { .name = "json", .write = write_json, .check = check_json,
					   .expect = expect_rows, .runs = true };
