/* SPDX-License-Identifier: Apache-2.0
 * Checks the optimizer classes of a user's module. The tests of this project hold built-in classes
 * to their contract; a class of a module is held to it here, when it is loaded.
 *
 * Invariant: a class that passes can be stepped without a check of its structure. */
#include "optim/optim_module.h"

#include <stdio.h>
#include <string.h>

#include "base/module.h"

static enum status check_size(const char *who, const struct optim_class *class_) {
    if (class_->size != sizeof *class_)
        FAIL(STATUS_INPUT, "%s: expected size %zu (sizeof(struct optim_class)), got %zu", who,
             sizeof *class_, class_->size);
    return STATUS_OK;
}

static enum status check_slots(const char *who, const struct optim_class *class_) {
    if (class_->slot_count > OPTIM_SLOTS_MAX)
        FAIL(STATUS_INPUT, "%s: expected at most %d slots, got %u", who, OPTIM_SLOTS_MAX,
             (unsigned)class_->slot_count);
    if (class_->slot_count > 0 && class_->slot_names == NULL)
        FAIL(STATUS_INPUT, "%s: expected names of its %u slots, got none", who,
             (unsigned)class_->slot_count);
    for (uint32_t i = 0; i < class_->slot_count; i++) {
        if (class_->slot_names[i] == NULL || class_->slot_names[i][0] == '\0')
            FAIL(STATUS_INPUT, "%s: slot %u has no name", who, (unsigned)i);
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(class_->slot_names[i], class_->slot_names[j]) == 0)
                FAIL(STATUS_INPUT, "%s: two slots are named %s", who, class_->slot_names[i]);
    }
    return STATUS_OK;
}

static enum status check_flags(const char *who, const struct optim_class *class_) {
    const uint32_t known = OPTIM_ELEMENTWISE | OPTIM_NEEDS_WHOLE_TENSOR | OPTIM_HOST_ONLY;
    const uint32_t both = OPTIM_ELEMENTWISE | OPTIM_NEEDS_WHOLE_TENSOR;
    if ((class_->flags & ~known) != 0)
        FAIL(STATUS_INPUT, "%s: expected flags of enum optim_flag, got %x", who,
             (unsigned)class_->flags);
    if ((class_->flags & both) == both || (class_->flags & both) == 0)
        FAIL(STATUS_INPUT,
             "%s: expected one of OPTIM_ELEMENTWISE and OPTIM_NEEDS_WHOLE_TENSOR, "
             "got %s",
             who, (class_->flags & both) == 0 ? "none" : "both");
    return STATUS_OK;
}

static enum status check_class(const struct module *module, const struct optim_class *class_,
                               size_t values_most) {
    char who[1400];
    snprintf(who, sizeof who, "%s: an optimizer", module->path);
    TRY(check_size(who, class_));
    TRY(module_check_name(module->path, "optimizer", class_->name));
    snprintf(who, sizeof who, "%s: optimizer %s", module->path, class_->name);
    if (optim_find(class_->name) != NULL)
        FAIL(STATUS_INPUT, "%s: expected a name of its own, got that of a built-in", who);
    if (class_->help == NULL || class_->help[0] == '\0')
        FAIL(STATUS_INPUT, "%s: expected a help text, got none", who);
    if (class_->step == NULL) FAIL(STATUS_INPUT, "%s: expected a step function, got none", who);
    if (class_->values_size > values_most)
        FAIL(STATUS_INPUT, "%s: expected values_size of at most %zu bytes, got %zu", who,
             values_most, class_->values_size);
    TRY(check_slots(who, class_));
    TRY(check_flags(who, class_));
    const struct module_rows rows = {who, class_->keys, class_->key_count, class_->values_size,
                                     CAUSE_OPTIMIZER};
    return module_check_rows(&rows);
}

enum status optim_module_read(const struct module *module, size_t values_most,
                              const struct optim_class *const **out) {
    static const struct module_sizes sizes = {
        sizeof(struct module_stamp), sizeof(struct key_row),      sizeof(struct optim_class),
        sizeof(struct optim_call),   sizeof(struct optim_tensor), sizeof(struct optim_group)};
    const struct module_stamp *stamp;
    TRY(module_entry(module, "optim", &sizes, &stamp));
    const struct optim_class *const *classes =
        ((const struct optim_module *)(const void *)stamp)->classes;
    if (classes == NULL || classes[0] == NULL)
        FAIL(STATUS_INPUT, "%s: expected at least one optimizer, got an empty list", module->path);
    for (size_t i = 0; classes[i] != NULL; i++) {
        if (i == MODULE_CLASSES_MAX)
            FAIL(STATUS_INPUT, "%s: expected at most %d optimizers", module->path,
                 MODULE_CLASSES_MAX);
        TRY(check_class(module, classes[i], values_most));
        for (size_t j = 0; j < i; j++)
            if (strcmp(classes[i]->name, classes[j]->name) == 0)
                FAIL(STATUS_INPUT, "%s: two optimizers are named %s", module->path,
                     classes[i]->name);
    }
    *out = classes;
    return STATUS_OK;
}
