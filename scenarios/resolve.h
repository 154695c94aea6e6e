/* SPDX-License-Identifier: Apache-2.0
 * Turns what was written for one arm into its complete configuration.
 *
 * Keys are collected layer by layer, where a later layer replaces a value, so that maps merge and
 * lists replace. Then they are resolved: classes are chosen, then come defaults, written values,
 * derivation and checks. */
#ifndef TWINSTEP_SCENARIOS_RESOLVE_H
#define TWINSTEP_SCENARIOS_RESOLVE_H

#include "scenarios/fault.h"
#include "scenarios/scenario.h"
#include "scenarios/selection.h"
#include "scenarios/yaml.h"

/* Where a key can be written; the later layer wins. */
enum layer { LAYER_COMMON = 0, LAYER_COMMON_SET, LAYER_ARM, LAYER_ARM_SET };

struct given {
    const struct yaml_node *node; /* NULL where nothing was written */
    int layer;
};

struct class_given {
    const char *key;
    enum selection selection;
    struct given value;
    struct class_given *next; /* the one written next */
};

struct arm_keys {
    const struct schema *schema;
    struct arena *arena;
    struct given *rows; /* by the index of the row in schema_rows */
    struct class_given *classes, *last_class;
    uint8_t modules[SELECT_COUNT]; /* 1 where any layer named a module */
};

/* Empty keys of one arm, with their memory from `arena`. */
TWINSTEP_MUST_USE enum status arm_keys_open(struct arm_keys *keys, const struct schema *schema,
                                            struct arena *arena);

/* Takes every key of `map`, which is `common` or an arm. STATUS_INPUT for unknown keys. */
TWINSTEP_MUST_USE enum status arm_keys_collect(struct arm_keys *keys, const struct yaml_node *map,
                                               int layer);

/* Resolves the collected keys into *out. `label` and `arm` stand in errors that belong to no
 * line. */
TWINSTEP_MUST_USE enum status arm_resolve(const struct arm_keys *keys, const char *label,
                                          const char *arm, uint64_t steps, struct config *out);

/* Reports a fault of a resolved arm that was found later, at the place where its key was written.
 * Returns the fault's status. */
enum status arm_report(const struct arm_keys *keys, const char *label, const char *arm,
                       const struct fault *fault);

#endif
