/* SPDX-License-Identifier: MIT */
/*
 * The recorded machine: which node a CPU is on and which node an address is on.
 *
 * CPU -> node, first that is known: --topology (or a `topology` file); else, when a zoneinfo names
 * M nodes, contiguous equal blocks of CPUs (what firmware and QEMU do by default); else one node.
 * Address -> node: the node with the largest start_pfn <= (address - direct map base) / 4096; when
 * zoneinfo names one node, that one, whatever the base.
 */
#ifndef SLABTAPE_CAPTURE_TOPOLOGY_H
#define SLABTAPE_CAPTURE_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "traces/event.h"

struct tape;

#define MACHINE_ZONES_MAX 2048

struct machine_zone {
	uint64_t start; /* address of its first byte in the direct map */
	int16_t node;
};

struct machine {
	uint32_t cpus; /* highest CPU seen or named, + 1 */
	uint32_t nodes;
	bool has_topology; /* cpu_node was given */
	int16_t cpu_node[TAPE_CPU_MAX]; /* -1: not named */
	struct machine_zone zones[MACHINE_ZONES_MAX]; /* ascending start */
	uint32_t zones_nr;
	uint64_t memory_end; /* address behind the last zone */
	const char *topology_from; /* "given", "zoneinfo blocks", "one node" */
};

void machine_init(struct machine *m);

/* "0-3:0,4-7:1,8:2".  -TAPE_E_USAGE names what is wrong. */
int machine_topology(struct machine *m, const char *text, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/* Read a copy of /proc/zoneinfo; @base: address of physical address 0. */
int machine_zoneinfo(struct machine *m, const char *path, uint64_t base, struct tape_err *reterr)
	TAPE_MUST_CHECK;

/* @cpu has events (or is a possible CPU of the source). */
static inline void machine_saw_cpu(struct machine *m, uint32_t cpu)
{
	if (cpu >= m->cpus)
		m->cpus = cpu + 1;
}

/* Node of the memory at @address, TAPE_NODE_NONE when not known. */
static inline int16_t machine_node_of(const struct machine *m, uint64_t address)
{
	if (address >= m->memory_end)
		return TAPE_NODE_NONE;
	for (uint32_t i = m->zones_nr; i-- > 0;)
		if (address >= m->zones[i].start)
			return m->zones[i].node;
	return TAPE_NODE_NONE;
}

/* Node of @cpu, by the rule above. */
uint16_t machine_cpu_node(const struct machine *m, uint32_t cpu);

/* Settle the nodes of all CPUs and write the cpu rows. */
int machine_store(struct machine *m, struct tape *t, struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
