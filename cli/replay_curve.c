/* SPDX-License-Identifier: MIT */
#include "cli/replay_curve.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/replay_print.h"
#include "store/tape.h"

int cli_curve_scale(struct tape *t, uint32_t cpus, uint32_t *ret_scale, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) struct tape_machine *m = malloc(sizeof(*m));
	int rc = m ? tape_machine_get(t, m, reterr) : tape_err_set(reterr, -ENOMEM, "out of memory");

	if (rc < 0)
		return rc;
	if (!m->cpus || cpus % m->cpus)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--cpus %u: a curve makes copies of the "
				    "recording, whose machine has %u CPUs; give multiples of %u",
				    cpus, m->cpus, m->cpus);
	*ret_scale = cpus / m->cpus;
	return 0;
}

static double share(uint64_t part, double whole)
{
	return whole > 0 ? (double)part / whole : 0;
}

static void add_result(struct cli_curve_point *p, const struct replay_result *r, uint32_t nr)
{
	const struct replay_sim *s = r->sim;
	const double cpu_ns = (double)s->virtual_ns * r->cpus;
	uint64_t waited_ns = 0, list_ns = 0, taken = 0, contended = 0;

	for (size_t i = 0; i < s->nr_locks; i++) {
		const struct replay_lock *l = &s->locks[i];

		waited_ns += l->wait_ns;
		if (strcmp(l->lock, "list_lock"))
			continue;
		list_ns += l->wait_ns;
		taken += l->acquisitions;
		contended += l->contended;
	}
	if (s->ops_per_s < p->ops_per_s_min)
		p->ops_per_s_min = s->ops_per_s;
	if (s->ops_per_s > p->ops_per_s_max)
		p->ops_per_s_max = s->ops_per_s;
	p->ops_per_s += s->ops_per_s / nr;
	p->virtual_ns += (double)s->virtual_ns / nr;
	p->wait_share += share(waited_ns, cpu_ns) / nr;
	p->list_lock_share += share(list_ns, cpu_ns) / nr;
	p->contended_share += share(contended, (double)taken) / nr;
	p->dependency_share += share(s->dependency_wait_ns, cpu_ns) / nr;
}

struct cli_curve_point cli_curve_point_of(struct replay_result *const *results, uint32_t nr)
{
	struct cli_curve_point p = { .cpus = results[0]->cpus, .nodes = results[0]->nodes,
				     .scale = results[0]->sim->scale, .repeats = nr,
				     .ops_per_s_min = results[0]->sim->ops_per_s };

	for (uint32_t i = 0; i < nr; i++)
		add_result(&p, results[i], nr);
	return p;
}

static int print_rows(const struct cli_curve_point *points, uint32_t nr, enum output_format format)
{
	static const char *const names[] = {
		"cpus", "nodes", "scale", "repeats", "ops_per_s", "ops_per_s_min", "ops_per_s_max",
		"virtual_ns", "wait_share", "list_lock_share", "list_lock_contended",
		"dependency_share", "speedup",
	};
	struct output *o = output_begin(stdout, format, sizeof(names) / sizeof(*names), names);

	if (!o)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		const struct cli_curve_point *p = &points[i];
		const double first = points[0].ops_per_s;

		output_uint(o, p->cpus);
		output_uint(o, p->nodes);
		output_uint(o, p->scale);
		output_uint(o, p->repeats);
		output_uint(o, (uint64_t)(p->ops_per_s + 0.5));
		output_uint(o, (uint64_t)(p->ops_per_s_min + 0.5));
		output_uint(o, (uint64_t)(p->ops_per_s_max + 0.5));
		output_uint(o, (uint64_t)(p->virtual_ns + 0.5));
		output_real(o, p->wait_share);
		output_real(o, p->list_lock_share);
		output_real(o, p->contended_share);
		output_real(o, p->dependency_share);
		output_real(o, first > 0 ? p->ops_per_s / first : 0);
	}
	return output_end(o);
}

int cli_curve_print(const struct cli_curve_point *points, uint32_t nr,
		    const struct replay_result *r, enum output_format format)
{
	int rc;

	if (format == OUTPUT_CSV)
		return print_rows(points, nr, format);
	if (format != OUTPUT_JSON) {
		printf("%s, %s, pace %s, seed %" PRIu64 "\n", r->variant->name,
		       replay_mode_name(r->mode), replay_pace_name(r->sim->pace), r->seed);
		cli_print_costs(r->sim->costs);
		return print_rows(points, nr, format);
	}
	printf("{\n\"slabtape\": \"%s\", \"format\": 1, \"variant\": \"%s\", \"mode\": \"%s\", "
	       "\"pace\": \"%s\", \"seed\": %" PRIu64 ",\n\"costs\": ", SLABTAPE_VERSION,
	       r->variant->name, replay_mode_name(r->mode), replay_pace_name(r->sim->pace), r->seed);
	json_dumpf(r->sim->costs, stdout, JSON_COMPACT);
	printf(",\n\"curve\": ");
	rc = print_rows(points, nr, format);
	puts("}");
	return rc;
}
