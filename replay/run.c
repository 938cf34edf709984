/* SPDX-License-Identifier: MIT */
/* The engines by mode. */
#include "base/cleanup.h"
#include "replay/modes_internal.h"

static void plan_destroyp(struct replay_plan **p)
{
	replay_plan_destroy(*p);
}

static const struct {
	const char *name;
	enum alloc_sync_kind sync;
	replay_mode_fn run; /* NULL: not there yet */
} modes[REPLAY_MODE_MAX] = {
	[REPLAY_ORDERED] = { "ordered", ALLOC_SYNC_SERIAL, replay_ordered },
	[REPLAY_PARALLEL] = { "parallel", ALLOC_SYNC_NATIVE, NULL },
	[REPLAY_SIMULATED] = { "simulated", ALLOC_SYNC_SIM, replay_simulated },
};

const char *replay_mode_name(enum replay_mode mode)
{
	return modes[mode].name;
}

const char *replay_pace_name(enum replay_pace pace)
{
	static const char *const names[REPLAY_PACE_MAX] = { "trace", "asap", "serial" };

	return names[pace];
}

int replay_run(struct tape *t, const struct replay_config *cfg, struct replay_result **ret_result,
	       struct tape_err *reterr)
{
	TAPE_CLEANUP(plan_destroyp) struct replay_plan *p = NULL;
	int rc;

	if (!modes[cfg->mode].run)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--mode %s: not built in yet; use "
				    "ordered", modes[cfg->mode].name);
	if (cfg->mode != REPLAY_SIMULATED && (cfg->pace || cfg->scale > 1 || cfg->costs))
		return tape_err_set(reterr, -TAPE_E_USAGE, "--pace, --scale and --costs belong to "
				    "--mode simulated");
	if (cfg->record && cfg->mode == REPLAY_PARALLEL)
		return tape_err_set(reterr, -TAPE_E_USAGE, "--record: rows are recorded by the modes "
				    "ordered and simulated");
	rc = replay_plan_create(t, cfg, modes[cfg->mode].sync, &p, reterr);
	return rc < 0 ? rc : modes[cfg->mode].run(p, ret_result, reterr);
}
