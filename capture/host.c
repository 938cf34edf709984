/* SPDX-License-Identifier: MIT */
#include "capture/host.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "store/tape.h"

int16_t host_node_of_cpu(uint32_t cpu)
{
	char path[64];
	struct dirent *entry;
	int16_t node = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u", cpu);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		if (!strncmp(entry->d_name, "node", 4) && entry->d_name[4] >= '0' &&
		    entry->d_name[4] <= '9')
			node = (int16_t)strtol(entry->d_name + 4, NULL, 10);
	closedir(dir);
	return node < TAPE_NODE_MAX ? node : 0;
}

uint32_t host_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	return n < 1 ? 1 : n > TAPE_CPU_MAX ? TAPE_CPU_MAX : (uint32_t)n;
}

uint32_t host_nodes(void)
{
	DIR *dir = opendir("/sys/devices/system/node");
	struct dirent *entry;
	uint32_t nodes = 1;

	while (dir && (entry = readdir(dir))) {
		char *end;
		unsigned long node;

		if (strncmp(entry->d_name, "node", 4))
			continue;
		node = strtoul(entry->d_name + 4, &end, 10);
		if (end != entry->d_name + 4 && !*end && node < TAPE_NODE_MAX && node + 1 > nodes)
			nodes = (uint32_t)node + 1;
	}
	if (dir)
		closedir(dir);
	return nodes;
}

int host_define_cpus(struct tape *t, struct tape_err *reterr)
{
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < host_cpus(); i++)
		rc = tape_define_cpu(t, (uint16_t)i, host_node_of_cpu(i), reterr);
	return rc;
}

int host_define_meta(struct tape *t, struct tape_err *reterr)
{
	struct utsname u;
	struct tm tm;
	time_t now = time(NULL);
	char text[32] = "";
	int rc = 0;

	if (gmtime_r(&now, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (!uname(&u))
		rc = tape_meta_set(t, "kernel", u.release, reterr);
	if (rc >= 0)
		rc = tape_meta_set(t, "created", text, reterr);
	if (rc >= 0)
		rc = tape_meta_set(t, "tool_version", SLABTAPE_VERSION, reterr);
	return rc;
}
