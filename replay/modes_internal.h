/* SPDX-License-Identifier: MIT */
/* One entry point per engine; run.c picks. */
#ifndef SLABTAPE_REPLAY_MODES_INTERNAL_H
#define SLABTAPE_REPLAY_MODES_INTERNAL_H

#include "replay/plan.h"

typedef int (*replay_mode_fn)(struct replay_plan *p, struct replay_result **ret_result,
			      struct tape_err *reterr);

int replay_ordered(struct replay_plan *p, struct replay_result **ret_result,
		   struct tape_err *reterr) TAPE_MUST_CHECK;
int replay_simulated(struct replay_plan *p, struct replay_result **ret_result,
		     struct tape_err *reterr) TAPE_MUST_CHECK;

#endif
