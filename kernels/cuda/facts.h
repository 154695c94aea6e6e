/* SPDX-License-Identifier: Apache-2.0
 * How a module of kernels/cuda/ lists what it runs on (kernels/backend_abi.h). No more than that.
 * Included once by each module. */
#ifndef TWINSTEP_KERNELS_CUDA_FACTS_H
#define TWINSTEP_KERNELS_CUDA_FACTS_H

#include <stdarg.h>
#include <stdio.h>

#include "kernels/backend_abi.h"

struct facts {
    struct backend_fact *list;
    uint32_t count;
};

__attribute__((format(printf, 3, 4))) static void facts_add(struct facts *facts, const char *name,
                                                            const char *format, ...) {
    va_list values;
    if (facts->count == BACKEND_FACTS_MAX) return;
    struct backend_fact *fact = &facts->list[facts->count++];
    fact->momentary = 0;
    snprintf(fact->name, sizeof fact->name, "%s", name);
    va_start(values, format);
    vsnprintf(fact->text, sizeof fact->text, format, values);
    va_end(values);
}

/* The last one is momentary. */
__attribute__((unused)) static void facts_momentary(struct facts *facts) {
    if (facts->count > 0) facts->list[facts->count - 1].momentary = 1;
}

#endif
