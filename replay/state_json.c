/* SPDX-License-Identifier: MIT */
#include "replay/state_json.h"

#include <jansson.h>
#include <string.h>

#include "allocator/dump.h"

#define DEPTH_MAX 16

struct receiver {
	struct alloc_dump dump;
	struct replay_numbering *n;
	json_t *stack[DEPTH_MAX]; /* borrowed except [0] */
	int depth;
	bool failed;
};

/* Takes over @value. */
static void put(struct receiver *r, const char *key, json_t *value)
{
	json_t *top = r->stack[r->depth];

	if (!value || (key ? json_object_set_new(top, key, value) :
			     json_array_append_new(top, value)))
		r->failed = true;
}

static void push(struct receiver *r, const char *key, json_t *value)
{
	if (r->depth + 1 == DEPTH_MAX) {
		json_decref(value);
		r->failed = true;
		return;
	}
	put(r, key, value);
	r->stack[++r->depth] = value;
}

static void on_object_begin(void *ctx, const char *key)
{
	push(ctx, key, json_object());
}

static void on_array_begin(void *ctx, const char *key)
{
	push(ctx, key, json_array());
}

static void on_end(void *ctx)
{
	struct receiver *r = ctx;

	if (r->depth)
		r->depth--;
}

static void on_number(void *ctx, const char *key, int64_t value)
{
	put(ctx, key, json_integer(value));
}

static void on_string(void *ctx, const char *key, const char *text)
{
	put(ctx, key, json_string(text));
}

static uint32_t number_of(struct receiver *r, const struct alloc_slab *s)
{
	struct alloc_slab_info info;

	alloc_slab_info(s, &info);
	return replay_number_of(r->n, info.id);
}

static int64_t on_slab_number(void *ctx, const struct alloc_slab *s)
{
	struct receiver *r = ctx;
	uint32_t number = number_of(r, s);

	if (number == REPLAY_NO_NUMBER)
		return -1;
	r->n->mentioned[number] = true;
	return number;
}

static void on_slab(void *ctx, const char *key, const struct alloc_slab *s)
{
	int64_t number = on_slab_number(ctx, s);

	put(ctx, key, number < 0 ? json_null() : json_integer(number));
}

static void on_object(void *ctx, const char *key, const struct alloc_slab *s, uint32_t index)
{
	struct receiver *r = ctx;
	uint32_t number = number_of(r, s);
	char text[32];

	if (number == REPLAY_NO_NUMBER)
		snprintf(text, sizeof(text), "?.%u", index);
	else
		snprintf(text, sizeof(text), "%u.%u", number, index);
	put(r, key, json_string(text));
}

static const struct alloc_dump callbacks = {
	.object_begin = on_object_begin, .array_begin = on_array_begin, .end = on_end,
	.number = on_number, .string = on_string, .slab = on_slab, .object = on_object,
	.slab_number = on_slab_number,
};

static void put_full(struct receiver *r)
{
	const struct replay_numbering *n = r->n;
	json_t *full = json_array();

	for (uint32_t i = 0; i < n->numbered; i++)
		if (!n->dead[i] && !n->mentioned[i] &&
		    json_array_append_new(full, json_integer(i)))
			r->failed = true;
	if (json_array_size(full))
		put(r, "full", full);
	else
		json_decref(full);
}

json_t *replay_state_json(const struct alloc_variant *v, const struct alloc_cache *c,
			  struct replay_numbering *n, bool full)
{
	struct receiver r = { .dump = callbacks, .n = n, .stack = { json_object() } };

	if (!r.stack[0])
		return NULL;
	r.dump.ctx = &r;
	if (n->numbered)
		memset(n->mentioned, 0, n->numbered * sizeof(*n->mentioned));
	if (v->dump)
		v->dump(c, &r.dump, full);
	r.depth = 0;
	if (!json_object_get(r.stack[0], "live_slabs")) {
		if (full)
			put_full(&r);
		if (full || json_object_get(r.stack[0], "extra"))
			put(&r, "live_slabs", json_integer(replay_numbers_live(n)));
	}
	if (r.failed) {
		json_decref(r.stack[0]);
		return NULL;
	}
	return r.stack[0];
}

json_t *replay_per_cpu_json(const struct replay_counter *counters, size_t nr, uint32_t cpus,
			    bool idle)
{
	json_t *all = json_object();
	char key[16];

	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		json_t *one = json_object();

		for (size_t i = 0; i < nr; i++)
			if (counters[i].per_cpu[cpu])
				json_object_set_new(one, counters[i].name,
						    json_integer(counters[i].per_cpu[cpu]));
		snprintf(key, sizeof(key), "%u", cpu);
		if (idle || json_object_size(one))
			json_object_set_new(all, key, one);
		else
			json_decref(one);
	}
	return all;
}

json_t *replay_sums_json(const struct replay_counter *counters, size_t nr, bool nonzero)
{
	json_t *all = json_object();

	for (size_t i = 0; i < nr; i++)
		if (!nonzero || counters[i].sum)
			json_object_set_new(all, counters[i].name, json_integer(counters[i].sum));
	return all;
}
