/* SPDX-License-Identifier: Apache-2.0
 * Every call into an optimizer or a schedule. The floating-point environment is looked at after
 * each call, which costs two reads of a control word and is nothing beside a step. */
#include "trainer/plugin.h"

#include <string.h>

#include "base/fpenv.h"
#include "base/real.h"

static int is_foreign(const struct config_class *which) {
    return strcmp(which->module, CONFIG_NO_MODULE) != 0;
}

static void before(const struct config_class *which, struct fpenv_kept *kept) {
    /* The text is cleared, so that a text afterwards is the module's own. */
    if (is_foreign(which)) (void)status_fail(STATUS_OK, "%s", "");
    fpenv_keep(kept);
}

static enum status fail_changed(const struct config_class *which, const char *function,
                                const struct fpenv_kept *kept) {
    char text[96];
    fpenv_describe(text, sizeof text);
    fpenv_restore(kept);
    FAIL(is_foreign(which) ? STATUS_INPUT : STATUS_INTERNAL,
         "%s%s%s: %s() changed the floating-point environment of the whole process to %s",
         is_foreign(which) ? which->module : "", is_foreign(which) ? ": " : "", which->name,
         function, text);
}

/* Turns the status of a module's function into one that the caller may pass on. A module fails as a
 * user's file does; it cannot interrupt a run or decide what is testable. */
static enum status of_module(const struct config_class *which, const char *function,
                             enum status status) {
    const char *text = status_text();
    const int known = status == STATUS_INPUT || status == STATUS_IO || status == STATUS_MEMORY ||
                      status == STATUS_UNSUPPORTED || status == STATUS_INTERNAL;
    if (!known || text[0] == '\0')
        FAIL(STATUS_INPUT, "%s: %s: %s() returned status %d %s", which->module, which->name,
             function, (int)status,
             known ? "without a text (FAIL says why)" : "which stands for no failure of its own");
    if (strncmp(text, "optimizer.", 10) == 0 || strncmp(text, "schedule.", 9) == 0) return status;
    return status_prefix(status, "%s: %s", which->module, which->name);
}

static enum status after(const struct config_class *which, const char *function,
                         const struct fpenv_kept *kept, enum status status) {
    if (fpenv_changed(kept)) return fail_changed(which, function, kept);
    return status == STATUS_OK || !is_foreign(which) ? status : of_module(which, function, status);
}

enum status plugin_step(const struct config_class *which, const struct optim_class *class_,
                        const struct optim_call *call) {
    struct fpenv_kept kept;
    before(which, &kept);
    return after(which, "step", &kept, class_->step(call));
}

enum status plugin_direction(const struct config_class *which, const struct optim_class *class_,
                             const struct optim_call *call, uint32_t index, const void *old,
                             double *out) {
    struct fpenv_kept kept;
    before(which, &kept);
    return after(which, "direction", &kept, class_->direction(call, index, old, out));
}

enum status plugin_moment(const struct config_class *which, const struct optim_class *class_,
                          uint64_t t, double *out_keep, double *out_take, int *out_known) {
    struct fpenv_kept kept;
    *out_known = 0;
    if (class_->moment == NULL) return STATUS_OK;
    before(which, &kept);
    *out_known = class_->moment(which->values, t, out_keep, out_take);
    return after(which, "moment", &kept, STATUS_OK);
}

enum status plugin_check_values(const struct config_class *which,
                                const struct optim_class *class_) {
    struct fpenv_kept kept;
    if (class_->validate == NULL) return STATUS_OK;
    before(which, &kept);
    return after(which, "validate", &kept, class_->validate(which->values));
}

enum status plugin_check_call(const struct config_class *which, const struct sched_class *class_,
                              const struct sched_call *call) {
    struct fpenv_kept kept;
    if (class_->validate == NULL) return STATUS_OK;
    before(which, &kept);
    return after(which, "validate", &kept, class_->validate(call));
}

/* Refuses an LR of a module that is not finite. Built-in schedules may give one, because they give
 * what their framework gives. */
static enum status check_lr(const struct config_class *which, const char *function, double counter,
                            double lr) {
    if (!is_foreign(which) || real_finite_f64(lr)) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s: %s: %s(): expected a finite learning rate, got %g (counter %.17g)",
         which->module, which->name, function, lr, counter);
}

enum status plugin_value(const struct config_class *which, const struct sched_class *class_,
                         const struct sched_call *call, double counter, double *out_lr) {
    struct fpenv_kept kept;
    before(which, &kept);
    *out_lr = class_->value(call, counter);
    TRY(after(which, "value", &kept, STATUS_OK));
    return check_lr(which, "value", counter, *out_lr);
}

enum status plugin_minimum(const struct config_class *which, const struct sched_class *class_,
                           const struct sched_call *call, double *out_lr) {
    struct fpenv_kept kept;
    before(which, &kept);
    *out_lr = class_->minimum(call);
    TRY(after(which, "minimum", &kept, STATUS_OK));
    return check_lr(which, "minimum", 0.0, *out_lr);
}
