/* SPDX-License-Identifier: Apache-2.0
 * Finds the built-in optimizers by name. The list of them is OPTIM_CLASSES in optim/spread.h.
 * Invariant: names are unique. */
#include "optim/spread.h"

#include <string.h>

#define ROW(name) &optim_##name,
static const struct optim_class *const classes[] = {OPTIM_CLASSES(ROW) NULL};

const struct optim_class *const *optim_classes(void) {
    return classes;
}

const struct optim_class *optim_find(const char *name) {
    for (size_t i = 0; classes[i] != NULL; i++)
        if (strcmp(classes[i]->name, name) == 0) return classes[i];
    return NULL;
}

int optim_has_direction_rule(const struct optim_class *class_) {
    return class_->direction_rule != NULL;
}

struct rule_direction optim_direction_rule(const struct optim_class *class_,
                                           const struct optim_call *call, uint32_t index) {
    if (class_->direction_rule == NULL) return (struct rule_direction){.kind = RULE_DIRECTION_NONE};
    return class_->direction_rule(call, index);
}

double optim_applied_lr(const struct optim_class *class_, const void *values, double lr,
                        uint64_t t) {
    return class_ == &optim_adafactor ? optim_adafactor_rate(values, lr, t) : lr;
}

int optim_holds(const struct optim_class *class_, const void *values) {
    if (class_ == &optim_lion) return optim_lion_holds(values);
    return (class_ == &optim_adam || class_ == &optim_adamw) && optim_adam_holds(values);
}

uint64_t optim_slot_elements(const struct optim_class *class_, const void *values, uint32_t slot,
                             uint32_t rank, const uint64_t *shape) {
    if (class_->slot_elements == NULL) return shape[0] * shape[1];
    return class_->slot_elements(values, slot, rank, shape);
}
