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

typedef struct rule_direction (*direction_rule)(const struct optim_call *, uint32_t);

static struct rule_direction adam_rule(const struct optim_call *call, uint32_t index) {
    return adam_direction_rule(call, index, 0);
}

static struct rule_direction adamw_rule(const struct optim_call *call, uint32_t index) {
    return adam_direction_rule(call, index, 1);
}

/* NULL: none. */
static direction_rule direction_rule_of(const struct optim_class *class_) {
    if (class_ == &optim_adamw) return adamw_rule;
    if (class_ == &optim_adam) return adam_rule;
    if (class_ == &optim_sgd) return optim_sgd_direction;
    return class_ == &optim_lion ? optim_lion_direction : NULL;
}

int optim_has_direction_rule(const struct optim_class *class_) {
    return direction_rule_of(class_) != NULL;
}

struct rule_direction optim_direction_rule(const struct optim_class *class_,
                                           const struct optim_call *call, uint32_t index) {
    const direction_rule rule = direction_rule_of(class_);
    if (rule == NULL) return (struct rule_direction){.kind = RULE_DIRECTION_NONE};
    return rule(call, index);
}

uint64_t optim_slot_elements(const struct optim_class *class_, const void *values, uint32_t slot,
                             uint32_t rank, const uint64_t *shape) {
    const size_t end = offsetof(struct optim_class, slot_elements) + sizeof class_->slot_elements;
    if (class_->size < end || class_->slot_elements == NULL) return shape[0] * shape[1];
    return class_->slot_elements(values, slot, rank, shape);
}
