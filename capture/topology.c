/* SPDX-License-Identifier: MIT */
#include "capture/topology.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "capture/input.h"
#include "store/tape.h"

#define PAGE_BYTES 4096u
#define ZONEINFO_MAX (64u << 20) /* limit of a zoneinfo file, bytes */

void machine_init(struct machine *m)
{
	memset(m, 0, sizeof(*m));
	m->nodes = 1;
	for (int i = 0; i < TAPE_CPU_MAX; i++)
		m->cpu_node[i] = TAPE_NODE_NONE;
}

static bool take_number(const char **at, unsigned long limit, unsigned long *ret)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	*ret = strtoul(*at, &end, 10);
	*at = end;
	return *ret < limit;
}

/* One "FIRST-LAST:NODE" or "CPU:NODE". */
static bool take_range(struct machine *m, const char **at)
{
	unsigned long first, last, node;

	if (!take_number(at, TAPE_CPU_MAX, &first))
		return false;
	last = first;
	if (**at == '-') {
		++*at;
		if (!take_number(at, TAPE_CPU_MAX, &last) || last < first)
			return false;
	}
	if (*(*at)++ != ':' || !take_number(at, TAPE_NODE_MAX, &node))
		return false;
	for (unsigned long cpu = first; cpu <= last; cpu++)
		m->cpu_node[cpu] = (int16_t)node;
	machine_saw_cpu(m, (uint32_t)last);
	if (node >= m->nodes)
		m->nodes = (uint32_t)node + 1;
	return true;
}

int machine_topology(struct machine *m, const char *text, struct tape_err *reterr)
{
	const char *at = text;

	while (take_range(m, &at)) {
		if (!*at || *at == '\n') {
			m->has_topology = true;
			return 0;
		}
		if (*at++ != ',')
			break;
	}
	return tape_err_set(reterr, -TAPE_E_USAGE,
			    "topology \"%.60s\": CPU:NODE or FIRST-LAST:NODE, comma between, "
			    "CPUs below %d, nodes below %d",
			    text, TAPE_CPU_MAX, TAPE_NODE_MAX);
}

static int by_start(const void *a, const void *b)
{
	const struct machine_zone *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* "  name:   value" or "  name  value" -> value; false when the line is another. */
static bool zone_value(const char *line, const char *name, uint64_t *ret)
{
	size_t len = strlen(name);
	char *end;

	line += strspn(line, " ");
	if (strncmp(line, name, len))
		return false;
	line += len;
	line += strspn(line, ": ");
	*ret = strtoull(line, &end, 10);
	return end != line;
}

static void add_zone(struct machine *m, long node, uint64_t start_pfn, uint64_t spanned,
		     uint64_t base)
{
	if (!spanned || m->zones_nr == MACHINE_ZONES_MAX)
		return;
	m->zones[m->zones_nr++] = (struct machine_zone){
		.start = base + start_pfn * PAGE_BYTES,
		.node = (int16_t)node,
	};
	if (m->memory_end < base + (start_pfn + spanned) * PAGE_BYTES)
		m->memory_end = base + (start_pfn + spanned) * PAGE_BYTES;
	if ((uint32_t)node >= m->nodes)
		m->nodes = (uint32_t)node + 1;
}

static void read_zones(struct machine *m, char *text, uint64_t base)
{
	uint64_t spanned = 0, start_pfn;
	long node = -1;
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!strncmp(line, "Node ", 5)) {
			node = strtol(line + 5, NULL, 10);
			spanned = 0;
		} else if (zone_value(line, "start_pfn", &start_pfn)) {
			if (node >= 0 && node < TAPE_NODE_MAX)
				add_zone(m, node, start_pfn, spanned, base);
		} else {
			zone_value(line, "spanned", &spanned);
		}
	}
}

int machine_zoneinfo(struct machine *m, const char *path, uint64_t base, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) char *text = NULL;
	size_t len;
	int rc = capture_input_slurp(path, ZONEINFO_MAX, &text, &len, reterr);

	if (rc < 0)
		return rc;
	read_zones(m, text, base);
	if (!m->zones_nr)
		return tape_err_set(reterr, -TAPE_E_FORMAT,
				    "zoneinfo (%s): no zone with a start_pfn", path);
	if (m->nodes == 1) {
		/* Whatever the base is: there is no other node. */
		m->zones_nr = 1;
		m->zones[0] = (struct machine_zone){.start = 0, .node = 0};
		m->memory_end = UINT64_MAX;
	}
	qsort(m->zones, m->zones_nr, sizeof(m->zones[0]), by_start);
	return 0;
}

uint16_t machine_cpu_node(const struct machine *m, uint32_t cpu)
{
	if (m->has_topology)
		return m->cpu_node[cpu] < 0 ? 0 : (uint16_t)m->cpu_node[cpu];
	return m->zones_nr ? (uint16_t)((uint64_t)cpu * m->nodes / m->cpus) : 0;
}

int machine_store(struct machine *m, struct tape *t, struct tape_err *reterr)
{
	int rc;

	if (!m->cpus)
		m->cpus = 1;
	if (m->has_topology)
		m->topology_from = "given";
	else
		m->topology_from = m->zones_nr ? "zoneinfo blocks" : "one node";
	rc = tape_meta_set(t, "topology_from", m->topology_from, reterr);
	for (uint32_t cpu = 0; rc >= 0 && cpu < m->cpus; cpu++)
		rc = tape_define_cpu(t, (uint16_t)cpu, (int16_t)machine_cpu_node(m, cpu), reterr);
	return rc;
}
