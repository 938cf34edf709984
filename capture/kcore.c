/* SPDX-License-Identifier: MIT */
#include "capture/kcore.h"

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "capture/input.h"

#define HEAD_BYTES 4096u

/*
 * Memory segments have both addresses; text, modules and vmalloc have physical address 0 or -1.
 * Segments of memory agree on the difference, so the first one decides.
 */
static uint64_t base_in(const uint8_t *head, size_t len)
{
	Elf64_Ehdr e;
	Elf64_Phdr p;

	if (len < sizeof(e))
		return 0;
	memcpy(&e, head, sizeof(e));
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) || e.e_ident[EI_CLASS] != ELFCLASS64 ||
	    e.e_phentsize != sizeof(p))
		return 0;
	for (unsigned int i = 0; i < e.e_phnum; i++) {
		uint64_t at = e.e_phoff + (uint64_t)i * sizeof(p);

		if (at > len || len - at < sizeof(p))
			break;
		memcpy(&p, head + at, sizeof(p));
		/* The kernel's text is mapped once more, at the top of the address space. */
		if (p.p_type == PT_LOAD && p.p_paddr && p.p_paddr != UINT64_MAX &&
		    p.p_vaddr < UINT64_C(0xffffffff80000000) && p.p_vaddr > p.p_paddr)
			return p.p_vaddr - p.p_paddr;
	}
	return 0;
}

uint64_t kcore_direct_map(const char *path)
{
	TAPE_CLEANUP(capture_input_closep) struct capture_input *in = NULL;
	const char *head;
	int n = capture_input_open(path, &in, NULL);

	if (n >= 0)
		n = capture_input_peek(in, HEAD_BYTES, &head, NULL);
	return n <= 0 ? 0 : base_in((const uint8_t *)head, (size_t)n);
}
