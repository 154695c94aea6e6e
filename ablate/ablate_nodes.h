/* SPDX-License-Identifier: Apache-2.0
 * Values of an ablation's YAML by their kind: a text, words, a number. Each fails with
 * "PATH:LINE:COLUMN: error: KEY: expected ..., got ...". */
#ifndef TWINSTEP_ABLATE_ABLATE_NODES_H
#define TWINSTEP_ABLATE_ABLATE_NODES_H

#include "ablate/ablate_file.h"
#include "scenarios/yaml.h"

/* Fails: KEY should be WHAT. */
enum status node_expect(const struct yaml_node *node, const char *key, const char *what);
/* Fails unless it is a text; of a map it says that a placeholder needs quotes. */
TWINSTEP_MUST_USE enum status node_expect_text(const struct yaml_node *node, const char *key,
                                               const char *what);
/* Fails unless it is a map with no keys but those of `names`, which end with NULL. `section` "":
 * the whole file. */
TWINSTEP_MUST_USE enum status node_check_keys(const struct yaml_node *map, const char *section,
                                              const char *const *names);
/* Fails unless it is a list of two. */
TWINSTEP_MUST_USE enum status node_check_pair(const struct yaml_node *list, const char *name);

TWINSTEP_MUST_USE enum status node_read_words(const struct yaml_node *list, const char *key,
                                              struct arena *arena, struct ablate_words *out);
/* Says whether a variable of the environment can have the name. */
int node_is_variable(const char *name);

/* Reads the number at `key`, in [least, most] or strictly between; *out stays where there is none.
 */
TWINSTEP_MUST_USE enum status node_read_uint(const struct yaml_node *map, const char *key,
                                             uint64_t least, uint64_t most, uint64_t *out);
TWINSTEP_MUST_USE enum status node_read_real(const struct yaml_node *map, const char *key,
                                             double least, double most, const char *what,
                                             double *out);

#endif
