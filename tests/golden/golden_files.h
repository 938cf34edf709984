/* SPDX-License-Identifier: MIT */
/* Files of the golden tests, plain or zstd, and programs run with their output in a file. */
#ifndef SLABTAPE_TESTS_GOLDEN_FILES_H
#define SLABTAPE_TESTS_GOLDEN_FILES_H

#include <stddef.h>

/* Contents of @folder/@name@suffix or the same with .zst; malloc'ed, NULL: not there or broken. */
char *golden_read(const char *folder, const char *name, const char *suffix, size_t *ret_bytes);
/* Path of that file, malloc'ed, NULL: not there. */
char *golden_find(const char *folder, const char *name, const char *suffix);
/* Contents of @path, unpacked when it is zstd. */
char *golden_read_path(const char *path, size_t *ret_bytes);
int golden_write_path(const char *path, const char *data, size_t bytes);
/* Run @argv with stdout in @out (NULL: inherited); its exit code, -1 when it did not exit. */
int golden_run(const char *const *argv, const char *out);

#endif
