/* SPDX-License-Identifier: Apache-2.0
 * For modules only: fills in the stamp, and sends FAIL to the program. Nothing of this program is
 * linked into a module; base/real*.h are inline and may be used.
 *
 * Included by optim/optim_module.h and sched/sched_module.h; a module of several files may include
 * them in each and names its entry in one. */
#ifndef TWINSTEP_BASE_MODULE_KIT_H
#define TWINSTEP_BASE_MODULE_KIT_H

#include "base/module_abi.h"
#include "base/real.h"
#include "base/status.h"

/* One for the whole module, invisible outside. */
__attribute__((weak, visibility("hidden"))) const struct module_host *twinstep_host;

/* FAIL(code, "...", ...) and TRY work as they do inside. */
#define status_fail(...) twinstep_host->fail(__VA_ARGS__)

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0) ||       \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)
#define MODULE_INEXACT_MATH 1
#else
#define MODULE_INEXACT_MATH 0
#endif

#if defined(__clang__)
#define MODULE_COMPILER __VERSION__ /* "Debian Clang 14.0.6" */
#else
#define MODULE_COMPILER "gcc " __VERSION__
#endif

/* x * x is 1 + 2^-11 + 2^-24: a product of its own rounds the last bit away, a fused one keeps it.
 */
static inline int module_fuses(void) {
    volatile float seen = 1.0f + 0x1p-12f;
    const float x = seen;
    seen = 1.0f + 0x1p-11f;
    const float c = seen;
    const float rest = x * x - c;
    return rest != 0.0f;
}

#define MODULE_STAMP(class_type, call_type, tensor_size, group_size)                               \
    {                                                                                              \
        MODULE_TAG, MODULE_VERSION,                                                                \
            {(uint32_t)sizeof(struct module_stamp),                                                \
             (uint32_t)sizeof(struct key_row),                                                     \
             (uint32_t)sizeof(class_type),                                                         \
             (uint32_t)sizeof(call_type),                                                          \
             (uint32_t)(tensor_size),                                                              \
             (uint32_t)(group_size)},                                                              \
            MODULE_INEXACT_MATH, 0, module_fuses, MODULE_COMPILER, &twinstep_host                  \
    }

#define MODULE_EXPORT __attribute__((visibility("default")))

#endif
