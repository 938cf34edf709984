/* SPDX-License-Identifier: MIT */
/*
 * .ops scripts: header lines, then `ops`, one operation a line, then `end`.
 *
 * One operation is one tick: its rows have ts = number of the operation, and no time passes for
 * timers.  The script's single cache is cache 1, named after the case.  Each id that is allocated
 * is an object whether or not a variant can serve it.  The id stands in the address column as
 * (id + 1) * OPS_ID_UNIT, so that the script can be exported again (analyze/export_ops.c).
 */
#include "capture/import_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/input.h"
#include "capture/ops_script.h"
#include "capture/slots.h"
#include "store/tape.h"

enum id_state { ID_UNUSED = 0, ID_LIVE, ID_FREED };

struct ops_id {
	uint64_t object;
	uint32_t slot;
	uint32_t state; /* enum id_state */
};

struct ops_import {
	struct capture_input *in;
	struct tape *t;
	struct capture_stats *stats;
	struct tape_err *reterr;
	struct ops_header header;
	struct capture_slots slots;
	struct ops_id *ids;
	size_t ids_nr;
	uint64_t next_object, tick;
	uint32_t next_bulk;
	const char *at; /* rest of the line */
	struct tape_event ev;
};

static int bad(struct ops_import *im, const char *what)
{
	return ops_script_bad(im->in, im->reterr, "%s", what);
}

/* The next number of the line, below @limit. */
static int number(struct ops_import *im, uint64_t limit, const char *name, uint64_t *ret)
{
	uint64_t value = 0;
	const char *p = im->at;

	while (*p == ' ' || *p == '\t')
		p++;
	if (*p < '0' || *p > '9')
		return ops_script_bad(im->in, im->reterr, "%s expected at \"%s\"", name, p);
	for (; *p >= '0' && *p <= '9'; p++) {
		value = value * 10 + (uint64_t)(*p - '0');
		if (value >= limit)
			return ops_script_bad(im->in, im->reterr, "%s must be below %llu", name,
					      (unsigned long long)limit);
	}
	im->at = p;
	*ret = value;
	return 0;
}

static bool more_on_line(struct ops_import *im)
{
	while (*im->at == ' ' || *im->at == '\t')
		im->at++;
	return *im->at != '\0';
}

static int cpu(struct ops_import *im)
{
	uint64_t value;
	int rc = number(im, im->header.cpus, "CPU", &value);

	if (rc < 0)
		return rc;
	im->ev.cpu = (uint16_t)value;
	return 0;
}

static int append(struct ops_import *im)
{
	im->stats->tape_events++;
	return tape_writer_append(im->t, &im->ev, NULL, im->reterr);
}

/* Room for @id in the table, which grows with the ids the script really uses. */
static int reach_id(struct ops_import *im, uint64_t id)
{
	size_t nr = im->ids_nr ? im->ids_nr : 1024;
	struct ops_id *ids;

	if (id < im->ids_nr)
		return 0;
	while (nr <= id)
		nr *= 2;
	ids = realloc(im->ids, nr * sizeof(*ids));
	if (!ids)
		return tape_err_set(im->reterr, -ENOMEM, "out of memory");
	memset(ids + im->ids_nr, 0, (nr - im->ids_nr) * sizeof(*ids));
	im->ids = ids;
	im->ids_nr = nr;
	return 0;
}

/* Append the allocation row of @id; im->ev holds op, cpu, bulk and so on. */
static int allocate(struct ops_import *im, uint64_t id)
{
	int rc = reach_id(im, id);
	struct ops_id *entry;

	if (rc < 0)
		return rc;
	entry = &im->ids[id];
	if (entry->state == ID_LIVE)
		return ops_script_bad(im->in, im->reterr, "id %llu is allocated already",
				      (unsigned long long)id);
	rc = capture_slots_take(&im->slots, &entry->slot);
	if (rc < 0)
		return tape_err_set(im->reterr, rc, "out of memory");
	entry->object = im->next_object++;
	entry->state = ID_LIVE;
	im->ev.object = entry->object;
	im->ev.slot = entry->slot;
	im->ev.address = (id + 1) * OPS_ID_UNIT;
	im->ev.size = im->header.size;
	im->ev.gfp = im->header.gfp;
	return append(im);
}

static int release(struct ops_import *im, uint64_t id)
{
	struct ops_id *entry = id < im->ids_nr ? &im->ids[id] : NULL;

	if (!entry || entry->state != ID_LIVE)
		return ops_script_bad(im->in, im->reterr, "id %llu is %s", (unsigned long long)id,
				      entry && entry->state == ID_FREED ? "freed already"
									: "not allocated");
	entry->state = ID_FREED;
	capture_slots_put(&im->slots, entry->slot);
	im->ev.object = entry->object;
	im->ev.slot = entry->slot;
	im->ev.address = (id + 1) * OPS_ID_UNIT;
	return append(im);
}

static int op_alloc(struct ops_import *im)
{
	uint64_t id;
	int rc = number(im, im->header.ids, "ID", &id);

	im->ev.op = TAPE_OP_ALLOC;
	return rc < 0 ? rc : allocate(im, id);
}

static int op_alloc_node(struct ops_import *im)
{
	uint64_t node;
	int rc = number(im, im->header.nodes, "NODE", &node);

	if (rc < 0)
		return rc;
	im->ev.node_req = (int16_t)node;
	return op_alloc(im);
}

static int op_free(struct ops_import *im)
{
	uint64_t id;
	int rc = number(im, im->header.ids, "ID", &id);

	im->ev.op = TAPE_OP_FREE;
	return rc < 0 ? rc : release(im, id);
}

static int op_free_rcu(struct ops_import *im)
{
	uint64_t id;
	int rc = number(im, im->header.ids, "ID", &id);

	im->ev.op = TAPE_OP_FREE_RCU;
	return rc < 0 ? rc : release(im, id);
}

static int op_alloc_bulk(struct ops_import *im)
{
	uint64_t id, nr;
	int rc = number(im, im->header.ids, "ID", &id);

	if (rc >= 0)
		rc = number(im, im->header.ids + 1, "N", &nr);
	if (rc < 0)
		return rc;
	if (!nr || nr > im->header.ids - id)
		return bad(im, "N must be at least 1 and ID + N within the ids of the script");
	im->ev.op = TAPE_OP_ALLOC_BULK;
	im->ev.bulk = ++im->next_bulk;
	for (uint64_t i = 0; rc >= 0 && i < nr; i++)
		rc = allocate(im, id + i);
	return rc;
}

static int op_free_bulk(struct ops_import *im)
{
	int rc;

	im->ev.op = TAPE_OP_FREE_BULK;
	im->ev.bulk = ++im->next_bulk;
	do {
		uint64_t id;

		rc = number(im, im->header.ids, "ID", &id);
		if (rc >= 0)
			rc = release(im, id);
	} while (rc >= 0 && more_on_line(im));
	return rc;
}

/* P and X: a sheaf and a number of objects. */
static int op_sheaf(struct ops_import *im, uint8_t op)
{
	uint64_t slot, nr;
	int rc = number(im, OPS_SHEAF_MAX, "SLOT", &slot);

	if (rc >= 0)
		rc = number(im, UINT32_MAX, "N", &nr);
	if (rc < 0)
		return rc;
	im->ev.op = op;
	im->ev.arg = tape_sheaf_arg((uint32_t)slot, (uint32_t)nr);
	return append(im);
}

static int op_prefill(struct ops_import *im)
{
	return op_sheaf(im, TAPE_OP_PREFILL);
}

static int op_sheaf_refill(struct ops_import *im)
{
	return op_sheaf(im, TAPE_OP_SHEAF_REFILL);
}

static int op_sheaf_alloc(struct ops_import *im)
{
	uint64_t slot, id;
	int rc = number(im, OPS_SHEAF_MAX, "SLOT", &slot);

	if (rc >= 0)
		rc = number(im, im->header.ids, "ID", &id);
	if (rc < 0)
		return rc;
	im->ev.op = TAPE_OP_SHEAF_ALLOC;
	im->ev.arg = (int64_t)slot;
	return allocate(im, id);
}

static int op_sheaf_return(struct ops_import *im)
{
	uint64_t slot;
	int rc = number(im, OPS_SHEAF_MAX, "SLOT", &slot);

	if (rc < 0)
		return rc;
	im->ev.op = TAPE_OP_SHEAF_RETURN;
	im->ev.arg = (int64_t)slot;
	return append(im);
}

static int op_page_limit(struct ops_import *im)
{
	uint64_t level;
	int rc = number(im, 3, "LEVEL", &level);

	if (rc < 0)
		return rc;
	im->ev.op = TAPE_OP_PAGE_LIMIT;
	im->ev.arg = (int64_t)level;
	return append(im);
}

static int op_plain(struct ops_import *im)
{
	return append(im);
}

static const struct ops_kind {
	char letter;
	bool has_cpu;
	uint8_t op; /* of the plain ones */
	int (*run)(struct ops_import *im);
} kinds[] = {
	{ 'a', true, 0, op_alloc },
	{ 'f', true, 0, op_free },
	{ 'n', true, 0, op_alloc_node },
	{ 'k', true, 0, op_free_rcu },
	{ 'A', true, 0, op_alloc_bulk },
	{ 'R', true, 0, op_free_bulk },
	{ 'P', true, 0, op_prefill },
	{ 'p', true, 0, op_sheaf_alloc },
	{ 'X', true, 0, op_sheaf_refill },
	{ 'Q', true, 0, op_sheaf_return },
	{ 'F', true, TAPE_OP_FLUSH, op_plain },
	{ 's', false, TAPE_OP_SHRINK, op_plain },
	{ 'b', false, TAPE_OP_RCU_BARRIER, op_plain },
	{ 'c', false, TAPE_OP_CHECKPOINT, op_plain },
	{ 'O', false, 0, op_page_limit },
};

static const struct ops_kind *find_kind(char letter)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].letter == letter)
			return &kinds[i];
	return NULL;
}

static int one_op(struct ops_import *im, const char *line)
{
	const struct ops_kind *kind = find_kind(line[0]);
	int rc = 0;

	if (!kind || (line[1] && line[1] != ' ' && line[1] != '\t'))
		return ops_script_bad(im->in, im->reterr, "no such operation: \"%.40s\"", line);
	im->at = line + 1;
	im->ev = tape_event_blank();
	im->ev.ts = im->ev.ts_lo = im->ev.ts_hi = im->tick++;
	im->ev.cache = OPS_CACHE;
	im->ev.op = kind->op;
	if (kind->has_cpu)
		rc = cpu(im);
	if (rc >= 0)
		rc = kind->run(im);
	if (rc >= 0 && more_on_line(im))
		return ops_script_bad(im->in, im->reterr, "unexpected \"%.40s\"", im->at);
	im->stats->script_ops++;
	return rc;
}

static int all_ops(struct ops_import *im)
{
	char *line;
	int rc;

	while ((rc = ops_script_line(im->in, &line, im->reterr)) > 0) {
		if (!strcmp(line, "end"))
			return 0;
		rc = one_op(im, line);
		if (rc < 0)
			return rc;
	}
	if (rc < 0)
		return rc;
	return tape_err_set(im->reterr, -TAPE_E_TRUNCATED,
			    "%s:%llu: the script ends without `end`; it is truncated",
			    capture_input_path(im->in),
			    (unsigned long long)capture_input_lineno(im->in) + 1);
}

int import_ops(struct capture_input *in, const struct import_job *job, struct tape_err *reterr)
{
	struct ops_import im = { .in = in, .t = job->t, .stats = job->stats, .reterr = reterr };
	int rc = ops_header_read(in, &im.header, reterr);

	if (rc >= 0)
		rc = ops_header_store(&im.header, job->t, reterr);
	if (rc >= 0 && capture_slots_init(&im.slots) < 0)
		rc = tape_err_set(reterr, -ENOMEM, "out of memory");
	if (rc >= 0) {
		rc = all_ops(&im);
		capture_slots_fini(&im.slots);
	}
	free(im.ids);
	ops_header_fini(&im.header);
	return rc;
}
