/* SPDX-License-Identifier: MIT */
/* A program that brings its own malloc: nothing it allocates can be seen from a preloaded library.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static _Alignas(16) char arena[1 << 20];
static size_t used;

void *malloc(size_t n)
{
	size_t at = used;

	used += (n + 15) & ~(size_t)15;
	return used <= sizeof(arena) ? arena + at : NULL;
}

void free(void *p)
{
	(void)p;
}

void *calloc(size_t a, size_t b)
{
	return malloc(a * b);
}

void *realloc(void *p, size_t n)
{
	return p ? NULL : malloc(n);
}

int main(void)
{
	char *p = malloc(100);

	printf("%d\n", p != NULL);
	free(p);
	return 0;
}
