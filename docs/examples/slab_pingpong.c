/* SPDX-License-Identifier: MIT */
/*
 * Objects allocated on CPU 0 and freed on CPU 1: the pattern that keeps a cpu slab from being
 * refilled by its owner.  Prints what the variant counted.
 *
 *	cc slab_pingpong.c $(pkg-config --cflags --libs slab) -o slab_pingpong
 *	./slab_pingpong slub-6.1
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <slabtape/slab.h>

static void print_counter(void *ctx, uint32_t cpu, const char *name, int64_t value)
{
	(void)ctx;
	if (value)
		printf("cpu%" PRIu32 " %s %" PRId64 "\n", cpu, name, value);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "slub";
	const struct alloc_variant *v = alloc_variant_find(name, ALLOC_SYNC_NATIVE);
	const uint16_t cpu_node[2] = { 0, 0 };
	const struct alloc_machine_config machine = { .cpus = 2, .nodes = 1, .cpu_node = cpu_node,
						      .sync = ALLOC_SYNC_NATIVE };
	const struct alloc_cache_config cache = { .name = "pingpong", .object_size = 256 };
	struct alloc_machine *m = NULL;
	struct alloc_cache *c;
	void *queue[64] = { 0 };

	if (!v || alloc_machine_create(&machine, &m) < 0 || v->create(m, &cache, &c) < 0) {
		fprintf(stderr, "slab_pingpong: cannot create %s\n", name);
		alloc_machine_destroy(m);
		return 1;
	}
	for (int i = 0; i < 10000; i++) {
		void **slot = &queue[i % 64];

		if (*slot)
			v->free(c, 1, *slot);
		*slot = v->alloc(c, 0, ALLOC_NODE_ANY, ALLOC_GFP_MAY_BLOCK);
	}
	alloc_read_counters(c, print_counter, NULL);
	v->destroy(c);
	printf("pages left %" PRIu64 "\n", alloc_machine_pages(m));
	alloc_machine_destroy(m);
	return 0;
}
