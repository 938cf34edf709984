/* SPDX-License-Identifier: MIT */
#include "capture/record_tape.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

uint64_t record_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

char *record_command_line(const char *const *argv)
{
	size_t bytes = 1;
	char *text, *at;

	for (const char *const *a = argv; *a; a++)
		bytes += strlen(*a) + 1;
	text = at = malloc(bytes);
	for (const char *const *a = argv; text && *a; a++) {
		size_t n = strlen(*a);

		if (a != argv)
			*at++ = ' ';
		memcpy(at, *a, n);
		at += n;
	}
	if (text)
		*at = '\0';
	return text;
}

/* SQLite's files beside a tape that is being written; "" is the tape. */
static const char *const tape_files[] = {"", "-wal", "-shm", "-journal"};
#define TAPE_FILES (sizeof(tape_files) / sizeof(tape_files[0]))

uint64_t record_tape_bytes(const char *tape)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < TAPE_FILES; i++) {
		char path[PATH_MAX];
		struct stat st;

		snprintf(path, sizeof(path), "%s%s", tape, tape_files[i]);
		if (!stat(path, &st))
			bytes += (uint64_t)st.st_size;
	}
	return bytes;
}
