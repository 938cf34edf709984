/* SPDX-License-Identifier: MIT */
#ifndef SLABTAPE_CLI_SQL_REFERENCE_H
#define SLABTAPE_CLI_SQL_REFERENCE_H

/* Print every table of a tape with its columns as markdown on stdout; an exit code. */
int sql_reference(void);

#endif
