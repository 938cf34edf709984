/* SPDX-License-Identifier: MIT */
/* Memory that the dynamic linker holds for LTTng (lttng_writer_internal.h). */
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#include "capture/ust/lttng_writer_internal.h"

#define PLACES 8192u /* a power of two; what finds no place is recorded when it is freed */
#define REMOVED 1u

/* Sync: places atomic: 0 never used, REMOVED, or an address; the rest read-only after init. */
static struct {
	uintptr_t loader, loader_bytes; /* code of the dynamic linker */
	uintptr_t libc, libc_bytes;
	_Atomic uintptr_t places[PLACES];
} foreign;

static uintptr_t length(const struct dl_phdr_info *info)
{
	uintptr_t end = 0;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_vaddr + p->p_memsz > end)
			end = p->p_vaddr + p->p_memsz;
	}
	return end;
}

static int find(struct dl_phdr_info *info, size_t bytes, void *context)
{
	(void)bytes;
	(void)context;
	if (info->dlpi_addr == foreign.loader)
		foreign.loader_bytes = length(info);
	if (info->dlpi_name && strstr(info->dlpi_name, "/libc.so.")) {
		foreign.libc = info->dlpi_addr;
		foreign.libc_bytes = length(info);
	}
	return 0;
}

void foreign_init(void)
{
	foreign.loader = (uintptr_t)getauxval(AT_BASE);
	dl_iterate_phdr(find, NULL);
}

static bool is_loader(const void *ip)
{
	return (uintptr_t)ip - foreign.loader < foreign.loader_bytes;
}

static uint32_t place_of(uintptr_t address)
{
	return (uint32_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> 51) & (PLACES - 1);
}

void foreign_add(const void *address, const void *ip)
{
	uint32_t at = place_of((uintptr_t)address);

	if (!is_loader(ip))
		return;
	for (uint32_t i = 0; i < PLACES; i++, at = (at + 1) & (PLACES - 1)) {
		uintptr_t had = atomic_load_explicit(&foreign.places[at], memory_order_relaxed);

		/* Relaxed: whoever frees the memory was handed it by the linker's own locks. */
		if (had <= REMOVED && atomic_compare_exchange_strong_explicit(
					      &foreign.places[at], &had, (uintptr_t)address,
					      memory_order_relaxed, memory_order_relaxed))
			return;
	}
}

bool foreign_remove(const void *address, const void *ip)
{
	uint32_t at = place_of((uintptr_t)address);

	/* Stacks that are used again are cleaned by the C library. */
	if (!is_loader(ip) && (uintptr_t)ip - foreign.libc >= foreign.libc_bytes)
		return false;
	for (uint32_t i = 0; i < PLACES; i++, at = (at + 1) & (PLACES - 1)) {
		uintptr_t had = atomic_load_explicit(&foreign.places[at], memory_order_relaxed);

		if (!had)
			return false;
		if (had == (uintptr_t)address) {
			atomic_store_explicit(&foreign.places[at], REMOVED, memory_order_relaxed);
			return true;
		}
	}
	return false;
}
