/* SPDX-License-Identifier: Apache-2.0
 * The list of built-in optimizers. A new one is a new file and one row.
 * Invariant: names are unique. */
#include "optim/optim.h"

#include <string.h>

#include "optim/adam_family.h"

static const struct optim_class *const classes[] = {&optim_adafactor, &optim_adam, &optim_adamw,
                                                    &optim_lion,      &optim_sgd,  NULL};

const struct optim_class *const *optim_classes(void) {
    return classes;
}

const struct optim_class *optim_find(const char *name) {
    for (size_t i = 0; classes[i] != NULL; ++i)
        if (strcmp(classes[i]->name, name) == 0) return classes[i];
    return NULL;
}

struct rule_direction optim_direction_rule(const struct optim_class *class_,
                                           const struct optim_call *call, uint32_t index) {
    if (class_ == &optim_adamw) return adam_direction_rule(call, index, 1);
    if (class_ == &optim_adam) return adam_direction_rule(call, index, 0);
    if (class_ == &optim_sgd) return optim_sgd_direction(call, index);
    if (class_ == &optim_lion) return optim_lion_direction(call, index);
    return (struct rule_direction){.kind = RULE_DIRECTION_NONE};
}

uint64_t optim_slot_elements(const struct optim_class *class_, const void *values, uint32_t slot,
                             uint32_t rank, const uint64_t *shape) {
    const size_t end = offsetof(struct optim_class, slot_elements) + sizeof class_->slot_elements;
    if (class_->size < end || class_->slot_elements == NULL) return shape[0] * shape[1];
    return class_->slot_elements(values, slot, rank, shape);
}
