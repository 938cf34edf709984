/* SPDX-License-Identifier: MIT */
#include "capture/record_check.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The linker's name for our own ELF header. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

#define SCRIPT_DEPTH_MAX 4

/* ---- finding ---- */

static int check_file(const char *path, char **ret_path, int *worst)
{
	struct stat st;

	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return -1;
	if (access(path, X_OK)) {
		*worst = EACCES;
		return -1;
	}
	*ret_path = strdup(path);
	return *ret_path ? 0 : -1;
}

int record_find_program(const char *name, char **ret_path, struct tape_err *reterr)
{
	const char *dirs = getenv("PATH");
	int worst = ENOENT;

	if (strchr(name, '/')) {
		if (!check_file(name, ret_path, &worst))
			return 0;
		return tape_err_set(reterr, -worst, "%s: %s", name, strerror(worst));
	}
	for (const char *p = dirs ? dirs : "/bin:/usr/bin"; *p;) {
		size_t len = strcspn(p, ":");
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%.*s%s%s", (int)len, p, len ? "/" : "", name);
		if (!check_file(path, ret_path, &worst))
			return 0;
		p += len + (p[len] == ':');
	}
	return tape_err_set(reterr, -worst, "%s: %s", name,
			    worst == ENOENT ? "not found in PATH" : strerror(worst));
}

/* ---- ELF ---- */

struct elf_file {
	const unsigned char *data;
	size_t bytes;
};

static int map_elf(const char *path, struct elf_file *ret_elf)
{
	TAPE_CLEANUP(tape_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st) || !st.st_size)
		return -1;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return -1;
	ret_elf->data = p;
	ret_elf->bytes = (size_t)st.st_size;
	return 0;
}

static void unmap_elf(const struct elf_file *e)
{
	munmap((void *)(uintptr_t)e->data, e->bytes);
}

static const void *at(const struct elf_file *e, uint64_t offset, uint64_t bytes)
{
	return offset <= e->bytes && bytes <= e->bytes - offset ? e->data + offset : NULL;
}

static const ElfW(Phdr) * segment(const struct elf_file *e, uint32_t type, uint32_t *from)
{
	const ElfW(Ehdr) *h = at(e, 0, sizeof(*h));

	for (uint32_t i = *from; h && i < h->e_phnum; i++) {
		const ElfW(Phdr) *p = at(e, h->e_phoff + (uint64_t)i * h->e_phentsize, sizeof(*p));

		if (p && p->p_type == type) {
			*from = i + 1;
			return p;
		}
	}
	return NULL;
}

static uint64_t file_offset(const struct elf_file *e, uint64_t vaddr)
{
	const ElfW(Phdr) * p;

	for (uint32_t i = 0; (p = segment(e, PT_LOAD, &i));)
		if (vaddr >= p->p_vaddr && vaddr < p->p_vaddr + p->p_filesz)
			return p->p_offset + (vaddr - p->p_vaddr);
	return UINT64_MAX;
}

/* Value of dynamic tag @tag, number @nth of its kind; 0 when there is none. */
static uint64_t dynamic(const struct elf_file *e, int64_t tag, uint32_t nth)
{
	uint32_t from = 0;
	const ElfW(Phdr) *p = segment(e, PT_DYNAMIC, &from);

	for (uint64_t i = 0; p && i < p->p_filesz / sizeof(ElfW(Dyn)); i++) {
		const ElfW(Dyn) *d = at(e, p->p_offset + i * sizeof(*d), sizeof(*d));

		if (!d || d->d_tag == DT_NULL)
			break;
		if (d->d_tag == tag && !nth--)
			return d->d_un.d_val;
	}
	return 0;
}

static const char *dynamic_text(const struct elf_file *e, uint64_t offset)
{
	uint64_t base = file_offset(e, dynamic(e, DT_STRTAB, 0));
	const char *text = base == UINT64_MAX ? NULL : at(e, base + offset, 1);

	return text && memchr(text, '\0',
			      e->bytes - (size_t)((const unsigned char *)text - e->data))
		       ? text
		       : "";
}

/* The dynamic symbol table names @name; *ret_defined: here. */
static bool has_symbol(const struct elf_file *e, const char *name, bool *ret_defined)
{
	uint64_t symtab = file_offset(e, dynamic(e, DT_SYMTAB, 0));
	uint64_t strtab = file_offset(e, dynamic(e, DT_STRTAB, 0));

	/* The string table follows the symbol table in every linker's output. */
	for (uint64_t o = symtab; o < strtab && strtab != UINT64_MAX; o += sizeof(ElfW(Sym))) {
		const ElfW(Sym) *s = at(e, o, sizeof(*s));

		if (s && s->st_name && !strcmp(dynamic_text(e, s->st_name), name)) {
			*ret_defined = s->st_shndx != SHN_UNDEF;
			return true;
		}
	}
	return false;
}

static const char *sanitizer_of(const struct elf_file *e)
{
	bool defined;

	for (uint32_t i = 0;; i++) {
		uint64_t needed = dynamic(e, DT_NEEDED, i);
		const char *name = needed ? dynamic_text(e, needed) : NULL;

		if (!name)
			break;
		if (!strncmp(name, "libasan.", 8) || !strncmp(name, "libclang_rt.asan", 16))
			return "AddressSanitizer";
		if (!strncmp(name, "libtsan.", 8))
			return "ThreadSanitizer";
	}
	if (has_symbol(e, "__asan_init", &defined))
		return "AddressSanitizer";
	return has_symbol(e, "__tsan_init", &defined) ? "ThreadSanitizer" : NULL;
}

static int check_elf(const char *path, const struct elf_file *e, struct tape_err *reterr)
{
	const ElfW(Ehdr) *self = &__ehdr_start, *h;
	const ElfW(Phdr) * interp;
	const char *sanitizer, *loader;
	uint32_t from = 0;

	h = at(e, 0, sizeof(*h));
	if (!h || h->e_ident[EI_CLASS] != self->e_ident[EI_CLASS] ||
	    h->e_machine != self->e_machine)
		return tape_err_set(reterr, -TAPE_E_TRACER,
				    "%s: is built for another machine; record "
				    "it with a slabtape of that machine",
				    path);
	interp = segment(e, PT_INTERP, &from);
	if (!interp)
		return tape_err_set(reterr, -TAPE_E_TRACER,
				    "%s: is statically linked, nothing can be "
				    "preloaded into it; link it dynamically",
				    path);
	loader = at(e, interp->p_offset, interp->p_filesz);
	if (loader && interp->p_filesz && !loader[interp->p_filesz - 1] && strstr(loader, "musl"))
		return tape_err_set(reterr, -TAPE_E_TRACER,
				    "%s: uses musl, the preloaded library "
				    "needs glibc",
				    path);
	sanitizer = sanitizer_of(e);
	if (sanitizer)
		return tape_err_set(reterr, -TAPE_E_TRACER,
				    "%s: is built with %s, which brings its own "
				    "malloc and must come first; build it without",
				    path, sanitizer);
	return 0;
}

static int check_privilege(const char *path, struct tape_err *reterr)
{
	struct stat st;
	bool gains;

	if (stat(path, &st))
		return 0;
	gains = (st.st_mode & S_ISUID && st.st_uid != getuid()) ||
		(st.st_mode & S_ISGID && st.st_gid != getgid()) ||
		(getuid() && getxattr(path, "security.capability", NULL, 0) > 0);
	if (!gains)
		return 0;
	return tape_err_set(reterr, -TAPE_E_TRACER,
			    "%s: runs with more rights than its caller, so the "
			    "loader ignores preloaded libraries; record it as the user it becomes",
			    path);
}

/* The interpreter of a "#!" line; NULL when @e has none. */
static char *interpreter(const struct elf_file *e)
{
	const char *line = (const char *)e->data;
	size_t at_byte = 2, len = 0;

	if (e->bytes < 3 || line[0] != '#' || line[1] != '!')
		return NULL;
	while (at_byte < e->bytes && (line[at_byte] == ' ' || line[at_byte] == '\t'))
		at_byte++;
	while (at_byte + len < e->bytes && !strchr(" \t\r\n", line[at_byte + len]))
		len++;
	return strndup(line + at_byte, len);
}

int record_check_program(const char *path, struct tape_err *reterr)
{
	char *current = strdup(path);
	int rc = 0;

	for (int depth = 0; current && depth < SCRIPT_DEPTH_MAX; depth++) {
		struct elf_file e;
		char *next = NULL;

		if (map_elf(current, &e))
			break;
		rc = check_privilege(current, reterr);
		if (rc >= 0 && e.bytes >= EI_NIDENT && !memcmp(e.data, ELFMAG, SELFMAG))
			rc = check_elf(current, &e, reterr);
		else if (rc >= 0)
			next = interpreter(&e);
		unmap_elf(&e);
		free(current);
		current = next;
	}
	free(current);
	return rc;
}

const char *record_why_silent(const char *path)
{
	struct elf_file e;
	bool defined = false;

	if (map_elf(path, &e))
		return "its file cannot be read";
	if (memcmp(e.data, ELFMAG, e.bytes < SELFMAG ? e.bytes : SELFMAG)) {
		unmap_elf(&e);
		return "nothing it ran called malloc through the loader";
	}
	defined = has_symbol(&e, "malloc", &defined) && defined;
	unmap_elf(&e);
	return defined ? "it brings its own malloc, linked in"
		       : "another preloaded allocator stands first (see /etc/ld.so.preload and "
			 "LD_PRELOAD), LD_PRELOAD was removed on the way, or it allocates nothing";
}
