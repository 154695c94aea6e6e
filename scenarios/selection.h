/* SPDX-License-Identifier: Apache-2.0
 * The two places where a key selects a class that has rows of its own: optimizer.name and
 * schedule.name. Looks up classes, rows and contracts by name. */
#ifndef TWINSTEP_SCENARIOS_SELECTION_H
#define TWINSTEP_SCENARIOS_SELECTION_H

#include "scenarios/scenario.h"

enum selection { SELECT_OPTIMIZER = 0, SELECT_SCHEDULE, SELECT_COUNT };

/* "optimizer" or "schedule", which is also the prefix of the class's keys. */
const char *selection_prefix(enum selection selection);
/* The index of the row "PREFIX.KEY" in schema_rows; KEY is name, module or module_sha256. */
size_t selection_row(enum selection selection, const char *key);

struct config_class *selection_of(struct config *config, enum selection selection);
const struct config_class *selection_read(const struct config *config, enum selection selection);

/* A class is known by its name and the digest of its module (CONFIG_NO_MODULE where it is built
 * in). NULL when the schema has no such class. */
const struct schema_class *selection_find(const struct schema *schema, enum selection selection,
                                          const char *name, const char *module_sha256);
const struct schema_class *selection_class(const struct schema *schema, const struct config *config,
                                           enum selection selection);
const struct key_row *selection_key(const struct schema_class *class_of_keys, const char *key);

/* The row of a full path; NULL when there is none. Its index goes to `out_index` when that is not
 * NULL. */
const struct key_row *schema_find(const char *path, size_t *out_index);

/* Whether a key came after traces had been written without it (section `fault`, resume.wrong). The
 * printed text of a configuration has such a key only where it says something, and a text without
 * it is read as one with its default. */
int schema_is_later(const struct key_row *row);

#endif
