/* SPDX-License-Identifier: Apache-2.0
 * Schedules of a user in a shared object (docs/PLUGINS.md): what the module exports, and how this
 * program reads it. tests/plugins/template_sched.c is the example to copy.
 *
 * A module defines TWINSTEP_MODULE, includes this header and ends with SCHED_MODULE(list), where
 * `list` is a NULL-terminated array of pointers to its classes. */
#ifndef TWINSTEP_SCHED_SCHED_MODULE_H
#define TWINSTEP_SCHED_SCHED_MODULE_H

#include "base/module_abi.h"
#include "sched/sched.h"

#define SCHED_MODULE_STATE_MAX 4096 /* the largest state_size of a module's schedule */

/* What the symbol twinstep_sched_v1 of a module is. */
struct sched_module {
    struct module_stamp stamp;
    const struct sched_class *const *classes; /* NULL-terminated */
};

#if defined(TWINSTEP_MODULE)

#include "base/module_kit.h"

#define SCHED_MODULE(list)                                                                         \
    extern MODULE_EXPORT const struct sched_module twinstep_sched_v1;                              \
    const struct sched_module twinstep_sched_v1 = {                                                \
        MODULE_STAMP(struct sched_class, struct sched_call, 0, 0), (list)}

#else

struct module;

/* The module's classes, after a check of their names, key rows, sizes and functions; none may have
 * the name of a built-in. `values_most` is the room for a class's parameters in bytes. The list
 * belongs to the module. STATUS_INPUT "FILE: schedule NAME: expected ..., got ...". */
TWINSTEP_MUST_USE enum status sched_module_read(const struct module *module, size_t values_most,
                                                const struct sched_class *const **out);

#endif
#endif
