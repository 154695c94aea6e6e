/* SPDX-License-Identifier: Apache-2.0
 * From what was written for one arm to its complete configuration.
 *
 * Keys are collected layer by layer (a later layer replaces a value, so maps merge and lists
 * replace), then resolved: classes chosen, defaults, values, derivation, checks. */
#ifndef TWINSTEP_SCENARIOS_RESOLVE_H
#define TWINSTEP_SCENARIOS_RESOLVE_H

#include "scenarios/fault.h"
#include "scenarios/scenario.h"
#include "scenarios/selection.h"
#include "scenarios/yaml.h"

/* A later one wins. */
enum layer { LAYER_COMMON = 0, LAYER_COMMON_SET, LAYER_ARM, LAYER_ARM_SET };

struct given {
    const struct yaml_node *node; /* NULL: not given */
    int layer;
};

struct class_given {
    const char *key;
    enum selection selection;
    struct given value;
    struct class_given *next; /* written later */
};

struct arm_keys {
    const struct schema *schema;
    struct arena *arena;
    struct given *rows; /* by the index in schema_rows */
    struct class_given *classes, *last_class;
    uint8_t modules[SELECT_COUNT]; /* whether any layer named a module */
};

TWINSTEP_MUST_USE enum status arm_keys_open(struct arm_keys *keys, const struct schema *schema,
                                            struct arena *arena);

/* Takes every key of `map` (common, or an arm). STATUS_INPUT for unknown keys. */
TWINSTEP_MUST_USE enum status arm_keys_collect(struct arm_keys *keys, const struct yaml_node *map,
                                               int layer);

/* `label` and `arm` stand in errors that belong to no line. */
TWINSTEP_MUST_USE enum status arm_resolve(const struct arm_keys *keys, const char *label,
                                          const char *arm, uint64_t steps, struct config *out);

/* A fault of a resolved arm, found later, at the place where its key was written. Returns its
 * status. */
enum status arm_report(const struct arm_keys *keys, const char *label, const char *arm,
                       const struct fault *fault);

#endif
