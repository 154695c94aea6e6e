/* SPDX-License-Identifier: Apache-2.0
 * A scenario as the command line names it: a file, "-", or the name of a catalogue scenario. */
#ifndef TWINSTEP_CLI_LOAD_H
#define TWINSTEP_CLI_LOAD_H

#include "cli/catalog.h"
#include "cli/options.h"
#include "cli/verb.h"

/* Parses, resolves, checks the loops; nothing is opened yet but the file. A word without a slash
 * that names no file is looked up in the catalogue. Relative data files are relative to the folder
 * of the scenario, and are kept as written: FOLDER/FILE. Errors carry file and line. */
TWINSTEP_MUST_USE enum status load_scenario(const struct cli *cli, struct arena *arena,
                                            const char *word, const struct options *options,
                                            struct scenario **out);

/* The same from the catalogue alone. `file` is one of catalog_files. */
TWINSTEP_MUST_USE enum status load_catalog(const struct cli *cli, struct arena *arena,
                                           const struct catalog_file *file,
                                           const struct options *options, struct scenario **out);

/* The name in the catalogue that is meant by a misspelt one; NULL. */
const char *load_suggest(const char *word);

/* NULL: no such name. */
const struct catalog_file *catalog_find(const char *name);

#endif
