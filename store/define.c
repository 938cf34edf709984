/* SPDX-License-Identifier: MIT */
/* The small tables: CPUs, caches, knobs, sites, threads, losses, markers. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_internal.h"

static void bind_text(sqlite3_stmt *s, int at, const char *text)
{
	if (text)
		sqlite3_bind_text(s, at, text, -1, SQLITE_STATIC);
}

int tape_define_cpu(struct tape *t, uint16_t cpu, int16_t node, struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc;

	if (cpu >= TAPE_CPU_MAX || node < 0 || node >= TAPE_NODE_MAX)
		return tape_err_set(reterr, -TAPE_E_LIMIT, "cpu %d on node %d: at most %d CPUs and %d nodes",
				    cpu, node, TAPE_CPU_MAX, TAPE_NODE_MAX);
	rc = store_statement(t, STORE_CPU_SET, &s, reterr);
	if (rc < 0)
		return rc;
	sqlite3_bind_int(s, 1, cpu);
	sqlite3_bind_int(s, 2, node);
	return store_run(t, s, "writing a cpu", reterr);
}

int tape_define_cache(struct tape *t, const struct tape_cache *c, struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc;

	if (c->id > TAPE_CACHE_MAX)
		return tape_err_set(reterr, -TAPE_E_LIMIT, "cache %d: at most %d caches", c->id,
				    TAPE_CACHE_MAX);
	rc = store_statement(t, STORE_CACHE_SET, &s, reterr);
	if (rc < 0)
		return rc;
	sqlite3_bind_int(s, 1, c->id);
	sqlite3_bind_text(s, 2, c->name, (int)strnlen(c->name, sizeof(c->name)), SQLITE_STATIC);
	store_bind_u64(s, 3, c->object_size);
	store_bind_u64(s, 4, c->align);
	store_bind_u64(s, 5, c->flags);
	sqlite3_bind_double(s, 6, c->coverage);
	return store_run(t, s, "writing a cache", reterr);
}

int tape_define_knob(struct tape *t, uint16_t cache, const char *knob, const char *value,
		     struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc = store_statement(t, STORE_KNOB_SET, &s, reterr);

	if (rc < 0)
		return rc;
	sqlite3_bind_int(s, 1, cache);
	bind_text(s, 2, knob);
	bind_text(s, 3, value);
	return store_run(t, s, "writing a knob", reterr);
}

int tape_define_site(struct tape *t, uint32_t site, uint64_t address, const char *symbol,
		     const char *module, uint64_t offset, struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc = store_statement(t, STORE_SITE_SET, &s, reterr);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(s, 1, site);
	store_bind_u64(s, 2, address);
	bind_text(s, 3, symbol);
	bind_text(s, 4, module);
	store_bind_u64(s, 5, offset);
	return store_run(t, s, "writing a site", reterr);
}

int tape_define_thread(struct tape *t, int32_t tid, int32_t pid, const char *comm,
		       struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc = store_statement(t, STORE_THREAD_SET, &s, reterr);

	if (rc < 0)
		return rc;
	sqlite3_bind_int(s, 1, tid);
	sqlite3_bind_int(s, 2, pid);
	bind_text(s, 3, comm);
	return store_run(t, s, "writing a thread", reterr);
}

int tape_define_loss(struct tape *t, int32_t cpu, uint64_t ts_begin, uint64_t ts_end,
		     uint64_t events, const char *reason, struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc = store_statement(t, STORE_LOSS_ADD, &s, reterr);

	if (rc < 0)
		return rc;
	if (cpu >= 0)
		sqlite3_bind_int(s, 1, cpu);
	store_bind_u64(s, 2, ts_begin);
	store_bind_u64(s, 3, ts_end);
	store_bind_u64(s, 4, events);
	bind_text(s, 5, reason);
	return store_run(t, s, "writing a loss", reterr);
}

/* Prepare @sql and step through it; @row returns 0 to go on. */
static int each_row(struct tape *t, const char *sql, int (*row)(sqlite3_stmt *s, void *context),
		    void *context, struct tape_err *reterr)
{
	sqlite3_stmt *s;
	int rc = 0, step = SQLITE_ROW;

	if (sqlite3_prepare_v2(t->db, sql, -1, &s, NULL) != SQLITE_OK)
		return store_fail(t, "reading", reterr);
	while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW)
		rc = row(s, context);
	if (rc < 0)
		tape_err_set(reterr, rc, "reading %s: %s", t->path, tape_err_name(rc));
	else if (step != SQLITE_DONE)
		rc = store_fail(t, "reading", reterr);
	sqlite3_finalize(s);
	return rc;
}

static int machine_row(sqlite3_stmt *s, void *context)
{
	struct tape_machine *m = context;
	int64_t cpu = sqlite3_column_int64(s, 0), node = sqlite3_column_int64(s, 1);

	if (cpu < 0 || cpu >= TAPE_CPU_MAX || node < 0 || node >= TAPE_NODE_MAX)
		return -TAPE_E_LIMIT;
	m->cpu_node[cpu] = (uint16_t)node;
	if (m->cpus <= cpu)
		m->cpus = (uint32_t)cpu + 1;
	if (m->nodes <= node)
		m->nodes = (uint32_t)node + 1;
	return 0;
}

int tape_machine_get(struct tape *t, struct tape_machine *ret_machine, struct tape_err *reterr)
{
	struct tape_machine m = { 0 };
	int rc = each_row(t, "SELECT cpu, node FROM cpu", machine_row, &m, reterr);

	if (rc == 0)
		*ret_machine = m;
	return rc;
}

/* A growing array of equal elements. */
struct array {
	void *data;
	size_t nr, room, element_bytes;
};

static void *array_add(struct array *a)
{
	if (a->nr == a->room) {
		size_t room = a->room ? a->room * 2 : 64;
		void *grown = realloc(a->data, room * a->element_bytes);

		if (!grown)
			return NULL;
		a->data = grown;
		a->room = room;
	}
	return (char *)a->data + a->nr++ * a->element_bytes;
}

static int cache_row(sqlite3_stmt *s, void *context)
{
	struct tape_cache *c = array_add(context);
	int64_t id = sqlite3_column_int64(s, 0);
	const char *name = (const char *)sqlite3_column_text(s, 1);

	if (!c)
		return -ENOMEM;
	if (id < 0 || id > TAPE_CACHE_MAX)
		return -TAPE_E_LIMIT;
	*c = (struct tape_cache){
		.id = (uint16_t)id,
		.object_size = (uint64_t)sqlite3_column_int64(s, 2),
		.align = (uint64_t)sqlite3_column_int64(s, 3),
		.flags = (uint64_t)sqlite3_column_int64(s, 4),
		.coverage = sqlite3_column_double(s, 5),
	};
	snprintf(c->name, sizeof(c->name), "%s", name ? name : "");
	return 0;
}

int tape_caches_get(struct tape *t, struct tape_cache **ret_caches, size_t *ret_nr,
		    struct tape_err *reterr)
{
	struct array a = { .element_bytes = sizeof(struct tape_cache) };
	int rc = each_row(t, "SELECT cache, name, object_size, align, flags, coverage FROM cache"
			     " ORDER BY cache", cache_row, &a, reterr);

	if (rc < 0) {
		free(a.data);
		return rc;
	}
	*ret_caches = a.data;
	*ret_nr = a.nr;
	return 0;
}

int tape_knob_get(struct tape *t, uint16_t cache, const char *knob, char **ret_value,
		  struct tape_err *reterr)
{
	sqlite3_stmt *s;
	char *value = NULL;
	int rc = store_statement(t, STORE_KNOB_GET, &s, reterr), step;

	if (rc < 0)
		return rc;
	sqlite3_bind_int(s, 1, cache);
	sqlite3_bind_text(s, 2, knob, -1, SQLITE_STATIC);
	step = sqlite3_step(s);
	if (step == SQLITE_ROW) {
		value = strdup((const char *)sqlite3_column_text(s, 0));
		if (!value)
			rc = tape_err_set(reterr, -ENOMEM, "out of memory");
	} else if (step != SQLITE_DONE) {
		rc = store_fail(t, "reading a knob", reterr);
	}
	sqlite3_reset(s);
	if (rc == 0)
		*ret_value = value;
	return rc;
}

static int marker_row(sqlite3_stmt *s, void *context)
{
	struct tape_marker *m = array_add(context);
	const char *name = (const char *)sqlite3_column_text(s, 3);

	if (!m)
		return -ENOMEM;
	*m = (struct tape_marker){
		.seq = (uint64_t)sqlite3_column_int64(s, 0),
		.ts = (uint64_t)sqlite3_column_int64(s, 1),
		.cpu = (uint16_t)sqlite3_column_int64(s, 2),
		.name = strdup(name ? name : ""),
	};
	return m->name ? 0 : -ENOMEM;
}

/* One block: the array, then the names. */
static struct tape_marker *markers_join(const struct tape_marker *from, size_t nr)
{
	size_t bytes = nr * sizeof(*from);
	struct tape_marker *block;
	char *text;

	for (size_t i = 0; i < nr; i++)
		bytes += strlen(from[i].name) + 1;
	block = malloc(bytes + 1);
	if (!block)
		return NULL;
	text = (char *)(block + nr);
	for (size_t i = 0; i < nr; i++) {
		size_t name_bytes = strlen(from[i].name) + 1;

		block[i] = from[i];
		block[i].name = memcpy(text, from[i].name, name_bytes);
		text += name_bytes;
	}
	return block;
}

int tape_markers_get(struct tape *t, struct tape_marker **ret_markers, size_t *ret_nr,
		     struct tape_err *reterr)
{
	struct array a = { .element_bytes = sizeof(struct tape_marker) };
	int rc = each_row(t, "SELECT seq, ts, cpu, name FROM marker ORDER BY seq", marker_row, &a,
			  reterr);
	struct tape_marker *from = a.data, *block = NULL;

	if (rc == 0) {
		block = markers_join(from, a.nr);
		if (!block)
			rc = tape_err_set(reterr, -ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < a.nr; i++)
		free(from[i].name);
	free(from);
	if (rc < 0)
		return rc;
	*ret_markers = block;
	*ret_nr = a.nr;
	return 0;
}
