/* SPDX-License-Identifier: MIT */
/*
 * The kernel's own counters as runs of the tape.
 *
 *	variant 'recorded', mode 'window'		what the counters grew by between the snapshots
 *	variant 'kernel:RELEASE', mode 'before'/'after'	the snapshots themselves: every number that
 *		is not 0; a part of a node K has the name "FILE.NK"
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "capture/ingest_internal.h"
#include "capture/source.h"

/* Files that count events, by the start of their names (SLUB_STATS of 2.6.30 to 7.2). */
static bool is_counter(const char *file)
{
	static const char *const starts[] = { "alloc_", "free_",	"deactivate_",	 "cmpxchg_",
					      "barn_",	"cpu_partial_", "cpuslab_flush", "sheaf_",
					      "order_fallback" };

	if (!strcmp(file, "sheaf_capacity"))
		return false;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (!strncmp(file, starts[i], strlen(starts[i])))
			return true;
	return false;
}

static int begin_run(struct ingest *ing, const char *variant, const char *mode, int64_t *ret_run,
		     struct tape_err *reterr)
{
	struct machine *m = &ing->machine;
	uint16_t cpu_node[TAPE_CPU_MAX];
	struct tape_run run = { .variant = variant, .mode = mode, .args = "", .started = "",
				.cpus = m->cpus, .nodes = m->nodes, .cpu_node = cpu_node };
	int rc;

	for (uint32_t i = 0; i < m->cpus; i++)
		cpu_node[i] = machine_cpu_node(m, i);
	rc = tape_run_begin(ing->t, &run, reterr);
	*ret_run = run.id;
	return rc;
}

/* Id of a snapshot's cache; all of them were defined when the import began. */
static uint16_t cache_of(const struct ingest *ing, const struct snapshot *s, uint32_t cache)
{
	const struct intern_text *name = &s->caches.texts[cache];

	return (uint16_t)(intern_find(&ing->names, name->text, name->len) + 1);
}

/* The value of the same file of the same cache in another snapshot. */
static const struct snapshot_value *same_in(const struct snapshot *from, const struct snapshot *s,
					    const struct snapshot_value *v)
{
	const struct intern_text *cache = &from->caches.texts[v->cache];
	const struct intern_text *file = &from->files.texts[v->file];
	uint32_t c = intern_find(&s->caches, cache->text, cache->len);
	uint32_t f = intern_find(&s->files, file->text, file->len);

	return c == UINT32_MAX || f == UINT32_MAX ? NULL : snapshot_at(s, c, f);
}

static int64_t part_of(const struct snapshot *s, const struct snapshot_value *v, char kind,
		       uint16_t number)
{
	for (uint32_t i = 0; v && i < v->parts_nr; i++) {
		const struct snapshot_part *p = &s->parts[v->first_part + i];

		if (p->kind == kind && p->number == number)
			return p->value;
	}
	return 0;
}

static int store_delta(struct ingest *ing, int64_t run, const struct snapshot_value *v,
		       struct tape_err *reterr)
{
	const struct snapshot *after = ing->after, *before = ing->before;
	const char *file = after->files.texts[v->file].text;
	const struct snapshot_value *old = same_in(after, before, v);
	uint16_t cache = cache_of(ing, after, v->cache);
	int rc = tape_run_counter(ing->t, run, cache, -1, file,
				  v->value - (old ? old->value : 0), reterr);

	for (uint32_t i = 0; rc >= 0 && i < v->parts_nr; i++) {
		const struct snapshot_part *p = &after->parts[v->first_part + i];
		int64_t delta = p->value - part_of(before, old, p->kind, p->number);

		if (p->kind == 'C' && delta)
			rc = tape_run_counter(ing->t, run, cache, p->number, file, delta, reterr);
	}
	return rc;
}

static int store_window(struct ingest *ing, struct tape_err *reterr)
{
	int64_t run;
	int rc = begin_run(ing, "recorded", "window", &run, reterr);

	for (size_t i = 0; rc >= 0 && i < ing->after->values_nr; i++) {
		const struct snapshot_value *v = &ing->after->values[i];

		if (v->numeric && is_counter(ing->after->files.texts[v->file].text))
			rc = store_delta(ing, run, v, reterr);
	}
	return rc < 0 ? rc : tape_run_end(ing->t, run, 0, 0, -1, reterr);
}

static int store_value(struct ingest *ing, const struct snapshot *s, int64_t run,
		       const struct snapshot_value *v, struct tape_err *reterr)
{
	const char *file = s->files.texts[v->file].text;
	uint16_t cache = cache_of(ing, s, v->cache);
	int rc = v->value ? tape_run_counter(ing->t, run, cache, -1, file, v->value, reterr) : 0;

	for (uint32_t i = 0; rc >= 0 && i < v->parts_nr; i++) {
		const struct snapshot_part *p = &s->parts[v->first_part + i];
		char name[80];

		if (p->kind == 'N')
			snprintf(name, sizeof(name), "%.60s.N%u", file, p->number);
		else
			snprintf(name, sizeof(name), "%.60s", file);
		rc = tape_run_counter(ing->t, run, cache, p->kind == 'N' ? -1 : p->number, name,
				      p->value, reterr);
	}
	return rc;
}

static int store_absolute(struct ingest *ing, const struct snapshot *s, const char *mode,
			  struct tape_err *reterr)
{
	const char *release = ing->job->source->release;
	char variant[96];
	int64_t run;
	int rc;

	snprintf(variant, sizeof(variant), "kernel:%.80s", release ? release : "unknown");
	rc = begin_run(ing, variant, mode, &run, reterr);
	for (size_t i = 0; rc >= 0 && i < s->values_nr; i++)
		if (s->values[i].numeric)
			rc = store_value(ing, s, run, &s->values[i], reterr);
	return rc < 0 ? rc : tape_run_end(ing->t, run, 0, 0, -1, reterr);
}

int ingest_store_counters(struct ingest *ing, struct tape_err *reterr)
{
	int rc = 0;

	if (ing->before && ing->after)
		rc = store_window(ing, reterr);
	if (rc >= 0 && ing->before)
		rc = store_absolute(ing, ing->before, "before", reterr);
	if (rc >= 0 && ing->after)
		rc = store_absolute(ing, ing->after, "after", reterr);
	return rc;
}
