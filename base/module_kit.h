/* SPDX-License-Identifier: Apache-2.0
 * For modules only: fills in the stamp, and sends the texts of FAIL to the program. Nothing of this
 * program is linked into a module; base/real*.h are inline and may be used.
 *
 * optim/optim_module.h and sched/sched_module.h include this file. A module of several source files
 * may include them in each of these; it names its entry in one. */
#ifndef TWINSTEP_BASE_MODULE_KIT_H
#define TWINSTEP_BASE_MODULE_KIT_H

#include "base/module_abi.h"
#include "base/real.h"
#include "base/status.h"

/* The weak definition makes this one variable for all files of the module; hidden visibility keeps
 * the variables of two modules apart. */
__attribute__((weak, visibility("hidden"))) const struct module_host *twinstep_host;

/* With this, FAIL(code, "...", ...) and TRY work in a module as they do in the program. */
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

/* A conversion to float and back, twice. gcc 12.2 at -O2 turns this pair into a copy, because its
 * straight-line vectoriser takes the two conversions for none; -fno-tree-slp-vectorize keeps
 * them. */
__attribute__((noinline)) static void module_round_pair(double *out, const double *in) {
    const double a = in[0];
    const double b =
        in[1]; /* both are read before the first is written, otherwise nothing is vectorised */
    out[0] = (double)(float)a;
    out[1] = (double)(float)b;
}

/* Observes what the compiler did. x * x is 1 + 2^-11 + 2^-24 exactly: a product on its own rounds
 * the last bit away, a fused multiply-subtract keeps it. A conversion to float of the same number
 * rounds that bit away, too, unless the compiler left the conversion out. */
__attribute__((unused)) static int module_probe(void) {
    volatile float one = 1.0f + 0x1p-12f;
    volatile double wide = 1.0 + 0x1p-11 + 0x1p-24;
    const float x = one;
    one = 1.0f + 0x1p-11f;
    const float c = one;
    const float rest = x * x - c;
    const double in[2] = {wide, -wide};
    double out[2];
    module_round_pair(out, in);
    const int drops = out[0] != (double)c || out[1] != -(double)c;
    return (rest != 0.0f ? MODULE_FUSES : 0) | (drops ? MODULE_DROPS : 0);
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
            MODULE_INEXACT_MATH, 0, module_probe, MODULE_COMPILER, &twinstep_host                  \
    }

#define MODULE_EXPORT __attribute__((visibility("default")))

#endif
