/* SPDX-License-Identifier: Apache-2.0
 * The catalogue that comes with twinstep: the scenarios of scenarios/catalog/, embedded. */
#ifndef TWINSTEP_CLI_CATALOG_H
#define TWINSTEP_CLI_CATALOG_H

#include <stddef.h>

struct catalog_file {
    const char *name; /* file name without .yaml */
    const unsigned char *bytes;
    size_t length;
};

/* Written at build time by cmake/builtin_catalog.cmake; sorted by name, ended by a NULL name. */
extern const struct catalog_file catalog_files[];

#endif
