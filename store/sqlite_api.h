/* SPDX-License-Identifier: MIT */
/*
 * The one place that says how code in store/ reaches SQLite.
 *
 * The same sources are built twice: into the program, where they call the library it is linked
 * with, and into the loadable extension (SLABTAPE_EXTENSION), where every call must go through
 * the table of functions that the loading program handed over: its SQLite may be another one.
 */
#ifndef SLABTAPE_STORE_SQLITE_API_H
#define SLABTAPE_STORE_SQLITE_API_H

#ifdef SLABTAPE_EXTENSION
#include <sqlite3ext.h>
extern const sqlite3_api_routines *sqlite3_api; /* set once by sqlite3_extension_init() */
#else
#include <sqlite3.h>
#endif

#endif
