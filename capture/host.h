/* SPDX-License-Identifier: MIT */
/* This machine, as live recordings describe it in a tape. */
#ifndef SLABTAPE_CAPTURE_HOST_H
#define SLABTAPE_CAPTURE_HOST_H

#include <stdint.h>

#include "base/error.h"

struct tape;

/* Node of @cpu from /sys/devices/system/node; 0 when that does not say. */
int16_t host_node_of_cpu(uint32_t cpu);
/* Number of configured CPUs (the highest id + 1). */
uint32_t host_cpus(void);
/* Number of memory nodes (the highest id + 1). */
uint32_t host_nodes(void);
/* cpu rows of all configured CPUs. */
int host_define_cpus(struct tape *t, struct tape_err *reterr) TAPE_MUST_CHECK;
/* meta: kernel, host CPU model, start time (UTC), tool version. */
int host_define_meta(struct tape *t, struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
