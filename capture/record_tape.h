/* SPDX-License-Identifier: MIT */
/* The file that a live recording writes, and the command it stands for. */
#ifndef SLABTAPE_CAPTURE_RECORD_TAPE_H
#define SLABTAPE_CAPTURE_RECORD_TAPE_H

#include <stdint.h>

/* Bytes of the tape at @path and of SQLite's files beside it. */
uint64_t record_tape_bytes(const char *path);

/* @argv (NULL-terminated) as one line, words separated by blanks; malloc'ed, NULL: no memory. */
char *record_command_line(const char *const *argv);

/* CLOCK_MONOTONIC, ns. */
uint64_t record_now_ns(void);

#endif
