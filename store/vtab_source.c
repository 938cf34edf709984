/* SPDX-License-Identifier: MIT */
#include "store/vtab_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int vtab_source_failed(int rc, const struct tape_err *err, char **ret_message)
{
	sqlite3_free(*ret_message);
	*ret_message = sqlite3_mprintf("slabtape: tape %s", err->code ? err->text : tape_err_name(rc));
	switch (rc) {
	case -ENOMEM:
		return SQLITE_NOMEM;
	case -TAPE_E_FORMAT:
	case -TAPE_E_VERSION:
	case -TAPE_E_TRUNCATED:
		return SQLITE_ERROR;
	default:
		return SQLITE_IOERR;
	}
}


static int load_nodes(struct vtab_source *s)
{
	sqlite3_stmt *statement = NULL;
	int rc = store_prepare(&s->tape, "SELECT cpu, node FROM \"%w\".cpu", 0, &statement);

	memset(s->cpu_node, 0xff, sizeof(s->cpu_node));
	while (rc == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) {
		int64_t cpu = sqlite3_column_int64(statement, 0);
		int64_t node = sqlite3_column_int64(statement, 1);

		if (cpu >= 0 && cpu < TAPE_CPU_MAX && node >= 0 && node < TAPE_NODE_MAX)
			s->cpu_node[cpu] = (int16_t)node;
	}
	sqlite3_finalize(statement);
	return rc;
}

/* Pages in use stay with their cursors; idle ones may show an older file. */
static void drop_idle(struct vtab_source *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->pages_nr; i++) {
		struct vtab_page *p = s->pages[i];

		if (p->users) {
			p->chunk = SIZE_MAX; /* never found again */
			s->pages[kept++] = p;
			continue;
		}
		tape_batch_destroy(p->batch);
		free(p);
	}
	s->pages_nr = kept;
}

/* Ids are given out one by one, so a chunk that claims a far higher one is damaged. */
static int check_ids(const struct vtab_source *s, const struct store_chunk *chunks, size_t nr,
		     uint64_t events, struct tape_err *reterr)
{
	for (size_t i = 0; i < nr; i++)
		if (chunks[i].first_object <= chunks[i].last_object &&
		    chunks[i].last_object / 16 > events + TAPE_CHUNK_EVENTS)
			return tape_err_set(reterr, -TAPE_E_FORMAT, "%s: chunk %lld names object %llu",
					    s->tape.path, (long long)chunks[i].id,
					    (unsigned long long)chunks[i].last_object);
	return 0;
}

int vtab_source_refresh(struct vtab_source *s, char **ret_message)
{
	int64_t version = 0, own = sqlite3_total_changes64(s->tape.db);
	struct store_chunk *chunks;
	struct tape_err err = { 0 };
	size_t nr;
	uint64_t events;
	int rc = store_query_int(&s->tape, "PRAGMA \"%w\".data_version", 0, &version, &err);

	if (rc < 0)
		return vtab_source_failed(rc, &err, ret_message);
	if (s->chunks && version == s->data_version && own == s->own_changes)
		return SQLITE_OK;
	rc = store_chunks_load(&s->tape, &chunks, &nr, &err);
	if (rc < 0)
		return vtab_source_failed(rc, &err, ret_message);
	events = nr ? chunks[nr - 1].first_seq + chunks[nr - 1].events : 0;
	rc = check_ids(s, chunks, nr, events, &err);
	if (rc < 0) {
		free(chunks);
		return vtab_source_failed(rc, &err, ret_message);
	}
	drop_idle(s);
	free(s->chunks);
	s->chunks = chunks;
	s->chunks_nr = nr;
	s->events = events;
	s->complete = tape_meta_get_int(&s->tape, "complete", 0) == 1;
	s->state++;
	s->data_version = version;
	s->own_changes = own;
	return load_nodes(s);
}

static struct vtab_source *source_new(sqlite3 *db, const char *schema)
{
	struct vtab_source *s = calloc(1, sizeof(*s));
	const char *file = sqlite3_db_filename(db, schema);

	if (!s)
		return NULL;
	s->tape.db = db;
	s->tape.schema = strdup(schema);
	s->tape.path = strdup(file && *file ? file : schema);
	s->codec = tape_codec_create();
	if (!s->tape.schema || !s->tape.path || !s->codec) {
		vtab_source_close(s);
		return NULL;
	}
	return s;
}

int vtab_source_open(sqlite3 *db, const char *schema, struct vtab_source **ret_source,
		     char **ret_message)
{
	struct vtab_source *s;
	struct tape_err err = { 0 };
	int rc;

	if (!sqlite3_db_filename(db, schema)) {
		*ret_message = sqlite3_mprintf("slabtape: no attached database '%s'", schema);
		return SQLITE_ERROR;
	}
	s = source_new(db, schema);
	if (!s)
		return SQLITE_NOMEM;
	rc = store_schema_check(&s->tape, &err);
	rc = rc < 0 ? vtab_source_failed(rc, &err, ret_message) :
		      vtab_source_refresh(s, ret_message);
	if (rc != SQLITE_OK) {
		vtab_source_close(s);
		return rc;
	}
	*ret_source = s;
	return SQLITE_OK;
}

void vtab_source_close(struct vtab_source *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->pages_nr; i++) {
		tape_batch_destroy(s->pages[i]->batch);
		free(s->pages[i]);
	}
	free(s->pages);
	store_statements_drop(&s->tape);
	tape_codec_destroy(s->codec);
	free(s->chunks);
	free(s->tape.path);
	free(s->tape.schema);
	free(s);
}

/* A page for @chunk: the one that has it, the idle one used longest ago, or a new one. */
static struct vtab_page *find_page(struct vtab_source *s, size_t chunk)
{
	struct vtab_page *oldest = NULL, **pages, *p;
	size_t idle = 0;

	for (size_t i = 0; i < s->pages_nr; i++) {
		p = s->pages[i];
		if (p->chunk == chunk)
			return p;
		if (p->users)
			continue;
		idle++;
		if (!oldest || p->last_use < oldest->last_use)
			oldest = p;
	}
	if (idle >= VTAB_PAGES_IDLE)
		return oldest;
	pages = realloc(s->pages, (s->pages_nr + 1) * sizeof(*pages));
	if (!pages)
		return NULL;
	s->pages = pages;
	p = calloc(1, sizeof(*p));
	if (p)
		p->batch = tape_batch_create(TAPE_CHUNK_EVENTS);
	if (!p || !p->batch) {
		free(p);
		return NULL;
	}
	p->chunk = SIZE_MAX;
	s->pages[s->pages_nr++] = p;
	return p;
}

int vtab_source_page(struct vtab_source *s, size_t chunk, uint32_t columns,
		     struct vtab_page **ret_page, char **ret_message)
{
	struct vtab_page *p = find_page(s, chunk);
	struct tape_err err = { 0 };
	int rc;

	if (!p)
		return SQLITE_NOMEM;
	if (p->chunk != chunk) {
		p->chunk = chunk;
		p->batch->valid = 0;
	}
	rc = store_chunk_decode(&s->tape, s->codec, &s->chunks[chunk], columns, p->batch, &err);
	if (rc < 0) {
		if (!p->users)
			p->chunk = SIZE_MAX;
		return vtab_source_failed(rc, &err, ret_message);
	}
	p->users++;
	p->last_use = ++s->uses;
	*ret_page = p;
	return SQLITE_OK;
}

void vtab_page_put(struct vtab_page *page)
{
	if (page)
		page->users--;
}
