/* SPDX-License-Identifier: MIT */
#include "traces/freeset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Words of level @l when the set holds numbers below 64^levels. */
static uint64_t level_words(uint32_t levels, uint32_t l)
{
	return UINT64_C(1) << (6 * (levels - 1 - l));
}

static uint32_t levels_for(uint64_t capacity)
{
	uint32_t levels = 1;

	while (levels < TAPE_FREESET_LEVELS && UINT64_C(1) << (6 * levels) < capacity)
		levels++;
	return levels;
}

int tape_freeset_init(struct tape_freeset *s, uint64_t capacity)
{
	memset(s, 0, sizeof(*s));
	return tape_freeset_grow(s, capacity);
}

void tape_freeset_fini(struct tape_freeset *s)
{
	for (uint32_t l = 0; l < TAPE_FREESET_LEVELS; l++)
		free(s->level[l]);
	memset(s, 0, sizeof(*s));
}

int tape_freeset_grow(struct tape_freeset *s, uint64_t capacity)
{
	uint32_t levels = levels_for(capacity);
	uint64_t *fresh[TAPE_FREESET_LEVELS] = { NULL };

	if (levels <= s->levels_max)
		return 0;
	for (uint32_t l = 0; l < levels; l++) {
		/* calloc'ed, so words never touched cost address space only */
		fresh[l] = calloc(level_words(levels, l), sizeof(uint64_t));
		if (!fresh[l]) {
			while (l-- > 0)
				free(fresh[l]);
			return -ENOMEM;
		}
	}
	for (uint32_t l = 0; l < s->levels_max; l++)
		memcpy(fresh[l], s->level[l], sizeof(uint64_t) * level_words(s->levels_max, l));
	for (uint32_t l = 0; l < levels; l++) {
		free(s->level[l]);
		s->level[l] = fresh[l];
	}
	s->levels = s->levels ? s->levels : 1;
	s->levels_max = levels;
	s->capacity = UINT64_C(1) << (6 * levels);
	return 0;
}
