/* SPDX-License-Identifier: MIT */
#include "replay/paths.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "replay/ordered_internal.h"

struct path_sums { /* of one cache, as they were after its last operation */
	const struct ordered_cache *run;
	size_t nr;
	int64_t sums[REPLAY_COUNTERS_MAX];
	int64_t before[REPLAY_COUNTERS_MAX];
	char names[REPLAY_COUNTERS_MAX][40];
};

struct replay_paths {
	struct ordered *o;
	FILE *out;
	FILE *lines; /* memory stream */
	char *text;
	size_t text_bytes;
	char **path; /* [nr] texts of the P lines */
	uint32_t nr, capacity;
	uint32_t *table; /* [table_size] open addressing: path + 1 */
	uint32_t table_size;
	struct path_sums **sums; /* [nr_sums] */
	size_t nr_sums;
	bool failed;
};

struct replay_paths *replay_paths_create(struct ordered *o, FILE *out)
{
	struct replay_paths *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->o = o;
	p->out = out;
	p->table_size = 256;
	p->table = calloc(p->table_size, sizeof(*p->table));
	p->lines = open_memstream(&p->text, &p->text_bytes);
	if (!p->table || !p->lines) {
		replay_paths_destroy(p);
		return NULL;
	}
	return p;
}

void replay_paths_destroy(struct replay_paths *p)
{
	if (!p)
		return;
	if (p->lines)
		fclose(p->lines);
	free(p->text);
	for (uint32_t i = 0; i < p->nr; i++)
		free(p->path[i]);
	free(p->path);
	free(p->table);
	for (size_t i = 0; i < p->nr_sums; i++)
		free(p->sums[i]);
	free(p->sums);
	free(p);
}

static uint32_t hash_text(const char *text)
{
	uint32_t h = 2166136261u;

	while (*text)
		h = (h ^ (uint8_t)*text++) * 16777619u;
	return h;
}

static void table_insert(struct replay_paths *p, uint32_t path)
{
	uint32_t at = hash_text(p->path[path]) & (p->table_size - 1);

	while (p->table[at])
		at = (at + 1) & (p->table_size - 1);
	p->table[at] = path + 1;
}

static int paths_grow(struct replay_paths *p)
{
	uint32_t capacity = p->capacity ? p->capacity * 2 : 64;
	char **path = realloc(p->path, capacity * sizeof(*path));
	uint32_t *table;

	if (!path)
		return -ENOMEM;
	p->path = path;
	table = calloc(capacity * 4, sizeof(*table));
	if (!table)
		return -ENOMEM;
	free(p->table);
	p->table = table;
	p->table_size = capacity * 4;
	p->capacity = capacity;
	for (uint32_t i = 0; i < p->nr; i++)
		table_insert(p, i);
	return 0;
}

static uint32_t path_number(struct replay_paths *p, const char *text)
{
	uint32_t at = hash_text(text) & (p->table_size - 1);

	for (; p->table[at]; at = (at + 1) & (p->table_size - 1))
		if (!strcmp(p->path[p->table[at] - 1], text))
			return p->table[at] - 1;
	if ((p->nr == p->capacity && paths_grow(p) < 0) || !(p->path[p->nr] = strdup(text))) {
		p->failed = true;
		return 0;
	}
	table_insert(p, p->nr);
	return p->nr++;
}

/* Counters of @run before its first operation are those after its creation. */
static struct path_sums *sums_of(struct replay_paths *p, const struct ordered_cache *run)
{
	struct path_sums **grown, *s;

	for (size_t i = 0; i < p->nr_sums; i++)
		if (p->sums[i]->run == run)
			return p->sums[i];
	grown = realloc(p->sums, (p->nr_sums + 1) * sizeof(*grown));
	if (!grown || !(s = calloc(1, sizeof(*s)))) {
		p->sums = grown ? grown : p->sums;
		return NULL;
	}
	p->sums = grown;
	p->sums[p->nr_sums++] = s;
	s->run = run;
	for (; s->nr < run->initial.nr && s->nr < REPLAY_COUNTERS_MAX; s->nr++) {
		memcpy(s->names[s->nr], run->initial.counters[s->nr].name, sizeof(s->names[0]));
		s->sums[s->nr] = run->initial.counters[s->nr].sum;
	}
	return s;
}

/* "name+1,name-2" of what changed since the last call, "-" when nothing did. */
static void delta_text(struct replay_paths *p, struct path_sums *s, char *text, size_t bytes)
{
	size_t at = 0, old = s->nr;

	memcpy(s->before, s->sums, old * sizeof(*s->sums));
	s->nr = replay_counter_sums(s->run->cache, p->o->v, s->sums, s->names, old,
				    REPLAY_COUNTERS_MAX);
	memset(s->before + old, 0, (s->nr - old) * sizeof(*s->before));
	snprintf(text, bytes, "-");
	for (size_t i = 0; i < s->nr && at < bytes; i++)
		if (s->sums[i] != s->before[i])
			at += (size_t)snprintf(text + at, bytes - at, "%s%s%+" PRId64, at ? "," : "",
					       s->names[i], s->sums[i] - s->before[i]);
}

static void print_object(struct replay_paths *p, const struct ordered_cache *run, void *obj)
{
	struct alloc_slab_info info;
	struct alloc_slab *s;
	uint32_t index;

	if (!obj) {
		fputs(" fail", p->lines);
		return;
	}
	s = alloc_slab_of(p->o->machine, obj, &index);
	if (!s) {
		fputs(" ?", p->lines);
		return;
	}
	alloc_slab_info(s, &info);
	fprintf(p->lines, " %u.%u", replay_number_of(&run->numbers, info.id), index);
}

void replay_paths_line(struct replay_paths *p, struct ordered_cache *run,
		       const struct replay_line *line)
{
	char text[4096] = "-";
	struct path_sums *s = run ? sums_of(p, run) : NULL;

	if (s)
		delta_text(p, s, text, sizeof(text));
	else if (run)
		p->failed = true;
	fprintf(p->lines, "%u", path_number(p, text));
	if (line->kind == REPLAY_LINE_ALLOC_BULK)
		fprintf(p->lines, " %u", line->nr);
	for (uint32_t i = 0; i < line->nr; i++)
		print_object(p, run, line->objs[i]);
	if (line->kind == REPLAY_LINE_CODE)
		fprintf(p->lines, " %d", line->code);
	if (run && !p->o->plan->script)
		fprintf(p->lines, " @%s", run->plan->row.name);
	fputc('\n', p->lines);
}

int replay_paths_write(struct replay_paths *p)
{
	bool bad = fflush(p->lines) != 0;

	if (p->failed || bad)
		return tape_err_set(p->o->reterr, -ENOMEM, "--paths: out of memory");
	fputs("# paths: number, then the counters this one operation added (summed over cpus)\n",
	      p->out);
	for (uint32_t i = 0; i < p->nr; i++)
		fprintf(p->out, "P %u %s\n", i, p->path[i]);
	fputs("# one line per operation of the .ops file, in order: a n: path slab.index | f and "
	      "others: path | A: path count slab.index ...\n", p->out);
	fwrite(p->text, 1, p->text_bytes, p->out);
	if (fflush(p->out) || ferror(p->out))
		return tape_err_set(p->o->reterr, -TAPE_E_IO, "--paths: %s", strerror(errno));
	return 0;
}
