/* SPDX-License-Identifier: MIT */
/* This machine: its slab caches and their state, nodes of its CPUs, names of its threads. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/host.h"
#include "capture/intern.h"
#include "capture/record_kernel_internal.h"

#define SLAB_DIR "/sys/kernel/slab"
#define SLABINFO "/proc/slabinfo"

/* ---- caches ---- */

/*
 * One folder of SLAB_DIR may stand for several caches that the kernel merged: its name is then
 * ":0000064" and links with the caches' names point to it.  /proc/slabinfo lists the one name
 * that the kernel itself uses, also in events.
 */
struct cache_dir {
	char folder[256];
	char name[256];
};

static void closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

/* Folder of the entry @name: its own, or what its link points to.  false: neither. */
static bool folder_of(const struct dirent *entry, char *folder, size_t bytes)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *slash;
	ssize_t n;

	if (entry->d_name[0] == '.')
		return false;
	if (entry->d_type != DT_LNK) {
		snprintf(folder, bytes, "%s", entry->d_name);
		return true;
	}
	snprintf(path, sizeof(path), SLAB_DIR "/%s", entry->d_name);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	slash = strrchr(target, '/');
	return snprintf(folder, bytes, "%.255s", slash ? slash + 1 : target) > 0;
}

/* The names in /proc/slabinfo. */
static int read_names(struct intern *names, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) char *text = NULL;
	size_t len;
	int rc = tracefs_read(NULL, SLABINFO, &text, &len, reterr);

	for (char *line = rc < 0 ? NULL : text; line && *line;) {
		char *end = strchrnul(line, '\n');
		size_t name_len = strcspn(line, " \n");
		uint32_t number;
		bool is_new;

		if (*line != '#' && strncmp(line, "slabinfo ", 9) &&
		    intern_get(names, line, name_len, &number, &is_new) < 0)
			return tape_err_set(reterr, -ENOMEM, "out of memory");
		line = *end ? end + 1 : end;
	}
	return rc;
}

/* Call @fn for each cache; a cache that slabinfo does not list has no name and does not come. */
static int each_cache(int (*fn)(void *ctx, const struct cache_dir *c, struct tape_err *reterr),
		      void *ctx, struct tape_err *reterr)
{
	TAPE_CLEANUP(closedirp) DIR *dir = opendir(SLAB_DIR);
	struct intern names = {0};
	struct cache_dir c;
	struct dirent *entry;
	int rc = read_names(&names, reterr);

	while (rc >= 0 && dir && (entry = readdir(dir))) {
		if (intern_find(&names, entry->d_name, strlen(entry->d_name)) == UINT32_MAX ||
		    !folder_of(entry, c.folder, sizeof(c.folder)))
			continue;
		snprintf(c.name, sizeof(c.name), "%s", entry->d_name);
		rc = fn(ctx, &c, reterr);
	}
	intern_fini(&names);
	return rc;
}

/* Files that walk over every object or trigger work when read. */
static bool skip_file(const char *name)
{
	static const char *const names[] = {"alloc_calls", "free_calls", "alloc_traces",
					    "free_traces", "shrink", "validate"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return name[0] == '.';
}

static void dump_file(FILE *out, const char *cache, int folder, const char *name)
{
	TAPE_CLEANUP(tape_closep) int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	char text[65536];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (*text)
		fprintf(out, "%s/%s:%s\n", cache, name, text);
}

static int dump_cache(void *ctx, const struct cache_dir *c, struct tape_err *reterr)
{
	TAPE_CLEANUP(closedirp) DIR *dir = NULL;
	char path[PATH_MAX];
	struct dirent *entry;

	(void)reterr;
	snprintf(path, sizeof(path), SLAB_DIR "/%s", c->folder);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (!skip_file(entry->d_name))
			dump_file(ctx, c->name, dirfd(dir), entry->d_name);
	return 0; /* a cache that went away meanwhile has nothing to say */
}

static int copy_slabinfo(FILE *out, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) char *text = NULL;
	size_t len;
	int rc = tracefs_read(NULL, SLABINFO, &text, &len, reterr);

	if (rc >= 0)
		fwrite(text, 1, len, out);
	return rc;
}

int kernel_slab_dump(int *ret_fd, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_closep) int fd = memfd_create("slabtape-slab", MFD_CLOEXEC);
	FILE *out = fd < 0 ? NULL : fdopen(dup(fd), "w");
	int rc;

	if (!out)
		return tape_err_set(reterr, -errno, "memfd: %s", strerror(errno));
	rc = access(SLAB_DIR, R_OK | X_OK) ? copy_slabinfo(out, reterr)
					   : each_cache(dump_cache, out, reterr);
	if ((ferror(out) | fclose(out)) && rc >= 0)
		rc = tape_err_set(reterr, -TAPE_E_IO, "memfd: %s", strerror(errno));
	if (rc < 0)
		return rc;
	*ret_fd = fd;
	fd = -1;
	return 0;
}

/* ---- the names of one cache ---- */

static uint64_t object_bytes(const char *folder)
{
	TAPE_CLEANUP(tape_freep) char *text = NULL;
	char path[PATH_MAX];
	size_t len;

	snprintf(path, sizeof(path), SLAB_DIR "/%s/object_size", folder);
	return tracefs_read(NULL, path, &text, &len, NULL) < 0 ? 0 : strtoull(text, NULL, 10);
}

static bool folder_named(const char *name, char *folder, size_t bytes)
{
	TAPE_CLEANUP(closedirp) DIR *dir = opendir(SLAB_DIR);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (!strcmp(entry->d_name, name))
			return folder_of(entry, folder, bytes);
	return false;
}

int kernel_cache_names(const char *name, char **ret_names, uint64_t *ret_object_bytes,
		       struct tape_err *reterr)
{
	TAPE_CLEANUP(closedirp) DIR *dir = NULL;
	char folder[256], other[256], *text = NULL;
	struct dirent *entry;
	size_t bytes = 0;
	FILE *out;

	if (!folder_named(name, folder, sizeof(folder)))
		return tape_err_set(reterr, -TAPE_E_USAGE,
				    "--cache %s: no such cache on this machine; " SLABINFO
				    " lists them",
				    name);
	*ret_object_bytes = object_bytes(folder);
	dir = opendir(SLAB_DIR);
	out = open_memstream(&text, &bytes);
	if (!dir || !out)
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	fprintf(out, "%s%c", name, '\0');
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != ':' && strcmp(entry->d_name, name) &&
		    folder_of(entry, other, sizeof(other)) && !strcmp(other, folder))
			fprintf(out, "%s%c", entry->d_name, '\0');
	fputc('\0', out);
	if (fclose(out))
		return tape_err_set(reterr, -ENOMEM, "out of memory");
	*ret_names = text;
	return 0;
}

/* ---- CPUs and threads ---- */

char *kernel_topology(void)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	for (uint32_t cpu = 0; out && cpu < host_cpus(); cpu++)
		fprintf(out, "%s%u:%d", cpu ? "," : "", cpu, host_node_of_cpu(cpu));
	if (!out || fclose(out))
		return NULL;
	return text;
}

static int name_tasks(struct td_decoder *d, const char *process)
{
	TAPE_CLEANUP(closedirp) DIR *dir = NULL;
	char path[300];
	struct dirent *entry;
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/%s/task", process);
	dir = opendir(path);
	while (rc >= 0 && dir && (entry = readdir(dir))) {
		TAPE_CLEANUP(tape_freep) char *comm = NULL;
		size_t len;

		snprintf(path, sizeof(path), "/proc/%.20s/task/%.20s/comm", process, entry->d_name);
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    tracefs_read(NULL, path, &comm, &len, NULL) < 0)
			continue;
		rc = ingest_thread(d->ing, (int32_t)strtol(entry->d_name, NULL, 10), comm,
				   strcspn(comm, "\n"), d->reterr);
	}
	return rc;
}

int kernel_threads(struct td_decoder *d, const char *root)
{
	TAPE_CLEANUP(closedirp) DIR *dir = NULL;
	TAPE_CLEANUP(tape_freep) char *text = NULL;
	struct dirent *entry;
	size_t len;
	int rc = 0;

	if (tracefs_read(root, "saved_cmdlines", &text, &len, NULL) >= 0)
		rc = td_decode_threads(d, text, len);
	dir = rc < 0 ? NULL : opendir("/proc");
	while (rc >= 0 && dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			rc = name_tasks(d, entry->d_name);
	return rc;
}
