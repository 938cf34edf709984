/* SPDX-License-Identifier: MIT */
/*
 * Error codes, error text and exit codes.
 *
 * Fallible functions return 0 or a positive value on success and a negative code on failure:
 * either -errno or -TAPE_E_*.  The two ranges never meet.  Text for the user goes into an
 * optional last parameter `struct tape_err *reterr`; libraries never print and never exit.
 */
#ifndef SLABTAPE_BASE_ERROR_H
#define SLABTAPE_BASE_ERROR_H

#define TAPE_MUST_CHECK __attribute__((warn_unused_result))
#define TAPE_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

enum tape_error {
	TAPE_E_FIRST = 4000,
	TAPE_E_USAGE = TAPE_E_FIRST, /* wrong option or argument: exit 2 */
	TAPE_E_FORMAT,		     /* input is not what it claims to be, or is corrupt: exit 3 */
	TAPE_E_TRUNCATED,	     /* input ends too early: exit 3 */
	TAPE_E_VERSION,		     /* made by a newer format or an unsupported one: exit 3 */
	TAPE_E_LIMIT,		     /* a value exceeds a documented limit: exit 3 */
	TAPE_E_LOST,		     /* more events lost than allowed: exit 4 */
	TAPE_E_DIVERGED,	     /* impossible event under --strict: exit 5 */
	TAPE_E_TRACER,		     /* no tracer or no permission: exit 6 */
	TAPE_E_IO,		     /* I/O error or no space left: exit 7 */
	TAPE_E_INVARIANT,	     /* an allocator's own bookkeeping disagrees: exit 5 */
	TAPE_E_DIFFERS,		     /* a finding or a difference that was asked for: exit 1 */
	TAPE_E_MAX
};

/* Error text of one failed call.  Filled only on failure; the caller's memory, no ownership. */
struct tape_err {
	int code;	/* the negative value that was returned */
	char text[480]; /* "what (file, offset/seq/cpu): why; what to do", no newline */
};

/*
 * Fill @reterr (may be NULL) and return @code, so that callers can write
 * `return tape_err_set(reterr, -TAPE_E_FORMAT, "%s, offset %zu: ...", path, at);`.
 * @code: negative.  Thread safe.
 */
int tape_err_set(struct tape_err *reterr, int code, const char *fmt, ...) TAPE_PRINTF(3, 4);

/* Short text for a negative code, for use where no struct tape_err is at hand.  Static memory. */
const char *tape_err_name(int code);

/* The process exit code that design section 9 gives to a negative @code (0 for @code >= 0). */
int tape_exit_code(int code);

#endif
