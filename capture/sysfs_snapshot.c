/* SPDX-License-Identifier: MIT */
#include "capture/sysfs_snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "capture/input.h"
#include "capture/map64.h"

struct builder {
	struct snapshot *s;
	size_t values_capacity, parts_capacity;
	const char *path;
	uint64_t line;
	struct tape_err *reterr;
};

static int no_memory(struct builder *b)
{
	return tape_err_set(b->reterr, -ENOMEM, "out of memory");
}

static uint64_t key_of(uint32_t cache, uint32_t file)
{
	return UINT64_C(1) << 63 | (uint64_t)cache << 24 | file;
}

static int add_part(struct builder *b, const struct snapshot_part *part)
{
	struct snapshot *s = b->s;

	if (s->parts_nr == b->parts_capacity) {
		size_t capacity = b->parts_capacity ? b->parts_capacity * 2 : 4096;
		struct snapshot_part *grown = realloc(s->parts, capacity * sizeof(*grown));

		if (!grown)
			return no_memory(b);
		s->parts = grown;
		b->parts_capacity = capacity;
	}
	s->parts[s->parts_nr++] = *part;
	return 0;
}

static int add_value(struct builder *b, const struct snapshot_value *value)
{
	struct snapshot *s = b->s;
	uint64_t *slot;
	bool is_new;

	if (s->values_nr == b->values_capacity) {
		size_t capacity = b->values_capacity ? b->values_capacity * 2 : 4096;
		struct snapshot_value *grown = realloc(s->values, capacity * sizeof(*grown));

		if (!grown)
			return no_memory(b);
		s->values = grown;
		b->values_capacity = capacity;
	}
	slot = map64_at(s->index, key_of(value->cache, value->file), &is_new);
	if (!slot)
		return no_memory(b);
	s->values[s->values_nr++] = *value;
	*slot = s->values_nr;
	return 0;
}

/* " C3=17" or " N0=4" at *@at; false when it is something else. */
static bool take_part(const char **at, struct snapshot_part *part)
{
	const char *p = *at;
	char *end;
	unsigned long number;

	p += strspn(p, " ");
	if ((*p != 'C' && *p != 'N') || p[1] < '0' || p[1] > '9')
		return false;
	part->kind = *p;
	number = strtoul(p + 1, &end, 10);
	if (number > UINT16_MAX || *end != '=')
		return false;
	part->number = (uint16_t)number;
	p = end + 1;
	part->value = strtoll(p, &end, 10);
	if (end == p)
		return false;
	*at = end + strcspn(end, " ");
	return true;
}

/* A number, also with something in brackets behind it: "8(1)". */
static bool parse_value(const char *text, int64_t *ret, const char **ret_rest)
{
	char *end;

	*ret = strtoll(text, &end, 10);
	*ret_rest = end + strcspn(end, " ");
	return end != text && (!*end || *end == ' ' || *end == '(');
}

static int read_line(struct builder *b, char *line)
{
	char *slash = strchr(line, '/'), *colon = slash ? strchr(slash, ':') : NULL;
	struct snapshot_value value = { 0 };
	const char *rest;
	struct snapshot_part part;
	bool is_new;
	int rc;

	if (!slash || !colon || slash == line || colon == slash + 1)
		return tape_err_set(b->reterr, -TAPE_E_FORMAT,
				    "%s:%llu: \"cache/file:value\" expected", b->path,
				    (unsigned long long)b->line);
	if (intern_get(&b->s->caches, line, (size_t)(slash - line), &value.cache, &is_new) < 0 ||
	    intern_get(&b->s->files, slash + 1, (size_t)(colon - slash - 1), &value.file,
		       &is_new) < 0)
		return no_memory(b);
	value.numeric = parse_value(colon + 1, &value.value, &rest);
	value.first_part = (uint32_t)b->s->parts_nr;
	while (value.numeric && take_part(&rest, &part)) {
		rc = add_part(b, &part);
		if (rc < 0)
			return rc;
		value.parts_nr++;
	}
	return add_value(b, &value);
}

/*
 * A line of slabinfo 2.x: name active_objs num_objs objsize objperslab pagesperslab : ... :
 * slabdata active_slabs num_slabs sharedavail.  SLUB's objsize is what sysfs calls slab_size.
 */
static int read_slabinfo_line(struct builder *b, const char *line)
{
	static const char *const files[] = { "objects", "total_objects", "slab_size",
					     "objs_per_slab", "order", "slabs" };
	long long n[6] = { 0 };
	char name[64];
	int rc = 0;

	if (*line == '#')
		return 0;
	if (sscanf(line, "%63s %lld %lld %lld %lld %lld : tunables %*d %*d %*d : slabdata %*d %lld",
		   name, &n[0], &n[1], &n[2], &n[3], &n[4], &n[5]) != 7 ||
	    n[4] <= 0)
		return tape_err_set(b->reterr, -TAPE_E_FORMAT, "%s:%llu: no line of slabinfo 2.x",
				    b->path, (unsigned long long)b->line);
	n[4] = 63 - __builtin_clzll((unsigned long long)n[4]);
	for (size_t i = 0; rc >= 0 && i < sizeof(files) / sizeof(files[0]); i++) {
		struct snapshot_value value = { .numeric = true, .value = n[i] };
		bool is_new;

		if (intern_get(&b->s->caches, name, strlen(name), &value.cache, &is_new) < 0 ||
		    intern_get(&b->s->files, files[i], strlen(files[i]), &value.file, &is_new) < 0)
			return no_memory(b);
		rc = add_value(b, &value);
	}
	return rc;
}

static void destroyp(struct snapshot **s)
{
	snapshot_destroy(*s);
}

int snapshot_read(const char *path, struct snapshot **ret_s, struct tape_err *reterr)
{
	TAPE_CLEANUP(destroyp) struct snapshot *s = calloc(1, sizeof(*s));
	TAPE_CLEANUP(capture_input_closep) struct capture_input *in = NULL;
	struct builder b = { .s = s, .path = path, .reterr = reterr };
	bool slabinfo = false;
	char *line;
	size_t len;
	int rc;

	if (!s || !(s->index = calloc(1, sizeof(*s->index))))
		return no_memory(&b);
	rc = capture_input_open(path, &in, reterr);
	while (rc >= 0 && (rc = capture_input_line(in, &line, &len, reterr)) > 0) {
		b.line = capture_input_lineno(in);
		if (capture_input_offset(in) > SNAPSHOT_BYTES_MAX)
			rc = tape_err_set(reterr, -TAPE_E_LIMIT, "%s: larger than %u bytes", path,
					  SNAPSHOT_BYTES_MAX);
		else if (b.line == 1 && !strncmp(line, "slabinfo - version: 2.", 22))
			slabinfo = true;
		else if (*line)
			rc = slabinfo ? read_slabinfo_line(&b, line) : read_line(&b, line);
	}
	if (rc < 0)
		return rc;
	if (!s->values_nr)
		return tape_err_set(reterr, -TAPE_E_TRUNCATED, "%s: the snapshot is empty", path);
	*ret_s = tape_steal(&s);
	return 0;
}

void snapshot_destroy(struct snapshot *s)
{
	if (!s)
		return;
	intern_fini(&s->caches);
	intern_fini(&s->files);
	if (s->index)
		map64_fini(s->index);
	free(s->index);
	free(s->values);
	free(s->parts);
	free(s);
}

const struct snapshot_value *snapshot_at(const struct snapshot *s, uint32_t cache, uint32_t file)
{
	uint64_t *at = map64_find(s->index, key_of(cache, file));

	return at ? &s->values[*at - 1] : NULL;
}

static const struct snapshot_value *find_value(const struct snapshot *s, const char *cache,
					       const char *file)
{
	uint32_t c = intern_find(&s->caches, cache, strlen(cache));
	uint32_t f = intern_find(&s->files, file, strlen(file));

	return c == UINT32_MAX || f == UINT32_MAX ? NULL : snapshot_at(s, c, f);
}

bool snapshot_has(const struct snapshot *s, const char *cache, const char *file)
{
	return find_value(s, cache, file) != NULL;
}

int64_t snapshot_number(const struct snapshot *s, const char *cache, const char *file,
			int64_t fallback)
{
	const struct snapshot_value *v = find_value(s, cache, file);

	return v && v->numeric ? v->value : fallback;
}
