/* SPDX-License-Identifier: MIT */
/*
 * The page that a recorder through LTTng and the recorded programs share, besides LTTng itself:
 * one small file, mapped by all.  Used on both sides; includes nothing of the project.
 */
#ifndef SLABTAPE_CAPTURE_UST_LTTNG_CONTROL_H
#define SLABTAPE_CAPTURE_UST_LTTNG_CONTROL_H

#include <stdatomic.h>
#include <stdint.h>

#define LTTNG_CONTROL_ENV "SLABTAPE_LTTNG" /* path of the file */
#define LTTNG_CONTROL_MAGIC UINT64_C(0x3147545453534c54)
#define LTTNG_CONTROL_BYTES 4096

/* Sync: atomics. */
struct lttng_control {
	uint64_t magic;		    /* read-only after create */
	_Atomic uint32_t stopped;   /* recording has ended: write no more */
	_Atomic uint32_t attached;  /* programs that loaded the library */
	_Atomic uint32_t ready;	    /* of those: programs whose tracepoints were switched on */
	_Atomic uint32_t reason;    /* enum lttng_unready of the last that was not */
	_Atomic uint64_t lost;	    /* events of programs that were not, as far as counted */
	_Atomic uint64_t samples, sampled_ns; /* cost of one event, measured now and then */
};

enum lttng_unready { LTTNG_READY = 0, LTTNG_NO_LIBRARY, LTTNG_NOT_ENABLED };

#endif
