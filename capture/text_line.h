/* SPDX-License-Identifier: MIT */
/*
 * One line of a trace in text form.
 *
 *	ftrace `trace`		comm-PID [(TGID)] [CPU] FLAGS SECONDS.USECS: event: fields
 *	trace-cmd report	comm-PID [CPU] [FLAGS] SECONDS.USECS: event: [(site)] fields
 *	perf script		comm PID[/TID] [CPU] SECONDS.USECS: kmem:event: fields
 *
 * fields: "key=value" pairs; a value ends where the next "key=" begins.
 */
#ifndef SLABTAPE_CAPTURE_TEXT_LINE_H
#define SLABTAPE_CAPTURE_TEXT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum text_key {
	TEXT_CALL_SITE = 0,
	TEXT_PTR,
	TEXT_NAME,
	TEXT_BYTES_REQ,
	TEXT_BYTES_ALLOC,
	TEXT_GFP,
	TEXT_NODE,
	TEXT_ACCOUNTED,
	TEXT_KEY_MAX
};

struct text_span {
	const char *at; /* NULL: not there */
	size_t len;
};

struct text_line {
	struct text_span comm, event, rest; /* event without "system:"; rest: behind the event */
	int32_t tid;
	uint32_t cpu;
	uint64_t ts_ns;
	uint8_t ctx; /* enum tape_ctx; unknown without flags */
};

/* Take @line (NUL-terminated, @len bytes) apart.  False when it is no event line. */
bool text_line_parse(const char *line, size_t len, struct text_line *ret);

/* The fields of a kmem event's rest. */
void text_line_fields(const struct text_span *rest, struct text_span ret_fields[TEXT_KEY_MAX]);

/*
 * "CPU:3 [LOST 17 EVENTS]", "CPU:3 [17 EVENTS DROPPED]", "CPU:3 [EVENTS DROPPED]" (number 0).
 * False when the line is something else.
 */
bool text_line_lost(const char *line, uint32_t *ret_cpu, uint64_t *ret_events);

#endif
