/* SPDX-License-Identifier: MIT */
#include "golden_files.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

static char *read_raw(const char *path, size_t *ret_bytes)
{
	FILE *f = fopen(path, "rb");
	char *data = NULL;
	long bytes;

	if (!f)
		return NULL;
	if (!fseek(f, 0, SEEK_END) && (bytes = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET) &&
	    (data = malloc((size_t)bytes + 1))) {
		*ret_bytes = fread(data, 1, (size_t)bytes, f);
		data[*ret_bytes] = '\0';
	}
	fclose(f);
	return data;
}

static char *unpack(char *packed, size_t bytes, size_t *ret_bytes)
{
	unsigned long long plain = ZSTD_getFrameContentSize(packed, bytes);
	char *data = NULL;

	if (plain < 1u << 30 && (data = malloc((size_t)plain + 1))) {
		size_t got = ZSTD_decompress(data, (size_t)plain, packed, bytes);

		if (ZSTD_isError(got)) {
			free(data);
			data = NULL;
		} else {
			data[got] = '\0';
			*ret_bytes = got;
		}
	}
	free(packed);
	return data;
}

char *golden_read_path(const char *path, size_t *ret_bytes)
{
	char *data = read_raw(path, ret_bytes);

	if (data && *ret_bytes >= 4 && !memcmp(data, "\x28\xb5\x2f\xfd", 4))
		return unpack(data, *ret_bytes, ret_bytes);
	return data;
}

char *golden_find(const char *folder, const char *name, const char *suffix)
{
	static const char *const packed[] = { "", ".zst" };
	char *path;

	for (int i = 0; i < 2; i++) {
		if (asprintf(&path, "%s/%s%s%s", folder, name, suffix, packed[i]) < 0)
			return NULL;
		if (!access(path, R_OK))
			return path;
		free(path);
	}
	return NULL;
}

char *golden_read(const char *folder, const char *name, const char *suffix, size_t *ret_bytes)
{
	char *path = golden_find(folder, name, suffix);
	char *data = path ? golden_read_path(path, ret_bytes) : NULL;

	free(path);
	return data;
}

int golden_write_path(const char *path, const char *data, size_t bytes)
{
	FILE *f = fopen(path, "wb");
	size_t done = f ? fwrite(data, 1, bytes, f) : 0;

	return !f || fclose(f) || done != bytes ? -1 : 0;
}

int golden_run(const char *const *argv, const char *out)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return -1;
	if (!pid) {
		int fd = out ? open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600) : 1;

		if (fd >= 0 && dup2(fd, 1) >= 0)
			execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}
