/* SPDX-License-Identifier: Apache-2.0
 * The list of built-in optimizers. A new one is a new file and one row.
 * Invariant: names are unique. */
#include "optim/optim.h"

#include <string.h>

#include "optim/spread.h"

static const struct optim_class *const classes[] = {&optim_adamw, &optim_sgd, NULL};

const struct optim_class *const *optim_classes(void) {
    return classes;
}

const struct optim_class *optim_find(const char *name) {
    for (size_t i = 0; classes[i] != NULL; ++i)
        if (strcmp(classes[i]->name, name) == 0) return classes[i];
    return NULL;
}
