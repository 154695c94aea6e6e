/* SPDX-License-Identifier: Apache-2.0
 * The optimizer and the schedule of a configuration, built in or in a module (docs/PLUGINS.md).
 *
 * There is no registry: opening a module that is open gives the same module, so every process finds
 * a class again by what the configuration says: path, digest and name.
 *
 * Invariant: the code that runs is that of the file whose digest stands in the configuration. */
#ifndef TWINSTEP_TRAINER_PLUGINS_PLUGIN_H
#define TWINSTEP_TRAINER_PLUGINS_PLUGIN_H

#include "determinism/digest.h"
#include "optim/optim.h"
#include "scenarios/config.h"
#include "sched/sched.h"

/* What a module holds: lists of classes that end with NULL. A list is NULL where the module holds
 * nothing of that kind, or was not loaded. */
struct plugin {
    char sha256[DIGEST_HEX];
    const struct optim_class *const *optimizers;
    const struct sched_class *const *schedules;
};

/* Opens the module and checks what it holds. `kind` is "optimizer" or "schedule" (the module must
 * hold some), or NULL (it may hold either). A file whose SHA-256 is not `expected` is not loaded,
 * which the caller sees by out->sha256; NULL expects nothing. The module stays open until the
 * process ends. Fails with STATUS_INPUT and the text "PATH: expected ..., got ...". */
TWINSTEP_MUST_USE enum status plugin_open(const char *path, const char *kind, const char *expected,
                                          struct plugin *out);

/* Finds the class that a resolved configuration means. Fails with STATUS_INPUT when its module is
 * another file by now. */
TWINSTEP_MUST_USE enum status plugin_optimizer(const struct config_class *which,
                                               const struct optim_class **out);
TWINSTEP_MUST_USE enum status plugin_schedule(const struct config_class *which,
                                              const struct sched_class **out);

/* Calls into a class, built in or not. After each call the floating-point environment is as before.
 * A class that left it changed is STATUS_INPUT with the module's name, and so is a module's LR that
 * is not finite or a status that is none of enum status. The text of a module's error gets the
 * module's name before it, unless it begins with a key ("optimizer.beta1: ..."). A function that
 * the class lacks (NULL) does nothing. */
TWINSTEP_MUST_USE enum status plugin_step(const struct config_class *which,
                                          const struct optim_class *class_,
                                          const struct optim_call *call);
TWINSTEP_MUST_USE enum status plugin_direction(const struct config_class *which,
                                               const struct optim_class *class_,
                                               const struct optim_call *call, uint32_t index,
                                               const void *before, double *out);
/* Sets *out_known to 0 where these values make no linear moment (optim.h). */
TWINSTEP_MUST_USE enum status plugin_moment(const struct config_class *which,
                                            const struct optim_class *class_, uint64_t t,
                                            double *out_keep, double *out_take, int *out_known);
TWINSTEP_MUST_USE enum status plugin_check_values(const struct config_class *which,
                                                  const struct optim_class *class_);
TWINSTEP_MUST_USE enum status plugin_check_call(const struct config_class *which,
                                                const struct sched_class *class_,
                                                const struct sched_call *call);
TWINSTEP_MUST_USE enum status plugin_value(const struct config_class *which,
                                           const struct sched_class *class_,
                                           const struct sched_call *call, double counter,
                                           double *out_lr);
TWINSTEP_MUST_USE enum status plugin_minimum(const struct config_class *which,
                                             const struct sched_class *class_,
                                             const struct sched_call *call, double *out_lr);

#endif
