/* SPDX-License-Identifier: MIT */
#include "replay/stream.h"

#include <errno.h>
#include <stdlib.h>

struct replay_stream {
	struct tape_reader *reader;
};

int replay_stream_open(const struct replay_plan *p, uint32_t columns,
		       struct replay_stream **ret_stream, struct tape_err *reterr)
{
	const struct tape_range all = TAPE_RANGE_ALL;
	struct replay_stream *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return tape_err_set(reterr, -ENOMEM, "replay: out of memory");
	rc = tape_reader_open(p->tape, &all, TAPE_COLS_REPLAY | columns, &s->reader, reterr);
	if (rc < 0) {
		free(s);
		return rc;
	}
	*ret_stream = s;
	return 0;
}

int replay_stream_next(struct replay_stream *s, const struct tape_batch **ret_batch,
		       struct tape_err *reterr)
{
	return tape_reader_next(s->reader, ret_batch, reterr);
}

void replay_stream_close(struct replay_stream *s)
{
	if (!s)
		return;
	tape_reader_close(s->reader);
	free(s);
}
