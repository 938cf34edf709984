/* SPDX-License-Identifier: MIT */
/* Where the CTF recordings of a folder tree are (ctf_reader.h). */
#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>

#include "capture/ctf_reader.h"

#define FOLDERS_MAX 65536u
#define DEPTH_MAX 8

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int add(struct ctf_folders *f, const char *metadata, struct tape_err *reterr)
{
	char **grown = f->nr < FOLDERS_MAX ? realloc(f->paths, (f->nr + 1) * sizeof(*grown)) : NULL;
	const char *slash = strrchr(metadata, '/');

	if (grown)
		f->paths = grown;
	if (!grown || !(grown[f->nr] = strndup(metadata, (size_t)(slash - metadata))))
		return tape_err_set(reterr, f->nr < FOLDERS_MAX ? -ENOMEM : -TAPE_E_LIMIT,
				    "CTF (%s): more than %u folders, or no memory", metadata,
				    FOLDERS_MAX);
	f->nr++;
	return 0;
}

int ctf_folders_find(const char *path, struct ctf_folders *ret_folders, struct tape_err *reterr)
{
	char *copy = strdup(path), *paths[2] = {copy, NULL};
	struct ctf_folders found = {0};
	int rc = 0;
	FTSENT *e;
	FTS *walk;

	walk = copy ? fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, by_name) : NULL;
	if (!walk)
		rc = tape_err_set(reterr, -errno, "CTF (%s): %s", path, strerror(errno));
	while (rc >= 0 && walk && (e = fts_read(walk))) {
		if (e->fts_info == FTS_D && e->fts_level > DEPTH_MAX)
			fts_set(walk, e, FTS_SKIP);
		else if (e->fts_info == FTS_F && !strcmp(e->fts_name, "metadata"))
			rc = add(&found, e->fts_path, reterr);
	}
	if (walk)
		fts_close(walk);
	free(copy);
	if (rc < 0)
		ctf_folders_fini(&found);
	else
		*ret_folders = found;
	return rc;
}

void ctf_folders_fini(struct ctf_folders *f)
{
	for (size_t i = 0; i < f->nr; i++)
		free(f->paths[i]);
	free(f->paths);
	f->paths = NULL;
	f->nr = 0;
}
