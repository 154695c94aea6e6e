/* SPDX-License-Identifier: Apache-2.0
 * What the files of a resolution share. resolve_keys.c collects what was written, resolve.c walks
 * the rows, resolve_place.c shows where a fault is, resolve_contract.c adds what follows from
 * schedule.contract, resolve_module.c and resolve_checkpoint.c what lies in other files. Private to
 * them. */
#ifndef TWINSTEP_SCENARIOS_RESOLVE_PRIVATE_H
#define TWINSTEP_SCENARIOS_RESOLVE_PRIVATE_H

#include "scenarios/fault.h"
#include "scenarios/resolve.h"

#define RESOLVE_PATH_SIZE 256

struct resolving {
    const struct arm_keys *keys;
    const char *label, *arm;
    struct config *config;
    const struct schema_contract *contract; /* NULL where no contract is named */
    const struct schema_class *classes[SELECT_COUNT];
};

/* Refuses a key of `section` ("" for the top level) that no row and no class has. */
enum status resolve_unknown_key(const struct arm_keys *keys, const char *section,
                                const struct yaml_node *node);

/* Whether any class of a selection has the key, whether that class is chosen or not. */
int resolve_any_class_has(const struct schema *schema, int selection, const char *key);

/* What was written for the row of this path; NULL when there is no such row. */
const struct given *resolve_given(const struct resolving *resolving, const char *path);

/* Reads row `index` into the configuration: from what was written, else from its default. */
TWINSTEP_MUST_USE enum status resolve_read(const struct resolving *resolving, size_t index);

/* Reports a fault at the place where its key was written, else at a key that its value came from,
 * else under the name of the arm. Returns the fault's status. */
enum status resolve_report(const struct resolving *resolving, const struct fault *fault);

/* Puts the status text of a class or a contract ("schedule.total: ...") at the line of its key. */
enum status resolve_place(const struct resolving *resolving, enum selection selection,
                          enum status status);

/* Reads schedule.contract into the configuration and `resolving`, and refuses keys that would
 * contradict it. */
TWINSTEP_MUST_USE enum status resolve_contract_choose(struct resolving *resolving);

/* Loads the module of optimizer.module or schedule.module, so that its classes are in the schema,
 * and puts its path (with the folder of the scenario) and its digest into the configuration. A
 * built-in class that a later layer named leaves no module. */
TWINSTEP_MUST_USE enum status resolve_module(const struct resolving *resolving,
                                             enum selection selection);

/* Writes a text into a field of `size` bytes, cut where it does not fit, and zeroes the rest. */
void resolve_put(char *field, size_t size, const char *text);

/* Puts the folder of the scenario before a relative path. `path` has CONFIG_PATH_SIZE bytes. */
TWINSTEP_MUST_USE enum status resolve_join_folder(const struct resolving *resolving,
                                                  const struct yaml_node *node, const char *key,
                                                  char *path);

/* Fills section `model` with what the config.json of model.from says. A key that was written in an
 * earlier layer than model.from gives way. One that a later layer wrote stays if it fits any
 * weights (norm_eps, rope_*); any other must say the same. */
TWINSTEP_MUST_USE enum status resolve_checkpoint(const struct resolving *resolving);

/* Replaces a bare schedule name by the class that it means under the contract. */
TWINSTEP_MUST_USE enum status resolve_contract_schedule(const struct resolving *resolving);

/* Sets the keys that follow from the contract. */
TWINSTEP_MUST_USE enum status resolve_contract_implied(const struct resolving *resolving);

/* Converts warm-up and total from updates to counter units. */
TWINSTEP_MUST_USE enum status resolve_contract_units(const struct resolving *resolving,
                                                     int warmup_given, uint64_t steps);

#endif
