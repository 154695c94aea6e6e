/* SPDX-License-Identifier: Apache-2.0
 * Loads a scenario as the command line names it: a file, "-" for standard input, or the name of a
 * catalogue scenario. */
#ifndef TWINSTEP_CLI_LOAD_H
#define TWINSTEP_CLI_LOAD_H

#include "cli/catalog.h"
#include "cli/options.h"
#include "cli/verb.h"

/* Parses and resolves a scenario and checks its loops; only the file itself is opened. A word
 * without a slash that names no file is looked up in the catalogue. Relative data files are
 * relative to the folder of the scenario and are kept as FOLDER/FILE. Errors carry file and line.
 * STATUS_INPUT if --output or --junit is a file that the scenario names (load_apart). */
TWINSTEP_MUST_USE enum status load_scenario(struct cli *cli, struct arena *arena, const char *word,
                                            const struct options *options, struct scenario **out);

/* Does the same with `file`, an entry of catalog_files. */
TWINSTEP_MUST_USE enum status load_catalog(struct cli *cli, struct arena *arena,
                                           const struct catalog_file *file,
                                           const struct options *options, struct scenario **out);

/* Fails at the line of the key if the data file of an arm cannot be opened. */
TWINSTEP_MUST_USE enum status load_check_data(const struct scenario *scenario, int arm);

/* STATUS_INPUT if `output` is a file that the scenario reads: data, held-out rows, a checkpoint, a
 * module, a table of orders. NULL is apart from all. */
TWINSTEP_MUST_USE enum status load_apart(const char *output, const struct scenario *scenario);

/* Fails with `what` ("demo: no scenario ..."), and with the name in the catalogue that `word` may
 * mean. */
TWINSTEP_MUST_USE enum status load_fail_missing(const char *what, const char *word);

/* Returns NULL if there is no such name. */
const struct catalog_file *catalog_find(const char *name);

#endif
