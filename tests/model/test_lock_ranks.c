/* SPDX-License-Identifier: MIT */
/*
 * The lock order is enforced: every pair of ranks, taken by waiting and by trying.  Built once for
 * the serial and once for the native locks (ALLOC_SYNC), with assertions in every preset.  An
 * order that must abort runs in a child.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocator/sync.h"

static struct alloc_lock locks[2][ALLOC_RANK_MAX]; /* two of each rank */
static int bad;

static void first_then(int first, int second, bool try_second)
{
	alloc_lock_acquire(&locks[0][first], 0, ALLOC_PATH_FREE);
	if (try_second)
		alloc_lock_try(&locks[1][second], 0, ALLOC_PATH_FREE);
	else
		alloc_lock_acquire(&locks[1][second], 0, ALLOC_PATH_FREE);
	/* Not nested: released in the order they were taken. */
	alloc_lock_release(&locks[0][first], 0);
	alloc_lock_release(&locks[1][second], 0);
}

/* After a try out of order the highest rank held still counts. */
static void under_a_try(int try_rank, int held, int wanted)
{
	alloc_lock_acquire(&locks[0][held], 0, ALLOC_PATH_FREE);
	alloc_lock_try(&locks[0][try_rank], 0, ALLOC_PATH_FREE);
	alloc_lock_acquire(&locks[1][wanted], 0, ALLOC_PATH_FREE);
}

static void release_what_is_free(void)
{
	alloc_lock_release(&locks[0][ALLOC_RANK_SLAB], 0);
}

/* How a child that ran @fn ended: 0, or the signal that ended it. */
#define ENDED(call)                                                            \
	__extension__({                                                        \
		int status_ = 0;                                               \
		pid_t child_ = fork();                                         \
		if (!child_) {                                                 \
			quiet();                                               \
			call;                                                  \
			_exit(0);                                              \
		}                                                              \
		if (child_ < 0 || waitpid(child_, &status_, 0) != child_)      \
			exit(1);                                               \
		WIFSIGNALED(status_) ? WTERMSIG(status_) : WEXITSTATUS(status_); \
	})

static void quiet(void)
{
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	if (!freopen("/dev/null", "w", stderr))
		_exit(2);
}

static void expect(int ended, int wanted, const char *what, int a, int b)
{
	if (ended == wanted)
		return;
	fprintf(stderr, "not ok - %s, ranks %d and %d: ended with %d, wanted %d\n", what, a, b, ended,
		wanted);
	bad++;
}

int main(void)
{
	static const uint16_t cpu_node[2];
	struct alloc_machine_config mc = { .cpus = 2, .nodes = 1, .cpu_node = cpu_node,
					   .sync = ALLOC_SYNC ? ALLOC_SYNC_NATIVE
							      : ALLOC_SYNC_SERIAL };
	struct alloc_cache cache = { .name = "ranks" };

	if (alloc_machine_create(&mc, &cache.machine) < 0)
		return 1;
	for (int i = 0; i < 2; i++)
		for (int rank = 0; rank < ALLOC_RANK_MAX; rank++)
			alloc_lock_init(&locks[i][rank], &cache, 0, ALLOC_LOCK_LIST,
					(enum alloc_rank)rank);
	for (int a = 0; a < ALLOC_RANK_MAX; a++)
		for (int b = 0; b < ALLOC_RANK_MAX; b++) {
			expect(ENDED(first_then(a, b, false)), a < b ? 0 : SIGABRT, "waiting", a, b);
			expect(ENDED(first_then(a, b, true)), 0, "trying", a, b);
		}
	expect(ENDED(under_a_try(ALLOC_RANK_SLAB, ALLOC_RANK_NODE_LIST, ALLOC_RANK_NODE_LIST)),
	       SIGABRT, "under a try", ALLOC_RANK_NODE_LIST, ALLOC_RANK_NODE_LIST);
	expect(ENDED(under_a_try(ALLOC_RANK_SLAB, ALLOC_RANK_NODE_LIST, ALLOC_RANK_LEAF)), 0,
	       "under a try", ALLOC_RANK_NODE_LIST, ALLOC_RANK_LEAF);
	expect(ENDED(release_what_is_free()), SIGABRT, "release of a free lock", ALLOC_RANK_SLAB, 0);
	/* What one CPU holds does not concern another. */
	alloc_lock_acquire(&locks[0][ALLOC_RANK_LEAF], 0, ALLOC_PATH_FREE);
	expect(ENDED(alloc_lock_acquire(&locks[0][ALLOC_RANK_CPU], 1, ALLOC_PATH_FREE)), 0,
	       "another CPU", ALLOC_RANK_LEAF, ALLOC_RANK_CPU);
	alloc_lock_release(&locks[0][ALLOC_RANK_LEAF], 0);
	alloc_machine_destroy(cache.machine);
	return bad ? 1 : 0;
}
