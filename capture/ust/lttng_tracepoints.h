/* SPDX-License-Identifier: MIT */
/*
 * LTTng-UST tracepoints of recorded programs (read several times, as LTTng wants it).
 *
 * The fast reader (capture/ctf_layout.c) knows these fields in this order; change both together.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER slabtape

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "capture/ust/lttng_tracepoints.h"

#if !defined(SLABTAPE_CAPTURE_UST_LTTNG_TRACEPOINTS_H) || \
	defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SLABTAPE_CAPTURE_UST_LTTNG_TRACEPOINTS_H

#include <lttng/tracepoint.h>
#include <stdint.h>

#include "capture/ust/lttng_api.h"

/* clang-format off: a table, one field a line */
/* An object was given out (after malloc and its family returned). */
LTTNG_UST_TRACEPOINT_EVENT(slabtape, alloc,
	LTTNG_UST_TP_ARGS(const struct lttng_heap_event *, e),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer_hex(uint64_t, address, e->address)
		lttng_ust_field_integer_hex(uint64_t, ip, e->ip)
		lttng_ust_field_integer(uint64_t, size, e->size)
		lttng_ust_field_integer(int32_t, pid, e->pid)
		lttng_ust_field_integer(int32_t, tid, e->tid)
		lttng_ust_field_integer(uint16_t, cpu, e->cpu)
		lttng_ust_field_integer(uint8_t, node, e->node)
		lttng_ust_field_integer(uint8_t, kind, e->kind)))

/* An object comes back (before free is called). */
LTTNG_UST_TRACEPOINT_EVENT(slabtape, free,
	LTTNG_UST_TP_ARGS(const struct lttng_heap_event *, e),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer_hex(uint64_t, address, e->address)
		lttng_ust_field_integer_hex(uint64_t, ip, e->ip)
		lttng_ust_field_integer(int32_t, pid, e->pid)
		lttng_ust_field_integer(int32_t, tid, e->tid)
		lttng_ust_field_integer(uint16_t, cpu, e->cpu)
		lttng_ust_field_integer(uint8_t, node, e->node)
		lttng_ust_field_integer(uint8_t, kind, e->kind)))

/* A program begins. */
LTTNG_UST_TRACEPOINT_EVENT(slabtape, exec,
	LTTNG_UST_TP_ARGS(const struct lttng_process_event *, e),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int32_t, pid, e->pid)
		lttng_ust_field_integer(int32_t, tid, e->tid)
		lttng_ust_field_integer(int32_t, parent, e->parent)
		lttng_ust_field_string(text, e->text)))

/* Thread tid is about to fork: what pid holds now is what the child gets. */
LTTNG_UST_TRACEPOINT_EVENT(slabtape, fork_begin,
	LTTNG_UST_TP_ARGS(const struct lttng_process_event *, e),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int32_t, pid, e->pid)
		lttng_ust_field_integer(int32_t, tid, e->tid)
		lttng_ust_field_integer(uint32_t, serial, e->serial)))

/* Process pid begins as a copy of process parent. */
LTTNG_UST_TRACEPOINT_EVENT(slabtape, fork,
	LTTNG_UST_TP_ARGS(const struct lttng_process_event *, e),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int32_t, pid, e->pid)
		lttng_ust_field_integer(int32_t, tid, e->tid)
		lttng_ust_field_integer(int32_t, parent, e->parent)
		lttng_ust_field_integer(uint32_t, serial, e->serial)))

/* Code is mapped at [base, base + size). */
LTTNG_UST_TRACEPOINT_EVENT(slabtape, module,
	LTTNG_UST_TP_ARGS(const struct lttng_process_event *, e),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int32_t, pid, e->pid)
		lttng_ust_field_integer_hex(uint64_t, base, e->base)
		lttng_ust_field_integer(uint64_t, size, e->size)
		lttng_ust_field_string(text, e->text)))

/* Events before the recording that found no room. */
LTTNG_UST_TRACEPOINT_EVENT(slabtape, loss,
	LTTNG_UST_TP_ARGS(const struct lttng_process_event *, e),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int32_t, pid, e->pid)
		lttng_ust_field_integer(int32_t, tid, e->tid)
		lttng_ust_field_integer(uint64_t, size, e->size)))

/* clang-format on */
#endif

#include <lttng/tracepoint-event.h>
