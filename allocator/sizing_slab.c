/* SPDX-License-Identifier: MIT */
/* SLAB and SLQB sizing.  Orders are searched upwards from 0; see specification 10.1 and 11. */
#include "allocator/sizing_slab.h"

#include <assert.h>
#include <errno.h>

#include "allocator/slab.h"

#define CACHE_LINE_BYTES 64u
#define WORD_BYTES 8u
#define SLAB61_OBJECT_MIN_BYTES 16u /* so that one byte can number every object of a page */
#define SLAB61_OBJECTS_MAX 255u
#define SLAB2630_DESCRIPTOR_BYTES 48u
#define SLAB2630_LINK_BYTES 4u
#define SLAB2630_OFF_SLAB_BYTES 512u /* an eighth of a page */
#define SLQB_ORDER_MAX 1u

static uint64_t align_up(uint64_t value, uint32_t align)
{
	return (value + align - 1) & ~(uint64_t)(align - 1);
}

static uint64_t slab_bytes(uint32_t order)
{
	return (uint64_t)ALLOC_PAGE_BYTES << order;
}

/* Rule 1.2.4; 0 when @align is not a power of two. */
static uint32_t cache_align(uint32_t object_size, uint32_t align, uint32_t flags)
{
	uint32_t line = CACHE_LINE_BYTES;

	if (align & (align - 1))
		return 0;
	if (flags & ALLOC_F_HWCACHE_ALIGN) {
		while (object_size <= line / 2)
			line /= 2;
		align = align > line ? align : line;
	}
	return align > WORD_BYTES ? align : WORD_BYTES;
}

/* Sizes of the kmalloc caches of SLAB: from 32 bytes, with 96 and 192. */
static uint32_t slab_kmalloc_class(uint32_t bytes)
{
	uint32_t class_bytes = 32;

	if (bytes > 64 && bytes <= 96)
		return 96;
	if (bytes > 128 && bytes <= 192)
		return 192;
	while (class_bytes < bytes)
		class_bytes *= 2;
	return class_bytes;
}

/* One candidate order: objects and what is left over. */
struct fit {
	uint32_t order, objects, left_bytes;
};

/* Objects of one slab when the index needs @index_bytes per object inside it. */
static struct fit fit_order(uint32_t order, uint32_t size, uint32_t index_bytes)
{
	struct fit f = { .order = order };

	f.objects = (uint32_t)(slab_bytes(order) / (size + index_bytes));
	f.left_bytes = (uint32_t)(slab_bytes(order) - (uint64_t)f.objects * (size + index_bytes));
	return f;
}

/* Order search of 6.1 for one layout; objects == 0: none. */
static struct fit slab61_search(uint32_t max_order, uint32_t size, enum alloc_slab_layout layout)
{
	struct fit best = { 0 };

	for (uint32_t order = 0; order <= ALLOC_ORDER_MAX; order++) {
		struct fit f = fit_order(order, size, layout == ALLOC_SLAB_INDEX_ON_SLAB);

		if (!f.objects)
			continue;
		if (f.objects > SLAB61_OBJECTS_MAX)
			break;
		if (layout == ALLOC_SLAB_INDEX_OFF_SLAB &&
		    slab_kmalloc_class(f.objects) > size / 2)
			continue;
		best = f;
		if (order >= max_order || (uint64_t)f.left_bytes * 8 <= slab_bytes(order))
			break;
	}
	return best;
}

static bool slab61_layout_fits(const struct fit *f, enum alloc_slab_layout layout,
			       uint32_t object_size, uint32_t flags)
{
	if (!f->objects)
		return false;
	if (layout == ALLOC_SLAB_INDEX_IN_OBJECT)
		return !(flags & (ALLOC_F_CTOR | ALLOC_F_RCU)) && f->objects <= object_size;
	if (layout == ALLOC_SLAB_INDEX_OFF_SLAB)
		return f->left_bytes < f->objects;
	return true;
}

static void fill_shape(struct alloc_slab_shape *shape, const struct fit *f)
{
	shape->geo.order = shape->geo.min_order = f->order;
	shape->geo.objects = shape->geo.min_objects = f->objects;
	shape->colour_off_bytes = shape->geo.align > CACHE_LINE_BYTES ? shape->geo.align
								       : CACHE_LINE_BYTES;
	shape->colour = f->left_bytes / shape->colour_off_bytes;
}

int alloc_slab61_shape(uint32_t max_order, uint32_t object_size, uint32_t align, uint32_t flags,
		       struct alloc_slab_shape *ret_shape)
{
	uint64_t size = align_up(object_size, WORD_BYTES);
	struct alloc_slab_shape shape = { 0 };
	struct fit f;

	align = cache_align(object_size, align, flags);
	if (!align || !object_size)
		return -EINVAL;
	size = align_up(size < SLAB61_OBJECT_MIN_BYTES ? SLAB61_OBJECT_MIN_BYTES : size, align);
	if (size > slab_bytes(ALLOC_ORDER_MAX))
		return -EINVAL;
	shape.geo.object_size = object_size;
	shape.geo.size = (uint32_t)size;
	shape.geo.align = align;
	for (int l = ALLOC_SLAB_INDEX_IN_OBJECT; l <= ALLOC_SLAB_INDEX_ON_SLAB; l++) {
		shape.layout = (enum alloc_slab_layout)l;
		f = slab61_search(max_order, shape.geo.size, shape.layout);
		if (!slab61_layout_fits(&f, shape.layout, object_size, flags))
			continue;
		fill_shape(&shape, &f);
		shape.index_bytes = f.objects;
		*ret_shape = shape;
		return 0;
	}
	return -EINVAL;
}

static uint32_t slab2630_descriptor(uint32_t objects, uint32_t align)
{
	return (uint32_t)align_up(SLAB2630_DESCRIPTOR_BYTES + objects * SLAB2630_LINK_BYTES, align);
}

/* Objects of a slab that holds its own descriptor (rounded up to the alignment). */
static struct fit slab2630_fit_on_slab(uint32_t order, uint32_t size, uint32_t align)
{
	struct fit f = { .order = order };
	uint64_t bytes = slab_bytes(order), used;

	f.objects = (uint32_t)((bytes - SLAB2630_DESCRIPTOR_BYTES) / (size + SLAB2630_LINK_BYTES));
	used = slab2630_descriptor(f.objects, align) + (uint64_t)f.objects * size;
	if (f.objects && used > bytes) {
		f.objects--;
		used = slab2630_descriptor(f.objects, align) + (uint64_t)f.objects * size;
	}
	f.left_bytes = f.objects ? (uint32_t)(bytes - used) : 0;
	return f;
}

static struct fit slab2630_search(uint32_t max_order, uint32_t size, uint32_t align, bool off_slab)
{
	struct fit best = { 0 };

	for (uint32_t order = 0; order <= ALLOC_ORDER_MAX; order++) {
		struct fit f = off_slab ? fit_order(order, size, 0)
					: slab2630_fit_on_slab(order, size, align);

		if (!f.objects)
			continue;
		/* The descriptor must not be larger than an object of its own cache. */
		if (off_slab &&
		    f.objects > (size - SLAB2630_DESCRIPTOR_BYTES) / SLAB2630_LINK_BYTES)
			break;
		best = f;
		if (order >= max_order || (uint64_t)f.left_bytes * 8 <= slab_bytes(order))
			break;
	}
	return best;
}

int alloc_slab2630_shape(uint32_t max_order, uint32_t object_size, uint32_t align, uint32_t flags,
			 struct alloc_slab_shape *ret_shape)
{
	struct alloc_slab_shape shape = { .layout = ALLOC_SLAB_INDEX_ON_SLAB };
	uint64_t size;
	bool off_slab;
	struct fit f;

	align = cache_align(object_size, align, flags);
	if (!align || !object_size)
		return -EINVAL;
	size = align_up(align_up(object_size, WORD_BYTES), align);
	if (size > slab_bytes(ALLOC_ORDER_MAX))
		return -EINVAL;
	off_slab = size >= SLAB2630_OFF_SLAB_BYTES;
	f = slab2630_search(max_order, (uint32_t)size, align, off_slab);
	if (!f.objects)
		return -EINVAL;
	shape.geo.object_size = object_size;
	shape.geo.size = (uint32_t)size;
	shape.geo.align = align;
	shape.index_bytes = slab2630_descriptor(f.objects, align);
	if (off_slab && f.left_bytes >= shape.index_bytes) {
		f.left_bytes -= shape.index_bytes;
	} else if (off_slab) {
		shape.layout = ALLOC_SLAB_INDEX_OFF_SLAB;
		shape.index_bytes = slab2630_descriptor(f.objects, 1);
	}
	fill_shape(&shape, &f);
	*ret_shape = shape;
	return 0;
}

struct alloc_slab_tunables alloc_slab_tunables(uint32_t size, uint32_t cpus)
{
	struct alloc_slab_tunables t = { .limit = 120 };

	if (size > 131072)
		t.limit = 1;
	else if (size > ALLOC_PAGE_BYTES)
		t.limit = 8;
	else if (size > 1024)
		t.limit = 24;
	else if (size > 256)
		t.limit = 54;
	t.batchcount = (t.limit + 1) / 2;
	t.shared = size <= ALLOC_PAGE_BYTES && cpus > 1 ? 8 : 0;
	return t;
}

uint32_t alloc_slab_free_limit(uint32_t node_cpus, uint32_t batchcount, uint32_t objects)
{
	return (1 + node_cpus) * batchcount + objects;
}

int alloc_slqb_shape(uint32_t object_size, uint32_t align, uint32_t flags,
		     struct alloc_slab_shape *ret_shape)
{
	struct alloc_slab_shape shape = { .layout = ALLOC_SLAB_INDEX_IN_OBJECT };
	uint64_t size = align_up(object_size, WORD_BYTES);
	struct fit f;
	uint32_t order = 0;

	align = cache_align(object_size, align, flags);
	if (!align || !object_size)
		return -EINVAL;
	if (flags & (ALLOC_F_CTOR | ALLOC_F_RCU)) {
		shape.geo.offset = (uint32_t)size;
		size += WORD_BYTES;
	}
	size = align_up(size, align);
	while (order <= ALLOC_ORDER_MAX && slab_bytes(order) < size)
		order++;
	if (order > ALLOC_ORDER_MAX)
		return -EINVAL;
	f = fit_order(order, (uint32_t)size, 0);
	for (uint32_t o = order; o <= SLQB_ORDER_MAX; o++) {
		struct fit tried = fit_order(o, (uint32_t)size, 0);

		if ((uint64_t)tried.left_bytes * 4 <= slab_bytes(o)) {
			f = tried;
			break;
		}
	}
	shape.geo.object_size = object_size;
	shape.geo.size = (uint32_t)size;
	shape.geo.align = align;
	fill_shape(&shape, &f);
	assert(shape.geo.objects >= 1);
	*ret_shape = shape;
	return 0;
}

uint32_t alloc_slqb_freebatch(uint32_t size)
{
	uint32_t many = 4 * ALLOC_PAGE_BYTES / size, some = 64 * ALLOC_PAGE_BYTES / size;

	some = some < 256 ? some : 256;
	many = many > some ? many : some;
	return many ? many : 1;
}
