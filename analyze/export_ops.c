/* SPDX-License-Identifier: MIT */
#include "analyze/export_ops.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/tape.h"

/* Rows of a bulk call that were seen so far: one line of the script. */
struct bulk_line {
	uint32_t bulk; /* 0: none open */
	uint64_t next_id, objs;
};

struct ops_export {
	FILE *out;
	uint64_t id_unit; /* address = (id + 1) * id_unit */
	struct bulk_line open;
};

static const char letters[TAPE_OP_MAX] = {
	[TAPE_OP_ALLOC] = 'a',	      [TAPE_OP_FREE] = 'f',	    [TAPE_OP_FREE_RCU] = 'k',
	[TAPE_OP_ALLOC_BULK] = 'A',   [TAPE_OP_FREE_BULK] = 'R',    [TAPE_OP_PREFILL] = 'P',
	[TAPE_OP_SHEAF_ALLOC] = 'p',  [TAPE_OP_SHEAF_REFILL] = 'X', [TAPE_OP_SHEAF_RETURN] = 'Q',
	[TAPE_OP_FLUSH] = 'F',	      [TAPE_OP_SHRINK] = 's',	    [TAPE_OP_RCU_BARRIER] = 'b',
	[TAPE_OP_PAGE_LIMIT] = 'O',   [TAPE_OP_CHECKPOINT] = 'c',
};

static void close_bulk(struct ops_export *x, bool allocates)
{
	if (x->open.bulk && allocates)
		fprintf(x->out, " %llu", (unsigned long long)x->open.objs);
	if (x->open.bulk)
		fputc('\n', x->out);
	x->open.bulk = 0;
}

/* A: ids of one call are consecutive, so the first and their number say all.  R: each id. */
static void print_bulk(struct ops_export *x, const struct tape_event *ev, uint64_t id)
{
	bool first = !x->open.bulk;

	if (first) {
		fprintf(x->out, "%c %u", letters[ev->op], ev->cpu);
		x->open = (struct bulk_line){ .bulk = ev->bulk };
	}
	if (first || ev->op == TAPE_OP_FREE_BULK)
		fprintf(x->out, " %llu", (unsigned long long)id);
	x->open.objs++;
}

static void print_single(struct ops_export *x, const struct tape_event *ev, uint64_t id)
{
	unsigned long long name = id;
	char letter = letters[ev->op];

	switch (ev->op) {
	case TAPE_OP_ALLOC:
		if (ev->node_req != TAPE_NODE_NONE)
			fprintf(x->out, "n %u %d %llu\n", ev->cpu, ev->node_req, name);
		else
			fprintf(x->out, "a %u %llu\n", ev->cpu, name);
		break;
	case TAPE_OP_FREE:
	case TAPE_OP_FREE_RCU:
		fprintf(x->out, "%c %u %llu\n", letter, ev->cpu, name);
		break;
	case TAPE_OP_PREFILL:
	case TAPE_OP_SHEAF_REFILL:
		fprintf(x->out, "%c %u %u %u\n", letter, ev->cpu, tape_sheaf_slot(ev->arg),
			tape_sheaf_objs(ev->arg));
		break;
	case TAPE_OP_SHEAF_ALLOC:
		fprintf(x->out, "p %u %lld %llu\n", ev->cpu, (long long)ev->arg, name);
		break;
	case TAPE_OP_SHEAF_RETURN:
		fprintf(x->out, "Q %u %lld\n", ev->cpu, (long long)ev->arg);
		break;
	case TAPE_OP_FLUSH:
		fprintf(x->out, "F %u\n", ev->cpu);
		break;
	case TAPE_OP_PAGE_LIMIT:
		fprintf(x->out, "O %lld\n", (long long)ev->arg);
		break;
	default:
		fprintf(x->out, "%c\n", letter);
	}
}

static int print_event(struct ops_export *x, const struct tape_event *ev, bool *bulk_allocates,
		       struct tape_err *reterr)
{
	uint64_t id = ev->address / x->id_unit - 1;

	if (!letters[ev->op])
		return tape_err_set(reterr, -TAPE_E_FORMAT, "export: a script has no %s operation",
				    tape_op_name(ev->op));
	if (x->open.bulk && x->open.bulk != ev->bulk)
		close_bulk(x, *bulk_allocates);
	if (ev->bulk) {
		*bulk_allocates = ev->op == TAPE_OP_ALLOC_BULK;
		print_bulk(x, ev, id);
	} else {
		print_single(x, ev, id);
	}
	return 0;
}

static int print_header(struct ops_export *x, struct tape *t, struct tape_err *reterr)
{
	TAPE_CLEANUP(tape_freep) char *header = NULL;
	int64_t unit = tape_meta_get_int(t, "ops.id_unit", 0);
	int rc = tape_meta_get(t, "ops.header", &header, reterr);

	if (rc < 0)
		return rc;
	if (!header || unit <= 0)
		return tape_err_set(reterr, -TAPE_E_FORMAT,
				    "export (%s): not imported from an .ops script",
				    tape_path(t));
	if (!tape_meta_get_int(t, "complete", 0))
		return tape_err_set(reterr, -TAPE_E_TRUNCATED,
				    "export (%s): the tape is incomplete", tape_path(t));
	x->id_unit = (uint64_t)unit;
	fprintf(x->out, "%sops\n", header);
	return 0;
}

int export_ops(struct tape *t, FILE *out, struct tape_err *reterr)
{
	struct ops_export x = { .out = out };
	struct tape_range range = TAPE_RANGE_ALL;
	const struct tape_batch *batch;
	struct tape_reader *reader = NULL;
	bool bulk_allocates = false;
	int rc = print_header(&x, t, reterr);

	if (rc < 0)
		return rc;
	rc = tape_reader_open(t, &range, TAPE_COLS_REPLAY | 1u << TAPE_COL_ADDRESS, &reader,
			      reterr);
	while (rc >= 0 && (rc = tape_reader_next(reader, &batch, reterr)) > 0) {
		for (uint32_t i = 0; rc >= 0 && i < batch->events; i++) {
			struct tape_event ev;

			tape_batch_get(batch, i, &ev);
			rc = print_event(&x, &ev, &bulk_allocates, reterr);
		}
	}
	tape_reader_close(reader);
	if (rc < 0)
		return rc;
	close_bulk(&x, bulk_allocates);
	fputs("end\n", out);
	if (fflush(out) || ferror(out))
		return tape_err_set(reterr, -TAPE_E_IO, "export: cannot write: %s",
				    strerror(errno));
	return 0;
}
