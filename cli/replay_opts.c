/* SPDX-License-Identifier: MIT */
#include "cli/replay_opts.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/verb.h"

#define SETS_MAX 256	 /* --set options */
#define CPUS_LIST_MAX 64 /* machines of a curve */

static struct {
	const char *pace, *costs;
	struct replay_knob *knobs;
	const char *mode, *topology, *warm, *infer, *record, *count_from, *count_to;
	const char **set;
	const char *cpus;
	uint32_t nr_cpus, cpus_list[CPUS_LIST_MAX];
	int scale, nodes, follow, strict, laps, repeat;
	long long seed, jitter_ns, record_limit;
} opt = { .nodes = -1, .pace = "trace", .scale = 1, .mode = "ordered", .warm = "orphans", .infer = "late", .seed = 1,
	  .laps = 1, .repeat = 1, .record_limit = REPLAY_RECORD_LIMIT };

const struct poptOption cli_replay_options[] = {
	{ "mode", '\0', POPT_ARG_STRING, &opt.mode, 0, "engine", "ordered|parallel|simulated" },
	{ "cpus", '\0', POPT_ARG_STRING, &opt.cpus, 0,
	  "CPUs of the machine (default: the tape's); simulated: a list makes a curve, each machine "
	  "a scaled-up copy of the recording", "N[,N...]" },
	{ "nodes", '\0', POPT_ARG_INT, &opt.nodes, 0, "memory nodes, equal blocks of CPUs", "M" },
	{ "topology", '\0', POPT_ARG_STRING, &opt.topology, 0, "node of each CPU", "0-7:0,8-15:1" },
	{ "set", '\0', POPT_ARG_ARGV, &opt.set, 0, "set a knob by its sysfs name",
	  "[CACHE.]KNOB=VALUE" },
	{ "warm", '\0', POPT_ARG_STRING, &opt.warm, 0,
	  "objects older than the recording; address: up to --count-from place every allocation "
	  "where the recording has it; snapshot: begin at --count-from with the slabs that the "
	  "kernel's snapshot counted", "orphans|address|snapshot|none" },
	{ "follow", '\0', POPT_ARG_NONE, &opt.follow, 0,
	  "place every allocation where the recording has it, to the end", NULL },
	{ "seed", '\0', POPT_ARG_LONGLONG, &opt.seed, 0, "of every random decision", "N" },
	{ "count-from", '\0', POPT_ARG_STRING, &opt.count_from, 0,
	  "count from this marker (first word) or time on", "MARKER|NSns" },
	{ "count-to", '\0', POPT_ARG_STRING, &opt.count_to, 0, "count and run up to here",
	  "MARKER|NSns" },
	{ "infer", '\0', POPT_ARG_STRING, &opt.infer, 0,
	  "where events the tracer did not see stand in their window", "early|late|none" },
	{ "jitter", '\0', POPT_ARG_LONGLONG, &opt.jitter_ns, 0,
	  "shuffle events of different CPUs closer than this", "NS" },
	{ "repeat", '\0', POPT_ARG_INT, &opt.repeat, 0,
	  "replays with seeds N, N+1, ...; prints the spread", "R" },
	{ "laps", '\0', POPT_ARG_INT, &opt.laps, 0, "the tape again on the same allocator", "N" },
	{ "pace", '\0', POPT_ARG_STRING, &opt.pace, 0,
	  "simulated: when a CPU begins its next operation", "trace|asap|serial" },
	{ "scale", '\0', POPT_ARG_INT, &opt.scale, 0,
	  "simulated: K copies of the recording on K times as many CPUs", "K" },
	{ "costs", '\0', POPT_ARG_STRING, &opt.costs, 0,
	  "simulated: cost table in place of the built-in one", "FILE" },
	{ "record", '\0', POPT_ARG_STRING, &opt.record, 0,
	  "what a stored run keeps beside its counters (default of replay: all; compare: none)",
	  "none|transitions,refills,samples,locks" },
	{ "record-limit", '\0', POPT_ARG_LONGLONG, &opt.record_limit, 0,
	  "keep at most this many transitions and as many refills of a run; 0: all (default: 2000000)",
	  "ROWS" },
	{ "strict", '\0', POPT_ARG_NONE, &opt.strict, 0,
	  "stop with exit 5 at an event that cannot be executed", NULL },
	POPT_TABLEEND,
};

/* Position of @word among @nr @names, or -1. */
static int choice(const char *word, const char *const *names, int nr)
{
	for (int i = 0; i < nr; i++)
		if (!strcmp(word, names[i]))
			return i;
	return -1;
}

static int take_choices(const char *verb, struct replay_config *cfg)
{
	static const char *const modes[] = { "ordered", "parallel", "simulated" };
	static const char *const warms[] = { "orphans", "address", "snapshot", "none" };
	static const char *const infers[] = { "late", "early", "none" };
	static const char *const paces[] = { "trace", "asap", "serial" };
	int pace = choice(opt.pace, paces, 3);
	int mode = choice(opt.mode, modes, 3), warm = choice(opt.warm, warms, 4);
	int infer = choice(opt.infer, infers, 3);

	if (mode < 0)
		return cli_usage(verb, "--mode %s: not one of ordered, parallel, simulated",
				 opt.mode);
	if (warm < 0)
		return cli_usage(verb, "--warm %s: not one of orphans, address, snapshot, none",
				 opt.warm);
	if (infer < 0)
		return cli_usage(verb, "--infer %s: not one of early, late, none", opt.infer);
	if (pace < 0)
		return cli_usage(verb, "--pace %s: not one of trace, asap, serial", opt.pace);
	cfg->pace = (enum replay_pace)pace;
	cfg->mode = (enum replay_mode)mode;
	cfg->warm = (enum replay_warm)warm;
	cfg->infer = (enum replay_infer)infer;
	return 0;
}

static int take_record(const char *verb, struct replay_config *cfg)
{
	static const char *const names[] = { "transitions", "refills", "samples", "locks" };
	const char *at = opt.record;

	if (!at || !strcmp(at, "none"))
		return 0;
	if (!*at)
		return cli_usage(verb, "--record: want none or a list of transitions, refills, samples, "
				 "locks");
	while (*at) {
		size_t len = strcspn(at, ",");
		int i;

		for (i = 0; i < 4; i++)
			if (strlen(names[i]) == len && !strncmp(at, names[i], len))
				break;
		if (i == 4)
			return cli_usage(verb, "--record %s: not none or a list of transitions, "
					 "refills, samples, locks", opt.record);
		cfg->record |= 1u << i;
		at += len + (at[len] == ',');
	}
	return 0;
}

/* "[CACHE.]KNOB=VALUE"; knob names hold no dot, cache names may. */
static int take_knob(const char *verb, const char *text, struct replay_knob *ret_knob)
{
	char *copy = strdup(text), *value, *dot, *end;

	if (!copy)
		return cli_usage(verb, "out of memory");
	value = strchr(copy, '=');
	if (!value || value == copy || !value[1]) {
		free(copy);
		return cli_usage(verb, "--set %s: want [CACHE.]KNOB=VALUE", text);
	}
	*value++ = '\0';
	errno = 0;
	ret_knob->value = strtoll(value, &end, 0);
	if (*end || errno) {
		free(copy);
		return cli_usage(verb, "--set %s: the value is not a number", text);
	}
	dot = strrchr(copy, '.');
	if (dot)
		*dot = '\0';
	ret_knob->cache = dot ? copy : NULL;
	ret_knob->knob = dot ? dot + 1 : copy;
	return 0;
}

static int take_knobs(const char *verb, struct replay_config *cfg)
{
	static struct replay_knob knobs[SETS_MAX]; /* they live as long as the process */
	size_t nr = 0;

	for (; opt.set && opt.set[nr]; nr++) {
		int code = nr == SETS_MAX ? cli_usage(verb, "--set: at most %d times", SETS_MAX) :
					    take_knob(verb, opt.set[nr], &knobs[nr]);

		if (code)
			return code;
	}
	opt.knobs = knobs; /* kept as long as the process */
	cfg->knobs = knobs;
	cfg->nr_knobs = nr;
	return 0;
}

/* One "FIRST[-LAST]:NODE" at *@at; moves *@at behind it and its comma. */
static int topology_part(const char **at, unsigned long *first, unsigned long *last,
			 unsigned long *node)
{
	char *end;

	if (**at < '0' || **at > '9')
		return -1;
	*first = *last = strtoul(*at, &end, 10);
	if (*end == '-')
		*last = strtoul(end + 1, &end, 10);
	if (*end != ':' || end[1] < '0' || end[1] > '9')
		return -1;
	*node = strtoul(end + 1, &end, 10);
	if ((*end && *end != ',') || *last < *first)
		return -1;
	*at = *end ? end + 1 : end;
	return 0;
}

int cli_parse_topology(const char *text, uint16_t *ret_cpu_node, uint32_t capacity,
		       uint32_t *ret_nodes, struct tape_err *reterr)
{
	unsigned long first, last, node, cpus = 0, nodes = 0;
	const char *at = text;

	memset(ret_cpu_node, 0xff, capacity * sizeof(*ret_cpu_node));
	while (*at) {
		if (topology_part(&at, &first, &last, &node) < 0 || last >= capacity ||
		    node >= ALLOC_NODE_MAX)
			return tape_err_set(reterr, -TAPE_E_USAGE, "--topology %s: want "
					    "CPU[-CPU]:NODE,... with CPUs below %u and nodes "
					    "below %u", text, capacity, ALLOC_NODE_MAX);
		for (unsigned long cpu = first; cpu <= last; cpu++)
			ret_cpu_node[cpu] = (uint16_t)node;
		cpus = last >= cpus ? last + 1 : cpus;
		nodes = node >= nodes ? node + 1 : nodes;
	}
	for (unsigned long cpu = 0; cpu < cpus; cpu++)
		if (ret_cpu_node[cpu] == UINT16_MAX)
			return tape_err_set(reterr, -TAPE_E_USAGE, "--topology %s: names no node "
					    "for CPU %lu", text, cpu);
	*ret_nodes = (uint32_t)nodes;
	return (int)cpus;
}

/* "N" or "N,N,...": each a number of CPUs. */
static int take_cpus(const char *verb)
{
	const char *at = opt.cpus;

	opt.nr_cpus = 0;
	while (at && (*at || !opt.nr_cpus)) {
		char *end;
		unsigned long cpus = strtoul(at, &end, 10);

		if (*at < '0' || *at > '9' || (*end && *end != ',') || (*end == ',' && !end[1]) ||
		    cpus < 1 || cpus > ALLOC_CPU_MAX)
			return cli_usage(verb, "--cpus %s: want 1..%d, or several such numbers with "
					 "commas between", opt.cpus, ALLOC_CPU_MAX);
		if (opt.nr_cpus == CPUS_LIST_MAX)
			return cli_usage(verb, "--cpus: at most %d numbers", CPUS_LIST_MAX);
		opt.cpus_list[opt.nr_cpus++] = (uint32_t)cpus;
		at = *end ? end + 1 : end;
	}
	return 0;
}

static int take_machine(const char *verb, struct replay_config *cfg)
{
	static uint16_t cpu_node[ALLOC_CPU_MAX];
	struct tape_err err = { 0 };
	int cpus;

	if ((cpus = take_cpus(verb)))
		return cpus;
	if (opt.nodes != -1 && (opt.nodes < 1 || opt.nodes > ALLOC_NODE_MAX))
		return cli_usage(verb, "--nodes %d: want 1..%d", opt.nodes, ALLOC_NODE_MAX);
	cfg->cpus = opt.nr_cpus == 1 ? opt.cpus_list[0] : 0;
	cfg->nodes = opt.nodes > 0 ? (uint32_t)opt.nodes : 0;
	if (!opt.topology)
		return 0;
	if (cfg->nodes)
		return cli_usage(verb, "--topology and --nodes exclude each other");
	cpus = cli_parse_topology(opt.topology, cpu_node, ALLOC_CPU_MAX, &cfg->nodes, &err);
	if (cpus < 0)
		return cli_fail(verb, cpus, &err);
	if (opt.cpus && (opt.nr_cpus > 1 || cfg->cpus != (uint32_t)cpus))
		return cli_usage(verb, "--topology names %d CPUs, --cpus %s", cpus, opt.cpus);
	cfg->cpus = (uint32_t)cpus;
	cfg->cpu_node = cpu_node;
	return 0;
}

int cli_replay_config(const char *verb, struct replay_config *ret_cfg)
{
	struct replay_config cfg = REPLAY_CONFIG_DEFAULT;
	int code = take_choices(verb, &cfg);

	if (!code)
		code = take_record(verb, &cfg);
	if (!code)
		code = take_machine(verb, &cfg);
	if (!code && opt.nr_cpus > 1 &&
	    (strcmp(verb, "replay") || cfg.mode != REPLAY_SIMULATED || opt.scale != 1))
		code = cli_usage(verb, "--cpus %s: a curve is made by `replay --mode simulated`, "
				 "which scales by itself", opt.cpus);
	if (!code && opt.seed < 0)
		code = cli_usage(verb, "--seed %lld: want 0 or more", opt.seed);
	if (!code && (opt.scale < 1 || opt.scale > ALLOC_CPU_MAX))
		code = cli_usage(verb, "--scale %d: want 1..%d", opt.scale, ALLOC_CPU_MAX);
	if (!code && opt.record_limit < 0)
		code = cli_usage(verb, "--record-limit %lld: want 0 or more rows", opt.record_limit);
	if (!code && opt.jitter_ns < 0)
		code = cli_usage(verb, "--jitter %lld: want 0 or more ns", opt.jitter_ns);
	if (!code && (opt.laps < 1 || opt.repeat < 1))
		code = cli_usage(verb, "--laps and --repeat: want 1 or more");
	if (!code)
		code = take_knobs(verb, &cfg);
	if (code)
		return code;
	cfg.seed = (uint64_t)opt.seed;
	cfg.jitter_ns = (uint64_t)opt.jitter_ns;
	cfg.record_limit = (uint64_t)opt.record_limit;
	cfg.scale = (uint32_t)opt.scale;
	cfg.costs = opt.costs;
	cfg.laps = (uint32_t)opt.laps;
	cfg.follow = opt.follow;
	cfg.strict = opt.strict;
	cfg.count_from = opt.count_from;
	cfg.count_to = opt.count_to;
	*ret_cfg = cfg;
	return 0;
}

uint32_t cli_replay_curve(const uint32_t **ret_cpus)
{
	*ret_cpus = opt.cpus_list;
	return opt.nr_cpus > 1 ? opt.nr_cpus : 0;
}

bool cli_replay_record_given(void)
{
	return opt.record != NULL;
}

uint32_t cli_replay_repeat(void)
{
	return (uint32_t)opt.repeat;
}
