/* SPDX-License-Identifier: MIT */
#include "replay/sim_lines.h"

#include <errno.h>
#include <stdlib.h>

#define REGIONS_AT_FIRST 64u /* a power of two */
#define LINES_PER_REGION (1u << (SIM_REGION_SHIFT - SIM_LINE_SHIFT))

int sim_lines_init(struct sim_lines *t)
{
	*t = (struct sim_lines){ .mask = REGIONS_AT_FIRST - 1 };
	t->regions = calloc(REGIONS_AT_FIRST, sizeof(*t->regions));
	return t->regions ? 0 : -ENOMEM;
}

void sim_lines_fini(struct sim_lines *t)
{
	for (uint64_t i = 0; t->regions && i <= t->mask; i++)
		free(t->regions[i].owners);
	free(t->regions);
	*t = (struct sim_lines){ 0 };
}

static struct sim_region *find(const struct sim_lines *t, uint64_t number)
{
	uint64_t i = sim_region_hash(number);

	while (t->regions[i & t->mask].number && t->regions[i & t->mask].number != number)
		i++;
	return &t->regions[i & t->mask];
}

static void grow(struct sim_lines *t)
{
	struct sim_lines bigger = { .mask = t->mask * 2 + 1, .used = t->used };

	bigger.regions = calloc(bigger.mask + 1, sizeof(*bigger.regions));
	if (!bigger.regions)
		abort();
	for (uint64_t i = 0; i <= t->mask; i++)
		if (t->regions[i].number)
			*find(&bigger, t->regions[i].number) = t->regions[i];
	free(t->regions);
	*t = bigger;
}

uint16_t *sim_lines_region(struct sim_lines *t, uint64_t number)
{
	struct sim_region *r = find(t, number);

	if (r->number)
		return r->owners;
	if (t->used * 2 > t->mask) {
		grow(t);
		r = find(t, number);
	}
	r->owners = calloc(LINES_PER_REGION, sizeof(*r->owners));
	if (!r->owners)
		abort();
	t->used++;
	r->number = number;
	return r->owners;
}
