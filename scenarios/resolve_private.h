/* SPDX-License-Identifier: Apache-2.0
 * What the files of a resolution share: resolve_keys.c collects what was written, resolve.c walks
 * the rows, resolve_place.c shows where a fault is, resolve_contract.c adds what follows from
 * schedule.contract. Private to the resolution. */
#ifndef TWINSTEP_SCENARIOS_RESOLVE_PRIVATE_H
#define TWINSTEP_SCENARIOS_RESOLVE_PRIVATE_H

#include "scenarios/fault.h"
#include "scenarios/resolve.h"

#define RESOLVE_PATH_SIZE 256

struct resolving {
    const struct arm_keys *keys;
    const char *label, *arm;
    struct config *config;
    const struct schema_contract *contract; /* NULL: none */
    const struct schema_class *classes[SELECT_COUNT];
};

/* Refuses a key of `section` ("" at the top) that no row and no class has. */
enum status resolve_unknown_key(const struct arm_keys *keys, const char *section,
                                const struct yaml_node *node);

/* Whether any class of a selection has the key, chosen or not. */
int resolve_any_class_has(const struct schema *schema, int selection, const char *key);

/* What was written for a row; NULL when there is no such row. */
const struct given *resolve_given(const struct resolving *resolving, const char *path);

/* Row `index` from what was written, else its default. */
TWINSTEP_MUST_USE enum status resolve_read(const struct resolving *resolving, size_t index);

/* A fault at the place where its key was written, or one that its value came from; or in the name
 * of the arm. Returns the fault's status. */
enum status resolve_report(const struct resolving *resolving, const struct fault *fault);

/* The status text of a class or a contract ("schedule.total: ...") at the line of its key. */
enum status resolve_place(const struct resolving *resolving, enum selection selection,
                          enum status status);

/* Reads schedule.contract into the configuration and `resolving`; refuses keys that follow. */
TWINSTEP_MUST_USE enum status resolve_contract_choose(struct resolving *resolving);

/* optimizer.module or schedule.module: loads it, so that its classes are in the schema, and puts
 * its path (with the folder of the scenario) and digest into the configuration. A built-in that a
 * later layer named leaves no module. */
TWINSTEP_MUST_USE enum status resolve_module(const struct resolving *resolving,
                                             enum selection selection);

/* Puts the folder of the scenario before a path that is relative; `path` has CONFIG_PATH_SIZE
 * bytes.
 */
TWINSTEP_MUST_USE enum status resolve_join_folder(const struct resolving *resolving,
                                                  const struct yaml_node *node, const char *key,
                                                  char *path);

/* model.from: fills section `model` with what its config.json says. A key that was written in an
 * earlier layer than model.from gives way, one that a later layer wrote and that fits any weights
 * (norm_eps, rope_*) stays, any other must say the same. */
TWINSTEP_MUST_USE enum status resolve_checkpoint(const struct resolving *resolving);

/* The class of a bare schedule name in the words of the contract. */
TWINSTEP_MUST_USE enum status resolve_contract_schedule(const struct resolving *resolving);

/* The keys that follow from the contract. */
TWINSTEP_MUST_USE enum status resolve_contract_implied(const struct resolving *resolving);

/* Warm-up and total from updates to counter units. */
TWINSTEP_MUST_USE enum status resolve_contract_units(const struct resolving *resolving,
                                                     int warmup_given, uint64_t steps);

#endif
