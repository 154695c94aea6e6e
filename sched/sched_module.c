/* SPDX-License-Identifier: Apache-2.0
 * Checks the schedules of a module as they are read. The tests hold what a built-in schedule must
 * be; nobody tests a user's module, so each claim that the program relies on is checked here. */
#include "sched/sched_module.h"

#include <stdio.h>
#include <string.h>

#include "base/module.h"

static enum status check_class(const struct module *module, const struct sched_class *class_,
                               size_t values_most) {
    char who[1400];
    if (class_->size != sizeof *class_)
        FAIL(STATUS_INPUT,
             "%s: a schedule: expected size %zu (sizeof(struct sched_class)), got %zu",
             module->path, sizeof *class_, class_->size);
    TRY(module_check_name(module->path, "schedule", class_->name));
    snprintf(who, sizeof who, "%s: schedule %s", module->path, class_->name);
    if (sched_find(class_->name) != NULL)
        FAIL(STATUS_INPUT, "%s: expected a name of its own, got that of a built-in", who);
    if (class_->help == NULL || class_->help[0] == '\0')
        FAIL(STATUS_INPUT, "%s: expected a help text, got none", who);
    if (class_->value == NULL || class_->minimum == NULL)
        FAIL(STATUS_INPUT, "%s: expected functions value and minimum, got no %s", who,
             class_->value == NULL ? "value" : "minimum");
    if (class_->feedback)
        FAIL(STATUS_INPUT,
             "%s: expected a function of the counter, got one that follows a metric "
             "(feedback); no training gives it one",
             who);
    if (class_->values_size > values_most)
        FAIL(STATUS_INPUT, "%s: expected values_size of at most %zu bytes, got %zu", who,
             values_most, class_->values_size);
    if (class_->state_size > SCHED_MODULE_STATE_MAX)
        FAIL(STATUS_INPUT, "%s: expected state_size of at most %d bytes, got %zu", who,
             SCHED_MODULE_STATE_MAX, class_->state_size);
    const struct module_rows rows = {who, class_->keys, class_->key_count, class_->values_size,
                                     CAUSE_SCHEDULE};
    return module_check_rows(&rows);
}

enum status sched_module_read(const struct module *module, size_t values_most,
                              const struct sched_class *const **out) {
    static const struct module_sizes sizes = {sizeof(struct module_stamp),
                                              sizeof(struct key_row),
                                              sizeof(struct sched_class),
                                              sizeof(struct sched_call),
                                              0,
                                              0};
    const struct module_stamp *stamp;
    TRY(module_entry(module, "sched", &sizes, &stamp));
    const struct sched_class *const *classes =
        ((const struct sched_module *)(const void *)stamp)->classes;
    if (classes == NULL || classes[0] == NULL)
        FAIL(STATUS_INPUT, "%s: expected at least one schedule, got an empty list", module->path);
    for (size_t i = 0; classes[i] != NULL; i++) {
        if (i == MODULE_CLASSES_MAX)
            FAIL(STATUS_INPUT, "%s: expected at most %d schedules", module->path,
                 MODULE_CLASSES_MAX);
        TRY(check_class(module, classes[i], values_most));
        for (size_t j = 0; j < i; j++)
            if (strcmp(classes[i]->name, classes[j]->name) == 0)
                FAIL(STATUS_INPUT, "%s: two schedules are named %s", module->path,
                     classes[i]->name);
    }
    *out = classes;
    return STATUS_OK;
}
