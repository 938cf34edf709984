/* SPDX-License-Identifier: MIT */
/* The registry of variants: a table per way of synchronising, made from variants.def. */
#include <string.h>

#include "allocator/variant.h"

#define X(id)                                                     \
	extern const struct alloc_variant alloc_variant_##id##_serial; \
	extern const struct alloc_variant alloc_variant_##id##_native; \
	extern const struct alloc_variant alloc_variant_##id##_sim;
#include "allocator/variants.def"
#undef X

static const struct alloc_variant *const tables[ALLOC_SYNC_MAX][64] = {
	[ALLOC_SYNC_SERIAL] = {
#define X(id) &alloc_variant_##id##_serial,
#include "allocator/variants.def"
#undef X
	},
	[ALLOC_SYNC_NATIVE] = {
#define X(id) &alloc_variant_##id##_native,
#include "allocator/variants.def"
#undef X
	},
	[ALLOC_SYNC_SIM] = {
#define X(id) &alloc_variant_##id##_sim,
#include "allocator/variants.def"
#undef X
	},
};

/* What "slub" alone means: the newest SLUB in the registry. */
static const char *const newest_slub[] = { "slub-7.2", "slub-6.12", "slub-6.1" };

const struct alloc_variant *alloc_variant_at(uint32_t i, enum alloc_sync_kind sync)
{
	return i < sizeof(tables[0]) / sizeof(tables[0][0]) ? tables[sync][i] : NULL;
}

const struct alloc_variant *alloc_variant_find(const char *name, enum alloc_sync_kind sync)
{
	const struct alloc_variant *v;

	if (!strcmp(name, "slub")) {
		for (size_t n = 0; n < sizeof(newest_slub) / sizeof(*newest_slub); n++)
			if ((v = alloc_variant_find(newest_slub[n], sync)))
				return v;
	}
	for (uint32_t i = 0; (v = alloc_variant_at(i, sync)); i++)
		if (!strcmp(v->name, name))
			return v;
	return NULL;
}
