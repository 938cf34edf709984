/* SPDX-License-Identifier: MIT */
#include "capture/tracefs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PREFIX "slabtape."
#define REMOVE_TRIES 50 /* of 10 ms: a reader that closes takes a moment */
#define STALE_TRIES 3

static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

static bool is_tracefs(const char *path)
{
	struct statfs fs;

	return !statfs(path, &fs) && (unsigned long)fs.f_type == TRACEFS_MAGIC;
}

int tracefs_find(const char **ret_root, struct tape_err *reterr)
{
	char path[64];

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		if (!is_tracefs(roots[i]))
			continue;
		snprintf(path, sizeof(path), "%s/instances", roots[i]);
		if (access(path, W_OK | X_OK)) {
			return tape_err_set(reterr, -TAPE_E_TRACER,
					    "%s: %s: recording a kernel takes root; run it with "
					    "sudo",
					    path, strerror(errno));
		}
		*ret_root = roots[i];
		return 0;
	}
	if (access(roots[0], F_OK))
		return tape_err_set(reterr, -TAPE_E_TRACER,
				    "%s: missing: this kernel has no tracing (CONFIG_FTRACE) or "
				    "/sys is not mounted; mount -t sysfs nodev /sys",
				    roots[0]);
	return tape_err_set(reterr, -TAPE_E_TRACER,
			    "%s: tracefs is not mounted; as root run: mount -t tracefs nodev %s",
			    roots[0], roots[0]);
}

bool tracefs_has(const char *dir, const char *file)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return !access(path, F_OK);
}

int tracefs_write(const char *dir, const char *file, const char *text, struct tape_err *reterr)
{
	char path[512];
	size_t len = strlen(text);
	ssize_t n = -1;
	int fd, error;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd >= 0)
		n = write(fd, text, len);
	error = errno;
	if (fd >= 0)
		close(fd);
	if (n == (ssize_t)len)
		return 0;
	return tape_err_set(reterr, -TAPE_E_TRACER, "%s: cannot write \"%.60s\": %s", path, text,
			    n < 0 ? strerror(error) : "only a part was taken");
}

int tracefs_read(const char *dir, const char *file, char **ret_text, size_t *ret_len,
		 struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_closep) int fd = -1;
	TAPE_CLEANUP(tape_freep) char *text = NULL;
	size_t len = 0, capacity = 0;
	char path[512];
	ssize_t n;

	snprintf(path, sizeof(path), "%s%s%s", dir ? dir : "", dir ? "/" : "", file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	do {
		if (capacity - len < 4096) {
			char *grown = realloc(text, capacity = capacity ? capacity * 2 : 16384);

			if (!grown)
				return tape_err_set(reterr, -ENOMEM, "out of memory");
			text = grown;
		}
		n = fd < 0 ? -1 : read(fd, text + len, capacity - len - 1);
		len += n > 0 ? (size_t)n : 0;
	} while ((n > 0 && len < TRACEFS_FILE_MAX) || (n < 0 && fd >= 0 && errno == EINTR));
	if (n)
		return tape_err_set(reterr, -TAPE_E_TRACER, "%s: cannot read: %s", path,
				    n < 0 ? strerror(errno) : "too large");
	text[len] = '\0';
	*ret_len = len;
	*ret_text = tape_steal(&text);
	return 0;
}

uint64_t tracefs_process_start(int32_t pid)
{
	char path[40], text[1024] = "", *at;
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	at = strrchr(text, ')'); /* the name may hold anything */
	if (at && (at[2] == 'Z' || at[2] == 'X'))
		return 0;
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

int tracefs_create(const char *root, struct tracefs_instance *ret_in, struct tape_err *reterr)
{
	struct tracefs_instance in = {.root = root};
	int rc;

	snprintf(in.dir, sizeof(in.dir), "%s/instances/" PREFIX "%d.%llu", root, getpid(),
		 (unsigned long long)tracefs_process_start(getpid()));
	if (mkdir(in.dir, 0700))
		return tape_err_set(reterr, -TAPE_E_TRACER, "%s: cannot make an instance: %s",
				    in.dir, strerror(errno));
	rc = tracefs_write(in.dir, "tracing_on", "0", reterr);
	if (rc < 0)
		tracefs_remove(&in);
	else
		*ret_in = in;
	return rc;
}

/* The kernel turns off what is on; while somebody reads the instance it stays (-EBUSY). */
static bool remove_dir(const char *dir, int tries)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	while (rmdir(dir)) {
		if (errno != EBUSY || --tries <= 0)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

void tracefs_remove(struct tracefs_instance *in)
{
	if (in->dir[0])
		remove_dir(in->dir, REMOVE_TRIES);
	in->dir[0] = '\0';
}

unsigned int tracefs_remove_stale(const char *root)
{
	unsigned int removed = 0;
	char path[512];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/instances", root);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		unsigned long long start;
		int pid;

		if (sscanf(entry->d_name, PREFIX "%d.%llu", &pid, &start) != 2 || !start ||
		    tracefs_process_start(pid) == start)
			continue;
		snprintf(path, sizeof(path), "%s/instances/%.200s", root, entry->d_name);
		removed += remove_dir(path, STALE_TRIES);
	}
	if (dir)
		closedir(dir);
	return removed;
}
