/* SPDX-License-Identifier: MIT */
#include "capture/heap_sites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/tape.h"

#define OFFSET_MASK ((UINT64_C(1) << 48) - 1)

static int no_memory(struct tape_err *reterr)
{
	return tape_err_set(reterr, -ENOMEM, "out of memory");
}

void heap_sites_init(struct heap_sites *s, struct tape *t)
{
	memset(s, 0, sizeof(*s));
	s->t = t;
	s->next_site = 1;
}

void heap_sites_fini(struct heap_sites *s)
{
	intern_fini(&s->modules);
	map64_fini(&s->sites);
}

void heap_image_destroy(struct heap_image *image)
{
	if (!image)
		return;
	free(image->mappings);
	map64_fini(&image->known);
	free(image);
}

int heap_sites_map(struct heap_sites *s, struct heap_image *image, uint64_t base, uint64_t bytes,
		   const char *path, struct tape_err *reterr)
{
	struct heap_mapping *m;
	bool is_new;

	m = realloc(image->mappings, (image->nr + 1) * sizeof(*m));
	if (!m)
		return no_memory(reterr);
	image->mappings = m;
	m += image->nr;
	m->base = base;
	m->end = base + bytes;
	if (intern_get(&s->modules, path, strlen(path), &m->module, &is_new) < 0)
		return no_memory(reterr);
	image->nr++;
	/* Addresses looked up before may lie in it. */
	map64_fini(&image->known);
	memset(&image->known, 0, sizeof(image->known));
	return 0;
}

/* The mapping with the highest base at or below @ip; the later one when two are equal. */
static const struct heap_mapping *mapping_of(const struct heap_image *image, uint64_t ip)
{
	const struct heap_mapping *best = NULL;

	for (uint32_t i = 0; i < image->nr; i++) {
		const struct heap_mapping *m = &image->mappings[i];

		if (ip >= m->base && ip < m->end && (!best || m->base >= best->base))
			best = m;
	}
	return best;
}

static int define_site(struct heap_sites *s, const struct heap_mapping *m, uint64_t ip,
		       uint32_t *ret_site, struct tape_err *reterr)
{
	uint64_t offset = m ? ip - m->base : 0;
	uint64_t key = m ? (uint64_t)(m->module + 1) << 48 | (offset & OFFSET_MASK) : ip;
	bool is_new;
	uint64_t *site = map64_at(&s->sites, key, &is_new);

	if (!site)
		return no_memory(reterr);
	*ret_site = is_new ? s->next_site : (uint32_t)*site;
	if (!is_new)
		return 0;
	*site = s->next_site++;
	return tape_define_site(s->t, *ret_site, ip, NULL,
				m ? s->modules.texts[m->module].text : NULL, offset, reterr);
}

int heap_sites_find(struct heap_sites *s, struct heap_image *image, uint64_t ip, uint32_t *ret_site,
		    struct tape_err *reterr)
{
	uint64_t *known;
	bool is_new;
	int rc;

	*ret_site = 0;
	if (!ip)
		return 0;
	known = map64_at(&image->known, ip, &is_new);
	if (!known)
		return no_memory(reterr);
	if (is_new) {
		rc = define_site(s, mapping_of(image, ip), ip, ret_site, reterr);
		if (rc < 0)
			return rc;
		*known = *ret_site;
	}
	*ret_site = (uint32_t)*known;
	return 0;
}
