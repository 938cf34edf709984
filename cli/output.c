/* SPDX-License-Identifier: MIT */
#include "cli/output.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum cell_kind { CELL_NULL, CELL_NUMBER, CELL_TEXT };

struct cell {
	enum cell_kind kind;
	size_t bytes;
	char *text; /* owned while held */
};

struct output {
	FILE *out;
	enum output_format format;
	int columns, at; /* at: cells of the unfinished row */
	char **names;
	size_t *widths;
	struct cell *held; /* the unfinished row follows the held rows */
	size_t held_rows;
	uint64_t printed;
	bool failed;
};

static const char *const format_names[OUTPUT_MAX] = { "table", "csv", "json", "markdown" };

int output_parse(const char *name)
{
	for (int i = 0; i < OUTPUT_MAX; i++)
		if (!strcmp(format_names[i], name))
			return i;
	return -1;
}

static void output_free(struct output *o)
{
	size_t cells = o->held ? (o->held_rows + 1) * (size_t)o->columns : 0;

	for (size_t i = 0; i < cells; i++)
		free(o->held[i].text);
	for (int i = 0; o->names && i < o->columns; i++)
		free(o->names[i]);
	free(o->names);
	free(o->widths);
	free(o->held);
	free(o);
}

/* Characters of UTF-8 text: bytes that do not continue one. */
static size_t display_width(const char *text, size_t bytes)
{
	size_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

/* Width of a cell as it will be printed; markdown escapes bars. */
static size_t cell_width(const struct output *o, const char *text, size_t bytes)
{
	size_t n = display_width(text, bytes);

	for (size_t i = 0; o->format == OUTPUT_MARKDOWN && i < bytes; i++)
		n += text[i] == '|';
	return n;
}

struct output *output_begin(FILE *out, enum output_format format, int columns,
			    const char *const *names)
{
	struct output *o = calloc(1, sizeof(*o));
	size_t rows = format == OUTPUT_TABLE || format == OUTPUT_MARKDOWN ? OUTPUT_HELD_ROWS : 0;

	assert(columns > 0);
	if (!o)
		return NULL;
	o->out = out;
	o->format = format;
	o->columns = columns;
	o->names = calloc((size_t)columns, sizeof(*o->names));
	o->widths = calloc((size_t)columns, sizeof(*o->widths));
	o->held = calloc((rows + 1) * (size_t)columns, sizeof(*o->held));
	if (!o->names || !o->widths || !o->held) {
		output_free(o);
		return NULL;
	}
	for (int i = 0; i < columns; i++) {
		o->names[i] = strdup(names[i]);
		if (!o->names[i]) {
			output_free(o);
			return NULL;
		}
		o->widths[i] = cell_width(o, names[i], strlen(names[i]));
		if (format == OUTPUT_MARKDOWN && o->widths[i] < 3)
			o->widths[i] = 3; /* a separator needs three dashes */
	}
	return o;
}

/* ---- one format each ---- */

/* Bytes of the UTF-8 character at @text, of which @bytes are there; 0: none begins here. */
static size_t utf8_bytes(const unsigned char *text, size_t bytes)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t nr = *text < 0x80 ? 1 : *text < 0xc0 ? 0 : *text < 0xe0 ? 2 : *text < 0xf0 ? 3 :
		    *text < 0xf8 ? 4 : 0;
	uint32_t code = nr < 2 ? *text : *text & (0x7fu >> nr);

	if (!nr || nr > bytes)
		return 0;
	for (size_t i = 1; i < nr; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	return code < least[nr] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : nr;
}

void output_json_string(FILE *out, const char *text, size_t bytes)
{
	size_t nr;

	fputc('"', out);
	for (size_t i = 0; i < bytes; i += nr ? nr : 1) {
		unsigned char c = (unsigned char)text[i];

		nr = utf8_bytes((const unsigned char *)text + i, bytes - i);
		if (!nr)
			fputs("\\ufffd", out); /* JSON is UTF-8: what is not is replaced */
		else if (nr > 1)
			fwrite(text + i, 1, nr, out);
		else if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c == '\n')
			fputs("\\n", out);
		else if (c == '\t')
			fputs("\\t", out);
		else if (c < 0x20)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static void csv_cell(FILE *out, const char *text, size_t bytes)
{
	if (bytes && !memchr(text, '"', bytes) && !memchr(text, ',', bytes) &&
	    !memchr(text, '\n', bytes) && !memchr(text, '\r', bytes)) {
		fwrite(text, 1, bytes, out);
		return;
	}
	fputc('"', out);
	for (size_t i = 0; i < bytes; i++) {
		if (text[i] == '"')
			fputc('"', out);
		fputc(text[i], out);
	}
	fputc('"', out);
}

static void csv_row(struct output *o, const struct cell *row)
{
	for (int i = 0; i < o->columns; i++) {
		if (i)
			fputc(',', o->out);
		if (row[i].kind != CELL_NULL)
			csv_cell(o->out, row[i].text, row[i].bytes);
	}
	fputc('\n', o->out);
}

static void json_row(struct output *o, const struct cell *row)
{
	fputs(o->printed ? ",\n {" : "[{", o->out);
	for (int i = 0; i < o->columns; i++) {
		if (i)
			fputs(", ", o->out);
		output_json_string(o->out, o->names[i], strlen(o->names[i]));
		fputs(": ", o->out);
		if (row[i].kind == CELL_TEXT)
			output_json_string(o->out, row[i].text, row[i].bytes);
		else
			fputs(row[i].kind == CELL_NULL ? "null" : row[i].text, o->out);
	}
	fputc('}', o->out);
}

/* Line breaks would tear a line-based table apart; markdown also splits at bars. */
static void plain_cell(struct output *o, const struct cell *c)
{
	for (size_t i = 0; i < c->bytes; i++) {
		char ch = c->text[i];

		if (o->format == OUTPUT_MARKDOWN && ch == '|')
			fputc('\\', o->out);
		fputc(ch == '\n' || ch == '\r' || ch == '\t' ? ' ' : ch, o->out);
	}
}

static void pad(FILE *out, size_t n)
{
	while (n--)
		fputc(' ', out);
}

static void aligned_row(struct output *o, const struct cell *row)
{
	bool bars = o->format == OUTPUT_MARKDOWN;

	for (int i = 0; i < o->columns; i++) {
		size_t width = cell_width(o, row[i].text ? row[i].text : "", row[i].bytes);
		size_t room = o->widths[i] > width ? o->widths[i] - width : 0;

		fputs(bars ? (i ? " | " : "| ") : (i ? "  " : ""), o->out);
		if (row[i].kind == CELL_NUMBER)
			pad(o->out, room);
		plain_cell(o, &row[i]);
		if (row[i].kind != CELL_NUMBER && (bars || i + 1 < o->columns))
			pad(o->out, room);
	}
	fputs(bars ? " |\n" : "\n", o->out);
}

/* Headers stand like their column: right above numbers. */
static void aligned_header(struct output *o, const struct cell *first)
{
	for (int i = 0; i < o->columns; i++) {
		size_t width = cell_width(o, o->names[i], strlen(o->names[i]));
		bool right = first && first[i].kind == CELL_NUMBER;

		fputs(o->format == OUTPUT_MARKDOWN ? (i ? " | " : "| ") : (i ? "  " : ""), o->out);
		if (right)
			pad(o->out, o->widths[i] - width);
		fputs(o->names[i], o->out);
		if (!right && (o->format == OUTPUT_MARKDOWN || i + 1 < o->columns))
			pad(o->out, o->widths[i] - width);
	}
	fputs(o->format == OUTPUT_MARKDOWN ? " |\n" : "\n", o->out);
	for (int i = 0; i < o->columns; i++) {
		bool right = first && first[i].kind == CELL_NUMBER;

		fputs(o->format == OUTPUT_MARKDOWN ? (i ? " | " : "| ") : (i ? "  " : ""), o->out);
		for (size_t n = 1; n < o->widths[i]; n++)
			fputc('-', o->out);
		if (o->widths[i])
			fputc(o->format == OUTPUT_MARKDOWN && right ? ':' : '-', o->out);
	}
	fputs(o->format == OUTPUT_MARKDOWN ? " |\n" : "\n", o->out);
}

static void print_row(struct output *o, const struct cell *row)
{
	if (o->format == OUTPUT_CSV)
		csv_row(o, row);
	else if (o->format == OUTPUT_JSON)
		json_row(o, row);
	else
		aligned_row(o, row);
	o->printed++;
}

static void csv_header(struct output *o)
{
	for (int i = 0; i < o->columns; i++) {
		if (i)
			fputc(',', o->out);
		csv_cell(o->out, o->names[i], strlen(o->names[i]));
	}
	fputc('\n', o->out);
}

/* Print the header and the held rows; from then on rows go straight out. */
static void release(struct output *o)
{
	size_t rows = o->held_rows;

	if (o->printed)
		return;
	if (o->format == OUTPUT_CSV)
		csv_header(o);
	else if (o->format != OUTPUT_JSON)
		aligned_header(o, rows ? o->held : NULL);
	for (size_t r = 0; r < rows; r++)
		print_row(o, o->held + r * (size_t)o->columns);
	for (size_t i = 0; i < rows * (size_t)o->columns; i++) {
		free(o->held[i].text);
		o->held[i].text = NULL;
	}
}

/* ---- cells ---- */

static void end_row(struct output *o)
{
	struct cell *row = o->held + o->held_rows * (size_t)o->columns;
	bool hold = !o->printed && (o->format == OUTPUT_TABLE || o->format == OUTPUT_MARKDOWN) &&
		    o->held_rows + 1 < OUTPUT_HELD_ROWS;

	o->at = 0;
	if (hold) {
		o->held_rows++;
		return;
	}
	release(o);
	print_row(o, row);
	for (int i = 0; i < o->columns; i++) {
		free(row[i].text);
		row[i].text = NULL;
	}
}

static void add_cell(struct output *o, enum cell_kind kind, const char *text, size_t bytes)
{
	struct cell *c = &o->held[o->held_rows * (size_t)o->columns + (size_t)o->at];
	size_t width;

	c->kind = kind;
	c->bytes = bytes;
	c->text = malloc(bytes + 1);
	if (c->text) {
		if (bytes)
			memcpy(c->text, text, bytes);
		c->text[bytes] = 0;
	} else {
		o->failed = true;
		c->kind = CELL_NULL;
		c->bytes = 0;
	}
	width = cell_width(o, c->text ? c->text : "", c->bytes);
	if (!o->printed && width > o->widths[o->at])
		o->widths[o->at] = width;
	if (++o->at == o->columns)
		end_row(o);
}

void output_int(struct output *o, int64_t value)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%lld", (long long)value);

	add_cell(o, CELL_NUMBER, text, (size_t)n);
}

void output_uint(struct output *o, uint64_t value)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)value);

	add_cell(o, CELL_NUMBER, text, (size_t)n);
}

void output_real(struct output *o, double value)
{
	char text[40];
	int n = snprintf(text, sizeof(text), "%.15g", value);

	if (!isfinite(value)) {
		output_null(o); /* JSON has no infinity */
		return;
	}
	add_cell(o, CELL_NUMBER, text, (size_t)n);
}

void output_text(struct output *o, const char *text, size_t bytes)
{
	add_cell(o, CELL_TEXT, text, bytes);
}

void output_blob(struct output *o, const void *data, size_t bytes)
{
	const uint8_t *from = data;
	char *text = malloc(2 * bytes + 1);

	if (!text) {
		o->failed = true;
		output_null(o);
		return;
	}
	for (size_t i = 0; i < bytes; i++)
		snprintf(text + 2 * i, 3, "%02x", from[i]);
	add_cell(o, CELL_TEXT, text, 2 * bytes);
	free(text);
}

void output_null(struct output *o)
{
	add_cell(o, CELL_NULL, "", 0);
}

int output_end(struct output *o)
{
	int rc;

	if (!o)
		return 0;
	release(o);
	if (o->format == OUTPUT_JSON)
		fputs(o->printed ? "]\n" : "[]\n", o->out);
	fflush(o->out);
	rc = o->failed ? -ENOMEM : ferror(o->out) ? -TAPE_E_IO : 0;
	output_free(o);
	return rc;
}
