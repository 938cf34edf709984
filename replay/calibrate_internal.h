/* SPDX-License-Identifier: MIT */
/* What calibrate.c and calibrate_pair.c share. */
#ifndef SLABTAPE_REPLAY_CALIBRATE_INTERNAL_H
#define SLABTAPE_REPLAY_CALIBRATE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

/* Two CPUs this process may use. */
struct calibrate_pair {
	int cpu[2];
	bool found;
};
struct calibrate_host {
	uint32_t cpus, nodes;
	struct calibrate_pair near; /* of one node */
	struct calibrate_pair far;  /* of two nodes */
};
/* Look at every CPU this process may use; the calling thread's affinity is as before. */
void calibrate_host_get(struct calibrate_host *ret_host);

/* Wall time in ns. */
double calibrate_now_ns(void);

/* One line, written by one CPU and then by the other: ns from write to write.  < 0: no thread. */
double calibrate_line_ns(const struct calibrate_pair *p, uint32_t rounds);
/* One FIFO lock that both always want: ns from release to acquisition.  < 0: no thread. */
double calibrate_handover_ns(const struct calibrate_pair *p, uint32_t rounds);

#endif
