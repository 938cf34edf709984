/* SPDX-License-Identifier: MIT */
/* Names: caches, guesses for those no event names, sites, threads. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/ingest_internal.h"

/* Values of ing->pages: cache | mixed << 16 | last named time in us << 17. */
#define PAGE_MIXED (UINT64_C(1) << 16)
#define PAGE_TIME_SHIFT 17

static int no_memory(struct tape_err *reterr)
{
	return tape_err_set(reterr, -ENOMEM, "out of memory");
}

static int caches_grow(struct ingest *ing, uint32_t nr, struct tape_err *reterr)
{
	uint32_t capacity = ing->caches_capacity ? ing->caches_capacity : 64;
	struct ingest_cache *grown;

	if (nr > TAPE_CACHE_MAX)
		return tape_err_set(reterr, -TAPE_E_LIMIT, "more than %d caches", TAPE_CACHE_MAX);
	while (capacity < nr)
		capacity *= 2;
	if (capacity != ing->caches_capacity) {
		grown = realloc(ing->caches, capacity * sizeof(*grown));
		if (!grown)
			return no_memory(reterr);
		ing->caches = grown;
		ing->caches_capacity = capacity;
	}
	while (ing->caches_nr < nr) {
		struct ingest_cache *c = &ing->caches[ing->caches_nr];

		memset(c, 0, sizeof(*c));
		c->row.id = (uint16_t)ing->caches_nr++;
		c->row.coverage = 1;
		c->orphans_max = UINT64_MAX;
	}
	return 0;
}

static bool is_kmalloc_name(const char *name)
{
	return !strncmp(name, "kmalloc-", 8) || !strncmp(name, "dma-kmalloc-", 12);
}

int ingest_cache_id(struct ingest *ing, const char *name, size_t len, uint16_t *ret_cache,
		    struct tape_err *reterr)
{
	struct ingest_cache *c;
	uint32_t nr;
	bool is_new;
	int rc;

	if (intern_get(&ing->names, name, len, &nr, &is_new) < 0)
		return no_memory(reterr);
	if (is_new) {
		rc = caches_grow(ing, nr + 2, reterr); /* cache 0 is "unknown" */
		if (rc < 0)
			return rc;
		c = &ing->caches[nr + 1];
		snprintf(c->row.name, sizeof(c->row.name), "%.*s", (int)len, name);
		if (is_kmalloc_name(c->row.name))
			c->row.flags = TAPE_CACHE_KMALLOC;
		rc = tape_define_cache(ing->t, &c->row, reterr);
		if (rc < 0)
			return rc;
	}
	*ret_cache = (uint16_t)(nr + 1);
	return 0;
}

static const uint32_t class_bytes[] = { 8,   16,  32,	64,   96,   128, 192,
					256, 512, 1024, 2048, 4096, 8192 };
#define CLASSES_NR (sizeof(class_bytes) / sizeof(class_bytes[0]))

/* Class that serves @raw: the one of exactly bytes_alloc, else the smallest that fits. */
static size_t class_of(const struct capture_raw *raw)
{
	size_t i;

	for (i = 0; i < CLASSES_NR; i++)
		if (class_bytes[i] == raw->bytes_alloc)
			return i;
	for (i = 0; i < CLASSES_NR && class_bytes[i] < raw->bytes_req; i++)
		;
	return i;
}

/* Source of the order: Linux v6.1 include/linux/slab.h kmalloc_type(). */
static int class_kind(const struct capture_raw *raw, const char **ret_prefix)
{
	static const char *const prefixes[] = { "kmalloc-", "kmalloc-rcl-", "kmalloc-cg-",
						"dma-kmalloc-" };
	int kind = 0;

	if (raw->gfp & TAPE_GFP_DMA)
		kind = 3;
	else if (raw->gfp & TAPE_GFP_RECLAIMABLE)
		kind = 1;
	else if (raw->accounted)
		kind = 2;
	*ret_prefix = prefixes[kind];
	return kind;
}

int ingest_kmalloc_cache(struct ingest *ing, const struct capture_raw *raw, uint16_t *ret_cache,
			 struct tape_err *reterr)
{
	const char *prefix;
	int kind = class_kind(raw, &prefix), rc;
	size_t class_nr = class_of(raw);
	uint16_t *known;
	char name[32];

	if (class_nr == CLASSES_NR || raw->bytes_alloc > INGEST_KMALLOC_MAX) {
		*ret_cache = TAPE_NO_CACHE;
		return 0;
	}
	known = &ing->class_cache[kind][class_nr];
	if (!*known) {
		uint32_t bytes = class_bytes[class_nr];

		snprintf(name, sizeof(name), bytes < 1024 ? "%s%u" : "%s%uk", prefix,
			 bytes < 1024 ? bytes : bytes / 1024);
		rc = ingest_cache_id(ing, name, strlen(name), known, reterr);
		if (rc < 0)
			return rc;
		if (!ing->caches[*known].row.object_size)
			ing->caches[*known].row.object_size = bytes;
	}
	*ret_cache = *known;
	return 0;
}

int ingest_learn_page(struct ingest *ing, uint64_t address, uint16_t cache,
		      struct tape_err *reterr)
{
	uint64_t *at;
	bool is_new;

	/* Addresses below the upper half are hashed pointers: they have no neighbours. */
	if (!ing->needs_guesses || !(address >> 63))
		return 0;
	at = map64_at(&ing->pages, address >> INGEST_PAGE_SHIFT, &is_new);
	if (!at)
		return no_memory(reterr);
	if (!is_new && (*at & UINT16_MAX) != cache)
		*at |= PAGE_MIXED;
	*at = (*at & PAGE_MIXED) | cache | ing->last_ts / 1000 << PAGE_TIME_SHIFT;
	return 0;
}

static uint64_t site_key(const struct addrmap_entry *e)
{
	return (uint64_t)e->site << 32 | e->alloc_bytes;
}

int ingest_learn_site(struct ingest *ing, const struct addrmap_entry *e, uint16_t cache,
		      struct tape_err *reterr)
{
	uint64_t *at;
	bool is_new;

	if (!e->site || !e->alloc_bytes)
		return 0;
	at = map64_at(&ing->site_caches, site_key(e), &is_new);
	if (!at)
		return no_memory(reterr);
	if (is_new)
		*at = cache;
	else if (*at != cache)
		*at = INGEST_GUESS_MIXED;
	return 0;
}

void ingest_learn_size(struct ingest *ing, const struct addrmap_entry *e, uint16_t cache)
{
	struct ingest_cache *c = &ing->caches[cache];

	if (cache == TAPE_CACHE_UNKNOWN || cache == TAPE_NO_CACHE || c->alloc_bytes)
		return;
	c->alloc_bytes = e->alloc_bytes;
	if (!c->row.object_size)
		c->row.object_size = e->req_bytes;
}

uint16_t ingest_guess(const struct ingest *ing, const struct addrmap_entry *e)
{
	const uint64_t *at = e->site && e->alloc_bytes ? map64_find(&ing->site_caches, site_key(e))
						       : NULL;

	if (at && *at != INGEST_GUESS_MIXED)
		return (uint16_t)*at;
	at = map64_find(&ing->pages, e->address >> INGEST_PAGE_SHIFT);
	/* A neighbour named while the object lived shares its slab; older ones must all agree. */
	if (at && (!(*at & PAGE_MIXED) || *at >> PAGE_TIME_SHIFT > e->last_ts / 1000))
		return (uint16_t)*at;
	at = e->req_bytes ? map64_find(&ing->size_caches,
				       (uint64_t)e->req_bytes << 32 | e->alloc_bytes)
			  : NULL;
	return at && *at != INGEST_GUESS_MIXED ? (uint16_t)*at : TAPE_CACHE_UNKNOWN;
}

int ingest_learn_sizes(struct ingest *ing, uint16_t cache, uint64_t object_bytes,
		       uint64_t slab_bytes, struct tape_err *reterr)
{
	uint64_t *at;
	bool is_new;

	if (!object_bytes || object_bytes > UINT32_MAX || slab_bytes > UINT32_MAX)
		return 0;
	at = map64_at(&ing->size_caches, object_bytes << 32 | slab_bytes, &is_new);
	if (!at)
		return no_memory(reterr);
	*at = is_new || *at == cache ? cache : INGEST_GUESS_MIXED;
	return 0;
}

uint16_t ingest_guess_page(const struct ingest *ing, uint64_t address)
{
	const uint64_t *at = map64_find(&ing->pages, address >> INGEST_PAGE_SHIFT);

	return at && !(*at & PAGE_MIXED) ? (uint16_t)*at : TAPE_CACHE_UNKNOWN;
}

int ingest_rename(struct ingest *ing, struct addrmap_entry *e, uint16_t cache, bool guessed,
		  struct tape_err *reterr)
{
	ing->caches[TAPE_CACHE_UNKNOWN].traced--;
	ing->caches[cache].traced++;
	ing->stats->guessed += guessed;
	ingest_learn_size(ing, e, cache);
	e->cache = cache;
	if (!guessed)
		e->flags &= (uint16_t)~ADDRMAP_UNNAMED;
	return tape_writer_resolve(ing->t, e->alloc_seq, e->object, cache, guessed, reterr);
}

int ingest_site_by_address(struct ingest *ing, uint64_t address, uint32_t *ret_site,
			   bool *ret_new, struct tape_err *reterr)
{
	uint64_t *at;

	*ret_new = false;
	if (!address) {
		*ret_site = 0;
		return 0;
	}
	at = map64_at(&ing->sites, address, ret_new);
	if (!at)
		return no_memory(reterr);
	if (*ret_new)
		*at = ing->next_site++;
	*ret_site = (uint32_t)*at;
	return 0;
}

int ingest_site_define(struct ingest *ing, uint32_t site, const struct ingest_symbol *symbol,
		       struct tape_err *reterr)
{
	char name[256] = "", module[64] = "";

	if (symbol->symbol)
		snprintf(name, sizeof(name), "%.*s", (int)symbol->symbol_len, symbol->symbol);
	if (symbol->module)
		snprintf(module, sizeof(module), "%.*s", (int)symbol->module_len, symbol->module);
	return tape_define_site(ing->t, site, symbol->address, *name ? name : NULL,
				*module ? module : NULL, symbol->offset, reterr);
}

/* "name+0x10/0x20 [module]", "name+0x10" or "ffffffff81000000" */
static void parse_site(const char *text, size_t len, struct ingest_symbol *s)
{
	const char *end = text + len, *plus = memchr(text, '+', len);
	const char *bracket = memchr(text, '[', len);
	char number[32];
	size_t digits;

	memset(s, 0, sizeof(*s));
	if (bracket && end[-1] == ']') {
		s->module = bracket + 1;
		s->module_len = (uint32_t)(end - bracket - 2);
	}
	digits = (size_t)(end - (plus ? plus + 1 : text));
	digits = digits < sizeof(number) - 1 ? digits : sizeof(number) - 1;
	memcpy(number, plus ? plus + 1 : text, digits);
	number[digits] = '\0';
	if (plus) {
		s->symbol = text;
		s->symbol_len = (uint32_t)(plus - text);
		s->offset = strtoull(number, NULL, 16);
	} else if (number[strspn(number, "0123456789abcdefxABCDEF")] == '\0') {
		s->address = strtoull(number, NULL, 16);
	} else {
		s->symbol = text;
		s->symbol_len = (uint32_t)(memchr(text, ' ', len) ? (const char *)memchr(text, ' ', len) - text : (long)len);
	}
}

int ingest_site_by_text(struct ingest *ing, const char *text, size_t len, uint32_t *ret_site,
			struct tape_err *reterr)
{
	struct ingest_symbol symbol;
	const char *slash = memchr(text, '/', len);
	uint32_t nr;
	bool is_new;

	/* The function's length says nothing about the site. */
	if (slash && !memchr(text, '[', len))
		len = (size_t)(slash - text);
	if (!len) {
		*ret_site = 0;
		return 0;
	}
	if (intern_get(&ing->site_texts, text, len, &nr, &is_new) < 0)
		return no_memory(reterr);
	*ret_site = nr + 1;
	if (!is_new)
		return 0;
	parse_site(text, len, &symbol);
	return ingest_site_define(ing, nr + 1, &symbol, reterr);
}

int ingest_thread(struct ingest *ing, int32_t tid, const char *comm, size_t len,
		  struct tape_err *reterr)
{
	char name[64];
	uint64_t *at;
	bool is_new;

	at = map64_at(&ing->threads, (uint64_t)(uint32_t)tid + 1, &is_new);
	if (!at)
		return no_memory(reterr);
	if (!is_new)
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)len, comm);
	return tape_define_thread(ing->t, tid, 0, name, reterr);
}
