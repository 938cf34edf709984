/* SPDX-License-Identifier: MIT */
#include "capture/record_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX_MAX 32 /* ".UID.PID.XXXXXX" */

void record_dir_remove(const char *path)
{
	char *copy = strdup(path), *paths[2] = {copy, NULL};
	FTS *walk = copy ? fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
	FTSENT *e;

	while (walk && (e = fts_read(walk))) {
		if (e->fts_info == FTS_DP)
			rmdir(e->fts_path);
		else if (e->fts_info != FTS_D)
			unlink(e->fts_path);
	}
	if (walk)
		fts_close(walk);
	free(copy);
}

static void remove_stale(const char *base, const char *prefix)
{
	const size_t len = strlen(prefix);
	struct dirent *entry;
	DIR *d = opendir(base);

	while (d && (entry = readdir(d))) {
		unsigned long uid, pid;
		char path[512], *end;

		if (strncmp(entry->d_name, prefix, len) || entry->d_name[len] != '.')
			continue;
		uid = strtoul(entry->d_name + len + 1, &end, 10);
		pid = *end == '.' ? strtoul(end + 1, &end, 10) : 0;
		if (uid != getuid() || !pid || *end != '.')
			continue;
		snprintf(path, sizeof(path), "%s/%.200s", base, entry->d_name);
		if (kill((pid_t)pid, 0) && errno == ESRCH)
			record_dir_remove(path);
	}
	if (d)
		closedir(d);
}

int record_dir_make(const char *prefix, const char *const *bases, size_t nr, size_t path_max,
		    const char *what, char **ret_dir, struct tape_err *reterr)
{
	int why = ENOENT;

	for (size_t i = 0; i < nr; i++) {
		char *dir;

		if (!bases[i] || *bases[i] != '/' ||
		    strlen(bases[i]) + strlen(prefix) + SUFFIX_MAX > path_max)
			continue;
		remove_stale(bases[i], prefix);
		if (asprintf(&dir, "%s/%s.%u.%d.XXXXXX", bases[i], prefix, getuid(),
			     (int)getpid()) < 0)
			return tape_err_set(reterr, -ENOMEM, "out of memory");
		if (mkdtemp(dir)) {
			*ret_dir = dir;
			return 0;
		}
		why = errno;
		free(dir);
	}
	return tape_err_set(reterr, -TAPE_E_IO, "no folder for %s: set TMPDIR to a short path of a "
			    "folder that can be written: %s", what, strerror(why));
}
