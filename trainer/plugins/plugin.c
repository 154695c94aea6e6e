/* SPDX-License-Identifier: Apache-2.0
 * Opens modules, finds classes in them, and makes every call into an optimizer or a schedule. A
 * file is hashed before it is opened, so that nothing of it runs unless it is the expected one, and
 * after it, so that what runs is what was hashed. The
 * floating-point environment is looked at after each call, which costs two reads of a control word
 * and is nothing beside a step. */
#include "trainer/plugins/plugin.h"

#include <string.h>

#include "base/fpenv.h"
#include "base/module.h"
#include "base/real.h"
#include "optim/optim_module.h"
#include "sched/sched_module.h"
#include "trainer/plugins/plugin_guard.h"

static int is_foreign(const struct config_class *which) {
    return strcmp(which->module, CONFIG_NO_MODULE) != 0;
}

static enum status read_classes(const struct module *module, const char *kind, struct plugin *out) {
    const int any = kind == NULL;
    const int optimizers = any ? module_has(module, "optim") : strcmp(kind, "optimizer") == 0;
    const int schedules = any ? module_has(module, "sched") : strcmp(kind, "schedule") == 0;
    /* a module that holds neither is refused as one without optimizers */
    if (optimizers || !schedules)
        TRY(optim_module_read(module, CONFIG_CLASS_BYTES, &out->optimizers));
    return schedules ? sched_module_read(module, CONFIG_CLASS_BYTES, &out->schedules) : STATUS_OK;
}

enum status plugin_open(const char *path, const char *kind, const char *expected,
                        struct plugin *out) {
    struct module module;
    char after[DIGEST_HEX] = "";
    *out = (struct plugin){.optimizers = NULL};
    TRY(digest_file(path, out->sha256));
    if (expected != NULL && strcmp(expected, out->sha256) != 0) return STATUS_OK;
    TRY(module_open(path, out->sha256, &module));
    enum status status = read_classes(&module, kind, out);
    if (status == STATUS_OK) status = digest_file(path, after);
    if (status == STATUS_OK && strcmp(out->sha256, after) != 0)
        status = status_fail(STATUS_INPUT, "%s: the file changed while it was opened", path);
    if (status != STATUS_OK) module_close(&module);
    return status;
}

/* Opens a module again; what the configuration names must be what the file holds now. */
static enum status open_again(const struct config_class *which, const char *kind,
                              struct plugin *out) {
    TRY(plugin_open(which->module, kind, which->module_sha256, out));
    if (strcmp(out->sha256, which->module_sha256) == 0) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s: expected the module with SHA-256 %s, got %s: the file was changed",
         which->module, which->module_sha256, out->sha256);
}

enum status plugin_optimizer(const struct config_class *which, const struct optim_class **out) {
    struct plugin plugin;
    *out = NULL;
    if (!is_foreign(which)) {
        *out = optim_find(which->name);
    } else {
        TRY(open_again(which, "optimizer", &plugin));
        for (size_t i = 0; plugin.optimizers[i] != NULL; i++)
            if (strcmp(plugin.optimizers[i]->name, which->name) == 0) *out = plugin.optimizers[i];
    }
    if (*out == NULL)
        FAIL(STATUS_INTERNAL, "optimizer %s passed the schema and is unknown", which->name);
    return STATUS_OK;
}

enum status plugin_schedule(const struct config_class *which, const struct sched_class **out) {
    struct plugin plugin;
    *out = NULL;
    if (!is_foreign(which)) {
        *out = sched_find(which->name);
    } else {
        TRY(open_again(which, "schedule", &plugin));
        for (size_t i = 0; plugin.schedules[i] != NULL; i++)
            if (strcmp(plugin.schedules[i]->name, which->name) == 0) *out = plugin.schedules[i];
    }
    if (*out == NULL)
        FAIL(STATUS_INTERNAL, "schedule %s passed the schema and is unknown", which->name);
    return STATUS_OK;
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
    enum status stepped;
    before(which, &kept);
    if (!is_foreign(which)) return after(which, "step", &kept, class_->step(call));
    const enum status guarded = guarded_step(class_, call, &stepped);
    if (guarded != STATUS_OK && !fpenv_changed(&kept))
        return status_prefix(guarded, "%s: %s", which->module, which->name);
    return after(which, "step", &kept, stepped);
}

enum status plugin_direction(const struct config_class *which, const struct optim_class *class_,
                             const struct optim_call *call, uint32_t index, const void *old,
                             double *out) {
    struct fpenv_kept kept;
    enum status directed;
    before(which, &kept);
    if (!is_foreign(which))
        return after(which, "direction", &kept, class_->direction(call, index, old, out));
    TRY(guarded_direction(class_, call, index, old, out, &directed));
    return after(which, "direction", &kept, directed);
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
