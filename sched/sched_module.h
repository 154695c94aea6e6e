/* SPDX-License-Identifier: Apache-2.0
 * A user's schedules in a shared object (docs/PLUGINS.md): what the module exports, and how this
 * program reads it. tests/plugins/template_sched.c is the one to copy.
 *
 * In the module: #define TWINSTEP_MODULE, include this header, and end with
 * SCHED_MODULE(list), `list` being a NULL-terminated array of pointers to its classes. */
#ifndef TWINSTEP_SCHED_SCHED_MODULE_H
#define TWINSTEP_SCHED_SCHED_MODULE_H

#include "base/module_abi.h"
#include "sched/sched.h"

#define SCHED_MODULE_STATE_MAX 4096 /* state_size of a module's schedule */

/* Behind symbol twinstep_sched_v1. */
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

/* The module's classes, checked: names, key rows, sizes, functions; none has the name of a
 * built-in. STATUS_INPUT "FILE: schedule NAME: expected ..., got ...". */
TWINSTEP_MUST_USE enum status sched_module_read(const struct module *module, size_t values_most,
                                                const struct sched_class *const **out);

#endif
#endif
