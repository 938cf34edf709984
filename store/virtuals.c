/* SPDX-License-Identifier: MIT */
/*
 * The virtual tables of a tape, in one list.
 *
 * A table joins by a row in store_virtuals[] (the statement becomes part of the file format) and
 * by registering its module in store_modules_register().
 */
#include "store/store_internal.h"

const struct store_virtual store_virtuals[] = {
	{ NULL, NULL },
};

int store_modules_register(struct sqlite3 *db)
{
	(void)db;
	return SQLITE_OK;
}
