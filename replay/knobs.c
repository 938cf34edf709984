/* SPDX-License-Identifier: MIT */
/*
 * Knobs of a replay.  For each cache, in this order, later ones winning:
 *
 *	1. the tape's cache_knob rows: always for a script or a generated tape (which set them on
 *	   purpose); for a recording only on the recorded kernel's own variant, because elsewhere the recorded kernel's
 *	   defaults would hide the defaults of the variant under study
 *	   (no time passes in a script: rcu_delay_ns is 0 there, a grace period ends at once)
 *	2. --set KNOB=VALUE
 *	3. --set CACHE.KNOB=VALUE
 *
 * A knob of the tape that the variant does not have is left out; one of --set is an error.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "replay/plan.h"

static const struct alloc_knob *knob_find(const struct alloc_variant *v, const char *name)
{
	for (uint32_t i = 0; i < v->nr_knobs; i++)
		if (!strcmp(v->knobs[i].name, name))
			return &v->knobs[i];
	return NULL;
}

/* The engine's own knob, on variants that do not bring it. */
static bool engine_knob(const struct alloc_variant *v, const char *name)
{
	return !strcmp(name, "rcu_delay_ns") && !knob_find(v, name);
}

static int unknown_knob(const struct alloc_variant *v, const char *name, struct tape_err *reterr)
{
	char known[256] = "";
	size_t at = 0;

	for (uint32_t i = 0; i < v->nr_knobs && at < sizeof(known) - 1; i++) {
		int n = snprintf(known + at, sizeof(known) - at, " %s", v->knobs[i].name);

		at += n > 0 ? (size_t)n : 0;
	}
	return tape_err_set(reterr, -TAPE_E_USAGE, "--set %s: %s has no such knob; it has:%s%s",
			    name, v->name, known, engine_knob(v, "rcu_delay_ns") ? " rcu_delay_ns" : "");
}

static bool cache_named(const struct replay_plan *p, const char *name)
{
	TAPE_CLEANUP(tape_freep) struct tape_cache *rows = NULL;
	size_t nr = 0;

	if (tape_caches_get(p->tape, &rows, &nr, NULL) < 0)
		return true; /* reading the caches proper will say why */
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(rows[i].name, name))
			return true;
	return false;
}

int replay_check_knobs(const struct replay_plan *p, struct tape_err *reterr)
{
	for (size_t i = 0; i < p->cfg->nr_knobs; i++) {
		const struct replay_knob *set = &p->cfg->knobs[i];
		const struct alloc_knob *k = knob_find(p->variant, set->knob);

		if (!k && !engine_knob(p->variant, set->knob))
			return unknown_knob(p->variant, set->knob, reterr);
		if ((k && (set->value < k->min || set->value > k->max)) || (!k && set->value < 0))
			return tape_err_set(reterr, -TAPE_E_USAGE, "--set %s=%" PRId64 ": outside %"
					    PRId64 "..%" PRId64, set->knob, set->value,
					    k ? k->min : 0, k ? k->max : INT64_MAX);
		if (set->cache && !cache_named(p, set->cache))
			return tape_err_set(reterr, -TAPE_E_USAGE, "--set %s.%s: the tape has no "
					    "cache %s", set->cache, set->knob, set->cache);
	}
	return 0;
}

static int plan_knob_set(struct replay_plan_cache *c, const char *name, int64_t value,
			 struct tape_err *reterr)
{
	for (size_t i = 0; i < c->nr_knobs; i++)
		if (!strcmp(c->knobs[i].name, name)) {
			c->knobs[i].value = value;
			return 0;
		}
	if (c->nr_knobs == REPLAY_KNOBS_MAX)
		return tape_err_set(reterr, -TAPE_E_LIMIT, "cache %s: more than %u knobs",
				    c->row.name, REPLAY_KNOBS_MAX);
	c->knobs[c->nr_knobs].name = strdup(name);
	if (!c->knobs[c->nr_knobs].name)
		return tape_err_set(reterr, -ENOMEM, "knobs: out of memory");
	c->knobs[c->nr_knobs++].value = value;
	return 0;
}

/* Is the variant the allocator of the kernel that was recorded ("6.1.192" and "slub-6.1")? */
static bool is_recorded_kernel(struct replay_plan *p)
{
	TAPE_CLEANUP(tape_freep) char *kernel = NULL;
	const char *version = strchr(p->variant->name, '-');
	size_t len;

	if (!version || tape_meta_get(p->tape, "kernel", &kernel, NULL) < 0 || !kernel)
		return false;
	len = strlen(++version);
	return !strncmp(kernel, version, len) && (!kernel[len] || strchr(".-", kernel[len]));
}

/*
 * Value of a tape's knob; false: leave it out.  A knob that the variant fixes at creation time and
 * a value outside the variant's range are left out as well: they were possible elsewhere.
 */
static bool tape_knob_value(struct replay_plan *p, const struct replay_plan_cache *c,
			    const struct alloc_knob *k, int64_t *ret_value)
{
	TAPE_CLEANUP(tape_freep) char *text = NULL;
	char *end;

	if (tape_knob_get(p->tape, c->row.id, k->name, &text, NULL) < 0 || !text)
		return false;
	*ret_value = strtoll(text, &end, 10);
	return end != text && *ret_value >= k->min && *ret_value <= k->max;
}

int replay_plan_knobs(struct replay_plan *p, struct replay_plan_cache *c, struct tape_err *reterr)
{
	const struct replay_config *cfg = p->cfg;
	int64_t value;
	int rc = 0;

	if (p->script && knob_find(p->variant, "rcu_delay_ns"))
		rc = plan_knob_set(c, "rcu_delay_ns", 0, reterr);
	if (p->knobs_chosen || is_recorded_kernel(p))
		for (uint32_t i = 0; i < p->variant->nr_knobs && rc >= 0; i++)
			if (tape_knob_value(p, c, &p->variant->knobs[i], &value))
				rc = plan_knob_set(c, p->variant->knobs[i].name, value, reterr);
	for (int named = 0; named < 2; named++)
		for (size_t i = 0; i < cfg->nr_knobs && rc >= 0; i++) {
			const struct replay_knob *set = &cfg->knobs[i];

			if (!!set->cache != named || (named && strcmp(set->cache, c->row.name)))
				continue;
			if (engine_knob(p->variant, set->knob))
				p->rcu_delay_ns = (uint64_t)set->value;
			else
				rc = plan_knob_set(c, set->knob, set->value, reterr);
		}
	return rc;
}
