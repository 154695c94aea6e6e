/* SPDX-License-Identifier: Apache-2.0
 * The catalogue that comes with twinstep: the scenarios of scenarios/catalog/, embedded in the
 * program, so that it needs no files beside it. */
#ifndef TWINSTEP_CLI_CATALOG_H
#define TWINSTEP_CLI_CATALOG_H

#include <stddef.h>

struct catalog_file {
    const char *name; /* file name without .yaml */
    const unsigned char *bytes;
    size_t length;
};

/* The build writes this table with cmake/builtin_catalog.cmake. It is sorted by name and ends with
 * a NULL name. */
extern const struct catalog_file catalog_files[];

#endif
